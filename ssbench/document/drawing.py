"""Charts of a page, drawn with Bokeh: curves over a common x, with hover and zoom.

Colours of text and grid are set by the script of the page (``page.js``), which knows whether the reader's
screen is light or dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
from bokeh.embed import components
from bokeh.models import (
    AdaptiveTicker,
    BoxAnnotation,
    ColumnDataSource,
    CustomJSHover,
    CustomJSTickFormatter,
    DataRange1d,
    FixedTicker,
    HoverTool,
    Range1d,
)
from bokeh.plotting import figure
from bokeh.resources import Resources

from ssbench.document.elements import Chart, Curve

Floats = npt.NDArray[np.float64]

#: Few points are drawn as points too: a line through one of them shows nothing.
_FEW = 60

#: The same holds where more than this share of a line is gaps.
_GAPS = 0.1

#: Over such a ratio of values a logarithmic axis has marks at 1, 2 and 5 only, over this many decades at 1.
_WIDE = 4.0
_MANY_DECADES = 5

#: So many values of a logarithmic axis have a mark each, where each is so many times the one before.
_MOST_MARKS = 12
_APART = 1.3

#: Where the axis of percentiles has its marks: 1 / (1 - share), and their labels.
_RANKS = {1: "0", 2: "50", 4: "75", 10: "90", 20: "95", 100: "99", 1e3: "99.9", 1e4: "99.99", 1e5: "99.999"}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A chart with the element that it is drawn in, which is safe HTML, and the names of its curves."""

    chart: Chart
    place: str
    curves: Sequence[tuple[Curve, str]]


def draw(charts: Iterable[Chart]) -> tuple[str, list[Drawn]]:
    """Return the script of all charts, which is safe within a page, and each of them."""
    charts = list(charts)
    if not charts:
        return "", []
    timed = [chart for chart in charts if chart.axis == "time"]
    narrow = [chart for chart in timed if not chart.wider] or timed
    shown, known = (_bounds([curve.x for each in some for curve in each.curves]) for some in (narrow, timed))
    maker = _Maker(shown, known)
    figures = [maker.figure(chart) for chart in charts]
    script, places = components(figures, wrap_script=False)
    # The data within must not end the element that it is in.
    script = script.replace("</", "<\\/").replace("<!--", "<\\!--")
    return script, [Drawn(*each) for each in zip(charts, places, maker.names, strict=True)]


def library() -> str:
    """Return the script that draws charts, as its wheel has it; what else Bokeh brings sets its log level."""
    scripts: list[str] = Resources(mode="inline", components=["bokeh"]).js_raw
    return max(scripts, key=len)


def _bounds(parts: Sequence[Floats]) -> tuple[float, float]:
    lows = [float(part.min()) for part in parts if len(part)]
    highs = [float(part.max()) for part in parts if len(part)]
    low, high = min(lows, default=0.0), max(highs, default=1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def log_ticks(arrays: Iterable[npt.NDArray[Any]]) -> FixedTicker | None:
    """Return marks at 1, 2 and 5 of each decade, where values go over half of one or more.

    Bokeh's own marks of such an axis are at equal steps, so that the labels of the upper ones overlap.
    """
    known = [values[np.isfinite(values) & (values > 0)] for values in arrays]
    positive = np.concatenate([np.empty(0), *known])
    if not len(positive) or positive.max() < _WIDE * positive.min():
        return None
    decades = range(math.floor(math.log10(positive.min())), math.ceil(math.log10(positive.max())) + 1)
    wide = len(decades) > _MANY_DECADES
    marks = [digit * 10.0**power for power in decades for digit in ((1,) if wide else (1, 2, 5))]
    return FixedTicker(ticks=marks)


def _ticks_at(arrays: Iterable[Floats]) -> FixedTicker | None:
    """Return marks at the values themselves; where they are too near to each other, those of an axis."""
    arrays = list(arrays)
    values = np.unique(np.concatenate(arrays))
    if len(values) <= _MOST_MARKS and (values[1:] >= _APART * values[:-1]).all():
        return FixedTicker(ticks=values.tolist())
    return log_ticks(arrays)


class _Maker:
    """Makes figures; ``names`` has those of the renderers of each."""

    def __init__(self, shown: tuple[float, float], known: tuple[float, float]) -> None:
        low, high = shown
        margin = (high - low) / 50
        bounds = (min(low, known[0]) - margin, max(high, known[1]) + margin)
        self._times = Range1d(low - margin, high + margin, bounds=bounds)
        self._long = high >= 180
        self._numbers = count()
        self.names: list[list[tuple[Curve, str]]] = []

    def figure(self, chart: Chart) -> Any:
        made = figure(
            height=290,
            sizing_mode="stretch_width",
            x_axis_type="linear" if chart.axis == "time" else "log",
            y_axis_type="log" if chart.log else "linear",
            x_range=self._times if chart.axis == "time" else DataRange1d(only_visible=True),
            y_range=DataRange1d(only_visible=True, **({} if chart.log else {"start": 0})),
            tools="xpan,xbox_zoom,xwheel_zoom,reset,save",
            active_drag="xbox_zoom",
            active_scroll=None,
            toolbar_location="above",
            background_fill_alpha=0,
            border_fill_alpha=0,
            outline_line_alpha=0,
            min_border=4,
        )
        made.toolbar.logo = None
        for start, end, colour in chart.shaded:
            made.add_layout(BoxAnnotation(left=start, right=end, fill_color=colour, fill_alpha=0.15))
        self._axes(made, chart)
        self.names.append([(curve, f"curve{next(self._numbers)}") for curve in chart.curves])
        if _common_x(chart.curves):
            self._together(made, chart)
        else:
            self._apart(made, chart)
        return made

    def _axes(self, made: Any, chart: Chart) -> None:
        made.xaxis.axis_label = {"time": "time after the first send", "percentile": "percentile"}.get(
            chart.axis, chart.axis
        )
        made.grid.grid_line_dash = [2, 3]
        made.yaxis.formatter = CustomJSTickFormatter(code="return ssbenchNumber(tick)")
        if chart.log and (marks := log_ticks(curve.y for curve in chart.curves)):
            made.yaxis.ticker = made.ygrid.ticker = marks
        if chart.axis == "time":
            made.xaxis.ticker = AdaptiveTicker(base=60, mantissas=[1, 2, 5, 10, 15, 30], desired_num_ticks=6)
            made.xaxis.formatter = CustomJSTickFormatter(
                code=f"return ssbenchTime(tick, {str(self._long).lower()})"
            )
        elif chart.axis == "percentile":
            made.xaxis.ticker = FixedTicker(ticks=list(_RANKS))
            made.xaxis.major_label_overrides = _RANKS
            made.xgrid.ticker = FixedTicker(ticks=list(_RANKS))
        else:
            made.xaxis.formatter = CustomJSTickFormatter(code="return ssbenchNumber(tick)")
            if marks := _ticks_at(curve.x for curve in chart.curves):
                made.xaxis.ticker = made.xgrid.ticker = marks

    def _together(self, made: Any, chart: Chart) -> None:
        """Draw curves over the same x, with one box that tells all of them."""
        columns = {f"y{place}": _short(curve.y) for place, curve in enumerate(chart.curves)}
        x = chart.curves[0].x if chart.curves else np.empty(0)
        source = ColumnDataSource({"x": _short(x), **columns})
        for place, (curve, name) in enumerate(self.names[-1]):
            _draw(made, curve, name, source, f"y{place}", points=chart.axis == "time")
        reach = made.line("x", "at", source=source, line_alpha=0, name=f"hover{next(self._numbers)}")
        known = np.nan_to_num(np.array([curve.y for curve in chart.curves if not curve.markers]), nan=0.0)
        positive = known[known > 0]
        source.data["at"] = np.full(len(x), np.median(positive) if len(positive) else 1.0, np.float32)
        form = "0,0." + "0" * chart.digits if chart.digits else "0,0"
        rows = []
        for place, curve in enumerate(chart.curves):
            if curve.shown is not None:
                source.data[f"n{place}"] = _short(curve.shown)
                rows.append((curve.name, f"@n{place}{{0,0}}"))
            else:
                rows.append((curve.name, f"@y{place}{{{form}}}"))
        made.add_tools(
            HoverTool(
                renderers=[reach],
                mode="vline",
                visible=False,
                line_policy="nearest",
                tooltips=[("", "@x{custom}"), *rows],
                formatters={"@x": self._moment(chart)},
            )
        )

    def _moment(self, chart: Chart) -> CustomJSHover:
        """Return what words x in the box."""
        words = {
            "time": f"ssbenchTime(value, {str(self._long).lower()})",
            "percentile": "ssbenchRank(value)",
        }.get(chart.axis, f'ssbenchNumber(value) + " {chart.axis}"')
        return CustomJSHover(code=f"return {words}")

    def _apart(self, made: Any, chart: Chart) -> None:
        """Draw curves that have an x each."""
        for curve, name in self.names[-1]:
            source = ColumnDataSource({"x": _short(curve.x), "y": _short(curve.y)})
            drawn = _draw(made, curve, name, source, "y", points=chart.axis == "time")
            made.add_tools(
                HoverTool(
                    renderers=drawn,
                    tooltips=[("", "@x{custom}"), (curve.name, "@y{0,0.000}")],
                    formatters={"@x": self._moment(chart)},
                    line_policy="nearest",
                    visible=False,
                )
            )


def _common_x(curves: Sequence[Curve]) -> bool:
    return all(np.array_equal(curve.x, curves[0].x) for curve in curves[1:])


def _draw(
    made: Any, curve: Curve, name: str, source: ColumnDataSource, column: str, *, points: bool
) -> list[Any]:
    """Draw a curve, with its points where these are few; what belongs to it has its name."""
    common = {"source": source, "name": name}
    drawn = []
    if not curve.markers:
        drawn.append(
            made.line(
                "x", column, line_color=curve.colour, line_width=curve.width, line_dash=curve.dash, **common
            )
        )
    sparse = len(curve.x) <= _FEW or np.isnan(curve.y).mean() > _GAPS
    if curve.markers or curve.pointed or (points and sparse):
        marker = (
            {"marker": "x", "size": 8, "line_width": 2} if curve.markers else {"size": 2 * curve.width + 1}
        )
        drawn.append(made.scatter("x", column, color=curve.colour, **marker, **common))
    return drawn


def _short(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return numbers with the precision of a screen, in half of the bytes."""
    return np.asarray(values, np.float32)
