"""Who may connect: libzmq's questions answered, over real sockets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
from golden_words import GoldenWords

from ssbench.base.errors import KeyFileError
from ssbench.fleet import keys as fleet_key
from ssbench.fleet.addresses import BindAddress
from ssbench.fleet.keys import AllowedClients, FleetKey, ZapHandler
from ssbench.fleet.sockets import MasterSockets

PATIENCE = 5000


@pytest.fixture
def sealed(tmp_path: Path) -> FleetKey:
    fleet_key.write_fleet_key(tmp_path / "fleet.key")
    return fleet_key.read_fleet_key(tmp_path / "fleet.key")


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    found: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield found
    found.term()  # waits for all sockets, that of the handler included


def listening(
    context: zmq.Context[zmq.Socket[bytes]], handler: ZapHandler, key: FleetKey | None
) -> tuple[zmq.Socket[bytes], int]:
    socket = context.socket(zmq.PULL)
    handler.guard(socket, key)
    socket.rcvtimeo = PATIENCE
    return socket, socket.bind_to_random_port("tcp://127.0.0.1")


def sender(
    context: zmq.Context[zmq.Socket[bytes]], port: int, key: FleetKey | None, pair: tuple[bytes, bytes] | None
) -> zmq.Socket[bytes]:
    socket = context.socket(zmq.PUSH)
    socket.linger = 0
    if key is not None and pair is not None:
        socket.curve_serverkey = key.server_public
        socket.curve_publickey, socket.curve_secretkey = pair
    socket.connect(f"tcp://127.0.0.1:{port}")
    socket.send(b"hello")
    return socket


def test_a_message_of_an_allowed_key_comes_under_that_key(
    context: zmq.Context[zmq.Socket[bytes]], sealed: FleetKey
) -> None:
    clients = AllowedClients(sealed)
    socket, port = listening(context, ZapHandler(context, clients), sealed)
    with socket, sender(context, port, sealed, (sealed.client_public, sealed.client_secret)):
        frame = socket.recv(copy=False)
    assert frame.bytes == b"hello"
    assert frame.get("User-Id") == sealed.client_public.decode()
    assert clients.refused == set()


def test_a_key_that_is_not_allowed_is_refused_and_remembered(
    context: zmq.Context[zmq.Socket[bytes]], sealed: FleetKey
) -> None:
    clients = AllowedClients(sealed)
    socket, port = listening(context, ZapHandler(context, clients), sealed)
    stranger = zmq.curve_keypair()
    with socket, context.socket(zmq.PUSH) as peer:
        peer.linger = 0
        peer.curve_serverkey = sealed.server_public
        peer.curve_publickey, peer.curve_secretkey = stranger
        monitor = peer.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_AUTH)
        peer.connect(f"tcp://127.0.0.1:{port}")
        assert monitor.poll(PATIENCE)
        peer.disable_monitor()
        monitor.close()
        assert clients.refused == {stranger[0]}
        assert not socket.poll(0)


def test_a_list_that_is_gone_changes_nothing(tmp_path: Path, golden_words: GoldenWords) -> None:
    path = tmp_path / "fleet.key"
    fleet_key.write_fleet_key(path)
    fleet = fleet_key.read_fleet_key(path)
    clients = AllowedClients(fleet)
    assert clients.read_again() == ([], [])  # there never was one
    worker = fleet_key.read_fleet_key(fleet_key.write_worker_key(path, "one"))
    assert sorted(clients.read_again()[0]) == ["one"]
    fleet_key.revoke_worker_key(fleet_key.allowed_list_path(path), "one")
    assert clients.read_again() == ([], ["one"])
    listed = fleet_key.allowed_list_path(path)
    kept = listed.rename(tmp_path / "kept")
    with golden_words.raises(KeyFileError):
        clients.read_again()
    assert not clients.accepts(worker.client_public)
    assert worker.client_public.decode() in clients.revoked
    kept.rename(listed)
    assert clients.read_again() == ([], [])


def test_without_keys_every_peer_of_the_protocol_is_accepted(
    context: zmq.Context[zmq.Socket[bytes]],
) -> None:
    socket, port = listening(context, ZapHandler(context, None), None)
    with socket, sender(context, port, None, None):
        assert socket.recv() == b"hello"


def test_its_thread_ends_with_the_context(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    handler = ZapHandler(context, None)
    context.term()
    handler.join()


def test_where_its_thread_cannot_start_all_is_closed_and_nothing_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none_left(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    opened = len([*Path("/proc/self/fd").iterdir()])
    monkeypatch.setattr(threading.Thread, "start", none_left)
    with pytest.raises(RuntimeError, match="new thread"):
        MasterSockets(BindAddress("127.0.0.1", 0, 0))
    assert len([*Path("/proc/self/fd").iterdir()]) == opened
