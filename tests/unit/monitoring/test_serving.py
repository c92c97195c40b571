"""HTTP servers in a thread: who gives way when connections or streams are many, and where they listen."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path
from socketserver import BaseServer

import pytest
from live_pages import TOKEN, ask, follow
from metric_results import SCENARIO, SOURCE, scrape
from runs import wait_until

from ssbench.document.renderers.html import PagePart
from ssbench.monitoring import serving
from ssbench.monitoring.page_server import PageApplication
from ssbench.monitoring.prometheus import PrometheusExporter
from ssbench.monitoring.run_metrics import CountingSink


def test_silent_connections_give_way_and_are_closed(
    exporter: PrometheusExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many more than a run could bear: it has not one of them for each for longer than some seconds."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    with ExitStack() as stack:
        silent = []
        for number in range(100):
            made = stack.enter_context(socket.create_connection(("127.0.0.1", exporter.port), 30))
            if number % 2:
                made.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
            silent.append(made)
            # A scrape among them is answered, and by then all before it were accepted.
            assert number % 25 or scrape(exporter)
        scrape(exporter)

        def ours() -> int:
            return len(list(Path("/proc/self/fd").iterdir())) - len(silent) - before

        wait_until(lambda: ours() <= serving.MAX_CONNECTIONS + 1, "silent connections to give way")
        monkeypatch.setattr(serving, "MAX_CONNECTION_SECONDS", 0.1)
        for made in silent:
            while made.recv(4096):  # until it is closed: an error may be answered first
                pass


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost"])
def test_it_listens_at_the_address_that_is_given(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if address == "::1" and not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 on this host")
    monkeypatch.setattr(BaseServer.serve_forever, "__defaults__", (0.01,))
    with (
        PrometheusExporter(CountingSink(SCENARIO, SOURCE), address, 0) as made,
        socket.create_connection((address, made.port), 30) as connection,
    ):
        connection.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.0 200"


def test_readers_that_do_not_read_hold_nothing_up_and_are_few(
    site: tuple[PageApplication, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "MAX_CONNECTION_SECONDS", 2.0)
    made, port = site
    silent = []
    for _ in range(serving.MAX_STREAMS):
        one = socket.create_connection(("127.0.0.1", port), 30)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.sendall(f"GET /{TOKEN}/events HTTP/1.0\r\n\r\n".encode())
        assert one.recv(12) == b"HTTP/1.0 200"
        silent.append(one)
    monkeypatch.setattr(serving, "_TURN_SECONDS", 1000.0)  # nobody gives way so soon
    monkeypatch.setattr(serving, "_SLOW_SECONDS", 1000.0)
    assert ask(port, f"/{TOKEN}/events")[0] == 503
    # They take nothing, so that each is closed, and the page is there for others meanwhile.
    made.publish("t", [PagePart("one", f"<p id=one>{'x' * 20_000_000}</p>")])
    assert made.wait_for_readers(60)
    made.publish("t", [PagePart("one", "<p id=one></p>")])
    assert ask(port, f"/{TOKEN}/")[0] == 200
    for one in silent:
        one.close()


def test_the_slowest_of_many_readers_gives_way_to_the_next(
    site: tuple[PageApplication, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "MAX_CONNECTION_SECONDS", 1000.0)
    monkeypatch.setattr(serving, "_TURN_SECONDS", 1000.0)
    monkeypatch.setattr(serving, "_SLOW_SECONDS", 0.0)
    stuck: set[int] = set()
    on_its_way = serving._count_unread_bytes

    def noted(request: socket.socket) -> int:
        found = on_its_way(request)
        if found:
            stuck.add(request.fileno())
        return found

    monkeypatch.setattr(serving, "_count_unread_bytes", noted)
    made, port = site
    made.publish("t", [PagePart("one", f"<p id=one>{'x' * 8_000_000}</p>")])
    silent = []
    for _ in range(serving.MAX_STREAMS - 1):
        one = socket.create_connection(("127.0.0.1", port), 30)
        one.sendall(f"GET /{TOKEN}/events HTTP/1.0\r\n\r\n".encode())
        assert one.recv(12) == b"HTTP/1.0 200"
        silent.append(one)
    with follow(port) as first:
        assert next(first)["order"] == ["one"]
        wait_until(lambda: len(stuck) >= len(silent), "all that do not read to be behind")
        for _ in silent:
            with follow(port) as other:
                assert next(other)["order"] == ["one"]
        made.publish("new", [PagePart("one", "<p id=one></p>")], last=True)
        assert next(first)["title"] == "new"
    for one in silent:
        one.close()


def test_where_all_readers_read_the_oldest_gives_way_after_some_seconds(
    site: tuple[PageApplication, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_SLOW_SECONDS", 1000.0)
    monkeypatch.setattr(serving, "_TURN_SECONDS", 1000.0)
    made, port = site
    made.publish("t", [PagePart("one", "<p id=one></p>")])
    with ExitStack() as stack:
        following = [stack.enter_context(follow(port)) for _ in range(serving.MAX_STREAMS)]
        assert all(next(each)["title"] == "t" for each in following)
        assert ask(port, f"/{TOKEN}/events")[0] == 503
        monkeypatch.setattr(serving, "_TURN_SECONDS", 0.0)
        with follow(port) as ninth:
            assert next(ninth)["title"] == "t"
            assert not list(following[0])
            made.publish("new", [], last=True)
            assert all(next(each)["title"] == "new" for each in [*following[1:], ninth])
