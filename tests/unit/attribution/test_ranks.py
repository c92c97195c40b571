"""Deviates and intervals by ranks, against tables and arithmetic."""

from __future__ import annotations

import pytest

from ssbench.attribution.ranks import _normal


@pytest.mark.parametrize(
    ("t", "freedom", "z"),
    [(2.228, 10, 1.96), (2.042, 30, 1.96), (1.98, 120, 1.96), (-2.228, 10, -1.96)],
)
def test_the_normal_deviate_is_as_probable_as_students(t: float, freedom: int, z: float) -> None:
    """Values of t from printed tables: 5 %, two-sided."""
    assert _normal(t, freedom) == pytest.approx(z, abs=0.02)


def test_without_a_degree_of_freedom_nothing_is_changed() -> None:
    assert _normal(3.0, 0) == 3.0
