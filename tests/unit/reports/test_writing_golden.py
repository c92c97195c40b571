"""Reports of the same results are the same as ever.

Where a figure is changed on purpose, ``python tests/helpers/golden.py`` writes the documents anew.
"""

from __future__ import annotations

import golden
import pytest
from golden import differences


@pytest.mark.parametrize("name", golden.DOCUMENTS)
def test_reports_of_the_same_results_are_the_same_as_ever(name: str) -> None:
    found = [*differences(golden.kept(name), golden.made(name))]
    assert not found, "\n".join([f"{len(found)} differences", *found[:20]])


def test_a_difference_is_found_wherever_it_is() -> None:
    was = {"a": [1.0, {"b": None}], "c": 3}
    assert not [*differences(was, {"a": [1.0 + 1e-9, {"b": None}], "c": 3})]
    for found in ({"a": [1.1, {"b": None}], "c": 3}, {"a": [1.0, {"b": 0}], "c": 3}, {"a": [1.0], "c": 3}):
        assert len([*differences(was, found)]) == 1
    assert len([*differences(was, {"d": 1})]) == 3
