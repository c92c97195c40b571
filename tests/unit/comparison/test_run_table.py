"""Runs as a table: which sides it has, and which runs are theirs."""

from __future__ import annotations

import pytest
from said import NOTHING_VARIES

from ssbench.base.errors import UsageError
from ssbench.comparison.run_table import check_sides, make_run_table, name_row_without, split_rows

#: What rows of a suite say of their keys, one of which has names for its values.
WORDS = [
    {"profile": profile, "users": f"users={users}"} for profile in ("put", "get") for users in (4, 8, 16)
]
ROWS = [(f"kv {words['profile']} {words['users']}", words, [place]) for place, words in enumerate(WORDS)]


def test_any_key_that_varies_can_be_the_sides() -> None:
    table = split_rows([*ROWS, ("photos", {}, [99])], "profile")
    assert table.sides == ("put", "get")
    assert table.rows == {f"kv users={users}": [[at], [3 + at]] for at, users in enumerate((4, 8, 16))}
    table = split_rows(ROWS, "users")
    assert table.sides == ("4", "8", "16")
    assert table.rows == {"kv put": [[0], [1], [2]], "kv get": [[3], [4], [5]]}


def test_a_row_that_a_side_lacks_is_known() -> None:
    table = make_run_table(("old", "new"), [("a", 0, 1), ("a", 1, 2), ("b", 1, 3), ("b", 1, 4)])
    assert table.rows == {"a": [[1], [2]], "b": [[], [3, 4]]}
    assert (table.list_rows_without(0), table.list_rows_without(1)) == (["b"], [])
    assert table.reduced(str).rows["b"] == [[], ["3", "4"]]


def test_names_of_values_may_be_parts_of_other_names() -> None:
    words = {"profile": "get", "size": "size=1MiB"}
    assert name_row_without("get get size=1MiB", words, "profile") == "get size=1MiB"
    assert name_row_without("get get size=1MiB", words, "size") == "get get"
    assert name_row_without("get", {}, "size") == "get"


@pytest.mark.parametrize(
    ("rows", "key", "said"),
    [
        (WORDS, "user", "--between user: expected profile or users; did you mean users?"),
        (WORDS[:3], "profile", "--between profile: all have put; expected users"),
        ([{}], "users", f"--between users: {NOTHING_VARIES}"),
    ],
)
def test_a_key_that_does_not_vary_is_refused(rows: list[dict[str, str]], key: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        check_sides(rows, key)
    assert str(raised.value) == said
    check_sides(WORDS, "users")
