"""The report of a run that ``run-scenario`` has just carried out."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.base.errors import ExitCode
from ssbench.cli import archives, invocation, report_files, sides, thresholds
from ssbench.cli.loading import import_faster
from ssbench.cli.options import choose_percentiles, choose_report
from ssbench.document.gates import choose_worst_code
from ssbench.reports import products
from ssbench.run import RunOutcome

if TYPE_CHECKING:
    from ssbench.cli.during_run import StatisticsDuringRun
    from ssbench.cli.report_printer import ReportPrinter
    from ssbench.results.sink import ReadSoFar, Sink

_log = logging.getLogger(__name__)


class PrintedRunReport:
    """The report of a run, printed before the run deletes what it created."""

    def __init__(self, arguments: argparse.Namespace, *, judges: bool) -> None:
        self._files = report_files.choose_report_files(arguments)
        self._files.check([], arguments.stats_file)
        name, verbose = choose_report(arguments)
        self._name = self._files.on_standard_output or (None if arguments.no_default_report else name)
        self._printer: ReportPrinter | None = None
        self._print: Callable[[Path], None] | None = None
        self._during_run: StatisticsDuringRun | None = None
        self._path: Path | None = None
        self._last_in = archives.choose_folder_of_last(arguments)
        percentiles = choose_percentiles(arguments)
        if self._name or self._files.wanted or judges:
            with import_faster():
                from ssbench.cli.during_run import StatisticsDuringRun
                from ssbench.cli.report_printer import ReportPrinter
                from ssbench.reports.options import ReportOptions
                from ssbench.reports.writing import groups_for

                for name_, _ in self._files.wanted:
                    products.find_writer(products.Product.RUN, name_)

                if arguments.ab:
                    sides.import_comparison()

            options = ReportOptions(*percentiles, verbose=verbose)
            counted = self._during_run = StatisticsDuringRun(
                (*self._files.by, *groups_for(options)), over_time=self._files.over_time
            )

            def print_on(path: Path) -> None:
                self._printer = ReportPrinter(self._files)
                compare = partial(sides.compare_sides_of_files, arguments, [path]) if arguments.ab else None
                command = None if arguments.report else _report_command(path, self._last_in)
                self._printer.print(
                    partial(counted.statistics, path),
                    self._name,
                    replace(options, compare_sides=compare),
                    command,
                )

            self._print = print_on

    def sinks(self, so_far: ReadSoFar) -> list[Sink]:
        """Return what is to be given to the run, so that its report is ready when it ends."""
        if self._during_run is None:
            return []
        self._during_run.so_far = so_far
        return [self._during_run]

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let Ctrl-C end this context, with a message on files that were to be written after the clean-up."""
        try:
            yield
        except KeyboardInterrupt:
            missing = self._printer.missing if self._printer is not None else ()
            if missing and self._path is not None:
                _log.warning(
                    "Not written: %s. Write it with: %s %s",
                    ", ".join(str(path) for _, path in missing),
                    _report_command(self._path),
                    report_files.format_report_options(missing),
                )
            raise
        finally:
            if self._during_run is not None:
                self._during_run.close()

    def print(self, outcome: RunOutcome) -> None:
        """Say where a complete stat file is, and print its report, which is to remain on the screen."""
        self._path = outcome.path
        if outcome.path is None:
            return
        # On a line of its own, so that a terminal that is wide enough for it does not break it.
        _log.info("Results saved to\n%s", outcome.path)
        _log.info("Report on them again with: %s", _report_command(outcome.path, self._last_in))
        if self._print is not None:
            self._print(outcome.path)

    def finish(self, outcome: RunOutcome) -> ExitCode:
        """Say whether the report was not printed; returns the exit code, changed where a disk was full."""
        trouble = self._printer.trouble() if self._printer is not None else None
        found = self._printer.verdict if self._printer is not None else None
        if found is not None:
            thresholds.log_thresholds(found, in_report=self._name in thresholds.REPORTS_WITH_SUMMARY)
        code = thresholds.choose_final_code(found, outcome)
        if self._printer is not None and not self._printer.files_written:
            code = choose_worst_code([code, ExitCode.FAILED])
        if trouble is None or outcome.path is None:
            return code
        _log.warning(
            "The report was not printed (%s). Print it with: %s", trouble.why, _report_command(outcome.path)
        )
        return choose_worst_code([code, ExitCode.FAILED]) if trouble.is_failure else code


def _report_command(path: Path, last_in: Path | None = None) -> str:
    """Return what reports on a run that has just ended; ``last_in`` is the folder where ``last`` finds it."""
    return invocation.make_report_command(
        "last" if last_in is not None and path.parent == last_in else str(path)
    )
