"""What a sweep or a search has found: the result of all its steps, in words and as one of three."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ssbench.base import record
from ssbench.base.errors import ExitCode
from ssbench.comparison.objective import ObjectiveFinding
from ssbench.comparison.search import SearchAnswer
from ssbench.comparison.steps import GroupStep, SweepStep
from ssbench.comparison.sweep import (
    Knee,
    describe_knee,
    describe_limits,
    describe_short_steps,
    find_first_best,
    find_knee,
)
from ssbench.comparison.variables import GroupVariable, Variable, Varied
from ssbench.document.gates import GateResult
from ssbench.document.units import AT_LEAST, format_change, format_latency, format_number


@dataclass(frozen=True, slots=True)
class Capacity:
    """What was found.

    ``words`` say of each step what it was judged by, and ``findings`` the judgment of each condition, none
    where the step was not judged; both are empty in a sweep. ``conclusion`` is the result of all steps,
    ``notes`` are further remarks; ``result`` is undecided where the conclusion is to be doubted. ``knee`` is
    that of a sweep, where there were enough steps, ``answer`` that of a search. ``exit_code`` is that of the
    command. ``took`` says how long all took, beside the forecast; it is empty where that is not known.
    """

    title: str
    variable: Varied
    steps: tuple[SweepStep, ...]
    words: tuple[str, ...]
    conclusion: str
    result: GateResult
    notes: tuple[str, ...] = ()
    findings: tuple[tuple[ObjectiveFinding, ...], ...] = ()
    knee: Knee | None = None
    answer: SearchAnswer | None = None
    exit_code: ExitCode = ExitCode.OK
    took: str = ""


def conclude_sweep(
    name: str, variable: Varied, steps: Sequence[SweepStep], ended: str | None, why: str
) -> Capacity:
    """Return what a sweep of the scenario ``name`` has found.

    ``ended`` says why it needed no more steps, ``why`` why it ended early; None and empty where it did not.
    """
    conclusion = "The sweep went through all of its values."
    if why:
        conclusion = f"The sweep ended early: {why}."
    elif ended is not None:
        conclusion = f"The sweep ended: {ended}."
    knee = find_knee(variable, steps)
    if knee:
        conclusion += f" {describe_knee(variable, knee, min(step.value for step in steps))}"
    if isinstance(variable, GroupVariable):
        conclusion = " ".join([conclusion, *describe_other_groups(variable, steps)])
    elif steps:
        best, first = max(steps, key=lambda step: step.rate), find_first_best(steps)
        same = f", and no fewer for certain from {variable.words(first.value)} on"
        conclusion += (
            f" Most operations a second: {format_number(best.rate)}, at {variable.words(best.value)}"
            f"{'' if first is best else same}."
        )
    notes = describe_limits(variable, steps) + (describe_short_steps(steps) if variable.is_load else [])
    return Capacity(
        f"{name}: sweep over {variable.value}",
        variable,
        tuple(steps),
        tuple(describe_step_groups(step) for step in steps) if isinstance(variable, GroupVariable) else (),
        conclusion,
        GateResult.UNDECIDED if why or notes else GateResult.PASSED,
        tuple(notes),
        knee=knee,
    )


def conclude_search(
    variable: Varied, wanted: str, answer: SearchAnswer, why: str, why_not_higher: str
) -> tuple[str, GateResult]:
    """Return what a search for the highest value at which ``wanted`` holds has found, and as what it counts.

    ``why`` says why it ended early, empty where it did not; ``why_not_higher`` why nothing higher was tried.
    """
    words = variable.words
    between = f"95 % sure: {answer.low:,} to {words(answer.high)}"
    if why:
        known = f"; the limit seems to be at {words(answer.value)} ({between})" if answer.value else ""
        return f"{wanted}: the search ended early ({why}){known}.", GateResult.UNDECIDED
    if answer.at_least and answer.value is not None:
        why_not = why_not_higher or "the range ended"
        return (
            f"{wanted}: holds up to {words(answer.value)}. Nothing higher was tried: {why_not}.",
            GateResult.UNDECIDED,
        )
    if not answer.narrow:
        return (
            f"{wanted}: undecided, the limit is from {answer.low:,} to {words(answer.high)} (95 % sure)."
            " Give the steps more time (-r).",
            GateResult.UNDECIDED,
        )
    if answer.value is None:
        return f"{wanted}: does not hold, not at {words(1)} either.", GateResult.FAILED
    return f"{wanted}: holds up to {words(answer.value)} ({between}).", GateResult.PASSED


def describe_step_groups(step: SweepStep) -> str:
    """Return what came of each group in a step, in words."""
    return "; ".join(f"{group.name} {_words(group)}" for group in step.groups)


def describe_other_groups(varied: GroupVariable, steps: Sequence[SweepStep]) -> Iterator[str]:
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


def _value(step: SweepStep) -> float:
    return step.value


def _words(group: GroupStep) -> str:
    known = [
        f"p{rank} {AT_LEAST * (rank in group.at_least)}{format_latency(seconds)}"
        for rank, seconds in ((50, group.p50), (99, group.p99))
        if not math.isnan(seconds)
    ]
    return ", ".join([f"{format_number(group.rate)} ops/s", *known])


def _difference(before: GroupStep, now: GroupStep) -> str:
    if before.interval is None or now.interval is None:
        return "the steps were too short for an interval of the rate"
    if before.interval.low <= now.interval.high and now.interval.low <= before.interval.high:
        return "no difference of the rates is shown"
    return f"the rate changed by {format_change(now.rate / before.rate - 1)} %"


class CapacityReport(record.JsonHead, frozen=True, kw_only=True):
    """A sweep, or a search for the highest load: a run for each step.

    ``varied`` says what differs from step to step, of all users or of one ``group`` of them: ``value`` is
    that. ``conclusion`` is the result of all
    steps, in words, and ``notes`` are further remarks. ``knee`` is that of a sweep, ``answer`` that of a
    search. ``judged_by`` says of each step what it was judged by; it is empty in a sweep.
    """

    format: Literal["ssbench capacity"] = "ssbench capacity"
    version: Literal[2] = 2
    title: str
    varied: Variable
    group: str | None
    conclusion: str
    notes: tuple[str, ...]
    knee: Knee | None
    answer: SearchAnswer | None
    steps: tuple[SweepStep, ...]
    judged_by: tuple[str, ...]


def make_capacity_report(found: Capacity, *_: object) -> str:
    """Return what was found as one JSON document."""
    varied = found.variable
    return record.format_json(
        CapacityReport(
            exit_code=found.exit_code,
            title=found.title,
            varied=varied.variable if isinstance(varied, GroupVariable) else varied,
            group=varied.group if isinstance(varied, GroupVariable) else None,
            conclusion=found.conclusion,
            notes=found.notes,
            knee=found.knee,
            answer=found.answer,
            steps=found.steps,
            judged_by=found.words,
        )
    )
