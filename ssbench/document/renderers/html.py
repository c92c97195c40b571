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

from ssbench.base.printable import printable
from ssbench.document.drawing import blocks, charts_of, draw, times_of
from ssbench.document.elements import Document, Element, Note, Section, Span, Tile, View

#: Characters of a cell or a warning beyond this are cut off.
_MOST_CELL = 200

#: The size of the picture of a tile, and the most points of its line.
_WIDE, _HIGH, _MOST_POINTS = 120, 28, 60


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a page, with the id of its element."""

    id: str
    html: str


def render(document: Document, _view: View) -> str:
    """Return the page."""
    charts = any(True for _ in charts_of(document.elements))
    return page(document.title, parts(document), charts=charts)


def page(title: str, made: Sequence[Part], *, charts: bool = True, address: str = "", nonce: str = "") -> str:
    """Return a page of these parts; what changes them comes from ``address``, where there is one.

    ``nonce`` is that of the scripts of the page, where it is served.
    """
    library = f"/*\n{_file('uplot/LICENSE')}*/\n{_file('uplot/uPlot.iife.min.js')}"
    return _template().render(
        title=title,
        parts=[Markup(each.html) for each in made],  # noqa: S704 - made by the same template
        address=address,
        nonce=nonce,
        library=Markup(library) if charts else "",  # noqa: S704
        css=Markup((_file("uplot/uPlot.min.css") if charts else "") + _file("page.css")),  # noqa: S704
        js=Markup(_file("page.js")),  # noqa: S704
    )


def parts(document: Document) -> list[Part]:
    """Return the parts of the page of a document, in order."""
    macros: Any = _template().module
    times = times_of(document)
    sections = [*_with_ids(_sections(document.elements))]
    named = [(name, each.title) for name, each in sections if each.title]
    found = [Part("contents", macros.contents(named)), Part("head", macros.head(document))]
    if document.verdict is not None:
        found.append(Part("verdict", macros.verdict(document.verdict, "verdict")))

    def drawn_of(chart: Any) -> Any:
        return draw(chart, times)

    found += [Part(name, macros.part(each, name, drawn_of)) for name, each in sections]
    return [Part(each.id, str(each.html)) for each in found if each.html]


def _sections(elements: Iterable[Element]) -> Iterator[Section]:
    """Yield sections; what stands between them is one without a title."""
    for is_section, found in groupby(elements, lambda each: isinstance(each, Section)):
        if is_section:
            yield from (each for each in found if isinstance(each, Section))
        else:
            yield Section("", [*found])


def _with_ids(sections: Iterable[Section]) -> Iterator[tuple[str, Section]]:
    """Yield sections, each with an id that says what its title does; a number where that is not enough."""
    known = {"", "contents", "head", "verdict"}
    for place, each in enumerate(sections):
        words = re.sub("[^a-z0-9]+", "-", each.title.lower()).strip("-")[:40]
        name = f"part-{place}" if words in known else words
        known.add(name)
        yield name, each


@cache
def _template() -> Template:
    """Return what makes pages; it escapes all texts, and replaces what controls how a line reads."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        finalize=lambda value: (
            printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
        ),
    )
    environment.filters["blocks"] = blocks
    environment.filters["cut"] = lambda text, most=_MOST_CELL: text[:most]
    environment.filters["line"] = _line
    environment.filters["bars"] = _bars
    environment.filters["at"] = _at
    environment.tests["note"] = lambda value: isinstance(value, Note)
    return environment.from_string(_file("page.html.jinja"))


def _at(span: Span, value: float, beyond: float | None = None) -> str:
    """Return where a value is on the axis of a span, in percent, or how far it is ``beyond`` another."""
    start = 0.0 if beyond is None else span.place(beyond)
    return f"{100 * (span.place(value) - start):.2f}%"


def _line(tile: Tile) -> str:
    """Return the points of the line of a tile, from 0 at the bottom; empty where there is nothing to draw."""
    values = _thinned([value for value in tile.values if not math.isnan(value)])
    if len(values) < 2:
        return ""
    most = max(values) or 1.0
    step = _WIDE / (len(values) - 1)
    places = ((step * place, _HIGH - 1 - (_HIGH - 3) * value / most) for place, value in enumerate(values))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _bars(shares: Sequence[float]) -> str:
    """Return the path of bars from the bottom, each one wide; what is below a twentieth is not drawn."""
    heights = ((place, round(10 * min(share, 1.0), 1)) for place, share in enumerate(shares) if share >= 0.05)
    return "".join(f"M{place} 10v-{height:g}h1v{height:g}" for place, height in heights)


def _thinned(values: list[float]) -> list[float]:
    """Return at most so many values as a tile shows, means of those that follow each other."""
    width = -(-len(values) // _MOST_POINTS)
    groups = [values[place : place + width] for place in range(0, len(values), width)] if width > 1 else None
    return values if groups is None else [sum(group) / len(group) for group in groups]


@cache
def _file(name: str) -> str:
    return resources.files("ssbench.document").joinpath(name).read_text("utf-8")
