"""Charts of a page as plain data, which the script of the page (``page.js``) draws with uPlot.

uPlot is in the folder ``uplot``, as its release has it: 50 kB, so that a page needs nothing from elsewhere.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from ssbench.document.elements import Chart, Curve, Document, Element, Heat, Section

Floats = npt.NDArray[np.float64]

#: Columns of a heat map at most.
_MAX_HEAT_COLUMNS = 256

#: Digits of values, and of places on the x axis.
_VALUE_DIGITS, _X_DIGITS = 5, 8

#: Beside the charts over time is this part of what they show, at either end.
_MARGIN_SHARE = 1 / 50


@dataclass(frozen=True, slots=True)
class DrawnChart:
    """A chart with its data as JSON: plain ASCII, which is to be escaped as any text."""

    chart: Chart
    data: str


@dataclass(frozen=True, slots=True)
class ShownTimes:
    """The seconds that charts over time show at first."""

    low: float
    high: float


def find_charts(elements: Iterable[Element]) -> Iterator[Chart]:
    """Yield all charts among elements, those of sections too."""
    for each in elements:
        if isinstance(each, Chart):
            yield each
        elif isinstance(each, Section):
            yield from find_charts(each.elements)


def find_shown_times(document: Document) -> ShownTimes:
    """Return what the charts over time of a document show: all of the run, not what was long before it."""
    timed = [chart for chart in find_charts(document.elements) if chart.axis == "time"]
    narrow = [chart for chart in timed if not chart.wider] or timed
    known = [curve.x for chart in narrow for curve in chart.curves if len(curve.x)]
    low = min((float(x.min()) for x in known), default=0.0)
    high = max((float(x.max()) for x in known), default=1.0)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    margin = _MARGIN_SHARE * (high - low)
    return ShownTimes(low - margin, high + margin)


def draw_chart(chart: Chart, times: ShownTimes) -> DrawnChart:
    """Return a chart with its data."""
    record: dict[str, Any] = {
        "axis": chart.axis,
        "unit": chart.unit,
        "log": chart.log,
        "digits": chart.digits,
        "tables": [_tabulate_curves(curves) for curves in _group_by_x(chart.curves)],
        "curves": [_describe_curve(curve) for _, curve in _order_curves(chart.curves)],
        "bands": _find_bands(chart.curves),
        "shaded": [
            [_round_number(low, _X_DIGITS), _round_number(high, _X_DIGITS), c]
            for low, high, c in chart.shaded
        ],
        "marks": [[_round_number(x, _X_DIGITS), text] for x, text in chart.marks],
    }
    if chart.heat is not None:
        record["heat"] = _describe_heat(chart.heat)
    if chart.axis == "time":
        record["times"] = [_round_number(times.low, _X_DIGITS), _round_number(times.high, _X_DIGITS)]
    return DrawnChart(chart, json.dumps(record, separators=(",", ":"), allow_nan=False))


def _group_by_x(curves: Sequence[Curve]) -> list[list[Curve]]:
    """Return curves in groups of the same x, each of which is sent once."""
    groups: list[list[Curve]] = []
    for curve in curves:
        for group in groups:
            if np.array_equal(group[0].x, curve.x):
                group.append(curve)
                break
        else:
            groups.append([curve])
    return groups


def _order_curves(curves: Sequence[Curve]) -> Iterator[tuple[int, Curve]]:
    """Yield curves as their groups have them, each with its place in the chart."""
    places = {id(curve): place for place, curve in enumerate(curves)}
    for group in _group_by_x(curves):
        yield from ((places[id(curve)], curve) for curve in group)


def _tabulate_curves(curves: Sequence[Curve]) -> list[list[float | None]]:
    """Return x in ascending order, and the values of each curve there."""
    x = curves[0].x
    order = np.argsort(x, kind="stable")
    columns = [_round_numbers(curve.y[order], _VALUE_DIGITS) for curve in curves]
    return [_round_numbers(x[order], _X_DIGITS), *columns]


def _describe_curve(curve: Curve) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": curve.name,
        "colour": curve.colour,
        "width": curve.width,
        "dash": curve.dash,
        "line": not curve.markers,
        "points": bool(curve.markers or curve.pointed),
        "hidden": curve.hidden,
    }
    if curve.shown is not None:
        found["shown"] = curve.shown.tolist()
    if curve.labels:
        order = np.argsort(curve.x, kind="stable")
        found["labels"] = [curve.labels[place] for place in order]
    return found


def _describe_heat(heat: Heat) -> dict[str, Any]:
    """Return a grid: its edges; of each column, the first cell with a count, and the counts from there."""
    width = -(-len(heat.counts) // _MAX_HEAT_COLUMNS)
    firsts = np.arange(0, len(heat.counts), width)
    counts = np.add.reduceat(heat.counts, firsts) if len(firsts) else heat.counts
    return {
        "x": _round_numbers(heat.x[[*firsts, -1]], _X_DIGITS),
        "y": _round_numbers(heat.y, _VALUE_DIGITS),
        "columns": [_trim_column(column) for column in counts.tolist()],
    }


def _trim_column(column: list[int]) -> list[int]:
    used = [place for place, count in enumerate(column) if count]
    return [used[0], *column[used[0] : used[-1] + 1]] if used else []


def _find_bands(curves: Sequence[Curve]) -> list[list[int]]:
    """Return the places, in the order of the data, of curves between which the area is filled."""
    place_of = {place: number for number, (place, _) in enumerate(_order_curves(curves))}
    return [
        [place_of[place], place_of[curve.down_to]]
        for place, curve in enumerate(curves)
        if curve.down_to is not None
    ]


def _round_numbers(values: npt.NDArray[Any], digits: int) -> list[float | None]:
    return [_round_number(value, digits) for value in np.asarray(values, np.float64).tolist()]


def _round_number(value: float, digits: int) -> float | None:
    """Return a number with so many digits, a whole one without a point; None for what is no number."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def group_charts(elements: Iterable[Element]) -> Iterator[tuple[str, object]]:
    """Yield the kind of each element, and the element; charts that follow each other are one block.

    Charts over time are a block of their own, with the kind ``Timeline``.
    """
    for kind, found in groupby(elements, _block_kind):
        if kind in {"Chart", "Timeline"}:
            yield kind, [*found]
        else:
            yield from ((kind, each) for each in found)


def _block_kind(each: Element) -> str:
    if isinstance(each, Chart) and each.axis == "time":
        return "Timeline"
    return type(each).__name__
