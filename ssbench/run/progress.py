"""How a benchmark is going, on standard error: a character for each result, a line, or a small screen.

:class:`ResultCharacters` writes one character for each result. :class:`ProgressLine` is one line, which is
redrawn on a terminal; elsewhere a line is written every ten seconds. :class:`LiveScreen` shows
operations and workers and is redrawn twice a second; a tall terminal has a chart of latencies, and on a wide
one each line has a small picture of its last seconds beside it. None of them is shown where INFO lines are
not (``-q``).

The screen stands where the progress line would: messages go above it, and the report replaces it. Its lines
are put together here, because rich takes many times as long for such a table, and the loop would send no jobs
meanwhile.
"""

from __future__ import annotations

import logging
import math
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ssbench.base.printable import TonedText
from ssbench.document.columns import draw_bars, draw_columns
from ssbench.document.figures import BUSY_CPU_SHARE, LINE_RANKS, NARROW_RANKS, percentile_of
from ssbench.document.units import (
    format_latency,
    format_megabytes,
    format_milliseconds,
    format_number,
    format_percent,
)
from ssbench.results.block import Goal, ResultBlock, leave_out_delayed
from ssbench.results.run_description import RunSummary
from ssbench.run import terminal
from ssbench.scenario.key_rules import CRUD_OPERATIONS
from ssbench.scenario.model import Scenario
from ssbench.scenario.operations import MAX_OPERATION_CODE, OPERATIONS, OperationKind, OperationTable

#: Seconds between two writes of result characters.
_CHARACTER_SECONDS = 0.05

#: Latencies (seconds) from which the next character is used, and the characters.
_LATENCY_STEPS = (1.0, 3.0, 10.0)
_FIRST_BYTE_CHARACTERS, _LAST_BYTE_CHARACTERS = b".oO*", b"_|^@"


def describe_characters(names: Collection[str], operations: OperationTable = OPERATIONS) -> str:
    """Return the text that explains the characters of the operations of these names."""
    first, last = (
        ", ".join(
            row.name for row in operations.drawn if row.times_first_byte is by_first and row.name in names
        )
        for by_first in (True, False)
    )
    return f"""\
Benchmark run:
  X    failed
  .  <  1 s  first byte  ({first})
  o  <  3 s  first byte
  O  < 10 s  first byte
  * >= 10 s  first byte
  _  <  1 s  last byte   ({last})
  |  <  3 s  last byte
  ^  < 10 s  last byte
  @ >= 10 s  last byte"""


@cache
def _character_tables(
    operations: tuple[OperationKind, ...],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Return by code: the character of each step of latency; whether it is that of the first byte."""
    codes = np.zeros((MAX_OPERATION_CODE + 1, len(_LATENCY_STEPS) + 1), np.uint8)
    times_first_byte = np.zeros(MAX_OPERATION_CODE + 1, np.bool_)
    for operation in operations:
        times_first_byte[operation.code] = operation.times_first_byte
        codes[operation.code] = list(
            _FIRST_BYTE_CHARACTERS if operation.times_first_byte else _LAST_BYTE_CHARACTERS
        )
    return codes, times_first_byte


def make_result_characters(block: ResultBlock, operations: OperationTable = OPERATIONS) -> str:
    """Return the character of each result; a latency that was not measured counts as fast."""
    operation = block.operation
    by_code, times_first_byte = _character_tables(operations.drawn)
    if block.last_byte.max() < _LATENCY_STEPS[0]:  # then no first byte took longer either
        codes = by_code[operation, 0]
    else:
        latency = np.where(times_first_byte[operation], block.first_byte, block.last_byte)
        codes = by_code[operation, np.digitize(np.fmax(latency, 0.0), _LATENCY_STEPS)]
    if block.failures:
        codes[block.failed] = ord("X")
    text: bytes = codes.tobytes()
    return text.decode()


class ResultCharacters:
    """Writes one character a result to standard error, in chunks, after a legend with the first tick.

    A :class:`~ssbench.results.block.Sink`.
    """

    def __init__(self, scenario: Scenario) -> None:
        used = [name for each in scenario.size_classes for name in each.weights]
        self._names = {*CRUD_OPERATIONS, *used}
        self._operations = scenario.operation_table
        self._wanted = terminal.shows_progress()
        self._chunks: list[str] = []
        self._wrote = 0.0
        self._has_legend = False

    def add(self, block: ResultBlock) -> None:
        """Receive results."""
        if self._wanted:
            self._chunks.append(make_result_characters(block, self._operations))

    def tick(self, now: float) -> None:
        """Let what has gathered be seen, some tens of times a second at the most."""
        if self._wanted and not self._has_legend:
            self._has_legend = True
            terminal.write_line(describe_characters(self._names, self._operations))
        if self._chunks and now - self._wrote >= _CHARACTER_SECONDS:
            self._wrote = now
            terminal.write_in_row("".join(self._chunks))
            self._chunks.clear()

    def end(self, _summary: RunSummary) -> None:
        """Write the rest and end the line."""
        self.tick(float("inf"))
        terminal.end_row()


# -- Composing the line and the screen -------------------------------------------------------------


#: Narrower bars than this say nothing; wider ones than this say no more.
_MIN_BAR_COLUMNS, _MAX_BAR_COLUMNS = 10, 32

#: What is shortened or left out, one step after the other, until the line fits: with a bar, or without.
_SHORTENING_STEPS_WITH_BAR = ("rate", "workers")
_SHORTENING_STEPS = ("errors", "latency", "left", "errors", "moved", "latency", "missing")

#: Columns of the lines themselves; with so many more there is room for pictures, of a second in a column.
_SCREEN_COLUMNS = 80
_MIN_PICTURE_COLUMNS = 20
HISTORY_SECONDS = 60

#: Rows of the chart of latencies; lines below the operations from which it is drawn beside many workers;
#: columns of its scale.
_MIN_CHART_ROWS, _MAX_CHART_ROWS = 4, 10
_TALL_SCREEN_ROWS = 20
_CHART_LABEL_COLUMNS = 12

_RATES_HEAD = "ops/s in each of the last seconds"

#: The tones of what the user should look at.
_WARNED_TONE, _FAILED_TONE = "doubtful", "bad"


@dataclass(frozen=True, slots=True)
class ProgressFigures:
    """What a progress line shows."""

    share: float = 0.0  # share of the run that is done
    left: float | None = None  # seconds that remain; None: not known
    rate: float = 0.0  # successful operations per second
    moved: float = 0.0  # bytes per second
    p50: float | None = None  # latency in seconds; None: too few successes lately
    p99: float | None = None
    causes: Mapping[str, int] = field(default_factory=dict)  # failures of the whole run
    there: int = 0  # workers that can get jobs
    expected: int = 0  # workers that the run waits for
    missing: str = ""  # what is not yet known of what the run is to find


def compose_progress_line(figures: ProgressFigures, width: int) -> str:
    """Return the line, of ``width`` characters at most, all of them ASCII and printable."""
    done = min(max(figures.share, 0.0), 1.0)
    fields = {
        "percent": [f"{int(100 * done)} %"],
        "missing": [figures.missing, ""],
        "left": [""] if figures.left is None else [f"{_format_clock(figures.left)} left", ""],
        "rate": [f"{format_number(figures.rate)} ops/s", f"{format_number(figures.rate)}/s"],
        "moved": [f"{format_megabytes(figures.moved)} MB/s", ""],
        "latency": _latency_fields(figures),
        "errors": _error_fields(figures.causes),
        "workers": _usage_fields(figures),
    }
    _shorten(fields, _SHORTENING_STEPS_WITH_BAR, width - _MIN_BAR_COLUMNS - len("[]  "))
    line = _shorten(fields, _SHORTENING_STEPS, width)[:width]
    room = min(width - len(line) - len("[]  "), _MAX_BAR_COLUMNS)
    if room < _MIN_BAR_COLUMNS:
        return line
    return f"[{'#' * int(room * done):.<{room}}]  {line}"


def _shorten(fields: dict[str, list[str]], steps: Iterable[str], width: int) -> str:
    """Return the fields in one line, after as many of the steps as it needs to fit."""
    left = iter(steps)
    while len(line := "  ".join(text[0] for text in fields.values() if text[0])) > width:
        step = next(left, None)
        if step is None:
            break
        if len(fields[step]) > 1:
            del fields[step][0]
    return line


def _format_clock(seconds: float) -> str:
    minutes, seconds = divmod(int(min(seconds, 1e9) + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _latency_fields(figures: ProgressFigures) -> list[str]:
    if figures.p50 is None:
        return [""]
    p50, p99 = format_milliseconds(figures.p50), format_milliseconds(figures.p99)
    return [f"p50 {p50} p99 {p99} ms", f"p99 {p99} ms" if figures.p99 is not None else f"p50 {p50} ms", ""]


def _error_fields(causes: Mapping[str, int]) -> list[str]:
    if not causes:
        return [""]
    # Causes come from workers.
    texts = [
        f"{times:,} {''.join(char if ' ' <= char <= '~' else '?' for char in cause)}"
        for cause, times in sorted(causes.items(), key=lambda item: -item[1])
    ]
    total = sum(causes.values())
    count = f"{total:,} error{'' if total == 1 else 's'}"
    if len(texts) == 1:
        return [f"errors: {texts[0]}", f"errors: {texts[0]}", count]
    return [f"errors: {', '.join(texts)}", f"errors: {texts[0]}, +{total - max(causes.values()):,}", count]


def _usage_fields(figures: ProgressFigures) -> list[str]:
    if figures.there < figures.expected:
        return [f"{figures.there} of {figures.expected} workers"]
    return [f"{figures.there} worker{'' if figures.there == 1 else 's'}", ""]


class WorkerView(NamedTuple):
    """A worker as it is now: can it get jobs, its share of a core, its lag (seconds), its jobs."""

    worker_id: int
    host: str
    ready: bool
    cpu_share: float | None
    lag_p99: float | None
    jobs: int


@dataclass(frozen=True, slots=True)
class OperationView:
    """What an operation did lately. Latencies are in seconds, None where too few were seen."""

    name: str
    rate: float  # successes per second
    moved: float  # bytes per second
    p50: float | None
    p95: float | None
    p99: float | None
    longest: float | None
    failed: int  # failures of the whole run
    history: Sequence[float] = ()  # successes in each of the last seconds


@dataclass(frozen=True, slots=True)
class LiveView:
    """All that the screen of ``--progress live`` shows."""

    title: str
    figures: ProgressFigures
    operations: Sequence[OperationView]
    workers: Sequence[WorkerView]
    rates: dict[int, float]  # operations per second by worker id
    #: Successes in each of the last seconds, by worker id.
    of_workers: Mapping[int, Sequence[float]] = field(default_factory=dict)
    #: Failures in each of the last seconds, by cause.
    of_causes: Mapping[str, Sequence[float]] = field(default_factory=dict)
    #: The 95th percentile of the latencies of each of the last seconds, NaN for one without results.
    latencies: Sequence[float] = ()


class _ScreenLine(NamedTuple):
    """A line: its text, its tone where it has one, and what is drawn beside it or written above that."""

    text: str
    tone: str = ""
    history: Sequence[float] = ()
    head: str = ""
    drawn: bool = False  # the text is a picture, in characters of the encoding


def compose_live_screen(view: LiveView, width: int, height: int, encoding: str = "ascii") -> list[str]:
    """Return the lines, at most ``height`` of at most ``width`` characters, all of them printable.

    They are ASCII but for pictures, which an ``encoding`` may have better characters for.
    """
    lines = [_ScreenLine(view.title), _ScreenLine(compose_progress_line(view.figures, width))]
    lines += [_ScreenLine(""), *_operation_lines(view.operations)]
    if chart := _choose_chart_rows(view, height - len(lines)):
        lines += [_ScreenLine(""), *_latency_lines(view.latencies, width, chart, encoding)]
    room = height - len(lines) - 2
    if room > 1:
        lines += [_ScreenLine(""), *_worker_lines(view, room - 1)]
    causes = sorted(view.figures.causes.items(), key=lambda item: -item[1])
    lines += [
        _ScreenLine(f"{times:>9,} x {cause}", _FAILED_TONE, view.of_causes.get(cause, ()), "errors a second")
        for cause, times in causes[: max(height - len(lines), 0)]
    ]
    return [_fit_line(line, width, encoding) for line in lines[:height]]


def _choose_chart_rows(view: LiveView, room: int) -> int:
    """Return the rows of the chart of latencies, 0 for none: what others leave, on a tall screen more."""
    others = len(view.workers) + max(len(view.figures.causes), 2) + len(("", "head", "", "head of chart"))
    rows = max(room - others, _MIN_CHART_ROWS if room >= _TALL_SCREEN_ROWS else 0)
    return min(rows, _MAX_CHART_ROWS) if view.latencies and rows >= _MIN_CHART_ROWS else 0


def _latency_lines(latencies: Sequence[float], width: int, rows: int, encoding: str) -> Iterator[_ScreenLine]:
    """Yield the chart of latencies, a second in a column."""
    shown = latencies[-max(min(width - _CHART_LABEL_COLUMNS, HISTORY_SECONDS), 1) :]
    most = max((each for each in shown if not math.isnan(each)), default=0.0)
    yield _ScreenLine("    ms p95, in each of the last seconds")
    for number, columns in enumerate(draw_columns(shown, encoding, rows, most)):
        label = format_milliseconds(most) if number == 0 else "0" if number == rows - 1 else ""
        yield _ScreenLine(f"{label:>10} |{columns}", drawn=True)


def _fit_line(line: _ScreenLine, width: int, encoding: str) -> str:
    """Return a line that is not wider than the terminal, with its picture where there is room."""
    if line.drawn:
        return line.text[:width]
    text = "".join(char if " " <= char <= "~" else "?" for char in line.text)
    room = min(width - _SCREEN_COLUMNS - len("  "), HISTORY_SECONDS)
    if room >= _MIN_PICTURE_COLUMNS and len(text) <= _SCREEN_COLUMNS and (line.history or line.head):
        beside = draw_bars(line.history[-room:], encoding) if line.history else line.head[:room]
        text = f"{text[:_SCREEN_COLUMNS]:<{_SCREEN_COLUMNS}}  {beside}"
    return TonedText.of(text[:width], line.tone) if line.tone else text[:width]


def _operation_lines(operations: Sequence[OperationView]) -> Iterator[_ScreenLine]:
    head = f"{'':<10}{'ops/s':>10}{'MB/s':>10} |{'ms: p50':>9}{'p95':>8}{'p99':>8}{'max':>8}{'failed':>9}"
    yield _ScreenLine(head, head=_RATES_HEAD)
    for each in operations:
        times = [format_milliseconds(seconds) for seconds in (each.p50, each.p95, each.p99, each.longest)]
        text = (
            f"{each.name.upper():<10.10}{format_number(each.rate):>10}{format_megabytes(each.moved):>10} |"
            f"{times[0]:>9}{times[1]:>8}{times[2]:>8}{times[3]:>8}{each.failed:>9,}"
        )
        yield _ScreenLine(text, _FAILED_TONE if each.failed else "", each.history)


def _worker_lines(view: LiveView, room: int) -> Iterator[_ScreenLine]:
    """Yield the workers by their ids; where there is little room, those that get no jobs and the busiest."""
    workers = sorted(view.workers, key=lambda worker: (worker.ready, -(worker.cpu_share or 0.0)))
    if len(workers) > room - 1:
        workers = workers[: max(room - 2, 0)]
    workers.sort()
    head = f"{'worker':>10}{'ops/s':>10}{'jobs':>10} |{'CPU %':>9}{'lag p99':>10}  host"
    yield _ScreenLine(head, head=_RATES_HEAD)
    for worker in workers:
        cpu = format_percent(worker.cpu_share)
        lag = format_latency(worker.lag_p99)
        remark = _worker_remark(worker)
        text = (
            f"{worker.worker_id:>10}{format_number(view.rates.get(worker.worker_id, 0.0)):>10}"
            f"{worker.jobs:>10,} |{cpu:>9}{lag:>10}  {worker.host}{remark}"
        )
        yield _ScreenLine(text, _WARNED_TONE if remark else "", view.of_workers.get(worker.worker_id, ()))
    if len(workers) < len(view.workers):
        yield _ScreenLine(f"{'':>10} and {len(view.workers) - len(workers):,} less busy workers")


def _worker_remark(worker: WorkerView) -> str:
    if not worker.ready:
        return "  ! gets no jobs"
    if (worker.cpu_share or 0.0) > BUSY_CPU_SHARE:
        return "  ! its core is the limit: start more workers"
    return ""


# -- The progress line -----------------------------------------------------------------------------


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
    """The results of a quarter of a second."""

    until: float
    succeeded: int
    moved: int
    latencies: npt.NDArray[np.float64]  # a sample, in seconds


class ProgressLine:
    """Shows how far a run is and how it goes. A :class:`~ssbench.results.block.Sink`.

    ``workers`` returns how many workers can get jobs, and how many are expected. ``goal`` is what may end the
    run before its time.
    """

    def __init__(
        self, scenario: Scenario, workers: Callable[[], tuple[int, int]], goal: Goal | None = None
    ) -> None:
        self._goal = goal
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
            size, last_byte = block.size, leave_out_delayed(block, block.last_byte)
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
        p50, p99 = (percentile_of(latencies, rank) for rank in LINE_RANKS)
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
            missing=self._goal.missing() if self._goal is not None else "",
        )

    def _course(self, passed: float) -> tuple[float, float | None]:
        """Return which share of the run is done, and how many seconds are left."""
        whole = self._scenario.run_seconds
        if whole is not None:
            return passed / whole, max(whole - passed, 0.0)
        share = self._done / (self._scenario.operation_count or 1)
        return share, passed / share - passed if 0 < share <= 1 else None


# -- The screen of --progress live -----------------------------------------------------------------


#: Seconds that rates and latencies are of.
_LIVE_WINDOW_SECONDS = 5.0

#: Latencies of an operation that are kept of a quarter of a second; of more, they are picked.
_MAX_LIVE_LATENCIES = 200

#: Lines of a terminal that does not tell its height, and the most that are drawn.
_USUAL_ROWS, _MAX_ROWS = 24, 50


class _OperationSample(NamedTuple):
    """What an operation did in a quarter of a second; latencies are a sample, in seconds."""

    done: int
    moved: int
    latencies: npt.NDArray[np.float64]


class _SecondTotals(NamedTuple):
    """A second: successes by operation and by worker, failures by cause, latencies in seconds."""

    operations: Counter[int]
    workers: Counter[int]
    causes: Counter[str]
    latencies: list[npt.NDArray[np.float64]]


class _QuarterSecond(NamedTuple):
    """A quarter of a second: operations by code, successes by worker."""

    until: float
    operations: dict[int, _OperationSample]
    workers: Counter[int]


class LiveScreen(ProgressLine):
    """Shows a run on a small screen; without a terminal, a line each ten seconds.

    ``worker_views`` returns what is known of each worker.
    """

    def __init__(
        self,
        scenario: Scenario,
        workers: Callable[[], tuple[int, int]],
        worker_views: Callable[[], Sequence[WorkerView]],
        goal: Goal | None = None,
    ) -> None:
        super().__init__(scenario, workers, goal)
        self._title = scenario.name
        self._operations = scenario.operation_table
        self._views = worker_views
        self._parts: deque[_QuarterSecond] = deque()
        self._parts_begin: float | None = None
        self._failed: Counter[int] = Counter()
        self._seconds: deque[_SecondTotals] = deque(maxlen=HISTORY_SECONDS)
        self._second_ends = 0.0
        self._second = _SecondTotals(Counter(), Counter(), Counter(), [])
        self._seen: set[int] = set()
        self._p95s: deque[float] = deque(maxlen=HISTORY_SECONDS)
        self._now = 0.0

    def _gather(self, now: float) -> None:
        if self._drawn:
            self._count(now)
        super()._gather(now)

    def _count(self, now: float) -> None:
        if self._parts_begin is None:
            self._parts_begin = now
            self._second_ends = now + 1.0
        operations: dict[int, _OperationSample] = {}
        workers: Counter[int] = Counter()
        for block in self._blocks:
            self._count_block(block, operations, workers)
        self._seen.update(operations)
        self._second.operations.update({code: each.done for code, each in operations.items()})
        self._second.workers.update(workers)
        if now >= self._second_ends:
            self._second_ends += max(int(now - self._second_ends), 0) + 1.0
            latencies = np.concatenate([np.empty(0), *self._second.latencies])
            self._p95s.append(float(np.percentile(latencies, 95)) if len(latencies) else math.nan)
            self._seconds.append(self._second)
            self._second = _SecondTotals(Counter(), Counter(), Counter(), [])
        self._parts.append(_QuarterSecond(now, operations, workers))
        while self._parts[0].until <= now - _LIVE_WINDOW_SECONDS:
            self._parts_begin = self._parts.popleft().until

    def _count_block(
        self, block: ResultBlock, operations: dict[int, _OperationSample], workers: Counter[int]
    ) -> None:
        failed, codes = block.failed, block.operation
        last_byte = leave_out_delayed(block, block.last_byte)
        self._failed.update(codes[failed].tolist())
        self._second.causes.update(each.cause for each in block.failures.values() if each.cause is not None)
        for code in np.flatnonzero(np.bincount(codes)).tolist():
            rows = np.flatnonzero((codes == code) & ~failed)
            latencies = last_byte[rows]
            latencies = latencies[:: 1 + len(latencies) // _MAX_LIVE_LATENCIES]
            latencies = latencies[~np.isnan(latencies)]
            self._second.latencies.append(latencies)
            before = operations.get(code, _OperationSample(0, 0, np.empty(0)))
            operations[code] = _OperationSample(
                before.done + len(rows),
                before.moved + int(np.maximum(block.size[rows], 0).sum()),
                np.concatenate([before.latencies, latencies]),
            )
        # By hand, as np.unique takes its time when it is first called.
        ids = np.sort(block.worker[~failed])
        starts = np.flatnonzero(np.diff(ids, prepend=ids[:1] - 1))
        counts = np.diff(np.append(starts, len(ids)))
        workers.update(dict(zip(ids[starts].tolist(), counts.tolist(), strict=True)))

    def view(self, now: float) -> LiveView:
        """Return what is to be shown at ``now``, a moment of the clock of :meth:`tick`."""
        seconds = max(now - (self._parts_begin or now), 1e-9)
        workers: Counter[int] = Counter()
        for part in self._parts:
            workers.update(part.workers)
        return LiveView(
            title=self._title,
            figures=self.figures(now),
            operations=[self._operation(code, seconds) for code in sorted(self._seen)],
            workers=self._views(),
            rates={worker: count / seconds for worker, count in workers.items()},
            of_workers={worker: [each.workers[worker] for each in self._seconds] for worker in workers},
            of_causes={
                cause: [each.causes[cause] for each in self._seconds] for cause in self._causes_shown()
            },
            latencies=[*self._p95s],
        )

    def _causes_shown(self) -> list[str]:
        return [cause for cause, _ in self._causes.most_common(_MAX_ROWS)]

    def _operation(self, code: int, seconds: float) -> OperationView:
        parts = [part.operations[code] for part in self._parts if code in part.operations]
        latencies = np.sort(np.concatenate([np.empty(0), *(part.latencies for part in parts)]))
        operation = self._operations.get(code)
        p50, p95, p99, longest = (percentile_of(latencies, rank) for rank in NARROW_RANKS)
        return OperationView(
            operation.name if operation else str(code),
            sum(part.done for part in parts) / seconds,
            sum(part.moved for part in parts) / seconds,
            p50,
            p95,
            p99,
            longest,
            self._failed[code],
            [each.operations[code] for each in self._seconds],
        )

    def end(self, summary: RunSummary) -> None:
        """Leave the last screen above the report."""
        if self._drawn and self._began >= 0:
            self._draw(self._now, (terminal.terminal_width() or _USUAL_COLUMNS) - _FREE_COLUMNS)
            terminal.keep_drawn()
        super().end(summary)

    def _draw(self, now: float, width: int) -> None:
        self._now = now
        # One line stays free, or the terminal would scroll.
        height = min((terminal.terminal_height() or _USUAL_ROWS) - 1, _MAX_ROWS)
        terminal.redraw_lines(
            compose_live_screen(self.view(now), width, height, terminal.terminal_encoding())
        )
