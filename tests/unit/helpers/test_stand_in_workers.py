"""The stand-ins of large fleets, whatever a busy machine makes of the order of events."""

from __future__ import annotations

import socket
import time
from types import SimpleNamespace
from typing import Self

import pytest
import stand_in_workers
import zmq
from stand_in_workers import StandInWorkers

from ssbench.fleet import wire

PATIENCE = 60.0


class Eager:
    """An epoll that reports all descriptors each time: an event may come after its socket was closed."""

    def __init__(self) -> None:
        self.descriptors: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def register(self, descriptor: int, _events: int) -> None:
        self.descriptors.add(descriptor)

    def unregister(self, descriptor: int) -> None:
        self.descriptors.discard(descriptor)

    def poll(self, _timeout: float, _most: int) -> list[tuple[int, int]]:
        time.sleep(0.001)
        return [(descriptor, 1) for descriptor in self.descriptors]


def test_one_that_is_told_to_exit_before_its_connection_was_seen_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stand_in_workers, "select", SimpleNamespace(epoll=Eager, EPOLLIN=1, EPOLLET=2))
    # Nothing listens on the port for results, so that none of them is connected there.
    with socket.socket() as bound, zmq.Context() as context, context.socket(zmq.ROUTER) as work:
        bound.bind(("127.0.0.1", 0))
        work.router_mandatory, work.linger = 1, 0
        work_port = work.bind_to_random_port("tcp://127.0.0.1")
        with StandInWorkers(2, work_port, bound.getsockname()[1]) as workers:
            for number in (1, 2):
                deadline = time.monotonic() + PATIENCE
                while number not in workers.exited and workers.failure is None:
                    assert time.monotonic() < deadline
                    try:
                        address = wire.work_address((number << 32) + 1)
                        work.send_multipart([address, wire.pack_notice(wire.Exit())])
                    except zmq.ZMQError:
                        pass  # it is not connected yet, or no longer
                    work.poll(20)
            assert workers.failure is None
        assert workers.exited == {1, 2}
