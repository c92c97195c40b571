"""A run from its first worker to its last clean-up, over an :class:`~ssbench.fleet.exchange.Exchange`."""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ssbench import __version__
from ssbench.errors import ClusterError, SsbenchError, WorkerError
from ssbench.fleet.exchange import Exchange
from ssbench.fleet.worker_state import WorkerState
from ssbench.names import container_name
from ssbench.results import RunDescription, RunSummary, Sink, WorkerFacts
from ssbench.run.local_workers import LocalWorkers
from ssbench.run.phases import TOO_MANY_FAILURES, Benchmark, CleanUp, InitialUploads
from ssbench.run_results.writer import RunResultsWriter
from ssbench.scenario.model import Scenario
from ssbench.screen import terminal
from ssbench.screen.bars import Bar
from ssbench.screen.progress import ResultCharacters
from ssbench.workload.draws import Workload
from ssbench.workload.population import RunState

_log = logging.getLogger(__name__)

#: A generator that used more of its core than this, or whose event loop was late more often than
#: this by over a millisecond, was itself the limit of what was measured.
_BUSY_SHARE = 0.9
_LATE_SHARE = 0.01

#: Seconds that an interrupted run gives to deleting what it created; one that was given up gives as
#: much to deleting anything at all.
_CLEAN_UP_AFTER_INTERRUPT = 10.0

#: How often a deletion of the clean-up is tried again.
_CLEAN_UP_RETRIES = 2

#: A report says that nothing succeeded for some time when it was at least so long (seconds).
_LONG_STANDSTILL = 10.0

#: Seconds beyond the time-outs that a timed run waits for its last operations.
_LAST_OPERATIONS = 30.0


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a run does, besides its scenario."""

    scenario: Scenario
    seed: int
    noop: bool = False
    keep_objects: bool = False
    expected_workers: int = 1
    worker_timeout: float = 60.0
    worker_advice: str = ""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run went. ``error`` is what ended it before its time."""

    count: int
    errors: int
    interrupted: bool
    trouble: bool
    error: SsbenchError | None


#: Makes sure that containers exist: (names, policy, concurrency, called after each, called some times
#: a second and free to raise).
EnsureContainers = Callable[[Sequence[str], str | None, int, Callable[[], None], Callable[[], None]], None]


class Master:
    """Carries out one run.

    ``ensure_containers`` does what its name says against Swift; it is not called in a no-op run.
    """

    def __init__(
        self,
        settings: RunSettings,
        exchange: Exchange,
        ensure_containers: EnsureContainers,
        local_workers: LocalWorkers | None,
    ) -> None:
        self._settings = settings
        self._exchange = exchange
        self._ensure_containers = ensure_containers
        self._local = local_workers
        self._state: RunState | None = None
        self._uploads: InitialUploads | None = None
        self._trouble = False
        self._given_up = False
        self._died = 0
        exchange.on_tick = self._look_after_local_workers

    def _stop(self) -> bool:
        return self._exchange.interrupted.is_set()

    def _warn(self, text: str) -> None:
        self._exchange.warnings.append(text)
        _log.warning("%s", text)

    def prepare(self) -> Workload:
        """Wait for workers, make containers, upload initial objects.

        Raises WorkerError when no worker comes or all vanish, ClusterError when Swift takes no
        container or not one of the initial objects.
        """
        settings, scenario = self._settings, self._settings.scenario
        self._exchange.wait_for_workers(
            lambda: settings.expected_workers - self._died, settings.worker_timeout, settings.worker_advice
        )
        capacity = self._exchange.dispatcher.capacity
        if capacity < scenario.user_count and not self._stop():
            self._warn(
                f"The workers run {capacity} operations at once, less than the {scenario.user_count} users"
                " asked for; start more workers or give them a higher --concurrency"
            )
        workload = Workload(scenario, settings.seed)
        self._state = RunState(scenario, workload)
        if self._stop():
            return workload
        if not settings.noop:
            self._make_containers()
        self._upload(workload, self._state)
        return workload

    def _make_containers(self) -> None:
        scenario = self._settings.scenario
        _log.info(
            "Making sure that %d containers (%s_*) exist, %d at once",
            scenario.container_count,
            scenario.container_base,
            scenario.container_concurrency,
        )
        names = [
            container_name(scenario.container_base, number, scenario.policy)
            for number in range(scenario.container_count)
        ]
        with Bar("Containers", len(names)) as bar:
            self._ensure_containers(
                names,
                scenario.policy,
                scenario.container_concurrency,
                bar.advance,
                self._raise_if_interrupted,
            )

    def _raise_if_interrupted(self) -> None:
        self._exchange.look_after_descriptors(time.monotonic())
        if self._stop():
            raise KeyboardInterrupt

    def _upload(self, workload: Workload, state: RunState) -> None:
        total = sum(each.initial_files for each in self._settings.scenario.size_classes)
        _log.info("Uploading initial objects where they are not there yet (%d)", total)
        with Bar("Initial objects", total) as bar:
            uploads = self._uploads = InitialUploads(workload.initial_objects(), state, bar, self._stop)
            self._exchange.run(uploads)
        if not self._settings.noop:
            _log.info(
                "Initial objects: %d uploaded, %d replaced (their size was outside the range of their class),"
                " %d reused",
                uploads.uploaded,
                uploads.replaced,
                uploads.reused,
            )
        if uploads.failed and not self._stop():
            if not uploads.succeeded:
                raise ClusterError(
                    f"not one of the {total} initial objects could be uploaded: {uploads.failure_text()}"
                )
            self._trouble = True
            self._warn(
                f"{uploads.failed} of {total} initial objects could not be uploaded: {uploads.failure_text()}"
            )

    def measure(self, writer: RunResultsWriter) -> RunOutcome:
        """Run the benchmark; results go to the writer, which is ended whatever happens."""
        scenario, exchange, state = self._settings.scenario, self._exchange, self._state
        if state is None:
            raise RuntimeError("prepare() comes first")
        _log.info("Starting the benchmark (up to %d operations at once)", scenario.user_count)
        parameters = exchange.parameters
        patience = parameters.connect_timeout + parameters.network_timeout + _LAST_OPERATIONS
        for worker in exchange.dispatcher.living():
            worker.load.clear()
        sinks: list[Sink] = [ResultCharacters(), writer]
        benchmark = Benchmark(
            state,
            sinks,
            self._stop,
            operation_count=scenario.operation_count,
            run_seconds=scenario.run_seconds,
            patience=patience if scenario.run_seconds is not None else None,
            storage_urls=len(parameters.storage_urls),
        )
        error: SsbenchError | None = None
        try:
            standstill = exchange.run(benchmark)
            if standstill.longest >= _LONG_STANDSTILL:
                self._warn(f"Operations failed and none succeeded for {standstill.longest:.0f} s of the run")
        except (WorkerError, ClusterError) as caught:
            error = caught
            self._given_up = isinstance(caught, ClusterError)
            self._warn(f"The run ended early: {caught}")
        finally:
            benchmark.end()
            self._note_limits()
            summary = self._summary(benchmark, state)
            for sink in sinks:
                sink.end(summary)
        if writer.failure is not None:
            self._trouble = True
            self._warn(
                f"{writer.results_lost} results could not be written to {writer.path}:"
                f" {writer.failure.strerror}"
            )
        return RunOutcome(benchmark.count, benchmark.errors, self._stop(), self._trouble, error)

    def _summary(self, benchmark: Benchmark, state: RunState) -> RunSummary:
        dispatcher = self._exchange.dispatcher
        return RunSummary(
            ended=time.time(),
            not_sendable=tuple((*key, count) for key, count in sorted(state.not_sendable.items())),
            lost_jobs=benchmark.lost_jobs,
            warnings=tuple(self._exchange.warnings),
            interrupted=self._stop(),
            workers=tuple(
                WorkerFacts(
                    worker.worker_id,
                    worker.host,
                    worker.version,
                    worker.load.cpu_share,
                    worker.load.lag_percentile(99),
                    worker.offset.seconds + benchmark.epoch,
                )
                for worker in dispatcher.workers.values()
                if worker.used
            ),
            counters={
                "late_results": dispatcher.late_results,
                "foreign_results": dispatcher.foreign_results,
                "invalid_results": dispatcher.invalid_results,
                "handed_back": dispatcher.handed_back,
                "drawn": state.drawn,
                "waited": state.waits,
                "not_begun": state.waiting,
                "expired": state.expired,
                **(self._uploads.counts() if self._uploads and not self._settings.noop else {}),
            },
        )

    def _note_limits(self) -> None:
        self._exchange.note_strange_results()
        for worker in self._exchange.dispatcher.workers.values():
            for text in _limits(worker):
                # For the report; on the screen it would only repeat what stands there.
                self._exchange.warnings.append(text)
        loss = terminal.loss()
        if loss is not None:
            self._exchange.warnings.append(loss)

    def say_what_stays(self) -> None:
        """Tell what a run leaves that ends before its clean-up."""
        if self._settings.noop or self._state is None:
            return
        count = sum(1 for _ in self._state.leftovers())
        if count:
            self._warn(
                f"{count} objects that the run created are still there;"
                " ssbench-master cleanup-containers deletes them"
            )

    def clean_up(self) -> None:
        """Delete what the run created, unless it is to be kept."""
        settings, state = self._settings, self._state
        if settings.noop or state is None:
            return
        count = sum(1 for _ in state.leftovers())
        if settings.keep_objects:
            _log.info("Keeping the %d objects that the run created", count)
            return
        if not count:
            return
        interrupted = self._stop()
        ends_at = time.monotonic() + _CLEAN_UP_AFTER_INTERRUPT if interrupted else float("inf")
        give_up_after = self._exchange.give_up_after
        if self._given_up:
            give_up_after = min(give_up_after, _CLEAN_UP_AFTER_INTERRUPT)
        self._exchange.interrupted.clear()
        self._exchange.forget_jobs(retries=min(self._exchange.parameters.retries, _CLEAN_UP_RETRIES))
        _log.info(
            "Deleting the %d objects that the run created%s",
            count,
            " (Ctrl-C leaves them there)" if interrupted else "",
        )
        with Bar("Deleted", count) as bar:
            clean_up = CleanUp(state.leftovers(), bar, lambda: self._stop() or time.monotonic() > ends_at)
            try:
                self._exchange.run(clean_up, give_up_after)
            except (WorkerError, ClusterError) as error:
                self._warn(f"Clean-up ended early: {error}")
            finally:
                # Also when a second Ctrl-C ends it.
                self._say_what_is_left(count, clean_up)

    def _say_what_is_left(self, count: int, clean_up: CleanUp) -> None:
        left = count - clean_up.succeeded
        if not left:
            _log.info("Deleted %d of %d", count, count)
            return
        self._trouble = True
        scenario = self._settings.scenario
        command = f"ssbench-master cleanup-containers -b {shlex.quote(scenario.container_base)}"
        if scenario.policy:
            command += f" -p {shlex.quote(scenario.policy)}"
        self._warn(
            f"{left} of the {count} objects that the run created are still there"
            + (f" ({clean_up.failure_text()})" if clean_up.failed else "")
            + (
                f"; the clean-up gave up after {TOO_MANY_FAILURES} failures in a row"
                if clean_up.gave_up
                else ""
            )
            + f"; this deletes them, their containers and the initial objects: {command}"
        )

    @property
    def trouble(self) -> bool:
        """Whether anything beside the operations went wrong."""
        return self._trouble

    def _look_after_local_workers(self, _now: float) -> None:
        if self._local is None:
            return
        for worker in self._local.newly_ended():
            self._died += 1
            if worker.ended:
                _log.error(
                    "Local worker %d ended with exit code %d; the end of its log %s:\n%s",
                    worker.worker_id,
                    worker.ended,
                    worker.log,
                    worker.log_tail(),
                )
            for known in self._exchange.dispatcher.living():
                if known.pid == worker.process.pid and known.worker_id == worker.worker_id:
                    self._exchange.dispatcher.leave(known.instance, f"has ended (exit code {worker.ended})")
        if not self._local.running and not self._exchange.dispatcher.living():
            raise WorkerError("all local workers have ended")


def _limits(worker: WorkerState) -> list[str]:
    """Why this worker, rather than Swift, was the limit of what was measured."""
    load = worker.load
    texts = []
    if load.cpu_share is not None and load.cpu_share > _BUSY_SHARE:
        texts.append(f"used {load.cpu_share:.0%} of its core")
    late = load.late_share
    if late is not None and late > _LATE_SHARE:
        texts.append(
            f"its event loop was over 1 ms late in {late:.1%} of the cases"
            f" (99th percentile {(load.lag_percentile(99) or 0) * 1000:.0f} ms)"
        )
    return [
        f"The load generator was the limit: worker {worker.worker_id} on {worker.host}: {text}"
        for text in texts
    ]


def describe_run(
    settings: RunSettings,
    run_id: int,
    host: str,
    options: dict[str, object],
    workers: Sequence[WorkerState],
    storage_urls: Sequence[str],
) -> RunDescription:
    """The first document of the run's stat file."""
    return RunDescription(
        scenario=replace(settings.scenario),
        version=__version__,
        seed=settings.seed,
        options=options,
        host=host,
        run_id=run_id,
        started=time.time(),
        workers=tuple(WorkerFacts(worker.worker_id, worker.host, worker.version) for worker in workers),
        storage_urls=tuple(storage_urls),
    )


DEFAULT_STATS_FOLDER = Path("/tmp/ssbench-results")  # noqa: S108 - the documented place; made safely
