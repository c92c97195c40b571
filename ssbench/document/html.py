"""A document as one page of HTML that needs nothing from elsewhere, for light and dark screens.

Its size does not grow with the run: tables have at most two hundred rows, texts are cut. Charts are Bokeh's,
whose script is 1.3 MB of a page; Bokeh is loaded only for a document with charts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from itertools import groupby

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from ssbench.document.elements import Chart, Document, Element, Note, Section, View
from ssbench.printable import printable

#: Characters of a cell or a warning beyond this are cut off.
_MOST_CELL = 200


def render(document: Document, _view: View) -> str:
    """Return the page; needs Bokeh where the document has charts."""
    charts = [*_charts(document.elements)]
    script = library = ""
    drawn = {}
    if charts:
        # Only here: Bokeh takes seconds to import, and need not be installed.
        from ssbench.document import drawing  # noqa: PLC0415

        script, found = drawing.draw(charts)
        library = drawing.library()
        drawn = {id(chart): each for chart, each in zip(charts, found, strict=True)}
    return _template().render(
        document=document,
        drawn_of=lambda chart: drawn[id(chart)],
        script=Markup(script),  # noqa: S704 - Bokeh's, see drawing.draw
        library=Markup(library),  # noqa: S704
        css=Markup(_file("page.css")),  # noqa: S704
        js=Markup(_file("page.js")),  # noqa: S704
    )


def _charts(elements: Iterable[Element]) -> Iterator[Chart]:
    for each in elements:
        if isinstance(each, Chart):
            yield each
        elif isinstance(each, Section):
            yield from _charts(each.elements)


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
    environment.filters["blocks"] = _blocks
    environment.filters["cut"] = lambda text, most=_MOST_CELL: text[:most]
    environment.tests["note"] = lambda value: isinstance(value, Note)
    return environment.from_string(_file("page.html.jinja"))


def _blocks(elements: Iterable[Element]) -> Iterator[tuple[str, object]]:
    """Yield the kind of each element, and the element; charts that follow each other are one block."""
    for kind, found in groupby(elements, lambda each: type(each).__name__):
        if kind == "Chart":
            yield kind, [*found]
        else:
            yield from ((kind, each) for each in found)


def _file(name: str) -> str:
    return resources.files("ssbench.document").joinpath(name).read_text("utf-8")
