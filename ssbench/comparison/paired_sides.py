"""The two sides of a run (``--ab``), and of several: what one minute did to both is no difference of theirs.

Each operation belongs to one side, which had users of its own, as many as the other, in the same seconds. The
change is the ratio of both sides' percentiles. How certain that is follows from what each second adds to it:
by how many of its latencies more, or fewer, lie below the percentile than should, in units of the logarithm
(Bahadur's representation of a percentile). What a second did to both sides is not in the difference of these.
Its interval is that of their mean on the effective number of seconds.

A single run does not show what differs between its sides from run to run. Of several (``--repeat``) each
counts once: Student's t on as many differences as there are runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, variance

import numpy as np
from msgspec import structs

from ssbench.comparison.change import (
    FAILURES_FIGURE,
    HEADS,
    MIN_RUNS_FOR_WORD,
    NOISE_SHARE,
    FigureDifference,
    FigurePlace,
    estimate_mean_interval,
    find_run_order,
    judge_changes,
)
from ssbench.comparison.comparison_report import list_visible_changes, make_conclusion
from ssbench.comparison.family import (
    MIN_ROUNDS,
    FamilyComparison,
    FamilyRow,
    judge_differences,
    list_row_figures,
    list_start_remarks,
)
from ssbench.comparison.noise_floor import (
    CPU_DEVIATION,
    PLACEMENT_DEVIATION,
    NoiseFloors,
    SwiftStarts,
    add_noise_floor_of_sides,
    is_ratio,
    placement_deviation,
)
from ssbench.comparison.row_variances import moderate_variances
from ssbench.comparison.run_comparison import ComparedSide, Comparison, find_only_classes, group_rows
from ssbench.comparison.run_figures import (
    ALL_KEY,
    FigureKey,
    classes_by_operation,
    describe_side_swifts,
    failure_difference_error,
    failure_interval,
    failure_share,
    list_local_urls,
)
from ssbench.document.elements import Document, Section
from ssbench.document.figures import COMPARED_FIGURES, COMPARED_RANKS, CPU_FIGURES, CPU_KEYS
from ssbench.reports import run_document
from ssbench.reports.part_changes import make_part_elements
from ssbench.reports.writing import ReportOptions
from ssbench.statistics.confidence import MIN_SECONDS, Series, effective_size
from ssbench.statistics.counted_figures import CountedFigures, merge_figures
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.run_statistics import RunPart, RunStatistics
from ssbench.statistics.run_verdict import find_side_reasons
from ssbench.statistics.server_cpu import compare_server_cpu

_PERCENTILE_SHARES = {key: rank / 100 for key, rank in COMPARED_RANKS.items()}

#: So many operations that never began, for each that lies beyond a percentile, do not change it noticeably.
_MAX_WAITS_SHARE = 0.1

#: The slope of the percentiles is that between two whose shares are this part of 1 - share away.
_SLOPE_DISTANCE = 1 / 3

#: Of the error of a percentile. A short run can seem worth two seconds by chance, for which Student's t is
#: six times as wide; but how much its seconds scatter is known of more. With four degrees in place of two the
#: intervals of 12 s of noise that is alike (autocorrelation 0.8) miss the truth half as often again.
_MIN_FREEDOM = 2.0

_JUDGMENT_TEXT = (
    "both sides ran at the same time: latencies are compared second by second (Student's t); rates are not"
    " compared, because they follow from the load and from latencies"
)
_TOO_SHORT_TEXT = (
    f"the run was too short for intervals, which take {MIN_SECONDS} seconds with enough operations of both"
    " sides"
)
_NEVER_BEGUN_TEXT = (
    "operations that were due never began, on which side is unknown, so percentiles would cover only the"
    " others"
)


def compare_sides(
    statistics: RunStatistics, noise: float = NOISE_SHARE, floors: NoiseFloors | None = None
) -> Comparison:
    """Compare the sides of a run; raises ValueError where it has none.

    ``floors`` say what differs from run to run.
    """
    before, after = require_sides(statistics)
    objects = min((each for each in _count_objects(statistics, ALL_KEY) if each), default=None)
    found = _measure_alone(statistics, floors)
    changes = judge_changes(found, noise, HEADS)
    sure = any(each.sure for place, each in found.items() if is_ratio(place))
    failing = any(each.differs for place, each in changes.items() if not is_ratio(place))
    why_not = (
        _NEVER_BEGUN_TEXT if _lacks_waits(statistics.total, _PERCENTILE_SHARES["p50"]) else _TOO_SHORT_TEXT
    )
    why_not += ": only shares of failures are compared" if failing else ": no verdict"
    return Comparison(
        before=before.name,
        after=after.name,
        runs=(0, 0),
        rows=tuple(group_rows(changes)),
        repeated=sure or failing,
        judgment=f"{_JUDGMENT_TEXT}. {_describe_floor(floors, objects)}" if sure else why_not,
        noise=noise,
        warnings=(
            *describe_side_swifts(statistics.run),
            *_warn_of_few_objects(objects, floors),
            *_list_warnings(statistics),
        ),
        seconds=statistics.duration,
        only_classes=classes_by_operation(statistics),
    )


def _measure_alone(
    statistics: RunStatistics, floors: NoiseFloors | None = None
) -> dict[FigurePlace, FigureDifference]:
    """Return the differences of a single run, with what it does not show of itself."""
    return {
        place: add_noise_floor_of_sides(
            each, floors.of_sides(place) if floors else None, _assume_deviations(statistics, place)
        )
        if is_ratio(place)
        else each
        for place, each in measure_side_differences(statistics).items()
    }


def _assume_deviations(statistics: RunStatistics, place: FigurePlace) -> tuple[float, float]:
    """Return by how much equal sides may differ, each of them, for a reason that a run does not show."""
    if place[1] in CPU_KEYS:
        return CPU_DEVIATION, CPU_DEVIATION
    one, two = map(placement_deviation, _count_objects(statistics, place[0]))
    return one, two


def require_sides(statistics: RunStatistics) -> tuple[RunPart, RunPart]:
    """Return the sides of a run; raises ValueError where it has none."""
    if len(statistics.sides) != 2:
        raise ValueError("the run has no two sides")
    before, after = statistics.sides
    return before, after


def _count_objects(statistics: RunStatistics, key: FigureKey) -> tuple[float | None, float | None]:
    """Return of how many objects the operations of each side are; None where they are many, or not known."""
    sections = [section.operation for section in statistics.sections if section.operation]
    operation = next((each.code for each in sections if each.name.upper() == key[0]), None)
    classes = [each.name for each in statistics.run.scenario.size_classes]
    size_class = classes.index(key[1]) if key[1] in classes else None
    one, two = (
        side.numbers.objects.effective(operation, size_class) if side.numbers.objects else None
        for side in require_sides(statistics)
    )
    return one, two


def _describe_floor(floors: NoiseFloors | None, objects: float | None) -> str:
    """Say what the intervals allow for that no single run shows."""
    if floors is not None and floors.of_sides((ALL_KEY, "p50")) is not None:
        return f"Variation from run to run is taken from {floors.runs} earlier equal runs"
    few = (
        f" of only {objects:.0f} objects"
        if objects and placement_deviation(objects) > PLACEMENT_DEVIATION
        else ""
    )
    return (
        f"The objects of a side may lie on slower devices: {100 * placement_deviation(objects):.2g} % a"
        f" side{few} is assumed for that; --repeat, or four earlier equal runs in --results-dir, measure it"
        " instead"
    )


def _warn_of_few_objects(objects: float | None, floors: NoiseFloors | None) -> tuple[str, ...]:
    """Say that a side has few objects, where no earlier runs tell what that does."""
    is_known = floors is not None and floors.of_sides((ALL_KEY, "p50")) is not None
    if is_known or not objects or placement_deviation(objects) == PLACEMENT_DEVIATION:
        return ()
    return (
        f"a side has only {objects:.0f} objects: a difference may be one of their devices, and only large"
        " ones are shown; use more objects",
    )


def _list_warnings(statistics: RunStatistics) -> list[str]:
    return [*(each.text for each in find_side_reasons(statistics)), *statistics.warnings]


def measure_side_differences(statistics: RunStatistics) -> dict[FigurePlace, FigureDifference]:
    """Return what a run says of the difference of its sides, for each operation, size class and figure."""
    found: dict[FigurePlace, FigureDifference] = {}
    whole = _figures(statistics, several=_has_classes(statistics))
    for key, sides in _pair_figures(statistics).items():
        for name, share in _PERCENTILE_SHARES.items():
            # What never began is known of the whole run only.
            if key in whole and _lacks_waits(whole[key], share):
                continue
            if (difference := _difference(sides, share)) is not None:
                found[key, name] = difference
        found[key, FAILURES_FIGURE] = _difference_of_shares(*sides)
    samples = [side.numbers.cpu_samples for side in require_sides(statistics)]
    for kind, each in compare_server_cpu(*samples).items():
        if kind not in CPU_FIGURES:  # it is the text of a file
            continue
        found[ALL_KEY, CPU_FIGURES[kind].key] = FigureDifference(
            each.before,
            each.after,
            each.middle,
            each.error,
            each.freedom,
            between_runs=each.error is not None,
            sure=each.error is not None,
        )
    return found


def _has_classes(statistics: RunStatistics) -> bool:
    return len(statistics.total.lines) > 2


def _lacks_waits(figures: CountedFigures, share: float) -> bool:
    """Whether a percentile would be another one if it were known of which side they were that never began."""
    latency = figures.latency
    return latency.waited.count > _MAX_WAITS_SHARE * (1 - share) * latency.count


def _pair_figures(statistics: RunStatistics) -> dict[FigureKey, tuple[CountedFigures, CountedFigures]]:
    """Return the figures of both sides by operation and size class, those of all operations last."""
    several = _has_classes(statistics)
    before, after = (_figures(side.numbers, several=several) for side in require_sides(statistics))
    nothing, everything = merge_figures(()), ALL_KEY
    keys = [*dict.fromkeys(key for key in (*before, *after) if key != everything), everything]
    return {key: (before.get(key, nothing), after.get(key, nothing)) for key in keys}


def _figures(side: RunStatistics, *, several: bool) -> dict[FigureKey, CountedFigures]:
    """Return the figures of a side; those of size classes where the run has ``several``."""
    found: dict[FigureKey, CountedFigures] = {}
    for section in side.sections:
        name = section.operation.name.upper() if section.operation else "ALL"
        for line in section.lines if several and section.operation else section.lines[:1]:
            found[name, line.size_class] = line
    return found


def _difference(sides: tuple[CountedFigures, CountedFigures], share: float) -> FigureDifference | None:
    """Return the difference of a percentile.

    None where a side has too few latencies for it, or where these are lower bounds (of an open loop).
    """
    users = [side.latency for side in sides]
    if not all(each.supports(100 * share) for each in users) or any(each.waited.count for each in users):
        return None
    latencies = [each.measured for each in users]
    before, after = (each.percentile(100 * share) for each in latencies)
    middle = math.log(after / before)
    parts = _parts_by_second(latencies[0], latencies[1], share)
    if len(parts) < MIN_SECONDS:
        return FigureDifference(before, after, middle)
    size = effective_size(parts)
    error = float(np.std(parts, ddof=1)) / math.sqrt(size)
    freedom = max(_MIN_FREEDOM, size - 1)
    return FigureDifference(before, after, middle, error, freedom, between_runs=True, sure=True)


def _difference_of_shares(before: CountedFigures, after: CountedFigures) -> FigureDifference:
    """Return the difference of the shares of operations that failed."""
    first, second = failure_share(before), failure_share(after)
    found = failure_difference_error(before, after)
    if found is None:
        return FigureDifference(first, second, second - first)
    low, high = failure_interval(after)
    return FigureDifference(
        first, second, second - first, *found, between_runs=True, sure=True, after_low=low, after_high=high
    )


def _parts_by_second(before: Latencies, after: Latencies, share: float) -> Series:
    """Return what each second adds to the difference of the logarithms of both sides' percentiles.

    Their mean is 0: what is known is how much they scatter.
    """
    one, two = (each.by_second.below(share) for each in (before, after))
    if one is None or two is None:
        return np.empty(0)
    first = min(one[0], two[0])
    last = max(start + len(every) for start, _, every in (one, two))
    parts = np.zeros(last - first)
    for sign, latencies, (start, below, every) in ((-1, before, one), (1, after, two)):
        # More latencies below than should be: the percentile of that second is lower.
        excess = share * every - below
        parts[start - first : start - first + len(every)] += (
            sign * _percentile_slope(latencies, share) * excess * len(parts) / every.sum()
        )
    return parts


def _percentile_slope(latencies: Latencies, share: float) -> float:
    """Return by how much the logarithm of the percentiles grows with their share."""
    away = _SLOPE_DISTANCE * (1 - share)
    low, high = (latencies.percentile(100 * each) for each in (share - away, share + away))
    return math.log(high / low) / (2 * away)


_RUNS_TEXT = (
    "each run measured both sides: the intervals are of Student's t on the differences of runs, each of which"
    " counts once; rates follow from the load and from latencies, and are not compared"
)


@dataclass(frozen=True, slots=True)
class SidedRun:
    """What a run says of its two sides."""

    name: str
    sides: tuple[str, ...]  # their names
    values: Mapping[FigurePlace, tuple[float, float]]  # those of each figure before and after
    started: float | None = None
    warnings: tuple[str, ...] = ()
    only_classes: Mapping[str, str] = field(default_factory=dict)
    #: What the run alone says of each figure of all operations.
    alone: Mapping[str, FigureDifference] = field(default_factory=dict)
    rates: tuple[float, float] | None = None  # successes a second of each side; None: not known
    #: The storage URLs of the Swift of each side, where it is on this machine; both may have the same one.
    local_swifts: tuple[tuple[str, ...], ...] = ((), ())


def make_sided_run(statistics: RunStatistics, name: str) -> SidedRun:
    """Reduce a run; raises ValueError without two sides."""
    parts = require_sides(statistics)
    sides = tuple(each.name for each in parts)
    alone = {key: each for (row, key), each in _measure_alone(statistics).items() if row == ALL_KEY}
    before, after = (each.numbers.total.requests_per_second for each in parts)
    values = {
        place: (each.before, each.after)
        for place, each in measure_side_differences(statistics).items()
        if each.before is not None and each.after is not None
    }
    own_warnings = (f"{name}: {warning}" for warning in _list_warnings(statistics))
    warnings = (*describe_side_swifts(statistics.run), *own_warnings)  # these are the same in all runs
    started = statistics.run.started or statistics.start
    urls = list_local_urls(statistics)
    return SidedRun(
        name,
        sides,
        values,
        started,
        warnings,
        classes_by_operation(statistics),
        alone,
        (before, after),
        tuple((url,) for url in urls) if len(urls) == len(sides) else (urls,) * len(sides),
    )


def compare_sided(runs: Sequence[SidedRun], noise: float = NOISE_SHARE) -> Comparison:
    """Compare the sides of two runs or more; raises ValueError where these are not the same in all."""
    names = {run.sides for run in runs}
    if len(names) != 1:
        raise ValueError("the runs have different sides")
    places = [place for place in runs[0].values if all(place in run.values for run in runs)]
    starts = _list_starts(runs)
    found = {
        place: starts.allow_for(
            COMPARED_FIGURES[place[1]], _difference_of_runs(place, [run.values[place] for run in runs])
        )
        for place in places
    }
    enough = len(runs) >= MIN_RUNS_FOR_WORD
    judgment = _RUNS_TEXT if enough else f"fewer than {MIN_RUNS_FOR_WORD} runs: no verdict; {_RUNS_TEXT}"
    first, last = runs[0].name, runs[-1].name
    before, after = names.pop()
    return Comparison(
        before=f"{before} in {first} to {last}",
        after=f"{after} in the same runs",
        runs=(len(runs), len(runs)),
        rows=tuple(group_rows(judge_changes(found, noise, HEADS))),
        repeated=enough,
        judgment=". ".join(filter(None, [judgment, starts.describe()])),
        noise=noise,
        warnings=tuple(dict.fromkeys(warning for run in runs for warning in run.warnings)),
        drifts=_drifts(runs, found) if enough else None,
        only_classes=find_only_classes([run.only_classes for run in runs]),
        sides=tuple(_describe_side(name, runs) for name in (before, after)),
    )


def _list_starts(runs: Sequence[SidedRun]) -> SwiftStarts:
    """Return the Swifts on this machine that the sides of some runs have."""
    return SwiftStarts.of(*([run.local_swifts[side] for run in runs] for side in (0, 1)))


def _describe_side(name: str, runs: Sequence[SidedRun]) -> ComparedSide:
    started = [run.started for run in runs if run.started is not None]
    return ComparedSide(name, "", "", min(started, default=None), max(started, default=None))


def _difference_of_runs(place: FigurePlace, values: Sequence[tuple[float, float]]) -> FigureDifference:
    figure = COMPARED_FIGURES[place[1]]
    is_share = figure.is_share
    scaled = [pair if is_share else (math.log(pair[0]), math.log(pair[1])) for pair in values]
    before, after = (fmean(pair[side] for pair in scaled) for side in (0, 1))
    differences = [two - one for one, two in scaled]
    error = math.sqrt(variance(differences) / len(differences))
    low, high = estimate_mean_interval(figure, [two for _, two in scaled])
    return FigureDifference(
        before if is_share else math.exp(before),
        after if is_share else math.exp(after),
        after - before,
        error,
        len(differences) - 1.0,
        between_runs=True,
        sure=len(differences) >= MIN_RUNS_FOR_WORD,
        after_low=low,
        after_high=high,
    )


def _drifts(runs: Sequence[SidedRun], found: Mapping[FigurePlace, FigureDifference]) -> dict[str, float]:
    """Return by how much the 50th percentile of both sides changed from the first run to the last."""
    place: FigurePlace = (ALL_KEY, "p50")
    order = find_run_order([run.started for run in runs], [])
    if order is None or place not in found:
        return {}
    logs = [math.log(run.values[place][0] * run.values[place][1]) / 2 for run in runs]
    return {"p50": math.expm1(order.drift(logs, []))}


# -- Rows of runs with two sides -------------------------------------------------------------------


def compare_sided_rows(rows: Sequence[tuple[str, Sequence[SidedRun]]]) -> FamilyComparison:
    """Compare the sides in each of some rows, such as the steps of a sweep; all share one level.

    Of a row with three runs or more each run counts once; of fewer, which do not show how much runs differ,
    what these know of themselves. Raises ValueError where the runs have different sides.
    """
    names = {run.sides for _, runs in rows for run in runs}
    if len(names) != 1:
        raise ValueError("the runs have different sides")
    before, after = names.pop()
    # Of fewer runs more is allowed for than a start may change.
    starts = [_list_starts(runs if len(runs) >= MIN_ROUNDS else ()) for _, runs in rows]
    found: dict[tuple[int, str], FigureDifference] = {}
    for key, figure in list_row_figures().items():
        own = {
            place: each
            for place, (_, runs) in enumerate(rows)
            if (each := _measure_row(key, runs)) is not None
        }
        if not figure.is_share and _have_rounds(rows):
            own = moderate_variances(own)
        found |= {(place, key): starts[place].allow_for(figure, each) for place, each in own.items()}
    made = judge_differences(
        FamilyComparison(
            before,
            after,
            tuple(FamilyRow(name, (len(runs), len(runs)), {}) for name, runs in rows),
            NOISE_SHARE,
            0,
            in_turn=True,
            warnings=tuple(dict.fromkeys(each for _, runs in rows for run in runs for each in run.warnings)),
            why_not="" if _have_rounds(rows) else f"No verdict: {_TOO_SHORT_TEXT}.",
        ),
        found,
    )
    return replace(made, remarks=(_ROWS_TEXT, *list_start_remarks(starts)) if made.is_judged else ())


_ROWS_TEXT = (
    "Both sides ran at the same time, each with half of the users. Of fewer than"
    f" {MIN_ROUNDS} runs the seconds are compared, and for objects that lie on slower devices"
    f" {100 * PLACEMENT_DEVIATION:g} % a side are allowed at least; --repeat measures what differs from run"
    " to run instead. Rates follow from latencies, and are not compared."
)


def _have_rounds(rows: Sequence[tuple[str, Sequence[SidedRun]]]) -> bool:
    return all(len(runs) >= MIN_ROUNDS for _, runs in rows)


def _measure_row(key: str, runs: Sequence[SidedRun]) -> FigureDifference | None:
    """Return the difference of a figure of all operations in some runs; None where one lacks it."""
    if key == "rate":
        rates = [run.rates for run in runs if run.rates is not None]
        means = [fmean(pair[side] for pair in rates) for side in (0, 1) if rates]
        return FigureDifference(means[0], means[1]) if means else None
    place: FigurePlace = (ALL_KEY, key)
    if not runs or not all(place in run.values for run in runs):
        return None
    if len(runs) == 1:
        return runs[0].alone.get(key)
    made = _difference_of_runs(place, [run.values[place] for run in runs])
    if len(runs) >= MIN_ROUNDS:
        return replace(made, sure=True)
    alone = [run.alone[key] for run in runs]
    errors = [each.error for each in alone if each.error is not None]
    if len(errors) < len(alone):
        return replace(made, error=None, sure=False)
    # The objects of a side are the same in all of them, so that the error does not average out.
    return replace(
        made,
        error=math.hypot(*errors) / math.sqrt(len(errors)),
        freedom=min(each.freedom for each in alone),
        between_runs=False,
        sure=all(each.sure for each in alone),
    )


# -- The document of a run -------------------------------------------------------------------------


def make_sided_run_document(statistics: RunStatistics, options: ReportOptions) -> Document:
    """Return the document; sides are compared."""
    if not statistics.sides:
        return run_document.make_run_report_document(statistics, options)
    compared: Comparison = (options.compare_sides or compare_sides)(statistics)
    comparison = replace(compared, warnings=())
    found = make_conclusion(comparison)
    said = structs.replace(found, title=f"{comparison.before} to {comparison.after}: {found.title}")
    by_part = make_part_elements(comparison.by_part) if comparison.by_part else []
    return run_document.make_run_report_document(
        statistics, options, [Section("Changes", [list_visible_changes(comparison), *by_part])], said
    )
