"""The document of a log's traffic, or of that of two logs, with the log's own halves beside, also as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ssbench.base import record
from ssbench.base.record import Count, JsonHead, JsonRecord, Seconds
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
from ssbench.run.bars import ProgressBar
from ssbench.traffic import object_uses
from ssbench.traffic.traffic_figures import (
    SHARE,
    TRAFFIC_FIGURES,
    Traffic,
    TrafficFigure,
    TrafficUnit,
    compute_figures,
    sum_windows,
)

#: Sizes of caches in a chart, as shares of the objects.
_CURVE_SHARES = tuple(10 ** (-3 + step / 8) for step in range(25))
#: Steps of a chart of rates in seconds, each with the length of a log from which on it is taken.
_CHART_STEPS = ((3600, 14 * 86_400), (60, 600), (1, 0))
#: Points of a chart of sizes.
_SIZE_POINTS = 200


@dataclass(frozen=True, slots=True)
class ComparedValues:
    """The values of a figure; NaN where there is none."""

    log: float
    first_half: float
    second_half: float
    other: float = math.nan


@dataclass(frozen=True)
class TrafficReport:
    """What is said of a log, and of another one that it is compared with."""

    traffic: Traffic
    other: RequestColumns | None = None
    remarks: tuple[str, ...] = ()  # what a scenario does not say of it
    shared: bool = False  # nothing that could name somebody is in it

    @cached_property
    def rows(self) -> list[tuple[TrafficFigure, ComparedValues]]:
        """Each figure of the log, of its halves and of the other."""
        number = len(TRAFFIC_FIGURES) * (3 if self.other is None else 4)
        with ProgressBar("Figures", number) as bar:
            # The halves first: what the log itself needs is kept for charts.
            halves = [compute_figures(half, bar.advance) for half in self.traffic.split()]
            sides = [compute_figures(self.traffic, bar.advance), *halves]
            if self.other is not None:
                sides.append(compute_figures(Traffic(self.other), bar.advance))
        columns = zip(*sides, strict=True)
        return [
            (figure, ComparedValues(*values)) for figure, values in zip(TRAFFIC_FIGURES, columns, strict=True)
        ]

    def list_doubts(self) -> Iterator[str]:
        """Yield what to know of how the logs were read."""
        yield from self.traffic.requests.list_doubts(shared=self.shared)
        if self.other is not None:
            for doubt in self.other.list_doubts(shared=self.shared):
                yield f"the other: {doubt}"

    def list_left_out(self) -> Iterator[str]:
        """Yield how many lines of each log are no requests of clients, unless it is a doubt."""
        for name, requests in ("", self.traffic.requests), ("the other: ", self.other):
            if requests is not None and requests.left_out and not requests.are_few:
                yield name + requests.describe_left_out(shared=self.shared)


class TrafficFigureRecord(JsonRecord, frozen=True, kw_only=True):
    """A figure of a log. ``null``: the log does not have it."""

    name: str
    #: A share is a part of 1, a rate requests a second.
    unit: TrafficUnit
    log: float | None
    first_half: float | None  # of the log: halves are its noise
    second_half: float | None
    other: float | None = None  # of --compare
    #: From the log to the other: a difference of shares and ratios, of others a part of the log's value.
    distance: float | None = None
    halves_distance: float | None = None  # the same from the first half to the second


class TrafficRecord(JsonHead, frozen=True, kw_only=True):
    """What the users of a store do, by its logs (``traffic``)."""

    format: Literal["ssbench traffic"] = "ssbench traffic"
    version: Literal[1] = 1
    requests: Count
    retries: Count  # requests soon after a failure of the same operation on the same object
    seconds: Seconds | None  # from the beginning of the first request to that of the last; null: one moment
    clients: Count
    left_out: Count  # lines that are no requests of clients
    unreadable: Count  # lines that should be requests and cannot be read
    doubts: tuple[str, ...]  # what to know of how the logs were read
    misfits: tuple[str, ...]  # what a scenario of -o does not say of the log
    figures: tuple[TrafficFigureRecord, ...]


def make_traffic_json(report: TrafficReport, *_: Any) -> str:
    """Return a report as JSON."""
    requests = report.traffic.requests
    return record.format_json(
        TrafficRecord(
            requests=len(requests),
            retries=len(report.traffic.retries),
            seconds=_known(report.traffic.seconds),
            clients=requests.sources,
            left_out=requests.left_out,
            unreadable=requests.unreadable,
            doubts=tuple(report.list_doubts()),
            misfits=report.remarks,
            figures=tuple(
                TrafficFigureRecord(
                    name=figure.title,
                    unit=figure.unit,
                    log=_known(values.log),
                    first_half=_known(values.first_half),
                    second_half=_known(values.second_half),
                    other=_known(values.other),
                    distance=_known(figure.distance(values.log, values.other)),
                    halves_distance=_known(figure.distance(values.first_half, values.second_half)),
                )
                for figure, values in report.rows
            ),
        )
    )


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def make_traffic_document(report: TrafficReport, _view: View) -> Document:
    """Return the document of a report."""
    traffic = report.traffic
    requests = traffic.requests
    facts = [
        format_plural(len(requests), "request"),
        *([traffic.format_seconds()] if len(requests) > 1 else []),
        format_plural(requests.sources, "client"),
        *([f"retries: {len(traffic.retries):,}"] if len(traffic.retries) else []),
    ]
    warnings = [*report.list_doubts()]
    made: list[Element] = [Warnings(warnings)] if warnings else []
    title = "Traffic" if report.other is None else "Two logs' traffic"
    made.append(_make_table(report) if report.other is None else _make_comparison(report))
    if report.remarks:
        made.append(Warnings(report.remarks))
    made += map(Note, report.list_left_out())
    made += _make_charts(traffic, None if report.other is None else Traffic(report.other))
    return Document(title, made, facts=facts)


def _make_table(report: TrafficReport) -> Table:
    columns = [Column("", is_number=False, is_whole=True)]
    columns += [Column("log"), Column("first half"), Column("second half")]
    rows = []
    for figure, values in report.rows:
        shown = values.log, values.first_half, values.second_half
        if _says_something(figure, shown):
            rows.append([figure.title, *map(figure.format, shown)])
    return Table(columns, rows)


def _make_comparison(report: TrafficReport) -> Table:
    columns = [Column("", is_number=False, is_whole=True)]
    columns += [Column("log"), Column("other"), Column("distance"), Column("log's halves")]
    rows = []
    for figure, values in report.rows:
        shown = values.log, values.other
        if _says_something(figure, shown):
            distances = figure.distance(*shown), figure.distance(values.first_half, values.second_half)
            rows.append([figure.title, *map(figure.format, shown), *map(figure.format_distance, distances)])
    return Table(columns, rows)


def _says_something(figure: TrafficFigure, values: Sequence[float]) -> bool:
    """Whether a row is shown: one of these is known, and of shares one is not 0."""
    return any(not math.isnan(value) and (value or figure.unit != SHARE) for value in values)


def _make_charts(one: Traffic, other: Traffic | None) -> Iterator[Element]:
    sides = [("log", one)] + ([("other", other)] if other is not None else [])
    rates, hits, sizes = [], [], []
    for (name, each), colour in zip(sides, CURVE_COLOURS, strict=False):
        seconds = each.rates[:-1]  # the last one is not whole
        step = next(step for step, least in _CHART_STEPS if len(seconds) >= least)
        means = sum_windows(seconds, step) / step
        if len(means):
            rates.append(Curve(name, np.arange(len(means), dtype=np.float64) * step, means, colour))
        weights = np.ones(len(each.counts))
        ratios = object_uses.find_hit_ratios(each.used, weights, _CURVE_SHARES)
        hits.append(Curve(name, 100 * np.array(_CURVE_SHARES), np.array(ratios), colour))
        if len(each.known_sizes):
            ranks = np.linspace(0, 100, _SIZE_POINTS)
            found = np.maximum(np.percentile(each.known_sizes, ranks), 1.0)
            sizes.append(Curve(name, found, ranks, colour))
    if rates:
        note = (
            "Each point is a whole second; in logs of ten minutes or more a whole minute, of two weeks or"
            " more a whole hour. A part of one at the end is left out."
        )
        yield Chart("Requests a second", "1/s", rates, note=note)
    if len(one.used):
        yield Chart("Hit ratio of a cache for a part of the objects", "ratio", hits, axis="%", digits=3)
    if sizes:
        yield Chart("Objects up to a size", "%", sizes, axis="bytes")
    yield Note(
        "The log's own halves are its noise: nothing that is made of it needs to be nearer to it than"
        " they are to each other."
    )
