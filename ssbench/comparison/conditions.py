"""Conditions on a comparison: on changes (``read.p99 > +10%``), or on what came after."""

from __future__ import annotations

from ssbench.comparison.compare import Comparison, Judged
from ssbench.comparison.figures import FIGURES
from ssbench.conditions import Condition
from ssbench.figures import Unit


def check(condition: Condition) -> None:
    """Raise ValueError where a condition is about a figure that is not compared."""
    if condition.figure not in FIGURES:
        raise ValueError(f"{condition.text!r}: only {', '.join(FIGURES)} are compared")
    if condition.figure == "errors" and condition.unit not in {Unit.SHARE, Unit.CHANGE}:
        raise ValueError(f"{condition.text!r}: errors are compared as a share, such as 0.1%")


def judge(comparison: Comparison, condition: Condition) -> Judged:
    """Judge one condition; it fails too where there is nothing to hold it against."""
    found = comparison.find(condition.operation, condition.size_class, condition.figure)
    value = None if found is None else found.change if condition.relative else found.after
    if found is None or value is None:
        return Judged(condition.text, "was not measured on both sides", True)
    if condition.unit is Unit.MEGABYTES_PER_SECOND:
        value /= FIGURES["mb_per_s"].unit
    if condition.relative:
        came = f"{100 * value:+.1f} %"
        if found.low is not None and found.high is not None:
            came += f" ({100 * found.low:+.1f} to {100 * found.high:+.1f})"
    else:
        came = condition.spell(value)
    return Judged(condition.text, came, condition.holds(value))
