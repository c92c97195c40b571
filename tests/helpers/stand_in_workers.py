"""Many workers in one thread: they speak the protocol, and each job succeeds at once without a request.

For fleets larger than there is room for real workers. Imported by bench/ too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType

import zmq

from ssbench import __version__
from ssbench.fleet import packing, wire


class StandInWorkers:
    """``count`` workers with ids from ``first`` on, until they are told to exit; a context manager.

    ``deaf`` are the ids of those that do not heed an order to exit.
    """

    def __init__(
        self, count: int, work_port: int, results_port: int, *, first: int = 1, deaf: Sequence[int] = ()
    ) -> None:
        self.exited: set[int] = set()
        self.failure: BaseException | None = None
        self._deaf = frozenset(deaf)
        self._ids = range(first, first + count)
        self._ports = (work_port, results_port)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stand-in workers")

    def __enter__(self) -> StandInWorkers:
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
                each.work: each for each in (_One(context, number, self._ports) for number in self._ids)
            }
            poller = zmq.Poller()
            for socket in workers:
                poller.register(socket, zmq.POLLIN)
            beaten = time.monotonic()
            while workers and not self._ending.is_set():
                for socket, _ in poller.poll(100):
                    worker = workers[socket]
                    if worker.receive(deaf=worker.number in self._deaf):
                        self.exited.add(worker.number)
                        poller.unregister(socket)
                        del workers[socket]
                if time.monotonic() - beaten > wire.UNASKED_HEARTBEAT_SECONDS:
                    beaten = time.monotonic()
                    for worker in workers.values():
                        worker.beat()
        except BaseException as error:  # noqa: BLE001 - raised again where it was started
            self.failure = error
        finally:
            context.destroy(linger=500)


class _One:
    """One of them."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], number: int, ports: tuple[int, int]) -> None:
        self.number = number
        self._instance = (number << 32) + 1
        self._ping = wire.Ping(0, 0.0)
        self._run_id = 0
        self._batch = 0
        self.work = context.socket(zmq.DEALER)
        self.work.setsockopt(zmq.ROUTING_ID, wire.work_address(self._instance))
        self._results = context.socket(zmq.PUSH)
        self._results.setsockopt(zmq.IMMEDIATE, 1)
        for socket, port in zip((self.work, self._results), ports, strict=True):
            socket.setsockopt(zmq.SNDHWM, 0)
            socket.connect(f"tcp://127.0.0.1:{port}")

    def beat(self) -> None:
        heartbeat = wire.Heartbeat(
            protocol=wire.PROTOCOL,
            worker_id=self.number,
            instance=self._instance,
            run_id=self._run_id,
            clock=time.monotonic(),
            capacity=64,
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
        self._send(heartbeat)

    def _send(self, message: wire.FromWorker) -> None:
        with suppress(zmq.Again):  # not connected
            self._results.send(packing.pack(message), zmq.NOBLOCK)

    def receive(self, *, deaf: bool) -> bool:
        """Take in one message; return whether it was an order to exit that is heeded."""
        message = self.work.recv(zmq.NOBLOCK)
        notice = packing.unpack_notice(message)
        if isinstance(notice, wire.Ping):
            self._ping = notice
            self.beat()
        elif isinstance(notice, wire.Exit) and not deaf:
            self._send(wire.Goodbye(self.number, self._instance, "the master told this worker to"))
            self.work.close()
            self._results.close(linger=5000)
            return True
        elif notice is None:
            self._do(message)
        return False

    def _do(self, message: bytes) -> None:
        beginning, packed = packing.split_work(message)
        parameters, batch = packing.unpack_parameters(beginning), packing.unpack_batch(packed)
        self._run_id, now = parameters.run_id, time.monotonic()
        ended = [wire.Result(job[0], 0.0, 0.0, now) for job in batch.jobs]
        last = batch.jobs[-1][0] if batch.jobs else 0
        self._send(
            wire.Results(
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
