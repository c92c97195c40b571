"""What receives the results of a run while it is running."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ssbench.results.block import ResultBlock
from ssbench.results.description import RunSummary

#: Returns what is known of the run in progress: its stat file, and what is in no stat file before its end.
ReadSoFar = Callable[[], tuple[Path, RunSummary] | None]


class Sink(Protocol):
    """Receives results: a stat file, a screen, a counter.

    All methods are called by the thread that runs the master's loop, and none may hold it up: what
    waits for a disk, a terminal or a network does so in a thread of its own.
    """

    def add(self, block: ResultBlock) -> None:
        """Take results in, in order of arrival. The block belongs to all sinks: do not change it."""

    def tick(self, now: float) -> None:
        """Called some times a second with the master's monotonic clock, results or none."""

    def end(self, summary: RunSummary) -> None:
        """No more results come: finish what was begun. This may wait."""


class Goal(Sink, Protocol):
    """A sink that knows when a run has gone on for long enough."""

    def reached(self) -> bool:
        """Whether the run may end before its time."""

    def sentence(self) -> str:
        """Say what was reached, for the log; where it was not, for the report."""
