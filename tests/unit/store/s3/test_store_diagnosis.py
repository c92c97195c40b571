"""Each wrong set-up is one sentence, which says what to do."""

from __future__ import annotations

from email.utils import formatdate
from typing import Any

import pytest
from golden_words import GoldenWords
from said import NOT_S3

from ssbench.store.s3.dialect import StoreFault, parse_fault
from ssbench.store.s3.signing import AccessKey
from ssbench.store.s3.store import explain_other_answer, explain_refusal, find_first_difference, find_region

NOW = 1_700_000_000.0
CANONICAL = "GET\n/\n\nhost:a:8080\n\nhost\nUNSIGNED-PAYLOAD"


def explained(code: str | None, date: str | None = None, more: str = "", **options: Any) -> str:
    fault = None if code is None else parse_fault(f"<Error><Code>{code}</Code>{more}</Error>".encode())
    return explain_refusal(
        403,
        "403 Forbidden",
        fault,
        key=AccessKey(access="me", secret="hidden", region="here"),
        canonical=CANONICAL,
        date=date,
        now=NOW,
        **options,
    )


SAME = f"<CanonicalRequest>{CANONICAL}</CanonicalRequest>"


@pytest.mark.parametrize(
    ("code", "date", "more"),
    [
        (None, None, ""),
        ("AuthorizationHeaderMalformed", None, "<Region>there</Region>"),
        ("RequestTimeTooSkewed", formatdate(NOW - 1200, usegmt=True), ""),
        ("RequestTimeTooSkewed", formatdate(NOW + 3600, usegmt=True), ""),
        ("RequestTimeTooSkewed", "now", ""),
        ("SignatureDoesNotMatch", None, SAME),
        ("SignatureDoesNotMatch", None, ""),
        ("SignatureDoesNotMatch", None, SAME.replace("a:8080", "b")),
        ("InvalidAccessKeyId", None, ""),
        ("ExpiredToken", None, ""),
        ("AccessDenied", None, ""),
        ("SlowDown", None, "<Message>later</Message>"),
    ],
)
def test_a_sentence_for_each(
    code: str | None, date: str | None, more: str, golden_words: GoldenWords
) -> None:
    text = explained(code, date, more)
    golden_words(text)
    assert "\n" not in text
    assert "hidden" not in text


def test_a_key_of_keystone_is_right_so_that_the_pipeline_is_wrong(golden_words: GoldenWords) -> None:
    golden_words(explained("SignatureDoesNotMatch", made_by_keystone=True))


def test_only_errors_about_the_region_name_one() -> None:
    assert find_region(None) is None
    assert find_region(StoreFault("AccessDenied", "", {"Region": "a"})) is None
    assert find_region(StoreFault("AuthorizationHeaderMalformed", "", {"Region": "a"})) == "a"


def test_the_first_line_that_differs() -> None:
    assert find_first_difference("a\nb", "a\r\nb\n") is None
    assert find_first_difference("a\nb\nc", "a\nx\ny") == ("b", "x")
    assert find_first_difference("a\nb", "a") == ("b", "")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            b'<?xml version="1.0"?><ListAllMyBucketsResult xmlns="http://s3"><Buckets/></ListAllMyBucketsResult>',
            None,
        ),
        (b"<ListBucketResult><Name>b</Name></ListBucketResult>", "listing of one bucket"),
        (b"<!DOCTYPE html><html><body>Console</body></html>", f"a success, {NOT_S3}"),
        (b"", f"a success, {NOT_S3}"),
        (b'{"Version": "4.48"}', f"a success, {NOT_S3}"),
    ],
)
def test_a_success_that_is_no_list_of_buckets_is_another_server(body: bytes, expected: str | None) -> None:
    text = explain_other_answer(body)
    assert text is None if expected is None else expected in (text or "")
