"""Which version each object has at least."""

from __future__ import annotations

import pytest

from ssbench.fleet.worker_state import Task
from ssbench.fleet.written_versions import WrittenVersions
from ssbench.scenario.operations import CREATE, READ, UPDATE
from ssbench.store.contract import JobResult, RareFields


def task(code: int, number: int = 7, size_class: int = 0) -> Task:
    return code, size_class, 3, number, 10


def ended(job_id: int, **more: object) -> JobResult:
    return JobResult(job_id, None, 0.1, 1.0, **more)


def test_an_object_has_the_version_of_the_last_job_that_wrote_it() -> None:
    versions = WrittenVersions()
    assert versions.find_least([task(READ.code)]) == []
    versions.note_ended([(task(CREATE.code), ended(4)), (task(UPDATE.code, 9), ended(5))])
    versions.note_ended([(task(UPDATE.code), ended(8)), (task(READ.code), ended(9))])
    asked = [task(READ.code, number) for number in (7, 8, 9, 10_000)]
    assert versions.find_least(asked) == [8, 0, 5, 0]
    assert versions.find_least([task(READ.code, size_class=1), task(READ.code, 8)]) == []


@pytest.mark.parametrize(
    "result", [ended(5, cause="read timeout"), ended(5, rare=RareFields(repeated=1))], ids=["failed", "twice"]
)
def test_nothing_is_known_of_an_object_that_an_attempt_may_write_at_any_time(result: JobResult) -> None:
    versions = WrittenVersions()
    versions.note_ended([(task(CREATE.code), ended(4)), (task(CREATE.code, 8), ended(3))])
    versions.note_ended([(task(UPDATE.code), result)])
    versions.note_ended([(task(UPDATE.code), ended(6))])
    assert versions.find_least([task(READ.code), task(READ.code, 8)]) == [0, 3]


def test_retries_that_were_all_refused_leave_no_doubt() -> None:
    versions = WrittenVersions()
    versions.note_ended(
        [(task(UPDATE.code), ended(5, retries=1, retried={"HTTP 503": 1}, rare=RareFields()))]
    )
    assert versions.find_least([task(READ.code)]) == [5]
