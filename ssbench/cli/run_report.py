"""The report of a run that ``run-scenario`` has just carried out, its conditions, and its exit code."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.base.errors import ExitCode, UsageError
from ssbench.cli import archives, own_program
from ssbench.cli import options as cli_options
from ssbench.cli.options import choose_percentiles, choose_report
from ssbench.cli.own_program import import_faster
from ssbench.document.gates import choose_worst_code
from ssbench.reports import products
from ssbench.run import terminal
from ssbench.scenario.conditions import Condition, find_unknown_subject, parse_condition

if TYPE_CHECKING:
    from ssbench.cli.report_printer import ReportPrinter
    from ssbench.cli.stat_file import StatisticsDuringRun
    from ssbench.results.block import ReadSoFar, Sink
    from ssbench.run.benchmark_run import RunOutcome
    from ssbench.statistics.run_statistics import RunStatistics
    from ssbench.statistics.run_verdict import RunVerdict

_log = logging.getLogger(__name__)

#: The reports that have a line for each condition.
REPORTS_WITH_SUMMARY = ("both", "summary", "full")


def bind_conditions(conditions: Iterable[Condition], statistics: RunStatistics) -> tuple[Condition, ...]:
    """Return conditions as they are read where it is known which operations the scenario of a run defines.

    Raises UsageError for one on an operation, a size class or a group that the run does not have.
    """
    classes = [each.name for each in statistics.run.scenario.size_classes]
    groups = [each.name for each in statistics.run.scenario.groups]
    found = tuple(parse_condition(each.text, grouped=True) for each in conditions)
    for condition in found:
        if wrong := find_unknown_subject(condition, classes, groups):
            raise UsageError(f"--fail-if: {wrong}")
    return found


def log_thresholds(found: RunVerdict, *, in_report: bool) -> None:
    """Log what failed, was not delivered or is undecided; the rest too where no report has it.

    Nothing is logged below a report on a terminal that has it all.
    """
    if in_report and terminal.messages_disappear():
        return
    for judgment in found.judgments:
        if judgment.failed:
            _log.error("fail-if %s", judgment.text)
        elif judgment.undecided:
            _log.warning("fail-if %s", judgment.text)
        elif not in_report:
            _log.info("fail-if %s", judgment.text)
    for text, code in found.undelivered:
        _log.log(logging.WARNING if code is ExitCode.OK else logging.ERROR, "%s", text[:1].upper() + text[1:])


def choose_final_code(found: RunVerdict | None, outcome: RunOutcome) -> ExitCode:
    """Return the exit code of a run that has cleaned up; ``found`` is None where its figures were not judged.

    The verdict was made before the run deleted what it created, which may have failed too.
    """
    return choose_worst_code([outcome.exit_code if found is None else found.exit_code, outcome.ending_code])


class PrintedRunReport:
    """The report of a run, printed before the run deletes what it created."""

    def __init__(self, arguments: argparse.Namespace, *, judges: bool) -> None:
        self._files = cli_options.choose_report_files(arguments)
        self._files.check([], arguments.stats_file)
        name, verbose = choose_report(arguments)
        self._name = self._files.on_standard_output or (None if arguments.no_default_report else name)
        self._printer: ReportPrinter | None = None
        self._print: Callable[[Path], None] | None = None
        self._during_run: StatisticsDuringRun | None = None
        self._path: Path | None = None
        # Of several runs each but one is not the last.
        self._last_in = None if arguments.phases else archives.choose_folder_of_last(arguments)
        percentiles = choose_percentiles(arguments)
        if self._name or self._files.wanted or judges:
            with import_faster():
                from ssbench.cli import sides
                from ssbench.cli.report_printer import ReportPrinter
                from ssbench.cli.stat_file import StatisticsDuringRun
                from ssbench.reports.writing import ReportOptions, groups_for

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
                self._printer.print(
                    partial(counted.statistics, path),
                    self._name,
                    replace(options, compare_sides=compare),
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
                    cli_options.format_report_options(missing),
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
            log_thresholds(found, in_report=self._name in REPORTS_WITH_SUMMARY)
        code = choose_final_code(found, outcome)
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
    return own_program.make_report_command(
        "last" if last_in is not None and path.parent == last_in else str(path)
    )
