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
_MOST_COLUMNS = 256

#: Digits of values, and of places on the x axis.
_DIGITS, _X_DIGITS = 5, 8

#: Beside the charts over time is this part of what they show, at either end.
_MARGIN = 1 / 50


@dataclass(frozen=True, slots=True)
class Drawn:
    """A chart with its data as JSON: plain ASCII, which is to be escaped as any text."""

    chart: Chart
    data: str


@dataclass(frozen=True, slots=True)
class Times:
    """The seconds that charts over time show at first."""

    low: float
    high: float


def charts_of(elements: Iterable[Element]) -> Iterator[Chart]:
    """Yield all charts among elements, those of sections too."""
    for each in elements:
        if isinstance(each, Chart):
            yield each
        elif isinstance(each, Section):
            yield from charts_of(each.elements)


def times_of(document: Document) -> Times:
    """Return what the charts over time of a document show: all of the run, not what was long before it."""
    timed = [chart for chart in charts_of(document.elements) if chart.axis == "time"]
    narrow = [chart for chart in timed if not chart.wider] or timed
    known = [curve.x for chart in narrow for curve in chart.curves if len(curve.x)]
    low = min((float(x.min()) for x in known), default=0.0)
    high = max((float(x.max()) for x in known), default=1.0)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    margin = _MARGIN * (high - low)
    return Times(low - margin, high + margin)


def draw(chart: Chart, times: Times) -> Drawn:
    """Return a chart with its data."""
    record: dict[str, Any] = {
        "axis": chart.axis,
        "unit": chart.unit,
        "log": chart.log,
        "digits": chart.digits,
        "tables": [_table(curves) for curves in _by_x(chart.curves)],
        "curves": [_look(curve) for _, curve in _in_order(chart.curves)],
        "bands": _bands(chart.curves),
        "shaded": [[_rounded(low, _X_DIGITS), _rounded(high, _X_DIGITS), c] for low, high, c in chart.shaded],
        "marks": [[_rounded(x, _X_DIGITS), text] for x, text in chart.marks],
    }
    if chart.heat is not None:
        record["heat"] = _heat(chart.heat)
    if chart.axis == "time":
        record["times"] = [_rounded(times.low, _X_DIGITS), _rounded(times.high, _X_DIGITS)]
    return Drawn(chart, json.dumps(record, separators=(",", ":"), allow_nan=False))


def _by_x(curves: Sequence[Curve]) -> list[list[Curve]]:
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


def _in_order(curves: Sequence[Curve]) -> Iterator[tuple[int, Curve]]:
    """Yield curves as their groups have them, each with its place in the chart."""
    places = {id(curve): place for place, curve in enumerate(curves)}
    for group in _by_x(curves):
        yield from ((places[id(curve)], curve) for curve in group)


def _table(curves: Sequence[Curve]) -> list[list[float | None]]:
    """Return x in ascending order, and the values of each curve there."""
    x = curves[0].x
    order = np.argsort(x, kind="stable")
    columns = [_numbers(curve.y[order], _DIGITS) for curve in curves]
    return [_numbers(x[order], _X_DIGITS), *columns]


def _look(curve: Curve) -> dict[str, Any]:
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


def _heat(heat: Heat) -> dict[str, Any]:
    """Return a grid: its edges; of each column, the first cell with a count, and the counts from there."""
    width = -(-len(heat.counts) // _MOST_COLUMNS)
    firsts = np.arange(0, len(heat.counts), width)
    counts = np.add.reduceat(heat.counts, firsts) if len(firsts) else heat.counts
    return {
        "x": _numbers(heat.x[[*firsts, -1]], _X_DIGITS),
        "y": _numbers(heat.y, _DIGITS),
        "columns": [_trimmed(column) for column in counts.tolist()],
    }


def _trimmed(column: list[int]) -> list[int]:
    used = [place for place, count in enumerate(column) if count]
    return [used[0], *column[used[0] : used[-1] + 1]] if used else []


def _bands(curves: Sequence[Curve]) -> list[list[int]]:
    """Return the places, in the order of the data, of curves between which the area is filled."""
    place_of = {place: number for number, (place, _) in enumerate(_in_order(curves))}
    return [
        [place_of[place], place_of[curve.down_to]]
        for place, curve in enumerate(curves)
        if curve.down_to is not None
    ]


def _numbers(values: npt.NDArray[Any], digits: int) -> list[float | None]:
    return [_rounded(value, digits) for value in np.asarray(values, np.float64).tolist()]


def _rounded(value: float, digits: int) -> float | None:
    """Return a number with so many digits, a whole one without a point; None for what is no number."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def blocks(elements: Iterable[Element]) -> Iterator[tuple[str, object]]:
    """Yield the kind of each element, and the element; charts that follow each other are one block.

    Charts over time are a block of their own, with the kind ``Timeline``.
    """
    for kind, found in groupby(elements, _kind):
        if kind in {"Chart", "Timeline"}:
            yield kind, [*found]
        else:
            yield from ((kind, each) for each in found)


def _kind(each: Element) -> str:
    if isinstance(each, Chart) and each.axis == "time":
        return "Timeline"
    return type(each).__name__
