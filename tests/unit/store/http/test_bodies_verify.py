"""Bodies that any worker can check: what was written passes, everything else is told."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
from fault_server import FaultServer, Reply
from golden_words import GoldenWords
from hypothesis import given
from hypothesis import strategies as st

from ssbench.fleet.wire import RunParameters
from ssbench.scenario.operations import UPLOAD_IF_MISSING, Header
from ssbench.store.contract import RequestOutcome, StoreRequest
from ssbench.store.http.bodies import (
    BLOCK_BYTES,
    STAMP_BYTES,
    BodyComparison,
    BodySource,
    BodyVerifier,
    PartComparison,
    make_metadata,
    start_md5,
)
from ssbench.store.http.client import ClientSettings, HttpClient
from ssbench.store.stores import make_store_client
from ssbench.worker.worker_run import WorkerRun

SEED = 2**62 + 5
WRITER = BodyVerifier(BodySource(SEED), SEED)
READER = BodyVerifier(BodySource(SEED), SEED)


def body(name: bytes, size: int) -> bytes:
    """What a client sends for an object."""
    stamp, offset, _ = WRITER.begin(name, size)
    parts = [stamp]
    left = size - STAMP_BYTES
    while left > 0:
        piece = bytes(WRITER.payload.piece(offset, left))
        parts.append(piece)
        offset, left = (offset + len(piece)) % BLOCK_BYTES, left - len(piece)
    return b"".join(parts)


@given(size=st.integers(1, 70_000), piece=st.integers(1, 40_000), version=st.integers(0, 2**64 - 1))
def test_pieces_of_a_body_are_that_body(size: int, piece: int, version: int) -> None:
    """Segments are sent by themselves, and read as one object."""
    whole = b""
    for first in range(0, size, piece):
        length = min(piece, size - first)
        begin, offset, digest = WRITER.begin_piece(b"c/o", version, first, length)
        rest = b""
        while len(rest) < length - len(begin):
            rest += bytes(
                WRITER.payload.piece((offset + len(rest)) % BLOCK_BYTES, length - len(begin) - len(rest))
            )
        WRITER.payload.add_to(digest, offset, len(rest))
        assert digest.digest() == start_md5(begin + rest).digest()
        whole += begin + rest
    assert len(whole) == size
    for name, wrong in ((b"c/o", None), (b"c/p", 0)):
        check = READER.check(name)
        check.feed(whole)
        assert check.wrong == wrong


@given(
    size=st.integers(0, 70_000),
    cuts=st.lists(st.integers(0, 70_000), max_size=5),
    wrong=st.integers(0, 69_999),
)
def test_a_body_passes_however_it_comes_and_no_other_does(size: int, cuts: list[int], wrong: int) -> None:
    data = body(b"c/o", size)
    places = sorted({0, size, *(cut for cut in cuts if cut < size)})
    for name, change in ((b"c/o", None), (b"c/o", wrong), (b"c/p", None)):
        changed = bytearray(data)
        if change is not None and change < size:
            changed[change] ^= 1
        check = READER.check(name)
        for start, end in itertools.pairwise(places):
            check.feed(bytes(changed[start:end]))
        if name != b"c/o":
            # Of a body of a few bytes another name may have the same.
            assert check.wrong == 0 or size < 8
        elif change is None or change >= size:
            assert check.wrong is None
        elif change >= STAMP_BYTES:
            assert check.wrong == change
        elif size > STAMP_BYTES + 8 or change < 8:
            assert check.wrong is not None  # a version that was never written has other bytes


def test_the_md5_of_a_body_is_that_of_its_bytes_however_many_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ssbench.store.http.bodies._MOST_KNOWN_MD5S", 3)
    bodies = [body(b"c/o", size) for size in (16, 4096, 4096, 70_000)]
    bodies += [each[:-1] for each in bodies[1:]]  # of the same stamps
    for each in bodies * 2:
        assert READER.is_of(b"c/o", memoryview(each))
        assert READER.find_md5_of(memoryview(each)) == start_md5(each).hexdigest()


def test_two_bodies_of_an_object_differ_and_a_large_one_repeats_the_block() -> None:
    first, second = body(b"c/o", 5_000_000), body(b"c/o", 5_000_000)
    assert first != second
    for data in (first, second):
        check = READER.check(b"c/o")
        check.feed(data)
        assert check.wrong is None


@pytest.fixture
def clients() -> Iterator[tuple[HttpClient, HttpClient]]:
    """Of two workers."""
    made = (
        make_store_client(ClientSettings(verify_seed=SEED)),
        make_store_client(ClientSettings(verify_seed=SEED)),
    )
    yield made
    for client in made:
        client.close()


def put(client: HttpClient, server: FaultServer, size: int) -> bytes:
    server.script(Reply(201))
    assert client.request(server.url, "PUT", "c", "o", size=size).cause is None
    return server.requests[-1].body


def get(client: HttpClient, server: FaultServer, reply: Reply, name: str = "o") -> RequestOutcome:
    server.script(reply)
    return client.request(server.url, "GET", "c", name)


@pytest.mark.parametrize("size", [0, 5, 16, 17, 4096, 70_000, 5_000_000])
def test_what_one_worker_wrote_another_one_can_check(
    clients: tuple[HttpClient, HttpClient], fault_server: FaultServer, size: int, golden_words: GoldenWords
) -> None:
    writer, reader = clients
    written = put(writer, fault_server, size)
    for reply in (
        Reply(body=written),
        Reply(body=written, pieces=max(1, size // 3)),
        Reply(body=written, chunked=True),
    ):
        outcome = get(reader, fault_server, reply)
        assert (outcome.cause, outcome.size) == (None, size)
    if not size:
        return
    for place in (0, size - 1):
        other = bytearray(written)
        other[place] ^= 0x80
        if 8 <= place < STAMP_BYTES:
            continue
        for reply in (Reply(body=bytes(other)), Reply(body=bytes(other), chunked=True)):
            outcome = get(reader, fault_server, Reply(**{**vars(reply), "headers": (("X-Trans-Id", "tx9"),)}))
            assert (outcome.cause, outcome.trans_id, outcome.status) == ("wrong content", "tx9", 200)
            golden_words(outcome.detail)
            assert outcome.last_byte is None
    assert get(reader, fault_server, Reply(body=written), "p").cause == "wrong content"


def test_a_failure_is_checked_for_nothing_and_a_retry_anew(
    clients: tuple[HttpClient, HttpClient], fault_server: FaultServer
) -> None:
    written = put(clients[0], fault_server, 300_000)
    fault_server.script(Reply(503, body=b"busy"), Reply(body=written, cut=200_000))
    outcome = get(clients[1], fault_server, Reply(body=written))
    assert outcome.cause == "short body"  # which says nothing of the bytes that came
    fault_server.script(Reply(503, body=b"busy"))
    assert get(clients[1], fault_server, Reply(body=written)).cause is None


def test_initial_objects_that_are_there_are_written_again(fault_server: FaultServer) -> None:
    parameters = RunParameters(
        1, storage_urls=[fault_server.url], size_classes=["tiny"], size_ranges=[(1, 9)], verify_seed=SEED
    )
    run = WorkerRun(parameters, 1)
    fault_server.default = Reply(body=b"12345")
    outcome, _ = run.perform((1, UPLOAD_IF_MISSING.code, 0, 0, 1, 7), None)
    run.close()
    assert [request.method for request in fault_server.requests] == ["HEAD", "PUT"]
    assert (outcome.cause, outcome.size, outcome.found) == (None, 7, 5)


@pytest.mark.parametrize("zeros", [0.0, 0.6, 0.95, 1.0])
@pytest.mark.parametrize("count", [1, 3, 30, 900, 3_000_000])
def test_a_part_of_a_body_is_checked(count: int, zeros: float) -> None:
    verifier = BodyVerifier(BodySource(5, zeros), 5)
    for first in (0, 1, 7, 8, 12, 16, 17, 120, 5000):
        begin, offset, _ = verifier.begin(b"c/o", first + count)
        body = bytearray(begin)
        while len(body) < first + count:
            piece = verifier.payload.piece(offset, first + count - len(body))
            body += piece
            offset = (offset + len(piece)) % BLOCK_BYTES
        part = bytes(body[first : first + count])
        assert _fed(verifier.check_part(b"c/o", first), part) is None
        assert _fed(verifier.check_part(b"c/o", first), part[:100], part[100:]) is None
        if count > 300 or (count > 30 and not zeros):
            last = part[:-1] + bytes([part[-1] ^ 1])
            assert _fed(verifier.check_part(b"c/o", first), last) == first + count - 1
            assert _fed(verifier.check_part(b"c/o", first), os.urandom(count)) is not None
        if first < 8:
            assert _fed(verifier.check_part(b"c/other", first), part) == first


def _fed(check: BodyComparison | PartComparison, *pieces: bytes) -> int | None:
    for piece in pieces:
        check.feed(piece)
    return check.wrong


def test_other_metadata_than_were_written_are_a_failure(fault_server: FaultServer) -> None:
    seed = 41
    right = make_metadata(seed, "c/o", (2, 20))
    client = make_store_client(ClientSettings(verify_seed=seed, shapes=frozenset({(2, 20)})))

    def read(method: str, headers: tuple[Header, ...], **more: Any) -> str | None:
        fields = tuple((f"X-Object-Meta-{item}", value) for item, value in headers)
        fault_server.script(Reply(headers=fields))
        return client.perform(
            fault_server.url, StoreRequest(method=method, container="c", name="o", **more)
        ).cause

    try:
        for method in ("GET", "HEAD"):
            assert read(method, right) is None
            assert read(method, right[:1]) == "wrong metadata"
            assert read(method, make_metadata(seed, "c/p", (2, 20))) == "wrong metadata"
        # These have none, or those of another object.
        assert read("GET", (), query="temp_url_sig=1", content="o") is None
        assert read("GET", (), content="") is None
        assert read("DELETE", ()) is None
        assert read("GET", make_metadata(seed, "c/p", (2, 20)), content="p") is None
    finally:
        client.close()
