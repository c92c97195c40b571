"""Charts of a run: over time, of latencies, of the load. Pages have them.

Curves over time have at most a thousand points (:mod:`ssbench.statistics.over_time`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ssbench.document import Chart, Curve
from ssbench.document.colours import BLACK, GREY, RED
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

#: Lines of size classes, which have the colour of their operation.
_DASHES = ("solid", "dashed", "dotted")

#: With fewer buckets than this a histogram is drawn as points too.
_FEW_BUCKETS = 8


def over_time(statistics: RunStatistics) -> Iterator[Chart]:
    """Yield rates and latencies over time; none where these were not collected."""
    found = statistics.over_time
    if found is None:
        return
    shaded, note = _shaded(statistics, found)
    series = _ordered(found)
    charts = [Chart("Operations", "ops/s", _rates(found, series, bytes_=False))]
    if latency := [*_latencies_over_time(found, series)]:
        lacking = _left_out(series.values())
        charts.append(Chart("Latency", "ms", latency, log=True, digits=2, note=lacking))
    if throughput := _rates(found, series, bytes_=True):
        charts.append(Chart("Throughput", "MB/s", throughput, digits=2))
    if failures := [*_failures(found)]:
        charts.append(Chart("Errors", "errors/s", failures, digits=2))
    if found.under_way.any():
        busy = Curve("operations under way", middles(found), found.under_way, GREY, width=1.8)
        charts.append(Chart("Users", "operations under way", [busy, *_asked(statistics, found)]))
    marks = _marks(statistics)
    charts[0] = replace(charts[0], note=note)
    yield from (replace(each, shaded=shaded, marks=marks) for each in charts)


def _asked(statistics: RunStatistics, over_time: OverTime) -> Iterator[Curve]:
    """Yield how many users there are, where that does not change."""
    scenario = statistics.run.scenario
    if not scenario.stages:
        x = middles(over_time)
        yield Curve("users", x, np.full(len(x), float(scenario.user_count)), GREY, width=1.0, dash="dotted")


def _failures(over_time: OverTime) -> Iterator[Curve]:
    """Yield failures a second by cause; all are red, and told apart by their lines."""
    x, seconds = middles(over_time), np.maximum(over_time.seconds, 1e-9)
    dashes = ("solid", "dashed", "dotted")
    causes = sorted(over_time.causes.items(), key=lambda item: -int(item[1].sum()))
    for place, (cause, counts) in enumerate(causes):
        yield Curve(cause[:60], x, counts / seconds, RED, width=1.8, dash=dashes[min(place, 2)])


def _marks(statistics: RunStatistics) -> list[tuple[float, str]]:
    """Return where each stage begins, with its name."""
    start = statistics.start
    if start is None or len(statistics.stages) < 2:
        return []
    return [
        (max(0.0, each.facts.begins - start), each.name)
        for each in statistics.stages
        if each.facts is not None
    ]


def _shaded(statistics: RunStatistics, over_time: OverTime) -> tuple[list[tuple[float, float, str]], str]:
    """Return the drain, stalls and gaps, and words for those that there are."""
    course, start = statistics.course, statistics.start
    if course is None or start is None:
        return [], ""
    end = float(over_time.starts[-1] + over_time.seconds[-1])
    drain = [(course.window.seconds, end, GREY)] if end > course.window.seconds else []
    stalls = [(stall.start, stall.start + stall.seconds, RED) for stall in course.stalls[:_MOST_SHADED]]
    gaps = [
        (gap.start - start, gap.start + gap.seconds - start, BLACK)
        for gap in statistics.generator.gaps[:_MOST_SHADED]
    ]
    words = [
        name
        for name, found in (
            ("light grey: after the last moment of sending", drain),
            ("red: stalls", stalls),
            ("dark grey: the load generator itself stalled", gaps),
        )
        if found
    ]
    return drain + stalls + gaps, f"Shaded {'; '.join(words)}." if words else ""


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


def _latencies_over_time(over_time: OverTime, series: Mapping[int | None, Series]) -> Iterator[Curve]:
    """Yield p50 and p99 of each operation, with what is between them filled, and the maximum if asked for."""
    x, place = middles(over_time), 0
    for code, each in series.items():
        if code is None:
            continue
        name, colour = name_of(code), colour_of(code)
        below: int | None = None
        for rank, values, width, dash, hidden in (
            ("p50", each.p50, 2.2, "solid", False),
            ("p99", each.p99, 1.2, "dashed", False),
            ("max", each.maximum, 1.0, "dotted", True),
        ):
            if np.isnan(values).all():
                continue
            down_to = below if rank == "p99" else None
            yield Curve(
                f"{name} {rank}",
                x,
                values / _MILLISECOND,
                colour,
                width=width,
                dash=dash,
                down_to=down_to,
                # Where a run is too short for percentiles, the maximum is all that there is to see.
                hidden=hidden and below is not None,
            )
            below, place = place, place + 1


def _left_out(series: Iterable[Series]) -> str:
    """Return why percentiles have no points in some intervals; empty where they have all."""
    lacking = [
        f"p{rank} needs {needed(rank):,}"
        for rank, name in ((50, "p50"), (99, "p99"))
        if any(np.isnan(getattr(each, name)[~np.isnan(each.maximum)]).any() for each in series)
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
                replace(
                    by_percentile(line.size_class, line.last_byte, colour_of(section.operation.code)),
                    dash=_DASHES[place % len(_DASHES)],
                    width=2.4 - 1.2 * place / 12,
                )
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
