"""Messages on the conditions of a run."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ssbench.base.errors import ExitCode
from ssbench.run import terminal

if TYPE_CHECKING:
    from ssbench.statistics.run_verdict import RunVerdict

_log = logging.getLogger(__name__)


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
