"""Figures of accounts and addresses, from blocks in memory."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from result_rows import block, row

from ssbench.results.block import LOST_CAUSE, Failure, ResultBlock
from ssbench.statistics.collector import MembersCollector


def results(accounts: list[int], failures: dict[int, str | None], retried: dict[str, int]) -> ResultBlock:
    found = {place: Failure(cause, "", retried) for place, cause in failures.items()}
    rows = [row(completed=1000.0 + place, first_byte=0.1, last_byte=0.2) for place in range(len(accounts))]
    return block(rows, failures=found, rare={"account": dict(enumerate(accounts))})


def collect(*blocks: ResultBlock) -> MembersCollector:
    made, before = MembersCollector(), 0
    for each in blocks:
        made.add(each, np.zeros(len(each)), before, None)
        before += len(each)
    return made


def test_results_of_one_account_have_no_members() -> None:
    made = collect(block([row(completed=1000.0)] * 3))
    assert made.finish("account", None) == made.finish("address", None) == ()


def test_errors_are_counted_by_cause_the_most_frequent_first() -> None:
    failures: dict[int, str | None] = {
        0: "reset",
        1: LOST_CAUSE,
        2: LOST_CAUSE,
        3: "reset",
        4: "reset",
        6: None,
    }
    first, second = collect(results([2, 2, 2, 2, 2, 0, 0], failures, {"reset": 1})).finish("account", None)
    assert (first.number, second.number) == (0, 2)
    assert list(second.errors.items()) == [("reset", 3), (LOST_CAUSE, 2)]
    # A success after a retry is no error.
    assert first.errors == {}
    assert (first.figures.lost, second.figures.lost) == (0, 2)


@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(0, 300), st.sampled_from(["ok", "retried", "reset", LOST_CAUSE])),
            min_size=1,
        ),
        max_size=4,
    )
)
def test_members_add_up_to_the_run(blocks: list[list[tuple[int, str]]]) -> None:
    made = collect(
        *(
            results(
                [account for account, _ in own],
                {
                    place: None if how == "retried" else how
                    for place, (_, how) in enumerate(own)
                    if how != "ok"
                },
                {},
            )
            for own in blocks
        )
    )
    every = [each for own in blocks for each in own]
    members = made.finish("account", None)
    assert [each.number for each in members] == sorted({account for account, _ in every})
    for member in members:
        ended = Counter(how for account, how in every if account == member.number)
        successes = ended.pop("ok", 0) + ended.pop("retried", 0)
        assert member.errors == ended
        assert (member.figures.count, member.figures.failed) == (successes, ended.total())
        assert member.figures.lost == ended[LOST_CAUSE]


def test_results_without_an_account_have_their_addresses() -> None:
    rows = [row(completed=1000.0, first_byte=0.1, last_byte=0.2)] * 3
    made = collect(block(rows, rare={"address": {0: 1, 2: 1}}))
    assert made.finish("account", None) == ()
    assert [(each.number, each.figures.count) for each in made.finish("address", None)] == [(-1, 1), (1, 2)]
