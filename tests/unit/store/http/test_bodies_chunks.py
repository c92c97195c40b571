"""How much is uploaded before a store that shares equal chunks of a fixed size gains anything."""

from __future__ import annotations

import itertools

import pytest

from ssbench.store.http.bodies import BLOCK_BYTES, BodySource


def find_stride(size: int) -> int:
    """By how much further on in the block each body begins than the one before."""
    source = BodySource(1)
    offsets = [source.begin(size)[1] for _ in range(4)]
    (stride,) = {(later - earlier) % BLOCK_BYTES for earlier, later in itertools.pairwise(offsets)}
    return stride


def count_until_alike(stride: int, size: int, chunk: int) -> int:
    """How many bodies there are before two have an equal chunk, wherever in them."""
    inverse = pow(stride, -1, BLOCK_BYTES)
    apart = (count * chunk * inverse % BLOCK_BYTES for count in range(1, max(2, size // chunk)))
    return min(min(each, BLOCK_BYTES - each) for each in apart)


@pytest.mark.parametrize(
    ("size", "chunk", "gigabytes"),
    [
        (8192, 4096, 15),
        (65536, 4096, 10),
        (65536, 16384, 30),
        (1 << 20, 4096, 8),
        (1 << 20, 1 << 17, 150),
        (1 << 24, 1 << 17, 300),
    ],
)
def test_no_two_chunks_are_alike_for_long(size: int, chunk: int, gigabytes: int) -> None:
    assert count_until_alike(find_stride(size), size, chunk) * size / 1e9 >= gigabytes


def test_a_body_is_mostly_of_bytes_that_the_last_one_had() -> None:
    assert find_stride(65536) < 65536 / 8
