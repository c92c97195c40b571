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
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

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

#: Nor further beyond them than so many times the distance between them.
_REACH_RANGES = 2.0


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
    """Judge by the share of operations within the limit; it is above where that is less than ``wanted``.

    What is certain stays so for lower percentiles and further limits below, for higher ones and nearer limits
    above: a percentile is below what a higher one is certainly below.
    """
    limit = condition.limit
    if condition.relation in {">=", "<"}:
        limit = math.nextafter(limit, 0.0)
    evidence = _PercentileEvidence(times, limit)
    if evidence.is_short:
        near = evidence.judge_short_run(condition, wanted, found, most)
        if near is not None:
            return near
        worth = _Worth()
    else:
        worth = evidence.find_worth(wanted)
    low = _judge_share(evidence.least / evidence.every, evidence.every, worth, wanted)
    high = low
    if evidence.most != evidence.least:
        high = _judge_share(evidence.most / evidence.every, evidence.every, worth, wanted)
    if not evidence.is_short and not high.below and not low.above:
        implied = Certainty(evidence.is_above_by_lower(wanted), evidence.is_below_by_higher(wanted))
        if implied.above or implied.below:
            return implied
    return Certainty(
        above=high.below, below=low.above, enough=None if evidence.most > evidence.least else low.enough
    )


#: What the latencies of a run are worth is looked at for percentiles of these ranks, and for others as for
#: the next lower one, so that it is the same for ranks, and shares, between two of them.
_RANKS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999)

#: The same for shares within a limit; those with fewer operations beyond, or within, show nothing.
_SHARES = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5),
    *(0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999),
)
_MIN_BEYOND = 20


class _PercentileEvidence:
    """What some latencies say of their percentiles and a limit."""

    def __init__(self, times: CensoredLatencies | Latencies, limit: float) -> None:
        self._times, self._limit = times, limit
        self._measured = times.measured if isinstance(times, CensoredLatencies) else times
        waited = times.waited if isinstance(times, CensoredLatencies) else None
        self._waited = waited.count if waited else 0
        self.every = self._measured.count + self._waited
        self._share = self._measured.share_within(limit)
        #: Operations within the limit: the known ones, and including those that never began but may be.
        #: The latter had waited for less than the limit, or for longer.
        self.least = self._share * self._measured.count
        self.most = self.least + (waited.share_within(limit) * waited.count if waited else 0.0)
        self.is_short = self._measured.by_second.ranks(0.5) is None
        fewest = _MIN_BEYOND / max(self._measured.count, 1)
        self._edges = [each for each in _SHARES if fewest <= each <= 1 - fewest]
        self._place = bisect_right(self._edges, self._share)
        self._worths: dict[float, _Worth] = {}

    def find_worth(self, rank: float) -> _Worth:
        """Return the effective number of operations for a percentile, all beyond its reach."""
        if _is_beyond(self._limit, self._find_reach(rank)):
            return _Worth()
        return self._worth_between(self._place) or self._worth_of(_floor_rank(rank))

    def is_below_by_higher(self, rank: float) -> bool:
        """Whether a higher percentile is certainly below the limit, or this one below a nearer limit."""
        own = _floor_rank(rank)
        higher = [(each, each) for each in _RANKS if each > own]
        beyond = any(self._find_reach(each)[1] < self._limit for each, _ in higher)
        if beyond and self._test(self.least / self.every, math.inf, rank)[0]:
            return True
        nearer = [(place, self._edges[place]) for place in range(self._place)]
        for place, share in ((self._place, self._share), *nearer):
            known = share * self._measured.count / self.every
            if self._is_certain(place, known, [(own, rank), *higher])[0]:
                return True
        return False

    def is_above_by_lower(self, rank: float) -> bool:
        """Whether a lower percentile is certainly above the limit, or this one above a nearer limit."""
        own = _floor_rank(rank)
        lower = [(each, end) for each, end in pairwise(_RANKS) if end <= own]
        beyond = any(self._find_reach(each, end)[0] > self._limit for each, end in lower)
        if beyond and self._test(self.most / self.every, math.inf, rank)[1]:
            return True
        if self._is_certain(self._place, self.most / self.every, [(own, rank), *lower])[1]:
            return True
        for place in range(self._place + 1, len(self._edges) + 1):
            most = (self._edges[place - 1] * self._measured.count + self._waited) / self.every
            if self._is_certain(place, most, [(own, rank), *lower])[1]:
                return True
        return False

    def _is_certain(
        self, place: int, share: float, ranks: Sequence[tuple[float, float]]
    ) -> tuple[bool, bool]:
        """Return whether a share is certainly above a rank, and below.

        ``place`` is that of the edges it is between; where it is at either end, one of the ``ranks`` will do:
        whose worth it is, and which is compared. Else that is the first of them.
        """
        worth = self._worth_between(place)
        sides = [
            self._test(share, (worth or self._worth_of(own)).known, rank)
            for own, rank in (ranks if worth is None else ranks[:1])
        ]
        return any(above for above, _ in sides), any(below for _, below in sides)

    def judge_short_run(
        self, condition: Condition, rank: float, found: float, most: float
    ) -> Certainty | None:
        """Return an undecided result for a percentile of a short run; None if it may be certain."""
        own = _floor_rank(rank)
        lows, highs = [], []
        for each, end in pairwise((*_RANKS, 1.0)):
            seconds = self._measured.by_second.percentiles(each)[1]
            if each == own:
                ends = _short_interval(found, most, seconds)
                lows.append(ends[0])
                highs.append(ends[1])
            elif each < own:
                lows.append(_short_interval(self._times.percentile(100 * end), 0.0, seconds)[0])
            else:
                highs.append(_short_interval(0.0, self._times.most(100 * each), seconds)[1])
        seconds = self._measured.by_second.percentiles(rank)[1]
        return _judge_short_interval(condition, max(lows), min(highs), len(seconds), self.every)

    def _test(self, share: float, worth: float, rank: float) -> tuple[bool, bool]:
        """Return whether a share is certainly above a rank, and below."""
        return _share_sides(share, min(worth, self.every), rank)

    def _worth_between(self, place: int) -> _Worth | None:
        """Return what operations are worth for shares from the edge before a place to the one at it.

        None at either end, where how a percentile came and went is all there is to see.
        """
        if not 0 < place < len(self._edges):
            return None
        return self._worth_of((self._edges[place - 1] + self._edges[place]) / 2)

    def _worth_of(self, share: float) -> _Worth:
        if share not in self._worths:
            self._worths[share] = _find_worth(share, self._measured.by_second.ranks(share))
        return self._worths[share]

    def _find_reach(self, rank: float, at: float | None = None) -> tuple[float, float]:
        """Return the reach of a percentile; ``at`` replaces its value, with the same factor."""
        seconds = self._measured.by_second.percentiles(rank if at is None else at)[1]
        return _find_reach(seconds, self._measured.by_second.percentiles(_floor_rank(rank))[1])


def _floor_rank(rank: float) -> float:
    """Return the rank, of those that are looked at, from which a rank has its worth."""
    return _RANKS[max(bisect_right(_RANKS, rank) - 1, 0)]


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


def _find_reach(seconds: Series, drifting: Series | None = None) -> tuple[float, float]:
    """Return what a figure could not come to by a drift such as that of its seconds.

    The level of the seconds is off by as much as its 95 % interval says, on a scale of ratios, and by no more
    than twice what the greatest is above the least; counted from both, and at least :data:`_REACH_FACTOR`. Of
    too few seconds nothing is said. ``drifting`` are others that tell the drift.
    """
    drifting = seconds if drifting is None else drifting
    if len(drifting) < MIN_SECONDS or not (drifting > 0).any():
        return 0.0, math.inf
    # Seconds without anything say how far down it goes, and nothing of how far up.
    logs = np.log(drifting[drifting > 0])
    interval = mean_interval(logs)
    half_width = math.inf if interval is None else interval.half_width
    exponent = min(half_width, _REACH_RANGES * float(np.ptp(logs)), _MAX_EXPONENT)
    factor = max(_REACH_FACTOR, math.exp(exponent))
    low = min(float(seconds.min()), float(drifting.min()))
    return float(seconds.min()) / factor if low > 0 else 0.0, float(seconds.max()) * factor


def _is_beyond(limit: float, reach: tuple[float, float]) -> bool:
    return not reach[0] <= limit <= reach[1]


def _judge_short_run(
    condition: Condition, found: float, most: float, seconds: Series, count: float
) -> Certainty | None:
    """Return that a figure of a run too short for an interval is not certain; None where it may be."""
    return _judge_short_interval(condition, *_short_interval(found, most, seconds), len(seconds), count)


def _judge_short_interval(
    condition: Condition, low: float, high: float, seconds: int, count: float
) -> Certainty | None:
    """Return an undecided result if the interval of a figure contains the limit."""
    if low > condition.limit or high < condition.limit or low == high:
        return None
    # As many seconds as an interval needs may tell.
    enough = max(MIN_SECONDS / seconds, _LEAST_GROWTH) * count if seconds else math.inf
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
    half = found - low if condition.limit < found else high - found
    if above or below or not away or not math.isfinite(half):
        return Certainty(above, below)
    times = (half / away * _DECIDING_ERRORS / _NORMAL_QUANTILE) ** 2
    return Certainty(above, below, _possible(times * count))


def _rate_interval(
    statistics: RunStatistics, line: SectionLine, condition: Condition, found: float
) -> tuple[float, float]:
    """Return the interval of a rate.

    By Markov's inequality a run has 40 times its rate in the long term in 1 of 40 at most, however a store
    stalls: so the lower end is a 40th of what is found, at least.
    """
    low, high = _interval_of_seconds(statistics, line, condition, found)
    return max(low, _TAIL_PROBABILITY * found), high


def _interval_of_seconds(
    statistics: RunStatistics, line: SectionLine, condition: Condition, found: float
) -> tuple[float, float]:
    """Return the interval of a rate that its seconds, or other parts of the run, show."""
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
    scenario = statistics.run.scenario
    for text in scenario.fail_if:
        try:
            yield parse_condition(text, scenario.defined_operations, grouped=True)
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
