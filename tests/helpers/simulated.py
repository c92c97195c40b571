"""A fleet without processes: simulated workers behind simulated sockets, and a clock that waiting moves.

What crosses the sockets are real messages of :mod:`ssbench.fleet.wire`, so that the master's side is
tested as it is, minutes of a run in milliseconds.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import zmq
from heartbeats import make_heartbeat
from msgspec import structs

from ssbench.fleet import wire
from ssbench.fleet.fleet import Fleet
from ssbench.fleet.sockets import MasterSockets
from ssbench.fleet.wire import Job, RunParameters
from ssbench.store.contract import JobResult

#: Makes the result of a job; None: the job never ends.
Answer = Callable[[Job, RunParameters], JobResult | None]


def success(job: Job, _parameters: RunParameters) -> JobResult | None:
    return JobResult(job[0], 0.0, 0.0, 0.0, size=job[5])


def failure(cause: str) -> Answer:
    return lambda job, _: JobResult(job[0], None, 0.0, 0.0, cause=cause, detail="it happened")


def never(_job: Job, _parameters: RunParameters) -> JobResult | None:
    return None


class SimulatedWorker:
    """Runs each job in ``seconds``, as many at once as it has users, until it is ``stopped``; answers pings.

    It takes ``way`` seconds for a message to go to it or come from it.
    """

    def __init__(self, network: Network, instance: int, capacity: int) -> None:
        self.instance = instance
        self.capacity = capacity
        self.answer: Answer = success
        self.seconds = 0.01
        self.way = 0.0
        self.stopped = False
        self.connected = True
        #: What it was sent: the jobs of each batch, and notices.
        self.batches: list[wire.JobBatch] = []
        self.notices: list[wire.Notice] = []
        self.parameters = RunParameters(run_id=0)
        #: Parameters that it has, by what refers to them.
        self.known: dict[bytes, RunParameters] = {}
        self._network = network
        self._held: dict[int, int] = {}
        self._ping = (0, 0.0)
        self._waiting: deque[tuple[int, Job, RunParameters]] = deque()
        #: By how many seconds each job that was due at some moment came before that.
        self.early: list[float] = []
        self.users = self.busy = self.most_busy = self.begun = 0
        #: Times in which it stalled, of which its results tell.
        self.gaps: list[tuple[float, float]] = []
        self._received = (0, 0.0)

    def heartbeat(self) -> None:
        if self.stopped:
            return
        self.send(
            make_heartbeat(
                self.instance,
                run_id=self.parameters.run_id,
                clock=self._network.now,
                capacity=self.capacity,
                held=list(self._held),
                master=self._ping[0],
                ping=self._ping[1],
            )
        )

    def send(self, message: wire.FromWorker) -> None:
        """Send something; it arrives at once, or after its way."""
        self._network.arrives(self.way, wire.pack_message(message))

    def receive(self, message: bytes) -> None:
        if self.way:
            self._network.at(self.way, lambda: self._take(message))
        else:
            self._take(message)

    def _take(self, message: bytes) -> None:
        if self.stopped:
            return
        notice = wire.unpack_notice(message)
        if isinstance(notice, wire.Ping):
            self._ping = (notice.master, notice.sent)
            self.heartbeat()
        elif notice is not None:
            if isinstance(notice, wire.Share):
                self.users = notice.users
            if isinstance(notice, wire.Recall):
                self._hand_back()
            self.notices.append(notice)
        else:
            beginning, packed = wire.split_work(message)
            parameters = self.parameters_of(beginning)
            if parameters is None:
                self._hand_back_unknown(beginning, wire.unpack_batch(packed))
                return
            if parameters.run_id != self.parameters.run_id:
                self._held.clear()
                self._waiting.clear()
                self.busy = 0
            self.parameters = parameters
            self._begin(wire.unpack_batch(packed), parameters)

    def parameters_of(self, beginning: bytes) -> RunParameters | None:
        """Return the parameters of a message; None where it refers to some that it does not have."""
        if wire.unpack_reference(beginning) is not None:
            return self.known.get(beginning)
        parameters = wire.unpack_parameters(beginning)
        self.known[wire.pack_reference(beginning, parameters)] = parameters
        return parameters

    def _hand_back_unknown(self, beginning: bytes, batch: wire.JobBatch) -> None:
        run_id, group = wire.unpack_reference(beginning) or (0, 0)
        job_ids = [job[0] for job in batch.jobs]
        self.send(wire.Handback(run_id, self.instance, self.instance, self.capacity, job_ids, False, group))

    def _begin(self, batch: wire.JobBatch, parameters: RunParameters) -> None:
        self.batches.append(batch)
        self._held[batch.batch_id] = len(batch.jobs)
        self._received = (batch.batch_id, self._network.now)
        self.users = batch.users
        now = self._network.now
        for job, due in zip(batch.jobs, batch.dues or [None] * len(batch.jobs), strict=True):
            work = batch.batch_id, job, parameters
            if due is None:
                self._waiting.append(work)
            else:
                self.early.append(batch.start + due - now)
                self._network.at(max(0.0, self.early[-1]), partial(self._begin_due, work))
        self._begin_more()

    def _begin_due(self, work: tuple[int, Job, RunParameters]) -> None:
        self._waiting.append(work)
        self._begin_more()

    def _begin_more(self) -> None:
        while self._waiting and self.busy < min(self.users, self.capacity):
            self.busy += 1
            self.most_busy = max(self.busy, self.most_busy)
            work = self._waiting.popleft()
            self.begun = work[1][0]
            self._network.at(self.seconds, partial(self._end, *work))

    def _hand_back(self) -> None:
        groups = {parameters.group for _, _, parameters in self._waiting} or {0}
        waiting = list(self._waiting)
        for batch, _, _ in waiting:
            self._count(batch)
        self._waiting.clear()
        for group in groups:
            job_ids = [job[0] for _, job, parameters in waiting if parameters.group == group]
            run_id = self.parameters.run_id
            self.send(
                wire.Handback(run_id, self.instance, self.instance, self.capacity, job_ids, True, group)
            )

    def _count(self, batch: int) -> None:
        self._held[batch] -= 1
        if not self._held[batch]:
            del self._held[batch]

    def _end(self, batch: int, job: Job, parameters: RunParameters) -> None:
        result = None if self.stopped else self.answer(job, parameters)
        if result is None or batch not in self._held:
            return
        self._count(batch)
        self.busy -= 1
        self._begin_more()
        now = self._network.now
        result = structs.replace(result, completed=now)
        self.send(
            wire.JobResults(
                parameters.run_id,
                self.instance,
                self.instance,
                now,
                parameters.generation,
                [result],
                self.begun,
                self._received[0],
                now - self._received[1],
                parameters.group,
                self.gaps,
            )
        )

    def jobs(self) -> int:
        """How many jobs it was sent."""
        return sum(len(batch.jobs) for batch in self.batches)


class Network:
    """Both sockets of a master, and time: it passes while the master waits for a message."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.workers: dict[bytes, SimulatedWorker] = {}
        self.work = self
        self.results = self
        #: What is said of descriptors.
        self.port_news: list[str] = []
        self.refused_connections = 0
        self.strange_frames = 0
        #: Whether keys were revoked.
        self.revokes = False
        #: How many keys were refused.
        self.refused = 0
        self._inbox: list[bytes] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._timeout = 0.0
        self._address = b""

    def fleet(self, parameters: RunParameters | None = None) -> Fleet:
        """A real fleet at the beginning of a run, of no worker yet."""
        fleet = Fleet(cast(MasterSockets, self), lambda: self.now)
        fleet.begin(parameters or RunParameters(run_id=1), [1000])
        return fleet

    def worker(self, instance: int, capacity: int = 10, way: float = 0.0) -> SimulatedWorker:
        """Start a worker."""
        worker = SimulatedWorker(self, instance, capacity)
        worker.way = way
        self.workers[wire.work_address(instance)] = worker
        worker.heartbeat()
        return worker

    def at(self, seconds: float, call: Callable[[], None]) -> None:
        """Call something in so many seconds."""
        self._count += 1
        heapq.heappush(self._events, (self.now + seconds, self._count, call))

    def arrives(self, seconds: float, frame: bytes) -> None:
        """Let a message arrive in so many seconds."""
        self.at(seconds, lambda: self._inbox.append(frame))

    def _pass(self, until: float) -> None:
        while self._events and self._events[0][0] <= until and not self._inbox:
            when, _, call = heapq.heappop(self._events)
            self.now = max(self.now, when)
            call()
        if not self._inbox:
            self.now = max(self.now, until)

    def master_is_busy(self, seconds: float) -> None:
        """Let time pass in which the master takes in no message; they arrive all the same."""
        until = self.now + seconds
        while self._events and self._events[0][0] <= until:
            when, _, call = heapq.heappop(self._events)
            self.now = max(self.now, when)
            call()
        self.now = until

    # What the fleet uses of the sockets.

    def drop_strangers(self) -> int:
        dropped, self.strange_frames = self.strange_frames, 0
        return dropped

    def count_refused_connections(self) -> list[str]:
        return self.take_port_news()

    def take_port_news(self) -> list[str]:
        news, self.port_news = self.port_news, []
        return news

    def setsockopt(self, option: int, value: int) -> None:
        assert option == zmq.RCVTIMEO
        self._timeout = value / 1000

    def getsockopt(self, option: int) -> int:
        assert option == zmq.EVENTS
        self._pass(self.now)
        return zmq.POLLIN if self._inbox else 0

    def recv(self, flags: int = 0) -> bytes:
        self._pass(self.now if flags & zmq.NOBLOCK else self.now + self._timeout)
        if not self._inbox:
            raise zmq.Again
        return self._inbox.pop(0)

    def send(self, frame: bytes, flags: int = 0) -> Any:
        if flags & zmq.SNDMORE:
            self._address = frame
            worker = self.workers.get(frame)
            if worker is None or not worker.connected:
                raise zmq.ZMQError(zmq.EHOSTUNREACH)
        else:
            self.workers[self._address].receive(frame)
