"""Many workers in one thread: they speak the protocol, and each job succeeds at once without a request.

For fleets larger than there is room for real workers. Imported by bench/ too.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import cast

import zmq

from ssbench.base.version import __version__
from ssbench.fleet import wire
from ssbench.fleet.descriptors import raise_descriptor_limit
from ssbench.fleet.keys import FleetKey
from ssbench.fleet.sockets import has_message, set_worker_options
from ssbench.store.contract import BriefResult, JobResult

#: Multiples of it lie evenly between whole numbers, in no order.
_GOLDEN = 0.6180339887498949

#: Seconds after which it is looked again who has heard nothing.
_LOOK_SECONDS = 0.25


class StandInWorkers:
    """``count`` workers with ids from ``first`` on, until they are told to exit; a context manager.

    ``deaf`` are the ids of those that do not heed an order to exit, ``key`` is that of a sealed fleet. Each
    runs ``capacity`` jobs at once, and says that a job took up to ``longest`` seconds, each another time.
    """

    def __init__(
        self,
        count: int,
        work_port: int,
        results_port: int,
        *,
        first: int = 1,
        deaf: Sequence[int] = (),
        key: FleetKey | None = None,
        capacity: int = 64,
        longest: float = 0.0,
    ) -> None:
        self.exited: set[int] = set()
        self.failure: BaseException | None = None
        self._deaf = frozenset(deaf)
        self._ids = range(first, first + count)
        self._ports = (work_port, results_port)
        self._key = key
        self._capacity = capacity
        self._longest = longest
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stand-in workers")

    def __enter__(self) -> StandInWorkers:
        raise_descriptor_limit()  # each worker has two connections, and most users' processes 1,024 files
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        if self.failure is not None and value is None:
            raise self.failure

    def _run(self) -> None:
        context = zmq.Context()
        context.set(zmq.MAX_SOCKETS, 4 * len(self._ids) + 64)
        try:
            workers = {
                each.work: each
                for each in (
                    _One(context, number, self._ports, self._key, self._capacity, self._longest)
                    for number in self._ids
                )
            }
            # A poller of zmq looks at each of a thousand sockets for every message.
            with select.epoll() as poller:
                descriptors = {int(socket.getsockopt(zmq.FD)): socket for socket in workers}
                # As a worker does, each sends its first heartbeat when it is connected.
                connecting = {int(each.results.getsockopt(zmq.FD)): each for each in workers.values()}
                for descriptor in (*descriptors, *connecting):
                    poller.register(descriptor, select.EPOLLIN | select.EPOLLET)
                ready = [*descriptors.values()]
                looked = 0.0
                while workers and not self._ending.is_set():
                    for socket in ready:
                        worker = workers[socket]
                        while has_message(socket):
                            if worker.receive(deaf=worker.number in self._deaf):
                                self.exited.add(worker.number)
                                del workers[socket]
                                # Events of a socket that is closed may still come.
                                connecting = {
                                    each: other for each, other in connecting.items() if other is not worker
                                }
                                break
                    now = time.monotonic()
                    if now - looked > _LOOK_SECONDS:
                        looked = now
                        for worker in workers.values():
                            if now - worker.heard_at > wire.UNASKED_HEARTBEAT_SECONDS:
                                worker.beat()
                    signalled = [descriptor for descriptor, _ in poller.poll(0.1, 2 * len(descriptors))]
                    for descriptor in signalled:
                        if (connected := connecting.get(descriptor)) and connected.beat():
                            del connecting[descriptor]
                            poller.unregister(descriptor)
                    found = [descriptors[each] for each in signalled if each in descriptors]
                    ready = [socket for socket in found if socket in workers]
        except BaseException as error:  # noqa: BLE001 - raised again where it was started
            self.failure = error
        finally:
            context.destroy(linger=500)


class _One:
    """One of them."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        number: int,
        ports: tuple[int, int],
        key: FleetKey | None,
        capacity: int,
        longest: float,
    ) -> None:
        self.number = number
        self._capacity = capacity
        self._longest = longest
        self._instance = (number << 32) + 1
        self._ping = wire.Ping(0, 0.0)
        self._run_id = 0
        #: When a ping or jobs came, or it sent a heartbeat.
        self.heard_at = time.monotonic()
        self._parameters = wire.RunParameters(run_id=0)
        self.work = context.socket(zmq.DEALER)
        self.results = context.socket(zmq.PUSH)
        set_worker_options(self.work, self.results, self._instance, key)
        for socket, port in zip((self.work, self.results), ports, strict=True):
            socket.connect(f"tcp://127.0.0.1:{port}")

    def beat(self) -> bool:
        """Send a heartbeat; return whether it could be sent."""
        self.heard_at = time.monotonic()
        heartbeat = wire.Heartbeat(
            protocol=wire.PROTOCOL,
            worker_id=self.number,
            instance=self._instance,
            run_id=self._run_id,
            clock=time.monotonic(),
            capacity=self._capacity,
            held=[],
            cpu=0.0,
            lag=[],
            host="stand-in",
            pid=1,
            version=__version__,
            master=self._ping.master,
            ping=self._ping.sent,
            wall=time.time(),
        )
        return self._send(heartbeat)

    def _send(self, message: wire.FromWorker) -> bool:
        with suppress(zmq.Again):  # not connected
            self.results.send(wire.pack_message(message), zmq.NOBLOCK)
            return True
        return False

    def receive(self, *, deaf: bool) -> bool:
        """Take in one message; return whether it was an order to exit that is heeded."""
        message = self.work.recv(zmq.NOBLOCK)
        notice = wire.unpack_notice(message)
        if isinstance(notice, wire.Ping):
            self._ping = notice
            self.beat()
        elif isinstance(notice, wire.Exit) and not deaf:
            self._send(wire.Goodbye(self.number, self._instance, "the master told this worker to"))
            self.work.close()
            self.results.close(linger=5000)
            return True
        elif notice is None:
            self._do(message)
        return False

    def _do(self, message: bytes) -> None:
        beginning, packed = wire.split_work(message)
        if wire.unpack_reference(beginning) is None:
            self._parameters = wire.unpack_parameters(beginning)
        parameters, batch = self._parameters, wire.unpack_batch(packed)
        self._run_id = parameters.run_id
        self.heard_at = now = time.monotonic()
        took = [self._longest * (job[0] * _GOLDEN % 1) for job in batch.jobs]
        briefs = [
            BriefResult(job[0], each / 2, each, now) for job, each in zip(batch.jobs, took, strict=True)
        ]
        ended = cast("list[JobResult]", briefs)
        last = batch.jobs[-1][0] if batch.jobs else 0
        self._send(
            wire.JobResults(
                parameters.run_id,
                self.number,
                self._instance,
                now,
                parameters.generation,
                ended,
                last,
                batch.batch_id,
            )
        )
