"""When bytes arrived, as the kernel tells it."""

from __future__ import annotations

import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from typing import cast

import gevent
import pytest

from ssbench.store.http import connection as http_connection
from ssbench.store.http.client import ClientSettings
from ssbench.store.http.connection import HttpConnection, arrival_time
from ssbench.store.stores import make_store_client

SENT, NOW, OFFSET = 100.0, 101.0, 1_700_000_000.0

linux = pytest.mark.skipif(sys.platform != "linux", reason="SO_TIMESTAMPNS is Linux's")


def stamp(wall: float) -> bytes:
    return struct.pack("@qq", int(wall), round(wall % 1 * 1e9))


@pytest.fixture
def stamping_kernel() -> Iterator[None]:
    """Wait until the kernel stamps what arrives; until then, it stamps what is read.

    It begins a while after the first socket of the host asked for it, and ends some time after the last one
    was closed.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        assert http_connection.ask_for_arrivals(probe)
        probe.bind(("127.0.0.1", 0))
        end = time.monotonic() + 60
        while True:
            probe.sendto(b"x", probe.getsockname())
            sent_at = time.time()
            assert select.select([probe], [], [], 60)[0]
            time.sleep(0.002)  # what was not stamped when it arrived has a stamp that is later than this
            _, told, _, _ = probe.recvmsg(1, 100)
            seconds, nanoseconds = struct.unpack("@qq", told[0][2])
            if seconds + nanoseconds / 1e9 <= sent_at + 0.001:
                break
            assert time.monotonic() < end
        yield


@pytest.mark.parametrize(
    ("stamped", "stepped", "arrived"),
    [
        (100.75, 0.0, 100.75),
        (100.0, 0.0, 100.0),
        (99.9, 0.0, NOW),  # before it was sent
        (101.5, 0.0, NOW),  # after it was read
        (100.75, 0.01, NOW),  # the wall clock was stepped meanwhile
        (100.75, -3600.0, NOW),
    ],
)
def test_a_stamp_is_believed_where_the_clocks_went_alike(
    monkeypatch: pytest.MonkeyPatch, stamped: float, stepped: float, arrived: float
) -> None:
    monkeypatch.setattr(http_connection, "time", lambda: OFFSET + NOW + stepped)
    found = arrival_time(stamp(OFFSET + stamped), NOW, SENT, OFFSET, 0.0)
    assert found == pytest.approx(arrived, abs=1e-6)


def test_a_pause_between_the_readings_of_the_clocks_is_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    walls = iter([OFFSET + NOW + 0.02, OFFSET + NOW + 0.02])
    monkeypatch.setattr(http_connection, "time", lambda: next(walls))
    monkeypatch.setattr(http_connection, "monotonic", lambda: NOW + 0.02)
    assert arrival_time(stamp(OFFSET + 100.75), NOW, SENT, OFFSET, 0.0) == pytest.approx(100.75, abs=1e-6)


@pytest.mark.parametrize("pause", [0.0004, -0.0004])
def test_a_short_pause_between_two_readings_moves_no_arrival(
    monkeypatch: pytest.MonkeyPatch, pause: float
) -> None:
    """Of those when the answer was read, or of those when the request was sent."""
    monkeypatch.setattr(http_connection, "time", lambda: OFFSET + NOW + max(pause, 0.0))
    found = arrival_time(stamp(OFFSET + 100.75), NOW, SENT, OFFSET + max(-pause, 0.0), 0.0)
    assert found == pytest.approx(100.75, abs=1e-6)


def test_what_is_read_later_arrived_no_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two reads of one segment have one stamp; the difference of the clocks is read for each of them."""
    walls = iter([OFFSET + NOW, OFFSET + NOW + 3e-6])
    monkeypatch.setattr(http_connection, "time", lambda: next(walls))
    first = arrival_time(stamp(OFFSET + 100.75), NOW, SENT, OFFSET + 1e-5, 99.0)
    assert first == pytest.approx(100.75, abs=2e-5)
    assert arrival_time(stamp(OFFSET + 100.75), NOW, SENT, OFFSET + 1e-5, first) == first


@linux
@pytest.mark.usefixtures("stamping_kernel")
@pytest.mark.parametrize("step", [0.0, 3600.0])
def test_what_the_loop_does_for_others_is_in_no_latency(monkeypatch: pytest.MonkeyPatch, step: float) -> None:
    # However long any thread waits for the core, its clocks go alike.
    monkeypatch.setattr(http_connection, "_MAX_CLOCK_STEP", 60.0)
    came, answered = [], []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(60)
            for _ in range(2):
                connection.recv(65536)
                came.append(time.monotonic())
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + bytes(100))
                answered.append(time.monotonic())

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve)
        server.start()
        client = make_store_client(ClientSettings())
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/a"
        client.request(url, "GET", "c", "o")
        begun = time.monotonic()
        asking = gevent.spawn(client.request, url, "GET", "c", "o")
        gevent.sleep(0)
        server.join(60)  # the answer comes while the loop stands still
        time.sleep(0.1)
        stood_still_until = time.monotonic()
        if step:
            monkeypatch.setattr(http_connection, "time", lambda: time.time() + step)
        outcome = asking.get()
        client.close()
    assert outcome.cause is None
    assert outcome.last_byte is not None
    if step:
        assert outcome.last_byte >= stood_still_until - came[1]
    else:
        assert outcome.last_byte <= answered[1] - begun + 0.01


@linux
@pytest.mark.usefixtures("stamping_kernel")
def test_the_end_of_a_body_in_parts_is_when_it_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "_MAX_CLOCK_STEP", 60.0)
    goes_on, answered = threading.Event(), []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(60)
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n" + bytes(10_000))
            goes_on.wait(60)
            connection.sendall(bytes(10_000))
            answered.append(time.monotonic())

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve)
        server.start()
        client = make_store_client(ClientSettings())
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/a"
        begun = time.monotonic()
        asking = gevent.spawn(client.request, url, "GET", "c", "unchecked", expected=20_000)
        client.sample(20_000)  # the one that would be looked at
        with gevent.Timeout(60):
            while not any(cast(HttpConnection, each).received_at for each in client._shared.connections):
                gevent.sleep(0.001)
        goes_on.set()
        server.join(60)  # the rest comes while the loop stands still
        time.sleep(0.1)
        outcome = asking.get()
        client.close()
    assert outcome.cause is None
    assert outcome.first_byte is not None
    assert outcome.last_byte is not None
    assert outcome.first_byte < outcome.last_byte <= answered[0] - begun + 0.01


def test_where_the_kernel_cannot_tell_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as sock:
        with monkeypatch.context() as narrow:
            narrow.setattr(sys, "maxsize", 2**31 - 1)
            assert not http_connection.ask_for_arrivals(sock)
        monkeypatch.setattr(sys, "platform", "darwin")
        assert not http_connection.ask_for_arrivals(sock)
