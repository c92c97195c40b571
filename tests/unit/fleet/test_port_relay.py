"""The relay of a master's ports, in a thread, between real connections and real Unix sockets."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from runs import wait_until
from zmtp_peer import GREETING, reset

from ssbench.fleet import port_relay
from ssbench.fleet.port_relay import PortRelay

PATIENCE = 30.0
#: What begins a sealed connection.
SEALED = GREETING.replace(b"NULL\0", b"CURVE")


class Relayed:
    """A relay of one port, with the Unix socket and the control socket of its master."""

    def __init__(self, most_links: int, most_ends: int) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.place = listener.getsockname()
        self._clients: list[socket.socket] = []
        self.inside = socket.socket(socket.AF_UNIX)
        self.inside.bind(str(self.place[1]))
        self.inside.listen(64)
        self.inside.settimeout(PATIENCE)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(PATIENCE)
        self.refused: dict[str, tuple[int, str]] = {}
        self._theirs = theirs
        self.relay = PortRelay(theirs, most_links, most_ends, [listener])
        self.thread = threading.Thread(target=self.relay.run)
        self.thread.start()

    def connect(self, first: bytes = b"") -> socket.socket:
        client = socket.create_connection(self.place, PATIENCE)
        self._clients.append(client)
        client.sendall(first)
        return client

    def accept(self) -> socket.socket:
        theirs, _ = self.inside.accept()
        theirs.settimeout(PATIENCE)
        self._clients.append(theirs)
        return theirs

    def link(self, first: bytes = GREETING) -> tuple[socket.socket, socket.socket]:
        """Return both ends of a connection that is relayed, and whose first bytes were received."""
        client, theirs = self.connect(first), self.accept()
        assert receive(theirs, len(first)) == first
        return client, theirs

    def wait_for_refusal(self, reason: str, count: int = 1) -> str:
        """Wait until so many were refused for that reason; return the address of the first."""
        while self.refused.get(reason, (-1, ""))[0] < count:
            for line in self.control.recv(4096).decode().splitlines()[1:]:
                name, number, first = line.split(" ")
                self.refused[name] = int(number), first
        assert self.refused[reason][0] == count
        return self.refused[reason][1]

    def close(self) -> None:
        self.control.close()
        for each in (*self._clients, self.inside):
            each.close()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        self._theirs.close()


def receive(peer: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (more := peer.recv(count - len(data))):
        data += more
    return data


def receive_all(peer: socket.socket) -> bytes:
    """What comes until the end, which must be none by a reset."""
    return b"".join(iter(lambda: peer.recv(65536), b""))


def address(client: socket.socket) -> str:
    host, port = client.getsockname()
    return f"{host}:{port}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The relay finds the sockets in its current folder, however long its name is."""
    long = tmp_path / ("d" * 120)
    long.mkdir()
    monkeypatch.chdir(long)


@pytest.fixture
def relayed(folder: None) -> Iterator[Relayed]:
    made = Relayed(4, 12)
    yield made
    made.close()


@pytest.mark.parametrize("first", [GREETING, SEALED], ids=["open", "sealed"])
def test_bytes_go_in_both_directions(relayed: Relayed, first: bytes) -> None:
    client, theirs = relayed.link(first)
    frames = b"\0\x03one" + b"\x02" + (1 << 20).to_bytes(8) + os.urandom(1 << 20) + b"\0\0"
    for near, far in ((client, theirs), (theirs, client)):
        sender = threading.Thread(target=near.sendall, args=(frames,))
        sender.start()
        assert receive(far, len(frames)) == frames
        sender.join()


def test_frames_are_found_wherever_pieces_of_them_begin(relayed: Relayed) -> None:
    client, theirs = relayed.connect(), None
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    frames = b"\x04\x03abc" + b"\0\x01a" + b"\x02" + (5).to_bytes(8) + b"\x01\x01\x01\x01\x01" + b"\0\0"
    came = b""
    for byte in GREETING + frames:
        client.sendall(bytes([byte]))
        came += bytes([byte])
        if len(came) == 10:
            theirs = relayed.accept()
            assert receive(theirs, 10) == came
        elif theirs is not None:
            assert receive(theirs, 1) == bytes([byte])
    client.sendall(b"\x01")
    assert relayed.wait_for_refusal("foreign") == address(client)


def test_the_end_of_one_direction_leaves_the_other(relayed: Relayed) -> None:
    client, theirs = relayed.link()
    client.sendall(b"\0\x01x")
    client.shutdown(socket.SHUT_WR)
    assert receive_all(theirs) == b"\0\x01x"
    theirs.sendall(b"answer")
    theirs.close()
    assert receive_all(client) == b"answer"


def test_after_a_reset_the_master_reads_to_an_ordinary_end(relayed: Relayed) -> None:
    """Also while it reads nothing, and while its socket is full: no error is there for libzmq to find."""
    client, theirs = relayed.link()
    frames = (b"\x02" + (1 << 16).to_bytes(8) + bytes(1 << 16)) * 64
    client.settimeout(0.5)
    sent = 0
    with contextlib.suppress(TimeoutError):
        while True:
            sent += client.send(frames[sent % len(frames) :])
    reset(client)
    poll = select.poll()
    poll.register(theirs, 0)
    assert poll.poll(500) == []
    data = receive_all(theirs)
    # What was on its way in the kernel is lost with a reset, but it is the beginning that came.
    assert 100_000 < len(data) <= sent
    theirs.sendall(b"to nobody")


def test_little_is_kept_for_a_side_that_does_not_read(relayed: Relayed) -> None:
    client, theirs = relayed.link()
    for near in (client, theirs):
        near.settimeout(0.3)
        with contextlib.suppress(TimeoutError):
            while True:
                near.sendall(b"\x02" + (1 << 16).to_bytes(8) + bytes(1 << 16))
    kept = [len(end.pending) for end in relayed.relay._ends.values()]
    assert all(0 < each <= 16_384 for each in kept)
    assert len(kept) == 2


@pytest.mark.parametrize(
    "first",
    [b"GET / HTTP/1.1\r\n\r\n", b"\xff" + bytes(9), GREETING + b"\x04\x03abc\x01\x00", GREETING + b"\x03"],
    ids=["HTTP", "no greeting", "several parts", "several long parts"],
)
def test_another_protocol_is_refused(relayed: Relayed, first: bytes) -> None:
    client = relayed.connect(first)
    if first.startswith(GREETING):
        assert GREETING.startswith(receive_all(relayed.accept()))
    assert relayed.wait_for_refusal("foreign") == address(client)
    with contextlib.suppress(ConnectionResetError):
        assert client.recv(1) == b""
    # Others are not refused for it.
    relayed.link()


def test_who_says_nothing_is_shut_out(relayed: Relayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port_relay, "WAIT_SECONDS", 0.3)
    silent = relayed.connect(GREETING[:9])
    assert relayed.wait_for_refusal("silent") == address(silent)
    assert silent.recv(1) == b""
    client, theirs = relayed.link()
    threading.Event().wait(0.5)  # longer than any of them may be silent
    client.sendall(b"\0\x01x")
    assert receive(theirs, 3) == b"\0\x01x"


def test_who_leaves_by_itself_is_not_refused(relayed: Relayed) -> None:
    relayed.connect().close()
    relayed.connect(GREETING[:5]).close()
    client, theirs = relayed.link()
    client.close()
    assert receive_all(theirs) == b""
    relayed.connect(b"x")
    relayed.wait_for_refusal("foreign")
    assert relayed.refused.keys() == {"foreign"}


def test_silent_ones_take_no_room_from_others(relayed: Relayed) -> None:
    silent = [relayed.connect() for _ in range(40)]
    relayed.link()
    assert silent[0].recv(1) == b""
    # All but twelve; then one for the new connection, and one for its link.
    assert relayed.wait_for_refusal("silent", 28 + 2) == address(silent[0])


def test_a_peer_that_libzmq_shuts_out_is_counted(relayed: Relayed) -> None:
    client, theirs = relayed.link()
    theirs.sendall(GREETING)
    theirs.close()
    assert relayed.wait_for_refusal("closed") == address(client)
    assert receive_all(client) == GREETING
    # A worker that had work is no stranger, where a newer connection of it took its place.
    client, theirs = relayed.link()
    theirs.sendall(bytes(1000))
    assert receive(client, 1000) == bytes(1000)
    theirs.close()
    assert client.recv(1) == b""
    relayed.connect(b"x")
    relayed.wait_for_refusal("foreign")
    assert relayed.refused["closed"][0] == 1


def test_more_than_there_is_room_for_wait(relayed: Relayed) -> None:
    links = [relayed.link() for _ in range(4)]
    late = relayed.connect(GREETING)
    relayed.wait_for_refusal("full", 0)
    late.settimeout(0.2)
    with pytest.raises(TimeoutError):
        late.recv(1)
    links[2][1].close()
    assert receive(relayed.accept(), len(GREETING)) == GREETING


def test_it_waits_for_a_master_that_accepts_nothing(folder: None) -> None:
    made = Relayed(8, 20)
    try:
        made.inside.close()
        Path(str(made.place[1])).unlink()
        client = made.connect(GREETING)
        again = socket.socket(socket.AF_UNIX)
        wait_until(lambda: made.relay._greeted, "the greeting")
        again.bind(str(made.place[1]))
        again.listen()
        again.settimeout(PATIENCE)
        made.inside = again
        client.sendall(b"\0\x01x")
        assert receive(made.accept(), len(GREETING) + 3) == GREETING + b"\0\x01x"
    finally:
        made.close()


def test_it_ends_with_the_master_and_what_that_has_sent_arrives(relayed: Relayed) -> None:
    client, theirs = relayed.link()
    silent = relayed.connect()
    theirs.sendall(b"the last words")
    relayed.control.close()
    assert silent.recv(1) == b""
    theirs.close()
    assert receive_all(client) == b"the last words"
    relayed.thread.join(PATIENCE)
    assert not relayed.thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(relayed.place, PATIENCE)


def test_a_peer_that_reads_nothing_does_not_keep_it_after_the_master(
    relayed: Relayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_relay, "_DRAIN_SECONDS", 0.2)
    _, theirs = relayed.link()
    theirs.settimeout(0.3)
    with contextlib.suppress(TimeoutError):
        while True:
            theirs.sendall(bytes(1 << 16))
    theirs.close()
    relayed.control.close()
    relayed.thread.join(PATIENCE)
    assert not relayed.thread.is_alive()
