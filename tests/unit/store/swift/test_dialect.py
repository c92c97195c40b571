"""The bytes of requests: quoted names, header fields that cannot be sent, templates that make the same."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from golden_words import GoldenWords
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from ssbench.base.errors import UsageError
from ssbench.base.version import __version__
from ssbench.scenario.names import OBJECT_NUMBER_FORMAT
from ssbench.store.contract import Listing, StoreRequest
from ssbench.store.http.dialect import format_header_fields, quote_name
from ssbench.store.swift import dialect as target_module
from ssbench.store.swift.dialect import SwiftDialect

BEGINNING = f"Host: h:8080\r\nUser-Agent: ssbench/{__version__}\r\n".encode()

#: Texts that a scenario may have for names; a lone surrogate is refused there.
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20) | st.sampled_from(
    ["%", "%d", "%b", "100%25", "a b", "_", "a_b", "/", "?x", "#", "é", "x HTTP/1.1\r\n", "Content-Length: 0"]
)


def made() -> SwiftDialect:
    return SwiftDialect("http://h:8080/v1/AUTH_a")


def test_a_request_for_an_object() -> None:
    head = made().head(
        StoreRequest(method="GET", container="c ä", name="n/ü?", query="x=1", part=(3, 9)), "tk"
    )
    assert head == (
        b"GET /v1/AUTH_a/c%20%C3%A4/n/%C3%BC%3F?x=1 HTTP/1.1\r\n"
        + BEGINNING
        + b"X-Auth-Token: tk\r\nRange: bytes=3-9\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (StoreRequest(method="GET"), b"GET /v1/AUTH_a"),
        (StoreRequest(method="HEAD", query="format=json"), b"HEAD /v1/AUTH_a?format=json"),
        (StoreRequest(method="GET", container="a/b"), b"GET /v1/AUTH_a/a%2Fb"),
        (StoreRequest(method="GET", container="c", name="o", path="/info"), b"GET /info"),
    ],
)
def test_a_request_for_something_else(request_: StoreRequest, line: bytes) -> None:
    assert made().head(request_, None) == line + b" HTTP/1.1\r\n" + BEGINNING + b"\r\n"


def test_an_upload_says_its_length_whose_it_is_and_how_long_it_lives() -> None:
    request = StoreRequest(
        method="PUT",
        container="c",
        name="o",
        size=7,
        delete_after=60,
        owner="me",
        headers=(("X-A", "ä"),),
    )
    assert made().head(request, None) == (
        b"PUT /v1/AUTH_a/c/o HTTP/1.1\r\n"
        + BEGINNING
        + "X-A: ä\r\n".encode()
        + b"X-Object-Meta-Ssbench-Owner: me\r\nContent-Length: 7\r\nX-Delete-After: 60\r\n\r\n"
    )


def test_a_body_that_is_given_follows() -> None:
    head = made().head(StoreRequest(method="POST", container="c", body=b"a\nb"), None)
    assert head.endswith(b"\r\nContent-Length: 3\r\n\r\na\nb")
    assert (
        made().head(StoreRequest(method="POST", container="c", body=b""), None).endswith(b"Length: 0\r\n\r\n")
    )


def test_a_new_token_takes_the_place_of_the_old_one() -> None:
    target, request = made(), StoreRequest(method="GET", container="c", name="o")
    for token in ("one", None, "two", "three", None, "one"):
        lines = target.head(request, token).split(b"\r\n")
        assert [line for line in lines if line.startswith(b"X-Auth")] == (
            [f"X-Auth-Token: {token}".encode()] if token else []
        )


def test_a_container_too_many_is_put_together_as_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_module, "_MAX_PREFIXES", 2)
    target = made()
    for number in (0, 1, 2, 0, 3, 1):
        line = target.head(StoreRequest(method="GET", container=f"c{number}", name="o"), None)
        assert line.startswith(f"GET /v1/AUTH_a/c{number}/o HTTP/1.1\r\n".encode())


@pytest.mark.parametrize(
    ("request_", "line", "fields"),
    [
        (
            StoreRequest(method="COPY", container="c ä", name="new", copy_from="old?"),
            "COPY /v1/AUTH_a/c%20%C3%A4/old%3F",
            "Destination: c%20%C3%A4/new\r\nContent-Length: 0\r\n",
        ),
        (
            StoreRequest(method="POST", container="c", name="o", metadata=(("Ssbench-0", "ab"),)),
            "POST /v1/AUTH_a/c/o",
            "X-Object-Meta-Ssbench-0: ab\r\nContent-Length: 0\r\n",
        ),
        (
            StoreRequest(method="GET", container="c", name="o", part_number=3),
            "GET /v1/AUTH_a/c/o?part-number=3",
            "",
        ),
        (
            StoreRequest(method="DELETE", container="c", name="o", version="1.0&2"),
            "DELETE /v1/AUTH_a/c/o?version-id=1.0%262",
            "",
        ),
        (
            StoreRequest(method="GET", container="c", listing=Listing(limit=7, prefix="a b", marker="x")),
            "GET /v1/AUTH_a/c?prefix=a+b&marker=x&format=json&limit=7",
            "",
        ),
        (
            StoreRequest(method="GET", listing=Listing(limit=7, delimiter="/", marker="x", following="y")),
            "GET /v1/AUTH_a?delimiter=%2F&marker=y&format=json&limit=7",
            "",
        ),
    ],
)
def test_what_is_wanted_has_names_in_swift(request_: StoreRequest, line: str, fields: str) -> None:
    expected = f"{line} HTTP/1.1\r\n".encode() + BEGINNING + f"{fields}\r\n".encode()
    assert made().head(request_, None) == expected


def test_a_page_that_is_full_may_be_followed_by_another() -> None:
    body = '[{"name": "a", "bytes": 3}, {"subdir": "ü/"}]'.encode()
    rows = [("a", 3), ("ü/", 0)]

    def read(limit: int) -> tuple[list[tuple[str, int]], str]:
        page = made().read_page(body, StoreRequest(method="GET", listing=Listing(limit=limit)))
        return page.rows, page.following

    assert read(2) == (rows, "ü/")
    assert read(3) == (rows, "")
    with pytest.raises(ValueError, match="2 entries, where 1 were asked for"):
        read(1)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'[{"bytes": 1}]', b"[1]", b'[{"name": "a", "bytes": "x"}]', b"[" * 9999]
)
def test_what_is_no_listing_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="no listing"):
        made().read_page(body, StoreRequest(method="GET"))


@given(NAMES)
def test_a_quoted_name_is_one_of_a_path_and_means_the_same(name: str) -> None:
    found = quote_name(name)
    assert unquote(found, errors="strict") == name
    assert found.isascii()
    assert not set(found) & set(" ?#\r\n")


@given(
    st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE"]),
    NAMES,
    NAMES | st.just(""),
    st.none() | st.just("AUTH_tk%d"),
    st.none() | st.integers(1, 10**9),
    st.none() | st.just("1a2b %s"),
    st.lists(st.tuples(st.just("X-Object-Meta-A"), st.text("a%äbd ", max_size=5)), max_size=2),
    st.integers(0, 10**7),
    st.integers(0, 10**12),
)
def test_a_pattern_makes_the_requests_that_are_made_one_by_one(
    method: str,
    container: str,
    stem: str,
    token: str | None,
    delete_after: int | None,
    owner: str | None,
    headers: list[tuple[str, str]],
    number: int,
    size: int,
) -> None:
    target = made()
    request = StoreRequest(
        method=method,
        container=container,
        name=stem + OBJECT_NUMBER_FORMAT % number if stem else f"ä%{number}",
        size=size if method == "PUT" else 0,
        delete_after=delete_after,
        owner=owner,
        headers=tuple(headers),
    )
    pattern = target.pattern(structs.replace(request, name="", size=0), stem, token)
    which = number if stem else quote_name(request.name).encode()
    values = (which, size, b"body") if method == "PUT" else (which,)
    assert pattern % values == target.head(request, token) + (b"body" if method == "PUT" else b"")


@pytest.mark.parametrize(
    "field", [("A b", "c"), ("", "c"), ("Ä", "c"), ("A:", "c"), ("A", "b\r\nC: d"), ("A", "\0")]
)
def test_a_field_that_would_break_the_head_is_refused(
    field: tuple[str, str], golden_words: GoldenWords
) -> None:
    with golden_words.raises(UsageError):
        format_header_fields((("X-Fine", "1"), field))


@pytest.mark.parametrize(("token", "owner"), [("a\r\nb", None), ("é", None), ("t", "a\nb"), ("t", "é")])
def test_a_token_or_an_owner_that_would_break_it_is_refused(
    token: str, owner: str | None, golden_words: GoldenWords
) -> None:
    with golden_words.raises(UsageError):
        made().head(StoreRequest(method="PUT", container="c", name="o", owner=owner), token)
