"""Many runs in one table, a line a configuration: what people publish."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from ssbench.comparison.figures import COMPARABLE_FIGURES, RunFigures
from ssbench.comparison.texts import NOT_KNOWN_NOTE
from ssbench.document.elements import Column, Document, Note, Table, View
from ssbench.document.units import DASH, format_change_size

#: Operations as they are called in such tables.
_OPERATION_TITLES = {
    "CREATE": "PUT/s",
    "READ": "GET/s",
    "UPDATE": "update/s",
    "DELETE": "DELETE/s",
    "ALL": "all/s",
}

#: What distinguishes configurations: these columns first, then all else that differs, but not random draws.
_FIRST_FACTS = ("sizes", "users", "rate", "policy", "containers", "workers", "storage URL", "ssbench")
_FACTS_OF_EACH_RUN = ("scenario", "seed")


def make_configurations_document(runs: Sequence[RunFigures], _view: View) -> Document:
    """Return the table; runs with the same label and facts are one line: their mean, and its error."""
    names = dict.fromkeys([*_FIRST_FACTS, *(fact for run in runs for fact in run.facts)])
    different = [
        fact
        for fact in names
        if fact not in _FACTS_OF_EACH_RUN and len({run.facts.get(fact, "") for run in runs}) > 1
    ]
    labelled = any(run.label for run in runs)
    groups: dict[tuple[str, ...], list[RunFigures]] = {}
    for run in runs:
        label = (run.label,) if labelled else ()
        facts = (run.facts.get("scenario", ""), *label, *(run.facts.get(fact, "") for fact in different))
        groups.setdefault(facts, []).append(run)
    operations = [name for name in _OPERATION_TITLES if any((name, None) in run.rows for run in runs)]
    others = {
        key[0]: None
        for run in runs
        for key in run.rows
        if key[0] not in _OPERATION_TITLES
        if "." not in key[0]
    }
    operations[-1:] = [*others, *operations[-1:]]
    facts_ = ("scenario", *(["label"] if labelled else []), *different)
    figures = (*(_OPERATION_TITLES.get(name, f"{name.lower()}/s") for name in operations), "MB/s", "p99 ms")
    columns = [
        *(Column(name, is_number=False) for name in facts_),
        *map(Column, ("runs", *figures)),
    ]
    rows = []
    for facts, members in groups.items():
        cells = [_mean_of_figure(members, name, "rate") for name in operations]
        more = (_mean_of_figure(members, "ALL", "mb_per_s"), _mean_of_figure(members, "ALL", "p99"))
        rows.append((*facts, str(len(members)), *cells, *more))
    few = [Note(NOT_KNOWN_NOTE)] if any(DASH in row[len(facts_) :] for row in rows) else []
    return Document("Configurations", (Table(columns, rows), *few), untitled=True)


def _mean_of_figure(runs: Sequence[RunFigures], operation: str, figure: str) -> str:
    samples = [run.rows.get((operation, None), {}).get(figure) for run in runs]
    values = [sample.value for sample in samples if sample is not None]
    if not values:
        return DASH
    mean = fmean(values)
    text = COMPARABLE_FIGURES[figure].unit.text(mean)
    if len(values) == 1 or not mean:
        return text
    return f"{text} +-{format_change_size(stdev(values) / math.sqrt(len(values)) / mean)} %"
