"""ETags against the MD5 of the bytes, and which bodies are summed up."""

from __future__ import annotations

import hashlib
import os

import pytest

from ssbench.scenario.operations import (
    LARGE_BYTES,
    LARGE_SAMPLE_INTERVAL,
    SAMPLE_INTERVAL,
)
from ssbench.store.http.bodies import (
    BodySource,
    ReceivedDigest,
    RegularSample,
    find_md5,
    number_object,
    number_stem,
    object_of_stamp,
    start_md5,
)

EXPECTED = start_md5(b"bytes").hexdigest()


@pytest.mark.parametrize("name", [b"Etag", b"ETag", b"etag"])
@pytest.mark.parametrize("etag", [EXPECTED, f'"{EXPECTED}"', f" {EXPECTED.upper()} "])
def test_the_md5_of_an_etag_however_it_is_written(name: bytes, etag: str) -> None:
    head = b"HTTP/1.1 200 OK\r\nX-Etag: %b\r\n%b: %b\r\nDate: x\r\n" % (b"0" * 32, name, etag.encode())
    assert find_md5(head) == EXPECTED


@pytest.mark.parametrize("etag", ["", "abc", f"{EXPECTED}-2", "0" * 31, "g" * 32, f'W/"{EXPECTED}"'])
def test_what_is_no_md5_says_nothing(etag: str) -> None:
    assert find_md5(f"HTTP/1.1 200 OK\r\nETag: {etag}\r\nDate: x\r\n".encode()) is None


def test_an_answer_without_an_etag_says_nothing() -> None:
    assert find_md5(b"HTTP/1.1 200 OK\r\nDate: x\r\n") is None


def test_the_first_of_each_so_many_is_chosen() -> None:
    sample = RegularSample()
    assert [place for place in range(3 * SAMPLE_INTERVAL) if sample()] == [
        0,
        SAMPLE_INTERVAL,
        2 * SAMPLE_INTERVAL,
    ]


def test_of_large_bodies_fewer_are_chosen_whatever_comes_between() -> None:
    sample = RegularSample(2, 3)
    sizes = [LARGE_BYTES, LARGE_BYTES + 1, 0, LARGE_BYTES + 1, 1, 10**9, LARGE_BYTES + 1]
    assert [sample(size) for size in sizes] == [True, True, False, False, True, False, True]


@pytest.mark.parametrize(
    ("size", "every"),
    [
        (1, SAMPLE_INTERVAL),
        (4096, SAMPLE_INTERVAL),
        (LARGE_BYTES, SAMPLE_INTERVAL),
        (LARGE_BYTES + 1, LARGE_SAMPLE_INTERVAL),
        (10**8, LARGE_SAMPLE_INTERVAL),
    ],
)
def test_the_larger_uploads_are_the_fewer_are_summed_up(size: int, every: int) -> None:
    payload = BodySource(1)
    chosen = [place for place in range(2 * LARGE_SAMPLE_INTERVAL) if payload.begin(size)[2] is not None]
    assert chosen == [*range(0, 2 * LARGE_SAMPLE_INTERVAL, every)]


def test_what_is_received_in_pieces() -> None:
    received = ReceivedDigest()
    for piece in (b"by", b"", b"tes"):
        received.feed(piece)
    assert received.md5.hexdigest() == EXPECTED


@pytest.mark.parametrize("size", [16, 17, 4096, 4097, 70_000])
def test_a_body_says_of_which_object_it_is(size: int) -> None:
    source = BodySource()
    path = "c_000001/small 7_000042"
    number = number_stem("c_000001/small 7_") + 42
    assert number == number_object(path)
    begin, offset, _ = source.begin(size, number)
    body = begin + bytes(source.piece(offset, size - len(begin)))
    assert len(body) == size
    for cuts in ([size], [1, 15, 16], [5000]):
        check = ReceivedDigest()
        rest = body
        for cut in cuts:
            check.feed(rest[:cut])
            rest = rest[cut:]
        check.feed(rest)
        assert check.md5.digest() == hashlib.md5(body).digest()
        assert not check.is_of_another(path)
        for other in ("c_000001/small 7_000043", "c_000002/small 7_000042", "c_000001/small_000042", "c/o"):
            assert check.is_of_another(other)


@pytest.mark.parametrize("body", [b"", b"x" * 15, bytes(16), bytes(5000), b"\xff" * 16, os.urandom(5000)])
def test_a_body_of_another_program_says_of_no_object_that_it_is_its_own(body: bytes) -> None:
    check = ReceivedDigest()
    check.feed(body)
    assert not check.is_of_another("c/o")
    assert not check.is_of_another("c_000001/small_000042")


def test_bodies_of_one_object_are_not_alike() -> None:
    sources = [BodySource(), BodySource()]
    assert len({source.begin(100, 5)[0] for source in sources for _ in range(100)}) == 200
    assert object_of_stamp(BodySource().begin(16)[0]) is None
