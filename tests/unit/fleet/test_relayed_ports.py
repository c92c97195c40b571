"""The process that the ports of a master belong to: what it tells, and how it ends."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from golden_words import GoldenWords
from runs import alive, wait_until

from ssbench.base.errors import UsageError
from ssbench.fleet import relayed_ports
from ssbench.fleet.descriptors import ConnectionLimits
from ssbench.fleet.relayed_ports import RelayedPorts, bind_port

LIMITS = ConnectionLimits(1024, 200, 100)


@pytest.fixture
def listeners() -> list[socket.socket]:
    return [bind_port("127.0.0.1", 0) for _ in range(2)]


@pytest.fixture
def places(listeners: list[socket.socket]) -> list[tuple[str, int]]:
    return [each.getsockname() for each in listeners]


@pytest.fixture
def ports(
    listeners: list[socket.socket], places: list[tuple[str, int]], tmp_path: Path
) -> Iterator[RelayedPorts]:
    made = RelayedPorts(listeners, str(tmp_path), LIMITS)
    yield made
    made.close()


def wait_for_news(ports: RelayedPorts) -> list[str]:
    found: list[str] = []

    def look() -> bool:
        found.extend(ports.take_news())
        return bool(found)

    wait_until(look, "news of the ports")
    return found


def process_of(ports: RelayedPorts) -> int:
    return ports._process.pid


def test_each_kind_of_refusal_is_said_once_and_all_are_counted(
    ports: RelayedPorts, places: list[tuple[str, int]], golden_words: GoldenWords
) -> None:
    for place in places * 5:
        with socket.create_connection(place, 30) as peer, suppress(ConnectionResetError):
            peer.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert peer.recv(1) == b""
    said = wait_for_news(ports)
    wait_until(lambda: said.extend(ports.take_news()) or ports.refused == 10, "all that were refused")
    (text,) = said
    golden_words(text)
    golden_words(text)
    assert ports.take_news() == []


def test_all_that_were_refused_are_counted_when_it_is_asked(
    ports: RelayedPorts, places: list[tuple[str, int]]
) -> None:
    """Otherwise it tells every quarter of a second."""
    said = []
    for count in range(1, 21):
        with socket.create_connection(places[0], 30) as peer, suppress(ConnectionResetError):
            peer.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert peer.recv(1) == b""
        said += ports.count_refused()
        assert ports.refused == count
    assert len(said) == 1


def test_one_that_was_stopped_is_named_until_it_answers(
    ports: RelayedPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports.count_refused()
    os.kill(process_of(ports), signal.SIGSTOP)
    monkeypatch.setattr(relayed_ports, "_ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(relayed_ports, "_SILENT_SECONDS", 0.1)
    assert ports.count_refused() == []
    (text,) = wait_for_news(ports)
    assert f"(pid {process_of(ports)}) has not answered for 0.1 s" in text
    assert ports.take_news() == []
    os.kill(process_of(ports), signal.SIGCONT)
    wait_until(lambda: not ports.take_news() and ports._answered == ports._asked, "its answers")
    os.kill(process_of(ports), signal.SIGSTOP)
    ports.count_refused()
    assert wait_for_news(ports) == [text]
    os.kill(process_of(ports), signal.SIGCONT)


def test_it_is_asked_now_and_then(ports: RelayedPorts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relayed_ports, "_ASK_SECONDS", 0.0)
    wait_until(lambda: not ports.take_news() and ports._answered > 2, "three answers")


def test_what_connects_before_it_runs_waits(ports: RelayedPorts, places: list[tuple[str, int]]) -> None:
    """Its sockets listen from the beginning."""
    for place in places:
        socket.create_connection(place, 30).close()


def test_its_end_is_said_once(ports: RelayedPorts, golden_words: GoldenWords) -> None:
    os.kill(process_of(ports), signal.SIGKILL)
    (text,) = wait_for_news(ports)
    golden_words(text)
    assert ports.take_news() == []


def test_signals_for_the_master_do_not_end_it(ports: RelayedPorts, places: list[tuple[str, int]]) -> None:
    process = process_of(ports)
    with socket.create_connection(places[0], 30) as peer:
        peer.sendall(b"x")
        assert peer.recv(1) == b""  # so that it runs
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(process, number)
    assert len(wait_for_news(ports)) == 1
    assert alive(process)
    assert os.getsid(process) != os.getsid(0)


def test_it_leaves_no_process_port_or_descriptor(
    listeners: list[socket.socket], places: list[tuple[str, int]], tmp_path: Path
) -> None:
    before = len([*Path("/proc/self/fd").iterdir()])
    ports = RelayedPorts(listeners, str(tmp_path), LIMITS)
    process = process_of(ports)
    ports.close()
    ports.close()
    assert not Path(f"/proc/{process}").exists()
    for host, port in places:
        bind_port(host, port).close()
    assert len([*Path("/proc/self/fd").iterdir()]) == before - len(places)


def test_where_it_cannot_be_started_one_line_says_so(
    listeners: list[socket.socket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    with golden_words.raises(UsageError):
        RelayedPorts(listeners, str(tmp_path), LIMITS)
    assert [each.fileno() for each in listeners] == [-1, -1]
