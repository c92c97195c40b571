"""Which report a terminal gets that is too narrow for the table of ssbench 0.3.9."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from ssbench.cli import output_file

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
    columns = output_file.terminal_columns(sys.stdout)
    if name != _DEFAULT or command is None or columns is None:
        return name, ""
    from ssbench.document.columns import width
    from ssbench.reports import write_report

    table = io.StringIO()
    write_report("table", statistics, options, table)
    widest = max(map(width, table.getvalue().splitlines()))
    if widest <= columns:
        return name, ""
    return _NARROW, f"Old table ({widest} columns): {command} --report table\n"
