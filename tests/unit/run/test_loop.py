"""The master's loop over a simulated fleet: each rule by an example, minutes of a run in milliseconds."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from golden_words import GoldenWords
from msgspec import structs
from simulated import Network, SimulatedWorker, failure, never, success

from ssbench.base.errors import ClusterError, WorkerError
from ssbench.fleet import wire
from ssbench.fleet.phase import LEAD_SECONDS, ClosedLoop, Pace, StagedPace
from ssbench.fleet.wire import LOST_AFTER, Job, RunParameters
from ssbench.fleet.worker_state import Task, WorkerState
from ssbench.results.block import LOST_CAUSE, UNFINISHED_CAUSE
from ssbench.run.loop import MasterLoop
from ssbench.run.run_workers import wait_for_workers
from ssbench.run.tokens import TokenRenewal
from ssbench.run.worker_messages import WorkerNews
from ssbench.scenario.draws import Arrivals
from ssbench.scenario.model import Stage
from ssbench.store.contract import JobResult


class Tasks:
    """A phase of so many tasks. ``ended`` are the causes of all that ended (None: success)."""

    what = "tasks"

    def __init__(self, count: int | float, *, again: bool = False) -> None:
        self.left = count
        self.again = again
        self.drain_timeout: float | None = None
        self.stop: Callable[[], bool] = lambda: False
        self.given = self.taken_back = self.in_doubt = 0
        self.sent_last: float | None = None
        self.ended: Counter[str | None] = Counter()
        self.results: list[JobResult] = []

    def next_tasks(self, count: int) -> Sequence[Task]:
        count = int(min(count, self.left))
        self.left -= count
        self.given += count
        return [(0, 0, 0, self.given - number, 100) for number in range(count)]

    def exhausted(self, now: float) -> bool:
        return not self.left or self.stop()

    def done(self, ended: Sequence[tuple[Task, JobResult]], worker: WorkerState) -> None:
        self.ended.update(result.cause for _, result in ended)
        self.results += [result for _, result in ended]

    def lost(
        self, tasks: Sequence[Task], *, abandoned: str | None, worker: WorkerState | None = None
    ) -> Sequence[Task]:
        if abandoned is None and self.again:
            return tasks
        self.ended[abandoned or LOST_CAUSE] += len(tasks)
        return []

    def cut_short(self, now: float) -> bool:
        return self.stop()

    def take_back(self, tasks: Sequence[Task], *, in_doubt: bool) -> None:
        self.taken_back += len(tasks)
        self.in_doubt += len(tasks) * in_doubt

    def sent_again(self, now: float) -> None:
        self.sent_last = now

    def catch_up(self) -> None:
        pass

    def tick(self, now: float) -> None:
        pass


class Slow(Tasks):
    """A phase that takes the master a millisecond for each task."""

    def __init__(self, count: int, network: Network) -> None:
        super().__init__(count)
        self.network = network

    def next_tasks(self, count: int) -> Sequence[Task]:
        tasks = super().next_tasks(count)
        self.network.master_is_busy(0.001 * len(tasks))
        return tasks


class Bench:
    """A loop over a simulated fleet of two workers."""

    def __init__(
        self,
        pace: Pace | None = None,
        *,
        workers: int = 2,
        authenticate: Callable[[], str] | None = None,
        second_authenticate: Callable[[], str] | None = None,
        give_up_after: float = 0.0,
        way: float = 0.0,
        ways: Sequence[float] = (),
        accounts: Sequence[Callable[[], str]] = (),
    ) -> None:
        self.network = Network()
        self.news = WorkerNews()
        first = RunParameters(
            run_id=1,
            token="token-0",
            storage_urls=["http://a", "http://b"],
            accounts=[([f"http://a/{number}"], f"old-{number}") for number in range(len(accounts))],
        )
        self.fleet = self.network.fleet(first)
        renewals = [authenticate]
        if second_authenticate is not None:
            renewals.append(second_authenticate)
            self.fleet.begin(first, [1000], [structs.replace(first, group=1)], parts=[0.5, 0.5])
        self.loop = MasterLoop(
            self.fleet,
            pace or ClosedLoop(8),
            self.news,
            [[TokenRenewal(each, lambda call: call()) for each in accounts]]
            if accounts
            else [[TokenRenewal(each, lambda call: call())] for each in renewals],
            give_up_after,
            lambda: self.network.now,
        )
        self.workers = [
            self.network.worker(instance, 100, each)
            for instance, each in enumerate(ways or [way] * workers, 1)
        ]
        self.began = self.network.now
        wait_for_workers(self.loop, lambda: workers, 10.0, "advice")

    def each(self, **changes: object) -> None:
        for worker in self.workers:
            for name, value in changes.items():
                setattr(worker, name, value)

    def run(self, phase: Tasks) -> float:
        """Carry the phase through; returns how long it took. Whatever happens, each task has ended once."""
        began = self.network.now
        try:
            self.loop.run(phase)
        finally:
            assert phase.ended.total() + phase.taken_back == phase.given
            assert not self.fleet.ledger.in_flight
            assert not self.fleet.ledger.backlog
        return self.network.now - began


def in_hand(bench: Bench) -> Callable[[Job, RunParameters], JobResult | None]:
    """An answer that checks that no more than 8 jobs are under way."""

    def answer(job: Job, parameters: RunParameters) -> JobResult | None:
        assert sum(worker.busy for worker in bench.workers) <= 8
        return success(job, parameters)

    return answer


def test_a_phase_ends_when_all_its_tasks_have() -> None:
    bench = Bench()
    bench.each(answer=in_hand(bench))
    phase = Tasks(1000)
    assert bench.run(phase) == pytest.approx(1000 / 8 * 0.01, rel=0.1)
    assert phase.ended == {None: 1000}
    assert [worker.jobs() for worker in bench.workers] == pytest.approx([500, 500], abs=20)
    assert bench.news.warnings == []


def test_two_phases_one_after_another() -> None:
    bench = Bench()
    for _ in range(2):
        phase = Tasks(10)
        bench.run(phase)
        assert phase.ended == {None: 10}


def test_users_are_never_idle_across_a_slow_link() -> None:
    bench = Bench(ClosedLoop(8))
    bench.each(way=0.025, seconds=0.005)
    phase = Tasks(math.inf)
    phase.stop = lambda: bench.network.now > bench.began + 20.0
    bench.run(phase)
    assert all(worker.most_busy == 4 for worker in bench.workers)
    assert phase.ended[None] == pytest.approx(20.0 * 8 / 0.005, rel=0.05)
    # What had not begun was taken back.
    assert phase.taken_back > 10
    assert bench.fleet.ledger.handed_back == 0


@pytest.mark.parametrize("seconds", [0.005, 0.02, 0.1])
def test_users_far_away_are_busy_from_the_first_jobs_on(seconds: float) -> None:
    bench = Bench(ClosedLoop(64), way=0.15)
    bench.each(seconds=seconds)
    phase = Tasks(math.inf)
    began = bench.network.now
    phase.stop = lambda: bench.network.now > began + 12.0
    bench.run(phase)
    assert phase.ended[None] > 0.95 * 12.0 * 64 / seconds


def test_a_stage_of_more_users_far_away_is_full_within_half_a_second() -> None:
    bench = Bench(way=0.15)
    bench.each(seconds=0.02)
    began = bench.network.now
    plan = [Stage(5.0, users=(8, 8)), Stage(5.0, users=(64, 64))]
    bench.loop.pace = StagedPace(plan, Arrivals(plan, "random", 1), began)
    busy: list[int] = []
    for moment in (4.9, *(5.5 + step / 10 for step in range(40))):
        bench.network.at(moment, lambda: busy.append(sum(worker.busy for worker in bench.workers)))
    phase = Tasks(math.inf)
    phase.stop = lambda: bench.network.now > began + 10.0
    bench.run(phase)
    assert busy == [8] + [64] * 40


def test_where_the_master_is_the_limit_workers_hold_no_more_ahead_for_that() -> None:
    bench = Bench(ClosedLoop(8, 8))
    bench.each(seconds=1e-4)
    bench.run(Slow(4000, bench.network))
    assert [state.allowance.ahead.low < 400 for state in bench.fleet.roster.living()] == [True, True]


@pytest.mark.parametrize(("users", "seconds"), [(8, 0.02), (128, 1e-3)])
def test_a_batch_size_makes_messages_larger_and_never_smaller(users: int, seconds: float) -> None:
    sizes = {}
    for least in (1, 32):
        bench = Bench(ClosedLoop(users, least))
        bench.each(seconds=seconds)
        bench.run(Tasks(20_000))
        messages = [len(batch.jobs) for worker in bench.workers for batch in worker.batches[2:-2]]
        sizes[least] = sum(messages) / len(messages)
    assert sizes[32] > 0.95 * max(sizes[1], 32)


@pytest.mark.parametrize("enough", [True, False])
def test_a_worker_that_has_run_out_of_jobs_gets_all_in_one_message_where_there_are_enough(
    enough: bool,
) -> None:
    bench = Bench(ClosedLoop(8))
    bench.each(seconds=1e-4)
    phase = Slow(8000, bench.network)
    if not enough:  # each time one less than asked for
        phase.next_tasks = lambda count: Slow.next_tasks(phase, max(1, count - 1))
    bench.run(phase)
    sizes = [len(batch.jobs) for worker in bench.workers for batch in worker.batches[5:-5]]
    small = sum(size <= 4 for size in sizes)
    assert (small < len(sizes) / 4) == enough


def test_what_one_worker_has_too_much_of_keeps_the_others_from_nothing() -> None:
    bench = Bench()
    fast, slow = bench.workers
    fast.seconds, fast.way, slow.seconds = 0.0005, 0.02, 0.1
    phase = Tasks(math.inf)
    phase.stop = lambda: bench.network.now > bench.began + 12.0
    bench.network.at(2.0, lambda: setattr(fast, "seconds", 0.1))
    ended = []
    for seconds in (2.5, 11.5):
        bench.network.at(seconds, lambda: ended.append(bench.fleet.roster.workers[2].held.completed))
    bench.run(phase)
    # Its four users have 40 jobs a second, in these nine.
    assert ended[1] - ended[0] >= 350


def test_what_workers_had_ahead_in_one_phase_is_not_for_the_next() -> None:
    bench = Bench()
    bench.each(seconds=0.0005, way=0.02)
    bench.run(Tasks(20000))
    before = sum(worker.jobs() for worker in bench.workers)
    bench.each(seconds=10.0)
    phase = Tasks(math.inf)
    ends_at = bench.network.now + 5.0
    phase.stop = lambda: bench.network.now > ends_at
    phase.drain_timeout = 0.0
    bench.run(phase)
    assert sum(worker.jobs() for worker in bench.workers) - before <= 16


def test_what_is_ahead_of_one_worker_at_the_end_is_done_by_all() -> None:
    bench = Bench(ClosedLoop(2))
    bench.workers[0].seconds = 100.0
    bench.workers[1].seconds = 10.0
    phase = Tasks(7)
    assert bench.run(phase) == pytest.approx(100.0, rel=0.1)
    assert phase.ended == {None: 7}
    assert phase.sent_last is not None
    assert phase.taken_back == 0


def test_what_a_stuck_worker_has_not_begun_is_no_failure() -> None:
    bench = Bench(ClosedLoop(8))
    bench.each(answer=never)
    phase = Tasks(math.inf)
    phase.drain_timeout = 2.0
    phase.stop = lambda: bench.network.now > bench.began + 1.0
    bench.run(phase)
    assert phase.ended == {UNFINISHED_CAUSE: 8}
    assert phase.taken_back == 4


def test_a_killed_worker_loses_only_what_it_had_begun() -> None:
    bench = Bench(ClosedLoop(8))
    bench.each(way=0.025, seconds=0.005)
    bench.network.at(5.0, lambda: setattr(bench.workers[0], "stopped", True))
    phase = Tasks(10_000)
    bench.run(phase)
    passed_on = bench.fleet.ledger.passed_on
    # It had begun some more than it had said: what its last message was on its way.
    assert 4 <= phase.ended[LOST_CAUSE] <= 60
    assert passed_on > 10
    assert phase.ended[None] + phase.ended[LOST_CAUSE] == 10_000


@pytest.mark.parametrize("killed", [[0], [0, 1]])
def test_what_a_killed_worker_may_have_done_at_the_end_is_taken_back_in_doubt(killed: list[int]) -> None:
    bench = Bench()
    bench.each(seconds=0.001)
    phase = Tasks(math.inf)
    phase.stop = lambda: bench.network.now > bench.began + 3.0
    for place in killed:
        bench.network.at(2.0, lambda place=place: setattr(bench.workers[place], "stopped", True))
    phase.drain_timeout = 0.5
    bench.run(phase)
    assert 0 < phase.in_doubt <= phase.taken_back
    assert bench.fleet.ledger.passed_on == 0


def test_what_a_worker_held_that_is_lost_at_the_end_went_to_no_other() -> None:
    """It may have done it, within what it had not said yet."""
    bench = Bench()
    bench.each(seconds=0.001)
    phase = Tasks(math.inf)
    phase.stop = lambda: bench.network.now > bench.began + 3.0
    bench.network.at(2.0, lambda: setattr(bench.workers[0], "stopped", True))
    bench.run(phase)
    assert any(isinstance(each, str) and "not been heard of" in each for each in bench.news.warnings)
    assert 0 < phase.in_doubt <= phase.taken_back
    assert bench.fleet.ledger.passed_on == 0


def test_a_worker_whose_share_shrinks_is_told() -> None:
    bench = Bench(Shrinking(8))
    phase = Tasks(math.inf)
    phase.stop = lambda: bench.network.now > 1020.0
    most: Counter[int] = Counter()

    def answer(job: Job, parameters: RunParameters) -> JobResult | None:
        second = int(bench.network.now - 1000.0)
        most[second] = max(most[second], sum(worker.busy for worker in bench.workers))
        return success(job, parameters)

    bench.each(answer=answer, seconds=0.2)
    bench.run(phase)
    assert [most[second] for second in range(1, 20)] == [8] * 10 + [2] * 9


class FromManyToOne(ClosedLoop):
    """One user after the first two seconds."""

    def users(self, now: float) -> int:
        return 64 if now < 1002.2 else 1

    def room(self, now: float, sent: int, in_flight: int, capacity: int) -> int:
        return min(capacity, self.users(now)) - in_flight


def test_workers_without_a_share_keep_no_jobs() -> None:
    bench = Bench(FromManyToOne(64), workers=4)
    bench.each(seconds=0.5)
    phase = Tasks(math.inf)
    phase.stop = lambda: bench.network.now > 1010.0
    ended: list[float] = []

    def answer(job: Job, parameters: RunParameters) -> JobResult | None:
        ended.append(bench.network.now)
        return success(job, parameters)

    def look() -> None:
        # The only user is busy all the time, and nobody else holds a job.
        holders = [worker for worker in bench.fleet.roster.living() if worker.held.outstanding]
        assert [worker.allowance.share for worker in holders] == [1]
        bench.network.at(0.5, look)

    bench.each(answer=answer)
    bench.network.at(4.0, look)
    bench.run(phase)
    assert sum(1004.0 < moment < 1009.0 for moment in ended) == pytest.approx(10, abs=1)
    assert phase.ended.keys() == {None}


@pytest.mark.parametrize("again", [False, True])
def test_what_a_dying_worker_had_is_sent_again_if_the_phase_wants_that(
    again: bool, golden_words: GoldenWords
) -> None:
    bench = Bench()
    bench.network.at(0.5, lambda: setattr(bench.workers[0], "stopped", True))
    phase = Tasks(3000, again=again)
    bench.run(phase)
    assert phase.ended == ({None: 3000} if again else {None: 2996, LOST_CAUSE: 4})
    (warning,) = bench.news.warnings
    golden_words(warning)
    assert warning.endswith(", with 4 jobs")


def test_a_worker_that_joins_in_the_middle_is_used() -> None:
    bench = Bench()
    late: list[SimulatedWorker] = []
    bench.network.at(0.5, lambda: late.append(bench.network.worker(3, capacity=100)))
    bench.run(Tasks(3000))
    assert late[0].jobs() > 500


def test_a_worker_that_is_not_connected_for_a_moment_gets_its_jobs_later() -> None:
    bench = Bench(workers=1)
    bench.each(connected=False)
    bench.network.at(1.0, lambda: bench.each(connected=True))
    phase = Tasks(100)
    assert bench.run(phase) > 1.0
    assert phase.ended == {None: 100}


def test_with_no_worker_left_the_run_ends(golden_words: GoldenWords) -> None:
    bench = Bench()
    bench.each(stopped=True)
    phase = Tasks(math.inf, again=True)
    began = bench.network.now
    with golden_words.raises(WorkerError):
        bench.run(phase)
    assert bench.network.now - began == pytest.approx(LOST_AFTER + 4.0, abs=1.5)
    assert phase.ended == {LOST_CAUSE: 8}


def test_the_drain_has_a_time_limit() -> None:
    bench = Bench()
    bench.each(answer=never)
    phase = Tasks(6)
    phase.drain_timeout = 3.0
    run_id = bench.fleet.parameters.run_id
    assert bench.run(phase) == pytest.approx(3.0, abs=0.2)
    assert phase.ended == {UNFINISHED_CAUSE: 6}
    # Workers learn by the number of the run that they need not go on.
    assert bench.fleet.parameters.run_id != run_id
    bench.each(answer=success)
    after = Tasks(10)
    bench.run(after)
    assert after.ended == {None: 10}


def test_a_slow_job_is_waited_for_without_a_time_limit() -> None:
    bench = Bench()
    bench.each(seconds=15.0)
    phase = Tasks(6)
    assert bench.run(phase) == pytest.approx(15.0, abs=0.2)
    assert phase.ended == {None: 6}


def test_the_user_is_told_what_a_drain_waits_for(
    caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    bench = Bench()
    bench.each(seconds=12.0)
    with caplog.at_level(logging.INFO):
        bench.run(Tasks(2))
    said = [record.message for record in caplog.records if record.message.startswith("Waiting for")]
    golden_words(said)


def test_a_phase_that_is_stopped_sends_no_more() -> None:
    bench = Bench()
    phase = Tasks(math.inf)
    phase.stop = bench.loop.interrupted.is_set
    bench.network.at(1.0, bench.loop.interrupted.set)
    assert bench.run(phase) == pytest.approx(1.0, abs=0.2)
    assert phase.ended == {None: phase.given - phase.taken_back}


def test_an_end_at_once_reports_all_tasks() -> None:
    bench = Bench()
    assert not bench.loop.end_at_once()
    ended = []
    bench.each(seconds=5.0)
    bench.network.at(1.005, lambda: ended.append(bench.loop.end_at_once()))
    phase = Tasks(math.inf)
    with pytest.raises(KeyboardInterrupt):
        bench.run(phase)
    assert ended == [True]
    assert bench.network.now - bench.began < 1.5
    assert phase.ended == {UNFINISHED_CAUSE: 8}
    assert not bench.loop.end_at_once()


def test_a_phase_in_which_nothing_succeeds_is_abandoned(golden_words: GoldenWords) -> None:
    bench = Bench(give_up_after=20.0)
    bench.each(seconds=0.1)
    bench.network.at(2.0, lambda: bench.each(answer=failure("HTTP 503")))
    phase = Tasks(math.inf)
    began = bench.network.now
    with golden_words.raises(ClusterError):
        bench.run(phase)
    assert bench.network.now - began == pytest.approx(22.0, abs=0.5)
    assert {None, "HTTP 503"} <= set(phase.ended)


@pytest.mark.parametrize(("seconds", "given_up_after"), [(100, 1000), (10, 92)])
def test_rests_of_an_open_loop_after_a_failure_count_little(seconds: int, given_up_after: float) -> None:
    bench = Bench(give_up_after=60.0)
    seldom = (Stage(1e6, users=(4, 4), rate=(1 / seconds, 1 / seconds)),)
    bench.loop.pace = StagedPace(seldom, Arrivals(seldom, "even", 1), bench.network.now)
    bench.each(answer=failure("HTTP 503"))
    began = bench.network.now
    with pytest.raises(ClusterError, match=r"nothing has succeeded for .* HTTP 503"):
        bench.run(Tasks(math.inf))
    assert bench.network.now - began == pytest.approx(given_up_after, rel=0.3)


def test_how_long_nothing_succeeded_is_returned() -> None:
    bench = Bench(give_up_after=20.0)
    bench.each(seconds=0.1)
    bench.network.at(2.0, lambda: bench.each(answer=failure("HTTP 503")))
    bench.network.at(10.0, lambda: bench.each(answer=success))
    assert bench.loop.run(Tasks(1_000)).longest == pytest.approx(8.0, abs=0.2)


def test_losing_every_job_is_the_workers_fault(golden_words: GoldenWords) -> None:
    bench = Bench(give_up_after=20.0)
    for worker in bench.workers:
        worker.receive = lambda message, worker=worker: (
            SimulatedWorker.receive(worker, message) if wire.unpack_notice(message) else None
        )
    with golden_words.raises(WorkerError):
        bench.run(Tasks(math.inf, again=True))


def refuse_old_tokens(bench: Bench, good: Callable[[], str | None]) -> None:
    def answer(job: Job, parameters: RunParameters) -> JobResult | None:
        if parameters.token == good():
            return success(job, parameters)
        return JobResult(job[0], None, 0.01, 0.0, cause="HTTP 401", detail="no", unauthorized=True)

    bench.each(answer=answer)


def test_jobs_whose_token_is_refused_are_sent_again_with_a_new_one() -> None:
    asked: list[float] = []

    def authenticate() -> str:
        asked.append(bench.network.now)
        return f"token-{len(asked)}"

    bench = Bench(authenticate=authenticate)
    refuse_old_tokens(bench, lambda: "token-1" if bench.network.now > bench.began + 1.0 else "token-0")
    phase = Tasks(1000)
    bench.run(phase)
    assert phase.ended == {None: 1000}
    assert len(asked) == 1
    again = [result for result in phase.results if result.retried]
    assert 1 <= len(again) <= 40
    assert all(result.retried == {"HTTP 401": 1} for result in again)
    assert bench.fleet.parameters.token == "token-1"
    histories = [
        history for worker in bench.workers for batch in worker.batches for history in batch.histories
    ]
    assert Counter(retries for retries, *_ in histories if retries) == {1: len(again)}
    assert all(ended - began == pytest.approx(0.01) for retries, began, ended, _ in histories if retries)
    assert bench.news.warnings == []


def test_the_token_of_one_account_is_renewed_where_the_other_one_cannot_be() -> None:
    def fails() -> str:
        raise ClusterError("service down")

    bench = Bench(authenticate=fails, second_authenticate=lambda: "new")

    def answer(job: Job, parameters: RunParameters) -> JobResult | None:
        if parameters.group == 0 or parameters.token == "new":
            return success(job, parameters)
        return JobResult(job[0], None, 0.01, 0.0, cause="HTTP 401", detail="no", unauthorized=True)

    bench.each(answer=answer)
    phases = Tasks(50), Tasks(50)
    bench.loop.run_together(
        [(phase, bench.loop.pace, workers) for phase, workers in zip(phases, bench.fleet.groups, strict=True)]
    )
    assert [phase.ended for phase in phases] == [{None: 50}, {None: 50}]
    assert not any(result.retried for result in phases[0].results)
    assert any(result.retried == {"HTTP 401": 1} for result in phases[1].results)
    assert [workers.parameters.token for workers in bench.fleet.groups] == ["token-0", "new"]
    assert bench.news.warnings == []


class Watched(Tasks):
    """A phase that counts how often it is asked whether there is more to send."""

    asked = 0

    def exhausted(self, now: float) -> bool:
        self.asked += 1
        return super().exhausted(now)


def test_a_group_without_results_is_not_asked_whenever_another_one_has_some() -> None:
    bench = Bench(second_authenticate=lambda: "")
    bench.each(seconds=0.01)
    busy, idle = Tasks(4_000), Watched(9)
    seldom = [Stage(20.0, users=(4, 4), rate=(1.0, 1.0))]
    pace = StagedPace(seldom, Arrivals(seldom, "even", 1), bench.began)
    first, second = bench.fleet.groups
    bench.loop.run_together([(busy, ClosedLoop(4), first), (idle, pace, second)])
    seconds = bench.network.now - bench.began
    assert [phase.ended for phase in (busy, idle)] == [{None: 4_000}, {None: 9}]
    # At each tick, when one is to be sent and has ended, and with pings; not with each of 4,000 results.
    assert idle.asked < 30 * seconds


def test_the_user_is_told_that_nothing_is_due_and_not_that_workers_lack(
    caplog: pytest.LogCaptureFixture,
    golden_words: GoldenWords,
) -> None:
    seldom = [Stage(30.0, users=(4, 4), rate=(0.1, 0.1))]
    bench = Bench()
    bench.each(seconds=0.002)
    bench.loop.pace = StagedPace(seldom, Arrivals(seldom, "even", 1), bench.began)
    with caplog.at_level(logging.INFO):
        bench.loop.run(Tasks(2))
    said = [record.message for record in caplog.records if record.message.startswith("Waiting")]
    golden_words(said)
    assert not any("worker" in each for each in said)


class InTurn(Tasks):
    """A phase whose tasks are in three accounts by turns."""

    def next_tasks(self, count: int) -> Sequence[Task]:
        return [(0, 0, number % 3, number, 100) for *_, number, _ in super().next_tasks(count)]


def test_the_token_of_one_of_several_accounts_is_renewed_while_the_others_go_on(
    golden_words: GoldenWords,
) -> None:
    asked: list[int] = []

    def renew(account: int) -> Callable[[], str]:
        def authenticate() -> str:
            asked.append(account)
            if account == 2:
                raise ClusterError("no such user")
            return f"new-{account}"

        return authenticate

    bench = Bench(accounts=[renew(number) for number in range(3)])
    ended: Counter[int] = Counter()

    def answer(job: Job, parameters: RunParameters) -> JobResult | None:
        account = job[3] % 3
        _, token = parameters.accounts[account]
        if account == 0 or token == f"new-{account}":
            ended[account] += 1
            return success(job, parameters)
        return JobResult(job[0], None, 0.01, 0.0, cause="HTTP 401", detail="no", unauthorized=True)

    bench.each(answer=answer)
    phase = InTurn(300)
    bench.run(phase)
    # One is never asked for, one is got, one cannot be got: what needs it fails, and nothing else.
    assert ended == {0: 100, 1: 100}
    assert phase.ended == {None: 200, "HTTP 401": 100}
    assert Counter(asked)[1] == 1
    assert 0 not in asked
    assert [token for _, token in bench.fleet.parameters.accounts] == ["old-0", "new-1", "old-2"]
    assert bench.fleet.parameters.token == "token-0"
    golden_words(bench.news.warnings)


def test_one_token_for_several_accounts_is_renewed_for_all() -> None:
    bench = Bench(authenticate=lambda: "token-1")
    bench.fleet.change(accounts=[([f"http://a/{number}"], None) for number in range(3)])
    refuse_old_tokens(bench, lambda: "token-1" if bench.network.now > bench.began + 0.2 else "token-0")
    phase = InTurn(300)
    bench.run(phase)
    assert phase.ended == {None: 300}
    assert bench.fleet.parameters.token == "token-1"


def test_a_token_of_the_users_own_that_is_refused_is_a_failure() -> None:
    bench = Bench()
    refuse_old_tokens(bench, lambda: None)
    phase = Tasks(10)
    bench.run(phase)
    assert phase.ended == {"HTTP 401": 10}


def test_a_job_whose_tokens_are_all_refused_fails_in_the_end() -> None:
    bench = Bench(authenticate=lambda: "wrong")
    refuse_old_tokens(bench, lambda: None)
    phase = Tasks(10)
    bench.run(phase)
    assert phase.ended == {"HTTP 401": 10}
    assert {(result.retried or {})["HTTP 401"] for result in phase.results} == {10}


def test_while_there_is_no_new_token_nothing_is_sent_and_the_user_is_told(golden_words: GoldenWords) -> None:
    def authenticate() -> str:
        raise ClusterError("service down")

    bench = Bench(authenticate=authenticate, give_up_after=30.0)
    refuse_old_tokens(bench, lambda: None)
    phase = Tasks(math.inf)
    with pytest.raises(ClusterError, match=r"authentication failed.*service down"):
        bench.run(phase)
    sent = sum(worker.jobs() for worker in bench.workers)
    assert 8 <= sent <= 12
    assert phase.ended == {"HTTP 401": sent}
    golden_words(bench.news.warnings)


def test_a_failure_names_its_storage_url_where_there_are_several() -> None:
    bench = Bench()
    bench.each(
        answer=lambda job, _: JobResult(job[0], None, 0.0, 0.0, cause="reset", detail="x", storage_url=1)
    )
    phase = Tasks(1)
    bench.run(phase)
    assert phase.results[0].detail == "http://b: x"


def test_a_phase_without_a_task_at_the_moment_is_asked_again() -> None:
    bench = Bench()

    class Hesitant(Tasks):
        def next_tasks(self, count: int) -> Sequence[Task]:
            return [] if bench.network.now < bench.began + 2.0 else super().next_tasks(count)

    phase = Hesitant(100)
    bench.run(phase)
    assert phase.ended == {None: 100}


def test_workers_with_few_jobs_ahead_do_not_tell_each_result_while_tasks_are_short() -> None:
    bench = Bench()
    short_until = bench.began + 2.0

    class Short(Tasks):
        def next_tasks(self, count: int) -> Sequence[Task]:
            return super().next_tasks(min(count, 1) if bench.network.now < short_until else count)

    bench.run(Short(4000))
    for worker in bench.workers:
        while_short = [batch.low for batch in worker.batches if len(batch.jobs) == 1]
        assert while_short.count(0) > 10
        assert worker.batches[-1].low > 0


def test_what_the_ticks_callback_raises_ends_the_run() -> None:
    bench = Bench()

    def look(now: float) -> None:
        if now > bench.began + 1.0:
            raise WorkerError("all local workers have ended")

    bench.loop.on_tick = look
    with pytest.raises(WorkerError, match="all local workers"):
        bench.run(Tasks(math.inf))


# -- other paces than the closed loop ---------------------------------------------------------


class TenASecond(ClosedLoop):
    """An open loop, as one would be: due times make room, up to the number of users."""

    def room(self, now: float, sent: int, in_flight: int, capacity: int) -> int:
        due = math.floor((now - 1000.0) * 10 + 1e-9) - sent
        return min(due, ClosedLoop.room(self, now, sent, in_flight, capacity))

    def wait(self, now: float, sent: int) -> float:
        return max(0.0, 1000.0 + (sent + 1) / 10 - now)


def test_a_pace_by_the_clock_sends_what_is_due() -> None:
    bench = Bench(TenASecond(8))
    sent_at: list[float] = []

    def answer(job: Job, parameters: RunParameters) -> JobResult | None:
        sent_at.append(bench.network.now - bench.workers[0].seconds)
        return success(job, parameters)

    bench.each(answer=answer)
    bench.run(Tasks(100))
    # Those that were due before the phase began come together.
    pauses = [later - earlier for earlier, later in pairwise(sent_at[5:])]
    assert all(pause == pytest.approx(0.1, abs=0.01) for pause in pauses)


def test_a_stage_with_a_rate_sends_each_operation_once_with_the_moment_when_it_is_due() -> None:
    bench = Bench()
    began = bench.network.now
    plan = (Stage(2, (4, 4)), Stage(2, (50, 50), (100, 100)), Stage(2, (4, 4)))
    bench.loop.pace = StagedPace(plan, Arrivals(plan, "even", 1), began)
    phase = Tasks(math.inf)
    phase.stop = lambda: bench.network.now >= began + 6
    bench.run(phase)
    batches = [batch for worker in bench.workers for batch in worker.batches]
    dues = [batch.start + due - began for batch in batches for due in batch.dues if due is not None]
    assert sorted(dues) == pytest.approx([2 + number / 100 for number in range(200)], abs=0.01)
    # What users were to begin next when the stage with a rate began was recalled, and not sent in it.
    assert all(any(isinstance(each, wire.Recall) for each in worker.notices) for worker in bench.workers)
    assert phase.taken_back > 0
    assert sum(not batch.dues for batch in batches) > 2
    assert all(len(batch.dues) in (0, len(batch.jobs)) for batch in batches)


@pytest.mark.parametrize("ways", [(0.0, 0.0), (0.15, 0.15), (0.0, 0.15), (0.4, 0.4)])
def test_operations_that_are_due_reach_a_worker_far_away_before_that(ways: tuple[float, float]) -> None:
    """The clocks of the simulated workers show the time of the master, which it does not know."""
    bench = Bench(ways=ways)
    bench.each(seconds=0.005)
    plan = (Stage(5, (16, 16), (200, 200)),)
    round_trip = bench.fleet.allocation.find_round_trip()
    assert round_trip == pytest.approx(2 * max(ways), abs=1e-6)
    began = bench.network.now + LEAD_SECONDS + round_trip
    bench.loop.pace = StagedPace(plan, Arrivals(plan, "even", 1), began)
    phase = Tasks(math.inf)
    phase.stop = lambda: bench.network.now >= began + 5
    bench.run(phase)
    early = [each for worker in bench.workers for each in worker.early]
    assert len(early) == 1000
    assert min(early) > 0
    moments = [
        batch.start + due for worker in bench.workers for batch in worker.batches for due in batch.dues
    ]
    assert sorted(moments) == pytest.approx([began + number / 200 for number in range(1000)], abs=1e-3)


class FewObjects(Tasks):
    """A phase whose tasks each need one of some objects until they have ended."""

    def __init__(self, objects: int) -> None:
        super().__init__(math.inf)
        self.free = objects

    def next_tasks(self, count: int) -> Sequence[Task]:
        tasks = super().next_tasks(min(count, self.free))
        self.free -= len(tasks)
        return tasks

    def done(self, ended: Sequence[tuple[Task, JobResult]], worker: WorkerState) -> None:
        super().done(ended, worker)
        self.free += len(ended)


def test_where_objects_are_few_a_worker_far_away_does_not_hold_all_of_them() -> None:
    bench = Bench(ClosedLoop(16), ways=(0.0, 0.15))
    near = bench.workers[0]
    bench.each(seconds=0.005)
    phase = FewObjects(200)
    began = bench.network.now
    phase.stop = lambda: bench.network.now >= began + 10
    busy: list[int] = []
    for step in range(20, 100):
        bench.network.at(step / 10 + 0.0123, lambda: busy.append(near.busy))
    bench.run(phase)
    assert sum(busy) / len(busy) > 7.6
    # The near one holds few ahead of its 8 users; the far one gets the rest, which go there and back.
    assert phase.ended[None] / 10 > 0.95 * (8 / 0.005 + (200 - 40) / 0.305)


class WatchedFewObjects(FewObjects, Watched):
    pass


def test_while_all_users_are_busy_nothing_but_results_brings_tasks_where_objects_are_few() -> None:
    bench = Bench()
    bench.each(seconds=1.0)
    phase = WatchedFewObjects(12)
    phase.stop = lambda: bench.network.now >= bench.began + 10
    bench.run(phase)
    # At each tick and with results.
    assert phase.asked < 50 * 10


class Shrinking(ClosedLoop):
    """Fewer users after the first ten seconds."""

    def users(self, now: float) -> int:
        return 8 if now < 1010.0 else 2

    def room(self, now: float, sent: int, in_flight: int, capacity: int) -> int:
        return min(capacity, self.users(now)) - in_flight


class Stages(ClosedLoop):
    """More users after the first ten seconds."""

    def users(self, now: float) -> int:
        return 2 if now < 1010.0 else 8

    def room(self, now: float, sent: int, in_flight: int, capacity: int) -> int:
        return min(capacity, self.users(now)) - in_flight


def test_a_pace_may_change_the_number_of_users() -> None:
    bench = Bench(Stages(8))
    most: Counter[int] = Counter()

    def answer(job: Job, parameters: RunParameters) -> JobResult | None:
        second = int(bench.network.now - 1000.0)
        most[second] = max(most[second], sum(worker.busy for worker in bench.workers))
        return success(job, parameters)

    bench.each(answer=answer, seconds=0.1)
    phase = Tasks(math.inf)
    phase.stop = lambda: bench.network.now > 1020.0
    bench.run(phase)
    assert [most[second] for second in range(1, 20)] == [2] * 9 + [8] * 10
    assert [worker.jobs() for worker in bench.workers] == pytest.approx([500, 500], rel=0.05)


def test_users_do_not_wait_until_a_message_has_its_least_size() -> None:
    ended = {}
    for least in (1, 64):
        bench = Bench(ClosedLoop(8, least))
        phase = FewObjects(8)
        phase.stop = lambda bench=bench: bench.network.now >= bench.began + 5
        bench.run(phase)
        ended[least] = phase.ended[None]
    assert ended[64] >= 0.95 * ended[1] > 1000
