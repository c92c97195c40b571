"""What the steps of operations of several requests took, beside the whole."""

from __future__ import annotations

from collections.abc import Iterator

from ssbench.document import Column, Note, Table, columns_of
from ssbench.figures.units import count, milliseconds
from ssbench.reports.figures import name_of
from ssbench.statistics import RunStatistics, Section
from ssbench.statistics.latencies import Latencies

_RANKS = (50.0, 95.0, 99.0)


def named(section: Section, statistics: RunStatistics) -> dict[str, Latencies]:
    """Return what each step of an operation took, by its name; nothing where it has none."""
    if section.operation is None:
        return {}
    names = statistics.run.scenario.steps_of(section.operation)
    return dict(zip(names, section.steps, strict=False))


def brief(statistics: RunStatistics) -> Iterator[Note]:
    """Yield a note for each operation that has steps: their means, and that of the whole."""
    for section in statistics.sections[1:]:
        if section.operation is not None and (found := named(section, statistics)):
            means = [f"{name} {_mean(each)}" for name, each in found.items()]
            whole = _mean(section.last_byte)
            yield Note(f"{name_of(section)} by step, mean ms: {', '.join(means)}; in all {whole}")


def table(statistics: RunStatistics) -> Table:
    """Return a table with a row for each step, and one for the whole; without rows where there are none."""
    rows = []
    for section in statistics.sections[1:]:
        if section.operation is not None and (found := named(section, statistics)):
            for name, each in {**found, "in all": section.last_byte}.items():
                ranks = [each.percentile(rank) if each.supports(rank) else None for rank in _RANKS]
                ends = (milliseconds(value) for value in (*ranks, each.maximum))
                rows.append([name_of(section), name, count(each.count), _mean(each), *ends])
    heads = columns_of("ops", "mean ms", "p50 ms", "p95 ms", "p99 ms", "max ms", texts=0)
    steps = [Column("operation", is_number=False), Column("step", is_number=False)]
    return Table([*steps, *heads], rows, title="By step", keys=2)


def _mean(latencies: Latencies) -> str:
    return milliseconds(latencies.mean)
