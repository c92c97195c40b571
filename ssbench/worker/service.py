"""What a worker has for the jobs of one group of users: an engine, and an outbox for their results.

And how jobs return to the master before they have begun.

Each group has its own users, and begins its jobs in the order in which they came, so that groups do not wait
for each other. They share the process, its event loop and its sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ssbench.fleet import packing, wire
from ssbench.fleet.wire import Job, RunParameters
from ssbench.worker.engine.contract import Engine, MakeEngine
from ssbench.worker.outbox import ResultOutbox


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
        reference = packing.pack_reference(header, parameters)
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
        self._capacity = capacity

    def jobs(self, jobs: Sequence[Job], service: GroupService) -> None:
        """Hand back jobs of a group that the worker did not take."""
        self._send(self._services.run_id, [job[0] for job in jobs], service.outbox.group)

    def message(self, header: bytes, batch: bytes) -> None:
        """Hand back all jobs of a message; raises WireError."""
        whose = packing.unpack_reference(header)
        if whose is None:
            parameters = packing.unpack_parameters(header)
            whose = parameters.run_id, parameters.group
        run_id, group = whose
        if jobs := packing.unpack_batch(batch).jobs:
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
            wire.Handback(run_id, self._worker_id, self._instance, self._capacity, job_ids, asked, group)
        )
