"""Many runs in one table, a line a configuration: what people publish."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from ssbench.comparison.figures import FIGURES, RunFigures
from ssbench.comparison.texts import NOT_KNOWN
from ssbench.figures import DASH
from ssbench.printable import printable
from ssbench.reports.columns import cut, paragraph, width

#: Operations as they are called in such tables.
_TITLES = {"CREATE": "PUT/s", "READ": "GET/s", "UPDATE": "update/s", "DELETE": "DELETE/s", "ALL": "all/s"}

#: What tells configurations apart: these columns first, then whatever else differs; not what each run draws.
_FACTS = ("sizes", "users", "rate", "policy", "containers", "workers", "storage URL", "ssbench")
_OF_EACH_RUN = ("scenario", "seed")

#: Facts are cut to this many columns in text.
_MOST_COLUMNS = 32


@dataclass(frozen=True, slots=True)
class Listing:
    """Titles and rows of cells; each row is a configuration."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def listing(runs: Sequence[RunFigures]) -> Listing:
    """Return the table; runs with the same label and facts are one line: their mean, and its error."""
    names = dict.fromkeys([*_FACTS, *(fact for run in runs for fact in run.facts)])
    different = [
        fact
        for fact in names
        if fact not in _OF_EACH_RUN and len({run.facts.get(fact, "") for run in runs}) > 1
    ]
    labelled = any(run.label for run in runs)
    groups: dict[tuple[str, ...], list[RunFigures]] = {}
    for run in runs:
        label = (run.label,) if labelled else ()
        facts = (run.facts.get("scenario", ""), *label, *(run.facts.get(fact, "") for fact in different))
        groups.setdefault(facts, []).append(run)
    operations = [name for name in _TITLES if any((name, None) in run.rows for run in runs)]
    others = {key[0]: None for run in runs for key in run.rows if key[0] not in _TITLES}
    operations[-1:] = [*others, *operations[-1:]]
    titles = (
        "scenario",
        *(["label"] if labelled else []),
        *different,
        "runs",
        *(_TITLES.get(name, f"{name.lower()}/s") for name in operations),
        "MB/s",
        "p99 ms",
    )
    rows = []
    for facts, members in groups.items():
        cells = [_mean(members, name, "rate") for name in operations]
        more = (_mean(members, "ALL", "mb_per_s"), _mean(members, "ALL", "p99"))
        rows.append((*facts, str(len(members)), *cells, *more))
    return Listing(titles, tuple(rows))


def _mean(runs: Sequence[RunFigures], operation: str, figure: str) -> str:
    samples = [run.rows.get((operation, None), {}).get(figure) for run in runs]
    values = [sample.value for sample in samples if sample is not None]
    if not values:
        return DASH
    mean = fmean(values)
    text = FIGURES[figure].unit.text(mean)
    if len(values) == 1 or not mean:
        return text
    return f"{text} +-{100 * stdev(values) / math.sqrt(len(values)) / mean:.1f} %"


def as_text(table: Listing) -> str:
    """Return columns as wide as their cells; numbers to the right."""
    rows = [[cut(printable(cell), _MOST_COLUMNS) for cell in row] for row in (table.titles, *table.rows)]
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    facts = table.titles.index("runs")
    lines = []
    for row in rows:
        cells = (
            cell + " " * (room - width(cell)) if place < facts else " " * (room - width(cell)) + cell
            for place, (cell, room) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(cells).rstrip() + "\n")
    if any(DASH in row[facts:] for row in rows):
        lines += [f"{line}\n" for line in paragraph(NOT_KNOWN)]
    return "".join(lines)
