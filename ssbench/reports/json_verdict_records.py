"""The records of how a run was judged, in the report as JSON."""

from __future__ import annotations

from typing import Literal

from ssbench.reports.json_units import Count, PerSecond, Record, Seconds, Share


class Threshold(Record, frozen=True, kw_only=True):
    """A condition under which the run fails, and what came, in its unit (a share is a part of 1).

    ``value`` is null where it was not measured, which fails too; with ``at_least`` it is a lower bound.
    ``result`` is "undecided" where too few operations, or a lower bound, do not tell.
    """

    condition: str
    limit: float
    unit: str
    value: float | None
    at_least: bool
    result: Literal["ok", "failed", "undecided"]
    failed: bool


class Load(Record, frozen=True, kw_only=True):
    """A load, as it was asked for or as it was; null for what was not asked for, or is not known.

    ``users`` is how many operations were under way at once, of an open loop and of stages at most,
    ``seconds`` for how long operations were sent. ``mix`` is the share of each operation.
    """

    ops_per_second: PerSecond | None
    users: float | None
    seconds: Seconds | None
    operations: Count | None
    mix: dict[str, Share]


class Reason(Record, frozen=True, kw_only=True):
    """A reason for the verdict, with the exit code that it leads to; 0 for a warning or a remark."""

    about: Literal["ending", "condition", "operations", "delivery", "warnings"]
    text: str
    exit_code: int


class Verdict(Record, frozen=True, kw_only=True):
    """The verdict on the run, its reasons, the worst first, and the exit code of ``run-scenario``.

    ``delivered`` has operations that ended, those of the warm-up and failed ones too.
    """

    outcome: Literal["good", "warned", "undecided", "not delivered", "failed", "interrupted"]
    exit_code: int
    reasons: list[Reason]
    asked: Load
    delivered: Load
