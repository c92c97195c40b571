"""Which values of a scenario contradict each other, in a file or on the command line.

Each value by itself is checked by its rule; here they are checked against each other: how much load there is
(users, rate, stages, warm-up, think time), how many containers, and whether the names of objects can be used.
The same functions serve a file, whose faults have lines, and the options of the command line, which replace
values of the scenario.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ssbench.base.errors import UsageError, did_you_mean
from ssbench.scenario.conditions import find_unknown_subject, parse_condition
from ssbench.scenario.model import (
    GROUP_LOAD_KEYS,
    OVERRIDING_OPTIONS,
    SCENARIO_RULES,
    Scenario,
    SizeClass,
    Stage,
    UserGroup,
)
from ssbench.scenario.names import explain_wrong_template, object_prefix
from ssbench.scenario.parsed_text import KeyPath, spell_path
from ssbench.scenario.structured_values import Reuse
from ssbench.scenario.value_rules import MAX_NUMBER, shorten_value

#: The key in place of container_count.
PER_CONTAINER_KEY = "objects_per_container"


def explain_container_conflict(values: Mapping[str, Any]) -> str:
    """Return why a scenario or a group cannot have these values together; empty where it can."""
    both = values.keys() >= {PER_CONTAINER_KEY, "container_count"}
    return "expected this or container_count, not both" if both else ""


def count_containers(values: Mapping[str, Any], classes: Sequence[SizeClass]) -> dict[str, Any]:
    """Return the values of a scenario or a group that say how many containers it has.

    There are as many as its initial objects fill with ``objects_per_container`` each, one at least.
    """
    if (most := values.get(PER_CONTAINER_KEY)) is not None:
        return {"container_count": max(-(-sum(each.initial_files for each in classes) // most), 1)}
    return {key: values[key] for key in ("container_count",) if key in values}


def classes_without_containers(groups: Sequence[UserGroup]) -> list[SizeClass]:
    """Return the size classes of all groups that do not say how many containers they have."""
    return [each for group in groups if group.container_count is None for each in group.size_classes]


def find_wrong_names(template: str | None, users: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the names of objects, each with the key of the scenario that it is about.

    ``users`` are the groups with each of their size classes; the name of the one group of a scenario without
    groups is empty.
    """
    found: dict[str, tuple[str, str]] = {}
    for group, own in users:
        other, its = found.setdefault(object_prefix(group, own), (group, own))
        if other != group:
            same = f"its {own!r} and {its!r} of the group {other!r} would have objects of the same names"
            yield "groups", f"expected another name than {group!r}: {same}"
    wrong = (explain_wrong_template(template, prefix) for prefix in found) if template is not None else ()
    yield from (("object_names", text) for text in [*filter(None, wrong)][:1])


# -- How much load there is ------------------------------------------------------------------------


#: Most groups of users in a scenario.
MAX_GROUPS = 64


def find_contradictions(
    values: Mapping[str, Any], stages: Sequence[Stage], *, in_group: bool = False
) -> Iterator[tuple[KeyPath, str]]:
    """Yield (path, what is wrong) of values that do not go together; ``values`` holds those given."""
    yield from _find_wrong_idle_stages(stages, in_group=in_group)
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
    reuse, popularity = values.get("reuse"), values.get("popularity")
    if isinstance(reuse, Reuse) and reuse.classes and not getattr(popularity, "bands", ()):
        yield ("reuse",), "expected popularity: {counts: [...]} beside classes, which say when, not how often"
    seconds = sum(stage.seconds for stage in stages) if stages else values.get("run_seconds")
    warmup = values.get("warmup")
    if warmup and seconds is not None and warmup >= seconds:
        yield ("warmup",), f"expected less than the run takes, which is {seconds:g} s, not {warmup:g}"


def _find_wrong_idle_stages(stages: Sequence[Stage], *, in_group: bool) -> Iterator[tuple[KeyPath, str]]:
    for place, stage in enumerate(stages):
        if stage.is_idle and (stage.rate or place or len(stages) == 1 or not in_group):
            yield (
                ("stages", place, "users"),
                "expected 1 or more; 0 is for the first of several stages of a group, which begins later",
            )


def find_group_contradictions(
    values: Mapping[str, Any], group: Mapping[str, Any], stages: Sequence[Stage]
) -> Iterator[tuple[KeyPath, str]]:
    """Yield what does not go together in a group, of a scenario with these ``values``."""
    seconds = None if stages else values.get("run_seconds")
    own = {"run_seconds": seconds, "user_count": group.get("users"), "accounts": values.get("accounts", 1)}
    own |= {key: group[key] for key in ("container_count", PER_CONTAINER_KEY) if key in group}
    if own_reuse := group.get("reuse"):
        own |= {"reuse": own_reuse, "popularity": group.get("popularity", values.get("popularity"))}
    for path, wrong in find_contradictions(
        own | {key: group.get(key) for key in ("rate", "think_time")}, stages, in_group=True
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


def explain_idle_arrivals(scenario: Scenario) -> str | None:
    """Return that ``arrivals`` changes nothing, because nothing has a rate; None otherwise."""
    idle = [
        part
        for part in scenario.parts
        if part.arrivals != "even" and not any(stage.rate for stage in part.plan)
    ]
    if not idle:
        return None
    return (
        f"arrivals: {idle[0].arrivals} has no effect without a rate: users send their next operation when the"
        " last one has ended (closed loop)"
    )


def refuse_group_values(scenario: Scenario, changes: Mapping[str, Any]) -> None:
    """Raise UsageError for a value of the command line that each group of users says itself."""
    for key in GROUP_LOAD_KEYS if scenario.groups else ():
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


# -- Values of the command line --------------------------------------------------------------------


_log = logging.getLogger(__name__)


def override(scenario: Scenario, *, fail_if: Sequence[str] = (), **given: Any) -> Scenario:
    """Replace values of a scenario with those ``given`` by its keys; None means not given.

    ``run_seconds`` wins over ``operation_count``, and either replaces both of the file. ``delete_after`` 0
    means none. ``fail_if``, conditions in plain form, come after those of the file. Raises UsageError for a
    value that would be wrong in a file too, and for one that does not go together with the others.
    """
    changes = {key: _accept_value(key, value) for key, value in given.items() if value is not None}
    refuse_group_values(scenario, changes)
    if scenario.stages:
        for key in changes.keys() & {"run_seconds", "operation_count", "rate"}:
            raise UsageError(f"{key}: the scenario has stages, which say how long it runs and at which load")
    elif "run_seconds" in changes:
        if "operation_count" in changes:
            _log.warning("Both -r/--run-seconds and -o/--op-count are given; -r wins")
        changes["operation_count"] = None
    elif "operation_count" in changes:
        changes["run_seconds"] = None
    if "container_count" in changes:
        changes[PER_CONTAINER_KEY] = None
    if "delete_after" in changes:
        changes |= {"delete_after": changes["delete_after"] or None, "delete_after_most": None}
    for text in fail_if:
        names = [each.name for each in scenario.size_classes]
        defined = scenario.defined_operations
        if wrong := find_unknown_subject(
            parse_condition(text, defined, grouped=True),
            names,
            [each.name for each in scenario.groups],
            defined,
        ):
            raise UsageError(f"fail-if: {wrong}")
    changed = replace(scenario, **changes, fail_if=tuple(dict.fromkeys((*scenario.fail_if, *fail_if))))
    for path, wrong in find_scenario_contradictions(changed):
        raise UsageError(f"{spell_path(path)}: {wrong}")
    return changed


def _accept_value(key: str, value: Any) -> Any:
    """Return a value of the command line; raises UsageError for one that would be wrong in a file too."""
    if key not in OVERRIDING_OPTIONS:
        similar = did_you_mean(key, OVERRIDING_OPTIONS)
        raise UsageError(f"{key}: no key of a scenario whose value can be replaced{similar}")
    rule = SCENARIO_RULES[key]
    if not rule.accepts(value):
        raise UsageError(f"{key}: expected {rule.expected}, not {shorten_value(value)}")
    return value
