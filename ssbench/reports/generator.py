"""What the load generator did itself, for the section "Figures" of the text report."""

from __future__ import annotations

from collections.abc import Iterator

from ssbench.figures.units import milliseconds
from ssbench.results import WorkerFacts
from ssbench.statistics import Generator

#: Workers with a line of their own: those whose loops are latest.
_MOST_WORKERS = 8


def lines(own: Generator) -> Iterator[str]:
    """Yield CPU and lag of the master and of the workers; nothing of runs that do not tell."""
    workers = [worker for worker in own.workers if worker.cpu_share is not None or worker.lag_p99 is not None]
    if own.master is None and not workers:
        return
    yield ""
    yield f"{'Load generator':<34}{'CPU %':>9}  {'lag in ms: p50':>14}{'p99':>9}{'max':>9}"
    if own.master is not None:
        yield _line("master", own.master.cpu_share, None, None, own.master.lag_max)
    for worker in sorted(workers, key=lambda each: -(each.lag_p99 or 0.0))[:_MOST_WORKERS]:
        yield _line(_name(worker), worker.cpu_share, worker.lag_p50, worker.lag_p99, worker.lag_max)
    if len(workers) > _MOST_WORKERS:
        yield f"and {len(workers) - _MOST_WORKERS} workers whose lag is no more"
    if own.master is not None and own.master.unread:
        yield f"Standard error was not read for {own.master.unread:.1f} s; nothing waited for it"


def _line(name: str, cpu: float | None, p50: float | None, p99: float | None, longest: float | None) -> str:
    share = "-" if cpu is None else f"{100 * cpu:.1f}"
    return f"{name:<34.34}{share:>9}  {milliseconds(p50):>14}{milliseconds(p99):>9}{milliseconds(longest):>9}"


def _name(worker: WorkerFacts) -> str:
    return f"worker {worker.worker_id} on {worker.host}" if worker.host else f"worker {worker.worker_id}"
