"""The parts of the time of successes besides their last attempts."""

from __future__ import annotations

import numpy as np
from counted import row
from result_rows import block

from ssbench.statistics.attempts import NONE, Part, Parts, parts_of, sum_of


def test_parts_of_the_rows_that_are_asked_for() -> None:
    rare = {"connecting": {0: 0.5, 2: 2.0}, "pausing": {1: 1.0}}
    made = block([row()] * 3, rare=rare)
    assert parts_of(made, np.arange(3)) == Parts(Part(2, 2.5, 2.0), Part(1, 1.0, 1.0))
    assert parts_of(made, np.array([1])) == Parts(Part(), Part(1, 1.0, 1.0))


def test_a_usual_block_costs_nothing() -> None:
    made = block([row()] * 3)
    assert parts_of(made, np.arange(3)) is NONE
    assert sum_of([NONE, NONE]) is NONE


def test_the_sum_keeps_the_longest() -> None:
    one, two = Parts(Part(1, 3.0, 3.0)), Parts(Part(4, 4.0, 1.5), Part(1, 1.0, 1.0))
    assert sum_of([one, NONE, two]) == Parts(Part(5, 7.0, 3.0), Part(1, 1.0, 1.0))
