"""The options that write what is printed into a file too: formats of reports, and ``--json`` of lists.

:class:`ReportFiles` are those that were asked for of a report. The sub-commands that print a list or log
lines have ``--json FILE``, which is the same as one record.
"""

from __future__ import annotations

import argparse
import logging
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ssbench.base import printable
from ssbench.base.errors import UsageError
from ssbench.cli import output_file
from ssbench.cli.options import FILE, FORCE_OPTION, Argument
from ssbench.reports import products

if TYPE_CHECKING:
    from ssbench.base.record import JsonHead
    from ssbench.reports.writing import ReportOptions
    from ssbench.statistics.run_statistics import RunStatistics

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """The files that were asked for: (report, file)."""

    wanted: tuple[tuple[str, Path], ...]
    force: bool

    @property
    def paths(self) -> list[Path]:
        """All files."""
        return [path for _, path in self.wanted]

    @property
    def on_standard_output(self) -> str | None:
        """The report that goes to standard output; None without one."""
        return next((name for name, path in self.wanted if output_file.is_standard_output_name(path)), None)

    @property
    def by(self) -> tuple[str, ...]:
        """The fields that the statistics for these reports keep apart."""
        return products.PAGE_GROUPS if self.over_time else ()

    @property
    def over_time(self) -> bool:
        """Whether they need the course of the run, bin by bin."""
        return any(name in {"json", "html"} for name, _ in self.wanted)

    def check(self, others: Sequence[Path | None], stats_file: Path | None) -> None:
        """Raise UsageError for files that cannot be written, besides the ``others`` of the command."""
        outputs = [*(path for path in others if path), *self.paths]
        if self.on_standard_output and sum(map(output_file.is_standard_output_name, outputs)) > 1:
            raise UsageError("standard output (-) is given for two outputs")
        output_file.check_outputs(outputs, stats_file, force=self.force)

    def write(self, statistics: RunStatistics, options: ReportOptions) -> None:
        """Write all; raises UsageError, which names the file."""
        for name, path in self.wanted:
            clean, done = printable.choose_cleaner(name), output_file.log_written
            with output_file.open_output(path, force=self.force, clean=clean, done=done) as out:
                _write_report(name, statistics, options, out)

    def that_are(self, *, slow: bool) -> list[tuple[str, Path]]:
        """Return those that are quick to write, or those that may hold up; without standard output.

        Slow is what is not a regular file, because its reader may be.
        """
        return [
            (name, path)
            for name, path in self.wanted
            if not output_file.is_standard_output_name(path) and slow is output_file.is_stream_path(path)
        ]

    def try_to_write(self, statistics: RunStatistics, options: ReportOptions, *, slow: bool) -> bool:
        """Write those that are quick or slow; return whether all went well."""
        written = [
            output_file.try_to_write_output(
                path,
                partial(_write_report, name, statistics, options),
                force=self.force,
                clean=printable.choose_cleaner(name),
            )
            for name, path in self.that_are(slow=slow)
        ]
        return all(written)


def _write_report(name: str, statistics: RunStatistics, options: ReportOptions, out: TextIO) -> None:
    from ssbench.reports.writing import make_run_report_parts

    out.writelines(make_run_report_parts(name, statistics, options))


def format_report_options(files: Sequence[tuple[str, Path]]) -> str:
    """Return the options of a shell's command line that ask for some files."""
    return " ".join(shlex.quote(f"{products.format_option(name)}={path}") for name, path in files)


def list_report_file_options() -> list[Argument]:
    """Return the options; ``--force`` has to be there too."""
    return [
        Argument(
            products.format_option(name),
            FILE,
            f"{what}; - is standard output, without the text report",
            default_text="none",
        )
        for name, what in products.FORMAT_FILES.items()
    ]


def choose_report_files(arguments: argparse.Namespace) -> ReportFiles:
    """Return what was asked for; what an interrupted call has written is replaced by one that goes on."""
    given = ((name, getattr(arguments, name)) for name in products.FORMAT_FILES)
    force = arguments.force or getattr(arguments, "resume", False)
    return ReportFiles(tuple((name, path) for name, path in given if path), force)


# -- --json of lists -------------------------------------------------------------------------------


#: The option of a sub-command that has ``--force``.
JSON_OPTION = Argument(
    "--json",
    FILE,
    "write the same as JSON to FILE; - is standard output, in place of the text",
    default_text="none",
)

#: The option, and ``--force``.
JSON_OPTIONS = (JSON_OPTION, FORCE_OPTION)


def check_json_output(arguments: argparse.Namespace) -> None:
    """Raise UsageError for a file that cannot be written; to be called before anything is done."""
    if arguments.json is not None:
        output_file.check_output(arguments.json, force=arguments.force)


def is_json_alone(arguments: argparse.Namespace) -> bool:
    """Whether standard output is for JSON, and for nothing else."""
    return arguments.json is not None and output_file.is_standard_output_name(arguments.json)


def write_json_output(arguments: argparse.Namespace, made: JsonHead | Iterable[str]) -> None:
    """Write a record, or its text in parts, into the file that was asked for, if any; raises UsageError."""
    if arguments.json is None:
        return
    from ssbench.base.record import JsonHead, iterate_json

    file, done = arguments.json, output_file.log_written
    with output_file.open_output(
        file, force=arguments.force, clean=printable.escape_in_json, done=done
    ) as out:
        out.writelines(iterate_json(made) if isinstance(made, JsonHead) else made)
