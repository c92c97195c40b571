"""The report of a run that ``run-scenario`` has just carried out, its conditions, and its exit code.

Its statistics are counted while the run is going on (:class:`StatisticsDuringRun`): a thread reads the stat
file as it grows, so that whatever it has no time for waits on the disk. The report is printed, and written
into files, before the run cleans up (:class:`ReportPrinter`): neither a slow reader of the report, nor one
that does not read, nor a full disk may hold that up.
"""

from __future__ import annotations

import logging
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from ssbench.base import printable
from ssbench.base.errors import ExitCode, StatFileError, UsageError, choose_worst_code
from ssbench.cli import archives, output_file, own_program
from ssbench.cli import options as cli_options
from ssbench.cli.options import ReportFiles, choose_percentiles, choose_report
from ssbench.cli.own_program import import_faster
from ssbench.reports import products
from ssbench.run import terminal
from ssbench.run.terminal import OutputChannel
from ssbench.run.verdict_messages import log_thresholds
from ssbench.scenario.conditions import Condition, find_unknown_subject, parse_condition

if TYPE_CHECKING:
    from ssbench.cli.option_table import RunScenarioAsked
    from ssbench.cli.sides import SidesComparer
    from ssbench.comparison.run_comparison import Comparison
    from ssbench.reports.writing import ReportOptions
    from ssbench.results.block import ReadSoFar, ResultBlock, Sink
    from ssbench.results.run_description import RunSummary
    from ssbench.run.benchmark_run import RunOutcome
    from ssbench.statistics.run_statistics import RunStatistics
    from ssbench.statistics.run_verdict import RunVerdict
    from ssbench.statistics.summary import FollowedStatistics

_log = logging.getLogger(__name__)

#: The reports that have a line for each condition.
REPORTS_WITH_SUMMARY = ("both", "summary", "full")


def bind_conditions(conditions: Iterable[Condition], statistics: RunStatistics) -> tuple[Condition, ...]:
    """Return conditions as they are read where it is known which operations the scenario of a run defines.

    Raises UsageError for one on an operation, a size class or a group that the run does not have.
    """
    classes = [each.name for each in statistics.run.scenario.size_classes]
    groups = [each.name for each in statistics.run.scenario.groups]
    defined = statistics.run.scenario.defined_operations
    found = tuple(parse_condition(each.text, defined, grouped=True) for each in conditions)
    for condition in found:
        if wrong := find_unknown_subject(condition, classes, groups, defined):
            raise UsageError(f"--fail-if: {wrong}")
    return found


def write_shown_report(name: str, statistics: RunStatistics, options: ReportOptions, out: TextIO) -> None:
    """Write a report; repeat its verdict at the end if it is longer than the terminal ``out``.

    ``options`` have the rows of that terminal.
    """
    from ssbench.document.renderers.text import render_verdict_line
    from ssbench.reports.run_document import make_summary_verdict
    from ssbench.reports.writing import write_report

    lines = write_report(name, statistics, options, out)
    if name in REPORTS_WITH_SUMMARY and 0 < options.rows <= lines:
        out.write("\n" + render_verdict_line(make_summary_verdict(statistics, options), options))
        out.flush()


def choose_final_code(found: RunVerdict | None, outcome: RunOutcome) -> ExitCode:
    """Return the exit code of a run that has cleaned up; ``found`` is None where its figures were not judged.

    The verdict was made before the run deleted what it created, which may have failed too.
    """
    return choose_worst_code([outcome.exit_code if found is None else found.exit_code, outcome.ending_code])


class PrintedRunReport:
    """The report of a run, printed before the run deletes what it created."""

    def __init__(self, asked: RunScenarioAsked, *, judges: bool) -> None:
        self._files = cli_options.choose_report_files(asked)
        self._files.check([], asked.stats_file)
        name, verbose = choose_report(asked)
        self._name = self._files.on_standard_output or (None if asked.no_default_report else name)
        self._printer: ReportPrinter | None = None
        self._print: Callable[[Path, Callable[[RunStatistics], Comparison] | None], None] | None = None
        self._during_run: StatisticsDuringRun | None = None
        self._path: Path | None = None
        # Of several runs each but one is not the last.
        self._last_in = None if asked.phases else archives.choose_folder_of_last(asked.results_dir)
        percentiles = choose_percentiles(asked)
        if self._name or self._files.wanted or judges:
            with import_faster():
                from ssbench.reports import verdict_words  # noqa: F401 - before the run, not at its end
                from ssbench.reports.writing import ReportOptions, groups_for
                from ssbench.statistics import summary  # noqa: F401

                for name_, _ in self._files.wanted:
                    products.find_writer(products.Product.RUN, name_)

            options = ReportOptions(*percentiles, verbose=verbose)
            counted = self._during_run = StatisticsDuringRun(
                (*self._files.by, *groups_for(options)), over_time=self._files.over_time
            )

            def print_on(path: Path, compare: Callable[[RunStatistics], Comparison] | None) -> None:
                self._printer = ReportPrinter(self._files)
                self._printer.print(
                    partial(counted.statistics, path), self._name, replace(options, compare_sides=compare)
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
                    shlex.join(products.format_file_option(name, path) for name, path in missing),
                )
            raise
        finally:
            if self._during_run is not None:
                self._during_run.close()

    def print(self, outcome: RunOutcome, *, sides: SidesComparer | None = None) -> None:
        """Say where a complete stat file is, and print its report, which is to remain on the screen.

        ``sides`` compares the sides of the run, where it has two.
        """
        self._path = outcome.path
        if outcome.path is None:
            return
        # On a line of its own, so that a terminal that is wide enough for it does not break it.
        _log.info("Results saved to\n%s", outcome.path)
        _log.info("Report on them again with: %s", _report_command(outcome.path, self._last_in))
        if self._print is not None:
            self._print(outcome.path, None if sides is None else partial(sides.compare, [outcome.path]))

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


# -- counting during the run ---------------------------------------------------------------------


#: Seconds between two looks at the clock, and at the file where nothing was new.
_LOOK_SECONDS = 0.5
#: Nothing is counted where the master's loop took more than this share of a core: sending comes first.
_BUSY_SHARE = 0.25
#: The thread rests so many times as long as a block took it, so that the master does not seem to be busy.
_REST_FACTOR = 4.0
#: Of more results, whose latencies take 16 bytes each, none are kept in memory before the end of the run.
MAX_RESULTS_IN_MEMORY = 20_000_000


class StatisticsDuringRun:
    """A :class:`~ssbench.results.block.Sink` that takes no results: these are in the stat file.

    ``by`` and ``over_time`` are those of :func:`ssbench.statistics.summary.summarize`. ``so_far`` tells of
    the run in progress, once there is one to follow.
    """

    def __init__(self, by: Sequence[str], *, over_time: bool) -> None:
        self.so_far: ReadSoFar = lambda: None
        self._by = by
        self._over_time = over_time
        self._counting: FollowedStatistics | None = None
        self._thread: threading.Thread | None = None
        self._has_time, self._ended = threading.Event(), threading.Event()
        self._looked_at, self._cpu = time.monotonic(), time.thread_time()

    def add(self, block: ResultBlock) -> None:
        """Do nothing."""

    def tick(self, now: float) -> None:
        """Look how much time the loop leaves; the caller is its thread."""
        if now < self._looked_at + _LOOK_SECONDS:
            return
        cpu = time.thread_time()
        idle = cpu - self._cpu < _BUSY_SHARE * (now - self._looked_at)
        self._looked_at, self._cpu = now, cpu
        if not idle:
            self._has_time.clear()
            return
        self._has_time.set()
        if self._thread is None:
            known = self.so_far()
            if known is not None and known[0].is_file():  # reading from a pipe would take from its reader
                self._thread = threading.Thread(
                    target=self._count, args=(known[0],), name="counting", daemon=True
                )
                self._thread.start()

    def end(self, summary: RunSummary) -> None:
        """Let the thread end."""
        self._ended.set()
        self._has_time.set()

    def statistics(self, path: Path) -> RunStatistics:
        """Return the statistics of a complete file; raises StatFileError.

        What was not counted during the run is read now: all of it where the counting broke off, where there
        were too many results, or where the figures need all of them twice.
        """
        from ssbench.results.reading import DamageError, open_results
        from ssbench.statistics.summary import summarize

        if self._thread is not None:
            self._thread.join()
        counting = self._counting
        try:
            if counting is not None and counting.path == path:
                with suppress(DamageError, OSError):
                    while counting.some():
                        pass
                    found = counting.statistics()
                    if found is not None and counting.ended and not counting.needs_all_twice:
                        return found
        finally:
            self._drop()
        return summarize(open_results(path), self._by, over_time=self._over_time)

    def close(self) -> None:
        """Forget what was counted, also of a run without a report."""
        self._ended.set()
        self._has_time.set()
        if self._thread is not None:
            self._thread.join()
        self._drop()

    def _drop(self) -> None:
        if self._counting is not None:
            self._counting.close()
            self._counting = None

    def _count(self, path: Path) -> None:
        """Count what comes, when there is time; the body of the thread."""
        from ssbench.statistics.summary import FollowedStatistics

        try:
            self._counting = counting = FollowedStatistics(path, self._by, over_time=self._over_time)
            while not self._ended.is_set():
                began = time.thread_time()
                found = counting.some()
                self._ended.wait(_REST_FACTOR * (time.thread_time() - began) if found else _LOOK_SECONDS)
                if counting.results > MAX_RESULTS_IN_MEMORY or counting.needs_all_twice:
                    self._drop()
                    return
                self._has_time.wait()
        except Exception as error:  # noqa: BLE001 - the report is made of the whole file then
            _log.debug("counting during the run", exc_info=error)
            self._drop()


# -- printing ------------------------------------------------------------------------------------


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
        self, statistics_of: Callable[[], RunStatistics], name: str | None, options: ReportOptions
    ) -> None:
        """Print the report of that name (None: none), and wait a little for its reader.

        ``statistics_of`` returns what it is on, and raises StatFileError. It is what remains on the screen,
        so files that are quick to write, and messages on them, come first.
        """
        from ssbench.reports.verdict_words import judge_for_reports

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
            write_shown_report(
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
