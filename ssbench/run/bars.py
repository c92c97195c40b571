"""Progress of what can be counted: a bar on a terminal, a line every few seconds elsewhere.

Both go to standard error, and neither is shown where INFO lines are not (``-q``). rich, which draws bars, is
imported only where one is drawn, because that takes 0.1 s.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import logging
import sys
import time
from dataclasses import dataclass
from types import TracebackType

from ssbench.base.printable import make_printable
from ssbench.base.text_values import format_bytes, format_duration
from ssbench.document.units import format_number
from ssbench.run import terminal

_log = logging.getLogger(__name__)

#: Seconds between two lines where there is no terminal to draw a bar on.
_LINE_SECONDS = 5.0

#: The same for lines that are drawn over each other, and between two drawings of a bar.
_DRAW_LINE_SECONDS = 0.25
_DRAW_BAR_SECONDS = 0.1

#: Seconds that reading a file may take before a bar is shown.
_READING_SECONDS = 1.0


class RichBar:
    """One bar, visible from now on. It is drawn only on progress, and only while the terminal keeps up.

    ``counts``: show the number done, the rate and the time left; otherwise a percentage.
    """

    def __init__(self, what: str, total: int | None, *, counts: bool) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            ProgressColumn,
            Task,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.text import Text

        class RateColumn(ProgressColumn):
            def render(self, task: Task) -> Text:
                return Text(f"{format_number(task.finished_speed or task.speed or 0.0)}/s")

        columns: tuple[str | ProgressColumn, ...] = (
            (
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                RateColumn(),
                TimeRemainingColumn(),
            )
            if counts
            else Progress.get_default_columns()
        )
        # Without soft_wrap, rich would break messages above the bar at blanks, and commands in them with it.
        console = Console(stderr=True, soft_wrap=True)
        self._progress = Progress(*columns, console=console, transient=True, auto_refresh=False)
        self._task = self._progress.add_task(_make_plain(what), total=total)
        self._drawn_at = 0.0
        self._progress.start()

    def show(self, done: int, what: str | None = None) -> None:
        """Show how many are done, and ``what`` it is from now on."""
        self._progress.update(self._task, completed=done)
        if what is not None:
            self._progress.update(self._task, description=_make_plain(what))
        now = time.monotonic()
        if now - self._drawn_at >= _DRAW_BAR_SECONDS and not terminal.is_reader_behind():
            self._drawn_at = now
            self._progress.refresh()

    def expect(self, total: int) -> None:
        """Change the total."""
        self._progress.update(self._task, total=total)

    def stop(self) -> None:
        """Remove the bar."""
        self._progress.stop()


def _make_plain(what: str) -> str:
    """Return a text that rich takes as it is."""
    from rich.markup import escape

    return escape(make_printable(what))


def _draw(what: str, total: int | None, *, counts: bool) -> RichBar | None:
    """Draw a bar; return None where there is no terminal, or the user wants no progress."""
    if terminal.messages_disappear() or not (terminal.shows_progress() and sys.stderr.isatty()):
        return None  # rich's bar would move up by a line what is to remain
    return RichBar(what, total, counts=counts)


@dataclass(slots=True)
class TransferAmount:
    """How much data is to be moved, and how much has been."""

    bytes_: float  # bytes to move in all
    request: float  # bytes that each object counts for besides its size
    moved: float = 0.0

    def left(self, done: int, total: int) -> float:
        """Return which share of the work is left when so many objects are done."""
        whole = self.bytes_ + total * self.request
        return max(0.0, 1 - (self.moved + done * self.request) / whole) if whole else 0.0

    def text(self, seconds: float) -> str:
        """Return what was moved in so many seconds."""
        return f"{format_bytes(self.moved)}, {format_bytes(self.moved / seconds if seconds else 0.0)}/s"


class ProgressBar:
    """Progress of something countable: a bar on a terminal, else a line every few seconds.

    A context manager; ``total`` may be None where it is not known. With an amount, :meth:`move` and
    :meth:`spare` count bytes.
    """

    def __init__(self, what: str, total: int | None, moves: TransferAmount | None = None) -> None:
        self._what = what
        self._total = total
        self._moves = moves
        self._done = 0
        self._began = self._logged_at = time.monotonic()
        self._drawn: RichBar | None = None

    def advance(self, count: int = 1) -> None:
        """Count ``count`` more as done."""
        self._done += count
        now = time.monotonic()
        if self._drawn is not None:
            more = "" if self._moves is None else f" ({self._moves.text(now - self._began)})"
            self._drawn.show(self._done, self._what + more)
            return
        if now - self._logged_at >= (_DRAW_LINE_SECONDS if terminal.messages_disappear() else _LINE_SECONDS):
            self._logged_at = now
            rate = self._done / (now - self._began)
            text = f"{self._what}: {self._done}"
            if self._total is not None:
                text += f" of {self._total}"
            text += f", {format_number(rate)}/s"
            if self._moves is not None:
                text += f", {self._moves.text(now - self._began)}"
            if self._total is not None and rate > 0:
                text += f", {format_duration(round(self._left(now)))} left"
            _log.info("%s", text)

    def _left(self, now: float) -> float:
        """Return a guess at the seconds that are left."""
        total, seconds = self._total or self._done, now - self._began
        left = 1 - self._done / total if self._moves is None else self._moves.left(self._done, total)
        return seconds * left / (1 - left) if left < 1 else 0.0

    def move(self, count: float) -> None:
        """Count bytes as moved."""
        if self._moves is not None:
            self._moves.moved += count

    def spare(self, count: float) -> None:
        """Count bytes as not to be moved."""
        if self._moves is not None:
            self._moves.bytes_ -= count

    def expect(self, total: int) -> None:
        """Raise the total to ``total``, where it is known and lower."""
        if self._total is not None and total > self._total:
            self._total = total
            if self._drawn is not None:
                self._drawn.expect(total)

    def __enter__(self) -> ProgressBar:
        self._drawn = _draw(self._what, self._total, counts=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn is not None:
            self._drawn.stop()


class ReadingBar:
    """Progress of reading a file: a bar on a terminal, once it takes longer than a second.

    Where standard output is a pipe there is none: a pager may have the terminal.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._due = time.monotonic() + _READING_SECONDS
        self._drawn: RichBar | None = None

    def __call__(self, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` bytes have been read."""
        if self._drawn is None and time.monotonic() >= self._due and not terminal.writes_to_pipe():
            self._drawn = _draw(f"Reading {self._name}", total, counts=False)
        if self._drawn is not None:
            self._drawn.show(done)

    def stop(self) -> None:
        """Remove the bar."""
        if self._drawn is not None:
            self._drawn.stop()
