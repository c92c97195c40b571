"""What is said of the conditions of ``--fail-if``, and the exit code of a run."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ssbench.base.errors import ExitCode, UsageError
from ssbench.document.gates import choose_worst_code
from ssbench.run import terminal
from ssbench.scenario.conditions import Condition, find_unknown_subject, parse_condition

if TYPE_CHECKING:
    from ssbench.run import RunOutcome
    from ssbench.statistics.run_statistics import RunStatistics
    from ssbench.statistics.verdict import RunVerdict

_log = logging.getLogger(__name__)

#: The reports that have a line for each condition.
REPORTS_WITH_SUMMARY = ("both", "summary", "full")


def bind_conditions(conditions: Iterable[Condition], statistics: RunStatistics) -> tuple[Condition, ...]:
    """Return conditions as they are read where it is known which operations the scenario of a run defines.

    Raises UsageError for one on an operation, a size class or a group that the run does not have.
    """
    classes = [each.name for each in statistics.run.scenario.size_classes]
    groups = [each.name for each in statistics.run.scenario.groups]
    found = tuple(parse_condition(each.text, grouped=True) for each in conditions)
    for condition in found:
        if wrong := find_unknown_subject(condition, classes, groups):
            raise UsageError(f"--fail-if: {wrong}")
    return found


def log_thresholds(found: RunVerdict, *, in_report: bool) -> None:
    """Log what failed, was not delivered or is undecided; the rest too where no report has it.

    Nothing is logged below a report on a terminal that has it all.
    """
    if in_report and terminal.messages_disappear():
        return
    for judgment in found.judgments:
        if judgment.failed:
            _log.error("fail-if %s", judgment.text)
        elif judgment.undecided:
            _log.warning("fail-if %s", judgment.text)
        elif not in_report:
            _log.info("fail-if %s", judgment.text)
    for text, code in found.undelivered:
        _log.log(logging.WARNING if code is ExitCode.OK else logging.ERROR, "%s", text[:1].upper() + text[1:])


def choose_final_code(found: RunVerdict | None, outcome: RunOutcome) -> ExitCode:
    """Return the exit code of a run that has cleaned up; ``found`` is None where its figures were not judged.

    The verdict was made before the run deleted what it created, which may have failed too.
    """
    return choose_worst_code([outcome.exit_code if found is None else found.exit_code, outcome.ending_code])
