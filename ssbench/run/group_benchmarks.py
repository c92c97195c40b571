"""The benchmark of a run: a phase for each part of it, all carried out at the same time.

Results go to the sinks of the run (:class:`RunSinks`). A sink that fails takes no results from the others,
and does not keep the run from cleaning up.
"""

from __future__ import annotations

# ruff: noqa: D102 - the methods of a sink are documented in Sink
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from ssbench.base.errors import SsbenchError, TooManyErrorsError
from ssbench.results.block import Goal, ResultBlock, Sink
from ssbench.results.run_description import RunSummary
from ssbench.run.group_run import GroupRun
from ssbench.run.load_samples import LoadSampler
from ssbench.run.loop import MasterLoop
from ssbench.run.options import RunOptions
from ssbench.run.phases import Benchmark
from ssbench.run.result_rows import ListingMinimums, ResultAddresses

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


#: Seconds beyond the time-outs that a timed run waits for its last operations.
_LAST_OPERATIONS_SECONDS = 30.0


class GroupBenchmarks:
    """The benchmarks of the parts of a run, from :meth:`begin` on; ``goal`` ends them when it is reached."""

    def __init__(
        self, parts: Sequence[GroupRun], loop: MasterLoop, options: RunOptions, goal: Goal | None
    ) -> None:
        self._parts = parts
        self._loop = loop
        self._options = options
        self._goal = goal
        self._sinks = RunSinks(())
        #: How busy workers and master are over time.
        self.course = LoadSampler(loop.fleet.roster.workers.values, loop.own)
        #: Those that results name, of hosts with several.
        self.addresses = ResultAddresses()

    def _all(self) -> list[Benchmark]:
        return [part.benchmark for part in self._parts if part.benchmark is not None]

    @property
    def epoch(self) -> float | None:
        """What turns the master's monotonic clock into seconds since 1970; None before they begin."""
        return next((each.epoch for each in self._all()), None)

    @property
    def count(self) -> int:
        """How many operations have ended."""
        return sum(each.count for each in self._all())

    @property
    def errors(self) -> int:
        """How many of them failed."""
        return sum(each.errors for each in self._all())

    @property
    def unfinished(self) -> int:
        """Of how many operations that may leave objects no end is known."""
        return sum(each.unfinished for each in self._all())

    @property
    def failure(self) -> Exception | None:
        """What a sink of their results raised, which ended them."""
        return self._sinks.failure

    @property
    def early_end(self) -> SsbenchError | None:
        """What ended them: a sink that failed, or more failures of all parts than the run allows."""
        if self.failure is not None:
            return SsbenchError(f"what was given its results failed: {self.failure!r:.200}")
        if not any(each.too_many_errors for each in self._all()):
            return None
        return TooManyErrorsError(
            f"more operations failed than --max-errors {self._options.max_errors} allows:"
            f" {self.errors:,} of {self.count:,}"
        )

    def begin(self, sinks: Sequence[Sink]) -> None:
        """Let each part have one, whose results go to these sinks."""
        self._sinks = RunSinks(sinks)
        for part in self._parts:
            part.benchmark = self._make(part, [self._sinks, self.course])

    def carry_through(self) -> float:
        """Carry all through; return how long nothing succeeded at most. Raises what the loop does."""
        standstills = self._loop.run_together(
            [
                (part.benchmark, part.load.begin(part.workers, part.benchmark), part.workers)
                for part in self._parts
                if part.benchmark is not None
            ]
        )
        return max(standstill.longest for standstill in standstills)

    def end(self) -> None:
        """Hand over what is left."""
        for each in self._all():
            each.end()

    def end_sinks(self, summary: RunSummary) -> None:
        """Tell the sinks that all results have been handed over."""
        self._sinks.end(summary)

    def _make(self, part: GroupRun, sinks: Sequence[Sink]) -> Benchmark:
        scenario, goal, requests = part.scenario, self._goal, self._options.requests
        drain_timeout = requests.connect_timeout + requests.network_timeout + _LAST_OPERATIONS_SECONDS
        urls = part.workers.parameters.storage_urls
        return Benchmark(
            part.state,
            sinks,
            self._stop,
            operation_count=scenario.operation_count,
            run_seconds=scenario.run_seconds,
            drain_timeout=drain_timeout if scenario.run_seconds is not None else None,
            storage_urls=len(urls),
            first_url=self._loop.fleet.storage_urls.index(urls[0]) if urls else 0,
            plan=scenario.plan,
            warmup=scenario.warmup,
            enough=lambda: goal is not None and goal.reached(),
            too_many=self._too_many,
            group=part.group,
            accounts=scenario.accounts,
            addresses=self.addresses,
            round_trip=part.workers.allocation.round_trip,
            segmented=[place for place, each in enumerate(scenario.size_classes) if each.segment_size],
            listings=None if self._options.noop else ListingMinimums.of(scenario, part.state.in_containers()),
        )

    def _stop(self) -> bool:
        ended = self._loop.interrupted.is_set() or self.failure is not None
        return ended or any(each.too_many_errors for each in self._all())

    def _too_many(self) -> bool:
        limit = self._options.max_errors
        return limit is not None and limit.exceeded(self.errors, sum(each.ended for each in self._all()))
