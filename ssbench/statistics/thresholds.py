"""Checks the conditions of a run (:mod:`ssbench.scenario.conditions`) against its numbers.

A condition holds, or does not, only where the figure is certainly on one side of its limit: at most 1 of 40
is wrong on each side (:func:`judge_certainty`). A percentile is judged by the share of operations within the
limit. That and the share of errors are judged by the binomial distribution of as many operations as the run
is worth: what a store does in one second is much like what it did in the second before. Rates and means have
intervals from their seconds. What is counted exactly is certain.

Of seconds that drift all of this says little, however far the limit is. So beyond the *reach* of the seconds
(:func:`_find_reach`) chance alone decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from ssbench.base.errors import GateResult
from ssbench.document.figures import Basis
from ssbench.document.units import Unit
from ssbench.scenario.conditions import Condition, parse_condition
from ssbench.statistics.confidence import (
    MIN_SECONDS,
    Series,
    ShareInterval,
    beta_share,
    mean_interval,
    ratio_interval,
    share_ranks,
    t_quantile,
)
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.latency_parts import CensoredLatencies
from ssbench.statistics.run_statistics import FiguresSection, RunStatistics, SectionLine

_TAIL_PROBABILITY = 0.025

#: With so many operations a figure that stays as it is would be decided in 9 of 10 runs: the quantiles of the
#: normal distribution of 97.5 and 90 %.
_NORMAL_QUANTILE = 1.96
_POWER_QUANTILE = 1.28
_DECIDING_ERRORS = _NORMAL_QUANTILE + _POWER_QUANTILE

#: Where fewer times as many operations may do, so many are asked for.
_LEAST_GROWTH = 1.5

#: Nobody runs more operations to decide a condition.
_MAX_OPERATIONS = 1e9

#: e to this is about the largest number that there is.
_MAX_EXPONENT = 700.0

#: Student's t of so many seconds is the normal distribution.
_MANY_SECONDS = 1000.0

#: The number of operations that would decide is searched in such steps.
_SEARCH_STEP = 1.02

#: A figure of a run that is too short for an interval is known to this factor at least, and to so many
#: standard deviations of its seconds, which are worth two; a mean of latencies to so many of its standard
#: errors too, because latencies are far from normal.
_SHORT_RUN_FACTOR = 2.0
_SHORT_DEVIATIONS = 9.0
_SHORT_SECONDS = 3
_SHORT_ERRORS = 3.0

#: No drift is taken to bring a figure this many times beyond its least or greatest second.
_REACH_FACTOR = 10.0


class Certainty(msgspec.Struct, frozen=True):
    """Whether a figure is certainly on one side of its limit."""

    above: bool  # certainly above
    below: bool  # certainly not above
    #: How many operations would tell, as far as that can be reckoned, where neither is certain.
    enough: float | None = None


def judge_certainty(
    statistics: RunStatistics, line: SectionLine, condition: Condition, found: float, most: float
) -> Certainty:
    """Return the certainty of a figure that is ``found`` in the unit of the limit, at most ``most``."""
    row = condition.row
    if row.basis is Basis.SPREAD:
        times = row.times(line) if row.times else None
        if not isinstance(times, (CensoredLatencies, Latencies)):
            rates = _rate_interval(statistics, line, condition, found)
            return _judge_interval(condition, *rates, line.count, found)
        if row.rank is not None:
            return _judge_percentile(times, condition, row.rank / 100, found, most)
        return _judge_interval(condition, *_mean_latency_interval(times, found, most), times.count, found)
    is_sample = row.basis is Basis.COUNT and condition.unit is Unit.SHARE
    if is_sample and row.whole and 0 < condition.limit < 1:
        whole = row.whole(line, statistics)
        own = _judge_errors(line, condition, found, whole) if row.key == "errors" else None
        return own or _judge_share(min(found, 1.0), whole, _Worth(), condition.limit)
    if found == condition.limit:
        return _judge_exact(condition, most)
    return Certainty(found > condition.limit, most < condition.limit)


def _judge_exact(condition: Condition, most: float) -> Certainty:
    """Return the certainty of a figure that is known, and just at the limit: a relation with = holds."""
    above = condition.relation in {">=", "<"}
    return Certainty(above, not above and most <= condition.limit)


def _judge_percentile(
    times: CensoredLatencies | Latencies, condition: Condition, wanted: float, found: float, most: float
) -> Certainty:
    """Judge by the share of operations within the limit; it is above where that is less than ``wanted``."""
    measured = times.measured if isinstance(times, CensoredLatencies) else times
    waited = times.waited if isinstance(times, CensoredLatencies) else None
    limit = condition.limit
    if condition.relation in {">=", "<"}:
        limit = math.nextafter(limit, 0.0)
    every = measured.count + (waited.count if waited else 0)
    within = measured.share_within(limit) * measured.count
    # What never began had waited for less than the limit, or for longer; the former may have been within it.
    perhaps = within + (waited.share_within(limit) * waited.count if waited else 0.0)
    seconds = measured.by_second.percentiles(wanted)[1]
    came = measured.by_second.ranks(wanted)
    share = wanted  # how that percentile came and went is all there is to see where all are on one side
    if came is None:
        near = _judge_short_run(condition, found, most, seconds, every)
        if near is not None:
            return near
    elif _is_beyond(limit, _find_reach(seconds)):
        came = None
    elif 0 < within < measured.count:
        share, came = within / measured.count, measured.by_second.ranks_within(limit)
    low = _judge_share(within / every, every, _find_worth(share, came), wanted)
    high = (
        low if perhaps == within else _judge_share(perhaps / every, every, _find_worth(share, came), wanted)
    )
    return Certainty(
        above=high.below, below=low.above, enough=None if waited and waited.count else low.enough
    )


def _judge_errors(line: SectionLine, condition: Condition, found: float, count: float) -> Certainty | None:
    """Judge a share of errors by how it came and went; None where only the number of operations counts."""
    failed, every = line.by_second.failures()
    came = share_ranks(failed, every, without_chance=False)
    failed, every = failed[every > 0], every[every > 0]
    if came is None:
        return _judge_short_run(condition, found, found, failed / every, count) if found else None
    # Odds have no upper end. In each second half an operation more counts as failed, and half a one as not.
    odds = (failed + 0.5) / (every - failed + 0.5)
    if _is_beyond(condition.limit / (1 - condition.limit), _find_reach(odds)):
        return None
    return _judge_share(min(found, 1.0), count, _find_worth(found, came), condition.limit)


def _find_reach(seconds: Series) -> tuple[float, float]:
    """Return what a figure could not come to by a drift such as that of its seconds, all above 0.

    The level of the seconds is off by as much as its 95 % interval says, on a scale of ratios; counted from
    the least and the greatest second, and at least :data:`_REACH_FACTOR`. Of too few seconds nothing is said.
    """
    if not len(seconds) or seconds.min() <= 0:
        return 0.0, math.inf
    interval = mean_interval(np.log(seconds))
    if interval is None:
        return 0.0, math.inf
    factor = max(_REACH_FACTOR, math.exp(min(interval.half_width, _MAX_EXPONENT)))
    return float(seconds.min()) / factor, float(seconds.max()) * factor


def _is_beyond(limit: float, reach: tuple[float, float]) -> bool:
    return not reach[0] <= limit <= reach[1]


def _judge_short_run(
    condition: Condition, found: float, most: float, seconds: Series, count: float
) -> Certainty | None:
    """Return that a figure of a run too short for an interval is not certain; None where it may be."""
    low, high = _short_interval(found, most, seconds)
    if low > condition.limit or high < condition.limit or low == high:
        return None
    # As many seconds as an interval needs may tell.
    enough = max(MIN_SECONDS / len(seconds), _LEAST_GROWTH) * count if len(seconds) else math.inf
    return Certainty(above=False, below=False, enough=_possible(enough))


def _short_interval(found: float, most: float, seconds: Series) -> tuple[float, float]:
    """Return the interval of a figure of a run too short to show how its seconds depend on each other."""
    low, high = found / _SHORT_RUN_FACTOR, most * _SHORT_RUN_FACTOR
    if len(seconds) >= _SHORT_SECONDS and (mean := float(seconds.mean())):
        half = _SHORT_DEVIATIONS * float(np.std(seconds, ddof=1)) / mean
        low, high = max(low, found * (1 - half)), min(high, most * (1 + half))
    return low, high


class _Worth(msgspec.Struct, frozen=True):
    """How many independent operations those of a run are worth at most."""

    #: Those that have as wide an interval of a share by Student's t of its seconds.
    by_seconds: float = math.inf
    #: Those that scatter as much. A short run hardly knows how much its seconds scatter, which widens its
    #: interval up to sixfold by Student's t; a longer one knows.
    lasting: float = math.inf
    #: Those that have as wide an interval by long batches, which are as few in a longer run.
    by_batches: float = math.inf

    @property
    def known(self) -> float:
        """Those that have as wide an interval as the run."""
        return min(self.by_seconds, self.by_batches)

    @property
    def most(self) -> float:
        """Those that have as wide an interval as a run of which the seconds were many."""
        return min(self.lasting, self.by_batches)

    def of_longer_run(self, times: float) -> float:
        """Return how many those of a run so many times as long are worth, whose seconds scatter as much."""
        if not math.isfinite(self.lasting):
            return self.most * times
        seconds = self._seconds * times
        quantile = (
            t_quantile(1 - _TAIL_PROBABILITY, seconds - 1) if seconds < _MANY_SECONDS else _NORMAL_QUANTILE
        )
        return times * min(self.lasting * (_NORMAL_QUANTILE / quantile) ** 2, self.by_batches)

    @property
    def _seconds(self) -> float:
        """How many independent seconds the interval is of, by its Student's t."""
        quantile = _NORMAL_QUANTILE * math.sqrt(self.lasting / self.by_seconds)
        few, many = 2.0, _MANY_SECONDS
        while many - few > 0.01 * few:
            middle = math.sqrt(few * many)
            few, many = (
                (middle, many) if t_quantile(1 - _TAIL_PROBABILITY, middle - 1) > quantile else (few, middle)
            )
        return many


def _find_worth(share: float, interval: ShareInterval | None) -> _Worth:
    """Return what operations are worth that have this interval of a share; all where it is not known."""
    if interval is None or not 0 < share < 1:
        return _Worth()
    by_seconds, by_batches = (
        _NORMAL_QUANTILE**2 * share * (1 - share) / half**2 if half > 0 else math.inf
        for half in (interval.by_seconds, interval.by_batches)
    )
    return _Worth(by_seconds, max(by_seconds, interval.effective_size), by_batches)


def _judge_share(share: float, count: float, worth: _Worth, limit: float) -> Certainty:
    """Judge a share of ``count`` operations."""
    if not count:
        return Certainty(above=False, below=False)
    size = min(worth.known, count)
    above, below = _share_sides(share, size, limit)
    if above or below:
        return Certainty(above, below)
    enough = _deciding_operations(share, limit, size)
    if enough is None:
        return Certainty(above, below)
    # Where the run is worth less than it might be, somewhat more than it has is needed in any case.
    times = max(1.0 if worth.most == worth.known else _LEAST_GROWTH, enough / min(worth.most, count))
    while times * count <= _MAX_OPERATIONS and worth.of_longer_run(times) < enough:
        times *= _SEARCH_STEP
    return Certainty(above, below, _possible(times * count))


def _share_sides(share: float, size: float, limit: float) -> tuple[bool, bool]:
    """Return whether a share of so many independent operations is certainly above its limit, and below."""
    part = share * size
    # At least, and at most, as many of ``size`` by chance where the share is the limit.
    as_many = beta_share(limit, part, size - part + 1) if part > 0 else 1.0
    as_few = beta_share(1 - limit, size - part, part + 1) if part < size else 1.0
    return as_many <= _TAIL_PROBABILITY, as_few <= _TAIL_PROBABILITY


def _deciding_operations(share: float, limit: float, size: float) -> float | None:
    """Return of how many independent operations a share would be certain; it is not certain of ``size``.

    None: the share is at the limit. A share of 0 or 1 needs as many however long the run was.
    """
    if share == limit:
        return None
    if share in {0.0, 1.0}:
        return math.log(_TAIL_PROBABILITY) / math.log(1 - limit if share == 0 else limit)
    # By chance a run has another share than the store, and a store at the limit than the limit.
    errors = _NORMAL_QUANTILE * math.sqrt(limit * (1 - limit)) + _POWER_QUANTILE * math.sqrt(
        share * (1 - share)
    )
    enough = max(size, (errors / (share - limit)) ** 2)
    # A small share is far from normal: it may take more.
    while enough <= _MAX_OPERATIONS and not any(_share_sides(share, enough, limit)):
        enough *= _SEARCH_STEP
    return enough


def _possible(operations: float) -> float | None:
    return operations if operations <= _MAX_OPERATIONS else None


def _judge_interval(condition: Condition, low: float, high: float, count: float, found: float) -> Certainty:
    """Judge by an interval."""
    above, below = low > condition.limit, high < condition.limit
    if low == high == condition.limit:
        return _judge_exact(condition, high)
    away = abs(found - condition.limit)
    if above or below or not away or not math.isfinite(high - low):
        return Certainty(above, below)
    times = ((high - low) / 2 / away * _DECIDING_ERRORS / _NORMAL_QUANTILE) ** 2
    return Certainty(above, below, _possible(max(times, _LEAST_GROWTH) * count))


def _rate_interval(
    statistics: RunStatistics, line: SectionLine, condition: Condition, found: float
) -> tuple[float, float]:
    """Return the interval of a rate."""
    row = condition.row
    own = row.measured_interval(line, statistics)
    if own is None and row.key == "entries_per_s" and line.rate_interval and line.requests_per_second:
        scale = found / line.requests_per_second
        return line.rate_interval.low * scale, line.rate_interval.high * scale
    if own is not None:
        return own.low, own.high
    window = line.window
    counted, moved = line.by_second.series(window.start, window.end) if window else (np.empty(0), np.empty(0))
    series = moved if row.unit is Unit.MEGABYTES_PER_SECOND else counted
    if len(series) < MIN_SECONDS:
        return _short_interval(found, found, series)
    low, high = _find_reach(series)  # the interval would reach down to 0
    mean = float(series.mean())
    return (low / mean * found, high / mean * found) if mean else (0.0, math.inf)


def _mean_latency_interval(
    times: CensoredLatencies | Latencies, found: float, most: float
) -> tuple[float, float]:
    """Return the interval of the mean of some latencies."""
    measured = times.measured if isinstance(times, CensoredLatencies) else times
    if not measured.count:
        return found, most
    error = measured.deviation / math.sqrt(measured.count)
    sums, every = measured.by_second.sums() or (np.empty(0), np.empty(0))
    own = ratio_interval(sums, every)
    half = _SHORT_ERRORS * error if own is None else max(own.half_width, _NORMAL_QUANTILE * error)
    low, high = max(0.0, found - half), most + half if np.isfinite(most) else math.inf
    means = sums[every > 0] / every[every > 0]
    if own is None:
        lowest, highest = _short_interval(found, most, means)
        return min(low, lowest), max(high, highest)
    return max(low, _find_reach(means)[0]), high


# -- Conditions ------------------------------------------------------------------------------------


#: Conditions that cannot be read are cut to this many characters.
_MAX_CHARACTERS = 200


class ConditionJudgment(msgspec.Struct, frozen=True):
    """A condition under which a run fails, what came, and whether the run fails by that.

    A figure that the run does not have fails, because it is not known to be good; so does a condition of a
    scenario that a later version of ssbench has written and this one cannot read.
    """

    condition: Condition
    value: float | None  # None: the run has no such figure
    result: GateResult
    most: float | None = None  # more than ``value`` where that is a lower bound
    count: int | None = None  # results that there are
    enough: float | None = None  # results that would decide, where it is undecided and these can be estimated
    #: There are fewer results than reports show the figure of
    #: (:attr:`~ssbench.document.figures.Figure.needs`).
    few: bool = False
    #: The longest stall (s), longer than the value, a percentile of a closed loop, which does not show it.
    hidden_stall: float | None = None

    @property
    def failed(self) -> bool:
        """Whether the run fails by it."""
        return self.result is GateResult.FAILED

    @property
    def undecided(self) -> bool:
        """Whether the run is not enough to tell."""
        return self.result is GateResult.UNDECIDED

    @property
    def at_least(self) -> bool:
        """Whether the value is a lower bound."""
        return self.value is not None and self.most is not None and self.most > self.value

    @property
    def text(self) -> str:
        """One line for people, without ``fail-if``."""
        hidden = (
            ""
            if self.hidden_stall is None or self.failed
            else f"; percentiles of a closed loop do not show the stall of {self.hidden_stall:.1f} s"
        )
        return f"{self.condition.text}: {self.result.value} ({self._came}{hidden})"

    @property
    def _came(self) -> str:
        if not self.condition.figure:
            return "this version of ssbench cannot read it"
        if self.value is None:
            return "not measured"
        came = self.condition.spell_measured(self.value)
        if self.at_least:
            came = f"at least {came}"
            return f"{came}, because operations that were due never began" if self.undecided else came
        if self.count is not None and (self.few or self.undecided):
            came += f", of {self.count:,} operations"
        if not self.undecided:
            return came
        if self.enough is None:
            return f"{came}; it is too near to its limit, or changes too much"
        return f"{came}; about {_round_up(self.enough):,} would decide"


def judge_conditions(
    statistics: RunStatistics, conditions: Iterable[Condition]
) -> tuple[ConditionJudgment, ...]:
    """Judge each condition; none of them may be a change."""
    return tuple(_make_judgment(statistics, condition) for condition in conditions)


def _make_judgment(statistics: RunStatistics, condition: Condition) -> ConditionJudgment:
    """Judge by what is certain of the figure; see the head of this module."""
    if condition.group is not None:
        own = statistics.group(condition.group)
        if own is None:
            return ConditionJudgment(condition, None, GateResult.FAILED)
        statistics = own.numbers
    line, found = find_condition_line(statistics, condition), figure_value(statistics, condition)
    if line is None or found is None:
        return ConditionJudgment(condition, None, GateResult.FAILED)
    row = condition.row
    most = found
    if row.measured_most is not None:
        most = max(found, row.most(line, statistics) or found)
    known = judge_certainty(statistics, line, condition, found, most)
    holds, fails = (known.above, known.below) if condition.relation[0] == ">" else (known.below, known.above)
    result = GateResult.FAILED if holds else GateResult.PASSED if fails else GateResult.UNDECIDED
    if row.whole is not None:  # a share of errors is of the failed ones too
        count = round(row.whole(line, statistics))
    else:
        count = row.times(line).count if row.times else row.results(line, statistics)
    few = not row.is_supported(line, statistics)
    hidden = _find_hidden_stall(statistics, condition, found)
    return ConditionJudgment(condition, found, result, most, count, known.enough, few, hidden)


def _find_hidden_stall(statistics: RunStatistics, condition: Condition, found: float) -> float | None:
    """Return how long the longest stall was, where a percentile of a closed loop does not show it."""
    scenario, rank = statistics.run.scenario, condition.row.rank
    if rank is None or rank == 100 or scenario.is_open or not statistics.store_stalls:
        return None
    longest = max(each.seconds for each in statistics.store_stalls)
    return longest if found < longest else None


def _round_up(number: float) -> int:
    """Return a number of operations to two digits, no less than it is."""
    step: int = 10 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1)
    return math.ceil(number / step) * step


def judge_run(statistics: RunStatistics, more: Iterable[Condition] = ()) -> tuple[ConditionJudgment, ...]:
    """Judge the conditions of the run's scenario, and more."""
    conditions = {condition.text: condition for condition in (*_scenario_conditions(statistics), *more)}
    return judge_conditions(statistics, conditions.values())


def _scenario_conditions(statistics: RunStatistics) -> Iterator[Condition]:
    for text in statistics.run.scenario.fail_if:
        try:
            yield parse_condition(text, grouped=True)
        except ValueError:
            shown = repr(text[:_MAX_CHARACTERS])
            yield Condition(None, None, figure="", relation=">", limit=0.0, unit=Unit.COUNT, text=shown)


def figure_value(statistics: RunStatistics, condition: Condition) -> float | None:
    """Return the figure that a condition names, in its unit; None where the run has none.

    Of a change it is the figure itself, in the unit that it has without one.
    """
    line = find_condition_line(statistics, condition)
    if line is None or not condition.figure:
        return None
    row = condition.row
    found = row.measured(line, statistics)
    if found is None or condition.unit is not Unit.SHARE or row.whole is None:
        return None if found is None else float(found)
    whole = row.whole(line, statistics)
    return found / whole if whole else None


def find_condition_line(statistics: RunStatistics, condition: Condition) -> SectionLine | None:
    """Return the figures that a condition is about; None where the run has none."""
    return find_line(statistics, condition.operation, condition.size_class)


def find_line(statistics: RunStatistics, operation: str | None, size_class: str | None) -> SectionLine | None:
    """Return the figures of an operation and a size class, None for all; None where the run has none."""
    section = _find_section(statistics, operation)
    return _find_class_line(section, size_class) if section else None


def _find_section(statistics: RunStatistics, operation: str | None) -> FiguresSection | None:
    for section in statistics.sections:
        if (section.operation.name if section.operation else None) == operation:
            return section
    return None


def _find_class_line(section: FiguresSection, size_class: str | None) -> SectionLine | None:
    return next((line for line in section.lines if line.size_class == size_class), None)
