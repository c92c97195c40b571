"""When a sweep ends, and what is to be known of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ssbench.capacity.knee import LEAST_STEPS, Knee, knee
from ssbench.capacity.steps import BUSY_SHARE, Step, gain
from ssbench.capacity.variables import Varied, plain
from ssbench.figures.units import change, count, extent

#: A sweep ends where doubling the load brings less than this for certain; less where it was not doubled.
LEAST_GAIN = 0.05


def why_stop(variable: Varied, steps: Sequence[Step]) -> str | None:
    """Return why a sweep ends after these steps, None where it goes on."""
    if not steps or not variable.is_load:
        return None
    last = steps[-1]
    if last.failed:
        return f"{count(last.failed)} operations failed at {variable.words(last.value)}"
    # The knee is found from some steps on.
    return no_gain(variable, *steps[-2:]) if len(steps) >= LEAST_STEPS else None


def no_gain(variable: Varied, before: Step, after: Step) -> str | None:
    """Return in words that more load brought nothing for certain; None where it did, or may have."""
    _, most = gain(before, after)
    ratio = after.value / before.value
    # Of a smaller step as much is expected as several of it have to bring to double the load.
    least = min(LEAST_GAIN, (1 + LEAST_GAIN) ** math.log2(ratio) - 1)
    if most is None or most >= least:
        return None
    return (
        f"from {plain(before.value)} to {variable.words(after.value)} the rate rose by less than"
        f" {extent(least)} % (95 % sure: by {change(most)} % at most)"
    )


def find_knee(variable: Varied, steps: Sequence[Step]) -> Knee | None:
    """Return the knee of a sweep over a load; None where there are too few steps for one."""
    if not variable.is_load:
        return None
    errors = [step.interval.half_width / step.rate if step.interval and step.rate else None for step in steps]
    return knee([step.value for step in steps], [step.rate for step in steps], errors)


def first_of_the_best(steps: Sequence[Step]) -> Step:
    """Return the step of the lowest value that may have the highest rate of all, by its interval."""
    best = max(steps, key=lambda step: step.rate)
    return min((step for step in steps if _may_be(step, best.rate)), key=lambda step: step.value)


def _may_be(step: Step, rate: float) -> bool:
    return step.rate >= rate or (step.interval is not None and step.interval.high >= rate)


def knee_in_words(variable: Varied, found: Knee) -> str:
    """Return a sentence on the knee."""
    words = variable.words
    fit = f"{found.model} model, steps {extent(found.error)} % off"
    if found.reached:
        return (
            f"The knee is at {words(_short(found.value))} (95 % sure: {plain(_short(found.low))} to"
            f" {plain(_short(found.high))}; {fit}): beyond it more load brings longer waits, not more"
            " operations."
        )
    known = f"; if there is one, it is at {words(_short(found.low))} or beyond" if found.low else ""
    return f"No knee is certain, since the rate may still rise at the highest load ({fit}){known}."


def _short(value: float) -> float:
    """Return a value with 3 digits, whole from 10 on."""
    return round(value) if value >= 10 else float(f"{value:.2g}")


def limits(variable: Varied, steps: Sequence[Step]) -> list[str]:
    """Return where the load generator rather than Swift was full, or the limit, in words."""
    found = []
    unit = variable.unit
    if busy := _values(step for step in steps if step.is_busy):
        found.append(
            f"The load generator rather than Swift was full at {busy} {unit}: a worker used over"
            f" {100 * BUSY_SHARE:g} % of its core. Start more workers."
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
        "Some steps were too short to tell how exact their rates are, so it is not known whether more load"
        " brought nothing. Give each a minute (-r 60)."
    ]


def _values(steps: Iterable[Step]) -> str:
    return ", ".join(map(plain, sorted({step.value for step in steps})))
