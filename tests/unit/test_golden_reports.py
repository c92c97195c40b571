"""Reports of the same results are the same as ever.

Where a figure is changed on purpose, ``python tests/helpers/golden.py`` writes the documents anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import golden
import pytest


def differences(was: Any, found: Any, path: str = "") -> Iterator[str]:
    """Yield where two documents differ; of a number the last digits may."""
    if isinstance(was, dict) and isinstance(found, dict):
        for key in sorted({*was, *found}):
            yield from differences(was.get(key), found.get(key), f"{path}.{key}")
    elif isinstance(was, list) and isinstance(found, list) and len(was) == len(found):
        for place, (one, other) in enumerate(zip(was, found, strict=True)):
            yield from differences(one, other, f"{path}[{place}]")
    elif isinstance(was, float) and isinstance(found, int | float):
        if not math.isclose(was, found, rel_tol=1e-6, abs_tol=1e-12):
            yield f"{path}: {found}, was {was}"
    elif was != found:
        yield f"{path}: {found!r:.200}, was {was!r:.200}"


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
