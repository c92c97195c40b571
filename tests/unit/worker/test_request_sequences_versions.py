"""Versions of an object: how an operation on them ends, whatever a store answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from ssbench.store.contract import RequestOutcome, StoreReply
from ssbench.worker import request_sequences


def answer(body: bytes) -> RequestOutcome:
    return RequestOutcome(0, None, 0.1, 1.0, len(body), reply=StoreReply({}, body))


def listing(*ids: object) -> bytes:
    return json.encode([{"version_id": each} for each in ids])


def test_ids_are_those_of_the_listing_in_its_order() -> None:
    assert request_sequences._ids_in(answer(listing("2", "1", "null"))) == ["2", "1", "null"]
    assert request_sequences._ids_in(answer(listing())) == []


#: What reads a body of which the store says that it is JSON, and what that returns for what is none.
READERS: list[tuple[Callable[[RequestOutcome], Any], Any]] = [
    (request_sequences._ids_in, None),
    (request_sequences.decode_verdict, {}),
]
reading = pytest.mark.parametrize(("read", "nothing"), READERS, ids=["ids", "verdict"])

BROKEN = {
    "empty": b"",
    "no JSON": b"<html>",
    "no UTF-8": b'[{"version_id": "\xff", "name": "\xff"}]',
    "no UTF-8 in a mapping": b'{"Errors": "\xff"}',
    "deep": b'[{"version_id": ' + b"[" * 100_000,
    "deep in a mapping": b'{"Errors": ' + b"[" * 100_000,
    "a lone surrogate": b'[{"version_id": "\\ud800"}]',
    "another type": b'"text"',
    "a list of numbers": b"[1, 2]",
}


@reading
@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_a_body_that_is_none_is_taken_for_none(
    read: Callable[[RequestOutcome], Any], nothing: Any, body: bytes
) -> None:
    assert read(answer(body)) == nothing


@reading
def test_no_body_at_all(read: Callable[[RequestOutcome], Any], nothing: Any) -> None:
    assert read(RequestOutcome(0, None, None, 1.0, cause="reset")) == nothing


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("version_id"),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["version_id", "name", "subdir", "x"]), inner)
    ),
    max_leaves=8,
)


@reading
@given(body=st.binary() | VALUES.map(lambda value: json.encode(value) if _can_be_encoded(value) else b""))
def test_any_body_is_read_or_taken_for_none(
    read: Callable[[RequestOutcome], Any], nothing: Any, body: bytes
) -> None:
    found = read(answer(body))
    assert found == nothing or isinstance(found, list | dict)


def _can_be_encoded(value: object) -> bool:
    try:
        json.encode(value)
    except (ValueError, OverflowError):
        return False
    return True
