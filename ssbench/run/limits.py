"""Whether the load generator, rather than Swift, limited what was measured, or added to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ssbench.fleet.worker_state import WorkerState

#: A worker that used more of its core than this was itself the limit.
_BUSY_SHARE = 0.9

#: A worker whose event loop was over a millisecond late more often than this added to latencies.
_LATE_SHARE = 0.01


def generator_limits(workers: Iterable[WorkerState]) -> list[str]:
    """Return a sentence for each worker that was the limit, and for each that added to latencies."""
    return [sentence for worker in workers for sentence in _sentences(worker)]


def _sentences(worker: WorkerState) -> Iterator[str]:
    load, name = worker.load, f"worker {worker.worker_id} on {worker.host}"
    if load.cpu_share is not None and load.cpu_share > _BUSY_SHARE:
        yield f"The load generator was the limit: {name} used {load.cpu_share:.0%} of its core"
    late = load.late_share
    if late is not None and late > _LATE_SHARE:
        yield (
            f"The load generator added to latencies: the event loop of {name} was over 1 ms late in"
            f" {late:.1%} of the cases, up to {(load.lag_percentile(99) or 0) * 1000:.0f} ms in 99%"
        )
