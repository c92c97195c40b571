"""Charts of a run: of latencies, of the load. Pages have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from msgspec.structs import replace

from ssbench.document.colours import GREY
from ssbench.document.elements import Chart, Curve
from ssbench.document.figures import MIN_RESULTS_BEYOND
from ssbench.reports.curves import (
    CURVE_DASHES,
    curve_colour,
    curve_name,
    latency_axis_unit,
    make_percentile_curve,
)
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.run_statistics import RunStatistics

_CHART_MILLISECOND = 1e-3

#: (latencies of the most frequent operation, buckets an octave of a histogram, what such a bucket is called).
_BUCKET_SIZES = ((5000, 8, "eighth"), (1000, 4, "quarter"), (0, 2, "half"))

#: With fewer buckets than this a histogram is drawn as points too.
_MIN_LINE_BUCKETS = 8


def make_latency_charts(statistics: RunStatistics) -> Iterator[Chart]:
    """Yield latencies by percentile, their histogram, and those of size classes."""
    found = {
        section.operation.code: section.lines[0].last_byte
        for section in statistics.sections[1:]
        if section.operation and section.lines[0].last_byte.count
    }
    if not found:
        return
    yield from _by_percentile(
        "Latency by percentile",
        (make_percentile_curve(curve_name(code), each, curve_colour(code)) for code, each in found.items()),
        f"Curves end where fewer than {MIN_RESULTS_BEYOND} latencies lie beyond.",
        latency_axis_unit(statistics),
    )
    what = f"% of an operation in each {_fineness(found)[1]} of an octave"
    yield Chart(
        "Histogram of latencies", what, _histogram(found), axis=latency_axis_unit(statistics), digits=2
    )
    for section in statistics.sections[1:]:
        if section.operation and len(section.lines) > 2 and section.lines[0].last_byte.count:
            colour = curve_colour(section.operation.code)
            curves = [
                replace(curve, dash=CURVE_DASHES[place % len(CURVE_DASHES)], width=2.4 - 1.2 * place / 12)
                for place, line in enumerate(section.lines[1:13])
                if line.size_class
                and (curve := make_percentile_curve(line.size_class, line.last_byte, colour))
            ]
            title = f"{section.operation.name.upper()} by size class"
            yield from _by_percentile(title, curves, unit=latency_axis_unit(statistics))


def _by_percentile(
    title: str, curves: Iterable[Curve | None], note: str = "", unit: str = "ms"
) -> Iterator[Chart]:
    """Yield a chart; none where all curves have too few latencies."""
    if known := [curve for curve in curves if curve is not None]:
        yield Chart(title, unit, known, axis="percentile", log=True, digits=2, note=note)


def make_response_time_charts(statistics: RunStatistics) -> Iterator[Chart]:
    """Yield the response times of operations that were due; none of a closed loop."""
    due = statistics.total.due
    if not (due.response.count and due.lateness.count):
        return
    curves = [
        make_percentile_curve(
            curve_name(each.operation.code), each.due.response, curve_colour(each.operation.code)
        )
        for each in statistics.sections[1:]
        if each.operation and each.due.response.count
    ]
    if len(curves) != 1:
        curves.append(make_percentile_curve(curve_name(None), due.response, curve_colour(None)))
    if late := make_percentile_curve("lateness of all sends", due.lateness, GREY):
        curves.append(replace(late, dash="dotted"))
    yield from _by_percentile(
        "Response time by percentile",
        curves,
        "From when an operation was due to its last byte; lateness is the part before the send.",
    )


def _fineness(latencies: Mapping[int, Latencies]) -> tuple[int, str]:
    """Return how many buckets an octave has, so that chance does not decide what is in them, and a word."""
    most = max(each.count for each in latencies.values())
    return next((number, word) for least, number, word in _BUCKET_SIZES if most >= least)


def _histogram(latencies: Mapping[int, Latencies]) -> list[Curve]:
    """Return the share of each bucket, over the buckets of all operations."""
    per_octave, _ = _fineness(latencies)
    found = {code: each.histogram(per_octave) for code, each in latencies.items()}
    edges = np.unique(np.concatenate([each[0] for each in found.values()]))
    middle = np.sqrt(edges[:-1] * edges[1:]) / _CHART_MILLISECOND
    # Buckets are equal parts of an octave, which on the logarithmic axis are not of equal width.
    parts = per_octave * np.log2(edges[1:] / edges[:-1])
    curves = []
    for code, (own, counts) in found.items():
        shares = np.zeros(len(edges) - 1)
        place = int(np.searchsorted(edges, own[0]))
        shares[place : place + len(counts)] = 100 * counts / max(counts.sum(), 1)
        curves.append(
            Curve(
                curve_name(code),
                middle,
                shares / parts,
                curve_colour(code),
                width=1.8,
                pointed=len(middle) < _MIN_LINE_BUCKETS,
            )
        )
    return curves
