"""Which results are refused: each rule at both sides of its bound."""

from __future__ import annotations

import pytest

from ssbench.fleet.fleet import ResultBounds
from ssbench.fleet.worker_state import History, TaskBatch, WorkerState
from ssbench.scenario.operations import LIST, REMOVE, UPLOAD_IF_MISSING
from ssbench.store.contract import JobResult, RareFields

CREATE, READ, UPDATE, DELETE = range(4)
SENT, NOW = 100.0, 110.0
#: The worker's clock is 1000 s behind the master's.
OFFSET = 1000.0
WORKER = WorkerState(1, 1, "h", 1, "1", 8, NOW)
BOUNDS = ResultBounds((200, 5000), 10)


def batch(kind: int = READ, size: int = 0, history: History | None = None) -> TaskBatch:
    return TaskBatch(1, [(kind, 0, 0, 1, size)], SENT, WORKER, [history] if history else [])


def due(moment: float) -> TaskBatch:
    return TaskBatch(1, [(READ, 0, 0, 1, 0)], SENT, WORKER, dues=[moment])


def result(**changes: object) -> JobResult:
    fields = {"job_id": 1, "first_byte": 0.1, "last_byte": 0.2, "completed": NOW - OFFSET - 1}
    return JobResult(**(fields | changes))


def fault(given: JobResult, of: TaskBatch) -> str | None:
    return BOUNDS.fault(of, given, OFFSET, NOW)


@pytest.mark.parametrize(
    ("changes", "of"),
    [
        ({"size": 150}, batch()),
        ({"size": 200}, batch()),
        ({"size": 5000}, batch()),  # not what was written; the store said so
        ({"first_byte": None, "size": 170}, batch(CREATE, 170)),
        ({"first_byte": None, "size": 170}, batch(UPDATE, 170)),
        ({"first_byte": 0.0, "last_byte": 0.0}, batch(CREATE, 170)),  # a no-op
        ({"size": 70}, batch(REMOVE.code)),  # the body of a 404
        ({"size": 99_000, "status": 404}, batch(REMOVE.code)),  # a page of a proxy
        ({"size": 99_000, "status": 404}, batch(DELETE)),
        ({"size": 0}, batch(DELETE)),
        ({"size": 180}, batch(UPLOAD_IF_MISSING.code, 150)),  # it was there
        ({"size": 9_000_000}, batch(LIST.code)),
        ({"first_byte": 0.2}, batch()),
        ({"first_byte": 9.9, "last_byte": 9.9}, batch()),
        ({"last_byte": 45.0}, batch(history=History(2, NOW - 45.0, {"HTTP 401": 2}))),
        ({"retries": 10, "retried": {"HTTP 503": 10}}, batch()),
        ({"retries": 3, "retried": None}, batch()),
        ({"retries": 12, "retried": {"HTTP 503": 10}}, batch(history=History(2, SENT, {"HTTP 401": 2}))),
        ({"first_byte": None, "last_byte": None, "cause": "HTTP 404"}, batch()),
        ({"last_byte": 9.0, "rare": RareFields(4.0, 4.5, 0.5)}, batch()),
        ({"last_byte": 9.0, "rare": RareFields(held=9.0)}, batch()),
        ({"late": 7.8}, due(101.0)),
        ({"late": 0.0}, due(120.0)),  # the clocks differ by less than is possible
        ({"first_byte": None, "last_byte": 1.0, "cause": "HTTP 401", "unauthorized": True}, batch()),
    ],
)
def test_what_can_be_is_taken(changes: dict[str, object], of: TaskBatch) -> None:
    assert fault(result(**changes), of) is None


@pytest.mark.parametrize(
    ("changes", "of", "why"),
    [
        ({"last_byte": 1e9}, batch(), "it took 1000000000.000 s and was sent 10.000 s ago"),
        ({"last_byte": 12.0}, batch(), "it took 12.000 s"),
        ({"last_byte": 47.0}, batch(history=History(2, NOW - 45.0, {})), "it took 47.000 s"),
        ({"last_byte": 12.0, "cause": "HTTP 401", "unauthorized": True}, batch(), "it took 12.000 s"),
        ({"first_byte": 0.3}, batch(), "the first byte came after 0.300 s"),
        ({"first_byte": 0.3, "last_byte": None, "cause": "HTTP 500"}, batch(), "no last byte"),
        ({"first_byte": None, "last_byte": None}, batch(), "no last byte"),
        ({"completed": NOW - OFFSET + 7}, batch(), "it ended -7.000 s ago"),
        ({"completed": SENT - OFFSET - 7}, batch(), "it ended 17.000 s ago and was sent 10.000 s ago"),
        ({"completed": 1e12}, batch(), "it ended"),
        ({"retries": 11}, batch(), "11 retries"),
        ({"retries": 13}, batch(history=History(2, SENT, {"HTTP 401": 2})), "13 retries"),
        ({"retries": 2, "retried": {"HTTP 503": 3}}, batch(), "2 retries, of which 3 have a cause"),
        ({"retried": {"HTTP 503": 2**32 - 1}}, batch(), "0 retries, of which 4294967295 have a cause"),
        (
            {"last_byte": 9.0, "rare": RareFields(6.0, 4.5)},
            batch(),
            "of 9.000 s it spent 10.500 s with connecting",
        ),
        ({"last_byte": 1.0, "rare": RareFields(last_attempt=1e9)}, batch(), "of 1.000 s it spent"),
        ({"last_byte": 1.0, "rare": RareFields(held=2.5)}, batch(), "of 1.000 s it spent 2.500 s"),
        (
            {"first_byte": None, "last_byte": None, "cause": "HTTP 500", "rare": RareFields(held=1e9)},
            batch(),
            "of 10.010 s it spent",
        ),
        ({"cause": "HTTP 500", "spent": 1e9}, batch(), "it failed after 1000000000.000 s"),
        ({"late": 0.0}, batch(), "it began 0.000 s late and was due at no time"),
        ({"late": 1e9}, due(101.0), "it began 1000000000.000 s late, by its own account, and 7.800 s by"),
        ({"late": 0.0}, due(101.0), "it began 0.000 s late, by its own account, and 7.800 s by"),
        ({"size": 2**50}, batch(), "bytes were moved"),
        ({"size": 171}, batch(UPDATE, 170), "171 bytes were moved, where 170 were asked for"),
        ({"size": 1}, batch(CREATE, 0), "1 bytes were moved"),
        ({"size": 65537}, batch(DELETE), "65,537 bytes were moved"),
        ({"size": 201}, batch(UPLOAD_IF_MISSING.code, 150), "201 bytes were moved"),
        ({"size": 2**63 - 1, "cause": "HTTP 500"}, batch(), "bytes were moved"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(
    changes: dict[str, object], of: TaskBatch, why: str
) -> None:
    assert why in (fault(result(**changes), of) or "taken")
