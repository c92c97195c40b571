"""``ssbench-master report-scenario``: print the report of a stat file of any version."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssbench.base.errors import ExitCode
from ssbench.base.profiling import Profiling
from ssbench.cli import archives, invocation, output_file, report_files
from ssbench.cli.loading import loading
from ssbench.cli.options import (
    add_fail_if,
    add_force,
    add_percentiles,
    add_renamed,
    add_report,
    add_undecided,
    chosen_percentiles,
    chosen_report,
    chosen_undecided,
)
from ssbench.cli.parser import completes
from ssbench.run import terminal

if TYPE_CHECKING:
    from ssbench.statistics.run_statistics import RunStatistics

_log = logging.getLogger(__name__)

EXAMPLE = "ssbench-master report-scenario last --pctile 99.9"

DESCRIPTION = "Print the report of a stat file that any version of ssbench wrote."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    archives.add_stat_file(parser)
    more = parser.add_argument(
        "more",
        type=Path,
        nargs="*",
        metavar="FILE",
        help="those of the other masters of the same run; the report is of all together, as of what merge"
        " makes",
    )
    completes(more, "runs")
    add_renamed(
        parser,
        "--report-file",
        "-f",
        type=Path,
        metavar="FILE",
        help="file for the report (default: standard output)",
    )
    add_percentiles(parser)
    add_report(parser)
    add_fail_if(parser)
    add_undecided(parser)
    add_renamed(
        parser,
        "--rps-histogram",
        "-r",
        type=Path,
        metavar="FILE",
        help="file for the number of requests completed in each second, as CSV; - is standard output"
        " (default: none)",
    )
    report_files.add_arguments(parser)
    add_force(parser)
    parser.add_argument("--profile", action="store_true", help="write a profile of making the report")


def run(arguments: argparse.Namespace) -> ExitCode:
    """Print the report; raises StatFileError, and UsageError for a file that cannot be written."""
    # Here, because they import numpy, which --help does without.
    with loading():
        from ssbench.cli import thresholds
        from ssbench.cli.report_printer import fitting
        from ssbench.cli.stat_file import reading_all
        from ssbench.document.gates import worst
        from ssbench.reports.options import ReportOptions
        from ssbench.reports.verdict import judged
        from ssbench.reports.writing import groups_for, write_report
        from ssbench.statistics.summary import summarize

    named = arguments.file or arguments.stats_file
    paths = archives.stat_files(arguments)
    # In another folder "last" is another run.
    again = [named] if len(paths) == 1 and not arguments.results_dir else paths
    command = None if arguments.report else invocation.report_command(*map(str, again))
    files = report_files.chosen(arguments)
    report_file: Path | None = arguments.report_file or (None if files.on_standard_output else Path("-"))
    for path in paths:
        files.check([report_file, arguments.rps_histogram], path)
    name, verbose = chosen_report(arguments)
    options = ReportOptions(
        *chosen_percentiles(arguments),
        verbose=verbose,
        undecided=chosen_undecided(arguments) if arguments.undecided else None,
    )
    with Profiling("ssbench-report") if arguments.profile else nullcontext():
        with reading_all(paths) as results:
            by = (*files.by, *groups_for(options))
            statistics = summarize(results, by, over_time=files.over_time)
        options = replace(
            options,
            fail_if=thresholds.of_run(arguments.fail_if, statistics),
            compare_sides=partial(_compare_sides, arguments, paths),
        )
        found = judged(statistics, options)
        printed = report_file is not None and output_file.is_standard_output(report_file)
        name, note = fitting(name, statistics, options, command) if printed else (name, "")
        in_report = report_file is not None and name in thresholds.WITH_SUMMARY
        # What stands in the summary is not said beside it a second time.
        seen = in_report and printed and terminal.is_standard_output()
        for warning in () if seen else statistics.warnings:
            _log.warning("%s: %s", paths[0] if len(paths) == 1 else "all masters", warning)
        files.write(statistics, options)
        if report_file:
            with output_file.writing(report_file, force=arguments.force) as out:
                write_report(name, statistics, output_file.fitted(options, out), out)
                out.write(note)
        if arguments.rps_histogram:
            with output_file.writing(arguments.rps_histogram, force=arguments.force) as out:
                write_report("requests_per_second", statistics, options, out)
    if not seen:
        thresholds.log(found, in_report=in_report)
    return worst((found.gate_code, ExitCode.FAILED if results.damaged else ExitCode.OK))


def _compare_sides(arguments: argparse.Namespace, paths: Sequence[Path], statistics: RunStatistics) -> Any:
    """Return the comparison of the two sides of a run, which few runs have."""
    from ssbench.cli import sides

    return sides.compare(arguments, paths, statistics)
