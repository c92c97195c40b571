"""What belongs together of how much load there is: users, rate, stages, warm-up, think time.

Each value by itself is checked by its rule; here they are checked against each other. The same function
serves a file, whose faults have lines, and the options of the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ssbench.base.errors import UsageError
from ssbench.scenario.model import Scenario, Stage
from ssbench.scenario.places import PER_CONTAINER_KEY
from ssbench.scenario.rule import MAX_NUMBER
from ssbench.scenario.text import KeyPath

#: Most groups of users in a scenario.
MAX_GROUPS = 64

#: What each group of users says itself.
GROUP_KEYS = ("user_count", "operation_count", "rate", "arrivals", "think_time")


def find_contradictions(values: Mapping[str, Any], stages: Sequence[Stage]) -> Iterator[tuple[KeyPath, str]]:
    """Yield (path, what is wrong) of values that do not go together; ``values`` holds those given."""
    for key in ("run_seconds", "operation_count", "rate"):
        if stages and values.get(key) is not None:
            yield (key,), f"expected no {key} beside stages, which have seconds and a load of their own"
    users = values.get("user_count")
    for place, stage in enumerate(stages):
        most = max(stage.users or (0,))
        if users is not None and most > users:
            yield ("stages", place, "users"), f"expected at most user_count, which is {users}, not {most}"
    rates = [stage.rate for stage in stages] if stages else [values.get("rate")]
    if values.get("think_time") and None not in rates:
        yield ("think_time",), "expected no think_time beside a rate: no user decides when operations are due"
    if values.get("accounts", 1) * values.get("container_count", 1) > MAX_NUMBER:
        yield ("accounts",), f"expected at most {MAX_NUMBER:,} containers in all accounts together"
    if values.get("accounts", 1) > 1 and PER_CONTAINER_KEY in values:
        yield (
            ("accounts",),
            f"expected container_count beside it, the number in each, not {PER_CONTAINER_KEY}",
        )
    if "account_base" in values and "accounts" not in values:
        yield ("account_base",), "expected accounts beside it, whose names begin so"
    seconds = sum(stage.seconds for stage in stages) if stages else values.get("run_seconds")
    warmup = values.get("warmup")
    if warmup and seconds is not None and warmup >= seconds:
        yield ("warmup",), f"expected less than the run takes, which is {seconds:g} s, not {warmup:g}"


def find_group_contradictions(
    values: Mapping[str, Any], group: Mapping[str, Any], stages: Sequence[Stage]
) -> Iterator[tuple[KeyPath, str]]:
    """Yield what does not go together in a group, of a scenario with these ``values``."""
    seconds = None if stages else values.get("run_seconds")
    own = {"run_seconds": seconds, "user_count": group.get("users"), "accounts": values.get("accounts", 1)}
    own |= {key: group[key] for key in ("container_count", PER_CONTAINER_KEY) if key in group}
    for path, wrong in find_contradictions(
        own | {key: group.get(key) for key in ("rate", "think_time")}, stages
    ):
        yield path, wrong.replace("user_count", "users")
    whole = values.get("run_seconds")
    took = sum(stage.seconds for stage in stages)
    if whole is not None and took > whole:
        yield ("stages",), f"expected at most run_seconds, which are {whole:g}, not {took:g} s in all"


def find_scenario_contradictions(scenario: Scenario) -> Iterator[tuple[KeyPath, str]]:
    """Yield what does not go together in a scenario whose values are valid each by itself."""
    yield from find_contradictions(list_given_values(scenario), scenario.stages)
    for place, group in enumerate(scenario.groups):
        own = {"users": group.user_count, "rate": group.rate, "think_time": group.think_time}
        for path, wrong in find_group_contradictions(
            {"run_seconds": scenario.run_seconds}, own, group.stages
        ):
            yield ("groups", place, *path), wrong


def refuse_group_values(scenario: Scenario, changes: Mapping[str, Any]) -> None:
    """Raise UsageError for a value of the command line that each group of users says itself."""
    for key in GROUP_KEYS if scenario.groups else ():
        if key in changes:
            raise UsageError(f"{key}: the scenario has groups of users, which say so themselves")


def count_most_users(stages: Sequence[Stage], user_count: int | None) -> int:
    """Return how many operations are in flight at most, in any stage."""
    return max((user_count or 0, *(max(stage.users or (0,)) for stage in stages)))


def list_given_values(scenario: Scenario) -> dict[str, Any]:
    """Return the values of a scenario that :func:`find_contradictions` looks at; without stages."""
    return {
        "user_count": scenario.user_count,
        "run_seconds": None if scenario.stages else scenario.run_seconds,
        "operation_count": scenario.operation_count,
        "rate": scenario.rate,
        "warmup": scenario.warmup,
        "think_time": scenario.think_time,
        "accounts": scenario.accounts,
        "container_count": max(part.container_count for part in scenario.parts),
    }
