"""The two sides of several runs (``--ab`` with ``--repeat``), each of which counts once.

A single run with two sides does not show what differs between its sides from run to run. Of several, the
differences of each run are compared: Student's t on as many values as there are runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from ssbench.comparison.change import ENOUGH_RUNS, NOISE, Difference, interval_of_mean
from ssbench.comparison.compare import Comparison, rows_of
from ssbench.comparison.family import Place, judge_all
from ssbench.comparison.figures import FIGURES
from ssbench.comparison.order import order_of
from ssbench.comparison.sides import both_sides, differences_of_sides
from ssbench.statistics import RunStatistics

_JUDGMENT = (
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


def sided_run(statistics: RunStatistics, name: str) -> SidedRun:
    """Reduce a run; raises ValueError without two sides."""
    sides = tuple(each.name for each in both_sides(statistics))
    values = {
        place: (each.before, each.after)
        for place, each in differences_of_sides(statistics).items()
        if each.before is not None and each.after is not None
    }
    warnings = tuple(f"{name}: {warning}" for warning in statistics.warnings)
    return SidedRun(name, sides, values, statistics.run.started or statistics.start, warnings)


def compare_sided(runs: Sequence[SidedRun], noise: float = NOISE) -> Comparison:
    """Compare the sides of two runs or more; raises ValueError where these are not the same in all."""
    names = {run.sides for run in runs}
    if len(names) != 1:
        raise ValueError("the runs have other sides than each other")
    places = [place for place in runs[0].values if all(place in run.values for run in runs)]
    found = {place: _difference(place, [run.values[place] for run in runs]) for place in places}
    enough = len(runs) >= ENOUGH_RUNS
    first, last = runs[0].name, runs[-1].name
    before, after = names.pop()
    return Comparison(
        before=f"{before} in {first} to {last}",
        after=f"{after} in the same runs",
        runs=(len(runs), len(runs)),
        rows=tuple(rows_of(judge_all(found, noise))),
        repeated=enough,
        judgment=_JUDGMENT if enough else f"fewer than {ENOUGH_RUNS} runs: no verdict; {_JUDGMENT}",
        noise=noise,
        warnings=tuple(dict.fromkeys(warning for run in runs for warning in run.warnings)),
        drifts=_drifts(runs, found) if enough else None,
    )


def _difference(place: Place, values: Sequence[tuple[float, float]]) -> Difference:
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
