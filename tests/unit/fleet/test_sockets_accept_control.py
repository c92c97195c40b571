"""A listening socket that accepts nobody for a while."""

from __future__ import annotations

import select
import socket
import struct
import sys

import pytest

from ssbench.fleet import sockets


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can filter what a socket receives")
def test_who_connects_waits_and_those_inside_stay() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as late:
        listener.settimeout(30)
        place = listener.getsockname()
        with socket.create_connection(place, 30) as inside, listener.accept()[0] as theirs:
            sockets.stop_accepting(listener.fileno())
            late.settimeout(0.05)
            with pytest.raises(TimeoutError):
                late.connect(place)
            inside.sendall(b"x")
            assert theirs.recv(1) == b"x"
            sockets.start_accepting(listener.fileno())
            with socket.create_connection(place, 30), listener.accept()[0]:
                pass


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can filter what a socket receives")
@pytest.mark.parametrize("again", [False, True], ids=["at once", "again"])
def test_a_reset_is_not_seen_but_the_data_before_it(again: bool) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if again:
            sockets.stop_accepting(listener.fileno())
        sockets.start_accepting(listener.fileno())
        listener.listen()
        listener.settimeout(30)
        peer = socket.create_connection(listener.getsockname(), 30)
        with listener.accept()[0] as theirs, select.epoll() as events:
            theirs.settimeout(30)
            peer.sendall(b"x")
            assert theirs.recv(1) == b"x"
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()
            # On loopback the reset is there before close returns.
            events.register(theirs, 0)
            assert events.poll(0) == []


def test_what_is_no_listening_socket_is_left_alone() -> None:
    near, far = socket.socketpair()
    with near, far:
        sockets.stop_accepting(near.fileno())
        near.sendall(b"x")
        assert far.recv(1) == b"x"
