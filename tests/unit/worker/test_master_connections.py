"""Whether a worker's sockets are connected, and what it says of why they are not."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import gevent
import gevent.event
import pytest
import zmq
from fault_server import black_hole
from golden_words import GoldenWords
from processes import free_ports
from said import SAME_KEY
from zmtp_peer import FalseMaster

from ssbench.fleet import keys
from ssbench.fleet.addresses import BindAddress
from ssbench.fleet.keys import FleetKey
from ssbench.fleet.sockets import MasterSockets, WorkerSockets
from ssbench.worker import master_connections as module
from ssbench.worker.master_connections import MasterConnections, find_hindrance

PATIENCE = 60.0


@contextmanager
def closed_port() -> Iterator[int]:
    """A port that is bound, so that nobody else gets it, and refuses connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


class Watched:
    """The connections of a worker to these two ports, and what came of them."""

    def __init__(self, ports: tuple[int, int], fleet_key: FleetKey | None = None) -> None:
        work, results = (f"tcp://127.0.0.1:{port}" for port in ports)
        self.sockets = WorkerSockets(work, results, fleet_key)
        self.results = gevent.event.Event()
        self.work_lost = gevent.event.Event()
        self.connections = MasterConnections(self.sockets, self.results.set, self.work_lost.set)

    def __enter__(self) -> Watched:
        self.connections.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.connections.stop()
        self.sockets.close(0)


def test_workers_do_not_all_connect_again_at_once_nor_during_a_slow_handshake() -> None:
    """With keys, handshakes of 3,000 workers that come together take a master 4 to 5.6 s."""
    with socket.socket() as any_socket:
        connection = module.MasterConnection("work", "tcp://127.0.0.1:1", any_socket)

    def waits() -> list[float]:
        found = []
        for _ in range(1000):
            connection.try_now()
            if failed:
                connection.handshake_failed = connection.since + 0.1
            # However often it is looked at.
            assert len({connection.patience for _ in range(10)}) == 1
            found.append(connection.patience)
        return found

    failed = False
    unanswered = waits()
    assert min(unanswered) > 5.6
    assert max(unanswered) - min(unanswered) > 5.0
    failed = True
    refused = waits()
    assert 5.0 <= min(refused) < max(refused) <= 10.0
    assert max(refused) - min(refused) > 2.5


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Let what there is to say be said soon."""
    monkeypatch.setattr(module, "_FIRST_SAY_SECONDS", 0.05)
    caplog.set_level(logging.WARNING)
    return caplog


def says(log: pytest.LogCaptureFixture, text: str) -> str:
    """Wait for a message with this text."""
    with gevent.Timeout(PATIENCE):
        while not (found := [each for each in log.messages if text in each]):
            gevent.sleep(0.01)
    return found[0]


def test_it_is_known_when_both_are_connected_and_when_work_is_lost() -> None:
    master = MasterSockets(BindAddress("127.0.0.1", 0, 0))
    with Watched(master.ports) as watched:
        assert watched.results.wait(PATIENCE)
        with gevent.Timeout(PATIENCE):
            while not watched.connections._work.connected:
                gevent.sleep(0.01)
        assert not watched.work_lost.is_set()
        master.close()
        assert watched.work_lost.wait(PATIENCE)
        with gevent.Timeout(PATIENCE):
            while watched.connections.results.connected:
                gevent.sleep(0.01)


def test_a_flood_is_left_and_the_master_found_again(
    monkeypatch: pytest.MonkeyPatch, soon: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_RECONNECT_SECONDS", 0.1)
    with MasterSockets(BindAddress("127.0.0.1", 0, 0)) as master, Watched(master.ports) as watched:
        work = watched.connections._work
        with gevent.Timeout(PATIENCE):
            while not (work.connected and watched.connections.results.connected):
                gevent.sleep(0.01)
            assert (watched.connections.received_for_work() or 0) > 64  # the greeting, at least
            watched.connections.leave_work()
            assert watched.work_lost.is_set()
            assert not work.connected
            while not (work.connected and watched.connections.results.connected):
                gevent.sleep(0.01)
        says(soon, "it sends messages without end, as no ssbench-master does; connecting again in 0.1 s")


def test_who_sends_results_to_a_worker_is_left(soon: pytest.LogCaptureFixture) -> None:
    """libzmq reads the first of them only, and does not notice the end of the connection."""
    with (
        closed_port() as closed,
        FalseMaster(*free_ports()) as false,
        Watched((closed, false.ports[1])),
        gevent.Timeout(PATIENCE),
    ):
        says(soon, f"Left tcp://127.0.0.1:{false.ports[1]}: no ssbench-master sends anything there")
        while false.came["results"] < 2:
            gevent.sleep(0.01)


def test_a_worker_sends_no_pings() -> None:
    """libzmq aborts a master that finds one left when the connection has broken with a full queue."""
    sockets = WorkerSockets("tcp://127.0.0.1:1", "tcp://127.0.0.1:1")
    try:
        for socket_ in (sockets.work, sockets.results):
            assert socket_.getsockopt(zmq.HEARTBEAT_IVL) == 0
            assert socket_.getsockopt(zmq.TCP_KEEPALIVE) == 1
        assert sockets.work.getsockopt(zmq.RCVHWM) == 0
    finally:
        sockets.close(0)


def test_where_no_master_is_both_addresses_have_one_line(
    soon: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    with closed_port() as one, closed_port() as two, Watched((one, two)):
        golden_words(says(soon, "Not connected"))


def test_what_stays_the_same_is_logged_ever_more_rarely() -> None:
    """A worker that waited for a master over night logged the same line each ten seconds."""
    notice = module.RepeatedNotice()
    logged = [now for now in range(0, 3600, 10) if notice.is_due("no process listens there", now)]
    assert logged[:5] == [0, 10, 30, 70, 150]
    assert max(later - one for one, later in pairwise(logged)) == 300
    assert notice.is_due("the key was refused", 3600)
    assert not notice.is_due("the key was refused", 3605)
    assert notice.is_due("the key was refused", 3610)


def test_one_that_is_connected_is_named_beside_the_other(soon: pytest.LogCaptureFixture) -> None:
    with (
        MasterSockets(BindAddress("127.0.0.1", 0, 0)) as master,
        closed_port() as closed,
        Watched((closed, master.ports[1])) as watched,
    ):
        assert watched.results.wait(PATIENCE)
        text = f"Not connected to tcp://127.0.0.1:{closed} (work; the results port is connected): no process"
        says(soon, text)


def test_another_server_is_no_master(soon: pytest.LogCaptureFixture) -> None:
    """It takes the connection and says nothing; or something that no master says."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with Watched((port, port)):
            says(soon, "the port is open, but no ssbench-master answers; is another program listening there")


def test_a_key_that_differs_is_named(soon: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    one, other = (tmp_path / f"{name}.key" for name in ("one", "other"))
    for path in (one, other):
        keys.write_fleet_key(path)
    with (
        MasterSockets(BindAddress("127.0.0.1", 0, 0), keys.read_fleet_key(one)) as master,
        Watched(master.ports, keys.read_fleet_key(other)) as watched,
    ):
        says(soon, f"the handshake fails; {SAME_KEY}")
        assert not watched.results.is_set()


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("tcp://no-such-host.invalid:13579", "the name no-such-host.invalid does not resolve"),
        ("ipc:///no/such/socket", "no process listens there"),
        ("tcp://[::1]:1", "no process listens there|check --zmq-host and the network"),
    ],
)
def test_what_hinders_a_connection(address: str, reason: str) -> None:
    found = find_hindrance(address)
    assert found is not None
    assert any(each in found for each in reason.split("|"))


def test_what_hinders_a_connection_to_a_socket_of_this_host(
    tmp_path: Path, golden_words: GoldenWords
) -> None:
    path = tmp_path / "5"
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        golden_words(find_hindrance(f"ipc://{path}") or "")
        bound.listen()
        assert find_hindrance(f"ipc://{path}") is None
    with closed_port() as port:
        golden_words(find_hindrance(f"tcp://127.0.0.1:{port}") or "")


def test_a_host_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    monkeypatch.setattr(module, "_PROBE_SECONDS", 0.1)
    with black_hole() as port:
        golden_words(find_hindrance(f"tcp://127.0.0.1:{port}") or "")


def test_an_open_port_is_no_hindrance() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert find_hindrance(f"tcp://127.0.0.1:{server.getsockname()[1]}") is None


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("ipc:///tmp/x/5", True),
        ("tcp://127.0.0.1:13579", True),
        ("tcp://[::1]:13579", True),
        ("tcp://10.0.0.4:13579", False),
        ("tcp://[2001:db8::1]:13579", False),
    ],
)
def test_no_firewall_is_between_processes_of_one_host(address: str, local: bool) -> None:
    found = module._describe_no_handshake(address)
    assert ("firewall" in found, "another program" in found) == (not local, local)
