"""A master's sockets: where they listen, and when a connection whose other end is gone is closed."""

from __future__ import annotations

import socket
import sys
import threading
from pathlib import Path

import pytest
import zmq
from processes import PATIENCE, free_ports
from zmtp_peer import reset, shake_hands

from ssbench.base.errors import UsageError
from ssbench.fleet import sockets as module
from ssbench.fleet.addresses import BindAddress
from ssbench.fleet.sockets import MasterSockets


def connections(port: int) -> int:
    """How many connections this process has accepted on a port of 127.0.0.1."""
    inodes = {
        line.split()[9]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if int(line.split()[1].rpartition(":")[2], 16) == port and line.split()[3] != "0A"
    }
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        try:
            found += each.readlink().name[8:-1] in inodes
        except OSError:
            continue
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and only Linux can filter resets")
def test_a_connection_whose_other_end_is_gone_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PEER_GONE_SECONDS", 2)
    with MasterSockets(BindAddress("127.0.0.1", 0, 0)) as master:
        for port, kind in zip(master.ports, (b"DEALER", b"PUSH"), strict=True):
            peer = socket.create_connection(("127.0.0.1", port), 30)
            shake_hands(peer, kind)
            assert connections(port) == 1
            reset(peer)
        pause = threading.Event()
        for _ in range(int(PATIENCE / 0.1)):
            if not any(connections(port) for port in master.ports):
                break
            pause.wait(0.1)
        assert not any(connections(port) for port in master.ports)


@pytest.mark.parametrize("ip", ["127.0.0.1", "0.0.0.0", "lo", "*"])
def test_it_listens_on_addresses_and_by_the_names_that_libzmq_knows(ip: str) -> None:
    with (
        MasterSockets(BindAddress(ip, 0, 0)) as master,
        zmq.Context() as context,
        context.socket(zmq.PUSH) as peer,
    ):
        peer.linger, peer.ipv6, peer.immediate, peer.sndtimeo = 0, True, True, 10_000
        for host in ("127.0.0.1", "[::1]"):  # libzmq prefers one of an interface's
            peer.connect(f"tcp://{host}:{master.ports[1]}")
        peer.send(b"x")
        master.results.rcvtimeo = 10_000
        assert master.results.recv() == b"x"


@pytest.mark.parametrize("ip", ["127.0.0.1", "lo"])
def test_a_port_in_use_is_an_error_with_advice(ip: str) -> None:
    work, results = free_ports()
    with (
        MasterSockets(BindAddress(ip, work, results)),
        pytest.raises(UsageError, match=r"cannot bind tcp://.*Address already in use .*other ports"),
    ):
        MasterSockets(BindAddress(ip, work, results))
