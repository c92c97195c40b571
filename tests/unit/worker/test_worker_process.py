"""The worker between two sockets of the test and an engine that makes no request."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import gevent
import pytest
import zmq
from golden_words import GoldenWords

from ssbench.base.errors import ExitCode, UsageError
from ssbench.fleet import wire
from ssbench.fleet.sockets import WorkerSockets
from ssbench.fleet.wire import Goodbye, Handback, Heartbeat, Job, JobBatch, JobResults, Ping, RunParameters
from ssbench.store.contract import JobResult
from ssbench.worker import worker_process
from ssbench.worker.engine import JobsEnded
from ssbench.worker.worker_process import Worker, WorkerOptions

CONCURRENCY = 4

#: Seconds that anything may take on a machine with other work to do.
PATIENCE = 60.0


class Answers:
    """The smallest engine: ends each job at once. With ``slots`` it keeps as many, and others wait."""

    slots = 0
    made: list[Answers]

    def __init__(self, parameters: RunParameters, slots: int, ended: JobsEnded) -> None:
        assert slots == CONCURRENCY
        self.parameters = [parameters]
        self._ended = ended
        self.submitted: list[JobBatch] = []
        self.kept: list[tuple[int, int]] = []
        self.closed = False
        self.begun = 0
        self.users = 0
        self.made.append(self)

    def ended(self, batch_id: int, results: list[JobResult], refused: int | None = None) -> None:
        done = {result.job_id for result in results}
        self.kept = [each for each in self.kept if each[1] not in done]
        self._ended(batch_id, results, refused)

    @property
    def busy(self) -> int:
        return min(len(self.kept), self.slots)

    @property
    def waiting(self) -> int:
        return len(self.kept) - self.busy

    def submit(self, batch: JobBatch) -> None:
        self.submitted.append(batch)
        if self.slots:
            self.kept += [(batch.batch_id, job[0]) for job in batch.jobs]
        else:
            self.ended(batch.batch_id, [answer(job[0]) for job in batch.jobs])

    def share(self, users: int) -> None:
        self.users = users

    def trust_until(self, moment: float) -> None:
        self.trusted_until = moment

    def update(self, parameters: RunParameters) -> None:
        self.parameters.append(parameters)

    def cancel(self) -> list[tuple[int, int]]:
        waiting, self.kept = self.kept[self.slots :], self.kept[: self.slots]
        return waiting

    def close(self) -> None:
        self.closed = True


def answer(job_id: int, cause: str | None = None) -> JobResult:
    return JobResult(job_id, 0.001, 0.002, time.monotonic(), cause=cause, unauthorized=cause is not None)


def jobs(first: int, count: int) -> list[Job]:
    return [(first + place, 1, 0, 0, 1, 0) for place in range(count)]


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        gevent.sleep(0.001)


class Bench:
    """A worker in a greenlet, and the master's ends of its sockets."""

    def __init__(self, folder: Path, engine: type[Answers]) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.work = self._context.socket(zmq.ROUTER)
        self.results = self._context.socket(zmq.PULL)
        self.work.setsockopt(zmq.ROUTER_MANDATORY, 1)
        for name, socket in (("work", self.work), ("results", self.results)):
            socket.bind(f"ipc://{folder}/{name}")
        sockets = WorkerSockets(f"ipc://{folder}/work", f"ipc://{folder}/results")
        self.address = wire.work_address(sockets.instance)
        self.worker = Worker(WorkerOptions(7, CONCURRENCY), sockets, engine)
        self.running = gevent.spawn(self.worker.run)
        # As a master does: jobs only for a worker whose heartbeat has come. The two sockets connect one
        # after the other, and what a worker has to say before the second one is connected is lost.
        self.next(Heartbeat)

    def send(self, message: bytes) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.work.send_multipart([self.address, message])
                return
            except zmq.ZMQError:  # not connected yet
                assert time.monotonic() < end
                gevent.sleep(0.001)

    def batch(self, parameters: RunParameters, batch: JobBatch) -> None:
        self.send(wire.pack_parameters(parameters) + wire.pack_message(batch))

    def next(self, *kinds: type) -> wire.FromWorker:
        """Return the next message of one of these kinds."""
        end = time.monotonic() + PATIENCE
        others = []
        while time.monotonic() < end:
            while self.results.poll(0):
                message = wire.unpack_from_worker(self.results.recv())
                if isinstance(message, kinds):
                    return message
                others.append(message)
            gevent.sleep(0.001)
        raise AssertionError(f"none of {kinds} came, but {others}")

    def close(self) -> None:
        self.worker.stop("the test is over")
        self.running.join(PATIENCE)
        self.work.close(0)
        self.results.close(0)
        self._context.term()


@pytest.fixture
def engine() -> type[Answers]:
    return type("Engine", (Answers,), {"made": []})


@pytest.fixture
def bench(tmp_path: Path, engine: type[Answers]) -> Iterator[Bench]:
    made = Bench(tmp_path, engine)
    yield made
    made.close()


def test_results_of_an_engine_that_answers_at_once(bench: Bench, engine: type[Answers]) -> None:
    history = [(1, 2.0, 2.5, False), (0, None, None, True), (0, None, None, False)]
    bench.batch(RunParameters(5, generation=2), JobBatch(10, jobs(10, 3), history))
    message = bench.next(JobResults)
    assert isinstance(message, JobResults)
    assert (message.run_id, message.worker_id, message.generation) == (5, 7, 2)
    assert [result.job_id for result in message.results] == [10, 11, 12]
    assert engine.made[0].submitted[0].histories == history
    bench.send(wire.pack_notice(Ping(3, 1.5)))
    beat = bench.next(Heartbeat)
    while beat.ping != 1.5:
        beat = bench.next(Heartbeat)
    assert (beat.run_id, beat.held, beat.capacity, beat.master) == (5, [], CONCURRENCY, 3)


def test_jobs_beyond_what_a_worker_holds_are_handed_back(
    bench: Bench, engine: type[Answers], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "MAX_PREFETCHED", 0)
    engine.slots = 2
    bench.batch(RunParameters(5), JobBatch(10, jobs(10, 3)))
    bench.batch(
        RunParameters(5), JobBatch(20, jobs(20, 3), [(place, None, None, False) for place in range(3)])
    )
    handback = bench.next(Handback)
    assert (handback.run_id, handback.job_ids, handback.capacity) == (5, [21, 22], CONCURRENCY)
    (only,) = engine.made
    assert [(batch.batch_id, len(batch.jobs)) for batch in only.submitted] == [(10, 3), (20, 1)]
    assert only.submitted[1].histories == [(0, None, None, False)]
    bench.batch(RunParameters(5), JobBatch(30, jobs(30, 1)))
    assert bench.next(Handback).job_ids == [30]
    only.ended(10, [answer(11)])
    only.ended(10, [answer(10), answer(12)])
    ended = []
    while len(ended) < 3:
        ended += [result.job_id for result in bench.next(JobResults).results]
    assert sorted(ended) == [10, 11, 12]
    bench.send(wire.pack_notice(Ping(3, 2.5)))
    while (beat := bench.next(Heartbeat)).ping != 2.5:
        pass
    assert beat.held == [20]


def test_jobs_that_have_not_begun_are_handed_back_when_the_master_asks(
    bench: Bench, engine: type[Answers]
) -> None:
    engine.slots = 2
    bench.batch(RunParameters(5), JobBatch(10, jobs(10, 5), users=2))
    bench.send(wire.pack_notice(wire.Recall(4)))  # of another run
    bench.send(wire.pack_notice(wire.Share(5, 3)))
    bench.send(wire.pack_notice(wire.Recall(5)))
    handback = bench.next(Handback)
    assert (handback.run_id, handback.job_ids, handback.asked) == (5, [12, 13, 14], True)
    (only,) = engine.made
    assert only.users == 3
    only.ended(10, [answer(10), answer(11)])
    assert len(bench.next(JobResults).results) == 2
    bench.send(wire.pack_notice(Ping(3, 2.5)))
    while (beat := bench.next(Heartbeat)).ping != 2.5:
        pass
    assert beat.held == []


def test_what_the_master_may_have_given_to_others_is_not_begun(
    bench: Bench, engine: type[Answers], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.slots = 2
    # A batch that was delayed on its way.
    bench.batch(RunParameters(5), JobBatch(10, jobs(10, 3), heard=time.monotonic() - 100.0))
    assert bench.next(Handback).job_ids == [10, 11, 12]
    bench.batch(RunParameters(5), JobBatch(20, jobs(20, 3), heard=time.monotonic()))
    while not engine.made[0].submitted:
        gevent.sleep(0.001)
    # A ping from before it changes nothing; then the master hears nothing for long.
    bench.send(wire.pack_notice(Ping(3, 1.5, time.monotonic() - 100.0)))
    while bench.next(Heartbeat).ping != 1.5:
        pass
    assert engine.made[0].waiting == 1
    assert 0 < engine.made[0].trusted_until - time.monotonic() < wire.LOST_AFTER
    monkeypatch.setattr(worker_process, "_SURE_SECONDS", 0.0)
    assert bench.next(Handback).job_ids == [22]
    assert engine.made[0].busy == 2


def test_a_worker_that_was_held_up_keeps_what_it_has_begun_until_it_hears_that_it_is_lost(
    bench: Bench, engine: type[Answers], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.slots = 2
    bench.send(wire.pack_notice(Ping(3, 1.5, None, 4)))  # in earlier runs
    bench.batch(RunParameters(5), JobBatch(10, jobs(10, 3)))
    wait_until(lambda: bool(engine.made and engine.made[0].submitted))
    monkeypatch.setattr(worker_process, "LOST_AFTER", -1.0)
    bench.send(wire.pack_notice(Ping(3, 2.5, None, 4)))
    assert bench.next(Handback).job_ids == [12]
    (only,) = engine.made
    # The master may have stood still as well.
    only.ended(10, [answer(10)])
    assert [result.job_id for result in bench.next(JobResults).results] == [10]
    assert not only.closed
    bench.send(wire.pack_notice(Ping(3, 3.5, None, 5)))
    while (beat := bench.next(Heartbeat)).ping != 3.5:
        assert beat.held == [10]
    assert (beat.run_id, beat.held, only.closed) == (0, [], True)


def test_jobs_stand_for_a_ping(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "UNASKED_HEARTBEAT_SECONDS", 0.5)
    bench.send(wire.pack_notice(Ping(3, 1.5)))
    while bench.next(Heartbeat).ping != 1.5:
        pass
    for number in range(10, 1000, 10):
        sent = time.monotonic()
        bench.batch(RunParameters(5), JobBatch(number, jobs(number, 1)))
        if isinstance(message := bench.next(JobResults, Heartbeat), Heartbeat):
            break
    else:
        message = bench.next(Heartbeat)
    assert message.clock >= sent + 0.5


def test_a_worker_whose_results_go_out_is_not_silent(bench: Bench, engine: type[Answers]) -> None:
    engine.slots = 1
    bench.batch(RunParameters(5), JobBatch(10, jobs(10, 3)))
    wait_until(lambda: bool(engine.made and engine.made[0].submitted))
    engine.made[0].ended(10, [answer(10)])
    assert len(bench.next(JobResults).results) == 1
    bench.worker._beat_at -= 100.0
    bench.send(wire.pack_notice(Ping(3, 1.5)))
    while (message := bench.next(Handback, Heartbeat)).ping != 1.5:
        pass
    assert message.held == [10]


def test_later_parameters_of_a_run_go_to_its_engine_and_refusals_name_the_token(
    bench: Bench, engine: type[Answers]
) -> None:
    engine.slots = CONCURRENCY
    bench.batch(RunParameters(5, generation=1), JobBatch(10, jobs(10, 1)))
    bench.batch(RunParameters(5, generation=2), JobBatch(20, jobs(20, 1)))
    wait_until(lambda: bool(engine.made) and len(engine.made[0].submitted) == 2)
    (only,) = engine.made
    assert [each.generation for each in only.parameters] == [1, 2]
    only.ended(10, [answer(10, "HTTP 401")], 1)
    assert bench.next(JobResults).generation == 1
    only.ended(20, [answer(20)])
    assert bench.next(JobResults).generation == 2


def test_jobs_with_parameters_that_a_worker_does_not_have_are_handed_back(
    bench: Bench, engine: type[Answers]
) -> None:
    engine.slots = CONCURRENCY
    parameters = RunParameters(5, group=3)
    whole = wire.pack_parameters(parameters)
    reference = wire.pack_reference(whole, parameters)
    bench.send(reference + wire.pack_message(JobBatch(10, jobs(10, 2))))
    handback = bench.next(Handback)
    assert (handback.run_id, handback.group, handback.job_ids, handback.asked) == (5, 3, [10, 11], False)
    assert engine.made == []
    # Those that it had before, and then had again, change nothing.
    for number, beginning in ((20, whole), (30, reference), (40, whole), (50, reference)):
        bench.send(beginning + wire.pack_message(JobBatch(number, jobs(number, 1))))
    wait_until(lambda: bool(engine.made) and len(engine.made[0].submitted) == 4)
    (only,) = engine.made
    assert [each.batch_id for each in only.submitted] == [20, 30, 40, 50]
    assert len(only.parameters) == 1


def test_a_worker_that_cannot_do_a_run_hands_back_all_its_jobs_before_it_ends(
    tmp_path: Path, engine: type[Answers]
) -> None:
    class Lacking(engine):  # type: ignore[valid-type]  # the class of a fixture
        def __init__(self, parameters: RunParameters, slots: int, ended: JobsEnded) -> None:
            raise UsageError("it lacks what the run needs")

    bench = Bench(tmp_path, Lacking)
    # More than are taken in one turn: when the time is over, some have not been looked at.
    for first in range(1, 2 * worker_process._MESSAGES_A_TURN):
        bench.batch(RunParameters(5), JobBatch(first, jobs(first, 1)))
    heard = [bench.next(Handback, Goodbye)]
    while not isinstance(heard[-1], Goodbye):
        heard.append(bench.next(Handback, Goodbye))
    handed_back = [each for each in heard if isinstance(each, Handback)]
    assert [number for each in handed_back for number in each.job_ids] == [
        *range(1, 2 * worker_process._MESSAGES_A_TURN)
    ]
    # So the master gives it no more.
    assert {each.capacity for each in handed_back} == {0}
    bench.close()
    assert bench.running.get() == ExitCode.USAGE


def test_each_group_of_a_run_has_an_engine_and_results_of_its_own(
    bench: Bench, engine: type[Answers]
) -> None:
    web, backup = (RunParameters(run_id=1, group=group) for group in (0, 1))
    engine.slots = 1
    bench.batch(web, JobBatch(1, jobs(1, 2)))
    bench.batch(backup, JobBatch(2**48 + 1, jobs(2**48 + 1, 2)))
    wait_until(lambda: [len(each.kept) for each in engine.made] == [2, 2])
    bench.send(wire.pack_notice(wire.Recall(1, 1)))
    handed_back = bench.next(Handback)
    assert (handed_back.group, handed_back.job_ids) == (1, [2**48 + 2])
    first, second = engine.made
    second.ended(2**48 + 1, [answer(2**48 + 1)])
    results = bench.next(JobResults)
    assert (results.group, [each.job_id for each in results.results]) == (1, [2**48 + 1])
    # Later parameters of one group leave the other as it is.
    later = RunParameters(run_id=1, group=0, generation=1)
    bench.batch(later, JobBatch(5, jobs(5, 1)))
    wait_until(lambda: len(first.parameters) == 2)
    assert (len(second.parameters), len(engine.made)) == (1, 2)
    first.ended(1, [answer(1)])
    assert bench.next(JobResults).group == 0
    bench.batch(RunParameters(run_id=2), JobBatch(9, jobs(9, 1)))
    wait_until(lambda: first.closed and second.closed)


def test_another_run_closes_the_engine_and_drops_its_results(bench: Bench, engine: type[Answers]) -> None:
    engine.slots = CONCURRENCY
    bench.batch(RunParameters(5), JobBatch(10, jobs(10, 2)))
    wait_until(lambda: bool(engine.made and engine.made[0].submitted))
    engine.slots = 0
    bench.batch(RunParameters(6), JobBatch(10, jobs(10, 1)))
    message = bench.next(JobResults)
    assert (message.run_id, len(message.results)) == (6, 1)
    assert [each.closed for each in engine.made] == [True, False]


def test_jobs_that_have_not_begun_are_handed_back_when_the_worker_ends(
    bench: Bench, engine: type[Answers]
) -> None:
    engine.slots = 1
    bench.batch(RunParameters(5), JobBatch(10, jobs(10, 3)))
    wait_until(lambda: bool(engine.made and engine.made[0].submitted))
    bench.worker.stop("the test says so")
    messages = [bench.next(Handback, Goodbye), bench.next(Handback, Goodbye)]
    assert [type(message) for message in messages] == [Handback, Goodbye]
    assert messages[0].job_ids == [11, 12]
    bench.running.join(PATIENCE)
    assert bench.running.value == ExitCode.OK
    assert engine.made[0].closed


def test_invalid_messages_are_dropped_and_named(
    bench: Bench, engine: type[Answers], caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    engine.slots = CONCURRENCY
    with caplog.at_level(logging.ERROR):
        bench.send(b"nonsense")
        bench.batch(RunParameters(5), JobBatch(10, jobs(10, 1)))
        bench.batch(RunParameters(5), JobBatch(10, jobs(10, 1)))
        wait_until(lambda: len(caplog.messages) == 2)
    golden_words(caplog.messages[0])
    golden_words(caplog.messages[1])
    assert len(engine.made[0].submitted) == 1
