"""A gate: a condition that ends in one of three ways, and the exit code that gates lead to."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from ssbench.base.errors import ExitCode

#: Exit codes from the least to the worst: of several that apply, the worst is returned to the shell.
SEVERITY = (
    ExitCode.OK,
    ExitCode.UNDECIDED,
    ExitCode.NOT_DELIVERED,
    ExitCode.FAILED,
    ExitCode.THRESHOLD,
    ExitCode.INTERRUPTED,
    ExitCode.WORKERS,
    ExitCode.CLUSTER,
    ExitCode.USAGE,
)


def choose_worst_code(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the worst exit code, ``OK`` without any."""
    return max(codes, key=SEVERITY.index, default=ExitCode.OK)


class GateResult(Enum):
    """How a gate ended; the value is the word that reports use."""

    PASSED = "ok"
    FAILED = "FAILED"
    UNDECIDED = "undecided"


class Undecided(Enum):
    """What an undecided gate counts as (``--undecided``); the value is how the option spells it."""

    REPORT = "report"
    AS_FAILED = "fail"
    AS_PASSED = "pass"


def combine_gate_results(results: Iterable[GateResult]) -> GateResult:
    """Return what several gates are together: one that failed decides, then one that is undecided."""
    found = set(results)
    return next(
        (each for each in (GateResult.FAILED, GateResult.UNDECIDED) if each in found), GateResult.PASSED
    )


def choose_exit_code(results: Iterable[GateResult], undecided: Undecided = Undecided.REPORT) -> ExitCode:
    """Return the exit code of some gates: of the worst, ``OK`` without any."""
    results = set(results)
    as_failed = undecided is Undecided.AS_FAILED and GateResult.UNDECIDED in results
    if GateResult.FAILED in results or as_failed:
        return ExitCode.THRESHOLD
    if GateResult.UNDECIDED in results and undecided is Undecided.REPORT:
        return ExitCode.UNDECIDED
    return ExitCode.OK
