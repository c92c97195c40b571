"""A document as one page of HTML that needs nothing from elsewhere, for light and dark screens.

Its size does not grow with the run: tables have at most two hundred rows, texts are cut. A page is put
together from parts, one for each section, so that a reader during a run gets those that have changed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import groupby
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from ssbench.base.printable import make_printable
from ssbench.document.drawing import draw_chart, find_charts, find_shown_times, group_charts
from ssbench.document.elements import Document, DrawnInterval, Element, Note, Section, Tile, View

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
    return make_page(document.title, make_page_parts(document), charts=charts)


def make_page(
    title: str, made: Sequence[PagePart], *, charts: bool = True, address: str = "", nonce: str = ""
) -> str:
    """Return a page of these parts; what changes them comes from ``address``, where there is one.

    ``nonce`` is that of the scripts of the page, where it is served.
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
    sections = [*_give_ids(_group_into_sections(document.elements))]
    named = [(name, each.title) for name, each in sections if each.title]
    found = [PagePart("contents", macros.contents(named)), PagePart("head", macros.head(document))]
    if document.verdict is not None:
        found.append(PagePart("verdict", macros.verdict(document.verdict, "verdict")))

    def drawn_of(chart: Any) -> Any:
        return draw_chart(chart, times)

    found += [PagePart(name, macros.part(each, name, drawn_of)) for name, each in sections]
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
    known = {"", "contents", "head", "verdict"}
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
    environment.tests["note"] = lambda value: isinstance(value, Note)
    return environment.from_string(_read_page_file("page.html.jinja"))


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
