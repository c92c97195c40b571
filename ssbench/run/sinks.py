"""The sinks of a run: one that fails takes no results from the others, and no clean-up from the run."""

# ruff: noqa: D102 - the methods of a sink are documented in Sink

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from ssbench.results.block import ResultBlock
from ssbench.results.description import RunSummary
from ssbench.results.sink import Sink

_log = logging.getLogger(__name__)


class RunSinks:
    """Several sinks as one. What one raises is kept as ``failure``, and it is asked for nothing more."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self.failure: Exception | None = None
        self._sinks = [*sinks]

    def add(self, block: ResultBlock) -> None:
        self._each(lambda sink: sink.add(block))

    def tick(self, now: float) -> None:
        self._each(lambda sink: sink.tick(now))

    def end(self, summary: RunSummary) -> None:
        # Ctrl-C while one of them waits for another process leaves none of the others open.
        with ExitStack() as ending:
            for sink in reversed(self._sinks):
                ending.callback(self._ask, sink, lambda sink: sink.end(summary))

    def _each(self, call: Callable[[Sink], None]) -> None:
        for sink in self._sinks[:]:
            self._ask(sink, call)

    def _ask(self, sink: Sink, call: Callable[[Sink], None]) -> None:
        try:
            call(sink)
        except Exception as error:  # noqa: BLE001 - the run raises it again, when all else is done
            _log.debug("a sink of the results", exc_info=error)
            self.failure = self.failure or error
            self._sinks.remove(sink)
