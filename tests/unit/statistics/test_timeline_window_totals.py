"""What ended within the window, whose end is known at the end only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from counted import failed, row
from hypothesis import given
from hypothesis import strategies as st
from result_rows import block

from ssbench.results.block import ResultBlock
from ssbench.statistics.timeline import Window, WindowTotals, WindowTotalsCollector, merge_totals


def operations(count: int, seed: int) -> list[tuple[float, float, int, bool]]:
    """Return (sent, ended, bytes, failed), in order of their end."""
    random = np.random.default_rng(seed)
    sent = 100 + np.sort(random.uniform(0, 10, count))
    made = [
        (float(at), float(at + took), int(size), bool(fails))
        for at, took, size, fails in zip(
            sent,
            random.exponential(1.0, count),
            random.integers(0, 1000, count),
            random.random(count) < 0.2,
            strict=True,
        )
    ]
    return sorted(made, key=lambda each: each[1])


def add(
    collector: WindowTotalsCollector, made: ResultBlock, started: npt.NDArray[np.float64], last_sent: float
) -> None:
    """Count the results of a block as those of one group."""
    moved = np.where(made.failed, 0, made.size)
    one = np.zeros(len(made), np.intp)
    collector.add(one, made.completed, moved, ~made.failed, started, last_sent)


@given(seed=st.integers(0, 1000), part=st.integers(1, 40), after=st.floats(0, 3))
def test_it_is_the_same_as_counting_at_the_end(seed: int, part: int, after: float) -> None:
    every = operations(60, seed)
    end = max(sent for sent, *_ in every) + after
    collector, last_sent = WindowTotalsCollector(), -np.inf
    for first in range(0, len(every), part):
        own = every[first : first + part]
        rows = [(1, 0, 1, 0, 1, size, 0.0, ended - sent, ended, 200, 0) for sent, ended, size, _ in own]
        made = block(rows, failures=failed(*(place for place, each in enumerate(own) if each[3])))
        started = np.array([sent for sent, *_ in own])
        last_sent = max(last_sent, float(started.max()))
        add(collector, made, started, last_sent)
    (found,) = collector.finish(Window(100.0, end))
    inside = [each for each in every if each[1] <= end]
    assert found.count == sum(not fails for *_, fails in inside)
    assert found.failed == sum(fails for *_, fails in inside)
    assert found.moved == sum(size for _, _, size, fails in inside if not fails)
    assert found.busy == pytest.approx(sum(min(ended, end) - sent for sent, ended, *_ in every))


def test_a_failure_whose_start_is_not_known_takes_no_time() -> None:
    made = block([row(last=1.0, completed=102.0), row(completed=103.0)], failures=failed(1))
    collector = WindowTotalsCollector()
    add(collector, made, np.array([101.0, np.nan]), 101.0)
    assert collector.finish(Window(100.0, 102.5)) == [WindowTotals(1, 0, 1, 1.0)]
    assert collector.finish(Window(100.0, 103.0)) == [WindowTotals(1, 1, 1, 1.0)]


def test_groups_add_up() -> None:
    assert merge_totals([WindowTotals(1, 2, 3, 0.5), WindowTotals(10, 20, 30, 0.25)]) == WindowTotals(
        11, 22, 33, 0.75
    )
    assert merge_totals([]) == WindowTotals()


def test_our_own_pauses_are_no_time_at_the_store() -> None:
    """The second paused for half of its time, wherever that was, and reaches beyond the window."""
    made = block(
        [row(last=1.0, completed=102.0), row(last=2.0, completed=103.0), row(last=1.0, completed=102.0)]
    )
    collector = WindowTotalsCollector()
    columns = (np.zeros(3, int), made.completed, np.zeros(3), ~made.failed, made.started, 101.0)
    collector.add(*columns, np.array([0.25, 1.0, 5.0]))
    (found,) = collector.finish(Window(100.0, 102.0))
    assert (found.busy, found.pausing) == (0.75 + 0.5 + 0.0, 0.25 + 0.5 + 1.0)
    merged = merge_totals([found, found])
    assert (merged.busy, merged.pausing) == (2 * found.busy, 2 * found.pausing)
