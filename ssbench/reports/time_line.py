"""The time line of a page: operations, latency, errors, users, load generator and cluster.

Curves have at most a thousand points (:mod:`ssbench.statistics.over_time`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from msgspec.structs import replace

from ssbench.document.colours import BLACK, GREY, INK, RED, SLATE
from ssbench.document.elements import Chart, Curve, Heat
from ssbench.document.figures import count_needed_results
from ssbench.reports.beside import find_cluster_report
from ssbench.reports.curves import CURVE_DASHES, bin_middles, curve_colour, curve_name, latency_axis_unit
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.statistics.over_time import BinSeries, BinsOverTime
from ssbench.statistics.run_statistics import RunStatistics

_MEGABYTE = 1e6
_TIME_LINE_MILLISECOND = 1e-3

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
    series = _ordered_series(found)
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
    shown += find_cluster_report().charts(statistics)
    marks = _stage_marks(statistics)
    shown[0] = replace(shown[0], note=note)
    yield from (replace(each, shaded=shaded, marks=marks) for each in shown)


def _heat(over_time: BinsOverTime, unit: str) -> Chart:
    """Return how latencies of all operations were spread, with their median and the upper end of the band."""
    x = np.append(over_time.starts, over_time.starts[-1] + over_time.seconds[-1])
    every = over_time.operations[None]
    ranks = dict.fromkeys((50, over_time.upper_rank))
    curves = [
        Curve(
            f"ALL p{rank}", bin_middles(over_time), values / _TIME_LINE_MILLISECOND, INK, width=1.6, dash=dash
        )
        for rank, values, dash in zip(ranks, (every.p50, every.upper), ("solid", "dashed"), strict=False)
    ]
    return Chart(
        "Latency of all operations",
        unit,
        curves,
        log=True,
        digits=2,
        note="The stronger a cell, the more operations per second took that long.",
        heat=Heat(x, over_time.heat_edges / _TIME_LINE_MILLISECOND, over_time.heat),
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


def _ordered_series(over_time: BinsOverTime) -> Mapping[int | None, BinSeries]:
    """Return series in the order of the report, all together last."""
    codes: list[int | None] = [each.code for each in OPERATIONS if each.code in over_time.operations]
    if len(codes) != 1:
        codes.append(None)
    return {code: over_time.operations[code] for code in codes}


def _rate_curves(
    over_time: BinsOverTime, series: Mapping[int | None, BinSeries], *, bytes_: bool
) -> list[Curve]:
    seconds = np.maximum(over_time.seconds, 1e-9)
    return [
        Curve(
            curve_name(code),
            bin_middles(over_time),
            (each.moved / _MEGABYTE if bytes_ else each.count) / seconds,
            curve_colour(code),
            width=1.2 if code is None else 1.8,
        )
        for code, each in series.items()
        if code is None or not bytes_ or each.moved.any()
    ]


def _latencies_over_time(over_time: BinsOverTime, series: Mapping[int | None, BinSeries]) -> Iterator[Curve]:
    """Yield a band for each operation, from p50 up, and the maximum if asked for."""
    x, place = bin_middles(over_time), 0
    rank_above = over_time.upper_rank
    # Where a run is too short for percentiles, the maximum is all that there is to see.
    short = all(np.isnan(each.p50).all() for code, each in series.items() if code is not None)
    for code, each in series.items():
        if code is None:
            continue
        name, colour = curve_name(code), curve_colour(code)
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
                values / _TIME_LINE_MILLISECOND,
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
