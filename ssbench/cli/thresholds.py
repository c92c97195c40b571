"""What the conditions of ``--fail-if`` mean for the exit code, and what is said of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ssbench.conditions import Condition, unknown_class
from ssbench.errors import ExitCode, UsageError
from ssbench.screen import terminal

if TYPE_CHECKING:
    from ssbench.run import RunOutcome
    from ssbench.statistics import Judgment, RunStatistics

_log = logging.getLogger(__name__)

#: The reports that have a line for each condition.
WITH_SUMMARY = ("both", "summary", "full")


def check(conditions: Iterable[Condition], statistics: RunStatistics) -> None:
    """Raise UsageError for a condition on a size class that the run does not have."""
    classes = [each.name for each in statistics.run.scenario.size_classes]
    for condition in conditions:
        if wrong := unknown_class(condition, classes):
            raise UsageError(f"--fail-if: {wrong}")


def log(judgments: Sequence[Judgment], *, in_report: bool) -> None:
    """Log what failed or is undecided, and the rest too where no report has it.

    Nothing is logged below a report on a terminal that has it all.
    """
    if in_report and terminal.passes():
        return
    for judgment in judgments:
        if judgment.failed:
            _log.error("fail-if %s", judgment.text)
        elif judgment.undecided:
            _log.warning("fail-if %s", judgment.text)
        elif not in_report:
            _log.info("fail-if %s", judgment.text)


def exit_code(outcome: RunOutcome, judgments: Sequence[Judgment]) -> ExitCode:
    """Return the exit code of a run, given what came of its conditions.

    What ended the run early goes first. Failures of operations alone are no failure of the run where a
    condition on errors of all operations says how many there may be.
    """
    code = outcome.exit_code
    if code not in {ExitCode.OK, ExitCode.FAILED}:
        return code
    if any(judgment.failed for judgment in judgments):
        return ExitCode.THRESHOLD
    allowed = any(
        judgment.condition.figure == "errors" and judgment.condition.operation is None
        for judgment in judgments
    )
    return ExitCode.OK if allowed and not outcome.trouble else code
