"""Progress bars on a terminal; imported only where there is one, because rich takes a tenth of a second."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from ssbench.screen import terminal

#: Seconds between two drawings.
_DRAW_SECONDS = 0.1


class SparingProgress(Progress):
    """Draws itself only when told of progress, and not while its reader does not keep up."""

    def __init__(self, *columns: str | ProgressColumn) -> None:
        super().__init__(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
        self._drawn = 0.0

    def show(self, task: TaskID, *, done: float) -> None:
        """So much of the task is done."""
        self.update(task, completed=done)
        now = time.monotonic()
        if now - self._drawn >= _DRAW_SECONDS and not terminal.behind():
            self._drawn = now
            self.refresh()


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.finished_speed or task.speed or 0:,.0f}/s")


def counting() -> SparingProgress:
    """Make a bar that shows how many are done, how fast, and how long the rest will take."""
    return SparingProgress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
    )
