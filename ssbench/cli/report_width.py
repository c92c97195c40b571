"""Which report a terminal gets that is too narrow for the table of ssbench 0.3.9."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ssbench.reports import ReportOptions
    from ssbench.statistics import RunStatistics

#: The report that has the table because it was not asked for another, and the one that does without.
_DEFAULT, _NARROW = "both", "summary"


def fitting(
    name: str, statistics: RunStatistics, options: ReportOptions, command: str | None
) -> tuple[str, str]:
    """Return the name of the report for standard output, and the text after it.

    The default report is the summary alone on a terminal that is narrower than the table, and the text is
    then a line that says how to see the table. ``command`` is what prints the report again, None where the
    user chose the report. Pipes and files get the table: scripts read it there.
    """
    width_of_terminal = columns()
    if name != _DEFAULT or command is None or width_of_terminal is None:
        return name, ""
    from ssbench.reports import write_report
    from ssbench.reports.columns import width

    table = io.StringIO()
    write_report("table", statistics, options, table)
    widest = max(map(width, table.getvalue().splitlines()))
    if widest <= width_of_terminal:
        return name, ""
    return _NARROW, f"Old table ({widest} columns): {command} --report table\n"


def columns() -> int | None:
    """Return the width of the terminal that standard output is; None where it is none, or does not tell."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (AttributeError, OSError, ValueError):  # it is closed, or replaced by a test
        return None
