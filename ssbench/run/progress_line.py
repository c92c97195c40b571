"""Progress of a benchmark in one line: redrawn on a terminal, a line each ten seconds elsewhere.

It is not shown where INFO lines are not (``-q``).
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ssbench.document.figures import percentile_of
from ssbench.results.block import ResultBlock
from ssbench.results.description import RunSummary
from ssbench.run import terminal
from ssbench.run.live_frame import ProgressFigures, compose_progress_line
from ssbench.scenario.model import Scenario

_log = logging.getLogger(__name__)

#: Seconds between two drawings on a terminal, and of the results that rates and latencies are of.
_LINE_DRAW_SECONDS = 0.25
_LINE_WINDOW_SECONDS = 5.0

#: Seconds between two lines elsewhere; a line is of the results since the line before.
_LOG_LINE_SECONDS = 10.0

#: Columns of such a line, and of a terminal that does not tell its width.
_USUAL_COLUMNS = 80

#: Columns left free on a terminal: for the ^C that it prints itself, without wrapping.
_FREE_COLUMNS = 3

#: Latencies kept of one gathering; of more results, they are picked at equal distances.
_MAX_LINE_LATENCIES = 1000


class _GatheredResults(NamedTuple):
    """The results of a quarter of a second; ``latencies`` are a sample, in seconds."""

    until: float
    succeeded: int
    moved: int
    latencies: npt.NDArray[np.float64]


class ProgressLine:
    """Shows how far a run is and how it goes. A :class:`~ssbench.results.Sink`.

    ``workers`` returns how many workers can get jobs, and how many are expected.
    """

    def __init__(self, scenario: Scenario, workers: Callable[[], tuple[int, int]]) -> None:
        self._wanted = terminal.shows_progress()
        self._drawn = terminal.can_redraw()
        self._scenario = scenario
        self._workers = workers
        self._blocks: list[ResultBlock] = []
        self._gathered: deque[_GatheredResults] = deque()
        self._causes: Counter[str] = Counter()
        self._done = 0
        self._began = self._window_begins = self._gather_at = self._show_at = -1.0

    def add(self, block: ResultBlock) -> None:
        """Receive results."""
        if self._wanted:
            self._blocks.append(block)

    def tick(self, now: float) -> None:
        """Show how it goes, where it is time to."""
        if not self._wanted:
            return
        if self._began < 0:
            self._began = self._window_begins = now
            self._show_at = now + (_LINE_DRAW_SECONDS if self._drawn else _LOG_LINE_SECONDS)
        if now < self._gather_at:
            return
        self._gather_at = now + _LINE_DRAW_SECONDS
        self._gather(now)
        if now < self._show_at:
            return
        if not self._drawn:
            self._show_at += _LOG_LINE_SECONDS
            _log.info("%s", compose_progress_line(self.figures(now), _USUAL_COLUMNS - len("INFO:")))
        elif not terminal.is_reader_behind():
            self._draw(now, (terminal.terminal_width() or _USUAL_COLUMNS) - _FREE_COLUMNS)

    def _draw(self, now: float, width: int) -> None:
        terminal.redraw_line(compose_progress_line(self.figures(now), width))

    def end(self, _summary: RunSummary) -> None:
        """Remove the line; the report follows."""
        if self._drawn:
            terminal.end_row()

    def _gather(self, now: float) -> None:
        """Count the results that have come, and forget those that are too old."""
        count, moved, latencies = 0, 0, []
        for block in self._blocks:
            self._done += len(block)
            size, last_byte = block.size, block.last_byte
            if block.failures:
                succeeded = ~block.failed
                size, last_byte = size[succeeded], last_byte[succeeded]
                self._causes.update(
                    failure.cause for failure in block.failures.values() if failure.cause is not None
                )
            count += len(last_byte)
            moved += int(np.maximum(size, 0).sum())
            latencies.append(last_byte)
        self._blocks.clear()
        picked = np.concatenate(latencies)[:: 1 + count // _MAX_LINE_LATENCIES] if count else np.empty(0)
        self._gathered.append(_GatheredResults(now, count, moved, picked[~np.isnan(picked)]))
        window = _LINE_WINDOW_SECONDS if self._drawn else _LOG_LINE_SECONDS
        while self._gathered[0].until <= now - window:
            self._window_begins = self._gathered.popleft().until

    def figures(self, now: float) -> ProgressFigures:
        """Return what is to be shown at ``now``, a moment of the clock of :meth:`tick`."""
        seconds = max(now - self._window_begins, 1e-9)
        latencies = np.sort(np.concatenate([each.latencies for each in self._gathered]))
        p50, p99 = (percentile_of(latencies, rank) for rank in (50, 99))
        share, left = self._course(now - self._began)
        there, expected = self._workers()
        return ProgressFigures(
            share=share,
            left=left,
            rate=sum(each.succeeded for each in self._gathered) / seconds,
            moved=sum(each.moved for each in self._gathered) / seconds,
            p50=p50,
            p99=p99,
            causes=self._causes,
            there=there,
            expected=expected,
        )

    def _course(self, passed: float) -> tuple[float, float | None]:
        """Return which share of the run is done, and how many seconds are left."""
        whole = self._scenario.run_seconds
        if whole is not None:
            return passed / whole, max(whole - passed, 0.0)
        share = self._done / (self._scenario.operation_count or 1)
        return share, passed / share - passed if 0 < share <= 1 else None
