"""Reading answers: any bytes, cut anywhere; the quick way against h11."""

from __future__ import annotations

import itertools

import pytest
from golden_words import GoldenWords
from hypothesis import example, given
from hypothesis import strategies as st

from ssbench.store.contract import BAD_RESPONSE, CLOSED, SHORT_BODY, AttemptError
from ssbench.store.http.http_response import (
    HEAD_LIMIT,
    CarefulReader,
    KnownHeads,
    ResponseHead,
    find_field,
    find_head_end,
    parse_head,
    parse_status_line,
)

USUAL = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n"
    b"X-Trans-Id: tx0F-a\r\nX-Openstack-Request-Id: other\r\nConnection: keep-alive\r\n"
)


def careful(data: bytes, cuts: list[int], method: str = "GET") -> CarefulReader | str:
    """What h11 makes of the bytes in pieces and then the end: the reader, or the cause."""
    reader = CarefulReader(method)
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    try:
        for start, stop in itertools.pairwise(places):
            if start < stop and reader.feed(data[start:stop]):
                return reader
        if reader.feed(b""):
            return reader
    except AttemptError as error:
        return error.cause
    raise AssertionError("neither whole nor broken after the end of the connection")


def test_usual_head() -> None:
    assert parse_head(USUAL, False) == ResponseHead(200, 5, len(USUAL) + 2, "tx0F-a")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"HTTP/1.1 204 No Content\r\n", (204, 0)),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n", (304, 0)),
        (b"HTTP/1.1 100 Continue\r\n", (100, 0)),
        (b"HTTP/1.1 200\r\nCONTENT-LENGTH: 7\r\n", (200, 7)),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: KEEP-ALIVE\r\n", (503, 0)),
    ],
)
def test_usual_heads(head: bytes, expected: tuple[int, int]) -> None:
    found = parse_head(head, False)
    assert found is not None
    assert (found.status, found.length) == expected


def test_answer_to_head_has_no_body() -> None:
    found = parse_head(USUAL, True)
    assert found is not None
    assert found.length == 0


@pytest.mark.parametrize(
    "fields",
    [
        b"",
        b"Content-Length: x\r\n",
        b"Content-Length: 5, 5\r\n",
        b"Content-Length: 5\r\ncontent-length: 5\r\n",
        b"Content-Length : 5\r\n",
        b"Content-Length: 5\r\n 6\r\n",
        b"Content-Length: 9999999999999999999\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 5\r\nConnection: close\r\n",
        b"Content-Length: 5\r\nConnection: keep-alive, x\r\n",
        b"Content-Length: 5\r\nA: b\n\nB: c\r\n",
        b"Content-Length: 5\nA: b\r\n",
    ],
)
@pytest.mark.parametrize("line", [b"HTTP/1.1 200 OK\r\n"])
def test_unusual_heads_are_declined(line: bytes, fields: bytes) -> None:
    assert parse_head(line + fields, False) is None


@pytest.mark.parametrize(
    "line", [b"HTTP/1.0 200 OK\r\n", b"HTTP/2 200\r\n", b"HTTP/1.1 20 OK\r\n", b"HTTP/1.1 2000\r\n", b"x\r\n"]
)
def test_unusual_status_lines_are_declined(line: bytes) -> None:
    assert parse_head(line + b"Content-Length: 5\r\n", False) is None


field_names = st.sampled_from(
    [
        b"Content-Length",
        b"content-length",
        b"Transfer-Encoding",
        b"Connection",
        b"X-Trans-Id",
        b"x-openstack-request-id",
        b"Date",
        b" folded",
        b"X-Content-Length",
    ]
)
field_values = st.sampled_from(
    [b"0", b"5", b"007", b"+5", b"5 ", b"", b"chunked", b"identity", b"close", b"keep-alive", b"tx1", b"a\tb"]
)
#: The quick way does not look at fields that do not matter, so those are well-formed here.
framing = (b"content-length", b"transfer-encoding", b"connection", b" folded")
fields = st.tuples(
    field_names, st.sampled_from([b": ", b":", b" : "]), field_values, st.sampled_from([b"\r\n", b"\n"])
).filter(lambda field: field[1] != b" : " or field[0].lower() in framing)
heads = st.builds(
    lambda line, fields, end: line + end + b"".join(n + s + v + e for n, s, v, e in fields) + end,
    st.sampled_from(
        [
            b"HTTP/1.1 200 OK",
            b"HTTP/1.1 204 None",
            b"HTTP/1.1 404 Not Found",
            b"HTTP/1.0 200 OK",
            b"HTTP/1.1 200",
        ]
    ),
    st.lists(fields, max_size=5),
    st.sampled_from([b"\r\n", b"\n"]),
)


@given(heads, st.binary(max_size=12), st.sampled_from(["GET", "HEAD", "PUT"]))
def test_the_quick_way_agrees_with_h11(head: bytes, body: bytes, method: str) -> None:
    data = head + body
    try:
        end = find_head_end(data)
    except AttemptError:
        return
    found = parse_head(data[: end + 2], method == "HEAD") if end >= 0 else None
    if found is None:
        return  # left to h11, which is what it is compared with
    other = careful(data, [], method)
    size = len(data) - found.start
    if size < found.length:
        assert other == SHORT_BODY
    elif size > found.length:
        assert other == BAD_RESPONSE
    else:
        assert isinstance(other, CarefulReader)
        assert (other.status, other.size, other.keep_alive) == (found.status, found.length, True)
        assert (other.trans_id or None) == (found.trans_id or None) or (
            head.lower().count(b"x-trans-id") + head.lower().count(b"x-openstack-request-id") > 1
        )


def parse_both(known: KnownHeads, data: bytes) -> tuple[ResponseHead | None, ResponseHead | None]:
    """What is parsed of a head in a buffer with other bytes behind, and what parse_head makes of it."""
    end = data.find(b"\r\n\r\n")
    other = parse_head(data[: end + 2], False) if end >= 0 else None
    return known.parse(bytearray(data + b"\r\nX: y\r\n\r\nof the last answer"), len(data)), other


@given(st.lists(heads, min_size=1, max_size=20))
@example([USUAL + b"\r\n", USUAL.replace(b"5", b"17").replace(b"tx0F-a", b"tx1") + b"\r\n"])
@example([USUAL + b"\r\n", USUAL.replace(b"5", b"x") + b"\r\n", USUAL.replace(b"alive", b"no") + b"\r\n"])
@example([USUAL + b"\r\n", USUAL.replace(b": tx0F-a", b":") + b"\r\n", USUAL + b" folded\r\n\r\n"])
@example([USUAL + b"\r\n", USUAL.replace(b"200 OK", b"201 Created") + b"\r\n", USUAL[:-2], USUAL])
@example([b"HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\n", b"HTTP/1.1 204\r\nContent-Length: x\r\n\r\n"])
@example([b"HTTP/1.1 204 No\r\nConn\r\n\r\n", b"HTTP/1.1 204 No\r\nConnection: close\r\n\r\n"])
def test_known_kinds_of_heads_are_parsed_as_all_are(several: list[bytes]) -> None:
    known = KnownHeads()
    for head in several:
        found, expected = parse_both(known, head)
        assert found == expected
    for head in several:
        found, expected = parse_both(known, head)
        assert found == expected


def test_a_known_kind_needs_no_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    known = KnownHeads()
    later = USUAL.replace(b"5", b"4096").replace(b"tx0F-a", b"txB").replace(b"plain", b"html")
    known.parse(bytearray(USUAL + b"\r\n"), len(USUAL) + 2)
    monkeypatch.setattr("ssbench.store.http.http_response.parse_head", None)
    found = known.parse(bytearray(later + b"\r\n" + b"body"), len(later) + 6)
    assert found == ResponseHead(200, 4096, len(later) + 2, "txB")


def test_only_some_kinds_are_known() -> None:
    known = KnownHeads()
    for number in range(100):
        head = USUAL + b"X-Number-%d: 1\r\n\r\n" % number
        found = known.parse(bytearray(head), len(head))
        assert found is not None
        assert found.length == 5
    assert len(known._known) < 20


@given(st.one_of(st.binary(max_size=300), heads, st.binary(max_size=100).map(lambda tail: USUAL + tail)))
@example(b"HTTP/1.1 200 OK\r\n\r\n")
@example(b"HTTP/1.1")
@example(b"")
def test_any_bytes_end_as_a_head_or_a_cause(data: bytes) -> None:
    if data[:5] != b"HTTP/"[: len(data)] and b"\r\n\r\n" not in data:
        with pytest.raises(AttemptError, match="not HTTP"):
            find_head_end(data)
        return
    end = find_head_end(data)
    assert end >= -2
    head = data[: end + 2] if end >= 0 else data
    if len(head) > 12:
        found = parse_head(head, False)
        assert found is None or (found.length >= 0 and 100 <= found.status <= 999)
    parse_status_line(head)
    find_field(head, b"retry-after")


@given(
    st.one_of(
        st.binary(max_size=200), st.builds(lambda head, body: head + body, heads, st.binary(max_size=20))
    ),
    st.lists(st.integers(0, 400), max_size=8),
)
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n", [55, 60])
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", [])
@example(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", [30])
@example(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", [])
@example(b"HTTP/1.0 200 OK\r\n\r\nuntil the end", [])
def test_h11_reads_the_same_however_it_is_cut(data: bytes, cuts: list[int]) -> None:
    def seen(cuts: list[int]) -> object:
        result = careful(data, cuts)
        return result if isinstance(result, str) else (result.status, result.size, result.trans_id)

    whole, cut = seen([]), seen(cuts)
    if whole != cut:
        # Bytes after the end are seen only if they come together with it.
        assert whole == BAD_RESPONSE
        assert not isinstance(cut, str)
    assert not isinstance(cut, str) or cut in {BAD_RESPONSE, SHORT_BODY, CLOSED}


def test_head_bound() -> None:
    line = b"HTTP/1.1 200 OK\r\nX: "
    assert find_head_end(line + b"x" * (HEAD_LIMIT - len(line) - 4) + b"\r\n\r\n") == HEAD_LIMIT - 4
    assert find_head_end(line + b"x" * (HEAD_LIMIT - len(line) - 1)) == -1
    for tail in (b"x", b"\r\n\r\n"):
        with pytest.raises(AttemptError, match="no end of the head"):
            find_head_end(line + b"x" * (HEAD_LIMIT - len(line)) + tail)


def test_error_line_and_fields() -> None:
    head = b"HTTP/1.1 503 Service Unavailable\r\nA: b\r\nRetry-After:  12 \r\n"
    assert parse_status_line(head) == "503 Service Unavailable"
    assert find_field(head, b"retry-after") == "12"
    assert find_field(head, b"other") is None


def test_careful_reader_keeps_what_a_retry_needs() -> None:
    reader = careful(
        b"HTTP/1.1 429 Slow Down\r\nRetry-After: 3\r\nX-Trans-Id: tx9\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        [],
    )
    assert isinstance(reader, CarefulReader)
    assert (reader.status, reader.reason, reader.retry_after) == (429, "429 Slow Down", "3")
    assert (reader.trans_id, reader.keep_alive, reader.size) == ("tx9", True, 0)


@pytest.mark.parametrize("version", [b"2.0", b"0.9", b"1.2"])
@pytest.mark.parametrize("status", [b"100 Continue", b"200 OK"])
def test_an_answer_in_another_version_of_the_protocol_is_none(
    version: bytes, status: bytes, golden_words: GoldenWords
) -> None:
    line = b"HTTP/" + version + b" " + status + b"\r\n"
    assert parse_head(line + b"Content-Length: 0\r\n", False) is None
    with golden_words.raises(AttemptError) as error:
        CarefulReader("GET").feed(line + b"Content-Length: 0\r\n\r\n")
    assert error.value.cause == BAD_RESPONSE


def test_a_body_that_the_end_of_its_connection_ends_leaves_no_connection() -> None:
    reader = careful(b"HTTP/1.1 200 OK\r\n\r\nhello", [])
    assert isinstance(reader, CarefulReader)
    assert (reader.size, reader.keep_alive) == (5, False)
