"""Counts the results of a run by reading on in its stat file while that is being written.

What comes out is what a report makes of the same file later, to the last digit: the blocks are the same, and
they are counted in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ssbench.results.block import ResultBlock
from ssbench.results.current import ResultsFollower
from ssbench.results.run_description import RunSummary
from ssbench.statistics.collector import Collector
from ssbench.statistics.run_statistics import PartContext, RunStatistics
from ssbench.statistics.steadiness import AUTOMATIC_WARM_UP
from ssbench.statistics.summary import make_collector, make_statistics


class FollowedStatistics:
    """The results of a file so far; raises OSError where it cannot be opened.

    ``by`` and ``over_time`` are those of :func:`ssbench.statistics.summary.summarize`.
    """

    def __init__(self, path: Path, by: Sequence[str] = (), *, over_time: bool = False) -> None:
        self._following = ResultsFollower(path)
        self._by = by
        self._over_time = over_time
        self._collector: Collector | None = None
        self._blocks: Iterator[ResultBlock] = iter(())

    @property
    def path(self) -> Path:
        """The file."""
        return self._following.path

    @property
    def results(self) -> int:
        """How many results were counted, or wait to be."""
        return self._following.results

    @property
    def begun(self) -> bool:
        """Whether the file says what run it is of."""
        return self._following.run is not None

    @property
    def ended(self) -> bool:
        """Whether the file was read to the end of its run."""
        return self._following.summary is not None

    @property
    def needs_all_twice(self) -> bool:
        """Whether the figures of this run need all of its results twice, to find its warm-up."""
        run = self._following.run
        return run is not None and run.options.get("warmup") == AUTOMATIC_WARM_UP

    def close(self) -> None:
        """Close the file."""
        self._following.close()

    def some(self) -> bool:
        """Count the next block; return whether there was one. Raises DamageError and OSError."""
        block = next(self._blocks, None)
        if block is None:
            self._blocks = self._following.blocks()
            block = next(self._blocks, None)
        if self._collector is None and self.begun:
            self._collector = make_collector(self._facts(None, ()), self._by, over_time=self._over_time)
        if block is None or self._collector is None:
            return False
        self._collector.add(block)
        return True

    def statistics(self, so_far: RunSummary | None = None) -> RunStatistics | None:
        """Return the numbers of what was counted; None where nothing is known of the run.

        ``so_far`` is the summary of a run that has not ended.
        """
        summary, warnings = self._following.summary, self._following.warnings
        if summary is None and so_far is not None:
            summary, warnings = so_far, [*so_far.warnings]
        if self._collector is None:
            return None
        return make_statistics(self._collector, self._facts(summary, warnings))

    def _facts(self, summary: RunSummary | None, warnings: Sequence[str]) -> PartContext:
        run = self._following.run
        if run is None:
            raise RuntimeError("nothing is known of the run yet")
        return PartContext(run, [each.name for each in run.scenario.size_classes], summary, [*warnings])
