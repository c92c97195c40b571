"""A listening socket that accepts nobody for a while."""

from __future__ import annotations

import socket
import sys

import pytest

from ssbench.fleet import accept_control


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can filter what a socket receives")
def test_who_connects_waits_and_those_inside_stay() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as late:
        listener.settimeout(30)
        place = listener.getsockname()
        with socket.create_connection(place, 30) as inside, listener.accept()[0] as theirs:
            accept_control.refuse(listener.fileno())
            late.settimeout(0.05)
            with pytest.raises(TimeoutError):
                late.connect(place)
            inside.sendall(b"x")
            assert theirs.recv(1) == b"x"
            accept_control.accept(listener.fileno())
            with socket.create_connection(place, 30), listener.accept()[0]:
                pass


def test_what_is_no_listening_socket_is_left_alone() -> None:
    near, far = socket.socketpair()
    with near, far:
        accept_control.refuse(near.fileno())
        near.sendall(b"x")
        assert far.recv(1) == b"x"
