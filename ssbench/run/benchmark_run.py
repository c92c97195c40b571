"""One run, from its first worker to its last clean-up.

A :class:`BenchmarkRun` carries out the phases in order over a :class:`~ssbench.run.loop.MasterLoop`; a
:class:`RunOutcome` says how it went. With ``--part 1/2@TIME`` all masters begin their benchmarks at the same
moment, each by its own clock.

The benchmark is a phase for each part of a run, all carried out at the same time (:class:`GroupBenchmarks`).
Results go to the sinks of the run (:class:`RunSinks`). A sink that fails takes no results from the others,
and does not keep the run from cleaning up.
"""

from __future__ import annotations

# ruff: noqa: D102 - the methods of a sink are documented in Sink
import logging
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.base.errors import (
    ClusterError,
    ExitCode,
    SsbenchError,
    TooManyErrorsError,
    WorkerError,
    choose_worst_code,
)
from ssbench.base.interruption import undo_on_interrupt
from ssbench.base.profiling import Profiling
from ssbench.base.text_values import format_duration
from ssbench.document import units
from ssbench.document.columns import format_plural
from ssbench.fleet.fleet import Fleet
from ssbench.fleet.wire import RunParameters
from ssbench.results.block import Goal, ResultBlock, Sink
from ssbench.results.run_description import EventFacts, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.run import worker_messages
from ssbench.run.bench_options import BenchOptions, RunOptions, format_start_moment, recorded_options
from ssbench.run.core_split import keep_cores_apart, parse_cores
from ssbench.run.cpu_sampler import ServerCpuSampler
from ssbench.run.events import RunEvents, describe_failed_events
from ssbench.run.group_run import GroupRun, make_group_runs, make_run_parameters, renewals_of_container_sets
from ssbench.run.leftovers import Leftovers, accounts_to_clean
from ssbench.run.load_samples import HostUsage, LoadSampler, find_local_swift
from ssbench.run.loop import TICK_SECONDS, MasterLoop
from ssbench.run.phases import Benchmark
from ssbench.run.result_rows import ListingMinimums, ResultAddresses
from ssbench.run.run_records import (
    find_late_warnings,
    make_run_description,
    make_run_summary,
    make_summary_so_far,
)
from ssbench.run.run_workers import LocalWorkers, RunWorkers, wait_for_workers
from ssbench.run.setup import StoreSetup
from ssbench.run.tokens import TokenSource
from ssbench.run.worker_messages import WorkerNews
from ssbench.scenario.draws import derive_group_seed
from ssbench.scenario.existing_objects import ExistingObjects
from ssbench.scenario.model import Scenario
from ssbench.scenario.names import run_mark
from ssbench.store.contract import ClockBounds
from ssbench.store.stores import STORE

if TYPE_CHECKING:
    from ssbench.results.cluster_observation import ClusterObserver, Observation

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
        #: Whether more operations of all parts failed than the run allows.
        self._too_many_errors = False
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
            return SsbenchError(f"a sink of its results failed: {self.failure!r:.200}")
        if not self._too_many_errors:
            return None
        return TooManyErrorsError(
            f"more operations failed than --give-up-after {self._options.max_errors} errors allows:"
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
            round_trip=part.workers.allocation.find_round_trip(),
            segmented=[place for place, each in enumerate(scenario.size_classes) if each.segment_size],
            listings=None if self._options.noop else ListingMinimums.of(scenario, part.state.in_containers()),
        )

    def _stop(self) -> bool:
        # Each part asks at each turn of the loop.
        return self._loop.interrupted.is_set() or self.failure is not None or self._too_many_errors

    def _too_many(self) -> bool:
        limit = self._options.max_errors
        if limit is not None and limit.exceeded(self.errors, sum(each.ended for each in self._all())):
            self._too_many_errors = True
        return self._too_many_errors


# -- When it begins --------------------------------------------------------------------------------


#: Seconds between two messages on what is waited for.
_START_SAY_SECONDS = 10.0

#: A benchmark that begins later than this (seconds) is late; clocks that are further apart are wrong.
_LATE_START_SECONDS = 0.1
_MAX_CLOCK_DIFFERENCE = 0.5


def warn_of_store_clock(found: ClockBounds | None, loop: MasterLoop) -> None:
    """Say how far the clock of this host is from that of the store."""
    if found is None:
        loop.news.warn(
            "The clock of this host was not checked: the store sends no time, or its servers differ"
        )
        return
    least, most = found
    if least > _MAX_CLOCK_DIFFERENCE or most < -_MAX_CLOCK_DIFFERENCE:
        seconds, where = (least, "behind") if least > 0 else (-most, "ahead of")
        loop.news.warn(
            f"The clock of this host is at least {units.format_moment(seconds)} s {where}"
            f" the store's: masters will not begin together. Check NTP"
        )
    else:
        _log.info(
            "The clock of this host is from %s s to %s s behind the store's",
            units.format_seconds(least),
            units.format_seconds(most),
        )


def wait_for_moment(loop: MasterLoop, moment: float) -> None:
    """Return at a moment (seconds since 1970), or when the run is interrupted; warns where it is over."""
    late = time.time() - moment
    if late > _LATE_START_SECONDS:
        loop.news.warn(
            f"The benchmark begins {units.format_moment(late)} s after {format_start_moment(moment)}, "
            "because workers, containers and initial objects took until now: the masters do not begin "
            "together. Choose a later time"
        )
        return
    said_at = -float("inf")
    # By the monotonic clock, so that a step of the other one does not stretch it.
    until = loop.clock() + moment - time.time()
    while not loop.interrupted.is_set() and (left := until - (now := loop.clock())) > 0:
        loop.tick(now)
        if now - said_at >= _START_SAY_SECONDS:
            said_at = now
            _log.info("Ready; the benchmark begins in %.0f s, at %s", left, format_start_moment(moment))
        loop.fleet.receive(min(TICK_SECONDS, left))


# -- How a run went --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run went. The measurements of its operations are in the stat file."""

    run_id: int
    seed: int
    path: Path | None = None  # the stat file; None if the run was interrupted before its benchmark began
    count: int = 0  # operations that have a result
    errors: int = 0  # those of them that failed
    interrupted: bool = False  # by a signal or :meth:`~ssbench.run.bench.Bench.interrupt`, in any phase
    error: SsbenchError | None = None  # what ended the benchmark early
    #: Something besides the operations failed: initial uploads, writing the stat file or the clean-up.
    trouble: bool = False
    results_lost: int = 0  # of those that have a result: they could not be written to the stat file
    warnings: tuple[str, ...] = ()  # everything that the report warns of; they also explain ``trouble``
    summary: RunSummary | None = None  # None if the run was interrupted before its benchmark began
    counted: tuple[tuple[str, float], ...] = ()  # what was counted before the benchmark

    @property
    def ended_early(self) -> str | None:
        """Why the run ended before its time; None when it did not."""
        if self.error is not None:
            return str(self.error)
        return "interrupted" if self.interrupted else None

    @property
    def ending_code(self) -> ExitCode:
        """The exit code of how it ended, whether or not operations failed."""
        found = [ExitCode.FAILED] if self.trouble else []
        if self.interrupted:
            found.append(ExitCode.INTERRUPTED)
        if self.error is not None:
            found.append(self.error.exit_code)
        return choose_worst_code(found)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code where no conditions, rates and groups are judged (:mod:`ssbench.statistics`)."""
        nothing_ended = self.path is not None and not self.count
        return choose_worst_code(
            [ExitCode.FAILED if self.errors or nothing_ended else ExitCode.OK, self.ending_code]
        )


# -- Carrying out a run ----------------------------------------------------------------------------


#: A report says that nothing succeeded for some time when it was at least so long (seconds).
_LONG_STALL_SECONDS = 10.0


class BenchmarkRun:
    """A run from its first worker to its last clean-up; :meth:`carry_out` does all of it.

    The fleet, the local workers and the token are those of the bench; ``tokens`` is None in a no-op run.
    ``work_port`` is for messages, ``advice`` says what to do while workers are missing. ``observer``
    watches the cluster. ``goal`` ends the benchmark when it is reached. ``workers`` counts those of the run.
    ``existing`` are its objects where it makes none; ``scenario`` is theirs then. One that only ``prepares``
    has no benchmark, see :meth:`prepare`.
    """

    def __init__(
        self,
        scenario: Scenario,
        options: RunOptions,
        bench: BenchOptions,
        *,
        fleet: Fleet,
        work_port: int | None,
        local_workers: LocalWorkers | None,
        tokens: TokenSource | None,
        advice: str,
        observer: ClusterObserver | None = None,
        goal: Goal | None = None,
        existing: ExistingObjects | None = None,
        prepares: bool = False,
    ) -> None:
        self._scenario = scenario
        self._options = options
        self._bench = bench
        self._tokens = tokens
        self._advice = advice
        self._observer = observer
        self._goal = goal
        self._run_id = secrets.randbits(62) + 1
        self._mark = run_mark(self._run_id)
        self._seed: int = secrets.randbits(32) if options.seed is None else options.seed
        if options.part is not None:
            self._seed = derive_group_seed(self._seed, f"part {options.part}")
        #: How far the clock here is from the store's, where that is looked at.
        self._store_clock: tuple[float, float] | None = None
        self._fleet = fleet
        self._parts = make_group_runs(
            scenario,
            self._seed,
            options.batch_size,
            options.sides,
            prepared=options.prepared or prepares,
            verify=options.verify,
            replay=options.replayed,
        )
        #: Whether no benchmark follows.
        self._prepares = prepares
        first, *others = self._parameters(tokens)
        former = fleet.begin(
            first,
            [each.size_max for each in scenario.size_classes],
            others,
            parts=[part.scenario.user_count / scenario.user_count for part in self._parts],
        )
        for part, workers in zip(self._parts, fleet.groups, strict=True):
            part.workers = workers
        self._news = WorkerNews(work_port)
        renewals = tokens.renewals() if tokens is not None else []
        self._loop = MasterLoop(
            fleet,
            self._parts[0].load.closed,
            self._news,
            [renewals_of_container_sets(part.places, renewals) for part in self._parts],
            options.give_up_after,
        )
        self._leftovers = Leftovers(
            self._parts,
            self._loop,
            options,
            local_swift=bench.local_swift,
            accounts=accounts_to_clean(scenario, tokens),
            has_begun=lambda: self._ground.has_begun,
        )
        self._benchmarks = GroupBenchmarks(self._parts, self._loop, options, goal)
        asked = options.expect_workers or bench.workers or 1
        self.workers = RunWorkers(fleet, former, local_workers, asked, self._loop.clock)
        self._loop.on_tick = self.workers.look_after_local
        self._path: Path | None = None
        self._hosts: HostUsage | None = None
        self._server_cpu: tuple[ServerCpuSampler, ...] = ()
        self._summary: RunSummary | None = None
        self._error: SsbenchError | None = None
        self._events: tuple[EventFacts, ...] = ()
        self._ground = StoreSetup(
            scenario, options, tokens, self._parts, self._loop, self._run_id, self._mark, existing
        )
        self._interrupted, self._trouble, self._kept, self._results_lost = False, False, 0, 0
        self._if_interrupted = "the run ends before its benchmark. Ctrl-C again ends it at once"

    def _parameters(self, tokens: TokenSource | None) -> Iterator[RunParameters]:
        """Yield the parameters of each part."""
        for number, part in enumerate(self._parts):
            sessions = [place.session(tokens.sessions) for place in part.places] if tokens else []
            yield make_run_parameters(
                self._run_id,
                self._mark,
                part.scenario,
                self._options,
                sessions,
                number,
                part.seed,
                part.names,
            )

    # -- interruption, from a signal handler or another thread ---------------------------------

    def interrupt(self) -> str:
        """End the phase that is running, and what depends on it; returns what happens now, for the user."""
        self._interrupted = True
        self._loop.interrupted.set()
        return self._if_interrupted

    def interrupt_at_once(self) -> bool:
        """Whether :meth:`carry_out` will raise KeyboardInterrupt by itself."""
        return self._loop.end_at_once()

    def note_late_interrupt(self, outcome: RunOutcome) -> RunOutcome:
        """Return the outcome with an interruption that came after it was made, when all else was done.

        The user was told of it, so the exit code is that of any other, and no further run follows.
        """
        return replace(outcome, interrupted=self._interrupted)

    def _stop(self) -> bool:
        return self._loop.interrupted.is_set()

    def so_far(self) -> tuple[Path, RunSummary] | None:
        """Return the stat file of a benchmark in progress, and what else is known of it; None before."""
        epoch = self._benchmarks.epoch
        if self._path is None or epoch is None:
            return None
        return self._path, make_summary_so_far(
            self._fleet, epoch, self._loop.own, self._benchmarks.course, self._news.warnings
        )

    # -- the run ------------------------------------------------------------------------------

    def carry_out(
        self, path: Path, sinks: Sequence[Sink], on_measured: Callable[[RunOutcome], None] | None
    ) -> RunOutcome:
        """Do everything; see :meth:`ssbench.run.bench.Bench.run`. ``path`` is where the stat file goes."""
        whole = False
        try:
            with self._saying_what_stays():
                outcome = self._carry_out(path, sinks, on_measured)
            whole = True
        finally:
            self._ground.leave(self._kept, at_once=not whole or isinstance(self._error, ClusterError))
        return outcome

    @contextmanager
    def _saying_what_stays(self) -> Iterator[None]:
        """Say what deletes the objects that the run leaves, however it is interrupted in this context."""
        with undo_on_interrupt(self._leftovers.write_last_line):
            try:
                yield
            except KeyboardInterrupt:
                self._leftovers.say_what_stays()
                self._leftovers.say_what_uploads_left()
                raise

    def prepare(self) -> RunOutcome:
        """Upload the initial objects, and nothing else."""
        whole = False
        self._if_interrupted = "it ends after the uploads under way. Ctrl-C again ends it at once"
        try:
            with self._saying_what_stays():
                self._prepare()
            self._trouble = self._ground.trouble
            whole = True
        finally:
            self._ground.leave(0, at_once=not whole)
        return self._outcome(None)

    def _carry_out(
        self, path: Path, sinks: Sequence[Sink], on_measured: Callable[[RunOutcome], None] | None
    ) -> RunOutcome:
        self._begin_observation()
        self._prepare()
        self._trouble = self._ground.trouble
        # Before the check, after which there is a report.
        nothing_to_delete = self._options.noop or self._options.keep_objects
        self._if_interrupted = (
            "no more operations are sent; the report follows. Ctrl-C again ends the run at once, without it"
            if nothing_to_delete
            else "no more operations are sent; the report follows, then the objects that the run created are"
            " deleted. Ctrl-C again ends the run at once and leaves them there"
        )
        if self._stop():
            _log.warning("Interrupted before the benchmark began")
            if any(part.state.owns_initial for part in self._parts):
                self._clean_up()
            self._leftovers.say_what_uploads_left()
            return self._outcome(None)
        writer = RunResultsWriter(
            path,
            make_run_description(
                self._run_id,
                self._scenario,
                self._seed,
                self._fleet,
                recorded_options(
                    self._bench,
                    self._options,
                    self._fleet.parameters.trans_id_extra,
                    self._ground.tag,
                    self._ground.containers,
                    self._store_clock,
                ),
                sides=self._options.sides,
                accounts=self._tokens.names() if self._tokens and self._scenario.accounts > 1 else (),
            ),
        )
        self._path = path
        try:
            with Profiling("ssbench-master") if self._options.profile else nullcontext():
                self._measure(writer, sinks)
        except KeyboardInterrupt:
            _log.warning("Results so far saved to %s", path)
            raise
        self._if_interrupted = (
            "the run ends after its report"
            if nothing_to_delete
            else "the report is finished, then the objects that the run created are deleted. Ctrl-C again"
            " ends the run at once and leaves them there"
        )
        try:
            # First, so that no clean-up, however long it takes, withholds the report.
            if on_measured is not None:
                on_measured(self._outcome(path))
        finally:
            self._clean_up()
        if self._benchmarks.failure is not None:
            raise self._benchmarks.failure
        return self._outcome(path)

    def _outcome(self, path: Path | None) -> RunOutcome:
        return RunOutcome(
            run_id=self._run_id,
            seed=self._seed,
            path=path,
            count=self._benchmarks.count,
            errors=self._benchmarks.errors,
            interrupted=self._interrupted,
            error=self._error,
            trouble=self._trouble,
            results_lost=self._results_lost,
            warnings=tuple(self._news.warnings),
            summary=self._summary,
            counted=tuple(self._ground.counts().items()),
        )

    def _prepare(self) -> None:
        """Wait for workers, make containers, upload initial objects.

        Raises WorkerError when no worker comes or all vanish, ClusterError when Swift takes no
        container or not one of the initial objects.
        """
        workers, timeout = self.workers, self._options.worker_timeout
        wait_for_workers(self._loop, workers.expected, timeout, self._advice, workers.time_left)
        if not self._stop() and (missing := self.workers.describe_missing()) is not None:
            self._news.warn(missing)
        capacity, users = self._fleet.capacity, self._scenario.user_count
        if capacity < users and not self._stop():
            self._news.warn(
                f"The workers run {capacity} operations at once, less than the {users} users"
                " asked for; start more workers or give them a higher --concurrency"
            )
        if not self._stop():
            self._ground.prepare(only=self._prepares)
        self._wait_for_start()

    def _wait_for_start(self) -> None:
        """Check this host's clock where other masters run beside, and wait until all begin."""
        moment = self._options.start_at
        if self._stop() or (moment is None and self._options.part is None):
            return
        if self._tokens is not None:
            self._store_clock = STORE.clock(self._tokens.sessions[0])
            warn_of_store_clock(self._store_clock, self._loop)
        if moment is not None:
            wait_for_moment(self._loop, moment)

    def _begin_observation(self) -> None:
        if self._observer is not None:
            parameters = self._fleet.parameters
            self._observer.begin(
                self._fleet.storage_urls,
                insecure=parameters.insecure,
                ca_certificates=parameters.ca_certificates,
            )

    def _measure(self, writer: RunResultsWriter, more_sinks: Sequence[Sink]) -> None:
        """Run the benchmark; results go to the sinks, which are ended whatever happens."""
        users = format_plural(self._scenario.user_count, "operation")
        _log.info("Starting the benchmark (up to %s at once)", users)
        for worker in self._fleet.roster.living():
            worker.load.clear()
        self._watch_this_machine()
        sinks = [*more_sinks, writer, *self._server_cpu]
        goal = self._goal
        if goal is not None:
            sinks.append(goal)
        self._benchmarks.begin(sinks)
        events = self._begin_events()
        try:
            with self._keep_cores_apart():
                self._carry_through()
        except (WorkerError, ClusterError) as error:
            self._error = error
            self._news.warn(f"The run ended early: {error}")
        except KeyboardInterrupt:
            if self._observer is not None:
                self._observer.stop()  # the run does not wait for the servers any more
            raise
        finally:
            self._events = events.end()
            self._end_benchmarks()
            self._leftovers.say_what_operations_left(self._benchmarks.unfinished)
            if goal is not None:
                self._say_what_was_reached(goal)
            observation = None
            try:
                # Waits for the servers, so that another Ctrl-C may end it.
                observation = self._observer.end() if self._observer is not None else None
            finally:
                self._summary = self._summarize(observation)
                self._benchmarks.end_sinks(self._summary)
        if writer.failure is not None:
            self._trouble, self._results_lost = True, writer.results_lost
            self._news.warn(
                f"{writer.results_lost} results could not be written to {writer.path}:"
                f" {writer.failure.strerror}"
            )

    def _watch_this_machine(self) -> None:
        """Begin to measure what it uses, and what servers of a local Swift use."""
        epoch = time.time() - self._loop.clock()
        swift = find_local_swift(self._fleet.storage_urls)
        self._hosts = HostUsage(swift)
        sides = [find_local_swift(each.parameters.storage_urls) for each in self._fleet.groups]
        if self._options.sides and all(sides) and not set.intersection(*map(set, sides)):
            self._server_cpu = tuple(
                ServerCpuSampler(own, side, epoch=epoch) for side, own in enumerate(sides)
            )
        else:
            self._server_cpu = (ServerCpuSampler(swift, epoch=epoch),)

    def _keep_cores_apart(self) -> AbstractContextManager[None]:
        """Keep the servers of Swifts that were started for the run, and the load, on cores of their own."""
        sides = zip(self._options.sides, self._fleet.groups, strict=False)
        swifts = [(side.swift, group.parameters.storage_urls) for side, group in sides if side.swift]
        available = os.sched_getaffinity(0)
        servers = {
            pid: parse_cores(swift.cores, available)
            for swift, urls in swifts or [(self._options.swift, self._fleet.storage_urls)]
            if swift.has_own_cores
            for pid in find_local_swift(urls)
        }
        return keep_cores_apart(servers, [os.getpid(), *self.workers.local_processes()] if servers else ())

    def _carry_through(self) -> None:
        """Carry all benchmarks through; raises what :meth:`MasterLoop.run_together` does."""
        longest = self._benchmarks.carry_through()
        if longest >= _LONG_STALL_SECONDS:
            self._news.warn(f"Operations failed and none succeeded for {format_duration(longest)} of the run")
        self._ground.look_around()

    def _end_benchmarks(self) -> None:
        self._benchmarks.end()
        now = self._loop.clock()  # the same for both sides, whose samples are compared by time
        for each in self._server_cpu:
            each.stop(now)
        if self._error is None and (why := self._benchmarks.early_end) is not None:
            self._error = why
            self._news.warn(f"The run ended early: {why}")

    def _begin_events(self) -> RunEvents:
        """Let the commands of the run have their moments from now on."""
        events = RunEvents(self._options.events)
        first = next(part.benchmark for part in self._parts if part.benchmark is not None)
        events.begin(first.start, first.epoch)
        return events

    def _say_what_was_reached(self, goal: Goal) -> None:
        # Only here: it brings the statistics, which a run without a goal and a report does without.
        from ssbench.statistics.stopping_rule import describe_precision  # noqa: PLC0415

        if goal.reached():
            _log.info("%s", describe_precision(goal.facts()))
        else:
            self._news.warn(describe_precision(goal.facts()))

    def _summarize(self, observation: Observation | None) -> RunSummary:
        self._loop.note_strange_results()
        self._fleet.count_refused_connections()
        of_cluster: Sequence[str] = ()
        if self._observer is not None and observation is not None:
            of_cluster = self._observer.find_warnings(observation)
        self._news.add(find_late_warnings(of_cluster))
        for text in describe_failed_events(self._events):
            self._news.warn(text)
        unreached = sum((part.workers.unreached for part in self._parts), Counter[str]())
        for text in worker_messages.describe_unreached(unreached):
            self._news.warn(text)
        return make_run_summary(
            self._scenario,
            self._fleet,
            self._parts,
            observation,
            self._loop.own,
            self._benchmarks.course,
            warnings=self._news.warnings,
            interrupted=self._stop(),
            error=self._error,
            trouble=self._trouble,
            until=self._goal.facts() if self._goal is not None else (),
            counted=self._ground.counts(),
            addresses=self._benchmarks.addresses.names(),
            events=self._events,
            hosts=tuple(self._hosts.facts(self._fleet.roster.workers.values())) if self._hosts else (),
            server_cpu=self._server_cpu,
        )

    def _clean_up(self) -> None:
        """Delete what the run created, unless it is to be kept."""
        if self._options.noop:
            return
        if self._options.keep_objects:
            self._kept = self._leftovers.say_what_is_kept()
        else:
            gave_up = isinstance(self._error, ClusterError)
            self._trouble |= not self._leftovers.delete(gave_up=gave_up, on_begin=self._note_deletion)
            self._if_interrupted = "the run ends now"
            if self._ground.leaves_old_parts and self._benchmarks.count:
                self._leftovers.say_what_updates_left()
            self._leftovers.say_where_sides_are()

    def _note_deletion(self) -> None:
        """From now on, an interruption ends the deletion; one before did not keep it from beginning."""
        self._if_interrupted = (
            "no more objects are deleted; the others stay. Ctrl-C again ends the run at once"
        )
