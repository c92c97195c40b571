"""When a sweep ends, and what is to be known of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ssbench.capacity.steps import BUSY_SHARE, Step, gain
from ssbench.capacity.variables import Variable

#: A sweep ends where doubling the load brings less than this for certain; less where it was not doubled.
LEAST_GAIN = 0.05


def why_stop(variable: Variable, steps: Sequence[Step]) -> str | None:
    """Return why a sweep ends after these steps, None where it goes on."""
    if not steps or not variable.is_load:
        return None
    last = steps[-1]
    if last.failed:
        return f"{last.failed:,} operations failed at {variable.words(last.value)}"
    return no_gain(variable, *steps[-2:]) if len(steps) > 1 else None


def no_gain(variable: Variable, before: Step, after: Step) -> str | None:
    """Return in words that more load brought nothing for certain; None where it did, or may have."""
    _, most = gain(before, after)
    ratio = after.value / before.value
    # Of a smaller step as much is expected as several of it have to bring to double the load.
    least = min(LEAST_GAIN, (1 + LEAST_GAIN) ** math.log2(ratio) - 1)
    if most is None or most >= least:
        return None
    return (
        f"from {before.value:g} to {variable.words(after.value)} the rate rose by less than"
        f" {100 * least:.2g}% (95 % sure: by {most:+.1%} at most)"
    )


def limits(variable: Variable, steps: Sequence[Step]) -> list[str]:
    """Return where the load generator rather than Swift was full, or the limit, in words."""
    found = []
    unit = variable.unit
    if busy := _values(step for step in steps if step.is_busy):
        found.append(
            f"The load generator rather than Swift was full at {busy} {unit}: a worker used over"
            f" {BUSY_SHARE:.0%} of its core. Start more workers."
        )
    if small := [step for step in steps if step.lacks_room]:
        room = min(step.room or 0 for step in small)
        found.append(
            f"The load generator rather than Swift was full at {_values(small)} {unit}: its workers run"
            f" {room} operations at once. Start more workers, or give them a higher --concurrency."
        )
    if other := [step for step in steps if step.limits and not step.generator_full]:
        last = sorted(other, key=lambda step: step.value)[-1]
        found.append(f"At {_values(other)} {unit}, of the last of them: {last.limits[0]}.")
    return found


def too_short(steps: Sequence[Step]) -> list[str]:
    """Return what is to be known where no gain can be judged."""
    if len(steps) < 2 or all(step.interval for step in steps):
        return []
    return [
        "Some steps were too short (10 s or less): how exact their rates are is not known, so it cannot"
        " be told whether more load brought nothing."
    ]


def _values(steps: Iterable[Step]) -> str:
    return ", ".join(f"{value:g}" for value in sorted({step.value for step in steps}))
