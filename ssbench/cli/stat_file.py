"""Opening stat files for the sub-commands that read one, and reading that of a run while it grows.

:func:`open_stat_file` shows a progress bar. :class:`StatisticsDuringRun` counts the statistics of the report
at the end of a run while the run is going on: a thread reads the stat file as it grows, so that whatever it
has no time for waits on the disk.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.results.reading import DamageError, RunResults, open_results
from ssbench.run.bars import ReadingBar
from ssbench.statistics.run_statistics import ReadableResults
from ssbench.statistics.summary import FollowedStatistics, summarize

if TYPE_CHECKING:
    from ssbench.results.block import ReadSoFar, ResultBlock
    from ssbench.results.run_description import RunSummary
    from ssbench.statistics.run_statistics import RunStatistics


@contextmanager
def open_stat_file(path: Path) -> Iterator[RunResults]:
    """Open a stat file, and show on a terminal how much of it has been read; raises StatFileError."""
    bar = ReadingBar(path.name)
    try:
        with closing(open_results(path, bar)) as results:
            yield results
    finally:
        bar.stop()


@contextmanager
def open_stat_files(paths: Sequence[Path]) -> Iterator[ReadableResults]:
    """Open the stat file of one run, or those of the masters that made it; raises UsageError as well."""
    if len(paths) == 1:
        with open_stat_file(paths[0]) as results:
            yield results
    else:
        from ssbench.results.merging_masters import MergedResults

        yield MergedResults(paths)


# -- Statistics during a run -----------------------------------------------------------------------


_log = logging.getLogger(__name__)

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
