"""Conditions on a comparison: on changes (``read.p99 > +10%``), or on what came after.

A condition fails only where the whole interval of the figure is beyond its limit, and passes only where none
of it is. Otherwise it is undecided, and what would decide it is said.
"""

from __future__ import annotations

import math

from ssbench.comparison.change import MIN_RUNS_FOR_WORD, FigureChange
from ssbench.comparison.compare import Comparison, Judged
from ssbench.comparison.figures import COMPARABLE_FIGURES
from ssbench.document.gates import GateResult
from ssbench.document.units import Unit, format_change, format_count
from ssbench.scenario.conditions import Condition

#: Standard errors between the change and the limit that decide nine times of ten: 1.96 + 1.28.
_DECIDING_ERRORS = 3.24

#: More runs a side, or more seconds, are not suggested.
_MAX_RUNS = 200
_MAX_SECONDS = 86_400


def check_change_condition(condition: Condition) -> None:
    """Raise ValueError where a condition is about a figure that is not compared."""
    if condition.figure not in COMPARABLE_FIGURES:
        raise ValueError(f"{condition.text!r}: only {', '.join(COMPARABLE_FIGURES)} are compared")
    if COMPARABLE_FIGURES[condition.figure].is_share and condition.unit not in {Unit.SHARE, Unit.CHANGE}:
        raise ValueError(f"{condition.text!r}: {condition.figure} are compared as a share, such as 0.1%")


def judge_change_condition(comparison: Comparison, condition: Condition) -> Judged:
    """Judge one condition; it fails too where nothing was measured that it is about."""
    found = comparison.find(condition.operation, condition.size_class, condition.figure, condition.group)
    value = None if found is None else found.change if condition.relative else found.after
    if found is None or value is None:
        return _without_value(comparison, condition)
    if not condition.relative:
        return _judge_after(condition, found, value)
    came = f"{format_change(value)} %"
    if found.low is None or found.high is None:
        return Judged(condition.text, came, GateResult.UNDECIDED, _NOT_REPEATED_TEXT)
    came += f" ({format_change(found.low)} to {format_change(found.high)})"
    if not found.between_runs:
        return Judged(condition.text, came, GateResult.UNDECIDED, _NOT_REPEATED_TEXT)
    held = {condition.holds(found.low), condition.holds(found.high)}
    if len(held) > 1:
        return Judged(condition.text, came, GateResult.UNDECIDED, _needs(comparison, condition, found))
    return Judged(condition.text, came, GateResult.FAILED if held.pop() else GateResult.PASSED)


def _without_value(comparison: Comparison, condition: Condition) -> Judged:
    """Judge where a side has no such figure: there were too few operations for it, or none of them."""
    needs = condition.row.needs
    if needs > 1 and comparison.has(condition.operation, condition.size_class, condition.group):
        wanted = f"more operations ({condition.figure} needs {needs:,} a side)"
        return Judged(condition.text, "too few on one side at least", GateResult.UNDECIDED, wanted)
    return Judged(condition.text, "was not measured on both sides", GateResult.FAILED)


def _judge_after(condition: Condition, found: FigureChange, value: float) -> Judged:
    """Judge a condition on what came after: by the interval of the mean of its runs, or by a single run."""
    came = condition.spell_measured(value)
    if found.after_low is None or found.after_high is None:
        return Judged(
            condition.text, came, GateResult.FAILED if condition.holds(value) else GateResult.PASSED
        )
    ends = found.after_low, found.after_high
    came += f" ({' to '.join(map(condition.spell_measured, ends))})"
    held = {condition.holds(each) for each in ends}
    if len(held) > 1:
        return Judged(condition.text, came, GateResult.UNDECIDED, "more runs, or longer ones")
    return Judged(condition.text, came, GateResult.FAILED if held.pop() else GateResult.PASSED)


_NOT_REPEATED_TEXT = f"at least {MIN_RUNS_FOR_WORD} runs a side, as of run-scenario --repeat, or earlier equal runs in --results-dir"


def _needs(comparison: Comparison, condition: Condition, found: FigureChange) -> str:
    """Say how many runs, or how long a run, would decide a condition if the change stays as it is."""
    if found.error is None or found.change is None:
        return ""
    is_share = COMPARABLE_FIGURES[condition.figure].is_share
    away = found.change - condition.limit
    if not is_share:
        away = math.log1p(found.change) - math.log1p(max(condition.limit, -0.999999))
    if not away:
        return "a change that is not at its limit"
    # Errors shrink with the square root of what is measured.
    times = (_DECIDING_ERRORS * found.error / away) ** 2
    if comparison.seconds:
        seconds = times * comparison.seconds
        if seconds > _MAX_SECONDS:
            return "a change that is further from its limit"
        return f"about {format_count(round(max(seconds, comparison.seconds)))} s (-r), if the change stays"
    runs = math.ceil(max(times * max(comparison.runs), max(comparison.runs) + 1, MIN_RUNS_FOR_WORD))
    if runs > _MAX_RUNS:
        return "a change that is further from its limit"
    return f"about {runs} runs a side, if the change stays"
