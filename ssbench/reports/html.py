"""The report as one file of HTML, with charts to zoom into, that needs nothing from elsewhere.

Its size does not grow with the run: curves over time have at most a thousand points
(:mod:`ssbench.statistics.over_time`), tables at most two hundred rows. The charts are Bokeh's, whose script
is 1.3 MB of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ssbench.document import Chart, Curve, Tone, Verdict
from ssbench.document.colours import BLUE, COLOURS, GREY, ORANGE, RED
from ssbench.document.columns import plural
from ssbench.figures import needed
from ssbench.operations import OPERATIONS
from ssbench.reports import html_cluster, html_tables, load
from ssbench.reports.curves import by_percentile, colour_of, middles, name_of
from ssbench.reports.figures import utc
from ssbench.reports.html_page import Part, page
from ssbench.reports.options import ReportOptions
from ssbench.reports.verdict import verdict
from ssbench.statistics import Latencies, OverTime, RunStatistics, Series, waits

_MEGABYTE = 1e6
_MILLISECOND = 1e-3

#: Stalls and gaps that are shaded at most.
_MOST_SHADED = 50

#: (latencies of the most frequent operation, buckets an octave of a histogram, what such a bucket is called).
_FINENESS = ((5000, 8, "eighth"), (1000, 4, "quarter"), (0, 2, "half"))

#: With fewer buckets than this a histogram is drawn as points too.
_FEW_BUCKETS = 8


def report(
    statistics: RunStatistics,
    options: ReportOptions,
    first: Sequence[Part] = (),
    above: Verdict | None = None,
) -> str:
    """Return the page; the statistics must have been collected with ``over_time``.

    ``first`` are sections that come before those of every run, ``above`` comes before the verdict on the
    run.
    """
    found = verdict(statistics, options)
    headline = found.title
    if above is not None:
        sentences = (*above.sentences, f"The run: {found.title}.", *found.sentences)
        headline = above.title
        found = Verdict(max(above.tone, found.tone, key=[*Tone].index), above.title, sentences)
    parts = [
        *first,
        Part("Operations", body=html_tables.operations(statistics)),
        *_over_time(statistics),
        *_latencies(statistics),
        *_load(statistics),
    ]
    for title, body in (
        ("Sides", html_tables.sides(statistics)),
        (
            waits.TITLE,
            html_tables.warnings([waits.sentence(wait) for wait in statistics.waits]),
        ),
        ("Warnings", html_tables.warnings(statistics.warnings)),
        ("Errors", html_tables.errors(statistics)),
        ("Slowest operations", html_tables.slowest(statistics)),
        ("Workers", html_tables.workers(statistics)),
        ("Storage URLs", html_tables.storage_urls(statistics)),
    ):
        if body:
            parts.append(Part(title, body=body))
    parts += html_cluster.parts(statistics)
    parts.append(Part("Parameters", body=html_tables.parameters(statistics)))
    return page(
        statistics.run.scenario.name, found.tone.value, headline, found.sentences, _what(statistics), parts
    )


def _what(statistics: RunStatistics) -> str:
    run, scenario = statistics.run, statistics.run.scenario
    facts = [
        plural(scenario.user_count, "user"),
        plural(statistics.worker_count, "worker"),
        f"{statistics.duration:,.1f} s from {utc(statistics.start)}",
        f"policy {scenario.policy}" if scenario.policy else "",
        ", ".join(run.storage_urls[:3]) + (", ..." if len(run.storage_urls) > 3 else ""),
        f"ssbench {run.version}",
    ]
    return " \u00b7 ".join(filter(None, facts))


def _over_time(statistics: RunStatistics) -> Iterator[Part]:
    over_time = statistics.over_time
    if over_time is None:
        return
    shaded, note = _shaded(statistics, over_time)
    series = _ordered(over_time)
    throughput = _rates(over_time, series, bytes_=True)
    yield Part(
        "Over time",
        [
            Chart("Operations", "ops/s", _rates(over_time, series, bytes_=False), shaded=shaded, note=note),
            *([Chart("Throughput", "MB/s", throughput, digits=2, shaded=shaded)] if throughput else []),
            *(
                Chart(
                    *(f"Latency of {name_of(code)}", "ms", curves),
                    log=True,
                    digits=2,
                    shaded=shaded,
                    note=_left_out(each),
                )
                for code, each in series.items()
                if code is not None and (curves := _latency(over_time, code, each))
            ),
        ],
    )


def _shaded(statistics: RunStatistics, over_time: OverTime) -> tuple[list[tuple[float, float, str]], str]:
    """Return the stages, the drain, stalls and gaps, and words for those that there are."""
    course, start = statistics.course, statistics.start
    if course is None or start is None:
        return [], ""
    end = float(over_time.starts[-1] + over_time.seconds[-1])
    stages = [
        (each.facts.begins - start, min(each.facts.ends - start, end), BLUE)
        for each in statistics.stages[1::2]
        if each.facts is not None
    ]
    drain = [(course.window.seconds, end, GREY)] if end > course.window.seconds else []
    stalls = [(stall.start, stall.start + stall.seconds, RED) for stall in course.stalls[:_MOST_SHADED]]
    gaps = [
        (gap.start - start, gap.start + gap.seconds - start, ORANGE)
        for gap in statistics.generator.gaps[:_MOST_SHADED]
    ]
    words = [
        name
        for name, found in (
            ("blue: every second stage", stages),
            ("grey: after the last moment of sending", drain),
            ("red: stalls", stalls),
            ("orange: the load generator itself stood still", gaps),
        )
        if found
    ]
    return stages + drain + stalls + gaps, f"Shaded {'; '.join(words)}." if words else ""


def _ordered(over_time: OverTime) -> Mapping[int | None, Series]:
    """Return series in the order of the report, all together last."""
    codes: list[int | None] = [each.code for each in OPERATIONS if each.code in over_time.operations]
    if len(codes) != 1:
        codes.append(None)
    return {code: over_time.operations[code] for code in codes}


def _rates(over_time: OverTime, series: Mapping[int | None, Series], *, bytes_: bool) -> list[Curve]:
    seconds = np.maximum(over_time.seconds, 1e-9)
    return [
        Curve(
            name_of(code),
            middles(over_time),
            (each.moved / _MEGABYTE if bytes_ else each.count) / seconds,
            colour_of(code),
            width=1.2 if code is None else 1.8,
        )
        for code, each in series.items()
        if code is None or not bytes_ or each.moved.any()
    ]


def _latency(over_time: OverTime, code: int, each: Series) -> list[Curve]:
    """Return the percentiles of an operation over time, its failures marked above them."""
    x, colour = middles(over_time), colour_of(code)
    curves = [
        Curve("p50", x, each.p50 / _MILLISECOND, colour, width=2.2),
        Curve("p99", x, each.p99 / _MILLISECOND, colour, width=1.4, dash="dashed"),
        Curve("max", x, each.maximum / _MILLISECOND, GREY, width=1.2, dash="dotted"),
    ]
    curves = [curve for curve in curves if not np.isnan(curve.y).all()]
    if each.failed.any():
        known = each.maximum[~np.isnan(each.maximum)]
        usual = float(np.median(known)) if len(known) else 1.0
        height = np.where(each.failed > 0, np.nan_to_num(each.maximum, nan=usual) / _MILLISECOND, np.nan)
        curves.append(Curve("errors", x, height, RED, markers=True, shown=each.failed))
    return curves


def _left_out(each: Series) -> str:
    """Return why percentiles of an operation have no points in some intervals; empty where they have all."""
    measured = ~np.isnan(each.maximum)
    lacking = [
        f"p{rank} needs {needed(rank):,}"
        for rank, values in ((50, each.p50), (99, each.p99))
        if np.isnan(values[measured]).any()
    ]
    return (
        f"No point where too few operations ended ({', '.join(lacking)} in one interval)." if lacking else ""
    )


def _latencies(statistics: RunStatistics) -> Iterator[Part]:
    latencies = {
        section.operation.code: section.lines[0].last_byte
        for section in statistics.sections[1:]
        if section.operation and section.lines[0].last_byte.count
    }
    if not latencies:
        return
    classes = [
        Chart(
            f"{section.operation.name.upper()} by size class",
            "ms",
            [
                by_percentile(line.size_class, line.last_byte, COLOURS[place % len(COLOURS)])
                for place, line in enumerate(section.lines[1:13])
                if line.size_class and line.last_byte.count
            ],
            axis="percentile",
            log=True,
            digits=2,
        )
        for section in statistics.sections[1:]
        if section.operation and len(section.lines) > 2 and section.lines[0].last_byte.count
    ]
    yield Part(
        "Latency",
        [
            Chart(
                "Latency by percentile",
                "ms",
                [by_percentile(name_of(code), each, colour_of(code)) for code, each in latencies.items()],
                axis="percentile",
                log=True,
                digits=2,
                note="To the right of where fewer than ten latencies lie beyond, chance decides.",
            ),
            Chart(
                "Histogram of latencies",
                f"% of an operation in each {_fineness(latencies)[1]} of an octave",
                _histogram(latencies),
                axis="ms",
                digits=2,
            ),
            *classes,
        ],
    )


def _load(statistics: RunStatistics) -> Iterator[Part]:
    """Yield what is known of the load: of operations that were due, and of stages."""
    due = statistics.total.due
    charts = []
    if due.response.count and due.lateness.count:
        sections = [each for each in statistics.sections[1:] if each.operation and each.due.response.count]
        curves = [
            by_percentile(name_of(each.operation.code), each.due.response, colour_of(each.operation.code))
            for each in sections
            if each.operation
        ]
        if len(curves) != 1:
            curves.append(by_percentile(name_of(None), due.response, colour_of(None)))
        curves.append(replace(by_percentile("lateness of all sends", due.lateness, RED), dash="dotted"))
        charts.append(
            Chart(
                "Response time by percentile",
                "ms",
                curves,
                axis="percentile",
                log=True,
                digits=2,
                note="From when an operation was due to its last byte; lateness is the part before the send.",
            )
        )
    lines = [line.strip() for line in load.section(statistics)][2:]
    body = html_tables.lines(lines) + html_tables.stages(statistics)
    if charts or body:
        yield Part("Load", charts, body)


def _fineness(latencies: Mapping[int, Latencies]) -> tuple[int, str]:
    """Return how many buckets an octave has, so that chance does not decide what is in them, and a word."""
    most = max(each.count for each in latencies.values())
    return next((number, word) for least, number, word in _FINENESS if most >= least)


def _histogram(latencies: Mapping[int, Latencies]) -> list[Curve]:
    """Return the share of each bucket, over the buckets of all operations."""
    per_octave, _ = _fineness(latencies)
    found = {code: each.histogram(per_octave) for code, each in latencies.items()}
    edges = np.unique(np.concatenate([each[0] for each in found.values()]))
    middle = np.sqrt(edges[:-1] * edges[1:]) / _MILLISECOND
    # Buckets are equal parts of an octave, which on the logarithmic axis are not of equal width.
    parts = per_octave * np.log2(edges[1:] / edges[:-1])
    curves = []
    for code, (own, counts) in found.items():
        shares = np.zeros(len(edges) - 1)
        place = int(np.searchsorted(edges, own[0]))
        shares[place : place + len(counts)] = 100 * counts / max(counts.sum(), 1)
        curves.append(
            Curve(
                name_of(code),
                middle,
                shares / parts,
                colour_of(code),
                width=1.8,
                pointed=len(middle) < _FEW_BUCKETS,
            )
        )
    return curves
