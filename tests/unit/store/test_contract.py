"""The one record of a result: how its rare fields add up, and that each has its place in a row."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec.structs import fields

from ssbench.results.result_fields import FIELDS, STEP_FIELDS
from ssbench.store.contract import (
    ADDED_OVER_ATTEMPTS,
    ADDED_OVER_REQUESTS,
    NO_RARE_FIELDS,
    JobResult,
    RareFields,
    RequestOutcome,
    add_rare_fields,
    change_rare_fields,
)

#: What is in no row under its own name: it becomes a mark, one field a step, or a warning.
NOT_IN_ROWS = {"held", "sending", "steps", "left", "unreached"}

#: Its fields that are seconds.
SECONDS = [
    each
    for each in fields(RareFields)
    if any(getattr(kind, "__origin__", None) is float for kind in (each.type, *get_args(each.type)))
]

FIRST = RareFields(0.5, 1.0, 0.25, 3.0, 7, [1.0], 1, "a", ["b"], 2, 1, 4)
LAST = RareFields(0.25, 2.0, address="c", connections=1, unchecked=3)


def test_effort_adds_up_over_attempts_and_all_else_is_of_the_last() -> None:
    whole = add_rare_fields([FIRST, LAST], ADDED_OVER_ATTEMPTS)
    assert whole == RareFields(0.75, 3.0, address="c", connections=3, resumed=1, unchecked=3)
    assert add_rare_fields([FIRST, None], ADDED_OVER_ATTEMPTS) == RareFields(
        0.5, 1.0, connections=2, resumed=1
    )


def test_answers_add_up_over_requests_too() -> None:
    whole = add_rare_fields([FIRST, None, LAST], ADDED_OVER_REQUESTS)
    assert whole == RareFields(0.75, 3.0, address="c", connections=3, resumed=1, unchecked=7)
    assert (NO_RARE_FIELDS, LAST.unchecked) == (RareFields(), 3), "neither was changed"


def test_each_rare_field_is_one_of_a_row() -> None:
    assert {*RareFields.__struct_fields__} - FIELDS.keys() == NOT_IN_ROWS
    assert STEP_FIELDS[0] in FIELDS


def test_an_outcome_begins_as_a_result() -> None:
    """What is sent of an outcome is cut off there."""
    known = JobResult.__struct_fields__
    assert RequestOutcome.__struct_fields__[: len(known)] == known


def test_a_change_of_rare_fields_is_one_of_the_copy() -> None:
    result = JobResult(1, 0.1, 0.2, 3.0)
    assert change_rare_fields(result, left=2).rare == RareFields(left=2)
    assert (result.rare, NO_RARE_FIELDS) == (None, RareFields())


@pytest.mark.parametrize(
    ("rare", "plain"),
    [
        (
            RareFields(address="192.0.2.1", unchecked=1, entries=5, steps=[9.9], connections=1, resumed=1),
            True,
        ),
        *((RareFields(**{each.name: 0.1}), False) for each in SECONDS),
        (RareFields(last_attempt=0.0), False),
        (RareFields(left=1), False),
        (RareFields(unreached=["192.0.2.1"]), False),
    ],
)
def test_which_records_need_no_look(rare: RareFields, plain: bool) -> None:
    assert rare.is_plain() is plain


def test_an_operation_takes_at_least_connecting_and_pauses_and_any_other_time() -> None:
    assert RareFields(connecting=2.0, pausing=0.5, held=1.0).least_seconds() == 2.5
    for each in SECONDS:
        assert RareFields(**{each.name: 3.0}).least_seconds() == 3.0
    assert RareFields().least_seconds() == 0
