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
from dataclasses import dataclass, field
from statistics import fmean, variance

import numpy as np

from ssbench.comparison.change import ENOUGH_RUNS, NOISE, Difference, interval_of_mean
from ssbench.comparison.compare import Comparison, only_classes, rows_of
from ssbench.comparison.failures import error_of_difference, interval, share_of
from ssbench.comparison.family import FAILURES, Place, judge_all
from ssbench.comparison.figures import FIGURES, Key, only_classes_of
from ssbench.comparison.floor import PLACEMENT, Floors, is_ratio, placement, with_floor_of_sides
from ssbench.comparison.order import order_of
from ssbench.statistics.confidence import MIN_SECONDS, Series, effective_size
from ssbench.statistics.figures import Figures, merge_figures
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.run_statistics import RunPart, RunStatistics

_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

#: So many operations that never began, for each that lies beyond a percentile, do not change it noticeably.
_FEW_WAITS = 0.1

#: The slope of the percentiles is that between two whose shares are this part of 1 - share away.
_SLOPE = 1 / 3

_JUDGMENT = (
    "both sides met the same seconds: the intervals are of Student's t on what differs in each second; rates"
    " follow from the load and from latencies, and are not compared"
)
_TOO_SHORT = (
    f"the run was too short for intervals, which take {MIN_SECONDS} seconds with enough operations of both"
    " sides"
)
_NEVER_BEGUN = (
    "operations that were due never began, of which side is not known, so that percentiles would be of the"
    " others alone"
)


def compare_sides(
    statistics: RunStatistics, noise: float = NOISE, floors: Floors | None = None
) -> Comparison:
    """Compare the sides of a run; raises ValueError where it has none.

    ``floors`` say what differs from run to run.
    """
    before, after = both_sides(statistics)
    objects = min((each for each in _objects(statistics, ("ALL", None)) if each), default=None)
    found = {
        place: with_floor_of_sides(
            each, floors.of_sides(place) if floors else None, _objects(statistics, place[0])
        )
        if is_ratio(place)
        else each
        for place, each in differences_of_sides(statistics).items()
    }
    changes = judge_all(found, noise)
    sure = any(each.sure for place, each in found.items() if is_ratio(place))
    failing = any(each.differs for place, each in changes.items() if not is_ratio(place))
    why_not = _NEVER_BEGUN if _lacks_waits(statistics.total, _SHARES["p50"]) else _TOO_SHORT
    why_not += ": only shares of failures are compared" if failing else ": no verdict"
    return Comparison(
        before=before.name,
        after=after.name,
        runs=(0, 0),
        rows=tuple(rows_of(changes)),
        repeated=sure or failing,
        judgment=f"{_JUDGMENT}. {_floor_in_words(floors, objects)}" if sure else why_not,
        noise=noise,
        warnings=(*_few_objects(objects, floors), *statistics.warnings),
        seconds=statistics.duration,
        only_classes=only_classes_of(statistics),
    )


def both_sides(statistics: RunStatistics) -> tuple[RunPart, RunPart]:
    """Return the sides of a run; raises ValueError where it has none."""
    if len(statistics.sides) != 2:
        raise ValueError("the run has no two sides")
    before, after = statistics.sides
    return before, after


def _objects(statistics: RunStatistics, key: Key) -> tuple[float | None, float | None]:
    """Return of how many objects the operations of each side are; None where they are many, or not known."""
    sections = [section.operation for section in statistics.sections if section.operation]
    operation = next((each.code for each in sections if each.name.upper() == key[0]), None)
    classes = [each.name for each in statistics.run.scenario.size_classes]
    size_class = classes.index(key[1]) if key[1] in classes else None
    one, two = (
        side.numbers.objects.effective(operation, size_class) if side.numbers.objects else None
        for side in both_sides(statistics)
    )
    return one, two


def _floor_in_words(floors: Floors | None, objects: float | None) -> str:
    """Say what the intervals allow for that no single run shows."""
    if floors is not None and floors.of_sides((("ALL", None), "p50")) is not None:
        return f"What differs from run to run is that of {floors.runs} earlier equal runs"
    few = f" of only {objects:.0f} objects" if objects and placement(objects) > PLACEMENT else ""
    return (
        "That the objects of a side lie on slower devices is allowed for"
        f" ({100 * placement(objects):.2g} % a side{few} is assumed; --repeat, or four earlier equal runs in"
        " --results-dir, measure what differs)"
    )


def _few_objects(objects: float | None, floors: Floors | None) -> tuple[str, ...]:
    """Say that a side has few objects, where no earlier runs tell what that does."""
    is_known = floors is not None and floors.of_sides((("ALL", None), "p50")) is not None
    if is_known or not objects or placement(objects) == PLACEMENT:
        return ()
    return (
        f"a side has only {objects:.0f} objects: a difference may be one of their devices, and only large"
        " ones are shown; use more objects",
    )


def differences_of_sides(statistics: RunStatistics) -> dict[Place, Difference]:
    """Return what a run says of the difference of its sides, for each operation, size class and figure."""
    found: dict[Place, Difference] = {}
    whole = _figures(statistics, several=_has_classes(statistics))
    for key, sides in _pairs(statistics).items():
        for name, share in _SHARES.items():
            # What never began is known of the whole run only.
            if key in whole and _lacks_waits(whole[key], share):
                continue
            if (difference := _difference(sides, share)) is not None:
                found[key, name] = difference
        found[key, FAILURES] = _difference_of_shares(*sides)
    return found


def _has_classes(statistics: RunStatistics) -> bool:
    return len(statistics.total.lines) > 2


def _lacks_waits(figures: Figures, share: float) -> bool:
    """Whether a percentile would be another one if it were known of which side they were that never began."""
    latency = figures.latency
    return latency.waited.count > _FEW_WAITS * (1 - share) * latency.count


def _pairs(statistics: RunStatistics) -> dict[Key, tuple[Figures, Figures]]:
    """Return the figures of both sides by operation and size class, those of all operations last."""
    several = _has_classes(statistics)
    before, after = (_figures(side.numbers, several=several) for side in both_sides(statistics))
    nothing, everything = merge_figures(()), ("ALL", None)
    keys = [*dict.fromkeys(key for key in (*before, *after) if key != everything), everything]
    return {key: (before.get(key, nothing), after.get(key, nothing)) for key in keys}


def _figures(side: RunStatistics, *, several: bool) -> dict[Key, Figures]:
    """Return the figures of a side; those of size classes where the run has ``several``."""
    found: dict[Key, Figures] = {}
    for section in side.sections:
        name = section.operation.name.upper() if section.operation else "ALL"
        for line in section.lines if several and section.operation else section.lines[:1]:
            found[name, line.size_class] = line
    return found


def _difference(sides: tuple[Figures, Figures], share: float) -> Difference | None:
    """Return the difference of a percentile.

    None where a side has too few latencies for it, or where these are lower bounds (of an open loop).
    """
    users = [side.latency for side in sides]
    if not all(each.supports(100 * share) for each in users) or any(each.waited.count for each in users):
        return None
    latencies = [each.measured for each in users]
    before, after = (each.percentile(100 * share) for each in latencies)
    middle = math.log(after / before)
    parts = _parts(latencies[0], latencies[1], share)
    if len(parts) < MIN_SECONDS:
        return Difference(before, after, middle)
    size = effective_size(parts)
    error = float(np.std(parts, ddof=1)) / math.sqrt(size)
    return Difference(before, after, middle, error, max(1.0, size - 1), between_runs=True, sure=True)


def _difference_of_shares(before: Figures, after: Figures) -> Difference:
    """Return the difference of the shares of operations that failed."""
    first, second = share_of(before), share_of(after)
    found = error_of_difference(before, after)
    if found is None:
        return Difference(first, second, second - first)
    low, high = interval(after)
    return Difference(
        first,
        second,
        second - first,
        *found,
        between_runs=True,
        sure=True,
        after_low=low,
        after_high=high,
    )


def _parts(before: Latencies, after: Latencies, share: float) -> Series:
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
            sign * _slope(latencies, share) * excess * len(parts) / every.sum()
        )
    return parts


def _slope(latencies: Latencies, share: float) -> float:
    """Return by how much the logarithm of the percentiles grows with their share."""
    away = _SLOPE * (1 - share)
    low, high = (latencies.percentile(100 * each) for each in (share - away, share + away))
    return math.log(high / low) / (2 * away)


_OF_RUNS = (
    "each run measured both sides: the intervals are of Student's t on the differences of runs, each of which"
    " counts once; rates follow from the load and from latencies, and are not compared"
)


@dataclass(frozen=True, slots=True)
class SidedRun:
    """What a run says of its two ``sides``: the values of each figure before and after."""

    name: str
    sides: tuple[str, ...]
    values: Mapping[Place, tuple[float, float]]
    started: float | None = None
    warnings: tuple[str, ...] = ()
    only_classes: Mapping[str, str] = field(default_factory=dict)


def sided_run(statistics: RunStatistics, name: str) -> SidedRun:
    """Reduce a run; raises ValueError without two sides."""
    sides = tuple(each.name for each in both_sides(statistics))
    values = {
        place: (each.before, each.after)
        for place, each in differences_of_sides(statistics).items()
        if each.before is not None and each.after is not None
    }
    warnings = tuple(f"{name}: {warning}" for warning in statistics.warnings)
    started = statistics.run.started or statistics.start
    return SidedRun(name, sides, values, started, warnings, only_classes_of(statistics))


def compare_sided(runs: Sequence[SidedRun], noise: float = NOISE) -> Comparison:
    """Compare the sides of two runs or more; raises ValueError where these are not the same in all."""
    names = {run.sides for run in runs}
    if len(names) != 1:
        raise ValueError("the runs have other sides than each other")
    places = [place for place in runs[0].values if all(place in run.values for run in runs)]
    found = {place: _difference_of_runs(place, [run.values[place] for run in runs]) for place in places}
    enough = len(runs) >= ENOUGH_RUNS
    first, last = runs[0].name, runs[-1].name
    before, after = names.pop()
    return Comparison(
        before=f"{before} in {first} to {last}",
        after=f"{after} in the same runs",
        runs=(len(runs), len(runs)),
        rows=tuple(rows_of(judge_all(found, noise))),
        repeated=enough,
        judgment=_OF_RUNS if enough else f"fewer than {ENOUGH_RUNS} runs: no verdict; {_OF_RUNS}",
        noise=noise,
        warnings=tuple(dict.fromkeys(warning for run in runs for warning in run.warnings)),
        drifts=_drifts(runs, found) if enough else None,
        only_classes=only_classes([run.only_classes for run in runs]),
    )


def _difference_of_runs(place: Place, values: Sequence[tuple[float, float]]) -> Difference:
    figure = FIGURES[place[1]]
    is_share = figure.is_share
    scaled = [pair if is_share else (math.log(pair[0]), math.log(pair[1])) for pair in values]
    before, after = (fmean(pair[side] for pair in scaled) for side in (0, 1))
    differences = [two - one for one, two in scaled]
    error = math.sqrt(variance(differences) / len(differences))
    low, high = interval_of_mean(figure, [two for _, two in scaled])
    return Difference(
        before if is_share else math.exp(before),
        after if is_share else math.exp(after),
        after - before,
        error,
        len(differences) - 1.0,
        between_runs=True,
        sure=len(differences) >= ENOUGH_RUNS,
        after_low=low,
        after_high=high,
    )


def _drifts(runs: Sequence[SidedRun], found: Mapping[Place, Difference]) -> dict[str, float]:
    """Return by how much the 50th percentile of both sides changed from the first run to the last."""
    place: Place = (("ALL", None), "p50")
    order = order_of([run.started for run in runs], [])
    if order is None or place not in found:
        return {}
    logs = [math.log(run.values[place][0] * run.values[place][1]) / 2 for run in runs]
    return {"p50": math.expm1(order.drift(logs, []))}
