"""Jobs that a worker returns to the master before it has begun them."""

from __future__ import annotations

from collections.abc import Sequence

from ssbench.fleet import packing, wire
from ssbench.fleet.wire import Job
from ssbench.worker.outbox import Outbox
from ssbench.worker.service import Service, Services


class Handbacks:
    """Hands back jobs of a worker's services, through an outbox."""

    def __init__(
        self, services: Services, outbox: Outbox, worker_id: int, instance: int, capacity: int
    ) -> None:
        self._services = services
        self._outbox = outbox
        self._worker_id = worker_id
        self._instance = instance
        self._capacity = capacity

    def jobs(self, jobs: Sequence[Job], service: Service) -> None:
        """Hand back jobs of a group that the worker did not take."""
        self._send(self._services.run_id, [job[0] for job in jobs], service.outbox.group)

    def message(self, header: bytes, batch: bytes) -> None:
        """Hand back all jobs of a message; raises WireError."""
        whose = packing.referred(header)
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
