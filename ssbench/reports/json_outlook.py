"""What a scenario would do, as JSON."""

from __future__ import annotations

from typing import Any, Literal

from ssbench import record
from ssbench.reports import json_run
from ssbench.scenario.forecast import Forecast, forecast
from ssbench.scenario.model import Scenario


class Report(record.Head, frozen=True, kw_only=True):
    """What a scenario asks for, and what it would do. ``fail_if`` are the conditions under which it fails."""

    format: Literal["ssbench scenario"] = "ssbench scenario"
    version: Literal[1] = 1
    scenario: json_run.Scenario
    forecast: Forecast
    fail_if: tuple[str, ...]


def report(scenario: Scenario, *_: Any) -> str:
    """Return it as one JSON document."""
    return record.text(
        Report(scenario=json_run.scenario_of(scenario), forecast=forecast(scenario), fail_if=scenario.fail_if)
    )
