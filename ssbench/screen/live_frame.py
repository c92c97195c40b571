"""The small screen of ``--live``: operations, workers, errors, in plain lines that fit a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ssbench.figures.limits import BUSY_CPU
from ssbench.figures.units import megabytes, milliseconds, rate
from ssbench.screen.figures_line import Figures, compose


class WorkerView(NamedTuple):
    """A worker as it is now: can it get jobs, its share of a core, its lag (seconds), its jobs."""

    worker_id: int
    host: str
    ready: bool
    cpu_share: float | None
    lag_p99: float | None
    jobs: int


@dataclass(frozen=True, slots=True)
class OperationView:
    """What an operation did lately: rates a second, and latencies in seconds, None where too few were seen.

    ``failed`` is of the whole run.
    """

    name: str
    rate: float
    moved: float
    p50: float | None
    p95: float | None
    p99: float | None
    longest: float | None
    failed: int


@dataclass(frozen=True, slots=True)
class View:
    """All that is shown. ``rates`` are the operations a second of each worker id."""

    title: str
    figures: Figures
    operations: Sequence[OperationView]
    workers: Sequence[WorkerView]
    rates: dict[int, float]


def frame(view: View, width: int, height: int) -> list[str]:
    """Return the lines, at most ``height`` of at most ``width`` characters, all of them printable ASCII."""
    lines = [view.title, compose(view.figures, width)]
    lines += ["", *_operations(view.operations)]
    room = height - len(lines) - 2
    if room > 1:
        lines += ["", *_workers(view, room - 1)]
    causes = sorted(view.figures.causes.items(), key=lambda item: -item[1])
    lines += [f"{times:>9,} x {cause}" for cause, times in causes[: max(height - len(lines), 0)]]
    return ["".join(char if " " <= char <= "~" else "?" for char in line)[:width] for line in lines[:height]]


def _operations(operations: Sequence[OperationView]) -> Iterator[str]:
    yield f"{'':<10}{'ops/s':>10}{'MB/s':>10} |{'ms: p50':>9}{'p95':>8}{'p99':>8}{'max':>8}{'failed':>9}"
    for each in operations:
        times = [milliseconds(seconds) for seconds in (each.p50, each.p95, each.p99, each.longest)]
        yield (
            f"{each.name.upper():<10.10}{rate(each.rate):>10}{megabytes(each.moved):>10} |"
            f"{times[0]:>9}{times[1]:>8}{times[2]:>8}{times[3]:>8}{each.failed:>9,}"
        )


def _workers(view: View, room: int) -> Iterator[str]:
    """Yield the workers by their ids; where there is little room, those that get no jobs and the busiest."""
    workers = sorted(view.workers, key=lambda worker: (worker.ready, -(worker.cpu_share or 0.0)))
    if len(workers) > room - 1:
        workers = workers[: max(room - 2, 0)]
    workers.sort()
    yield f"{'worker':>10}{'ops/s':>10}{'jobs':>10} |{'CPU':>9}{'lag p99':>10}  host"
    for worker in workers:
        cpu = "-" if worker.cpu_share is None else f"{100 * worker.cpu_share:.0f} %"
        lag = milliseconds(worker.lag_p99) + (" ms" if worker.lag_p99 is not None else "")
        yield (
            f"{worker.worker_id:>10}{rate(view.rates.get(worker.worker_id, 0.0)):>10}{worker.jobs:>10,} |"
            f"{cpu:>9}{lag:>10}  {worker.host}{_remark(worker)}"
        )
    if len(workers) < len(view.workers):
        yield f"{'':>10} and {len(view.workers) - len(workers):,} less busy workers"


def _remark(worker: WorkerView) -> str:
    if not worker.ready:
        return "  ! gets no jobs"
    if (worker.cpu_share or 0.0) > BUSY_CPU:
        return "  ! its core is the limit: start more workers"
    return ""
