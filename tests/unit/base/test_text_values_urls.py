"""URLs that are given: which are refused, and that no password of one is shown."""

from __future__ import annotations

import pytest

from ssbench.base.errors import UsageError
from ssbench.base.text_values import parse_http_url, redact_url, refuse_user_info


@pytest.mark.parametrize("url", ["http://h", "https://h:8080/v1/a", "http://[::1]:80/x", "HTTP://h"])
def test_absolute_ones(url: str) -> None:
    parts = parse_http_url(url)
    assert parts is not None
    assert parts.hostname in {"h", "::1"}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h:8080",
        "ftp://h",
        "http://",
        "http:///v1",
        "http://h:0",
        "http://h:99999",
        "http://h:x",
        "http://h /",
        "http://h\n",
        "http://[::1",
        "/v1/a",
    ],
)
def test_others_are_none(url: str) -> None:
    assert parse_http_url(url) is None


def test_a_password_is_neither_accepted_nor_shown() -> None:
    with pytest.raises(UsageError) as error:
        refuse_user_info("http://user:secret@h/v1", "the storage URL")
    assert "secret" not in str(error.value)
    assert "***@h/v1" in str(error.value)
    assert "secret" not in redact_url("http://user:secret@h")
    refuse_user_info("http://h/v1/a@b", "the storage URL")
    refuse_user_info("http://[", "the storage URL")
