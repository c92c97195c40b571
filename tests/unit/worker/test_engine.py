"""The contract of an engine, as the slots and the no-op engine keep it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest
from fault_server import FaultServer, Reply, Request
from msgspec import structs

from ssbench.fleet.wire import JobBatch, RunParameters
from ssbench.scenario.operations import READ
from ssbench.store.contract import JobResult
from ssbench.store.request_options import RequestOptions
from ssbench.worker.engine import Engine, GreenletEngine, NoopEngine, make_engine

SLOTS = 3


class Gate:
    """The rule of a server that answers only while it is open; counts the requests that wait at once."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.waiting = self.most = 0
        self.tokens: list[str | None] = []
        self.status = 200
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Reply:
        with self._lock:
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            self.tokens.append(request.headers.get("x-auth-token"))
        self.open.wait(60)
        with self._lock:
            self.waiting -= 1
        return Reply(self.status)


class Results:
    """The worker's callback."""

    def __init__(self) -> None:
        self.ended: list[tuple[int, int, str | None]] = []
        self.refused: list[int | None] = []
        self.all: list[JobResult] = []

    def __call__(self, batch_id: int, results: list[JobResult], refused: int | None = None) -> None:
        self.ended += [(batch_id, result.job_id, getattr(result, "cause", None)) for result in results]
        self.refused.append(refused)
        self.all += results


def jobs(batch_id: int, count: int) -> JobBatch:
    return JobBatch(batch_id, [(batch_id * 100 + place, READ.code, 0, 0, 1, 0) for place in range(count)])


def in_hub(call: Callable[[], object]) -> None:
    """Call from the event loop, as a worker does; return when it has returned."""
    done = gevent.event.Event()

    def then() -> None:
        call()
        done.set()

    gevent.get_hub().loop.run_callback(then)
    assert done.wait(60)


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        gevent.sleep(0.001)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def server(gate: Gate) -> Iterator[FaultServer]:
    with FaultServer(rule=gate) as running:
        yield running
        gate.open.set()


@pytest.fixture
def parameters(server: FaultServer) -> RunParameters:
    return RunParameters(
        1,
        generation=4,
        token="old",
        storage_urls=[f"{server.url}"],
        size_classes=["t"],
        requests=RequestOptions(retries=0),
    )


@pytest.fixture
def results() -> Results:
    return Results()


@pytest.fixture
def engine(parameters: RunParameters, results: Results) -> Iterator[Engine]:
    made = make_engine(parameters, SLOTS, results)
    assert isinstance(made, GreenletEngine)
    yield made
    made.close()


def test_each_job_ends_once_and_no_more_than_the_slots_go_on_at_once(
    engine: Engine, gate: Gate, results: Results
) -> None:
    in_hub(lambda: engine.submit(jobs(1, 2)))
    in_hub(lambda: engine.submit(jobs(2, 5)))
    until(lambda: gate.waiting == SLOTS)
    assert (engine.busy, engine.waiting) == (SLOTS, 4)
    gate.open.set()
    until(lambda: len(results.ended) == 7)
    assert sorted(results.ended) == [(1, 100 + n, None) for n in range(2)] + [
        (2, 200 + n, None) for n in range(5)
    ]
    assert (engine.busy, engine.waiting, gate.most) == (0, 0, SLOTS)


def test_a_user_sends_its_next_request_before_the_result_of_its_last_is_passed_on(
    parameters: RunParameters, gate: Gate
) -> None:
    begun = []
    engine: GreenletEngine
    engine = GreenletEngine(parameters, 1, lambda *_: begun.append(engine.begun))
    gate.open.set()
    in_hub(lambda: engine.submit(jobs(1, 3)))
    until(lambda: len(begun) == 3)
    engine.close()
    assert begun == [101, 102, 102]


def test_a_slot_that_was_stopped_begins_nothing_that_others_may_have(
    engine: Engine, gate: Gate, results: Results
) -> None:
    """It goes on where it was when it is continued, before the worker can take anything back."""
    in_hub(lambda: engine.submit(jobs(1, SLOTS + 3)))
    until(lambda: gate.waiting == SLOTS)
    in_hub(lambda: engine.trust_until(time.monotonic()))
    gate.open.set()
    until(lambda: len(results.ended) == SLOTS)
    gevent.sleep(0)
    assert (engine.busy, engine.waiting, gate.most) == (0, 3, SLOTS)
    in_hub(lambda: engine.submit(jobs(2, 1)))
    assert engine.waiting == 4
    # The master was heard of again before they were handed back.
    in_hub(lambda: engine.trust_until(time.monotonic() + 60))
    until(lambda: len(results.ended) == SLOTS + 4)


def test_a_job_begins_at_once_where_a_slot_is_idle(engine: Engine, gate: Gate, results: Results) -> None:
    gate.open.set()
    in_hub(lambda: engine.submit(jobs(1, 1)))
    until(lambda: results.ended)
    until(lambda: engine.busy == 0)
    gate.open.clear()
    busy: list[int] = []

    def submit() -> None:
        engine.submit(jobs(2, 1))
        busy.append(engine.busy)

    in_hub(submit)
    assert busy == [1]


def test_no_more_jobs_go_on_than_there_are_users(engine: Engine, gate: Gate, results: Results) -> None:
    in_hub(lambda: engine.submit(structs.replace(jobs(1, 4), users=1)))
    until(lambda: gate.waiting == 1)
    assert (engine.busy, engine.waiting, engine.begun) == (1, 3, 100)
    in_hub(lambda: engine.share(2))
    until(lambda: gate.waiting == 2)
    assert (engine.busy, engine.waiting, engine.begun) == (2, 2, 101)
    # Fewer: what goes on is not stopped, and the slot above takes no other job.
    in_hub(lambda: engine.share(1))
    gate.open.set()
    until(lambda: len(results.ended) == 4 and not engine.busy)
    assert [job for _, job, _ in results.ended[2:]] == [102, 103]
    gate.open.clear()
    in_hub(lambda: engine.submit(structs.replace(jobs(2, 5), users=100)))
    until(lambda: gate.waiting == SLOTS)
    assert (engine.busy, engine.waiting) == (SLOTS, 2)


def test_jobs_begin_when_they_are_due_and_say_how_late(
    engine: Engine, gate: Gate, parameters: RunParameters, results: Results
) -> None:
    gate.open.set()
    start = time.monotonic()
    # Not in the order of their numbers: one of them was sent again.
    batch = structs.replace(jobs(1, 4), start=start, dues=[0.15, 0.05, 0.1, None])
    in_hub(lambda: engine.submit(batch))
    until(lambda: len(results.ended) == 4)
    begun = sorted(results.all, key=lambda result: result.completed - (result.last_byte or 0.0))
    assert [result.job_id for result in begun] == [103, 101, 102, 100]
    assert begun[0].late is None
    for result, due in zip(begun[1:], (0.05, 0.1, 0.15), strict=True):
        assert result.late is not None
        assert result.late >= 0
        assert result.last_byte is not None
        assert result.completed - result.last_byte - result.late == pytest.approx(start + due, abs=1e-6)
    assert engine.begun == 103


def test_jobs_that_are_due_wait_for_a_user_and_none_is_dropped(
    engine: Engine, gate: Gate, results: Results
) -> None:
    batch = structs.replace(jobs(1, 5), start=time.monotonic() - 1.0, dues=[0.0, 0.1, 0.2, 0.3, 1e6], users=1)
    in_hub(lambda: engine.submit(batch))
    until(lambda: gate.waiting == 1)
    assert (engine.busy, engine.waiting) == (1, 4)
    gate.open.set()
    until(lambda: len(results.ended) == 4)
    assert [job for _, job, _ in results.ended] == [100, 101, 102, 103]
    lates = [result.late for result in results.all]
    assert all(late is not None and late >= 0.7 for late in lates)
    assert engine.cancel() == [(1, 104)]
    assert engine.waiting == 0


def test_a_user_thinks_after_each_job(parameters: RunParameters, gate: Gate, results: Results) -> None:
    gate.open.set()
    engine: GreenletEngine
    busy = []

    def ended(*args: Any) -> None:
        results(*args)
        busy.append(engine.busy)

    engine = GreenletEngine(structs.replace(parameters, think_time=0.1), SLOTS, ended)
    try:
        in_hub(lambda: engine.submit(structs.replace(jobs(1, 3), users=1)))
        until(lambda: len(results.ended) == 3)
        ends = [result.completed for result in results.all]
        begins = [result.completed - (result.last_byte or 0.0) for result in results.all]
        assert all(begin - end >= 0.0999 for end, begin in zip(ends, begins[1:], strict=False))
        # It is not free before it has thought.
        assert busy == [1] * 3
        until(lambda: engine.busy == 0)
    finally:
        engine.close()


def test_a_no_op_job_ends_when_it_is_due(parameters: RunParameters, results: Results) -> None:
    engine = make_engine(RunParameters(**{**_fields(parameters), "noop": True}), SLOTS, results)
    start = time.monotonic()
    in_hub(lambda: engine.submit(structs.replace(jobs(3, 2), start=start, dues=[1e6, None])))
    assert [job for _, job, _ in results.ended] == [301]
    in_hub(lambda: engine.submit(structs.replace(jobs(4, 1), start=start, dues=[0.05])))
    until(lambda: len(results.ended) == 2)
    late = results.all[1].late
    assert late is not None
    assert late >= 0
    assert results.all[1].completed - late == pytest.approx(start + 0.05, abs=1e-6)
    assert engine.cancel() == [(3, 300)]
    engine.close()


@pytest.fixture
def no_op(parameters: RunParameters, results: Results) -> Iterator[Engine]:
    fields = {**_fields(parameters), "noop": True, "think_time": 0.1}
    engine = make_engine(RunParameters(**fields), SLOTS, results)
    yield engine
    engine.close()


def test_users_of_a_no_op_run_think(no_op: Engine, results: Results) -> None:
    begun = []

    def submit() -> None:
        no_op.submit(structs.replace(jobs(1, 5), users=2))
        begun.append((no_op.busy, no_op.waiting, no_op.begun))

    in_hub(submit)
    assert begun == [(2, 3, 101)]  # however long after that this is
    until(lambda: len(results.ended) == 5 and not no_op.busy)
    ends = [result.completed for result in results.all]
    assert [job for _, job, _ in results.ended] == [100, 101, 102, 103, 104]
    assert ends[2] - ends[0] >= 0.0999
    assert ends[4] - ends[2] >= 0.0999


def test_a_no_op_job_waits_for_a_user(no_op: Engine, results: Results) -> None:
    start = time.monotonic()
    cancelled = []

    def submit() -> None:
        no_op.submit(structs.replace(jobs(1, 3), users=1))
        no_op.submit(structs.replace(jobs(2, 1), users=1, start=start, dues=[0.0]))
        cancelled.extend(no_op.cancel())
        no_op.submit(structs.replace(jobs(3, 1), users=1, start=start, dues=[0.0]))

    in_hub(submit)  # all before the user has thought
    assert cancelled == [(1, 101), (1, 102), (2, 200)]
    until(lambda: len(results.ended) == 2)
    assert results.all[1].late >= 0.0999
    in_hub(lambda: no_op.submit(structs.replace(jobs(4, 1), users=0)))
    assert no_op.waiting == 1
    in_hub(lambda: no_op.share(1))
    assert no_op.waiting == 0


def test_cancel_takes_back_what_has_not_begun(engine: Engine, gate: Gate, results: Results) -> None:
    in_hub(lambda: engine.submit(jobs(1, 5)))
    until(lambda: gate.waiting == SLOTS)
    assert engine.cancel() == [(1, 103), (1, 104)]
    assert (engine.busy, engine.waiting) == (SLOTS, 0)
    gate.open.set()
    until(lambda: engine.busy == 0)
    assert sorted(job for _, job, _ in results.ended) == [100, 101, 102]


def test_after_close_no_result_is_passed_on_and_no_job_begins(
    engine: Engine, gate: Gate, results: Results
) -> None:
    in_hub(lambda: engine.submit(jobs(1, 5)))
    until(lambda: gate.waiting == SLOTS)
    engine.close()
    gate.open.set()
    until(lambda: engine.busy == 0)
    gevent.sleep(0)
    assert not results.ended
    assert len(gate.tokens) == SLOTS


def test_close_ends_idle_slots(parameters: RunParameters, gate: Gate, results: Results) -> None:
    engine = GreenletEngine(parameters, SLOTS, results)
    gate.open.set()
    in_hub(lambda: engine.submit(jobs(1, 3)))
    until(lambda: len(results.ended) == 3 and engine.busy == 0)
    idle = list(engine._idle)
    engine.close()
    gevent.joinall(idle, timeout=10)
    assert idle
    assert all(slot.dead for slot in idle)


def test_a_new_token_is_for_jobs_that_begin_later(
    engine: Engine, gate: Gate, results: Results, parameters: RunParameters
) -> None:
    gate.status = 401
    in_hub(lambda: engine.submit(jobs(1, SLOTS + 1)))
    until(lambda: gate.waiting == SLOTS)
    engine.update(RunParameters(**{**_fields(parameters), "generation": 5, "token": "new"}))
    gate.open.set()
    until(lambda: len(results.ended) == SLOTS + 1)
    assert gate.tokens == ["old"] * SLOTS + ["new"]
    assert sorted(set(results.refused)) == [4, 5]


def _fields(parameters: RunParameters) -> dict[str, object]:
    return {name: getattr(parameters, name) for name in parameters.__struct_fields__}


def test_a_no_op_run_ends_jobs_within_submit_and_makes_no_request(
    parameters: RunParameters, server: FaultServer, results: Results
) -> None:
    engine = make_engine(RunParameters(**{**_fields(parameters), "noop": True}), SLOTS, results)
    assert isinstance(engine, NoopEngine)
    engine.submit(jobs(3, 5))
    assert results.ended == [(3, 300 + place, None) for place in range(5)]
    assert results.refused == [None]
    assert (engine.busy, engine.waiting, engine.cancel()) == (0, 0, [])
    engine.close()
    assert not server.requests
