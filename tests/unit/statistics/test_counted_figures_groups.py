"""Results that agree in some of their fields."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from ssbench.results.block import make_constant_column
from ssbench.statistics.counted_figures import Numbering

#: Alike, far apart, and over all of the range of a field.
VALUES = st.integers(0, 3) | st.sampled_from([-1, 2**16, 2**40]) | st.integers(-(2**63), 2**63 - 1)


@given(
    st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[VALUES] * width), min_size=1, max_size=40))
)
# In base 65001 the second is 2**32, so that 32 bits cannot tell it from the first.
@example([(0, 0, 0), (1, 1074, 26221), (65_000, 65_000, 65_000)])
@example([(-(2**63), 1), (2**63 - 1, 2)])
def test_rows_have_one_number_where_their_values_are_the_same(rows: list[tuple[int, ...]]) -> None:
    numbering, found = Numbering(), []
    middle = len(rows) // 2
    for block in filter(None, (rows[:middle], rows[middle:])):
        columns = [np.array(column, np.int64) for column in zip(*block, strict=True)]
        found += numbering.of(columns, len(block)).tolist()
    values = {number: values for values, number in numbering.numbers.items()}
    assert [values[number] for number in found] == rows
    assert sorted(values) == list(range(len({*rows})))


def test_without_columns_all_rows_are_one_group() -> None:
    numbering = Numbering()
    assert numbering.of([], 3).tolist() == [0, 0, 0]
    assert numbering.numbers == {(): 0}


def test_columns_of_one_value_are_kept_apart_by_block() -> None:
    numbering = Numbering()
    found = [
        numbering.of([make_constant_column(value, 2), np.array([1, 2])], 2).tolist() for value in (5, 6, 5)
    ]
    assert found == [[0, 1], [2, 3], [0, 1]]
