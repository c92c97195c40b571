"""Replace values of a scenario with those of the command line."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ssbench.base.errors import UsageError
from ssbench.scenario import load as scenario_load
from ssbench.scenario.conditions import find_unknown_subject, parse_condition
from ssbench.scenario.model import Scenario
from ssbench.scenario.rule import shorten_value
from ssbench.scenario.rules import SCENARIO_RULES
from ssbench.scenario.text import spell_path

_log = logging.getLogger(__name__)


def override(
    scenario: Scenario,
    *,
    user_count: int | None = None,
    operation_count: int | None = None,
    run_seconds: float | None = None,
    container_count: int | None = None,
    accounts: int | None = None,
    delete_after: int | None = None,
    policy: str | None = None,
    rate: float | None = None,
    arrivals: str | None = None,
    warmup: float | None = None,
    think_time: float | None = None,
    fail_if: Sequence[str] = (),
) -> Scenario:
    """Replace values of a scenario with those of the command line; None means not given.

    ``run_seconds`` wins over ``operation_count``, and either replaces both of the file. ``delete_after`` 0
    means none. ``fail_if``, conditions in plain form, come after those of the file. Raises UsageError for a
    value that would be wrong in a file too, and for one that does not go together with the others.
    """
    given: dict[str, Any] = {
        "user_count": user_count,
        "operation_count": operation_count,
        "run_seconds": run_seconds,
        "container_count": container_count,
        "accounts": accounts,
        "delete_after": delete_after,
        "policy": policy,
        "rate": rate,
        "arrivals": arrivals,
        "warmup": warmup,
        "think_time": think_time,
    }
    changes = {key: _accept_value(key, value) for key, value in given.items() if value is not None}
    scenario_load.refuse_group_values(scenario, changes)
    if scenario.stages:
        for key in changes.keys() & {"run_seconds", "operation_count", "rate"}:
            raise UsageError(f"{key}: the scenario has stages, which say how long it runs and at which load")
    elif run_seconds is not None:
        if operation_count is not None:
            _log.warning("Both -r/--run-seconds and -o/--op-count are given; -r wins")
        changes["operation_count"] = None
    elif operation_count is not None:
        changes["run_seconds"] = None
    if delete_after is not None:
        changes |= {"delete_after": delete_after or None, "delete_after_most": None}
    for text in fail_if:
        names = [each.name for each in scenario.size_classes]
        if wrong := find_unknown_subject(
            parse_condition(text, grouped=True), names, [each.name for each in scenario.groups]
        ):
            raise UsageError(f"fail-if: {wrong}")
    changed = replace(scenario, **changes, fail_if=tuple(dict.fromkeys((*scenario.fail_if, *fail_if))))
    for path, wrong in scenario_load.find_scenario_contradictions(changed):
        raise UsageError(f"{spell_path(path)}: {wrong}")
    return changed


def _accept_value(key: str, value: Any) -> Any:
    """Return a value of the command line; raises UsageError for one that would be wrong in a file too."""
    rule = SCENARIO_RULES[key]
    if not rule.accepts(value):
        raise UsageError(f"{key}: expected {rule.expected}, not {shorten_value(value)}")
    return value
