"""``ssbench-master report-scenario``: the report of a stat file of any version."""

from __future__ import annotations

import argparse
import cProfile
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TextIO

from ssbench.cli.options import percentile
from ssbench.cli.stat_file import reading, refuse_to_overwrite, standard_output
from ssbench.errors import ExitCode, UsageError
from ssbench.reports import print_report, requests_per_second
from ssbench.statistics import summarize

logger = logging.getLogger(__name__)

DESCRIPTION = "Print the report of a stat file, of any version of ssbench."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument(
        "-s",
        "--stats-file",
        type=Path,
        required=True,
        metavar="FILE",
        help="the stat file, compressed or not",
    )
    parser.add_argument(
        "-f",
        "--report-file",
        type=Path,
        default="-",
        metavar="FILE",
        help="where to write the report (stdout)",
    )
    parser.add_argument(
        "--pctile",
        type=percentile,
        default=95.0,
        metavar="N",
        help="the percentile of latencies to report, 1 to 100; fractions too (95)",
    )
    parser.add_argument("--csv", action="store_true", help="print the report as CSV")
    parser.add_argument(
        "-r",
        "--rps-histogram",
        type=Path,
        metavar="FILE",
        help="also write the requests completed in each second, as CSV; - is stdout",
    )
    parser.add_argument("--profile", action="store_true", help="profile the making of the report")


def run(arguments: argparse.Namespace) -> ExitCode:
    """Print the report; raises StatFileError, and UsageError for a file that cannot be written."""
    for output in filter(None, (arguments.report_file, arguments.rps_histogram)):
        refuse_to_overwrite(arguments.stats_file, output)
    with _profile() if arguments.profile else nullcontext():
        with reading(arguments.stats_file) as results:
            statistics = summarize(results)
        for warning in statistics.warnings:
            logger.warning("%s: %s", arguments.stats_file, warning)
        with _output(arguments.report_file) as out:
            print_report(statistics, pctile=arguments.pctile, csv=arguments.csv, out=out)
        if arguments.rps_histogram:
            with _output(arguments.rps_histogram) as out:
                out.write(requests_per_second.report(statistics))
                out.flush()
    return ExitCode.OK


@contextmanager
def _output(path: Path) -> Iterator[TextIO]:
    """Open a file for writing, or stdout for ``-``."""
    if path == Path("-"):
        with standard_output() as out:
            yield out
        return
    try:
        with path.open("w", encoding="utf-8", newline="") as out:
            yield out
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


@contextmanager
def _profile() -> Iterator[None]:
    profile = cProfile.Profile()
    with profile:
        yield
    with tempfile.NamedTemporaryFile(prefix="ssbench-report-", suffix=".prof", delete=False) as out:
        profile.dump_stats(out.name)
    logger.info("profile written to %s", out.name)
