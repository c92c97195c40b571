"""A sweep, or a search for the highest load, as JSON."""

from __future__ import annotations

from typing import Literal

from ssbench import record
from ssbench.capacity.conclusion import Capacity
from ssbench.capacity.knee import Knee
from ssbench.capacity.search import Answer
from ssbench.capacity.steps import Step
from ssbench.capacity.variables import OfGroup, Variable


class Report(record.Head, frozen=True, kw_only=True):
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
    answer: Answer | None
    steps: tuple[Step, ...]
    judged_by: tuple[str, ...]


def report(found: Capacity, *_: object) -> str:
    """Return what was found as one JSON document."""
    varied = found.variable
    return record.text(
        Report(
            exit_code=found.exit_code,
            title=found.title,
            varied=varied.variable if isinstance(varied, OfGroup) else varied,
            group=varied.group if isinstance(varied, OfGroup) else None,
            conclusion=found.conclusion,
            notes=found.notes,
            knee=found.knee,
            answer=found.answer,
            steps=found.steps,
            judged_by=found.words,
        )
    )
