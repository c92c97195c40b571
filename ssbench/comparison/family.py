"""Many comparisons at once: rows that each have runs before and after, and one verdict on all of them.

The rows of two suites, or the steps of two sweeps, are a family. Of 20 rows with 8 figures each, 8 differ at
5 % where nothing changed. So all tests share one level: luck shows a change anywhere in one of twenty
families (Holm, 1979).

That takes very small probabilities, and few rounds have none: Student's t of 3 degrees of freedom needs 15
standard errors. But the rows of a family are alike in how much their runs differ. The variance of each is
drawn towards what all rows of that figure have in common, as far as they do (an inverse chi square prior,
fitted to the variances of the rows: Smyth, Statistical Applications in Genetics 3, 2004), so that a row has
the degrees of freedom of its own runs and those of the prior. Rows that are slow in the same rounds, such as
those of one scenario at two stores, say the same again, and count as fewer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from ssbench.comparison.change import (
    NOISE_SHARE,
    SIGNIFICANCE_LEVEL,
    FigureChange,
    FigureDifference,
    RunOrder,
    apply_holm,
    find_run_order,
    is_measured,
    judge_change,
    measure_difference,
)
from ssbench.comparison.compare import Judged
from ssbench.comparison.run_figures import FigureSample, binomial_half_width, failure_half_width
from ssbench.document.figures import Figure, find_figure
from ssbench.statistics.run_statistics import RunStatistics

#: The figures of a row, of all of its operations.
ROW_FIGURE_KEYS = ("rate", "mb_per_s", "p50", "p90", "p99", "first_p50", "first_p99", "errors")

#: Fewer runs of each side of a row allow no word; with fewer degrees of freedom in all rows together, nothing
#: is known of how much runs differ.
MIN_ROUNDS = 3
_MIN_FREEDOM = 6


def list_row_figures() -> dict[str, Figure]:
    """Return the rows of the table of figures that a family compares, by their keys."""
    return {key: figure for key in ROW_FIGURE_KEYS if (figure := find_figure(key)) is not None}


@dataclass(frozen=True, slots=True)
class RowRun:
    """What is kept of a run of a row."""

    figures: Mapping[str, FigureSample]  # by their keys; without those that the run has too few results for
    started: float | None = None  # seconds since 1970; None: not known


def make_row_run(statistics: RunStatistics) -> RowRun:
    """Return what is kept of a run."""
    found: dict[str, FigureSample] = {}
    line = statistics.total.lines[0]
    for key, figure in list_row_figures().items():
        value = figure.share(line, statistics) if figure.is_share else figure.value(line, statistics)
        if value is None or not math.isfinite(value) or figure.at_least(line, statistics):
            continue
        if figure.is_share:
            # Rounds with one failure each, or none, are alike by chance.
            found[key] = FigureSample(value, failure_half_width(line) or binomial_half_width(line))
        elif value > 0:
            found[key] = FigureSample(value)
    return RowRun(found, statistics.run.started or statistics.start)


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """The changes of one row, by the keys of figures."""

    name: str
    runs: tuple[int, int]  # before and after
    changes: Mapping[str, FigureChange]


@dataclass(frozen=True, slots=True)
class FamilyComparison:
    """The changes of all rows, judged together."""

    before: str  # name of the side
    after: str  # name of the side
    rows: tuple[FamilyRow, ...]
    noise: float
    tests: int  # figures of rows that share the level
    in_turn: bool  # each run before has one after beside it, so that a drift is no difference
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()  # further sentences, below those of the verdict
    conditions: tuple[Judged, ...] = ()  # those that were asked for, each in each row
    why_not: str = ""  # why there is no verdict, of two sides in each run; empty: too few runs
    missing: tuple[str, ...] = ()  # rows that are there before, and not after

    @property
    def is_judged(self) -> bool:
        """Whether there were enough runs for a verdict."""
        return self.tests > 0

    def shown(self) -> list[tuple[FamilyRow, str, FigureChange]]:
        """Return the changes that were shown, the largest first."""
        found = [
            (row, key, change) for row in self.rows for key, change in row.changes.items() if change.differs
        ]
        return sorted(found, key=lambda each: -_size(each[2]))

    def detectable(self, key: str) -> float | None:
        """Return the change of a figure that half of the rows would have shown; None: not known."""
        found = [
            change.detectable
            for row in self.rows
            if (change := row.changes.get(key)) is not None and change.detectable is not None
        ]
        return median(found) if found else None


def _size(change: FigureChange) -> float:
    """Return how large a change is, alike for more and for less."""
    return abs(math.log1p(max(change.change or 0.0, -0.999999)))


#: A row: its name, and its runs before and after.
RowRuns = tuple[str, Sequence[RowRun], Sequence[RowRun]]


def compare_families(
    before: str,
    after: str,
    rows: Sequence[RowRuns],
    noise: float = NOISE_SHARE,
    warnings: Sequence[str] = (),
) -> FamilyComparison:
    """Compare all rows; those that one side lacks are to be left out, and said in ``warnings``."""
    figures = list_row_figures()
    orders = [_find_order(first, second) for _, first, second in rows]
    found: dict[tuple[int, str], FigureDifference] = {}
    for key, figure in figures.items():
        measured = {
            place: _measure(figure, first, second, order)
            for place, ((_, first, second), order) in enumerate(zip(rows, orders, strict=True))
        }
        known = {
            place: replace(each, sure=each.between_runs and min(map(len, rows[place][1:])) >= MIN_ROUNDS)
            for place, each in measured.items()
            if each is not None
        }
        residuals = (
            [] if figure.is_share else [_list_residuals(key, rows[each], orders[each]) for each in known]
        )
        moderated = known if figure.is_share else moderate_variances(known, estimate_common_share(residuals))
        found |= {(place, key): each for place, each in moderated.items()}
    return judge_differences(
        FamilyComparison(
            before,
            after,
            tuple(FamilyRow(name, (len(first), len(second)), {}) for name, first, second in rows),
            noise,
            0,
            all(order is not None and order.pairs for order in orders),
            tuple(warnings),
        ),
        found,
    )


def judge_differences(
    family: FamilyComparison, found: Mapping[tuple[int, str], FigureDifference]
) -> FamilyComparison:
    """Return a family with its changes: of each row, by its place, and figure what was measured."""
    figures, noise = list_row_figures(), family.noise
    tested = [place for place, each in found.items() if each.sure and is_measured(each)]
    plain = {
        place: judge_change(figures[place[1]], each, noise, shown=False) for place, each in found.items()
    }
    shown = dict(zip(tested, apply_holm([plain[place].p or 0.0 for place in tested]), strict=True))
    level = SIGNIFICANCE_LEVEL / max(1, len(tested))
    changes: list[dict[str, FigureChange]] = [{} for _ in family.rows]
    for (row, key), each in found.items():
        changes[row][key] = judge_change(figures[key], each, noise, level, shown=shown.get((row, key), False))
    rows = tuple(replace(row, changes=own) for row, own in zip(family.rows, changes, strict=True))
    return replace(family, rows=rows, tests=len(tested))


def _find_order(before: Sequence[RowRun], after: Sequence[RowRun]) -> RunOrder | None:
    """Return the order of runs that were measured in turn; None for all others."""
    order = find_run_order([run.started for run in before], [run.started for run in after])
    return order if order is not None and order.pairs else None


def _measure(
    figure: Figure, before: Sequence[RowRun], after: Sequence[RowRun], order: RunOrder | None
) -> FigureDifference | None:
    """Return the difference of a figure; None where a run of either side lacks it."""
    sides = [
        [run.figures[figure.key] for run in runs if figure.key in run.figures] for runs in (before, after)
    ]
    if not all(sides) or [len(side) for side in sides] != [len(before), len(after)]:
        return None
    measured = measure_difference(figure, sides[0], sides[1], order)
    if order is not None or not measured.between_runs or figure.is_share:
        return measured
    # Welch's degrees of freedom depend on the variances themselves; those of one common variance do not.
    values = [[math.log(sample.value) for sample in side] for side in sides]
    freedom = len(values[0]) + len(values[1]) - 2
    within = sum((value - fmean(side)) ** 2 for side in values for value in side) / freedom
    error = math.sqrt(within * (1 / len(values[0]) + 1 / len(values[1])))
    return replace(measured, error=error, freedom=float(freedom))


def _list_residuals(key: str, row: RowRuns, order: RunOrder | None) -> list[float]:
    """Return how the logarithms of a figure in the runs of a row differ from the mean of their side.

    Of runs in turn these are the differences of pairs. Empty where a run lacks it.
    """
    sides = [[run.figures[key].value for run in runs if key in run.figures] for runs in row[1:]]
    if [*map(len, sides)] != [*map(len, row[1:])] or min(map(len, sides)) < 2:
        return []
    scaled = [[math.log(value) for value in side] for side in sides]
    if order is not None:
        scaled = [[scaled[1][two] - scaled[0][one] for one, two in order.pairs]]
    return [value - fmean(side) for side in scaled for value in side]


# -- Variances that rows have in common ------------------------------------------------------------


def estimate_common_share(residuals: Sequence[Sequence[float]]) -> float:
    """Return how much of what differs from run to run is the same in all rows, from 0 to 1.

    ``residuals`` are those of each row, in the order of rounds. It is the correlation of two rows, by how
    much their mean varies; each row counts alike.
    """
    length = max(map(len, residuals), default=0)
    scales = [math.sqrt(sum(value**2 for value in each)) for each in residuals if len(each) == length]
    alike = [each for each in residuals if len(each) == length]
    scaled = [
        [value / scale for value in each] for each, scale in zip(alike, scales, strict=True) if scale > 0
    ]
    if len(scaled) < 2:
        return 0.0
    together = len(scaled) * sum(fmean(each) ** 2 for each in zip(*scaled, strict=True))
    return min(1.0, max(0.0, (together - 1) / (len(scaled) - 1)))


def moderate_variances(
    found: Mapping[int, FigureDifference], common: float = 0.0
) -> dict[int, FigureDifference]:
    """Return the differences of one figure in many rows, each with a variance that knows the others'.

    ``common`` is the share of :func:`estimate_common_share`.
    """
    known = {
        place: (each.error**2, each.freedom)
        for place, each in found.items()
        if each.between_runs and each.error and math.isfinite(each.freedom)
    }
    total = sum(freedom for _, freedom in known.values())
    if total < _MIN_FREEDOM:
        return {place: replace(each, sure=False) for place, each in found.items()}
    prior, prior_freedom = fit_variance_prior([*known.values()])
    # Squares of values with this correlation have its square for theirs.
    total /= 1 + (len(known) - 1) * common**2
    made = dict(found)
    for place, (variance, freedom) in known.items():
        if math.isinf(prior_freedom):
            mixed, all_freedom = prior, math.inf
        else:
            all_freedom = prior_freedom + freedom
            mixed = (prior_freedom * prior + freedom * variance) / all_freedom
        made[place] = replace(
            found[place], error=math.sqrt(mixed), freedom=max(freedom, min(all_freedom, total))
        )
    return made


def fit_variance_prior(variances: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the variance that rows have in common, and the degrees of freedom that it is worth.

    ``variances`` are those of rows, each with its degrees of freedom. By the moments of their logarithms;
    infinite degrees where the rows differ by no more than chance.
    """
    logs = [
        math.log(variance) - _digamma(freedom / 2) + math.log(freedom / 2) for variance, freedom in variances
    ]
    middle = fmean(logs)
    if len(logs) < 2:
        return math.exp(middle), 0.0
    spread = sum((each - middle) ** 2 for each in logs) / (len(logs) - 1)
    beyond = spread - fmean(_trigamma(freedom / 2) for _, freedom in variances)
    if beyond <= 0:
        return math.exp(middle), math.inf
    freedom = 2 * _invert_trigamma(beyond)
    return math.exp(middle + _digamma(freedom / 2) - math.log(freedom / 2)), freedom


def _shift(value: float) -> Iterator[float]:
    """Yield the arguments by which a series is carried to where its asymptotic form is exact."""
    while value < 6:
        yield value
        value += 1


def _digamma(value: float) -> float:
    """Return the derivative of the logarithm of the gamma function."""
    below = sum(1 / each for each in _shift(value))
    value += max(0, math.ceil(6 - value))
    square = 1 / value**2
    return math.log(value) - 0.5 / value - square * (1 / 12 - square * (1 / 120 - square / 252)) - below


def _trigamma(value: float) -> float:
    """Return the derivative of :func:`_digamma`."""
    below = sum(1 / each**2 for each in _shift(value))
    value += max(0, math.ceil(6 - value))
    square = 1 / value**2
    return 1 / value + square / 2 + square / value * (1 / 6 - square * (1 / 30 - square / 42)) + below


def _invert_trigamma(wanted: float) -> float:
    """Return the value at which the trigamma function, which falls, is this."""
    low, high = 1e-8, 1e8
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _trigamma(middle) > wanted else (low, middle)
    return math.sqrt(low * high)
