"""The section of the text report about each stage by itself."""

from __future__ import annotations

from collections.abc import Iterator

from ssbench.reports.key_figures import latency_table
from ssbench.statistics import RunStatistics, StageStatistics

_INDENT = " " * 7
_MEGABYTE = 1e6

#: Causes of failures that are named for a stage.
_MOST_CAUSES = 3


def section(statistics: RunStatistics) -> Iterator[str]:
    """Yield the lines of the section, at most 100 columns wide; none of a run without stages."""
    if not statistics.stages:
        return
    lines = [
        f"{'Stage':<22}{'s':>8}{'ops':>9}{'ops/s':>10}{'MB/s':>9}{'failed':>8}{'in %':>7}{'late':>8}"
        f"{'not begun':>10}"
    ]
    lines += [_rates(stage) for stage in statistics.stages]
    for stage in statistics.stages:
        lines += _details(stage)
    yield from ("", "Stages", *((_INDENT + line).rstrip() for line in lines))


def _rates(stage: StageStatistics) -> str:
    numbers, course = stage.numbers, stage.numbers.course
    if course is None:
        return f"{stage.name:<22.22}{'no result':>26}"
    within = numbers.total.within
    per_second = course.window.per_second
    ended = within.count + within.failed
    late = not_begun = "-"
    if stage.load.rate is not None:
        late = str(numbers.total.due.late)
        not_begun = "-" if numbers.not_begun is None else str(numbers.not_begun)
    return (
        f"{stage.name:<22.22}{course.window.seconds:>8.2f}{within.count:>9}{per_second(within.count):>10.2f}"
        f"{per_second(within.moved / _MEGABYTE):>9.3f}{within.failed:>8}"
        f"{100 * within.failed / ended if ended else 0:>7.2f}{late:>8}{not_begun:>10}"
    )


def _details(stage: StageStatistics) -> Iterator[str]:
    """Latencies of each operation, and why some failed."""
    numbers = stage.numbers
    table = [*latency_table(numbers)]
    causes = list(numbers.errors.items())
    if not table and not causes:
        return
    yield from ("", f"Stage {stage.name}")
    yield from table[1:]  # an empty line is its first
    if causes:
        named = [f"{name} x {cause.count}" for name, cause in causes[:_MOST_CAUSES]]
        if len(causes) > _MOST_CAUSES:
            named.append(f"{len(causes) - _MOST_CAUSES} more causes")
        yield f"Failures: {', '.join(named)}"
