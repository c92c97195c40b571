"""Progress bars drawn with rich; import it only where a bar is drawn, because rich takes 0.1 s to import."""

from __future__ import annotations

import time

from rich.console import Console
from rich.markup import escape
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

from ssbench.base.printable import make_printable
from ssbench.document.units import format_number
from ssbench.run import terminal

#: Seconds between two drawings.
_DRAW_SECONDS = 0.1


class _RateColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{format_number(task.finished_speed or task.speed or 0.0)}/s")


class RichBar:
    """One bar, visible from now on. It is drawn only on progress, and only while the terminal keeps up.

    ``counts``: show the number done, the rate and the time left; otherwise a percentage.
    """

    def __init__(self, what: str, total: int | None, *, counts: bool) -> None:
        columns: tuple[str | ProgressColumn, ...] = (
            (
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                _RateColumn(),
                TimeRemainingColumn(),
            )
            if counts
            else Progress.get_default_columns()
        )
        # Without soft_wrap, rich would break messages above the bar at blanks, and commands in them with it.
        console = Console(stderr=True, soft_wrap=True)
        self._progress = Progress(*columns, console=console, transient=True, auto_refresh=False)
        self._task = self._progress.add_task(escape(make_printable(what)), total=total)
        self._drawn_at = 0.0
        self._progress.start()

    def show(self, done: int, what: str | None = None) -> None:
        """Show how many are done, and ``what`` it is from now on."""
        self._progress.update(self._task, completed=done)
        if what is not None:
            self._progress.update(self._task, description=escape(make_printable(what)))
        now = time.monotonic()
        if now - self._drawn_at >= _DRAW_SECONDS and not terminal.is_reader_behind():
            self._drawn_at = now
            self._progress.refresh()

    def expect(self, total: int) -> None:
        """Change the total."""
        self._progress.update(self._task, total=total)

    def stop(self) -> None:
        """Remove the bar."""
        self._progress.stop()
