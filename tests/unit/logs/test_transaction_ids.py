"""Which texts are transaction ids, and which of them are those of results."""

from __future__ import annotations

import numpy as np
import pytest

from ssbench.logs import transaction_ids
from ssbench.logs.transaction_ids import TransactionIds

ID = "tx0123456789abcdef01234-006b021d00"
OLD = "tx" + "0123456789abcdef" * 2  # until Swift 1.8, without a time


def changed(place: int, character: str) -> str:
    return ID[:place] + character + ID[place + 1 :]


@pytest.mark.parametrize("text", [ID, OLD, f"{ID}-ssb-0000002a", changed(22, "f"), changed(33, "f")])
def test_ids_of_all_versions_are_ids(text: str) -> None:
    found, at = transaction_ids.ids_of_column([None, text])
    assert (bytes(found[0]).decode(), at.tolist()) == (text[: transaction_ids.ID_LENGTH], [1])


@pytest.mark.parametrize(
    "text",
    [
        *(changed(place, "x") for place in (0, 2, 22, 23, 24, 33)),
        changed(1, "t"),
        ID[:-1],
        "",
        changed(24, "-"),
    ],
)
def test_what_only_looks_like_one_is_none(text: str) -> None:
    found, at = transaction_ids.ids_of_column([text])
    assert (len(found), at.tolist()) == (0, [])


def test_the_place_of_each_id_is_found_and_of_equal_ones_the_last() -> None:
    texts = [ID, changed(33, "1"), ID]
    found, at = transaction_ids.ids_of_column(texts)
    known = TransactionIds.of(transaction_ids.number_ids(found), at.astype(np.uint32))
    others, _ = transaction_ids.ids_of_column([texts[1], ID, changed(2, "f"), changed(33, "2")])
    assert known.find(others).tolist() == [1, 2, -1, -1]
    nothing, at = transaction_ids.ids_of_column([])
    assert (
        TransactionIds.of(transaction_ids.number_ids(nothing), at.astype(np.uint32)).find(others).tolist()
        == [-1] * 4
    )


def test_ids_of_all_results_are_known_beside_those_of_a_sample() -> None:
    texts = [ID, changed(33, "1"), changed(33, "2")]
    numbers = transaction_ids.number_ids(transaction_ids.ids_of_column(texts)[0])
    known = TransactionIds.of(numbers[1:2], np.array([7], np.uint32), numbers.copy())
    others, _ = transaction_ids.ids_of_column([*texts, changed(33, "3")])
    assert known.find(others).tolist() == [
        transaction_ids.UNUSED_ID,
        7,
        transaction_ids.UNUSED_ID,
        transaction_ids.UNKNOWN_ID,
    ]


def test_moments_are_those_of_ids_that_have_one() -> None:
    found, _ = transaction_ids.ids_of_column([ID, changed(33, "9"), OLD])
    assert transaction_ids.time_range_of_ids(found) == (0x6B021D00, 0x6B021D09)
    found, _ = transaction_ids.ids_of_column([OLD])
    assert transaction_ids.time_range_of_ids(found) is None
