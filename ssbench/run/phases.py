"""The three phases of a run: initial uploads, the benchmark, clean-up.

Each provides tasks and receives how they end; :mod:`ssbench.run.loop` does the rest.
"""

# ruff: noqa: D102 - the methods of a phase are documented in Phase

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice

from ssbench.fleet.phase import LEAD_SECONDS
from ssbench.fleet.worker_state import Task, WorkerState
from ssbench.results.block import LOST_CAUSE, Sink
from ssbench.run.bars import ProgressBar
from ssbench.run.result_rows import ListingMinimums, ResultAddresses, RowMaker, StagePlacement
from ssbench.scenario.model import Stage, parse_owner_name
from ssbench.scenario.operations import REMOVE, TRY, Effect
from ssbench.scenario.population import Population
from ssbench.store.conformance_checks import StoreVerdict
from ssbench.store.contract import JobResult, cause_of_status

#: How many results are gathered before they are handed over. One message at a time costs some
#: microseconds a message; many thousands at once keep the workers waiting.
_MAX_BLOCK_ROWS = 512
#: Fewer are handed over after so many seconds, or at once where some failed: what sinks do with a block costs
#: as much as some hundred rows.
_MAX_BLOCK_SECONDS = 0.3

#: What to do where objects are too large for the store.
_TOO_LARGE_CAUSE = cause_of_status(413)
_TOO_LARGE = (
    f"{_TOO_LARGE_CAUSE}: more bytes in one piece than the store takes (Swift 5 GiB, unless it is configured"
    " otherwise): segment_size divides objects"
)

#: The answer to a PUT that has written an object.
_CREATED_STATUS = 201

#: What leaves segments without a manifest where it does not come to its end. Those of new objects are deleted
#: with these after the run.
_REPLACING_EFFECTS = frozenset({Effect.REWRITES, Effect.REMOVES})

#: Seconds that tasks in flight still get when a phase is stopped.
_STOPPED_DRAIN_SECONDS = 2.0

#: Failures in a row after which the clean-up tries no more deletions.
MAX_FAILURES_IN_A_ROW = 20


class _CountedPhase:
    """A phase whose results only count: each task is done once, by whichever worker lives."""

    def __init__(self, what: str, tasks: Iterator[Task], bar: ProgressBar, stop: Callable[[], bool]) -> None:
        self.what = what
        self.succeeded = 0
        self.causes: Counter[str] = Counter()
        self.example = ""
        self._tasks = tasks
        self._bar = bar
        self._stop = stop
        self._exhausted = False

    @property
    def failed(self) -> int:
        """How many tasks failed for good."""
        return self.causes.total()

    def failure_text(self) -> str:
        """Causes with their counts, and one example."""
        causes = ", ".join(f"{count} x {cause}" for cause, count in self.causes.most_common())
        too_large = f"; {_TOO_LARGE}" if _TOO_LARGE_CAUSE in self.causes else ""
        return (f"{causes}; for example: {self.example}" if self.example else causes) + too_large

    def next_tasks(self, count: int) -> Sequence[Task]:
        tasks = list(islice(self._tasks, count))
        self._exhausted = len(tasks) < count
        return tasks

    def exhausted(self, now: float) -> bool:
        return self._exhausted or self._stop()

    def cut_short(self, now: float) -> bool:
        return self._stop()

    def take_back(self, tasks: Sequence[Task], *, in_doubt: bool) -> None:
        pass  # those that were not done are the others

    def sent_again(self, now: float) -> None:
        pass

    @property
    def drain_timeout(self) -> float | None:
        return _STOPPED_DRAIN_SECONDS if self._stop() else None

    def done(self, ended: Sequence[tuple[Task, JobResult]], worker: WorkerState) -> None:
        for task, result in ended:
            if result.cause is None:
                self.succeeded += 1
                self._succeeded(task, result)
            else:
                self.causes[result.cause] += 1
                self.example = self.example or result.detail
        self._bar.advance(sum(result.cause is None for _, result in ended))

    def _succeeded(self, task: Task, result: JobResult) -> None:
        pass

    def lost(
        self, tasks: Sequence[Task], *, abandoned: str | None, worker: WorkerState | None = None
    ) -> Sequence[Task]:
        if abandoned is None:
            return tasks  # other workers do them
        self.causes[abandoned] += len(tasks)
        return []

    def catch_up(self) -> None:
        pass

    def tick(self, now: float) -> None:
        pass


class InitialUploads(_CountedPhase):
    """Uploads the initial objects that are not there yet, or not in the size that the scenario says.

    ``uploaded``, ``replaced`` and ``reused`` count those that were not there, that were there and were
    written anew (another scenario's, or of a size outside the range of their class, or their content is to be
    verified), and that were there already. ``owners`` counts those of other scenarios, by their names.
    """

    def __init__(
        self,
        tasks: Iterator[Task],
        state: Population,
        bar: ProgressBar,
        stop: Callable[[], bool],
    ) -> None:
        super().__init__("initial uploads", tasks, bar, stop)
        self.uploaded = self.replaced = self.reused = 0
        self.seconds = 0.0  # how long the uploads took, of a fill
        self.owners: Counter[str] = Counter()
        self._state = state

    def _succeeded(self, task: Task, result: JobResult) -> None:
        _, size_class, _, number, size = task
        if result.status == _CREATED_STATUS:
            self._bar.move(result.size)
        else:
            self._bar.spare(size)
        if result.found is None:
            self.uploaded += 1
        elif result.status != _CREATED_STATUS:  # it was looked at only
            self.reused += 1
            size = result.size
        else:
            self.replaced += 1
            if result.detail:
                self.owners[parse_owner_name(result.detail)] += 1
        self._state.add_initial(size_class, number, size)

    def counts(self) -> dict[str, float]:
        """Return the counts as they are kept in the stat file."""
        found: dict[str, float] = {
            "initial_uploaded": self.uploaded,
            "initial_replaced": self.replaced,
            "initial_of_others": self.owners.total(),
            "initial_reused": self.reused,
        }
        return found | ({"initial_seconds": self.seconds} if self.seconds else {})


class ObjectCheck(_CountedPhase):
    """Looks at some of the objects that should be there."""

    def __init__(self, tasks: Iterator[Task], bar: ProgressBar, stop: Callable[[], bool]) -> None:
        super().__init__("looks at prepared objects", tasks, bar, stop)


class FirstTries(_CountedPhase):
    """Tries what the store may ignore; ``findings`` has verdict and detail of each check, by its number."""

    def __init__(self, checks: Sequence[int], bar: ProgressBar, stop: Callable[[], bool]) -> None:
        super().__init__("first tries", ((TRY.code, 0, 0, 1, number) for number in checks), bar, stop)
        self.findings: dict[int, tuple[str, str]] = {}

    def done(self, ended: Sequence[tuple[Task, JobResult]], worker: WorkerState) -> None:
        super().done(ended, worker)
        for (*_, number), result in ended:
            self.findings[number] = result.cause or StoreVerdict.DONE.value, result.detail


class CleanUp(_CountedPhase):
    """Deletes what the run created, until :data:`MAX_FAILURES_IN_A_ROW` in a row have failed."""

    def __init__(
        self, objects: Iterator[tuple[int, int, int]], bar: ProgressBar, stop: Callable[[], bool]
    ) -> None:
        self._failures_in_a_row = 0
        super().__init__(
            "deletions", ((REMOVE.code, *each, 0) for each in objects), bar, lambda: stop() or self.gave_up
        )

    @property
    def gave_up(self) -> bool:
        """Whether the rest was not tried, because too many failed in a row."""
        return self._failures_in_a_row >= MAX_FAILURES_IN_A_ROW

    def done(self, ended: Sequence[tuple[Task, JobResult]], worker: WorkerState) -> None:
        for _, result in ended:
            self._failures_in_a_row = 0 if result.cause is None else self._failures_in_a_row + 1
            if self.gave_up:
                break
        super().done(ended, worker)


class Benchmark:
    """Sends the operations of the scenario and hands their results to sinks, a block every few ticks.

    Ends after ``operation_count`` draws or ``run_seconds`` seconds from its start, whichever is given, or
    when ``stop()`` or ``enough()`` is true; only the former interrupts it. It starts with its making, and
    in an open loop as much later as operations are handed out before they are due. ``plan`` and
    ``warmup`` are those of the scenario. ``drain_timeout`` is that of a phase that is not stopped. It is
    stopped too when ``too_many()`` operations have failed; then ``too_many_errors`` is true. Results are of
    this ``group`` of users in so many ``accounts``, and choose from so many ``storage_urls``, the first of
    which is the run's ``first_url``. ``addresses`` gets those that they name, ``listings`` says how many
    names listings have at least; objects of ``segmented`` size classes, by their indexes, are in segments.
    """

    what = "operations"

    def __init__(
        self,
        state: Population,
        sinks: Sequence[Sink],
        stop: Callable[[], bool],
        *,
        storage_urls: int = 0,
        first_url: int = 0,
        operation_count: int | None,
        run_seconds: float | None,
        drain_timeout: float | None,
        plan: Sequence[Stage] = (),
        warmup: float = 0.0,
        enough: Callable[[], bool] = lambda: False,
        too_many: Callable[[], bool] = lambda: False,
        group: int | None = None,
        accounts: int = 1,
        addresses: ResultAddresses | None = None,
        round_trip: float = 0.0,
        listings: ListingMinimums | None = None,
        segmented: Collection[int] = (),
    ) -> None:
        self._drain_timeout = drain_timeout
        self._enough = enough
        self._too_many = too_many
        self.too_many_errors = False
        self.count = 0
        self.lost_jobs = 0
        #: Operations whose end is not known, which make objects of their own and delete them, or replace or
        #: delete an object in segments.
        self.unfinished = 0
        #: Operations that workers had in hand at the end and had not begun; they are not among those drawn.
        #: Those ``in_doubt``, which are not among these, may have begun: their workers no longer answered.
        self.taken_back = self.in_doubt = 0
        self.began = time.monotonic()
        #: When its stages begin.
        self.start = self.began + (LEAD_SECONDS + round_trip if plan and plan[0].rate else 0.0)
        #: What turns the master's monotonic clock into seconds since 1970; fixed for the run, so
        #: that a step of the wall clock moves no result.
        self.epoch = time.time() - self.began
        self._state = state
        self._sinks = sinks
        self._segmented = segmented
        self._expires = state.expires
        self._stop_asked = stop
        self._ended: deque[tuple[Sequence[tuple[Task, JobResult]], WorkerState]] = deque()
        with_due = any(stage.rate for stage in plan)
        self._rows = RowMaker(
            self.epoch,
            storage_urls,
            first_url=first_url,
            with_due=with_due,
            group=group,
            accounts=accounts,
            addresses=addresses,
            listings=listings,
        )
        self._listings = listings
        placement = StagePlacement(plan, self.epoch + self.start, warmup)
        self._placement = placement if placement.needed else None
        self._wanted = operation_count if run_seconds is None else None
        self._ends_at = None if run_seconds is None else self.start + run_seconds
        self._sending_at = self._handed_over_at = self.began
        #: Whether it was sending until its time was over; None before it has stopped.
        self._whole: bool | None = None

    def _stop(self) -> bool:
        return self.too_many_errors or self._stop_asked()

    @property
    def errors(self) -> int:
        """How many operations failed."""
        return self._rows.errors

    @property
    def ended(self) -> int:
        """How many operations ended, with those whose results wait to be handed over; errors are of these."""
        return self.count + self._rows.count

    @property
    def sent_until(self) -> float:
        """When the last operations were handed out, to a tick; of a timed run that was over, exactly.

        Seconds since 1970. No operation may have been sent for a while before, where none ended.
        """
        if self._ends_at is not None and self._was_in_time():
            return self.epoch + self._ends_at
        return self.epoch + self._sending_at

    def _was_in_time(self) -> bool:
        """Whether operations were handed out until the time of a timed run was over."""
        if self._whole is None:
            over = self._ends_at is not None and time.monotonic() >= self._ends_at
            return over and not self._stop() and not self._enough()
        return self._whole

    def next_tasks(self, count: int) -> Sequence[Task]:
        draws = None if self._wanted is None else self._wanted - self._state.drawn
        tasks = self._state.next_jobs(count, time.monotonic() if self._expires else 0.0, draws)
        if self._listings is not None:
            self._listings.handed_out(tasks)
        return tasks

    def exhausted(self, now: float) -> bool:
        if self._stop() or self._enough():
            return True
        if self._ends_at is not None:
            return now >= self._ends_at
        return self._wanted is not None and self._state.drawn >= self._wanted and not self._state.waiting

    def cut_short(self, now: float) -> bool:
        return self._stop() or self._enough() or (self._ends_at is not None and now >= self._ends_at)

    def take_back(self, tasks: Sequence[Task], *, in_doubt: bool) -> None:
        for operation, size_class, container, number, _ in tasks:
            self._state.take_back(operation, size_class, container, number, in_doubt=in_doubt)
        if self._listings is not None:
            self._listings.without_result(tasks, begun=in_doubt)
        if in_doubt:
            self.in_doubt += len(tasks)
        else:
            self.taken_back += len(tasks)

    def sent_again(self, now: float) -> None:
        self._sending_at = now

    @property
    def drain_timeout(self) -> float | None:
        return _STOPPED_DRAIN_SECONDS if self._stop() else self._drain_timeout

    def done(self, ended: Sequence[tuple[Task, JobResult]], worker: WorkerState) -> None:
        self._state.ended(ended)
        if self._listings is not None:
            self._listings.ended(ended)
        self._ended.append((ended, worker))

    def catch_up(self) -> None:
        # While the workers have something to do: a run of 512 users in batches of 64 is a quarter faster so.
        ended, rows = self._ended, self._rows
        while ended:
            rows.add(*ended.popleft())
        if rows.count >= _MAX_BLOCK_ROWS:
            self._hand_over()

    def _hand_over(self) -> None:
        if self._rows.count:
            block = self._rows.take()
            if self._placement is not None:
                block = self._placement.place(block)
            self.count += len(block)
            self.too_many_errors |= self._too_many()
            for sink in self._sinks:
                sink.add(block)

    def lost(
        self, tasks: Sequence[Task], *, abandoned: str | None, worker: WorkerState | None = None
    ) -> Sequence[Task]:
        cause = abandoned or LOST_CAUSE
        for operation, size_class, container, number, _ in tasks:
            self._state.finished(operation, size_class, container, number, ok=False)
            row = self._state.operations[operation]
            self.unfinished += row.makes_objects or (
                size_class in self._segmented and row.effect in _REPLACING_EFFECTS
            )
        if self._listings is not None:
            self._listings.without_result(tasks)
        self._rows.add_lost(tasks, cause, worker, time.monotonic())
        if cause == LOST_CAUSE:
            self.lost_jobs += len(tasks)
        return []

    def tick(self, now: float) -> None:
        if not self.exhausted(now):
            self._sending_at = now
        elif self._whole is None:
            # What happens while the last operations are awaited does not change it.
            self._whole = self._was_in_time()
        self.catch_up()
        in_time = now - self._handed_over_at < _MAX_BLOCK_SECONDS and self._whole is None
        if not in_time or self._rows.have_failures:
            self._handed_over_at = now
            self._hand_over()
        for sink in self._sinks:
            sink.tick(now)

    def end(self) -> None:
        """Hand over what is left; the last thing to be called."""
        self._whole = self._was_in_time()
        self.catch_up()
        self._hand_over()
