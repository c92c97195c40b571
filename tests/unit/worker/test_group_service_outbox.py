"""What a worker sends and when, over sockets within the process and a loop that the test turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
import zmq

from ssbench.fleet import wire
from ssbench.fleet.wire import Goodbye, JobBatch, JobResults, RunParameters
from ssbench.store.contract import BriefResult, JobResult
from ssbench.worker.engine import Engine
from ssbench.worker.group_service import ResultOutbox
from ssbench.worker.lag_meter import LagMeter


class Loop:
    """What is to be called in this turn, and by the timer."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []
        self.rings: Callable[[], None] | None = None
        self.repeat = 0.0

    def run_callback(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def timer(self, after: float, repeat: float) -> Loop:
        self.repeat = repeat
        return self

    @property
    def active(self) -> bool:
        return self.rings is not None

    def close(self) -> None:
        self.rings = None

    def again(self, callback: Callable[[], None]) -> None:
        self.rings = callback

    def stop(self) -> None:
        self.rings = None

    def turn(self) -> None:
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback()


class Jobs:
    """What an engine says of its jobs."""

    waiting = 0
    begun = 0


class Bench:
    """An outbox, and the master's end of its socket."""

    def __init__(self, after_jobs: tuple[int, Callable[[], None]] | None = None) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.master = self._context.socket(zmq.PULL)
        self._socket = self._context.socket(zmq.PUSH)
        self.loop = Loop()
        self.engine = Jobs()
        self.lag = LagMeter(cast(Any, self.loop))
        self.outbox = ResultOutbox(self._socket, 7, 70, self.loop, self.lag, after_jobs)
        self.outbox.begin(cast(Engine, self.engine), RunParameters(5, generation=1))

    def connect(self) -> None:
        self.master.bind("inproc://results")
        self._socket.connect("inproc://results")

    def sent(self) -> list[wire.FromWorker]:
        """Return the messages that were sent."""
        messages = []
        while self.master.poll(0):
            frame = self.master.recv()
            assert len(frame) <= wire.MAX_WORKER_MESSAGE_BYTES
            messages.append(wire.unpack_from_worker(frame))
        return messages

    def results(self) -> list[list[int]]:
        """Return the numbers of the jobs of each message of results that was sent."""
        return [
            [each.job_id for each in message.results]
            for message in self.sent()
            if isinstance(message, JobResults)
        ]

    def close(self) -> None:
        self._socket.close(0)
        self.master.close(0)
        self._context.term()


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    made.connect()
    yield made
    made.close()


def batch(batch_id: int, count: int, low: int = wire.MAX_JOBS) -> JobBatch:
    return JobBatch(batch_id, [(batch_id + place, 1, 0, 0, 1, 0) for place in range(count)], low=low)


def ended(job_id: int) -> BriefResult:
    return BriefResult(job_id, 0.001, 0.002, 1.0)


def test_results_of_one_turn_go_in_one_message_when_few_jobs_are_left(bench: Bench) -> None:
    bench.outbox.expect(batch(10, 3))
    bench.outbox.ended(10, [ended(10)])
    bench.outbox.ended(10, [ended(11)])
    assert bench.results() == []
    bench.loop.turn()
    assert bench.results() == [[10, 11]]
    assert bench.outbox.held == {10: 1}


def test_results_are_gathered_while_many_jobs_wait(bench: Bench) -> None:
    bench.engine.waiting, bench.engine.begun = 30, 13
    bench.outbox.expect(batch(10, 40, low=20))
    bench.outbox.ended(10, [ended(10)])
    rings = bench.loop.rings
    assert rings is not None
    bench.outbox.ended(10, [ended(11)])
    bench.loop.turn()
    assert bench.results() == []
    rings()
    (message,) = bench.sent()
    assert isinstance(message, JobResults)
    assert [each.job_id for each in message.results] == [10, 11]
    assert (message.begun, message.received) == (13, 10)
    assert 0.0 <= message.held < 60.0
    # As many are left as the master refills at: it is told at once, and again when half of them are left.
    for waiting, at_once in ((20, True), (11, False), (10, True)):
        bench.engine.waiting = waiting
        bench.outbox.ended(10, [ended(30 - waiting + 10)])
        bench.loop.turn()
        assert bool(bench.results()) == at_once


def test_many_results_are_sent_before_the_time_is_over(bench: Bench) -> None:
    bench.engine.waiting = 1000
    bench.outbox.expect(batch(10, 1000, low=20))
    jobs = range(10, 10 + wire.GATHERED_RESULTS)
    bench.outbox.ended(10, [ended(job) for job in jobs[:-1]])
    bench.loop.turn()
    assert bench.results() == []
    bench.outbox.ended(10, [ended(jobs[-1])])
    bench.loop.turn()
    assert bench.results() == [[*jobs]]
    assert bench.loop.rings is None


@pytest.mark.parametrize(("waiting", "at_once"), [(3, False), (2, False), (1, True), (0, True)])
def test_results_are_gathered_with_few_jobs_ahead_too(bench: Bench, waiting: int, at_once: bool) -> None:
    bench.engine.waiting = waiting
    bench.outbox.expect(batch(10, 4, low=1))
    bench.outbox.ended(10, [ended(10)])
    bench.loop.turn()
    assert bench.results() == [[10]] * at_once


def test_a_refused_token_is_named_by_the_parameters_it_came_with(bench: Bench) -> None:
    bench.outbox.expect(batch(10, 3))
    bench.outbox.update(RunParameters(5, generation=2))
    bench.outbox.ended(10, [ended(10)], 1)
    bench.outbox.flush()
    bench.outbox.ended(10, [ended(11)])
    bench.outbox.flush()
    assert [cast(JobResults, message).generation for message in bench.sent()] == [1, 2]


def test_a_refused_token_is_told_at_once_while_many_jobs_wait(bench: Bench) -> None:
    bench.engine.waiting = 30
    bench.outbox.expect(batch(10, 40, low=20))
    bench.outbox.ended(10, [ended(10)], 1)
    bench.loop.turn()
    assert bench.results() == [[10]]


def test_what_another_run_has_left_is_not_sent(bench: Bench) -> None:
    bench.outbox.expect(batch(10, 3))
    bench.outbox.ended(10, [ended(10)])
    bench.outbox.forget()
    bench.outbox.begin(cast(Engine, bench.engine), RunParameters(6))
    bench.loop.turn()
    assert bench.sent() == []
    assert bench.outbox.held == {}


def test_what_is_to_be_called_after_so_many_jobs() -> None:
    called: list[int] = []
    bench = Bench((3, lambda: called.append(1)))
    bench.connect()
    bench.outbox.expect(batch(10, 5))
    for jobs, calls in (((10, 11), 0), ((12,), 1), ((13, 14), 1)):
        bench.outbox.ended(10, [ended(job) for job in jobs])
        bench.outbox.flush()
        assert len(called) == calls
    bench.close()


def test_without_a_connection_nothing_is_sent_and_the_caller_is_told() -> None:
    bench = Bench()
    assert not bench.outbox.send(Goodbye(7, 70, "the end"))
    bench.connect()
    assert bench.outbox.send(Goodbye(7, 70, "the end"))
    assert bench.sent() == [Goodbye(7, 70, "the end")]
    bench.close()


def test_results_that_are_too_long_for_a_message_go_in_several(bench: Bench) -> None:
    results = [JobResult(job, None, None, 1.0, cause="c", detail="\u20ac" * 500) for job in range(1000)]
    assert bench.outbox.send(JobResults(5, 7, 70, 1.0, 0, results))
    numbers = bench.results()
    assert len(numbers) > 1
    assert [job for each in numbers for job in each] == list(range(1000))


def test_the_first_results_after_a_gap_tell_of_it(bench: Bench) -> None:
    # No heartbeat may come before the end of the run.
    detail = "\u20ac" * 500
    for first, count in ((0, 1000), (1000, 1)):
        bench.outbox.expect(batch(first, count))
        if not first:
            bench.lag._due = 1.0
            bench.lag._note_gap(3.5)
        jobs = range(first, first + count)
        bench.outbox.ended(first, [JobResult(job, None, None, 4.0, cause="c", detail=detail) for job in jobs])
        bench.outbox.flush()
    gaps = [message.gaps for message in bench.sent() if isinstance(message, JobResults)]
    assert len(gaps) > 2
    assert gaps == [[(1.0, 3.5)], *([] for _ in gaps[1:])]


def test_results_are_gathered_for_as_long_as_the_master_says(bench: Bench) -> None:
    bench.engine.waiting = 50
    bench.outbox.expect(JobBatch(1, [(number, 0, 0, 0, 0, 0) for number in range(9)], low=10))
    assert bench.loop.repeat == wire.GATHERING_SECONDS
    bench.outbox.ended(1, [BriefResult(0, 0.0, 0.0, 0.0)])
    bench.outbox.expect(JobBatch(20, [(20, 0, 0, 0, 0, 0)], low=10, gathering=0.25))
    assert bench.loop.repeat == 0.25
    assert bench.loop.rings is not None  # what was gathered before is not forgotten
    bench.loop.rings()
    assert bench.results() == [[0]]
