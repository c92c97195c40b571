"""The phases by themselves: what they hand out, and what they make of what comes back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ssbench.base.errors import TooManyErrorsError
from ssbench.fleet.worker_state import Task, WorkerState
from ssbench.results.block import ResultBlock, Sink
from ssbench.run import phases
from ssbench.run.bench_options import ErrorLimit, RunOptions
from ssbench.run.benchmark_run import GroupBenchmarks
from ssbench.run.group_run import GroupRun
from ssbench.run.loop import MasterLoop
from ssbench.run.phases import MAX_FAILURES_IN_A_ROW, Benchmark, CleanUp, InitialUploads
from ssbench.run.result_rows import ListingMinimums
from ssbench.scenario.draws import Workload
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import OPERATIONS, REMOVE, UPLOAD_IF_MISSING
from ssbench.scenario.population import Population
from ssbench.store.contract import JobResult

WORKER = WorkerState(1, 1, "h", 1, "1", 100, 0.0)


class Counted:
    """A bar that only counts."""

    count = 0

    def advance(self, count: int = 1) -> None:
        self.count += count

    def move(self, count: float) -> None:
        pass

    def spare(self, count: float) -> None:
        pass


def clean_up(objects: int, stop: Callable[[], bool] = lambda: False) -> tuple[CleanUp, Counted]:
    bar = Counted()
    return CleanUp(((0, 0, number) for number in range(objects)), bar, stop), bar


def results(tasks: list[Task], *causes: str | None) -> list[tuple[Task, JobResult]]:
    return [
        (task, JobResult(0, None, None, 0.0, cause=cause)) for task, cause in zip(tasks, causes, strict=True)
    ]


def test_a_clean_up_counts_what_it_deleted() -> None:
    phase, bar = clean_up(5)
    tasks = list(phase.next_tasks(3))
    assert tasks == [(REMOVE.code, 0, 0, number, 0) for number in range(3)]
    phase.done(results(tasks, None, "HTTP 503", None), WORKER)
    assert not phase.exhausted(0.0)
    tasks = list(phase.next_tasks(10))
    phase.done(results(tasks, None, "reset"), WORKER)
    assert phase.exhausted(0.0)
    assert not phase.gave_up
    assert (phase.succeeded, phase.failed, bar.count) == (3, 2, 3)
    assert phase.failure_text() == "1 x HTTP 503, 1 x reset"
    assert phase.drain_timeout is None


@pytest.mark.parametrize("success_at", [None, 0, MAX_FAILURES_IN_A_ROW - 1])
def test_a_clean_up_gives_up_after_many_failures_in_a_row(success_at: int | None) -> None:
    phase, _ = clean_up(1000)
    for number in range(MAX_FAILURES_IN_A_ROW):
        assert not phase.exhausted(0.0)
        cause = None if number == success_at else "connect refused"
        phase.done(results(list(phase.next_tasks(1)), cause), WORKER)
    assert phase.gave_up == (success_at is None)
    assert phase.exhausted(0.0) == phase.gave_up
    if phase.gave_up:
        assert phase.drain_timeout is not None
        assert phase.drain_timeout < math.inf


def test_many_failures_in_one_message_before_a_success_give_up_too() -> None:
    phase, _ = clean_up(1000)
    tasks = list(phase.next_tasks(MAX_FAILURES_IN_A_ROW + 1))
    phase.done(results(tasks, *["reset"] * MAX_FAILURES_IN_A_ROW, None), WORKER)
    assert phase.gave_up
    assert (phase.succeeded, phase.failed) == (1, MAX_FAILURES_IN_A_ROW)


def test_what_is_lost_with_a_worker_is_sent_again_and_what_is_given_up_counts_as_failed() -> None:
    phase, _ = clean_up(3)
    tasks = list(phase.next_tasks(3))
    assert list(phase.lost(tasks[:1], abandoned=None, worker=WORKER)) == tasks[:1]
    assert phase.failed == 0
    assert list(phase.lost(tasks, abandoned="not finished")) == []
    assert phase.causes == {"not finished": 3}


def test_a_stop_is_heeded() -> None:
    stopped: list[bool] = []
    phase, _ = clean_up(3, lambda: bool(stopped))
    assert not phase.exhausted(0.0)
    stopped.append(True)
    assert phase.exhausted(0.0)


def test_to_ask_whether_a_phase_is_exhausted_changes_nothing() -> None:
    stopped = [False]
    phase, _ = clean_up(3, lambda: stopped[0])
    for stop in (False, True, False):
        stopped[0] = stop
        assert [phase.exhausted(0.0) for _ in range(3)] == [stop] * 3
        assert (phase.drain_timeout is None) == (not stop)
    assert len(phase.next_tasks(10)) == 3


def test_what_a_put_has_written_anew_is_not_reused() -> None:
    scenario = Scenario("s", (SizeClass("s", 5, 5, 3, (1, 1, 1, 1)),), user_count=1, operation_count=1)
    workload = Workload(scenario, 1)
    initial = ((UPLOAD_IF_MISSING.code, *each) for each in workload.initial_objects())
    phase = InitialUploads(initial, Population(scenario, workload), Counted(), lambda: False)
    # Not there; there in a size of the class, but written anew for --verify; there and looked at only.
    ends = [(None, 201), (5, 201), (5, 200)]
    answers = [JobResult(0, None, None, 0.0, size=5, found=found, status=status) for found, status in ends]
    phase.done(list(zip(phase.next_tasks(3), answers, strict=True)), WORKER)
    assert (phase.uploaded, phase.replaced, phase.reused) == (1, 1, 1)


def of_a_minute(**more: Any) -> Benchmark:
    scenario = Scenario("s", (SizeClass("tiny", 1, 1, 1, (1, 0, 0, 0)),), user_count=1, run_seconds=60.0)
    return Benchmark(
        Population(scenario, Workload(scenario, 1)),
        [],
        lambda: False,
        operation_count=None,
        run_seconds=60.0,
        drain_timeout=60.0,
        **more,
    )


@pytest.mark.parametrize("reached", [True, False])
def test_what_ends_a_run_early_ends_its_time_of_sending(
    reached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the last operations, and what is looked at after them, take."""
    now = 100.0
    monkeypatch.setattr(phases, "time", SimpleNamespace(monotonic=lambda: now, time=lambda: 1e9))
    benchmark = of_a_minute(enough=lambda: reached and now > 150.0)
    for now in (100.1, 149.9, 150.1) if reached else (100.1, 150.0, 160.1):
        benchmark.tick(now)
    now = 165.0
    benchmark.end()
    assert benchmark.sent_until - benchmark.epoch == pytest.approx(149.9 if reached else 160.0)


def test_the_time_of_sending_ends_with_a_run_that_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(phases, "time", SimpleNamespace(monotonic=lambda: now, time=lambda: 1e9))
    benchmark = of_a_minute()
    now = 158.0
    benchmark.tick(now)
    benchmark.end()  # all workers are gone
    now = 161.0
    assert benchmark.sent_until - benchmark.epoch == pytest.approx(158.0)


def test_lost_operations_that_replace_or_delete_segments_are_counted() -> None:
    weights = {"create": 1.0, "read": 1.0, "update": 1.0, "delete": 1.0}
    classes = (
        SizeClass("small", 1, 1, 100, weights),
        SizeClass("large", 10, 10, 100, weights, segment_size=5),
    )
    scenario = Scenario("s", classes, user_count=99, operation_count=60)
    state = Population(scenario, Workload(scenario, 1))
    for index, number in itertools.product((0, 1), range(1, 101)):
        state.add_initial(index, number, 10)
    benchmark = Benchmark(
        state, [], lambda: False, operation_count=60, run_seconds=None, drain_timeout=None, segmented=[1]
    )
    tasks = benchmark.next_tasks(60)
    benchmark.lost(tasks, abandoned=None)
    left = [task for task in tasks if task[1] and OPERATIONS[task[0]].name in {"update", "delete"}]
    assert 0 < benchmark.unfinished == len(left)


def test_lost_operations_that_made_objects_of_their_own_are_counted() -> None:
    weights = {"slo": 1.0, "sequence": 1.0, "head_account": 2.0}
    scenario = Scenario("s", (SizeClass("tiny", 1, 1, 1, weights),), user_count=9, operation_count=40)
    benchmark = Benchmark(
        Population(scenario, Workload(scenario, 1)),
        [],
        lambda: False,
        operation_count=40,
        run_seconds=None,
        drain_timeout=None,
    )
    tasks = benchmark.next_tasks(40)
    assert benchmark.lost(tasks, abandoned=None) == []
    left = [task for task in tasks if OPERATIONS[task[0]].name != "head_account"]
    assert 0 < benchmark.unfinished == len(left) < len(tasks) == benchmark.lost_jobs


def test_what_workers_without_an_answer_may_have_done_is_not_called_not_begun() -> None:
    benchmark = of_a_minute()
    tasks = benchmark.next_tasks(5)
    benchmark.take_back(tasks[:2], in_doubt=False)
    benchmark.take_back(tasks[2:], in_doubt=True)
    assert (benchmark.taken_back, benchmark.in_doubt) == (2, 3)


def test_nothing_is_kept_of_listings_that_come_to_nothing() -> None:
    scenario = Scenario(
        "s", (SizeClass("tiny", 1, 1, 1, {"list": 1.0}),), user_count=9, run_seconds=60.0, container_count=1
    )
    listings = ListingMinimums.of(scenario, {0: 5})
    assert listings is not None
    benchmark = Benchmark(
        Population(scenario, Workload(scenario, 1)),
        [],
        lambda: False,
        operation_count=None,
        run_seconds=60.0,
        drain_timeout=60.0,
        listings=listings,
    )
    tasks = benchmark.next_tasks(5)
    benchmark.take_back(tasks[:1], in_doubt=False)
    benchmark.take_back(tasks[1:2], in_doubt=True)
    benchmark.lost(tasks[2:3], abandoned=None)
    benchmark.done(results(list(tasks[3:4]), "reset"), WORKER)
    # The last one is under way.
    assert [listings.least(each) for each in tasks] == [0, 0, 0, 0, 5]


class Blocks:
    """A sink that counts the results of each block."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def add(self, block: ResultBlock) -> None:
        self.sizes.append(len(block))

    def tick(self, now: float) -> None:
        pass


def test_few_results_are_handed_over_after_some_ticks_and_failures_at_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(phases, "time", SimpleNamespace(monotonic=lambda: now, time=lambda: 1e9))
    benchmark, blocks = of_a_minute(), Blocks()
    benchmark._sinks = [cast(Sink, blocks)]
    for now, cause, handed_over in (
        (100.1, None, []),
        (100.2, None, []),
        (100.35, None, [3]),
        (100.45, "HTTP 503", [3, 1]),
        (160.1, None, [3, 1, 1]),  # its time is over
        (160.2, None, [3, 1, 1, 1]),
    ):
        tasks = [*benchmark.next_tasks(1)]
        benchmark.done(results(tasks, cause), WORKER)
        benchmark.tick(now)
        assert blocks.sizes == handed_over


def test_a_share_of_failures_is_of_all_that_ended_in_each_group_of_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Successes of one group wait to be handed over while failures of another one are looked at."""
    now = 100.0
    monkeypatch.setattr(phases, "time", SimpleNamespace(monotonic=lambda: now, time=lambda: 1e9))
    parts = [SimpleNamespace(benchmark=None), SimpleNamespace(benchmark=None)]
    fleet = SimpleNamespace(roster=SimpleNamespace(workers={}))
    together = GroupBenchmarks(
        cast(list[GroupRun], parts),
        cast(MasterLoop, SimpleNamespace(fleet=fleet, own=None, interrupted=Event())),
        RunOptions(max_errors=ErrorLimit(share=0.05)),
        None,
    )
    good, bad = (of_a_minute(too_many=together._too_many) for _ in parts)
    parts[0].benchmark, parts[1].benchmark = good, bad
    good.done(results([*good.next_tasks(400)], *[None] * 400), WORKER)
    bad.done(results([*bad.next_tasks(100)], *["HTTP 503"] * 10, *[None] * 90), WORKER)
    now = 100.1
    good.tick(now)
    bad.tick(now)
    assert (bad.errors, bad.too_many_errors) == (10, False)
    bad.done(results([*bad.next_tasks(20)], *["HTTP 503"] * 20), WORKER)
    assert not together._stop()
    bad.tick(now)
    assert bad.too_many_errors
    # That ends the parts of all groups.
    assert together._stop()
    assert isinstance(together.early_end, TooManyErrorsError)
