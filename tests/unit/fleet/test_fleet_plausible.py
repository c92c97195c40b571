"""Which results are refused: each rule at both sides of its bound."""

from __future__ import annotations

import pytest
from golden_words import GoldenWords

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
    ("changes", "of"),
    [
        ({"last_byte": 1e9}, batch()),
        ({"last_byte": 12.0}, batch()),
        ({"last_byte": 47.0}, batch(history=History(2, NOW - 45.0, {}))),
        ({"last_byte": 12.0, "cause": "HTTP 401", "unauthorized": True}, batch()),
        ({"first_byte": 0.3}, batch()),
        ({"first_byte": 0.3, "last_byte": None, "cause": "HTTP 500"}, batch()),
        ({"first_byte": None, "last_byte": None}, batch()),
        ({"completed": NOW - OFFSET + 7}, batch()),
        ({"completed": SENT - OFFSET - 7}, batch()),
        ({"completed": 1e12}, batch()),
        ({"retries": 11}, batch()),
        ({"retries": 13}, batch(history=History(2, SENT, {"HTTP 401": 2}))),
        ({"retries": 2, "retried": {"HTTP 503": 3}}, batch()),
        ({"retried": {"HTTP 503": 2**32 - 1}}, batch()),
        ({"last_byte": 9.0, "rare": RareFields(6.0, 4.5)}, batch()),
        ({"last_byte": 1.0, "rare": RareFields(last_attempt=1e9)}, batch()),
        ({"last_byte": 1.0, "rare": RareFields(held=2.5)}, batch()),
        ({"first_byte": None, "last_byte": None, "cause": "HTTP 500", "rare": RareFields(held=1e9)}, batch()),
        ({"cause": "HTTP 500", "spent": 1e9}, batch()),
        ({"late": 0.0}, batch()),
        ({"late": 1e9}, due(101.0)),
        ({"late": 0.0}, due(101.0)),
        ({"size": 2**50}, batch()),
        ({"size": 171}, batch(UPDATE, 170)),
        ({"size": 1}, batch(CREATE, 0)),
        ({"size": 65537}, batch(DELETE)),
        ({"size": 201}, batch(UPLOAD_IF_MISSING.code, 150)),
        ({"size": 2**63 - 1, "cause": "HTTP 500"}, batch()),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(
    changes: dict[str, object], of: TaskBatch, golden_words: GoldenWords
) -> None:
    golden_words(fault(result(**changes), of) or "taken")
