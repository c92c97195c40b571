"""Print the report of a run that has just ended on standard output, and write it into files.

The run still has to clean up, so neither a slow reader of the report, nor one that does not read, nor a full
disk may hold it up.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO, cast

from ssbench.base import printable
from ssbench.base.errors import StatFileError
from ssbench.cli import output_file
from ssbench.cli.options import ReportFiles
from ssbench.reports.run_verdict import judge_for_reports
from ssbench.reports.writing import ReportOptions, write_report
from ssbench.run import terminal
from ssbench.run.terminal import OutputChannel
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import RunVerdict

_log = logging.getLogger(__name__)

#: Seconds to wait for the reader of the report before the run continues, and at the end of the program.
_FIRST_WAIT_SECONDS = 2.0
_LAST_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class PrintTrouble:
    """Why a report was not printed. ``is_failure`` is False where its reader was gone."""

    why: str
    is_failure: bool


class ReportPrinter:
    """Prints one report, and writes those for files, slow ones in :meth:`trouble`; raises no errors.

    ``files_written`` is whether these all were; it is complete after :meth:`trouble`. ``missing`` are those
    (report, file) that this has still to write. ``verdict`` is that on the run, None where it cannot be read.
    """

    def __init__(self, files: ReportFiles) -> None:
        self._files = files
        self._slow_files: Callable[[], bool] = lambda: True
        self.files_written = True
        self.missing: list[tuple[str, Path]] = []
        self.verdict: RunVerdict | None = None
        out = sys.stdout  # None when it is closed; typeshed does not know
        self._channel = OutputChannel(out.fileno(), out.encoding) if out else OutputChannel(None)
        self._unreadable: StatFileError | None = None

    def print(
        self,
        statistics_of: Callable[[], RunStatistics],
        name: str | None,
        options: ReportOptions,
    ) -> None:
        """Print the report of that name (None: none), and wait a little for its reader.

        ``statistics_of`` returns what it is on, and raises StatFileError.

        It is what remains on the screen, so files that are quick to write, and messages on them, come first.
        """
        try:
            statistics = statistics_of()
        except StatFileError as error:
            self._unreadable = error
            return
        self.verdict = judge_for_reports(statistics, options)
        self.files_written = self._files.try_to_write(statistics, options, slow=False)
        # They must not delay the clean-up.
        self.missing = self._files.that_are(slow=True)
        self._slow_files = partial(self._files.try_to_write, statistics, options, slow=True)
        if self.missing:
            _log.info("Written after the clean-up: %s", ", ".join(str(file) for _, file in self.missing))
        if name is not None:
            options = output_file.fit_view(options, sys.stdout) if sys.stdout else options
            terminal.drain_output()  # both may go to one place, and are to be in order there
            clean = printable.make_printable_coloured if options.coloured else printable.make_printable_lines
            write_report(
                name,
                statistics,
                options,
                printable.make_printable_stream(cast("TextIO", self._channel), clean),
            )
            if self._channel.drain(_FIRST_WAIT_SECONDS):
                terminal.keep_output()

    def trouble(self) -> PrintTrouble | None:
        """Wait for the reader; return why the report was not printed, None where it was."""
        if self._unreadable is not None:
            return PrintTrouble(str(self._unreadable), is_failure=True)
        self.files_written &= self._slow_files()
        self.missing = []
        self._channel.drain(_LAST_WAIT_SECONDS)
        if not self._channel.unread:
            return None
        failure = self._channel.failure
        return PrintTrouble(
            f"standard output: {self._channel.why}",
            is_failure=failure is not None and not isinstance(failure, BrokenPipeError),
        )
