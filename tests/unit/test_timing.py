"""How long the longest job may take."""

from __future__ import annotations

from ssbench.swift.timing import longest_job


def test_each_part_counts() -> None:
    plain = longest_job(1.0, 2.0, None, 0, 0)
    assert plain > 2 * (2 * 1.0 + 3 * 2.0)
    assert longest_job(2.0, 2.0, None, 0, 0) > plain
    assert longest_job(1.0, 3.0, None, 0, 0) > plain
    assert longest_job(1.0, 3.0, 6.0, 0, 0) == plain
    assert longest_job(1.0, 2.0, None, 0, 1_000_000) > plain + 100
    assert longest_job(1.0, 2.0, None, 10, 0) > 10 * plain
