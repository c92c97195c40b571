"""The two sides of a run that compares them (``--ab``): a group of users each, with half of the load.

Both draw the same operations, at the same time, on objects of their own. An open loop's operations are due by
turns, so that all of them together are due when they are without sides.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from ssbench.base.errors import UsageError
from ssbench.results.description import StageFacts
from ssbench.scenario.model import Scenario, SizeClass, Stage
from ssbench.scenario.operation_table import OPERATIONS

_log = logging.getLogger(__name__)

#: What the names of objects begin with, of the one set of them and of the other.
_SIDE_PREFIXES = ("a", "b")


def refuse_sides(scenario: Scenario) -> None:
    """Raise UsageError for a scenario that cannot be that of two sides."""
    if scenario.groups:
        raise UsageError("--ab: not possible with a scenario that has groups of users")
    for row in OPERATIONS.drawn:
        if row.one_side and row.name in scenario.operation_names:
            raise UsageError(f"{row.name}: not possible in a run of two sides (--ab)")


def make_users_even(scenario: Scenario) -> Scenario:
    """Return a scenario whose users can be halved: with one more where their number is odd."""
    stages = tuple(
        stage
        if stage.users is None
        else replace(stage, users=(_next_even(stage.users[0]), _next_even(stage.users[1])))
        for stage in scenario.stages
    )
    found = replace(scenario, user_count=_next_even(scenario.user_count), stages=stages)
    if found != scenario:
        _log.info("--ab: each side has half of the users, %d", found.user_count // 2)
    return found


def halve_scenario(scenario: Scenario, side: int, policy: str | None) -> Scenario:
    """Return what a side (0 or 1) does of an even scenario, with the containers of a policy.

    It has half of the objects, at least one of a class that has some.
    """
    count = scenario.operation_count
    return replace(
        scenario,
        user_count=scenario.user_count // 2,
        operation_count=None if count is None else (count + 1 - side) // 2,
        rate=None if scenario.rate is None else scenario.rate / 2,
        stages=tuple(map(_half_of_stage, scenario.stages)),
        size_classes=tuple(map(_half_of_class, scenario.size_classes)),
        policy=policy or scenario.policy,
        phase=(scenario.phase + side) / 2,
    )


def object_prefixes_of_sides(seed: int) -> tuple[str, str]:
    """Return what the names of objects of each side begin with, in a run with a seed.

    Where objects lie follows from their names. So that this is no difference of the sides on average, they
    swap their names from one seed to the next.
    """
    first = seed % 2
    return _SIDE_PREFIXES[first], _SIDE_PREFIXES[1 - first]


def merge_side_stages(parts: Iterable[tuple[StageFacts, ...]]) -> tuple[StageFacts, ...]:
    """Return how the stages went that several parts of a run went through at the same time."""
    return tuple(
        StageFacts(
            min(each.begins for each in stage),
            max(each.ends for each in stage),
            sum(each.due or 0 for each in stage) if any(each.due is not None for each in stage) else None,
        )
        for stage in zip(*parts, strict=False)
    )


def _next_even(count: int) -> int:
    return count + count % 2


def _half_of_stage(stage: Stage) -> Stage:
    users, rate = stage.users, stage.rate
    return replace(
        stage,
        users=None if users is None else (users[0] // 2, users[1] // 2),
        rate=None if rate is None else (rate[0] / 2, rate[1] / 2),
    )


def _half_of_class(size_class: SizeClass) -> SizeClass:
    # Its share of the operations stays, also where half of an odd number of objects is more than half.
    return replace(
        size_class, initial_files=(size_class.initial_files + 1) // 2, weight=float(size_class.share)
    )
