"""Charts of a run: over time, of latencies, of the load. Pages have them.

Curves over time have at most a thousand points (:mod:`ssbench.statistics.over_time`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ssbench.document import Chart, Curve
from ssbench.document.colours import BLUE, COLOURS, GREY, ORANGE, RED
from ssbench.figures import needed
from ssbench.operations import OPERATIONS
from ssbench.reports.curves import by_percentile, colour_of, middles, name_of
from ssbench.statistics import Latencies, OverTime, RunStatistics, Series

_MEGABYTE = 1e6
_MILLISECOND = 1e-3

#: Stalls and gaps that are shaded at most.
_MOST_SHADED = 50

#: (latencies of the most frequent operation, buckets an octave of a histogram, what such a bucket is called).
_FINENESS = ((5000, 8, "eighth"), (1000, 4, "quarter"), (0, 2, "half"))

#: With fewer buckets than this a histogram is drawn as points too.
_FEW_BUCKETS = 8


def over_time(statistics: RunStatistics) -> Iterator[Chart]:
    """Yield rates and latencies over time; none where these were not collected."""
    found = statistics.over_time
    if found is None:
        return
    shaded, note = _shaded(statistics, found)
    series = _ordered(found)
    yield Chart("Operations", "ops/s", _rates(found, series, bytes_=False), shaded=shaded, note=note)
    if throughput := _rates(found, series, bytes_=True):
        yield Chart("Throughput", "MB/s", throughput, digits=2, shaded=shaded)
    for code, each in series.items():
        if code is not None and (curves := _latency(found, code, each)):
            title = f"Latency of {name_of(code)}"
            yield Chart(title, "ms", curves, log=True, digits=2, shaded=shaded, note=_left_out(each))


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
            ("orange: the load generator itself stalled", gaps),
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


def latencies(statistics: RunStatistics) -> Iterator[Chart]:
    """Yield latencies by percentile, their histogram, and those of size classes."""
    found = {
        section.operation.code: section.lines[0].last_byte
        for section in statistics.sections[1:]
        if section.operation and section.lines[0].last_byte.count
    }
    if not found:
        return
    yield _by_percentile(
        "Latency by percentile",
        [by_percentile(name_of(code), each, colour_of(code)) for code, each in found.items()],
        "To the right of where fewer than ten latencies lie beyond, chance decides.",
    )
    what = f"% of an operation in each {_fineness(found)[1]} of an octave"
    yield Chart("Histogram of latencies", what, _histogram(found), axis="ms", digits=2)
    for section in statistics.sections[1:]:
        if section.operation and len(section.lines) > 2 and section.lines[0].last_byte.count:
            curves = [
                by_percentile(line.size_class, line.last_byte, COLOURS[place % len(COLOURS)])
                for place, line in enumerate(section.lines[1:13])
                if line.size_class and line.last_byte.count
            ]
            yield _by_percentile(f"{section.operation.name.upper()} by size class", curves)


def _by_percentile(title: str, curves: Sequence[Curve], note: str = "") -> Chart:
    return Chart(title, "ms", curves, axis="percentile", log=True, digits=2, note=note)


def load(statistics: RunStatistics) -> Iterator[Chart]:
    """Yield the response times of operations that were due; none of a closed loop."""
    due = statistics.total.due
    if not (due.response.count and due.lateness.count):
        return
    curves = [
        by_percentile(name_of(each.operation.code), each.due.response, colour_of(each.operation.code))
        for each in statistics.sections[1:]
        if each.operation and each.due.response.count
    ]
    if len(curves) != 1:
        curves.append(by_percentile(name_of(None), due.response, colour_of(None)))
    curves.append(replace(by_percentile("lateness of all sends", due.lateness, RED), dash="dotted"))
    yield _by_percentile(
        "Response time by percentile",
        curves,
        "From when an operation was due to its last byte; lateness is the part before the send.",
    )


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
