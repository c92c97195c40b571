"""Operations that were due: response times, lateness, and what never began."""

from __future__ import annotations

import numpy as np
import pytest
from counted import failed, row
from result_rows import block

from ssbench.statistics.latencies import merge_latencies, select_latencies
from ssbench.statistics.latency_parts import (
    LATE_START_SECONDS,
    CensoredLatencies,
    DueCollector,
    DueFigures,
    make_uncensored,
    merge_due,
)


def collected(*, mixed: bool = False) -> DueFigures:
    """Four operations: in time, late, not due, late and failed."""
    rows = [row(last=1.0, completed=at) for at in (101.0, 103.5, 104.0, 106.0)]
    made = block(rows, failures=failed(3), rare={"due": {0: 100.0, 1: 102.0, 3: 104.9}})
    collector = DueCollector()
    collector.add(made, np.zeros(4, np.intp), made.completed - 1.0, 0, mixed=mixed)
    (found,) = collector.finish()
    return found


def test_responses_are_of_successes_since_they_were_due_and_lateness_of_all() -> None:
    due = collected()
    assert (due.response.count, due.response.minimum, due.response.maximum) == (2, 1.0, 1.5)
    assert due.lateness.count == 3
    assert due.lateness.maximum == pytest.approx(0.5)
    assert due.late == 2  # by 0.5 s and by 0.1 s
    assert due.undue.count == 0


def test_what_was_not_due_is_kept_in_a_mixed_run_only() -> None:
    due = collected(mixed=True)
    assert (due.undue.count, due.undue.maximum) == (1, 1.0)
    found = due.users_latency(select_latencies(np.array([9.0])))
    assert (found.count, found.percentile(100)) == (3, 1.5)


def test_in_time_is_up_to_a_millisecond() -> None:
    made = block([row()] * 3, rare={"due": dict.fromkeys(range(3), 100.0)})
    collector = DueCollector()
    collector.add(
        made,
        np.zeros(3, np.intp),
        100.0 + np.array([0.0, 0.9 * LATE_START_SECONDS, 1.1 * LATE_START_SECONDS]),
        0,
    )
    (due,) = collector.finish()
    assert due.late == 1
    assert due.lateness.count == 3  # that which began in the moment in which it was due is measured too


def test_a_closed_loop_has_latencies_to_the_last_byte() -> None:
    found = DueFigures().users_latency(select_latencies(np.array([1.0, 2.0])))
    assert (found.count, found.percentile(100), found.waited.count) == (2, 2.0, 0)
    assert DueFigures().since_due.count == 0


def test_what_never_began_makes_figures_lower_bounds_after_merging_too() -> None:
    one = DueFigures(response=select_latencies(np.array([1.0, 2.0])), late=1)
    two = DueFigures(waited=select_latencies(np.array([5.0, 6.0])), late=2)
    due = merge_due([one, two, DueFigures()])
    assert due.late == 3
    assert (due.since_due.count, due.since_due.percentile(100)) == (4, 6.0)
    assert due.since_due.most(100) == np.inf
    assert due.since_due.most(25) == due.since_due.percentile(25) == 1.5


def test_the_share_within_a_limit_is_of_all_that_were_due() -> None:
    found = CensoredLatencies.of(
        select_latencies(np.array([1.0, 2.0])), select_latencies(np.array([0.5, 6.0]))
    )
    assert [found.share_within(limit) for limit in (0.1, 1.0, 9.0)] == [0.0, 0.25, 0.5]
    assert make_uncensored(merge_latencies(())).share_within(1.0) == 0.0
    whole = make_uncensored(select_latencies(np.array([1.0, 2.0])))
    assert (whole.share_within(1.0), whole.most(100), whole.most(None)) == (0.5, 2.0, 1.5)
