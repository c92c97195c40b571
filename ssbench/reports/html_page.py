"""The page around a report in HTML: one file without anything from elsewhere, for light and dark screens."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources

from bokeh.resources import Resources

from ssbench.printable import printable
from ssbench.reports.html_charts import Chart, render


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
    script, blocks = render(chart for part in parts for chart in part.charts)
    rest = iter(blocks)
    sections = []
    for part in parts:
        own = "".join(next(rest) for _ in part.charts)
        charts = f"<div class=charts>{own}</div>" if own else ""
        sections.append(f"<section><h2>{escape(part.title)}</h2>{charts}{part.body}</section>")
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    library = f"<script>{_bokeh()}</script>" if script else ""
    return (
        "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><link rel=icon href=data:,>"
        f"<style>{_file('page.css')}</style>{library}</head>\n"
        f"<body><h1>{escape(title)}</h1><p class=what>{escape(what)}</p>"
        f"<div class='verdict {tone}'><strong>{escape(headline)}</strong><ul>{items}</ul></div>"
        f"<noscript><p>The charts need JavaScript.</p></noscript>{''.join(sections)}"
        f"<script>{script}</script><script>{_file('page.js')}</script></body></html>\n"
    )


def _bokeh() -> str:
    """Return the script that draws charts, as its wheel has it; what else Bokeh brings sets its log level."""
    scripts: list[str] = Resources(mode="inline", components=["bokeh"]).js_raw
    return max(scripts, key=len)


def _file(name: str) -> str:
    return resources.files("ssbench.reports").joinpath(name).read_text("utf-8")
