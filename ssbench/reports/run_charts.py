"""Charts of a run for its page: tiles, latencies by percentile, histograms, and the time line.

The time line shows operations, latency, errors, users, the load generator and the cluster. Its curves have at
most a thousand points (:mod:`ssbench.statistics.over_time`).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, cast

import numpy as np
from msgspec.structs import replace

from ssbench.document.elements import (
    BLACK,
    CURVE_COLOURS,
    GREY,
    INK,
    RED,
    SLATE,
    Chart,
    Curve,
    Element,
    Heat,
    Tile,
    Tiles,
    Tone,
)
from ssbench.document.figures import BUSY_CPU_SHARE, FIGURES, MIN_RESULTS_BEYOND, count_needed_results
from ssbench.document.units import DASH, format_number, format_percent, format_seconds
from ssbench.results.cluster_observation import Observation
from ssbench.scenario.operations import OperationKind, OperationTable
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.over_time import BinSeries, BinsOverTime
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import asked_load, delivered_load

_MILLISECOND = 1e-3

#: Kinds of lines, which distinguish what is of one operation: a colour is an operation.
CURVE_DASHES = ("solid", "dashed", "dotted")

#: Points of a curve of percentiles in each decade of what lies beyond.
_POINTS_A_DECADE = 10


def curve_name(operation: OperationKind | None) -> str:
    """Return what a chart calls an operation, None being all of them."""
    return operation.name.upper() if operation else "ALL"


def curve_colour(operation: OperationKind | None) -> str:
    """Return the colour of an operation in all charts."""
    return SLATE if operation is None else CURVE_COLOURS[operation.code % len(CURVE_COLOURS)]


def latency_axis_unit(statistics: RunStatistics) -> str:
    """Return what charts of latencies have on their axis: in an open loop these do not begin when due."""
    return "ms since sent" if statistics.run.scenario.is_open else "ms"


def bin_middles(over_time: BinsOverTime) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the middle of each bin."""
    return over_time.starts + over_time.seconds / 2


def make_percentile_curve(name: str, latencies: Latencies, colour: str) -> Curve | None:
    """Return latency by percentile, from the least on; x is 1 / (1 - share).

    It ends where fewer latencies lie beyond than a percentile needs. None where that leaves out the median.
    """
    last = latencies.count / MIN_RESULTS_BEYOND
    if last < 2:
        return None
    x = np.unique(np.append(np.geomspace(1.0, last, int(_POINTS_A_DECADE * np.log10(last)) + 3), 2.0))
    y = latencies.percentiles([round(100 - 100 / place, 7) for place in x[1:].tolist()])
    return Curve(name, x, np.array([latencies.minimum, *y]) / _MILLISECOND, colour, width=2.0)


# -- Charts of latencies ---------------------------------------------------------------------------


#: (latencies of the most frequent operation, buckets an octave of a histogram, what such a bucket is called).
_BUCKET_SIZES = ((5000, 8, "eighth"), (1000, 4, "quarter"), (0, 2, "half"))

#: With fewer buckets than this a histogram is drawn as points too.
_MIN_LINE_BUCKETS = 8


def make_latency_charts(statistics: RunStatistics) -> Iterator[Chart]:
    """Yield latencies by percentile, their histogram, and those of size classes."""
    found = {
        section.operation: section.lines[0].last_byte
        for section in statistics.sections[1:]
        if section.operation and section.lines[0].last_byte.count
    }
    if not found:
        return
    yield from _by_percentile(
        "Latency by percentile",
        (make_percentile_curve(curve_name(row), each, curve_colour(row)) for row, each in found.items()),
        f"Curves end where fewer than {MIN_RESULTS_BEYOND} latencies lie beyond.",
        latency_axis_unit(statistics),
    )
    what = f"% of an operation in each {_fineness(found)[1]} of an octave"
    yield Chart(
        "Histogram of latencies", what, _histogram(found), axis=latency_axis_unit(statistics), digits=2
    )


def make_size_class_charts(statistics: RunStatistics) -> Iterator[Chart]:
    """Yield latencies by percentile of the size classes of each operation that has several."""
    for section in statistics.sections[1:]:
        if section.operation and len(section.lines) > 2 and section.lines[0].last_byte.count:
            colour = curve_colour(section.operation)
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
        make_percentile_curve(curve_name(each.operation), each.due.response, curve_colour(each.operation))
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


def _fineness(latencies: Mapping[OperationKind, Latencies]) -> tuple[int, str]:
    """Return how many buckets an octave has, so that chance does not decide what is in them, and a word."""
    most = max(each.count for each in latencies.values())
    return next((number, word) for least, number, word in _BUCKET_SIZES if most >= least)


def _histogram(latencies: Mapping[OperationKind, Latencies]) -> list[Curve]:
    """Return the share of each bucket, over the buckets of all operations."""
    per_octave, _ = _fineness(latencies)
    found = {row: each.histogram(per_octave) for row, each in latencies.items()}
    edges = np.unique(np.concatenate([each[0] for each in found.values()]))
    middle = np.sqrt(edges[:-1] * edges[1:]) / _MILLISECOND
    # Buckets are equal parts of an octave, which on the logarithmic axis are not of equal width.
    parts = per_octave * np.log2(edges[1:] / edges[:-1])
    curves = []
    for row, (own, counts) in found.items():
        shares = np.zeros(len(edges) - 1)
        place = int(np.searchsorted(edges, own[0]))
        shares[place : place + len(counts)] = 100 * counts / max(counts.sum(), 1)
        curves.append(
            Curve(
                curve_name(row),
                middle,
                shares / parts,
                curve_colour(row),
                width=1.8,
                pointed=len(middle) < _MIN_LINE_BUCKETS,
            )
        )
    return curves


# -- The time line ---------------------------------------------------------------------------------


_MEGABYTE = 1e6

#: By operation; None: all of them.
_Series = Mapping[OperationKind | None, BinSeries]

#: Stalls and gaps that are shaded at most.
_MAX_SHADED = 50

#: The least share of a time line that can be seen.
_MIN_SHADED_SHARE = 0.002


def make_time_line_charts(statistics: RunStatistics) -> Iterator[Chart]:
    """Yield what happened over time, of operations, users, the load generator and the cluster.

    None where this was not collected.
    """
    found = statistics.over_time
    if found is None:
        return
    shaded, note = _shaded_spans(statistics, found)
    unit = latency_axis_unit(statistics)
    series = _ordered_series(found, statistics.run.scenario.operation_table)
    shown = [Chart("Operations", "ops/s", _rate_curves(found, series, bytes_=False))]
    if latency := [*_latencies_over_time(found, series)]:
        shown.append(Chart("Latency", unit, latency, log=True, digits=2, note=_left_out(found)))
    if found.heat.size:
        shown.append(_heat(found, unit))
    if throughput := _rate_curves(found, series, bytes_=True):
        shown.append(Chart("Throughput", "MB/s", throughput, digits=2))
    if failures := [*_failure_curves(found)]:
        shown.append(Chart("Errors", "errors/s", failures, digits=2))
    if found.under_way.any():
        busy = Curve("in flight", bin_middles(found), found.under_way, SLATE, width=1.8)
        shown.append(Chart("Users", "operations in flight", [busy, *_user_curves(statistics, found)]))
    shown += _generator_charts(statistics)
    shown += find_cluster_report().make_observation_charts(statistics)
    marks = [*_stage_marks(statistics), *_event_marks(statistics)]
    shown[0] = replace(shown[0], note=note)
    yield from (replace(each, shaded=shaded, marks=marks) for each in shown)


def _heat(over_time: BinsOverTime, unit: str) -> Chart:
    """Return how latencies of all operations were spread, with their median and the upper end of the band."""
    x = np.append(over_time.starts, over_time.starts[-1] + over_time.seconds[-1])
    every = over_time.operations[None]
    ranks = dict.fromkeys((50, over_time.upper_rank))
    curves = [
        Curve(f"ALL p{rank}", bin_middles(over_time), values / _MILLISECOND, INK, width=1.6, dash=dash)
        for rank, values, dash in zip(ranks, (every.p50, every.upper), ("solid", "dashed"), strict=False)
    ]
    return Chart(
        "Latency of all operations",
        unit,
        curves,
        log=True,
        digits=2,
        note="The stronger a cell, the more operations per second took that long.",
        heat=Heat(x, over_time.heat_edges / _MILLISECOND, over_time.heat),
    )


def _generator_charts(statistics: RunStatistics) -> Iterator[Chart]:
    """Yield the CPU and the lag of the load generator: of its workers, and of the master."""
    samples, start = statistics.generator.load, statistics.start
    if start is None or not samples:
        return
    x = np.array([each.until - each.seconds / 2 - start for each in samples])

    def drawn(values: Iterable[float | None], name: str, dash: str, factor: float) -> Curve:
        y = np.array([np.nan if value is None else factor * value for value in values])
        return Curve(name, x, y, GREY, width=1.8, dash=dash)

    cpu = [
        drawn((each.worker_cpu for each in samples), "busiest worker", "solid", 100),
        drawn((each.master_cpu for each in samples), "master", "dashed", 100),
    ]
    lag = [
        drawn((each.worker_lag for each in samples), "latest worker", "solid", 1000),
        drawn((each.master_lag for each in samples), "master", "dashed", 1000),
    ]
    yield Chart("Load generator: CPU", "% of a core", cpu)
    yield Chart("Load generator: lag of its event loops", "ms, at most", lag, digits=2)


def _user_curves(statistics: RunStatistics, over_time: BinsOverTime) -> Iterator[Curve]:
    """Yield how many users there are, where that does not change."""
    scenario = statistics.run.scenario
    if not scenario.is_staged:
        x = bin_middles(over_time)
        yield Curve("users", x, np.full(len(x), float(scenario.user_count)), GREY, width=1.0, dash="dotted")


def _failure_curves(over_time: BinsOverTime) -> Iterator[Curve]:
    """Yield failures a second by cause; all are red, and distinguished by their lines."""
    x, seconds = bin_middles(over_time), np.maximum(over_time.seconds, 1e-9)
    causes = sorted(over_time.causes.items(), key=lambda item: -int(item[1].sum()))
    for place, (cause, counts) in enumerate(causes):
        yield Curve(cause[:60], x, counts / seconds, RED, width=1.8, dash=CURVE_DASHES[min(place, 2)])


def _stage_marks(statistics: RunStatistics) -> list[tuple[float, str]]:
    """Return where each stage begins, with its name."""
    start = statistics.start
    if start is None or len(statistics.stages) < 2:
        return []
    return [
        (max(0.0, each.facts.begins - start), each.name)
        for each in statistics.stages
        if each.facts is not None
    ]


def _event_marks(statistics: RunStatistics) -> list[tuple[float, str]]:
    """Return where commands were run, with the beginning of each."""
    return [(each.start, each.facts.command[:40]) for each in statistics.events if each.start is not None]


def _shaded_spans(
    statistics: RunStatistics, over_time: BinsOverTime
) -> tuple[list[tuple[float, float, str]], str]:
    """Return the drain, stalls and gaps, and words for those that there are."""
    course, start = statistics.course, statistics.start
    if course is None or start is None:
        return [], ""
    end = float(over_time.starts[-1] + over_time.seconds[-1])
    drain = (
        [(course.window.seconds, end, GREY)] if end - course.window.seconds > _MIN_SHADED_SHARE * end else []
    )
    stalls = [(stall.start, stall.start + stall.seconds, RED) for stall in course.stalls[:_MAX_SHADED]]
    gaps = [
        (gap.start - start, gap.start + gap.seconds - start, BLACK)
        for gap in statistics.generator.gaps[:_MAX_SHADED]
    ]
    words = [
        name
        for name, found in (
            ("light grey: after sending had ended", drain),
            ("red: stalls", stalls),
            ("dark grey: the load generator itself stalled", gaps),
        )
        if found
    ]
    return drain + stalls + gaps, f"Shaded {'; '.join(words)}." if words else ""


def _ordered_series(over_time: BinsOverTime, operations: OperationTable) -> _Series:
    """Return series in the order of the report, all together last."""
    found: _Series = {row: own for row in operations if (own := over_time.operations.get(row.code))}
    return found if len(found) == 1 else {**found, None: over_time.operations[None]}


def _rate_curves(over_time: BinsOverTime, series: _Series, *, bytes_: bool) -> list[Curve]:
    seconds = np.maximum(over_time.seconds, 1e-9)
    return [
        Curve(
            curve_name(row),
            bin_middles(over_time),
            (each.moved / _MEGABYTE if bytes_ else each.count) / seconds,
            curve_colour(row),
            width=1.2 if row is None else 1.8,
        )
        for row, each in series.items()
        if row is None or not bytes_ or each.moved.any()
    ]


def _latencies_over_time(over_time: BinsOverTime, series: _Series) -> Iterator[Curve]:
    """Yield a band for each operation, from p50 up, and the maximum if asked for."""
    x, place = bin_middles(over_time), 0
    rank_above = over_time.upper_rank
    # Where a run is too short for percentiles, the maximum is all that there is to see.
    short = all(np.isnan(each.p50).all() for row, each in series.items() if row is not None)
    for row, each in series.items():
        if row is None:
            continue
        name, colour = curve_name(row), curve_colour(row)
        below: int | None = None
        for rank, values, width, dash, hidden in (
            ("p50", each.p50, 2.2, "solid", False),
            *([(f"p{rank_above}", each.upper, 1.2, "dashed", False)] if rank_above > 50 else ()),
            ("max", each.maximum, 1.0, "dotted", not short),
        ):
            if np.isnan(values).all():
                continue
            down_to = below if rank not in {"p50", "max"} else None
            yield Curve(
                f"{name} {rank}",
                x,
                values / _MILLISECOND,
                colour,
                width=width,
                dash=dash,
                down_to=down_to,
                hidden=hidden,
            )
            below, place = place, place + 1


def _left_out(over_time: BinsOverTime) -> str:
    """Return why percentiles have no points in some intervals; empty where they have all."""
    ranks = dict.fromkeys((50, over_time.upper_rank))
    lacking = [
        f"p{rank} needs {count_needed_results(rank):,}"
        for rank, name in zip(ranks, ("p50", "upper"), strict=False)
        if any(
            np.isnan(getattr(each, name)[~np.isnan(each.maximum)]).any()
            for each in over_time.operations.values()
        )
    ]
    return (
        f"No point where too few operations ended ({', '.join(lacking)} in one interval)." if lacking else ""
    )


# -- The tiles -----------------------------------------------------------------------------------


def make_run_tiles(statistics: RunStatistics) -> Tiles:
    """Return the tiles of a run; none of one without results."""
    return Tiles([] if statistics.start is None else [*_result_tiles(statistics)])


def _result_tiles(statistics: RunStatistics) -> Iterator[Tile]:
    total, over_time = statistics.total, statistics.over_time
    asked, delivered = asked_load(statistics), delivered_load(statistics)
    everything = over_time.operations[None] if over_time else None
    lasted = np.maximum(over_time.seconds, 1e-9) if over_time else np.empty(0)
    courses: dict[str, Sequence[float]] = {}
    if everything is not None and over_time is not None:
        courses = {
            "rate": (everything.count / lasted).tolist(),
            "mb_per_s": (everything.moved / lasted).tolist(),
            "p50": everything.p50.tolist(),
            "p99": everything.p99.tolist(),
            "errors": everything.failed.tolist() if total.failed else [],
            "users": over_time.under_way.tolist(),
        }
    notes = {
        "rate": f"of {format_number(asked.rate)} asked for" if asked.rate else "",
        "errors": f"{format_percent(FIGURES['errors'].share(total, statistics))} % of all"
        if total.failed
        else "",
    }
    for key in ("rate", "mb_per_s", "p50", "p99", "errors"):
        figure = FIGURES[key]
        yield Tile(
            figure.title,
            figure.text(total, statistics),
            "ms" if figure.unit.shown == "ms" and figure.text(total, statistics) != DASH else "",
            notes.get(key, ""),
            Tone.BAD if key == "errors" and total.failed else None,
            courses.get(key, ()),
        )
    if delivered.users is not None:
        yield Tile(
            "users busy",
            format_number(delivered.users),
            f"of {asked.users:g}" if asked.users else "",
            values=courses.get("users", ()),
        )
    yield from _generator_tiles(statistics)


def _generator_tiles(statistics: RunStatistics) -> Iterator[Tile]:
    """Yield how busy the load generator itself was: its busiest process."""
    own = statistics.generator
    shares = [("a worker", each.cpu_share) for each in own.workers]
    shares += [("the master", own.master.cpu_share)] if own.master else []
    known = [(share, who) for who, share in shares if share is not None]
    if not known:
        return
    share, who = max(known)
    stalled = sum(gap.seconds for gap in own.gaps)
    note = f"stalled for {format_seconds(stalled)} s" if stalled else f"of a core: {who}"
    yield Tile(
        "generator CPU",
        format_percent(share),
        "%",
        note,
        _tone(share, limited=bool(own.limits or stalled)),
    )


def _tone(share: float, *, limited: bool) -> Tone | None:
    return Tone.DOUBTFUL if limited or share > BUSY_CPU_SHARE else None


# -- The cluster beside the run ------------------------------------------------------------------


#: It is found by its name, because the cluster is a package that only some runs need.
_CLUSTER_MODULE = "ssbench.cluster.report"


class ClusterReport(Protocol):
    """The functions of that module."""

    @staticmethod
    def make_observation_notes(observation: Observation | None) -> list[Element]:
        """Return what the full report says; nothing where the cluster was not observed."""

    @staticmethod
    def make_observation_elements(statistics: RunStatistics) -> Iterator[Element]:
        """Yield sentences and tables; none where the cluster was not observed."""

    @staticmethod
    def make_observation_charts(statistics: RunStatistics) -> list[Chart]:
        """Return charts over the time of the run; none where the cluster was not observed."""


def find_cluster_report() -> ClusterReport:
    """Return what makes the parts of a report that are about the cluster."""
    return cast(ClusterReport, importlib.import_module(_CLUSTER_MODULE))
