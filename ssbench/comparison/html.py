"""A comparison as a page of HTML: every change, and the runs laid over each other. Needs Bokeh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ssbench.comparison import formats
from ssbench.comparison.compare import Comparison
from ssbench.comparison.figures import FIGURES
from ssbench.comparison.sides import compare_sides
from ssbench.comparison.texts import cells
from ssbench.comparison.verdict import verdict
from ssbench.reports import html, html_tables
from ssbench.reports.html_charts import COLOURS, Chart, Curve
from ssbench.reports.html_page import Part, escape, page
from ssbench.reports.options import ReportOptions
from ssbench.reports.verdict import Verdict
from ssbench.statistics import RunStatistics

#: Runs of a side that are drawn; the table is of all.
MOST_DRAWN = 8

_BEFORE, _AFTER = COLOURS[0], COLOURS[2]
_HEADS = ("operation", "size class", "figure", "before", "after", "change", "95 % interval", "detects", "")

#: Colours of the words of a change.
_TONES = {
    word: tone for each in FIGURES.values() for word, tone in zip(each.words, ("good", "bad"), strict=True)
}


@dataclass(frozen=True, slots=True)
class RunCurves:
    """What is drawn of a run, which is small: its rate over time, and latency by percentile by operation."""

    rate: Curve | None
    latencies: Mapping[str, Curve]


def curves_of(statistics: RunStatistics, name: str) -> RunCurves:
    """Return the curves of a run whose statistics were counted with ``over_time``."""
    rate = None
    over_time = statistics.over_time
    if over_time is not None:
        seconds = np.maximum(over_time.seconds, 1e-9)
        rate = Curve(name, html.middles(over_time), over_time.operations[None].count / seconds, _BEFORE)
    return RunCurves(
        rate,
        {
            section.operation.name.upper(): html.by_percentile(name, section.lines[0].last_byte, _BEFORE)
            for section in statistics.sections[1:]
            if section.operation and section.lines[0].last_byte.count
        },
    )


def curves_of_sides(statistics: RunStatistics) -> tuple[list[RunCurves], list[RunCurves]]:
    """Return the curves of the two sides of a run, whose statistics were kept apart by ``side``."""
    found = statistics.groups.by("operation", "group")
    before, after = (
        RunCurves(
            None,
            {
                html.name_of(code): html.by_percentile(name, figures.last_byte, _BEFORE)
                for (code, side), figures in found.items()
                if side == place and figures.last_byte.count
            },
        )
        for place, name in enumerate(statistics.run.sides)
    )
    return [before], [after]


def report_of_sides(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the report of a run with two sides: how they compare, then what every report has.

    The statistics must have been collected with ``over_time``, and grouped by ``side``.
    """
    comparison = compare_sides(statistics)
    found = verdict(comparison)
    said = Verdict(
        found.tone,
        f"{comparison.before} to {comparison.after}: {found.headline}",
        tuple(formats.notes(replace(comparison, warnings=()))),
    )
    return html.report(statistics, options, [Part("Changes", body=_table(comparison))], said)


def as_html(comparison: Comparison, before: Sequence[RunCurves], after: Sequence[RunCurves]) -> str:
    """Return the page."""
    names, second, headline = formats.head(comparison)
    return page(
        f"{comparison.before} to {comparison.after}",
        verdict(comparison).tone.value,
        headline[:1].upper() + headline[1:],
        formats.notes(replace(comparison, warnings=())),
        f"{names} \u00b7 {second}",
        [
            Part("Changes", body=_table(comparison)),
            Part("The runs over each other", _charts(before, after)),
            *(
                [Part("Warnings", body=html_tables.warnings(comparison.warnings))]
                if comparison.warnings
                else []
            ),
        ],
    )


def _table(comparison: Comparison) -> str:
    rows = []
    for row in comparison.rows:
        for figure, change in formats.visible(row):
            *numbers, word = cells(FIGURES[figure], change)
            tone = _TONES.get(word, "")
            rows.append(
                [
                    escape(row.operation),
                    escape(row.size_class or ""),
                    escape(FIGURES[figure].compared_head),
                    *map(escape, numbers),
                    f'<span class="{f"word {tone}".strip()}">{escape(word)}</span>',
                ]
            )
    return html_tables.table(_HEADS, rows, texts=3)


def _charts(before: Sequence[RunCurves], after: Sequence[RunCurves]) -> list[Chart]:
    sides = ((before[:MOST_DRAWN], _BEFORE, "solid"), (after[:MOST_DRAWN], _AFTER, "dashed"))

    def drawn(curve: Curve, colour: str, dash: str) -> Curve:
        return replace(curve, colour=colour, dash=dash, name=curve.name[:60])

    rates = [drawn(run.rate, *look) for runs, *look in sides for run in runs if run.rate is not None]
    operations = dict.fromkeys(name for runs, *_ in sides for run in runs for name in run.latencies)
    charts = [Chart("All operations", "ops/s", rates, digits=1)] if rates else []
    for name in operations:
        curves = [
            drawn(run.latencies[name], *look)
            for runs, *look in sides
            for run in runs
            if name in run.latencies
        ]
        charts.append(
            Chart(f"{name}: latency by percentile", "ms", curves, axis="percentile", log=True, digits=2)
        )
    return charts
