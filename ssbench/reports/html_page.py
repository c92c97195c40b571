"""The page around a report in HTML: one file without anything from elsewhere, for light and dark screens."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources

from ssbench.document import Chart, Curve
from ssbench.document.drawing import Drawn, draw, library
from ssbench.printable import printable


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the page: charts side by side, then HTML that is safe already."""

    title: str
    charts: Sequence[Chart] = ()
    body: str = ""


def escape(text: object) -> str:
    """Return a text that HTML shows as it is."""
    return html.escape(printable(str(text)))


def page(
    title: str, tone: str, headline: str, sentences: Iterable[str], what: str, parts: Sequence[Part]
) -> str:
    """Return the page. ``tone`` is good, doubtful or bad; all texts but the parts' bodies are plain."""
    script, drawn = draw(chart for part in parts for chart in part.charts)
    rest = map(_block, drawn)
    sections = []
    for part in parts:
        own = "".join(next(rest) for _ in part.charts)
        charts = f"<div class=charts>{own}</div>" if own else ""
        sections.append(f"<section><h2>{escape(part.title)}</h2>{charts}{part.body}</section>")
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    bokeh = f"<script>{library()}</script>" if script else ""
    return (
        "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><link rel=icon href=data:,>"
        f"<style>{_file('page.css')}</style>{bokeh}</head>\n"
        f"<body><h1>{escape(title)}</h1><p class=what>{escape(what)}</p>"
        f"<div class='verdict {tone}'><strong>{escape(headline)}</strong><ul>{items}</ul></div>"
        f"<noscript><p>The charts need JavaScript.</p></noscript>{''.join(sections)}"
        f"<script>{script}</script><script>{_file('page.js')}</script></body></html>\n"
    )


def _block(drawn: Drawn) -> str:
    chart = drawn.chart
    buttons = "".join(_button(curve, name) for curve, name in drawn.curves)
    note = f"<p class=note>{html.escape(chart.note)}</p>" if chart.note else ""
    head = f"{html.escape(chart.title)} <small>{html.escape(chart.unit)}</small>"
    legend = f"<div class=legend>{buttons}</div>"
    return f"<figure><figcaption>{head}</figcaption>{drawn.place}{legend}{note}</figure>"


def _button(curve: Curve, name: str) -> str:
    """Return the button that shows and hides a curve."""
    look = "markers" if curve.markers else curve.dash
    return (
        f'<button type=button class="series {look}" data-name={name} aria-pressed=true>'
        f'<i style="--colour:{curve.colour}"></i>{html.escape(curve.name)}</button>'
    )


def _file(name: str) -> str:
    return resources.files("ssbench.document").joinpath(name).read_text("utf-8")
