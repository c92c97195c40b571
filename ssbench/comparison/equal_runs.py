"""What equal runs say of comparisons: how much they differ, how often naive rules are wrong, what is shown.

The logarithm of a figure differs between equal runs by what differs within a run, which falls with its
length, and by what differs from run to run, which does not. What is seen within runs follows from how much
the first and the second half of each differ: the variance of the mean of both is a quarter of that of their
difference. What is left is between runs.

A plan has pairs of runs in turn, so that only differences of neighbours count: whatever drifts more slowly is
not in them. They are those of pairs where both runs of each drew the same operations, otherwise all
successive ones (von Neumann 1941), whose degrees of freedom are fewer than their number.

How large a change a plan shows in nine of ten follows from the test that ``compare`` makes of it, over all
variances that the runs allow: few runs make a plan dearer, not too cheap half of the time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from statistics import NormalDist, fmean, median, variance

from ssbench.comparison.change import (
    HEADS,
    MIN_RUNS_FOR_WORD,
    NOISE_SHARE,
    SIGNIFICANCE_LEVEL,
    FigurePlace,
    share_level,
)
from ssbench.comparison.noise_floor import SESSION_SECONDS
from ssbench.comparison.run_comparison import join_alike_warnings
from ssbench.comparison.run_figures import (
    ALL_KEY,
    RunFigures,
    describe_fact_differences,
    make_run_figures,
    runs_with_figure,
)
from ssbench.comparison.run_summaries import find_outlier_runs
from ssbench.document.figures import COMPARED_FIGURES, Figure
from ssbench.run.plan import RUN_OVERHEAD_SECONDS
from ssbench.statistics.confidence import t_tail, welch_error
from ssbench.statistics.power import find_detectable_errors
from ssbench.statistics.run_statistics import RunStatistics, SectionLine

#: Fewer runs, or degrees of freedom of their differences, name no price.
MIN_EQUAL_RUNS = 6
_MIN_FREEDOM = 3.0

#: The times that are asked about, in seconds, and the length of run of which naive rules are estimated.
BUDGETS_SECONDS = (300.0, 900.0, 3600.0)
LONG_RUN_SECONDS = 300.0

#: A naive rule calls a change of so much of the point estimate a difference.
NAIVE_CHANGE = 0.05

#: Lengths of runs that are proposed, in seconds; none that are longer than those that were measured.
_LENGTHS = (10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 450, 600, 900, 1200, 1800)

#: Plans that take no more than so many times as long as the shortest are as good.
_NEARLY = 1.1

#: No more pairs are proposed.
MAX_PAIRS = 500

#: Runs that begin so much later than the last one ended were not measured one after the other on purpose.
_MAX_OVERHEAD_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class EqualRun:
    """What is kept of a run."""

    figures: RunFigures
    seconds: float | None = None  # how long it was measured; None: not known
    #: By how much the logarithm of a figure of its second half exceeds that of the first.
    halves: Mapping[FigurePlace, float] = field(default_factory=dict)
    rates: tuple[float, ...] = ()  # successes of all operations in each whole second; empty: not known


def make_equal_run(statistics: RunStatistics, name: str) -> EqualRun:
    """Return what is kept of a run."""
    figures = make_run_figures(statistics, name)
    line = statistics.total.lines[0]
    window = line.window
    if window is None:
        return EqualRun(figures)
    rates, _ = line.by_second.series(window.start, window.end)
    halves = {
        (ALL_KEY, key): change
        for key, figure in COMPARED_FIGURES.items()
        if (change := _compare_halves(line, figure)) is not None
    }
    return EqualRun(figures, window.seconds, halves, tuple(map(float, rates)))


def _compare_halves(line: SectionLine, figure: Figure) -> float | None:
    """Return by how much the second half of a run exceeds the first; None where that is not known."""
    if line.window is None or figure.is_share:
        return None
    if figure.rank is not None:
        middle = (line.window.start + line.window.end) / 2
        parts = line.last_byte.by_second.cut(math.floor(middle))
        values = [part.percentile(figure.rank / 100) for part in parts]
    else:
        rates, moved = line.by_second.series(line.window.start, line.window.end)
        series = moved if figure.key == "mb_per_s" else rates
        count = len(series) // 2
        values = [float(part.mean()) for part in (series[:count], series[-count:])] if count else []
    if not values or not all(value > 0 for value in values):  # NaN without any result too
        return None
    return math.log(values[1] / values[0])


@dataclass(frozen=True, slots=True)
class RedShare:
    """How often a rule calls equal single runs different."""

    red: int  # pairs of these runs that it calls so
    pairs: int  # all pairs of these runs
    share: float | None  # of all pairs of runs as long as these, by the variances; None: too few runs
    share_long: float | None  # of runs of :data:`LONG_RUN_SECONDS`; None: not known


@dataclass(frozen=True, slots=True)
class Detection:
    """The smallest change that a time shows in nine of ten."""

    minutes: float  # the time of all runs, without initial uploads
    change: float | None  # as a share; None: not known, or the time is too short for it
    pairs: int = 0  # of runs
    seconds: float | None = None  # the length of each run


@dataclass(frozen=True, slots=True)
class Price:
    """The cheapest plan that shows a change in nine of ten."""

    pairs: int  # runs of each side, in turn
    seconds: float | None  # the length of each; None: that of the measured ones, which is not known
    total: float | None  # the time of all runs in seconds, without initial uploads; None: not known


@dataclass(frozen=True, slots=True)
class FigureNoise:
    """How much a figure differs between equal runs: variances of its logarithm."""

    place: FigurePlace
    mean: float  # over the runs
    count: int  # runs
    total: float  # from any run to any other
    in_turn: float  # from a run to its neighbour
    freedom: float  # degrees of freedom of ``in_turn``
    within: float | None  # what is seen within runs; None: not known
    level: float  # of the test that compare makes of this figure
    is_head: bool  # the verdict of compare stands on it

    @property
    def key(self) -> str:
        """The key of the figure."""
        return self.place[1]

    @property
    def has_enough_runs(self) -> bool:
        """Whether there are enough runs to say how much they differ."""
        return self.count >= MIN_EQUAL_RUNS

    @property
    def is_known(self) -> bool:
        """Whether there are enough runs that follow each other to name a price."""
        return self.has_enough_runs and self.freedom >= _MIN_FREEDOM

    @property
    def between(self) -> float | None:
        """What differs from run to run however long they are; None: not known."""
        return None if self.within is None else max(0.0, self.total - self.within)

    def of_length(self, factor: float) -> float:
        """Return the variance between neighbours whose length is that of those measured times a factor.

        It is 1 or less, and 1 where nothing is known of what differs within runs.
        """
        return self.in_turn + (self.within or 0.0) * (1 / factor - 1)


@dataclass(frozen=True, slots=True)
class NoiseFindings:
    """What equal runs say."""

    runs: tuple[EqualRun, ...]  # in the order in which they began
    seconds: float | None  # the length of a run
    overhead: float  # seconds from the end of a run to the beginning of the next
    figures: tuple[FigureNoise, ...]
    wanted: float  # the change that is asked for, as a share
    warnings: tuple[str, ...] = ()
    took: str = ""  # how long the runs took, beside the forecast
    notes: tuple[str, ...] = ()  # what cannot be known

    @property
    def heads(self) -> list[FigureNoise]:
        """The figures on which the verdict of compare stands."""
        return [each for each in self.figures if each.is_head]

    @property
    def is_decided(self) -> bool:
        """Whether there are enough runs to say something of comparisons."""
        return bool(self.heads) and all(each.is_known for each in self.heads)

    def detection(self, figure: FigureNoise, budget: float) -> Detection:
        """Return the smallest change of a figure that runs of so many seconds together show."""
        found = [
            Detection(budget / 60, change, pairs, seconds)
            for seconds in self._list_lengths([figure])
            if seconds is not None
            if (pairs := self._count_pairs(seconds, budget)) >= MIN_RUNS_FOR_WORD
            if (change := self._find_detectable(figure, pairs, seconds)) is not None
        ]
        return min(found, key=lambda each: each.change or 0.0, default=Detection(budget / 60, None))

    def price(self, figures: Sequence[FigureNoise]) -> Price | None:
        """Return the cheapest plan that shows the wanted change of each of some figures; None: none does."""
        found = []
        for seconds in self._list_lengths(figures):
            counts = [self._count_needed_pairs(figure, seconds) for figure in figures]
            known = [count for count in counts if count is not None]
            if known and len(known) == len(counts):
                pair = None if seconds is None else 2 * (seconds + self.overhead)
                total = None if pair is None else max(known) * pair - self.overhead
                found.append(Price(max(known), seconds, total))
        least = min((each.total or 0.0 for each in found), default=0.0)
        # Runs as long as those that were measured are known best.
        near = [each for each in found if (each.total or 0.0) <= _NEARLY * least]
        return max(near, key=lambda each: each.seconds or 0.0, default=None)

    def red_by_change(self, figure: FigureNoise) -> RedShare:
        """Return how often a change of :data:`NAIVE_CHANGE` between single runs is only noise."""
        rows = [run.figures.rows.get(figure.place[0], {}) for run in self.runs]
        values = [row[figure.key].value for row in rows if figure.key in row]
        pairs = [after / before - 1 for before, after in combinations(values, 2)]
        return RedShare(
            sum(abs(change) > NAIVE_CHANGE for change in pairs),
            len(pairs),
            _share_beyond(figure.total, NAIVE_CHANGE) if figure.has_enough_runs else None,
            None if (long := self._long_variance(figure)) is None else _share_beyond(long, NAIVE_CHANGE),
        )

    def red_by_seconds(self) -> RedShare | None:
        """Return how often a t-test on the rates of the seconds of single runs is wrong; None: not known."""
        rate = next((each for each in self.figures if each.place == (ALL_KEY, "rate")), None)
        series = [run.rates for run in self.runs if len(run.rates) > 1 and fmean(run.rates) > 0]
        if rate is None or len(series) < len(self.runs) or self.seconds is None:
            return None
        pairs = [_differ_by_seconds(before, after) for before, after in combinations(series, 2)]
        # What the test takes for the variance of a difference.
        believed = 2 * fmean(variance(each) / len(each) / fmean(each) ** 2 for each in series)
        limit = math.sqrt(believed) * NormalDist().inv_cdf(1 - SIGNIFICANCE_LEVEL / 2)
        long, factor = self._long_variance(rate), self.seconds / LONG_RUN_SECONDS
        return RedShare(
            sum(pairs),
            len(pairs),
            _share_beyond(rate.total, math.expm1(limit)) if rate.has_enough_runs else None,
            None if long is None else _share_beyond(long, math.expm1(limit * math.sqrt(factor))),
        )

    def _long_variance(self, figure: FigureNoise) -> float | None:
        if not figure.has_enough_runs or self.seconds is None:
            return None
        if figure.between is None or figure.within is None:
            return None
        return figure.between + figure.within * self.seconds / LONG_RUN_SECONDS

    def _list_lengths(self, figures: Sequence[FigureNoise]) -> Iterator[float | None]:
        """Yield the lengths of runs that may be proposed."""
        if self.seconds is None:
            yield None
            return
        yield round(self.seconds, 1)
        if any(each.within is None for each in figures):
            return
        every = [run.figures.rows[ALL_KEY] for run in self.runs]
        rates = [each["rate"].value for each in every if "rate" in each]
        needed = max(COMPARED_FIGURES[each.key].needs for each in figures)
        for seconds in _LENGTHS:
            # Of slow runs a percentile would be missing, and so from the comparison.
            if seconds < 0.95 * self.seconds and (not needed or (rates and min(rates) * seconds > needed)):
                yield float(seconds)

    def _count_pairs(self, seconds: float, budget: float) -> int:
        each = seconds + self.overhead
        return min(MAX_PAIRS, math.floor((budget + self.overhead) / (2 * each)))

    def _find_detectable(self, figure: FigureNoise, pairs: int, seconds: float | None) -> float | None:
        if not figure.is_known:
            return None
        factor = 1.0 if seconds is None or self.seconds is None else min(1.0, seconds / self.seconds)
        error = math.sqrt(2 * figure.of_length(factor) / pairs)
        errors = find_detectable_errors(pairs - 1, round(figure.freedom, 2), figure.level)
        return math.expm1(math.log1p(NOISE_SHARE) + errors * error)

    def _count_needed_pairs(self, figure: FigureNoise, seconds: float | None) -> int | None:
        """Return the fewest pairs that show the wanted change; None where that are too many."""

        def is_shown(pairs: int) -> bool:
            found = self._find_detectable(figure, pairs, seconds)
            return found is not None and found <= self.wanted

        if not is_shown(MAX_PAIRS):
            return None
        low, high = MIN_RUNS_FOR_WORD - 1, MAX_PAIRS
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_shown(middle) else (middle, high)
        return high


def _share_beyond(of_run: float, change: float) -> float:
    """Return the share of pairs of single runs whose ratio is further from 1 than a change."""
    if not of_run:
        return 0.0
    differences = NormalDist(0.0, math.sqrt(2 * of_run))
    below = differences.cdf(math.log1p(-change)) if change < 1 else 0.0
    return below + 1 - differences.cdf(math.log1p(change))


def _differ_by_seconds(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether Welch's test on the seconds of two runs calls them different."""
    error, freedom = welch_error(before, after)
    away = abs(fmean(after) - fmean(before))
    return away > 0 and (not error or 2 * t_tail(away / error, freedom) <= SIGNIFICANCE_LEVEL)


# -- What equal runs say ---------------------------------------------------------------------------


def measure_noise(
    runs: Sequence[EqualRun], wanted: float, *, took: str = "", notes: Sequence[str] = ()
) -> NoiseFindings:
    """Return what equal runs say; ``wanted`` is the change that a plan is to show, as a share."""
    if all(run.figures.started is not None for run in runs):
        runs = sorted(runs, key=lambda run: run.figures.started or 0.0)
    lengths = [run.seconds for run in runs if run.seconds is not None]
    seconds = median(lengths) if lengths and len(lengths) == len(runs) else None
    places = [(ALL_KEY, key) for key, figure in COMPARED_FIGURES.items() if not figure.is_share]
    tested = [place for place in _list_places(runs) if _values(runs, place)]
    for key, name in HEADS:
        samples = [run.figures.rows.get(key, {}).get(name) for run in runs]
        if COMPARED_FIGURES[name].is_share and any(each is not None and each.value for each in samples):
            tested.append((key, name))
    levels = share_level(tested, HEADS)
    figures = [
        each
        for place in places
        if place in levels
        if (each := _measure_figure(runs, place, levels[place], place in HEADS)) is not None
    ]
    return NoiseFindings(
        tuple(runs),
        seconds,
        _find_overhead(runs, seconds),
        tuple(figures),
        wanted,
        tuple(_list_warnings([run.figures for run in runs])),
        took,
        tuple(notes),
    )


def _list_places(runs: Sequence[EqualRun]) -> list[FigurePlace]:
    """Return all figures but shares that any run has."""
    return [
        *dict.fromkeys(
            (key, figure)
            for run in runs
            for key, samples in run.figures.rows.items()
            for figure in samples
            if not COMPARED_FIGURES[figure].is_share
        )
    ]


def _values(runs: Sequence[EqualRun], place: FigurePlace) -> list[float]:
    """Return the logarithms of a figure that all runs have; nothing where some lack it."""
    key, figure = place
    found = runs_with_figure([run.figures for run in runs], key, COMPARED_FIGURES[figure])
    if len(found) < len(runs):
        return []
    return [math.log(run.rows[key][figure].value) for run in found]


def _measure_figure(
    runs: Sequence[EqualRun], place: FigurePlace, level: float, is_head: bool
) -> FigureNoise | None:
    """Return the variances of a figure; None where not all runs have it, or fewer than two."""
    values = _values(runs, place)
    if len(values) < 2:
        return None
    squares = freedom = 0.0
    count = 0
    for session in _split_by_time(runs):
        own = [values[number] for number in session]
        if _are_pairs([runs[number] for number in session]):
            differences = [two - one for one, two in zip(own[::2], own[1::2], strict=True)]
            freedom += len(differences)
        else:
            differences = [two - one for one, two in pairwise(own)]
            made = len(differences)
            freedom += 2 * made**2 / (3 * made - 1) if made else 0.0
        squares += sum(difference**2 for difference in differences)
        count += len(differences)
    changes = [run.halves[place] for run in runs if place in run.halves]
    return FigureNoise(
        place,
        math.exp(fmean(values)),
        len(values),
        variance(values),
        squares / (2 * count) if count else variance(values),
        freedom,
        variance(changes) / 4 if len(changes) == len(values) else None,
        level,
        is_head,
    )


def _split_by_time(runs: Sequence[EqualRun]) -> list[list[int]]:
    """Return the places of runs that followed each other, a list for each session."""
    sessions = [[0]]
    for number, (one, two) in enumerate(pairwise(run.figures.started for run in runs), 1):
        if one is not None and two is not None and two - one > SESSION_SECONDS:
            sessions.append([])
        sessions[-1].append(number)
    return sessions


def _are_pairs(runs: Sequence[EqualRun]) -> bool:
    """Whether each two runs drew the same operations, and no others did."""
    seeds = [run.figures.facts.get("seed", "") for run in runs]
    return (
        len(seeds) % 2 == 0
        and all(seeds)
        and seeds[::2] == seeds[1::2]
        and len(set(seeds)) == len(seeds) // 2
    )


def _find_overhead(runs: Sequence[EqualRun], seconds: float | None) -> float:
    """Return the time from the end of a run to the beginning of the next, by the shortest there was."""
    starts = [run.figures.started for run in runs]
    gaps = [two - one for one, two in pairwise(starts) if one is not None and two is not None]
    least = min(gaps, default=0.0) - (seconds or 0.0)
    return (
        least if seconds and RUN_OVERHEAD_SECONDS < least <= _MAX_OVERHEAD_SECONDS else RUN_OVERHEAD_SECONDS
    )


def _list_warnings(runs: Sequence[RunFigures]) -> Iterator[str]:
    facts = [run.facts for run in runs]
    for text in describe_fact_differences(facts, facts):
        yield text.replace("among the runs of a side", "among these runs, which should be equal")
    yield from find_outlier_runs(runs)
    yield from join_alike_warnings((run.name, run.warnings) for run in runs)
