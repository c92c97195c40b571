"""Which answers are successes, and what is wrong with the others."""

from __future__ import annotations

import pytest

from ssbench.store.causes import WRONG_CONTENT, WRONG_ETAG, WRONG_SIZE
from ssbench.store.contract import Request
from ssbench.store.http.http_response import Answer
from ssbench.store.swift import answers


def answer(status: int = 200, size: int = 10, **more: object) -> Answer:
    values = {"trans_id": "tx1", "keep_alive": True, "detail": "", "retry_after": None} | more
    return Answer(status, size, 0.0, 0.1, 0.2, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("request_", "good", "bad"),
    [
        (Request(method="GET", container="c", name="o"), 200, 206),
        (Request(method="GET", container="c", name="o", part=(0, 4)), 206, 200),
        (Request(method="GET", container="c"), 204, 404),
        (Request(method="PUT", container="c", name="o"), 201, 412),
        (Request(method="GET", container="c", name="o", success=frozenset({304})), 304, 200),
    ],
)
def test_successes(request_: Request, good: int, bad: int) -> None:
    assert answers.is_success(good, request_)
    assert not answers.is_success(bad, request_)


def test_a_404_after_a_delete_that_was_not_answered_says_that_it_was_done() -> None:
    delete = Request(method="DELETE", container="c", name="o")
    assert answers.was_done(404, delete, unanswered=True, in_doubt=False)
    assert not answers.was_done(404, delete, unanswered=False, in_doubt=False)
    assert answers.was_done(404, Request(method="HEAD", missing_ok=True), unanswered=False, in_doubt=False)
    copy = Request(method="PUT", done_before=frozenset({412}))
    assert answers.was_done(412, copy, unanswered=False, in_doubt=True)
    assert not answers.was_done(412, copy, unanswered=False, in_doubt=False)


def test_a_refusal_has_the_name_that_its_operation_gives_it() -> None:
    named = answers.refused(answer(403), Request(method="GET", causes={403: "not public"}))
    assert (named.cause, named.status, named.trans_id) == ("not public", 403, "tx1")
    assert answers.refused(answer(503), Request(method="GET")).cause == "HTTP 503"


@pytest.mark.parametrize(
    ("found", "part", "cause"),
    [
        (answer(size=9), None, WRONG_SIZE),
        (answer(wrong_etag="other"), None, WRONG_ETAG),
        (answer(206), (5, 14), WRONG_CONTENT),
        (answer(206, head=b"HTTP/1.1 206\r\nContent-Range: bytes 0-9/50"), (5, 14), WRONG_CONTENT),
    ],
)
def test_wrong_bodies(found: Answer, part: tuple[int, int] | None, cause: str) -> None:
    wrong = answers.wrong_body(found, Request(method="GET", expected=10, part=part), None)
    assert wrong is not None
    assert wrong.cause == cause


def test_right_bodies() -> None:
    assert answers.wrong_body(answer(), Request(method="GET", expected=10), None) is None
    part = answer(206, head=b"HTTP/1.1 206\r\nContent-Range: bytes 5-14/50")
    assert answers.wrong_body(part, Request(method="GET", part=(5, 14)), None) is None
