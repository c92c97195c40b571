"""``ssbench-master merge``: make one stat file of those of several masters."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ssbench.base.errors import ExitCode, UsageError
from ssbench.cli import archives, output_file
from ssbench.cli.archives import ResultsDirAsked
from ssbench.cli.options import FILE, FORCE_OPTION, RUN_FILE, Argument, add_options
from ssbench.cli.own_program import import_faster

_log = logging.getLogger(__name__)

EXAMPLE = "ssbench-master merge one.stat.gz two.stat.gz -o both.stat.gz"

DESCRIPTION = (
    "Merge the stat files that several masters wrote for one run (run-scenario --part 1/4 and so on) into "
    "one. All results are copied, so percentiles cover all of them. Files that do not belong together are "
    "refused: another scenario, other options or times, the same part twice, clocks that differ."
)


@dataclass(frozen=True, kw_only=True)
class MergeAsked(ResultsDirAsked):
    """What the command is asked."""

    files: Sequence[Path]
    output: Path
    force: bool


ASKED = MergeAsked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    add_options(
        parser,
        Argument("files", RUN_FILE, "a stat file; or last, last-1, @LABEL", settings={"nargs": "+"}),
        Argument("-o --output", FILE, "the stat file to write", settings={"required": True}),
        archives.RESULTS_DIR_OPTION,
        FORCE_OPTION,
    )


def run(asked: MergeAsked) -> ExitCode:
    """Write the file; raises StatFileError, and UsageError where the runs do not fit."""
    with import_faster():
        from ssbench.results.merging_masters import MergedResults

    paths = [Path(each) for each in archives.resolve_references(asked.results_dir, map(str, asked.files))]
    output = asked.output
    if str(output) == "-" and sys.stdout and sys.stdout.isatty():
        raise UsageError("a stat file cannot be written to a terminal; give --output FILE")
    for path in paths:
        output_file.check_outputs([output], path, force=asked.force)
    results = MergedResults(paths)
    whole: list[Path] = []  # not where the reader of a pipe is gone
    with output_file.open_output(output, force=asked.force, done=whole.append) as out:
        results.copy_to(out.buffer)
    for warning in results.warnings:
        _log.warning("%s", warning)
    where = "standard output" if str(output) == "-" else output
    if whole:
        _log.info("%s results of %d masters merged into %s", f"{results.results:,}", len(paths), where)
    return ExitCode.OK
