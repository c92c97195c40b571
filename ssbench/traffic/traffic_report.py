"""The document of a log's traffic, or of that of two logs, with the log's own halves beside."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ssbench.base.text_values import format_duration
from ssbench.document.columns import format_plural
from ssbench.document.elements import (
    CURVE_COLOURS,
    Chart,
    Column,
    Curve,
    Document,
    Element,
    Note,
    Table,
    View,
    Warnings,
)
from ssbench.logs.logged_requests import RequestColumns
from ssbench.traffic import object_uses
from ssbench.traffic.traffic_figures import SHARE, TRAFFIC_FIGURES, Traffic, TrafficFigure, compute_figures

#: Sizes of caches in a chart, as shares of the objects.
_CURVE_SHARES = tuple(10 ** (-3 + step / 8) for step in range(25))
#: From so many seconds on a chart has the rate of each minute.
_MIN_CHART_SECONDS = 600
#: Points of a chart of sizes.
_SIZE_POINTS = 200


@dataclass(frozen=True)
class TrafficReport:
    """What is said of a log, and of another one that it is compared with."""

    requests: RequestColumns
    other: RequestColumns | None = None
    remarks: tuple[str, ...] = ()  # what a scenario does not say of it
    shared: bool = False  # nothing that could name somebody is in it

    @cached_property
    def traffic(self) -> Traffic:
        """The log's requests."""
        return Traffic(self.requests)


def make_traffic_document(report: TrafficReport, _view: View) -> Document:
    """Return the document of a report."""
    traffic = report.traffic
    requests = report.requests
    facts = [
        format_plural(len(requests), "request"),
        *([format_duration(traffic.seconds)] if len(requests) > 1 else []),
        format_plural(requests.sources, "client"),
    ]
    warnings = [*report.requests.list_doubts(shared=report.shared)]
    if report.other is None:
        title, elements = "Traffic", [_make_table(traffic)]
    else:
        doubts = report.other.list_doubts(shared=report.shared)
        warnings += [f"the other: {each}" for each in doubts]
        title, elements = "Two logs' traffic", [_make_comparison(traffic, Traffic(report.other))]
    made: list[Element] = [Warnings(warnings)] if warnings else []
    made += elements
    if report.remarks:
        made.append(Warnings(report.remarks))
    made += _make_charts(traffic, None if report.other is None else Traffic(report.other))
    return Document(title, made, facts=facts)


def _make_table(traffic: Traffic) -> Table:
    whole, *halves = (compute_figures(each) for each in (traffic, *traffic.split()))
    columns = [Column("", is_number=False, is_whole=True)]
    columns += [Column("log"), Column("first half"), Column("second half")]
    rows = [
        [figure.title, *(figure.format(value) for value in values)]
        for figure, *values in zip(TRAFFIC_FIGURES, whole, *halves, strict=True)
        if _says_something(figure, values)
    ]
    return Table(columns, rows)


def _make_comparison(one: Traffic, other: Traffic) -> Table:
    columns = [Column("", is_number=False, is_whole=True)]
    columns += [Column("log"), Column("other"), Column("distance"), Column("log's halves")]
    rows = []
    sides = (compute_figures(each) for each in (one, other, *one.split()))
    for figure, own, its, first, second in zip(TRAFFIC_FIGURES, *sides, strict=True):
        if _says_something(figure, (own, its)):
            distances = figure.distance(own, its), figure.distance(first, second)
            rows.append(
                [figure.title, *map(figure.format, (own, its)), *map(figure.format_distance, distances)]
            )
    return Table(columns, rows)


def _says_something(figure: TrafficFigure, values: Sequence[float]) -> bool:
    """Whether a row is shown: one of these is known, and of shares one is not 0."""
    return any(not math.isnan(value) and (value or figure.unit != SHARE) for value in values)


def _make_charts(one: Traffic, other: Traffic | None) -> Iterator[Element]:
    sides = [("log", one)] + ([("other", other)] if other is not None else [])
    rates, hits, sizes = [], [], []
    for (name, each), colour in zip(sides, CURVE_COLOURS, strict=False):
        step = 60 if len(each.rates) >= _MIN_CHART_SECONDS else 1
        whole = each.rates[: len(each.rates) // step * step].astype(np.float64).reshape(-1, step)
        rates.append(
            Curve(name, np.arange(len(whole), dtype=np.float64) * step, whole.sum(axis=1) / step, colour)
        )
        weights = np.ones(len(each.counts))
        ratios = object_uses.find_hit_ratios(each.used, weights, _CURVE_SHARES)
        hits.append(Curve(name, 100 * np.array(_CURVE_SHARES), np.array(ratios), colour))
        if len(each.known_sizes):
            ranks = np.linspace(0, 100, _SIZE_POINTS)
            found = np.maximum(np.percentile(each.known_sizes, ranks), 1.0)
            sizes.append(Curve(name, found, ranks, colour))
    yield Chart("Requests a second", "1/s", rates)
    if len(one.used):
        yield Chart("Hit ratio of a cache for a part of the objects", "ratio", hits, axis="%", digits=3)
    if sizes:
        yield Chart("Objects up to a size", "%", sizes, axis="bytes")
    yield Note(
        "The log's own halves are its noise: nothing that is made of it needs to be nearer to it than"
        " they are to each other."
    )
