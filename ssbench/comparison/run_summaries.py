"""Runs that are not compared: what is the same and what differs of equal ones, a line for each configuration.

:func:`make_repeated_document` says of the runs of one configuration what their mean is, how far they differ,
and which of them does not fit. :func:`make_configurations_document` has many configurations in one table, a
line for each: what people publish.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean, median, stdev
from typing import Any, Literal

from ssbench.base import record
from ssbench.base.record import Moment
from ssbench.comparison.change import NOT_KNOWN_NOTE, is_too_wide
from ssbench.comparison.run_comparison import join_alike_warnings
from ssbench.comparison.run_figures import (
    ALL_KEY,
    FigureKey,
    FigureSample,
    RunFigures,
    describe_noop,
    runs_with_figure,
)
from ssbench.document.elements import Column, Document, Note, Table, View, Warnings, drop_columns
from ssbench.document.figures import COMPARED_FIGURES, Figure, count_needed_results
from ssbench.document.units import DASH, format_change, format_change_size
from ssbench.statistics.confidence import mean_half_width

#: A run is named where it is further from the median than this many typical distances (1.4826 times their
#: median), and than this share.
_MAX_TYPICAL_DISTANCES = 3.5
_TYPICAL_FACTOR = 1.4826
_MIN_DISTANCE_SHARE = 0.05

#: Fewer runs have no median that one of them could be far from.
_MIN_RUNS = 4

#: Half the width of an interval is about this many standard errors.
_STANDARD_ERRORS = 1.96

_COLUMNS = (
    Column("operation", is_number=False),
    Column("size class", is_number=False, short=""),
    Column("figure", is_number=False),
    Column("mean"),
    Column("95 % interval"),
    Column("least"),
    Column("most"),
    Column("std dev"),
)


def find_outlier_runs(runs: Sequence[RunFigures]) -> list[str]:
    """Name the runs whose rate or median latency does not fit to the others."""
    found = []
    for figure in (COMPARED_FIGURES["rate"], COMPARED_FIGURES["p50"]):
        samples = _samples(runs, ALL_KEY, figure)
        if len(samples) < max(_MIN_RUNS, len(runs)):
            continue
        logs = [math.log(sample.value) for sample in samples]
        middle = median(logs)
        distances = [abs(value - middle) for value in logs]
        far = max(_MAX_TYPICAL_DISTANCES * _TYPICAL_FACTOR * median(distances), _MIN_DISTANCE_SHARE)
        found += [
            f"{run.name} does not fit: {figure.title} {format_change(math.expm1(value - middle))} %"
            f" from the median of {len(runs)} runs"
            for run, value, distance in zip(runs, logs, distances, strict=True)
            if distance > far
        ]
    return found


def make_repeated_document(runs: Sequence[RunFigures], _view: View) -> Document:
    """Return the summary of a group of two runs or more."""
    rows = []
    keys = sorted({key: None for run in runs for key in run.rows}, key=lambda key: key[0] == "ALL")
    for key in keys:
        for figure in COMPARED_FIGURES.values():
            values = [sample.value for sample in _samples(runs, key, figure)]
            if len(values) > 1 and any(values):
                rows.append((key[0], key[1] or "", figure.compared_head, *_cells(figure, values)))
    warnings = join_alike_warnings((run.name, run.warnings) for run in runs)
    return Document(
        f"{len(runs)} runs: {runs[0].name} to {runs[-1].name}",
        (
            drop_columns(Table(_COLUMNS, rows, keys=2), [] if any(row[1] for row in rows) else [1]),
            *([Note("-: too wide to say anything.")] if any(row[4] == DASH for row in rows) else []),
            *map(Note, _make_notes(runs)),
            Warnings([*find_outlier_runs(runs), *warnings]),
        ),
        facts=describe_noop(runs),
    )


def _cells(figure: Figure, values: list[float]) -> list[str]:
    """Return mean, interval, least, most, and how far the values differ."""
    if figure.is_share:
        mean, half = fmean(values), mean_half_width(values)
        low, high, differ = max(0.0, mean - half), mean + half, "-"
    else:
        logs = [math.log(value) for value in values]
        middle, half = fmean(logs), mean_half_width(logs)
        mean, low, high = math.exp(middle), math.exp(middle - half), math.exp(middle + half)
        differ = f"{format_change_size(stdev(logs))} %"
    shown = [figure.compared_in.text(value) for value in (mean, low, high, min(values), max(values))]
    interval = f"{shown[1]} to {shown[2]}"
    if not figure.is_share and is_too_wide(low / mean - 1, high / mean - 1):
        interval = DASH
    return [shown[0], interval, *shown[3:], differ]


def _make_notes(runs: Sequence[RunFigures]) -> Iterator[str]:
    if any(
        figure.rank is not None and 0 < sum(figure.key in run.rows.get(key, {}) for run in runs) < len(runs)
        for key in {key: None for run in runs for key in run.rows}
        for figure in COMPARED_FIGURES.values()
    ):
        yield (
            f"Percentiles for which a run had too few operations (p99:"
            f" {count_needed_results(99):,}) are left out."
        )
    samples = _samples(runs, ALL_KEY, COMPARED_FIGURES["rate"])
    halves = [sample.half for sample in samples if sample.half is not None]
    if len(halves) == len(samples) > 2:
        differ = stdev(math.log(sample.value) for sample in samples)
        within = math.sqrt(fmean(half**2 for half in halves)) / _STANDARD_ERRORS
        yield (
            f"Rates differ by {format_change_size(differ)} % from run to run; by "
            f"{format_change_size(within)} % they would by what is seen within a run alone. "
            + (
                "More runs say more than longer ones."
                if differ > 2 * within
                else "Longer runs say as much as more of them."
            )
        )


def _samples(runs: Sequence[RunFigures], key: FigureKey, figure: Figure) -> list[FigureSample]:
    return [run.rows[key][figure.key] for run in runs_with_figure(runs, key, figure)]


# -- A line for each configuration -----------------------------------------------------------------


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
    columns = [*(Column(name, is_number=False) for name in facts_), *map(Column, ("runs", *figures))]
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
    text = COMPARED_FIGURES[figure].unit.text(mean)
    if len(values) == 1 or not mean:
        return text
    return f"{text} +-{format_change_size(stdev(values) / math.sqrt(len(values)) / mean)} %"


class PlaceFigures(record.JsonRecord, frozen=True, kw_only=True):
    """The figures of an operation, or ``ALL``, and a size class (null: all of them), by their keys."""

    operation: str
    size_class: str | None
    figures: dict[str, FigureSample]


class FiguresOfRun(record.JsonRecord, frozen=True, kw_only=True):
    """The figures of a run, and the facts that it should share with runs that it is compared with."""

    name: str
    label: str | None
    started: Moment | None
    facts: dict[str, str]
    places: tuple[PlaceFigures, ...]
    warnings: tuple[str, ...]


class FiguresTable(record.JsonHead, frozen=True, kw_only=True):
    """The figures of many runs."""

    format: Literal["ssbench table"] = "ssbench table"
    version: Literal[1] = 1
    runs: tuple[FiguresOfRun, ...]


def make_configurations_json(runs: Sequence[RunFigures], *_: Any) -> str:
    """Return the figures of many runs as one JSON document."""
    return record.format_json(FiguresTable(runs=tuple(map(_figures_of_run, runs))))


def _figures_of_run(run: RunFigures) -> FiguresOfRun:
    places = (
        PlaceFigures(operation=operation, size_class=size_class, figures=dict(figures))
        for (operation, size_class), figures in run.rows.items()
    )
    return FiguresOfRun(
        name=run.name,
        label=run.label or None,
        started=run.started,
        facts=dict(run.facts),
        places=tuple(places),
        warnings=run.warnings,
    )
