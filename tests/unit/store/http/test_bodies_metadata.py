"""Metadata follow from seed, name and version; what differs is found, and what a cluster refuses is named."""

from __future__ import annotations

import pytest
from golden_words import GoldenWords

from ssbench.scenario.operations import OperationSettings
from ssbench.store.http.bodies import (
    MetadataShape,
    describe_wrong_metadata,
    find_exceeded_limits,
    make_metadata,
    posted_shape,
)

DEFAULTS = {
    "max_meta_count": 90,
    "max_meta_name_length": 128,
    "max_meta_overall_size": 4096,
    "max_meta_value_length": 256,
}


def head(shape: MetadataShape, seed: int = 7, path: str = "c/ö", *, changed: int | None = None) -> bytes:
    """Return the head of an answer for an object with such metadata."""
    lines = ["HTTP/1.1 200 OK"]
    for number, (name, value) in enumerate(make_metadata(seed, path, shape)):
        other = "0" if value[-1] != "0" else "1"
        lines.append(f"X-Object-Meta-{name.title()}: {value[:-1] + other if number == changed else value}")
    return "\r\n".join([*lines, "X-Object-Meta-Ssbench-Owner: 1a2b mine", "Content-Length: 0", ""]).encode()


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (1, 8), (3, 5), (5, 100), (89, 44), (2, 256)])
def test_what_was_written_is_right(shape: MetadataShape) -> None:
    assert [len(value) for _, value in make_metadata(7, "c/ö", shape)] == [shape[1]] * shape[0]
    assert describe_wrong_metadata(7, "c/ö", head(shape), {shape, (7, 7)}) is None


@pytest.mark.parametrize("changed", range(4))
def test_a_changed_value_is_found_whichever_it_is(changed: int, golden_words: GoldenWords) -> None:
    # A change of the version itself shows in the first value that depends on it.
    wrong = describe_wrong_metadata(7, "c/ö", head((4, 32), changed=changed), {(4, 32)})
    golden_words(wrong)


def test_values_of_another_name_or_seed_are_wrong() -> None:
    assert describe_wrong_metadata(7, "c/ö", head((4, 32), path="c/other"), {(4, 32)}) is not None
    assert describe_wrong_metadata(7, "c/ö", head((4, 32), seed=8), {(4, 32)}) is not None
    assert make_metadata(7, "c/ö", (4, 32)) != make_metadata(7, "c/ö", (4, 32)), (
        "each write is a version of its own"
    )


@pytest.mark.parametrize("shape", [(0, 0), (3, 32), (5, 32), (4, 31)])
def test_too_few_too_many_and_too_short(shape: MetadataShape, golden_words: GoldenWords) -> None:
    golden_words(describe_wrong_metadata(7, "c/ö", head(shape), {(4, 32)}))


def test_what_a_post_sets() -> None:
    assert posted_shape(OperationSettings("post"), (0, 0)) == (1, 16)
    assert posted_shape(OperationSettings("post"), (5, 100)) == (5, 100)
    assert posted_shape(OperationSettings("post", values={"metadata": 2}), (5, 100)) == (2, 100)
    assert posted_shape(OperationSettings("post", values={"metadata_bytes": 9}), (0, 0)) == (1, 9)


def test_limits_that_are_exceeded_are_named() -> None:
    assert list(find_exceeded_limits(DEFAULTS, (5, 100), "x" * 40)) == []
    assert list(find_exceeded_limits({}, (5000, 100), "x" * 40)) == []
    assert list(find_exceeded_limits({"max_meta_count": "many"}, (5000, 100), "")) == []
    # The item that says whose an object is counts too.
    assert list(find_exceeded_limits(DEFAULTS, (90, 1), "x")) == ["max_meta_count 91 (at most 90)"]
    assert list(find_exceeded_limits(DEFAULTS, (1, 257), "x")) == ["max_meta_value_length 257 (at most 256)"]
    # 16 x 246 bytes, 10 names of 9 and 6 of 10 letters, and 13 + 1 of the owner.
    assert list(find_exceeded_limits(DEFAULTS, (16, 246), "x")) == [
        "max_meta_overall_size 4,100 (at most 4,096)"
    ]
    assert list(find_exceeded_limits(DEFAULTS, (16, 245), "x" * 12)) == []
