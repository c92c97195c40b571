"""Values that differ from run to run; how sweeps have them is tested there."""

from __future__ import annotations

import pytest

from ssbench.scenario.value_series import LARGEST_IN_SERIES, parse_series


@pytest.mark.parametrize("name", LARGEST_IN_SERIES)
def test_a_list_and_a_range_of_each(name: str) -> None:
    for text, values in (("8,2", (2, 8)), ("2..7", (2, 4, 7)), ("2..8/3", (2, 4, 8))):
        assert parse_series(name, text, f"{name}={text}") == values
    most = LARGEST_IN_SERIES[name]
    assert parse_series(name, f"{most}", "") == (most,)
    with pytest.raises(ValueError, match=f"'x': '{most + 1}' is not a number from 1 to"):
        parse_series(name, f"{most + 1}", "x")
