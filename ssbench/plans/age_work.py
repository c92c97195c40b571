"""How a store ages: it is filled, and at fixed numbers of objects some operations are measured alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ssbench.base.errors import UsageError
from ssbench.comparison.object_trend import MIN_TREND_STEPS
from ssbench.comparison.sweep_variables import Sweep
from ssbench.plans.plan_work import PlanSide
from ssbench.plans.steps_work import PhasedStepsWork, SweepWork
from ssbench.run.bench_options import RunOptions
from ssbench.scenario.ad_hoc import LoadPhase, make_ad_hoc_scenario, parse_scenario_line, split_into_phases
from ssbench.scenario.consistency import PER_CONTAINER_KEY
from ssbench.scenario.operations import DEFAULT_LISTING_LIMIT, OPERATIONS, Effect

#: Operations that are measured unless others are asked for.
AGE_OPERATIONS = ("update", "read", "list")

#: Operations that leave as many objects as there were.
_KEEPING_EFFECTS = frozenset({Effect.NONE, Effect.READS, Effect.REWRITES})


def make_age_work(
    sweep: Sweep,
    options: RunOptions,
    *,
    size: str,
    operations: Sequence[LoadPhase],
    values: Mapping[str, Any],
    changes: Sequence[tuple[str, Any]] = (),
    fill_rate: float | None = None,
) -> PhasedStepsWork:
    """Return the sweeps over objects of each operation; raises UsageError, also for too few numbers.

    ``values`` are further keys of their scenario, ``changes`` those of ``--set``; ``fill_rate`` is how many
    uploads a second begin, None: as fast as the users make them. A listing has as many names as there are at
    first, and not more than a usual page, so that it has the same work with more objects.
    """
    if len(sweep.values) < MIN_TREND_STEPS:
        raise UsageError(
            f"--objects {','.join(map(str, sweep.values))}: {MIN_TREND_STEPS} numbers or more tell from how"
            " many objects on a rate changes; run-scenario --sweep objects=... takes fewer"
        )
    for each in operations:
        if OPERATIONS.named(each.operation).effect not in _KEEPING_EFFECTS:
            raise UsageError(
                f"--operations: {each.name} would change the number of objects, which update does not"
            )
    if wrong := [path for path, _ in changes if path.partition(".")[0] in {"objects", "initial_files"}]:
        raise UsageError(f"--set {wrong[0]}: --objects says how many there are")
    if "container_count" in values and any(path == PER_CONTAINER_KEY for path, _ in changes):
        raise UsageError(f"--set {PER_CONTAINER_KEY}: -c says how many containers there are")
    name = size.replace("..", "-")
    first = sweep.values[0]
    given = {"container_count": 1, "container_base": f"ssbench_age_{name}", **values}
    if any(each.operation == "list" for each in operations):
        given["operations"] = [{"name": "list", "limit": min(first, DEFAULT_LISTING_LIMIT)}]
    load = parse_scenario_line(f"size={size} objects={first}", operations, given)
    scenario = make_ad_hoc_scenario(load, changes)
    return PhasedStepsWork(
        [
            (
                phase.name,
                SweepWork(
                    [PlanSide(own, options)], sweep, 1, 0.0, prefix=f"{phase.name}.", fill_rate=fill_rate
                ),
            )
            for phase, own in split_into_phases(scenario, operations)
        ]
    )
