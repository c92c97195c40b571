"""Many runs in one table, a line a configuration: what people publish."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from ssbench.comparison.figures import RunFigures
from ssbench.reports.figures import printable

#: Operations as they are called in such tables.
_TITLES = {"CREATE": "PUT/s", "READ": "GET/s", "UPDATE": "update/s", "DELETE": "DELETE/s", "ALL": "all/s"}

#: What tells configurations apart, in the order of columns.
_FACTS = ("scenario", "sizes", "users", "rate", "policy", "containers", "workers", "storage URL", "ssbench")


@dataclass(frozen=True, slots=True)
class Listing:
    """Titles and rows of cells; each row is a configuration."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def listing(runs: Sequence[RunFigures]) -> Listing:
    """Return the table; runs with the same facts are one line, with their mean and how far they differ."""
    different = [fact for fact in _FACTS if len({run.facts.get(fact, "") for run in runs}) > 1]
    groups: dict[tuple[str, ...], list[RunFigures]] = {}
    for run in runs:
        facts = tuple(run.facts.get(fact, "") for fact in different)
        groups.setdefault(facts or (run.facts.get("scenario", ""),), []).append(run)
    operations = [name for name in _TITLES if any((name, None) in run.rows for run in runs)]
    others = {key[0]: None for run in runs for key in run.rows if key[0] not in _TITLES}
    operations[-1:] = [*others, *operations[-1:]]
    titles = (
        *(different or ["scenario"]),
        "runs",
        *(_TITLES.get(name, f"{name.lower()}/s") for name in operations),
        "MB/s",
        "p99 ms",
    )
    rows = []
    for facts, members in groups.items():
        cells = [_mean(members, name, "rate", 1.0) for name in operations]
        more = (_mean(members, "ALL", "mb_per_s", 1e6), _mean(members, "ALL", "p99", 1e-3))
        rows.append((*facts, str(len(members)), *cells, *more))
    return Listing(titles, tuple(rows))


def _mean(runs: Sequence[RunFigures], operation: str, figure: str, unit: float) -> str:
    samples = [run.rows.get((operation, None), {}).get(figure) for run in runs]
    values = [sample.value / unit for sample in samples if sample is not None]
    if not values:
        return "-"
    mean = fmean(values)
    text = f"{mean:.3g}" if mean < 100 else f"{mean:.0f}"
    if len(values) == 1 or not mean:
        return text
    return f"{text} +-{100 * stdev(values) / math.sqrt(len(values)) / mean:.1f} %"


def as_text(table: Listing) -> str:
    """Return columns as wide as their cells; numbers to the right."""
    rows = [[printable(cell) for cell in row] for row in (table.titles, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    facts = table.titles.index("runs")
    lines = []
    for row in rows:
        cells = (
            f"{cell:<{width}}" if place < facts else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(cells).rstrip() + "\n")
    return "".join(lines)
