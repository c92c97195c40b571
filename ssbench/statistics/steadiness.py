"""How a run went over time: its window and seconds, stalls, drift, and its warm-up (``--warmup auto``)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import msgspec
import numpy as np
from msgspec.structs import replace

from ssbench.base.record import PerhapsShare, Seconds
from ssbench.document.units import format_change_size, format_latency, format_number, format_seconds
from ssbench.results.block import ResultBlock
from ssbench.statistics.by_second import BySecond, LatencyTable
from ssbench.statistics.confidence import (
    MIN_STEADY_SECONDS,
    MIN_STEP_SECONDS,
    Interval,
    Series,
    Step,
    estimate_drift,
    find_step,
    find_warm_up,
    is_steady,
    mean_interval,
)
from ssbench.statistics.counted_figures import CountedFigures
from ssbench.statistics.latencies import measured_latencies
from ssbench.statistics.level_changes import MIN_VALUES, Change, ChangeShape, find_change
from ssbench.statistics.stalls import Stall
from ssbench.statistics.tally import count_values
from ssbench.statistics.timeline import EachSecond, ResultTimeline, Window

#: In shorter runs a cut is as likely noise as a warm-up.
_MIN_WARM_UP_SECONDS = 60

#: A warm-up is left out where that moves one of these percentiles of latency, or the rate, by more than this
#: share of what its interval allows; less than all of it, because what is left is most of what there was.
_PERCENTILE_SHARES = (0.5, 0.95, 0.99)
_MIN_MOVED_ERRORS = 0.6

#: The median latency changed where one level is so many times the other, in runs of which this share of the
#: seconds has any latency.
_MIN_LATENCY_RATIO = 1.5
_MIN_MEASURED_SHARE = 0.8


class Steadiness(msgspec.Struct, frozen=True):
    """What the successes of each second say of a run as a whole."""

    drift: Interval | None  # change of the rate a minute as a share of the mean; None: the run was too short
    #: False where there is a step, and where the drift shows that the rate was still changing at the end.
    steady: bool
    #: What to leave out at the beginning: 0 where that would not change a figure by more than its interval
    #: says; None where it is not known: the run was shorter than a minute, or not steady by its half.
    warm_up: Seconds | None
    step: Step | None = None  # when the rate changed from one level to another
    change: Change | None = None  # how it changed otherwise, in operations a second
    latency: Change | None = None  # how the median latency of each second changed, in seconds
    drifting: bool = False  # whether the drift is beyond chance, and more than 5 % of the mean

    def warning(self) -> str | None:
        """Say that the run was not steady; None where it was, or nothing is known."""
        if self.steady:
            return None
        if self.step is not None and (self.drift is None or not self.step.gradual):
            return _describe_step(self.step)
        if self.change is not None or not self.drifting:
            return f"the run was not steady: its {next(self.describe_changes())}"
        if self.drift is None:
            return None
        change = (self.drift.low + self.drift.high) / 2
        return (
            f"the run was not steady by its end: its rate {'rose' if change > 0 else 'fell'} by"
            f" {format_change_size(abs(change))} % a minute; a longer run, or --warmup, would say more"
        )

    def describe_decline(self) -> Iterator[str]:
        """Yield how the rate fell, or the median latency rose, and did not recover."""
        lasting = {ChangeShape.STEP, ChangeShape.SLOPE}
        change, latency = self.change, self.latency
        if self.step is not None:
            change = Change(ChangeShape.STEP, self.step.at, math.inf, self.step.before, self.step.after)
        if change is not None and change.shape in lasting and change.after < change.before:
            yield f"rate {_describe_change(change, format_number, ' ops/s')}"
        elif change is None and self.drifting and self.drift is not None and self.drift.high < 0:
            yield f"rate fell by {format_change_size(-(self.drift.low + self.drift.high) / 2)} % a minute"
        if latency is not None and latency.shape in lasting and latency.after > latency.before:
            yield f"median latency {_describe_change(latency, format_latency)}"

    def describe_changes(self) -> Iterator[str]:
        """Yield how the rate changed, other than by a step, and how the median latency did."""
        if self.change is not None:
            yield f"rate {_describe_change(self.change, format_number, ' ops/s')}"
        if self.latency is not None:
            yield f"median latency {_describe_change(self.latency, format_latency)}"


def _describe_change(change: Change, form: Callable[[float], str], unit: str = "") -> str:
    """Say how a figure changed; ``form`` writes a value of it without its unit."""
    moved = "fell" if change.after < change.before else "rose"
    start, end = format_seconds(change.start), format_seconds(change.end)
    levels = f"from {form(change.before)} to {form(change.after)}{unit}"
    other, around = f"{form(change.after)}{unit}", f"{form(change.before)}{unit}"
    if change.shape is ChangeShape.SLOPE:
        return f"{moved} evenly {levels} during it"
    if change.shape is ChangeShape.STEP:
        return f"{moved} {levels} {start} s after its start"
    if change.shape is ChangeShape.PASSING:
        return f"was {other} from {start} to {end} s after its start, and {around} before and after that"
    without = f"--warmup {math.ceil(change.end)} would exclude the time before"
    return f"was {other} in the first {end} s, then {around}; {without}"


def _describe_step(step: Step) -> str:
    """Say when the rate changed, from what to what."""
    levels = f"from {format_number(step.before)} to {format_number(step.after)} ops/s"
    moment = f"{format_seconds(step.at)} s after its start"
    if step.after < step.before:
        return f"the run was not steady: its rate fell {levels} {moment}; its figures mix both levels"
    without = f"--warmup {math.ceil(step.at)} would exclude the time before"
    return f"the run was not steady: its rate rose {levels} {moment}; {without}"


def judge_steadiness(series: Series, start: float, latencies: LatencyTable) -> Steadiness:
    """Judge the successes of the whole seconds of the clock after ``start``, and their latencies."""
    cut = find_warm_up(series) if len(series) >= _MIN_WARM_UP_SECONDS else None
    if cut and not _matters(series, cut, latencies, math.ceil(start) + cut):
        cut = 0
    offset = math.ceil(start) - start
    step, change = find_step(series, offset), None
    if step is None:
        step, change = _find_other_change(series, offset)
    drifts = not is_steady(series)
    latency = _find_latency_change(latencies, start, len(series))
    is_same = step is None and change is None and latency is None and not drifts
    return Steadiness(estimate_drift(series), is_same, cut, step, change, latency, drifts)


def _matters(series: Series, cut: int, latencies: LatencyTable, second: int) -> bool:
    """Whether leaving out what ended before a second, the first ``cut`` of a series, moves a figure."""
    left = series[cut:]
    rate = mean_interval(left)
    if rate is not None and abs(float(series.mean() - left.mean())) > _MIN_MOVED_ERRORS * rate.half_width:
        return True
    later = latencies.since(second)
    for share in _PERCENTILE_SHARES:
        ranks = later.ranks(share)
        if ranks is None or ranks.high > 1:
            continue
        whole, value = latencies.percentile(share), later.percentile(share)
        end = later.percentile(ranks.high if whole > value else ranks.low)
        if abs(whole - value) > _MIN_MOVED_ERRORS * abs(end - value):
            return True
    return False


def _find_other_change(series: Series, offset: float) -> tuple[Step | None, Change | None]:
    """Return the step of a short run, or how the rate changed otherwise; None of what it did not.

    Seconds in which nothing ended are stalls, and are found as such.
    """
    if not len(series) or not (series > 0).any():
        return None, None
    usual = float(series[series > 0].mean())
    values = np.where(series > 0, series, usual) / usual - 1
    found = find_change(
        values, offset, longest_step=MIN_STEP_SECONDS - 1, longest_slope=MIN_STEADY_SECONDS - 1
    )
    if found is None:
        return None, None
    before, after = (max(0.0, usual * (1 + each)) for each in (found.before, found.after))
    if found.shape is ChangeShape.STEP:
        return Step(found.start, before, after, gradual=False), None
    return None, replace(found, before=before, after=after)


def _find_latency_change(latencies: LatencyTable, start: float, count: int) -> Change | None:
    """Return how the median latency of the seconds changed, in which most had a latency."""
    seconds, medians, _ = latencies.percentiles(0.5)
    first = math.ceil(start)
    inside = (seconds >= first) & (seconds < first + count)
    seconds, medians = seconds[inside], medians[inside]
    if len(seconds) < max(MIN_VALUES, _MIN_MEASURED_SHARE * count):
        return None
    series = np.interp(np.arange(first, first + count), seconds, medians)
    # Noise multiplies latencies, while what a queue adds to them rises evenly.
    times = np.arange(float(count)) - (count - 1) / 2
    line = series.mean() + times * float(times @ series) / float(times @ times)
    logs, curve = np.log(series), np.log(np.maximum(line, series.min() / 2))
    middle = float(logs.mean())
    found = find_change(logs - middle, first - start, curve)
    if found is None:
        return None
    before, after = math.exp(middle + found.before), math.exp(middle + found.after)
    least, most = sorted((before, after))
    return replace(found, before=before, after=after) if most >= _MIN_LATENCY_RATIO * least else None


#: The value of the option ``warmup`` of a run that asks for it.
AUTOMATIC_WARM_UP = "auto"


def find_warm_up_end(blocks: Iterable[ResultBlock]) -> float | None:
    """Return when the warm-up was over, seconds since 1970; None where none was found.

    It takes all results, which then have to be read again. The rule is MSER-5, where that changes a figure.
    """
    timeline, successes = ResultTimeline(), BySecond()
    tables: list[LatencyTable] = []
    for block in blocks:
        if len(block):
            timeline.add(block, block.started)
            count_values(successes.counts, np.floor(block.completed[~block.failed]).astype(np.int64))
            latencies = measured_latencies(block)
            rows = np.flatnonzero(latencies > 0)
            if len(rows):
                tables.append(LatencyTable.of(block.completed[rows], latencies[rows]))
    window = timeline.window()
    if window is None:
        return None
    series, _ = successes.series(window.start, window.end)
    cut = judge_steadiness(series, window.start, LatencyTable.merged(tables)).warm_up
    return window.start + cut if cut else None


class Course(msgspec.Struct, frozen=True, kw_only=True, rename={"moved": "bytes"}):
    """How a run went over time."""

    window: Window  # what rates are counted in
    drain: Seconds  # from the end of the window to the last completion
    busy: PerhapsShare  # part of the users' time in the window in which they had an operation at the store
    pausing: PerhapsShare  # part of it that went into our own pauses between attempts
    operations: EachSecond | None  # successes of each whole second of the window; None where it has none
    moved: EachSecond | None  # bytes that they moved
    stalls: tuple[Stall, ...]  # times in which nothing ended
    steadiness: Steadiness  # whether the rate changed


def make_course(
    timeline: ResultTimeline,
    window: Window,
    total: CountedFigures,
    users: float,
    kinds: Iterable[CountedFigures] = (),
    *,
    idle: bool,
) -> Course:
    """Return the course of a run that had this many users; ``total`` is all of its results.

    ``kinds`` are the same by kind of operation. ``idle`` is whether users are idle at times by intention.
    """
    each = timeline.each_second(window)
    of_all_users = users * window.seconds
    busy = total.window_totals.busy / of_all_users if of_all_users else math.nan
    # Where a token is no longer good, more operations than there are users wait for a new one: what workers
    # had ahead was refused too.
    pausing = total.window_totals.pausing / of_all_users if of_all_users else math.nan
    return Course(
        window=window,
        drain=max(0.0, timeline.last_ended - window.end),
        busy=busy,
        pausing=min(pausing, max(0.0, 1.0 - busy)),
        operations=each[0] if each else None,
        moved=each[1] if each else None,
        steadiness=judge_steadiness(
            total.by_second.series(window.start, window.end)[0], window.start, total.last_byte.by_second
        ),
        stalls=timeline.stalls(
            window, total.last_byte, None if idle else math.ceil(users), (each.last_byte for each in kinds)
        ),
    )
