"""The parts of the time of successes besides their last attempts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from counted import row
from result_rows import block

from ssbench.results.block import ResultBlock
from ssbench.statistics.latency_parts import (
    NO_LATENCY_PARTS,
    LatencyParts,
    LatencyPartsCollector,
    Part,
    sum_parts,
)


def parts_of(made: ResultBlock, *rows: int, groups: Sequence[int] = (0, 0, 0)) -> list[LatencyParts]:
    """Return the parts of each group, of these rows of a block of three."""
    collector = LatencyPartsCollector()
    collector.add(made, np.array(rows), np.array(groups)[[*rows]])
    return collector.finish(max(groups) + 1)


def test_parts_of_the_rows_that_are_asked_for() -> None:
    rare = {"connecting": {0: 0.5, 2: 2.0}, "pausing": {1: 1.0}}
    made = block([row()] * 3, rare=rare)
    assert parts_of(made, 0, 1, 2) == [LatencyParts(Part(2, 2.5, 2.0), Part(1, 1.0, 1.0))]
    assert parts_of(made, 1) == [LatencyParts(Part(), Part(1, 1.0, 1.0))]


def test_each_group_has_its_own() -> None:
    made = block([row()] * 3, rare={"connecting": {0: 0.5, 2: 2.0}})
    assert parts_of(made, 0, 1, 2, groups=(2, 1, 0)) == [
        LatencyParts(Part(1, 2.0, 2.0), Part()),
        NO_LATENCY_PARTS,
        LatencyParts(Part(1, 0.5, 0.5), Part()),
    ]


def test_a_usual_block_costs_nothing() -> None:
    made = block([row()] * 3)
    (found,) = parts_of(made, 0, 1, 2)
    assert found is NO_LATENCY_PARTS
    assert sum_parts([NO_LATENCY_PARTS, NO_LATENCY_PARTS]) is NO_LATENCY_PARTS


def test_the_sum_keeps_the_longest() -> None:
    one, two = LatencyParts(Part(1, 3.0, 3.0)), LatencyParts(Part(4, 4.0, 1.5), Part(1, 1.0, 1.0))
    assert sum_parts([one, NO_LATENCY_PARTS, two]) == LatencyParts(Part(5, 7.0, 3.0), Part(1, 1.0, 1.0))
