"""What one group of users costs the others, from steps in which it had ever more users, or a higher rate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ssbench.capacity.steps import GroupStep, Step
from ssbench.capacity.variables import OfGroup
from ssbench.figures.units import change, duration, number


def of_each(step: Step) -> str:
    """Return what came of each group in a step, in words."""
    return "; ".join(f"{group.name} {_words(group)}" for group in step.groups)


def of_others(varied: OfGroup, steps: Sequence[Step]) -> Iterator[str]:
    """Yield a sentence on each other group: what it did in the first step and in the last.

    Where the 95 % intervals of its rates meet, no difference is shown. Each step is one run.
    """
    if len(steps) < 2:
        return
    first, last = (min(steps, key=_value), max(steps, key=_value))
    after = {group.name: group for group in last.groups}
    for before in first.groups:
        if before.name != varied.group and before.name in after:
            now = after[before.name]
            yield (
                f"{before.name}: {_words(before)} beside {varied.words(first.value)}, {_words(now)} beside"
                f" {varied.words(last.value)} ({_difference(before, now)})."
            )


def _value(step: Step) -> float:
    return step.value


def _words(group: GroupStep) -> str:
    known = [
        f"{name} {duration(seconds)}"
        for name, seconds in (("p50", group.p50), ("p99", group.p99))
        if not math.isnan(seconds)
    ]
    return ", ".join([f"{number(group.rate)} ops/s", *known])


def _difference(before: GroupStep, now: GroupStep) -> str:
    if before.interval is None or now.interval is None:
        return "the steps were too short for an interval of the rate"
    if before.interval.low <= now.interval.high and now.interval.low <= before.interval.high:
        return "no difference of the rates is shown"
    return f"the rate changed by {change(now.rate / before.rate - 1)} %"
