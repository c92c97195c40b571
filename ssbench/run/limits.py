"""Whether the load generator, rather than Swift, was the limit of what was measured."""

from __future__ import annotations

from collections.abc import Iterable

from ssbench.fleet.worker_state import WorkerState

#: A worker that used more of its core than this, or whose event loop was late more often than this by
#: over a millisecond, was itself the limit.
_BUSY_SHARE = 0.9
_LATE_SHARE = 0.01


def generator_limits(workers: Iterable[WorkerState]) -> list[str]:
    """Name each worker that was the limit, and why, a sentence for each reason."""
    return [
        f"The load generator was the limit: worker {worker.worker_id} on {worker.host}: {reason}"
        for worker in workers
        for reason in _reasons(worker)
    ]


def _reasons(worker: WorkerState) -> list[str]:
    load = worker.load
    reasons = []
    if load.cpu_share is not None and load.cpu_share > _BUSY_SHARE:
        reasons.append(f"used {load.cpu_share:.0%} of its core")
    late = load.late_share
    if late is not None and late > _LATE_SHARE:
        reasons.append(
            f"its event loop was over 1 ms late in {late:.1%} of the cases"
            f" (99th percentile {(load.lag_percentile(99) or 0) * 1000:.0f} ms)"
        )
    return reasons
