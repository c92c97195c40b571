"""The search for the highest load at which an objective holds: what to try next, given the trials so far.

It doubles until a trial speaks against a load, or halves until one speaks for it. From then on it tries the
load at which the limit most probably is. It ends when the 95 % interval of the limit is narrow enough. A
trial near the limit never decides by itself, but counts as much as any other. Where trials near the limit
leave the interval too wide, further ones are longer, up to a bound.

Whether an objective holds of a run is certain, certainly not the case, or not decided yet
(:func:`judge_objective`). Several runs of one load (:func:`pool_findings`) are one trial, of as many
operations as would scatter so by chance. Where the runs do not agree, Student's t on them decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance

import numpy as np
import numpy.typing as npt

from ssbench.base.errors import GateResult
from ssbench.document.units import Unit, format_count, format_nearly_all
from ssbench.scenario.conditions import Condition, find_unknown_subject, parse_condition
from ssbench.scenario.model import Scenario
from ssbench.statistics.confidence import t_quantile, wilson_interval
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.run_statistics import RunStatistics, SectionLine
from ssbench.statistics.thresholds import figure_value, find_condition_line

#: By how much two trials of one load may seem to differ in load, as standard deviations of its logarithm.
#: Before there are trials each is as probable: flat odds of the logarithm give the width of Student's t.
LOAD_JITTERS = np.array([0.05, 0.1, 0.2, 0.4])

#: How often a trial is disturbed by something that has nothing to do with its load.
DISTURBED_SHARE = 0.05

#: Below the least load, 1, there is room for a limit that no load meets.
_MIN_LOG_LOAD = math.log(0.5)
_GRID_STEP = 0.01
#: The steepest is a store of which nearly all operations are outside as soon as it is full.
_SLOPE_GRID = np.geomspace(1.5, 1000.0, 24)
_FLOOR_GRID = np.array([0.0, 0.35, 0.7])  # as a share of what may be outside

#: How far a logit may be off the line: near the wanted share, and more for each unit of the logit from it.
_LOGIT_ERROR, _LOGIT_ERROR_GROWTH = 0.1, 0.15

#: Steps of the grid to which a jitter reaches.
_REACH = 80

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TrialEvidence:
    """What a trial says of one condition."""

    share: float  # share of operations that were within its limit
    size: float  # the number of independent operations
    wanted: float  # the share that has to be within
    #: Whether those that are not within have failed, which no noise of a store explains.
    of_errors: bool = False


#: What a trial says of a condition that only holds or does not, such as one of a mean.
HOLDS_EVIDENCE, FAILS_EVIDENCE = TrialEvidence(1.0, 20.0, 0.5), TrialEvidence(0.0, 20.0, 0.5)


@dataclass(frozen=True, slots=True)
class LimitEstimate:
    """The median of the limit, and the 95 % interval of it; in units of the load."""

    median: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of the interval, of the logarithm."""
        return math.log(self.high / self.low) / 2


class LoadLimit:
    """The limit of a load, as far as the trials so far tell; the lowest of those of several conditions.

    That is where the share of operations outside a limit becomes what is wanted. ``doc/methods.rst`` has the
    model of that share, of which the posterior is calculated on a grid.
    """

    def __init__(self, most: float, *, learns_noise: bool = False) -> None:
        jitters = LOAD_JITTERS[:, None] if learns_noise else LOAD_JITTERS[:1, None]
        self._grid: _Floats = np.arange(_MIN_LOG_LOAD, math.log(most) + 0.7, _GRID_STEP)
        #: The length of Fourier transforms.
        self._length = _find_smooth_number(len(self._grid) + 2 * _REACH)
        frequencies = np.fft.rfftfreq(self._length, _GRID_STEP)
        #: The Fourier transforms of the jitters' normal distributions.
        self._jitters = np.exp(-2 * (np.pi * jitters * frequencies) ** 2)[:, None, :, None]
        #: The logarithm of the posterior of each condition: jitters x floors x limits x slopes.
        self._posteriors: list[_Floats] = []
        self._estimate: LimitEstimate | None = None  # by all trials so far, where it was asked for

    def add(self, load: float, evidence: Iterable[TrialEvidence]) -> None:
        """Count what a trial says, in the order of conditions; evidence of size 0 changes nothing."""
        self._estimate = None
        for place, each in enumerate(evidence):
            if place == len(self._posteriors):
                shape = (len(self._jitters), len(_FLOOR_GRID), len(self._grid), len(_SLOPE_GRID))
                self._posteriors.append(np.zeros(shape))
            if each.size > 0:
                self._posteriors[place] += self._likelihood(math.log(load), each)

    def estimate(self) -> LimitEstimate:
        """Return what is known of it."""
        if self._estimate is None:
            self._estimate = self._find_estimate()
        return self._estimate

    def _find_estimate(self) -> LimitEstimate:
        survival = np.ones(len(self._grid))
        for posterior in self._posteriors:
            density = np.exp(posterior - posterior.max()).sum(axis=(0, 1, 3))
            survival *= 1 - np.cumsum(density) / density.sum()
        low, median, high = (
            math.exp(self._grid[min(int(np.searchsorted(1 - survival, share)), len(self._grid) - 1)])
            for share in (0.025, 0.5, 0.975)
        )
        return LimitEstimate(median, low, high)

    def _likelihood(self, load: float, evidence: TrialEvidence) -> _Floats:
        """Return the logarithm of the likelihood over the grid, but for a constant."""
        allowed = min(max(1 - evidence.wanted, 1e-9), 1 - 1e-9)
        floors = allowed * _FLOOR_GRID[:, None, None]
        shift = np.log((allowed - floors) / (1 - allowed))  # logit((q - g) / (1 - g))
        size = _effective_count(evidence, allowed)
        inside = evidence.share * size
        outside = size - inside
        distance = (load - self._grid)[:, None]
        anything = math.lgamma(inside + 1) + math.lgamma(outside + 1) - math.lgamma(size + 2)
        # In place: new memory for each step takes as long as the arithmetic. Of NumPy's functions exp and log
        # take a tenth of the time of log1p and logaddexp.
        share = -_SLOPE_GRID * distance - shift
        np.minimum(share, 60.0, out=share)
        np.exp(share, out=share)
        share += 1
        np.divide(1 - floors, share, out=share)
        share += floors
        # A share of none or all is one of a model, not of a store.
        np.clip(share, 1e-7, 1 - 1e-7, out=share)
        part = np.log(1 - share)
        part *= inside
        np.log(share, out=share)
        share *= outside
        part += share
        # As a multiple of the mean over all shares, which is no more than their number.
        part -= anything
        np.exp(part, out=part)
        # A load that seems another one is a limit that does: the mean over limits nearby.
        end = _REACH + len(self._grid)
        ends = ((0, 0), (_REACH, self._length - end), (0, 0))
        spread = np.fft.rfft(np.pad(part, ends, "edge"), axis=1) * self._jitters
        whole: _Floats = np.fft.irfft(spread, self._length, axis=2)[:, :, _REACH:end]
        if evidence.of_errors:  # which no noise of a store explains
            whole = whole[:1]
        whole = np.maximum(whole, 0.0) * (1 - DISTURBED_SHARE) + DISTURBED_SHARE
        np.log(whole, out=whole)
        whole += anything
        return whole


def _find_smooth_number(least: int) -> int:
    """Return a number without prime factors above 5: transforms of other lengths take twice as long."""
    powers = range(least.bit_length() + 1)
    smooth = (2**two * 3**three * 5**five for two in powers for three in powers for five in powers)
    found: int = min(number for number in smooth if number >= least)
    return found


def _effective_count(evidence: TrialEvidence, allowed: float) -> float:
    """Return the operations that a share counts as: no more than the line itself is exact there."""
    outside = ((1 - evidence.share) * evidence.size + 0.5) / (evidence.size + 1)
    logit, wanted = (math.log(share / (1 - share)) for share in (outside, allowed))
    off = _LOGIT_ERROR + _LOGIT_ERROR_GROWTH * abs(logit - wanted)
    return evidence.size / (1 + evidence.size * outside * (1 - outside) * off**2)


# -- The search ------------------------------------------------------------------------------------


#: Half the width of the 95 % interval of the limit, as a share of the limit, by default.
LIMIT_TOLERANCE = 0.10

#: How much longer a trial is than the first ones at the most.
MAX_TRIAL_FACTOR = 4.0

#: More trials than this are never made.
MAX_TRIALS = 30

#: Trials within this factor of the limit say most of it.
NEAR_FACTOR = 1.2

#: So much of the time of a trial has to have been spent near the limit before the search ends.
_MIN_NEAR_TRIALS = 3.0

#: After so many trials in a row the interval is narrow before a search ends that learns how much they differ:
#: one that just became narrow has often done so because a few trials agree by chance.
_MIN_NARROW_TRIALS = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """What to try: a value, for how many seconds."""

    value: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The limit of a load, as far as it is known."""

    value: int | None  # the highest value at which the objective holds; None: it holds at none
    low: int = 0  # lower end of the 95 % interval of the limit, a whole value
    high: int = 0  # upper end of it
    at_least: bool = False  # no higher value was tried
    narrow: bool = True  # the interval is as narrow as was asked for


class LimitSearch:
    """Ask :meth:`next`, try it, pass the result to :meth:`record`; until there is no next one.

    ``learns_noise``: by how much runs of a load differ is learnt from them. So there are more of them instead
    of longer ones: of a longer one, all operations have in common by what it differs.
    """

    def __init__(
        self,
        start: int,
        seconds: float,
        *,
        most: int,
        tolerance: float = LIMIT_TOLERANCE,
        learns_noise: bool = False,
    ) -> None:
        self._tolerance = tolerance
        self._start = min(start, most)
        self._seconds = seconds
        self._most = most
        self._limit = LoadLimit(most, learns_noise=learns_noise)
        self._longest = 1.0 if learns_noise else MAX_TRIAL_FACTOR
        self._least_narrow = _MIN_NARROW_TRIALS if learns_noise else 1
        self._narrow_trials = 0  # after so many trials in a row, up to the last one, the interval is narrow
        self._tried: list[Trial] = []
        self._errors: list[tuple[int, TrialEvidence]] = []  # of each value that was tried, what failed there
        self._current: Trial | None = None
        self._highest: int | None = None  # above this value nothing is tried

    def next(self) -> Trial | None:
        """Return what to try next; None when the search has ended."""
        if self._current is None and not self._ended():
            self._current = self._choose()
        return self._current

    def record(self, evidence: Sequence[TrialEvidence], *, no_higher: bool = False) -> None:
        """Count what a trial said of each condition; with ``no_higher`` no higher value is tried."""
        trial = self._current
        if trial is None:
            raise ValueError("there was nothing to try")
        self._current = None
        self._limit.add(trial.value, evidence)
        self._errors += [(trial.value, each) for each in evidence if each.of_errors]
        self._tried.append(trial)
        self._narrow_trials = self._narrow_trials + 1 if self._narrow(self._limit.estimate()) else 0
        if no_higher:
            self._highest = min(trial.value, self._highest or trial.value)

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of the limit as it is known now, of its logarithm."""
        return self._limit.estimate().half_width

    def answer(self) -> SearchAnswer:
        """Return what is known now."""
        if not self._tried:
            return SearchAnswer(None)
        estimate, bound = self._limit.estimate(), self._highest or self._most
        low, high = int(estimate.low), int(estimate.high)
        value = self._lower_to_errors(min(int(estimate.median), bound), low)
        at_least = estimate.median >= bound and value == bound
        narrow = at_least or self._narrow(estimate)
        return SearchAnswer(value or None, min(low, value), high, at_least, narrow)

    def _lower_to_errors(self, value: int, low: int) -> int:
        """Return the highest value up to ``value`` of which the errors that were seen allow that it holds.

        The line of the limit rises evenly, while errors often begin at once, at a load that the line only
        comes near to. So no value is returned at which too many operations failed, and none that is between
        such a one and one at which they did not. What was seen far below, and below ``low``, is taken for a
        disturbance.
        """
        low = min(low, math.ceil(value / NEAR_FACTOR))
        tried = sorted({tried for tried, _ in self._errors})
        failing = [each for each in tried if self._shows_errors(each, each)]
        others = [each for each in tried if each not in failing]
        if failing and others and max(others) < failing[0] <= value:
            # It is no disturbance where all above agree: a share that does not grow is far from the line.
            return max(others)
        for each in reversed([each for each in tried if low <= each <= value]):
            if self._shows_errors(each, value):
                value = each - 1
        above = next((each for each in tried if each > value), None)
        if above is not None and self._shows_errors(above, above):
            value = max([low, *(each for each in tried if each <= value)])
        return value

    def _shows_errors(self, first: int, last: int) -> bool:
        """Whether surely too many operations failed in all trials of values from ``first`` to ``last``."""
        seen = [each for tried, each in self._errors if first <= tried <= last and each.size > 0]
        for wanted in {each.wanted for each in seen}:
            same = [each for each in seen if each.wanted == wanted]
            size = sum(each.size for each in same)
            if wilson_interval(sum(each.share * each.size for each in same) / size, size)[1] < wanted:
                return True
        return False

    def _narrow(self, estimate: LimitEstimate) -> bool:
        """Whether the interval is narrow enough; one from a value to the next is, however wide that is."""
        between = int(estimate.high) - int(estimate.low)
        return estimate.half_width <= self._tolerance or between <= (1 if estimate.median > 1 else 0)

    def _ended(self) -> bool:
        if not self._tried:
            return False
        if len(self._tried) >= MAX_TRIALS:
            return True
        estimate, bound = self._limit.estimate(), self._highest or self._most
        if estimate.high < 1:
            return True
        if estimate.low >= bound:  # where runs differ, one says little of the rate there
            return sum(trial.value == bound for trial in self._tried) >= self._least_narrow
        near = sum(trial.seconds for trial in self._near(estimate))
        return self._narrow_trials >= self._least_narrow and near >= _MIN_NEAR_TRIALS * self._seconds

    def _near(self, estimate: LimitEstimate) -> list[Trial]:
        """Return the trials that are near the limit, or next to it."""
        low, high = estimate.median / NEAR_FACTOR, estimate.median * NEAR_FACTOR
        return [trial for trial in self._tried if low <= trial.value <= high or abs(trial.value - low) < 1]

    def _choose(self) -> Trial:
        if not self._tried:
            return Trial(self._start, self._seconds)
        estimate = self._limit.estimate()
        values = [trial.value for trial in self._tried]
        near = len(self._near(estimate))
        value = round(estimate.median)
        if value > max(values):
            value = min(value, 2 * max(values))
        elif value < min(values):
            value = max(value, min(values) // 2)
        value = max(1, min(value, self._highest or self._most))
        longer = 1.0
        if near > 1:
            # The width falls with the square root of the time.
            longer = min(self._longest, max(1.0, (estimate.half_width / self._tolerance) ** 2))
        return Trial(value, longer * self._seconds)


# -- Whether an objective holds --------------------------------------------------------------------


def resolve_objective(
    conditions: Iterable[Condition], scenario: Scenario, *, noop: bool
) -> tuple[Condition, ...]:
    """Return conditions as they are read where it is known which operations the scenario defines.

    Raises ValueError for one that no search can judge in runs of the scenario.
    """
    defined = scenario.defined_operations
    found = tuple(parse_condition(each.text, defined, grouped=True) for each in conditions)
    for condition in found:
        text, latency = condition.text, condition.unit is Unit.SECONDS
        if condition.row.more_is_better is not False:
            raise ValueError(
                f"{text!r}: expected a limit of a latency or of errors, such as 'read.p99 <= 50ms' or"
                " 'errors <= 0.1%'"
            )
        if condition.relation not in {"<", "<="}:
            raise ValueError(
                f"{text!r}: the most load is looked for at which a condition holds: use <= or <, as in"
                f" '{text.replace(condition.relation, '<=')}'"
            )
        classes_known = [each.name for each in scenario.size_classes]
        if wrong := find_unknown_subject(condition, classes_known, defined=defined):
            raise ValueError(wrong)
        if condition.kind == "response" and not scenario.is_open:
            raise ValueError(f"{text!r}: only runs with a rate have response times")
        if latency and noop:
            raise ValueError(f"{text!r}: no-op runs have no latencies")
        classes = [each for each in scenario.size_classes if condition.size_class in {None, each.name}]
        if condition.operation and not any(each.weights.get(condition.operation) for each in classes):
            raise ValueError(f"{text!r}: the scenario has no such operation")
    return found


@dataclass(frozen=True, slots=True)
class ObjectiveFinding:
    """The judgment of one condition."""

    condition: Condition
    verdict: GateResult
    text: str  # what it rests on, in words
    #: The figure that the condition is about, in its unit; None: it was not measured.
    value: float | None = None
    #: What a search for the limit uses; of size 0: nothing was measured.
    evidence: TrialEvidence = HOLDS_EVIDENCE
    at_least: bool = False  # ``value`` is a lower bound, because operations that were due never began


def judge_objective(statistics: RunStatistics, conditions: Iterable[Condition]) -> list[ObjectiveFinding]:
    """Judge each condition."""
    return [_finding(statistics, condition) for condition in conditions]


def _finding(statistics: RunStatistics, condition: Condition) -> ObjectiveFinding:
    line = find_condition_line(statistics, condition)
    came = figure_value(statistics, condition)
    if line is None or came is None:
        # Where all failed there is no latency either; where there were none, a longer run may have some.
        nothing = line is None or not line.count + line.failed
        if nothing:
            return ObjectiveFinding(
                condition, GateResult.UNDECIDED, "not measured", None, TrialEvidence(1.0, 0.0, 0.5)
            )
        return ObjectiveFinding(condition, GateResult.FAILED, "not measured", None, FAILS_EVIDENCE)
    words = f"{condition.subject} {condition.spell_measured(came)}"
    if condition.figure == "errors" and condition.unit is Unit.SHARE:
        return _judge_error_share(condition, statistics, line, came)
    if condition.rank is not None and condition.rank < 100:
        return _judge_percentile(condition, statistics, line, came)
    if condition.figure == "errors":
        missed = _not_begun(statistics, line)
        words += _never_begun(missed)
        holds = condition.holds(came + missed)
    else:
        holds = condition.holds(came)
    verdict, evidence = (GateResult.PASSED, HOLDS_EVIDENCE) if holds else (GateResult.FAILED, FAILS_EVIDENCE)
    return ObjectiveFinding(condition, verdict, words, came, evidence)


def _judge_percentile(
    condition: Condition, statistics: RunStatistics, line: SectionLine, came: float
) -> ObjectiveFinding:
    """Judge a percentile by the share of operations within its limit."""
    at_least = (condition.row.most(line, statistics) or came) > came
    words = f"{condition.subject} {'at least ' * at_least}{condition.spell_measured(came)}"
    latencies = {"first": line.first_byte, "service": line.last_byte, "response": line.due.response}.get(
        condition.kind, line.latency.measured
    )
    wanted = (condition.rank or 0.0) / 100
    everything = latencies.count + line.failed + _not_begun(statistics, line)
    share = latencies.share_within(condition.limit) * latencies.count / everything
    size = everything * _independent_share(latencies, share, wanted)
    low, high = wilson_interval(share, size)
    verdict = _verdict(low > wanted, high >= wanted)
    return ObjectiveFinding(
        condition,
        verdict,
        f"{words}, {format_nearly_all(share)} within {condition.spell(condition.limit)}{_sure(low, high)}",
        came,
        TrialEvidence(share, size, wanted),
        at_least,
    )


def _judge_error_share(
    condition: Condition, statistics: RunStatistics, line: SectionLine, came: float
) -> ObjectiveFinding:
    """Judge the share of errors; what was due and never begun is an error too."""
    missed = _not_begun(statistics, line)
    everything = line.count + line.failed + missed
    share = (line.failed + missed) / everything
    low, high = wilson_interval(share, everything)
    words = f"{condition.subject} {condition.spell_measured(came)}{_never_begun(missed)}{_sure(low, high)}"
    evidence = TrialEvidence(1 - share, everything, 1 - condition.limit, of_errors=True)
    verdict = _verdict(condition.holds(low), condition.holds(high))
    if verdict is GateResult.UNDECIDED and not share:
        # Nothing speaks against it; all steps of a search together may show it, where one is too short.
        verdict = GateResult.PASSED
        words += f", none of {format_count(line.count)} operations"
    return ObjectiveFinding(condition, verdict, words, came, evidence)


def _never_begun(missed: float) -> str:
    return f", {format_count(round(missed))} never begun" if missed >= 0.5 else ""


def _not_begun(statistics: RunStatistics, line: SectionLine) -> float:
    """Return how many operations of these were due and never begun, as far as that is known."""
    everything = statistics.total.count + statistics.total.failed
    return (statistics.not_begun or 0) * (line.count + line.failed) / everything if everything else 0.0


def _sure(low: float, high: float) -> str:
    return f" (95 % sure: {format_nearly_all(low)} to {format_nearly_all(high)})"


def _verdict(low_holds: bool, high_holds: bool) -> GateResult:
    if low_holds and high_holds:
        return GateResult.PASSED
    return GateResult.UNDECIDED if low_holds or high_holds else GateResult.FAILED


def _independent_share(latencies: Latencies, share: float, wanted: float) -> float:
    """Return how many independent operations one of these is worth, up to 1."""
    # Where all or none are within the limit, what can be seen is how the wanted share came and went.
    ranks = latencies.by_second.ranks(share if 0 < share < 1 else wanted)
    if ranks is None:
        return 1.0
    return min(1.0, ranks.effective_size / latencies.count)


# -- Several runs of one load ----------------------------------------------------------------------


def pool_findings(runs: Sequence[Sequence[ObjectiveFinding]]) -> list[ObjectiveFinding]:
    """Return the judgment of each condition by all runs of a load, each of which has all conditions."""
    return [_pool(each) for each in zip(*runs, strict=True)]


def _pool(each: Sequence[ObjectiveFinding]) -> ObjectiveFinding:
    first, condition = each[0], each[0].condition
    if len(each) == 1:
        return first
    values = [one.value for one in each if one.value is not None]
    value = fmean(values) if values else None
    between = ""
    if len(values) > 1:
        spell = condition.spell_measured
        between = f", of single runs from {spell(min(values))} to {spell(max(values))}"
    measured = "not measured" if value is None else condition.spell_measured(value)
    return replace(
        first,
        verdict=_decide_by_runs(each),
        text=f"{condition.subject} {measured} in {len(each)} runs{between}",
        value=value,
        evidence=pool_evidence([one.evidence for one in each]),
        at_least=any(one.at_least for one in each),
    )


def _decide_by_runs(each: Sequence[ObjectiveFinding]) -> GateResult:
    """Return what all runs say, where they agree, and otherwise what the interval of their mean does."""
    verdicts = {one.verdict for one in each}
    if len(verdicts) == 1:
        return verdicts.pop()
    evidence = [one.evidence for one in each if one.evidence.size > 0]
    if len(evidence) < 2:
        return GateResult.UNDECIDED
    shares = [one.share for one in evidence]
    half = t_quantile(0.975, len(shares) - 1) * math.sqrt(variance(shares) / len(shares))
    wanted = evidence[0].wanted
    return _verdict(fmean(shares) - half > wanted, fmean(shares) + half >= wanted)


def pool_evidence(runs: Sequence[TrialEvidence]) -> TrialEvidence:
    """Return what all runs say together; those that differ by more than chance count as fewer operations."""
    known = [one for one in runs if one.size > 0]
    if not known:
        return runs[0]
    size = sum(one.size for one in known)
    share = fmean(one.share for one in known)
    if len(known) > 1 and (scatter := variance([one.share for one in known]) / len(known)):
        size = min(size, share * (1 - share) / scatter)
    return replace(known[0], share=share, size=size)


def describe_rare_errors(loads: Iterable[Sequence[ObjectiveFinding]]) -> list[str]:
    """Return a sentence for each condition on a share of errors of which no operation of these loads was one.

    It says how many operations were looked at, and how large the share may be all the same.
    """
    found = []
    for each in zip(*loads, strict=True):
        evidence, condition = [one.evidence for one in each], each[0].condition
        size = sum(one.size for one in evidence)
        if not size or any(not one.of_errors or one.share < 1 for one in evidence):
            continue
        high = wilson_interval(0.0, size)[1]
        enough = "" if condition.holds(high) else ": too few to show the limit for certain"
        found.append(
            f"{condition.text}: none of {format_count(round(size))} operations failed in steps up to there,"
            f" so the share is at most {condition.spell_measured(high)} (95 % sure){enough}."
        )
    return found


def find_scatter(levels: Sequence[Sequence[float]]) -> float | None:
    """Return by which share runs of one load differ (standard deviation); None without any two of one."""
    logs = [[math.log(value) for value in each if value > 0] for each in levels]
    freedom = sum(len(each) - 1 for each in logs if each)
    if not freedom:
        return None
    squares = sum(variance(each) * (len(each) - 1) for each in logs if len(each) > 1)
    return math.expm1(math.sqrt(squares / freedom))
