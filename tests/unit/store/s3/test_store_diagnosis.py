"""Each wrong set-up is one sentence, which says what to do."""

from __future__ import annotations

import re
from email.utils import formatdate
from typing import Any

import pytest
from said import NOT_S3, OTHER_SECRET

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
    ("code", "date", "more", "expected"),
    [
        (None, None, "", f"403 Forbidden, {NOT_S3}.*s3api"),
        (
            "AuthorizationHeaderMalformed",
            None,
            "<Region>there</Region>",
            "is 'there', not 'here': set AWS_REGION=there",
        ),
        ("RequestTimeTooSkewed", formatdate(NOW - 1200, usegmt=True), "", "20 minutes ahead of the store's"),
        ("RequestTimeTooSkewed", formatdate(NOW + 3600, usegmt=True), "", "60 minutes behind the store's"),
        ("RequestTimeTooSkewed", "now", "", "differ by more than 15 minutes"),
        (
            "SignatureDoesNotMatch",
            None,
            SAME,
            f"{OTHER_SECRET} 'me', or .* does not know",
        ),
        ("SignatureDoesNotMatch", None, "", f"{OTHER_SECRET} 'me'"),
        ("SignatureDoesNotMatch", None, SAME.replace("a:8080", "b"), "'host:a:8080' here and 'host:b' there"),
        ("InvalidAccessKeyId", None, "", "does not know the access key 'me'"),
        ("ExpiredToken", None, "", "session token of the access key 'me'"),
        ("AccessDenied", None, "", "'me' may not list its buckets"),
        ("SlowDown", None, "<Message>later</Message>", "HTTP 403, SlowDown: later"),
    ],
)
def test_a_sentence_for_each(code: str | None, date: str | None, more: str, expected: str) -> None:
    text = explained(code, date, more)
    assert re.search(expected, text)
    assert "\n" not in text
    assert "hidden" not in text


def test_a_key_of_keystone_is_right_so_that_the_pipeline_is_wrong() -> None:
    assert "authtoken has to come before s3api" in explained("SignatureDoesNotMatch", made_by_keystone=True)


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
