"""What a worker has for the jobs of one group of users: an engine, and an outbox for their results.

Each group has its own users, and begins its jobs in the order in which they came, so that groups do not wait
for each other. They share the process, its event loop and its sockets.

Results are sent in the same turn of the event loop when few jobs are left, because the master is to send
more. Otherwise they are gathered for as long as the master says, or until there are many, so that they need
fewer messages (:class:`ResultOutbox`). Jobs may also return to the master before they have begun
(:class:`JobHandbacks`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import zmq
from msgspec.structs import replace

from ssbench.fleet import wire
from ssbench.fleet.wire import Job, JobBatch, RunParameters
from ssbench.store.contract import BriefResult, JobResult
from ssbench.worker.engine import Engine, MakeEngine
from ssbench.worker.lag_meter import LagMeter

#: More jobs than can wait.
_ANY_NUMBER = sys.maxsize

#: Most results in one message.
_RESULTS_A_MESSAGE = 2000

#: A flag of the sockets as a plain number: the enumeration costs as much as the call.
_NO_WAIT = int(zmq.NOBLOCK)


class ResultOutbox:
    """The way to the master; it takes results from :meth:`begin` to :meth:`forget`, those of one run.

    ``loop`` is that of gevent, ``lag`` measures it. ``after_jobs`` is (a number of jobs, what to call when so
    many have ended). ``held`` says how many jobs of each batch have not ended. All are of one ``group``.
    """

    def __init__(
        self,
        socket: zmq.Socket[bytes],
        worker_id: int,
        instance: int,
        loop: Any,
        lag: LagMeter,
        after_jobs: tuple[int, Callable[[], None]] | None = None,
        group: int = 0,
    ) -> None:
        self.group = group
        self.held: dict[int, int] = {}
        #: When results could be sent for the last time.
        self.sent_at = 0.0
        self._socket = socket
        self._worker_id = worker_id
        self._instance = instance
        self._loop = loop
        self._lag = lag
        self._after_jobs = after_jobs
        #: That of the run, None between two runs.
        self._engine: Engine | None = None
        self._run_id = self._generation = 0
        self._results: list[BriefResult] = []
        self._refused_generation = sys.maxsize
        self._flush_due = False
        #: Results are sent at once when no more jobs wait.
        self._tell_at = _ANY_NUMBER
        #: The last batch that came, and when.
        self._received = (0, 0.0)
        self._gathering_seconds = wire.GATHERING_SECONDS
        self._gathering = loop.timer(wire.GATHERING_SECONDS, wire.GATHERING_SECONDS)

    def send(self, message: wire.FromWorker) -> bool:
        """Send a message; results that are too long for one go in several. False if it cannot be sent now."""
        packed = wire.pack_message(message)
        if len(packed) > wire.MAX_WORKER_MESSAGE_BYTES and isinstance(message, wire.JobResults):
            middle = len(message.results) // 2
            halves = (message.results[:middle], message.results[middle:])
            first, second = (replace(message, results=half) for half in halves)
            return self.send(first) and self.send(replace(second, gaps=[]))
        try:
            self._socket.send(packed, _NO_WAIT)
        except zmq.Again:
            return False
        return True

    def begin(self, engine: Engine, parameters: RunParameters) -> None:
        """Take results of the jobs of an engine from now on, under these parameters."""
        self._engine = engine
        self.update(parameters)

    def update(self, parameters: RunParameters) -> None:
        """Note which parameters hold from now on."""
        self._run_id, self._generation = parameters.run_id, parameters.generation

    def forget(self) -> None:
        """Drop what has not been sent, and all batches."""
        self._engine = None
        self._gathering.stop()
        self.held.clear()
        self._results.clear()
        self._refused_generation = sys.maxsize

    def close(self) -> None:
        """Release what is the loop's."""
        self._gathering.close()

    def expect(self, batch: JobBatch) -> None:
        """Note that the jobs of a batch are to end."""
        self.held[batch.batch_id] = len(batch.jobs)
        self._received = (batch.batch_id, time.monotonic())
        self._tell_at = batch.low
        if batch.gathering != self._gathering_seconds:
            self._gather_for(batch.gathering)

    def _gather_for(self, seconds: float) -> None:
        waits = self._gathering.active
        self._gathering.close()
        self._gathering_seconds = seconds
        self._gathering = self._loop.timer(seconds, seconds)
        if waits:
            self._gathering.again(self.flush)

    def count(self, batch_id: int, ended: int) -> None:
        """Note that this many jobs of a batch are no longer held."""
        left = self.held[batch_id] - ended
        if left:
            self.held[batch_id] = left
        else:
            del self.held[batch_id]

    def ended(self, batch_id: int, results: Sequence[BriefResult], refused: int | None = None) -> None:
        """Take results, as :class:`~ssbench.worker.engine.JobsEnded` says, and send them soon."""
        waits = self._results
        waits += results
        self.count(batch_id, len(results))
        if refused is not None:
            self._refused_generation = min(self._refused_generation, refused)
        if self._flush_due:
            return
        if refused is not None:
            # What waits would be refused too, until the master hears of it.
            self._flush_soon()
            return
        engine = self._engine
        if engine is None or (waiting := engine.waiting) <= self._tell_at:
            # Until more jobs come the master hears again when half of them are left.
            if self._tell_at < _ANY_NUMBER:
                self._tell_at = waiting // 2
            self._flush_soon()
        elif len(waits) >= wire.GATHERED_RESULTS:
            self._flush_soon()
        elif len(waits) == len(results):
            # To start a timer again that has rung would ring at once.
            self._gathering.again(self.flush)

    def _flush_soon(self) -> None:
        self._flush_due = True
        self._loop.run_callback(self.flush)

    def flush(self) -> None:
        """Send the results that are there."""
        self._flush_due = False
        self._gathering.stop()
        engine = self._engine
        if not self._results or engine is None:
            return
        results, self._results = self._lag.mark(self._results), []
        gaps = self._lag.take_gaps()
        if self._after_jobs is not None:
            left, callback = self._after_jobs
            self._after_jobs = (left - len(results), callback) if left > len(results) else None
            if self._after_jobs is None:
                callback()
        generation = min(self._generation, self._refused_generation)
        self._refused_generation = sys.maxsize
        received, since = self._received
        now = time.monotonic()
        for start in range(0, len(results), _RESULTS_A_MESSAGE):
            # If the master has vanished this fails; the run is dropped when the connection ends.
            if self.send(
                wire.JobResults(
                    run_id=self._run_id,
                    worker_id=self._worker_id,
                    instance=self._instance,
                    clock=now,
                    generation=generation,
                    results=cast("list[JobResult]", results[start : start + _RESULTS_A_MESSAGE]),
                    begun=engine.begun,
                    received=received,
                    held=now - since,
                    group=self.group,
                    gaps=[] if start else gaps,
                )
            ):
                self.sent_at = now


# -- Groups and their jobs -------------------------------------------------------------------------


class GroupService:
    """The part of a worker that serves one group. ``engine`` is None between two runs."""

    def __init__(self, outbox: ResultOutbox) -> None:
        self.outbox = outbox
        self.engine: Engine | None = None
        #: What messages begin with that refer to the parameters of this group.
        self.reference = b""

    def close(self) -> None:
        """End the run: drop all jobs and results, close all connections."""
        engine, self.engine = self.engine, None
        self.reference = b""
        self.outbox.forget()
        if engine is not None:
            engine.close()


class GroupServices:
    """The services of a worker, by the number of their group; ``make_outbox`` makes one for a group.

    At most ``slots`` jobs of each group are carried out at once.
    """

    def __init__(
        self, make_outbox: Callable[[int], ResultOutbox], make_engine: MakeEngine, slots: int
    ) -> None:
        self._make_outbox = make_outbox
        self._make_engine = make_engine
        self._slots = slots
        self._all: dict[int, GroupService] = {}
        #: Those of the run, by what refers to their parameters.
        self._by_reference: dict[bytes, GroupService] = {}
        #: The run that is served; 0 between two runs.
        self.run_id = 0

    def __iter__(self) -> Iterator[GroupService]:
        """Iterate over those that serve a group now."""
        return iter(self._by_reference.values())

    @property
    def engines(self) -> list[Engine]:
        """The engines of the run."""
        return [service.engine for service in self if service.engine is not None]

    @property
    def sent_at(self) -> float:
        """When results could be sent for the last time; 0 in no run."""
        return max((service.outbox.sent_at for service in self), default=0.0)

    @property
    def waiting(self) -> int:
        """How many jobs wait to begin."""
        return sum(engine.waiting for engine in self.engines)

    @property
    def unfinished(self) -> int:
        """How many jobs were received and have not ended."""
        return sum(engine.busy + engine.waiting for engine in self.engines)

    def of(self, reference: bytes) -> GroupService | None:
        """Return the service to whose parameters a message refers; None where they are not known."""
        return self._by_reference.get(reference)

    def in_group(self, group: int) -> GroupService | None:
        """Return the service of a group in this run; None where it has none."""
        service = self._all.get(group)
        return service if service is not None and service.engine is not None else None

    def begin(self, header: bytes, parameters: RunParameters) -> GroupService:
        """Serve a group of the run with these parameters, or with later ones, from now on.

        ``header`` is the beginning of a message that has them.
        """
        reference = wire.pack_reference(header, parameters)
        if (known := self.of(reference)) is not None:
            return known
        service = self._all.get(parameters.group)
        if service is None:
            service = self._all[parameters.group] = GroupService(self._make_outbox(parameters.group))
        self.run_id = parameters.run_id
        if service.engine is None:
            service.engine = self._make_engine(parameters, self._slots, service.outbox.ended)
            service.outbox.begin(service.engine, parameters)
        else:
            del self._by_reference[service.reference]
            service.outbox.update(parameters)
            service.engine.update(parameters)
        service.reference = reference
        self._by_reference[reference] = service
        return service

    def flush(self) -> None:
        """Send all results that are there."""
        for service in self:
            service.outbox.flush()

    def held(self) -> list[int]:
        """Return the batches with jobs that have not ended."""
        return [batch for service in self for batch in service.outbox.held]

    def forget_run(self) -> None:
        """Drop all jobs of all groups."""
        services = [*self]
        self._by_reference.clear()
        self.run_id = 0
        for service in services:
            service.close()

    def close(self) -> None:
        """Release what is the event loop's."""
        for service in self._all.values():
            service.outbox.close()


class JobHandbacks:
    """Hands back jobs of a worker's services, through an outbox."""

    def __init__(
        self, services: GroupServices, outbox: ResultOutbox, worker_id: int, instance: int, capacity: int
    ) -> None:
        self._services = services
        self._outbox = outbox
        self._worker_id = worker_id
        self._instance = instance
        self.capacity = capacity  # jobs that the worker can run at once; 0 once it can do none

    def jobs(self, jobs: Sequence[Job], service: GroupService) -> None:
        """Hand back jobs of a group that the worker did not take."""
        self._send(self._services.run_id, [job[0] for job in jobs], service.outbox.group)

    def message(self, header: bytes, batch: bytes) -> None:
        """Hand back all jobs of a message; raises WireError."""
        whose = wire.unpack_reference(header)
        if whose is None:
            parameters = wire.unpack_parameters(header)
            whose = parameters.run_id, parameters.group
        run_id, group = whose
        if jobs := wire.unpack_batch(batch).jobs:
            self._send(run_id, [job[0] for job in jobs], group)

    def not_begun(self, *, asked: bool, group: int | None = None) -> None:
        """Hand back the jobs that have not begun, of a group or of all; ``asked``: by the master."""
        for service in self._services:
            if service.engine is None or group not in {None, service.outbox.group}:
                continue
            not_begun = service.engine.cancel()
            service.outbox.flush()
            for batch_id, _ in not_begun:
                service.outbox.count(batch_id, 1)
            if not_begun:
                job_ids = [job_id for _, job_id in not_begun]
                self._send(self._services.run_id, job_ids, service.outbox.group, asked=asked)

    def _send(self, run_id: int, job_ids: list[int], group: int, *, asked: bool = False) -> None:
        self._outbox.send(
            wire.Handback(run_id, self._worker_id, self._instance, self.capacity, job_ids, asked, group)
        )
