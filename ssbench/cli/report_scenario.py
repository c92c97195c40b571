"""``ssbench-master report-scenario``: print the report of a stat file of any version."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.base.errors import ExitCode, choose_worst_code
from ssbench.base.profiling import Profiling
from ssbench.cli import archives, output_file
from ssbench.cli import options as cli_options
from ssbench.cli.archives import StatFileAsked
from ssbench.cli.options import (
    FAIL_IF_OPTION,
    FILE,
    FORCE_OPTION,
    PERCENTILES_OPTION,
    RUN_FILE,
    UNDECIDED_OPTION,
    Argument,
    ReportAsked,
    ReportFilesAsked,
    add_options,
    add_report_options,
    choose_percentiles,
    choose_report,
    choose_undecided,
)
from ssbench.cli.own_program import import_faster
from ssbench.run import terminal
from ssbench.run.verdict_messages import log_thresholds

if TYPE_CHECKING:
    from ssbench.comparison.run_comparison import Comparison
    from ssbench.statistics.run_statistics import RunStatistics

_log = logging.getLogger(__name__)

EXAMPLE = "ssbench-master report-scenario last --pctile 99.9"
USAGE = "%(prog)s FILE [FILE ...] [option ...]"

DESCRIPTION = "Print the report of a stat file of any version of ssbench."


@dataclass(frozen=True, kw_only=True)
class ReportScenarioAsked(StatFileAsked, ReportAsked, ReportFilesAsked):
    """What the command is asked."""

    report_file: Path | None
    rps_histogram: Path | None
    profile: bool


ASKED = ReportScenarioAsked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    add_options(
        parser,
        *archives.STAT_FILE_ARGUMENTS,
        Argument(
            "more",
            RUN_FILE,
            "files of the other masters of the same run; the report covers all of them, as after merge",
            settings={"nargs": "*"},
        ),
        Argument("--report-file", FILE, "file for the report", default_text="standard output", old="-f"),
        PERCENTILES_OPTION,
    )
    add_report_options(parser)
    add_options(
        parser,
        FAIL_IF_OPTION,
        UNDECIDED_OPTION,
        Argument(
            "--rps-histogram",
            FILE,
            "file for the number of requests completed in each second, as CSV; - is standard output",
            default_text="none",
            old="-r",
        ),
        *cli_options.list_report_file_options(),
        FORCE_OPTION,
        Argument("--profile", None, "write a profile of making the report"),
    )


def run(asked: ReportScenarioAsked) -> ExitCode:
    """Print the report; raises StatFileError, and UsageError for a file that cannot be written."""
    # Here, because they import numpy, which --help does without.
    with import_faster():
        from ssbench.cli import run_report
        from ssbench.reports.verdict_words import judge_for_reports
        from ssbench.reports.writing import ReportOptions, groups_for, write_report
        from ssbench.statistics.summary import summarize

    paths = archives.choose_stat_files(asked)
    files = cli_options.choose_report_files(asked)
    report_file = asked.report_file or (None if files.on_standard_output else Path("-"))
    for path in paths:
        files.check([report_file, asked.rps_histogram], path)
    _, verbose = choose_report(asked)
    options = ReportOptions(
        *choose_percentiles(asked),
        verbose=verbose,
        undecided=choose_undecided(asked.undecided) if asked.undecided else None,
    )
    with Profiling("ssbench-report") if asked.profile else nullcontext():
        with archives.open_stat_files(paths) as results:
            by = (*files.by, *groups_for(options))
            statistics = summarize(results, by, over_time=files.over_time)
        options = replace(
            options,
            fail_if=run_report.bind_conditions(asked.fail_if, statistics),
            compare_sides=_make_sides_comparison(asked, paths) if statistics.sides else None,
        )
        found = judge_for_reports(statistics, options)
        # Those who keep files of ssbench 0.x know the table, as do scripts that name a file for the report.
        default = "table" if asked.report_file else None if statistics.current else "both"
        name, _ = choose_report(asked, default)
        printed = report_file is not None and output_file.is_standard_output_name(report_file)
        in_report = report_file is not None and name in run_report.REPORTS_WITH_SUMMARY
        # What stands in the summary is not said beside it a second time.
        seen = in_report and printed and terminal.shares_standard_output()
        for warning in () if seen else statistics.warnings:
            _log.warning("%s: %s", paths[0] if len(paths) == 1 else "all masters", warning)
        files.write(statistics, options)
        if report_file:
            with output_file.open_output(report_file, force=asked.force, keeps=True) as out:
                view = output_file.fit_view(options, out)
                run_report.write_shown_report(name, statistics, view, out)
        if asked.rps_histogram:
            with output_file.open_output(asked.rps_histogram, force=asked.force, keeps=True) as out:
                write_report("requests_per_second", statistics, options, out)
    if not seen:
        log_thresholds(found, in_report=in_report)
    whole = statistics.complete and not results.damaged
    return choose_worst_code((found.gate_code, ExitCode.OK if whole else ExitCode.FAILED))


def _make_sides_comparison(
    asked: ReportScenarioAsked, paths: Sequence[Path]
) -> Callable[[RunStatistics], Comparison]:
    """Return what compares the two sides of a run, which few runs have, once for all of its reports."""
    from ssbench.cli.sides import SidesComparer

    return partial(SidesComparer(asked.results_dir).compare, paths)
