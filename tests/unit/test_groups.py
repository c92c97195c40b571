"""Results that agree in some of their fields."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from ssbench.statistics.groups import split

#: Alike, far apart, and over all of the range of a field.
VALUES = st.integers(0, 3) | st.sampled_from([-1, 2**16, 2**40]) | st.integers(-(2**63), 2**63 - 1)


@given(
    st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[VALUES] * width), min_size=1, max_size=40))
)
# In base 65001 the second is 2**32, so that 32 bits cannot tell it from the first.
@example([(0, 0, 0), (1, 1074, 26221), (65_000, 65_000, 65_000)])
@example([(-(2**63), 1), (2**63 - 1, 2)])
def test_rows_are_split_by_the_values_that_occur_together(rows: list[tuple[int, ...]]) -> None:
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    expected: dict[tuple[int, ...], list[int]] = {}
    for place, values in enumerate(rows):
        expected.setdefault(values, []).append(place)
    found = [(values, places.tolist()) for values, places in split(columns)]
    assert len(found) == len(expected)
    assert dict(found) == expected
