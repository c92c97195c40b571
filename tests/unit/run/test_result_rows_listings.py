"""How many names listings have to have at least."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ssbench.run.result_rows import ListingMinimums
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import CREATE, DELETE, LIST, LIST_ACCOUNT, OperationSettings
from ssbench.store.contract import JobResult

WEIGHTS = {"create": 1.0, "delete": 1.0, "list": 1.0, "list_account": 1.0}
SCENARIO = Scenario(
    "s", (SizeClass("tiny", 1, 1, 9, WEIGHTS),), user_count=1, run_seconds=1, container_count=3
)
GOOD, BAD = JobResult(1, None, 0.1, 1.0), JobResult(1, None, None, 1.0, cause="reset")


def of(*settings: OperationSettings, **changes: int) -> ListingMinimums | None:
    return ListingMinimums.of(replace(SCENARIO, operations=settings, **changes), {0: 5, 1: 7})


def test_what_existed_before_and_was_not_deleted_until_it_ended_has_to_be_listed() -> None:
    found = of()
    assert found is not None
    first, second = (LIST.code, 0, 0, 1, 0), (LIST.code, 0, 0, 2, 0)
    found.handed_out([(DELETE.code, 0, 0, 1, 0), (DELETE.code, 0, 1, 9, 0), first])
    # Made after the first listing was sent, and before the second.
    found.ended([((CREATE.code, 0, 0, 10, 1), GOOD), ((CREATE.code, 0, 0, 11, 1), BAD)])
    found.handed_out([second, (DELETE.code, 0, 0, 2, 0)])
    assert (found.least(first), found.least(second)) == (3, 4)
    assert found.least((LIST_ACCOUNT.code, 0, 1, 3, 0)) == 3


def test_no_more_than_was_asked_for() -> None:
    found = of(OperationSettings("list", values={"limit": 2, "pages": 2}))
    assert found is not None
    task = (LIST.code, 0, 1, 1, 0)
    found.handed_out([task])
    assert found.least(task) == 4


def test_nothing_is_kept_of_a_listing_without_success() -> None:
    found = of()
    assert found is not None
    tasks = [(LIST.code, 0, 0, number, 0) for number in (1, 2, 3)]
    found.handed_out(tasks)
    found.ended([(tasks[0], BAD), ((CREATE.code, 0, 0, 2, 1), BAD)])
    found.without_result([tasks[1], (CREATE.code, 0, 0, 3, 1)])
    # Objects have numbers of their own: those that failed to be made are not the listings'.
    assert found.least(tasks[2]) == 5
    assert [found.least(each) for each in tasks] == [0, 0, 0]


@pytest.mark.parametrize(
    ("failed", "least"),
    [
        (JobResult(1, None, None, 1.0, cause="HTTP 403", status=403), 7),
        (JobResult(1, None, None, 1.0, cause="connect refused"), 7),
        (JobResult(1, None, None, 1.0, cause="HTTP 403", status=403, retries=1), 6),
        (JobResult(1, None, None, 1.0, cause="HTTP 404", status=404), 6),
        (JobResult(1, None, None, 1.0, cause="HTTP 503", status=503), 6),
        (BAD, 6),
    ],
)
def test_what_was_surely_not_deleted_has_to_be_listed(failed: JobResult, least: int) -> None:
    found = of()
    assert found is not None
    delete, listing = (DELETE.code, 0, 1, 9, 0), (LIST.code, 0, 1, 1, 0)
    found.handed_out([delete])
    found.ended([(delete, failed)])
    found.handed_out([listing])
    assert found.least(listing) == least


def test_what_is_taken_back_was_not_deleted() -> None:
    for begun in (False, True):
        found = of()
        assert found is not None
        delete, listing = (DELETE.code, 0, 1, 9, 0), (LIST.code, 0, 1, 1, 0)
        found.handed_out([delete])
        found.without_result([delete], begun=begun)
        found.handed_out([listing])
        assert found.least(listing) == 7 - begun


def test_listings_of_which_nothing_is_known() -> None:
    for key in ("prefix", "delimiter", "marker"):
        found = of(OperationSettings("list", values={key: "x"}))
        assert found is not None
        found.handed_out([(LIST.code, 0, 1, 1, 0)])
        assert found.least((LIST.code, 0, 1, 1, 0)) == 0
    assert of(delete_after=60) is None
    plain = replace(SCENARIO, size_classes=(SizeClass("tiny", 1, 1, 9, {"read": 1.0}),))
    assert ListingMinimums.of(plain, {0: 5}) is None
