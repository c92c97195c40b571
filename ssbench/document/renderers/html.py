"""A document as one page of HTML that needs nothing from elsewhere, for light and dark screens.

Its size does not grow with the run: tables have at most two hundred rows, texts are cut. A page is put
together from parts, one for each section, so that a reader during a run gets those that have changed.

Charts are plain data in the page, which its script (``page.js``) draws with uPlot. uPlot is in the folder
``uplot``, as its release has it: 50 kB, so that a page needs nothing from elsewhere.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from ssbench.base.printable import make_printable
from ssbench.document.elements import (
    Cell,
    Chart,
    Curve,
    Document,
    DrawnInterval,
    Element,
    Heat,
    Item,
    Items,
    Note,
    Section,
    Tile,
    View,
    Warnings,
)

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
    """Return the range of time that all charts over time of a document show: that of the run."""
    timed = [chart for chart in find_charts(document.elements) if chart.axis == "time"]
    narrow = [chart for chart in timed if not chart.wider] or timed
    known = [curve.x for chart in narrow for curve in chart.curves if len(curve.x)]
    low = min((float(x.min()) for x in known), default=0.0)
    high = max((float(x.max()) for x in known), default=1.0)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    margin = _MARGIN_SHARE * (high - low)
    return ShownTimes(max(low - margin, 0.0) if high > 0 else low - margin, high + margin)


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
    placed = [place for place, _ in _order_curves(chart.curves)]
    if placed != sorted(placed):
        record["order"] = sorted(range(len(placed)), key=placed.__getitem__)
    if chart.ticks:
        record["ticks"] = [_round_number(x, _X_DIGITS) for x in chart.ticks]
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
    order = np.argsort(curve.x, kind="stable")
    if curve.labels:
        found["labels"] = [curve.labels[place] for place in order]
    if not curve.markers and not _is_monotonic(curve.x):
        found["path"] = np.argsort(order).tolist()  # places in the data, which ascend in x
    return found


def _is_monotonic(x: npt.NDArray[np.float64]) -> bool:
    steps = np.diff(x)
    return bool(np.all(steps >= 0) or np.all(steps <= 0))


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


# -- The page --------------------------------------------------------------------------------------


#: Words of this many characters are kept whole on paper.
_MAX_WHOLE_WORD = 24

#: Characters of a cell or a warning beyond this are cut off.
_MAX_CELL_CHARACTERS = 200

#: The size of the picture of a tile, and the most points of its line.
_TILE_WIDTH, _TILE_HEIGHT, _MAX_TILE_POINTS = 120, 28, 60


@dataclass(frozen=True, slots=True)
class PagePart:
    """A part of a page, with the id of its element."""

    id: str
    html: str


def render(document: Document, _view: View) -> str:
    """Return the page."""
    charts = any(True for _ in find_charts(document.elements))
    return make_page(document.tab, make_page_parts(document), charts=charts)


def make_page(
    title: str, made: Sequence[PagePart], *, charts: bool = True, address: str = "", nonce: str = ""
) -> str:
    """Return a page of these parts; what changes them comes from ``address``, where there is one.

    ``title`` is that of the tab. ``nonce`` is that of the scripts of the page, where it is served.
    """
    library = f"/*\n{_read_page_file('uplot/LICENSE')}*/\n{_read_page_file('uplot/uPlot.iife.min.js')}"
    return _load_template().render(
        title=title,
        parts=[Markup(each.html) for each in made],  # noqa: S704 - made by the same template
        address=address,
        nonce=nonce,
        library=Markup(library) if charts else "",  # noqa: S704
        css=Markup((_read_page_file("uplot/uPlot.min.css") if charts else "") + _read_page_file("page.css")),  # noqa: S704
        js=Markup(_read_page_file("page.js")),  # noqa: S704
    )


def make_page_parts(document: Document) -> list[PagePart]:
    """Return the parts of the page of a document, in order."""
    macros: Any = _load_template().module
    times = find_shown_times(document)
    warnings = [text for each in document.elements if isinstance(each, Warnings) for text in each.texts]
    rest = [each for each in document.elements if not isinstance(each, Warnings)]
    if document.verdict is not None and document.verdict.details:
        details = Items([Item(text) for text in document.verdict.details])
        rest.append(Section("Details", [details], is_folded=True))
    sections = [*_give_ids(_group_into_sections(rest))]
    named = [(name, each.title) for name, each in sections if each.title]
    found = [PagePart("contents", macros.contents(named)), PagePart("head", macros.head(document))]
    if document.verdict is not None:
        found.append(PagePart("verdict", macros.verdict(document.verdict, "verdict")))
    if warnings:
        found.append(PagePart("warnings", macros.warnings(warnings, 2, "warnings")))

    draw = partial(draw_chart, times=times)
    found += [PagePart(name, macros.part(each, name, draw)) for name, each in sections]
    return [PagePart(each.id, str(each.html)) for each in found if each.html]


def _group_into_sections(elements: Iterable[Element]) -> Iterator[Section]:
    """Yield sections; what stands between them is one without a title."""
    for is_section, found in groupby(elements, lambda each: isinstance(each, Section)):
        if is_section:
            yield from (each for each in found if isinstance(each, Section))
        else:
            yield Section("", [*found])


def _give_ids(sections: Iterable[Section]) -> Iterator[tuple[str, Section]]:
    """Yield sections, each with an id that says what its title does; a number where that is not enough."""
    known = {"", "contents", "head", "verdict", "warnings"}
    for place, each in enumerate(sections):
        words = re.sub("[^a-z0-9]+", "-", each.title.lower()).strip("-")[:40]
        name = f"part-{place}" if words in known else words
        known.add(name)
        yield name, each


@cache
def _load_template() -> Template:
    """Return what makes pages; it escapes all texts, and replaces what controls how a line reads."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        finalize=lambda value: (
            make_printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
        ),
    )
    environment.filters["blocks"] = group_charts
    environment.filters["cut"] = lambda text, most=_MAX_CELL_CHARACTERS: text[:most]
    environment.filters["line"] = _draw_tile_line
    environment.filters["bars"] = _draw_bars_path
    environment.filters["at"] = _axis_position
    environment.tests["long_name"] = _is_long_name
    environment.tests["note"] = lambda value: isinstance(value, Note)
    return environment.from_string(_read_page_file("page.html.jinja"))


def _is_long_name(value: str | Cell) -> bool:
    """Whether a cell is one long word, which may be broken anywhere where a page is printed."""
    text = value if isinstance(value, str) else value.text
    return len(text) > _MAX_WHOLE_WORD and " " not in text


def _axis_position(span: DrawnInterval, value: float, beyond: float | None = None) -> str:
    """Return where a value is on the axis of a span, in percent, or how far it is ``beyond`` another."""
    start = 0.0 if beyond is None else span.place(beyond)
    return f"{100 * (span.place(value) - start):.2f}%"


def _draw_tile_line(tile: Tile) -> str:
    """Return the points of the line of a tile, from 0 at the bottom; empty where there is nothing to draw."""
    values = _thin_values([value for value in tile.values if not math.isnan(value)])
    if len(values) < 2:
        return ""
    most = max(values) or 1.0
    step = _TILE_WIDTH / (len(values) - 1)
    places = (
        (step * place, _TILE_HEIGHT - 1 - (_TILE_HEIGHT - 3) * value / most)
        for place, value in enumerate(values)
    )
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _draw_bars_path(shares: Sequence[float]) -> str:
    """Return the path of bars from the bottom, each one wide; what is below a twentieth is not drawn."""
    heights = ((place, round(10 * min(share, 1.0), 1)) for place, share in enumerate(shares) if share >= 0.05)
    return "".join(f"M{place} 10v-{height:g}h1v{height:g}" for place, height in heights)


def _thin_values(values: list[float]) -> list[float]:
    """Return at most so many values as a tile shows, means of those that follow each other."""
    width = -(-len(values) // _MAX_TILE_POINTS)
    groups = [values[place : place + width] for place in range(0, len(values), width)] if width > 1 else None
    return values if groups is None else [sum(group) / len(group) for group in groups]


@cache
def _read_page_file(name: str) -> str:
    return resources.files("ssbench.document").joinpath(name).read_text("utf-8")
