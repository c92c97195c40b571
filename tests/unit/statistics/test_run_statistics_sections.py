"""Sections and lines: all operations, each operation, each size class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from counted import failed, row
from result_rows import block

from ssbench.scenario.operations import OPERATIONS
from ssbench.statistics.counted_figures import CountedFigures, FiguresCollector, merge_figures
from ssbench.statistics.run_statistics import make_sections
from ssbench.statistics.timeline import Window

READ, DELETE = OPERATIONS.named("read").code, OPERATIONS.named("delete").code


def figures(latencies: Sequence[float], *, failures: int = 0, retries: int = 0) -> CountedFigures:
    """Return those of operations that ended a second after each other, failures last."""
    rows = [row(last=last, completed=101.0 + n, retries=retries) for n, last in enumerate(latencies)]
    rows += [row(completed=150.0)] * failures
    made = block(rows, failures=failed(*range(len(latencies), len(rows))))
    collector = FiguresCollector()
    collector.add(made, made.completed - made.last_byte, 0, 100.0)
    (found,) = collector.finish(Window(100.0, 200.0)).values()
    return found


LEAVES = {
    (READ, 1): figures([1.0, 2.0], retries=1),
    (READ, 0): figures([3.0], failures=2),
    (DELETE, 0): figures([0.5]),
}


def test_they_come_in_order_and_add_up() -> None:
    total, read, delete = make_sections(LEAVES, ["small", "big"], Window(100.0, 200.0))
    names = [each.operation.name if each.operation else None for each in (total, read, delete)]
    assert names == [None, "read", "delete"]
    assert [line.size_class for line in read.lines] == [None, "small", "big"]
    assert [line.count for line in read.lines] == [3, 1, 2]
    assert (total.count, total.failed) == (4, 2)
    assert total.count == sum(line.count for each in (read, delete) for line in each.lines[1:])
    assert read.last_byte.maximum == 3.0


def test_rates_are_of_the_window() -> None:
    total, read, _ = make_sections(LEAVES, ["small", "big"], Window(100.0, 200.0))
    assert (total.requests_per_second, read.requests_per_second) == (4 / 100, 3 / 100)


def test_without_a_window_each_has_its_own() -> None:
    _, read, delete = make_sections(LEAVES, ["small", "big"], None)
    assert delete.requests_per_second == pytest.approx(1 / 0.5)
    # From the first send, 98 s, to the last completion, a failure's too.
    assert read.requests_per_second == pytest.approx(3 / (150.0 - 98.0))


def test_retries_are_for_each_hundred_successes() -> None:
    total, read, delete = make_sections(LEAVES, ["small", "big"], None)
    assert read.retry_rate == pytest.approx(100 * 2 / 3)
    assert delete.retry_rate == 0.0
    assert total.retry_rate == pytest.approx(50)
    (none,) = make_sections({}, [], None)
    assert (none.count, none.retry_rate, none.requests_per_second) == (0, 0.0, 0.0)


def test_stages_together_have_no_intervals() -> None:
    random = np.random.default_rng(1)
    leaves = {(READ, 0): figures(random.uniform(0.1, 0.9, 90).tolist())}
    window = Window(100.0, 190.0)
    apart, *_ = make_sections(leaves, ["small"], window)
    pooled, *_ = make_sections(leaves, ["small"], window, pooled=True)
    assert apart.rate_interval is not None
    assert apart.last_byte.interval(50) is not None
    assert pooled.rate_interval is None
    assert pooled.last_byte.interval(50) is None
    assert pooled.requests_per_second == apart.requests_per_second


def test_merged_figures_keep_the_ends() -> None:
    merged = merge_figures(LEAVES.values())
    assert (merged.start, merged.end) == (98.0, 150.0)
    assert merged.window_totals.count == 4
    nothing = merge_figures([])
    assert (nothing.count, nothing.start, nothing.end) == (0, np.inf, -np.inf)


def test_the_interval_of_a_rate_needs_as_many_operations_in_each_row() -> None:
    """Eight deletes had one, while rows of thousands that came in turns had a dash."""
    evenly = [0.5] * 90
    leaves = {
        (READ, 0): figures(evenly),
        (DELETE, 0): figures(evenly[:19]),
        (DELETE, 1): figures(evenly[:20]),
    }
    _, read, delete = make_sections(leaves, ["small", "big"], Window(100.0, 190.0))
    assert [line.count for line in (*read.lines[1:], *delete.lines[1:])] == [90, 19, 20]
    assert [line.rate_interval is not None for line in (*read.lines[1:], *delete.lines[1:])] == [
        True,
        False,
        True,
    ]
