"""What belongs together of how much load there is: users, rate, stages, warm-up, think time.

Each value by itself is checked by its rule; here they are checked against each other. The same function
serves a file, whose faults have lines, and the options of the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ssbench.scenario.model import Scenario, Stage
from ssbench.scenario.text import KeyPath


def contradictions(values: Mapping[str, Any], stages: Sequence[Stage]) -> Iterator[tuple[KeyPath, str]]:
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
    seconds = sum(stage.seconds for stage in stages) if stages else values.get("run_seconds")
    warmup = values.get("warmup")
    if warmup and seconds is not None and warmup >= seconds:
        yield ("warmup",), f"expected less than the run takes, which is {seconds:g} s, not {warmup:g}"


def most_users(stages: Sequence[Stage], user_count: int | None) -> int:
    """Return how many operations are in flight at most, in any stage."""
    return max(user_count or 0, *(max(stage.users or (0,)) for stage in stages))


def given(scenario: Scenario) -> dict[str, Any]:
    """Return the values of a scenario that :func:`contradictions` looks at; without stages."""
    return {
        "user_count": scenario.user_count,
        "run_seconds": None if scenario.stages else scenario.run_seconds,
        "operation_count": scenario.operation_count,
        "rate": scenario.rate,
        "warmup": scenario.warmup,
        "think_time": scenario.think_time,
    }
