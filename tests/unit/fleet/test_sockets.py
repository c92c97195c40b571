"""A master's sockets: where they listen, and how they find that the other end of a connection is gone."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
import zmq
from processes import free_ports
from runs import wait_until
from zmtp_peer import shake_hands

from ssbench.base.errors import UsageError
from ssbench.fleet.addresses import BindAddress
from ssbench.fleet.sockets import MasterSockets


def keepalive_timer(peer: socket.socket) -> float | None:
    """In how many seconds the kernel asks this end of a connection whether it is there, for the other end."""
    # Both, because connections to other ports may come from the same one.
    ports = [peer.getpeername()[1], peer.getsockname()[1]]
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if [int(place.rpartition(":")[2], 16) for place in fields[1:3]] == ports:
            kind, jiffies = fields[5].split(":")
            return int(jiffies, 16) / os.sysconf("SC_CLK_TCK") if kind == "02" else None
    return None


def test_the_kernel_asks_whether_the_other_end_is_there() -> None:
    with MasterSockets(BindAddress("127.0.0.1", 0, 0)) as master:
        for port, kind in zip(master.ports, (b"DEALER", b"PUSH"), strict=True):
            with socket.create_connection(("127.0.0.1", port), 30) as peer:
                shake_hands(peer, kind)
                wait_until(lambda peer=peer: keepalive_timer(peer) is not None, "its timer")
                seconds = keepalive_timer(peer)
                assert seconds is not None
                assert seconds <= 60


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
