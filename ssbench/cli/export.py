"""``ssbench-master export``: write the results of a stat file of any version."""

from __future__ import annotations

import argparse
import logging
import sys
from dataclasses import dataclass
from pathlib import Path

from ssbench.base.errors import ExitCode, UsageError
from ssbench.cli import archives, output_file
from ssbench.cli.archives import StatFileAsked
from ssbench.cli.options import FORCE_OPTION, OUTPUT_OPTION, Argument, add_options

_log = logging.getLogger(__name__)

EXAMPLE = "ssbench-master export FILE.stat.gz --output results.csv"

DESCRIPTION = "Write every result in a stat file of any version of ssbench."

#: The keys of :data:`ssbench.results.result_export.EXPORT_WRITERS`.
_FORMATS = ("csv", "jsonl", "parquet")


@dataclass(frozen=True, kw_only=True)
class ExportAsked(StatFileAsked):
    """What the command is asked."""

    format: str | None
    output: Path
    force: bool


ASKED = ExportAsked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    add_options(
        parser,
        *archives.STAT_FILE_ARGUMENTS,
        Argument(
            "--format",
            _FORMATS,
            "csv, jsonl (JSON lines) or parquet",
            default_text="that of the output file's suffix, or csv",
            old="-f",
        ),
        OUTPUT_OPTION,
        FORCE_OPTION,
    )


def run(asked: ExportAsked) -> ExitCode:
    """Write the results; raises StatFileError, and UsageError for a file that cannot be written."""
    # Here, because they import numpy, which --help does without.
    from ssbench.results.result_export import EXPORT_WRITERS

    stats_file = archives.choose_stat_file(asked)
    output = asked.output
    ending = output.suffix[1:].lower()
    format_ = asked.format or (ending if ending in _FORMATS else "csv")
    if output == Path("-") and format_ == "parquet" and sys.stdout and sys.stdout.isatty():
        raise UsageError("Parquet cannot be written to a terminal; give --output FILE")
    output_file.check_outputs([output], stats_file, force=asked.force)
    write = EXPORT_WRITERS[format_]
    with archives.open_stat_file(stats_file) as results:
        written: list[Path] = []  # none where the reader of a pipe is gone, so that not all was read
        with output_file.open_output(output, force=asked.force, done=written.append) as out:
            write(results, out.buffer)
        for warning in results.warnings:
            _log.warning("%s: %s", stats_file, warning)
        if written and not results.is_whole and not results.damaged:
            _log.warning("%s: the run is under way, or was killed: these are the results so far", stats_file)
        if written:
            _log.info("%s results exported", f"{results.results_read:,}")
    whole = results.is_whole if written else not results.damaged
    return ExitCode.OK if whole else ExitCode.FAILED
