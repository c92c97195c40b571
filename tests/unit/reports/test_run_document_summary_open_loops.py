"""Open loops that an overloaded store does not keep up with, against arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from planted_load import play

from ssbench.reports.key_figures import format_bounded_percentile, make_latency_table
from ssbench.scenario.model import Stage
from ssbench.statistics.latencies import merge_latencies, select_latencies
from ssbench.statistics.latency_parts import CensoredLatencies
from ssbench.statistics.run_verdict import asked_load, delivered_load

MS = 1e-3


def overloaded(users=3, rate=2000.0, seconds=5.0, took=11.4 * MS, **more):
    """A store that does 263 operations a second for 3 users, asked for 2,000 a second."""
    return play(lambda sent: sent + took, [Stage(seconds, (users, users), (rate, rate))], **more)


@pytest.mark.parametrize("kind", ["even", "poisson"])
def test_what_never_began_makes_percentiles_at_least(kind):
    numbers = overloaded(arrivals=kind)
    delivery = numbers.delivery
    begun = numbers.total.count
    assert begun == pytest.approx(1316, abs=5)
    assert delivery.due == pytest.approx(10_000, rel=0.03)
    assert delivery.not_begun == delivery.due - begun
    assert delivery.undelivered == pytest.approx(0.868, abs=0.01)
    latency = numbers.total.lines[0].latency
    assert latency.count == delivery.due
    # 1,316 waited up to 4.34 s, evenly; the 8,684 that never began had waited 0 to 4.34 s.
    for rank in (50, 99, 100):
        assert latency.percentile(rank) == pytest.approx(4.342 * rank / 100, rel=0.03)
        assert latency.most(rank) == math.inf
    assert latency.interval(50) is None
    assert latency.most(None) == math.inf
    assert latency.mean == pytest.approx(4.342 / 2, rel=0.02)
    # The measured part is what the response time is known to be at most.
    assert latency.most(10) == pytest.approx(numbers.total.due.response.percentile(76), rel=0.05)


def test_the_full_report_has_the_response_times_of_the_summary():
    """Beside "in response times as at least" stood those of what had begun alone."""
    numbers = overloaded(users=1, rate=100.0, took=40 * MS)
    ((_, operations, median, *_),) = (row for row in make_latency_table(numbers).rows if row[0] == "ALL resp")
    latency = numbers.total.latency
    assert (operations, median) == (f"{numbers.due}", format_bounded_percentile(latency, 50))
    assert median.startswith(">")


def test_a_rate_that_is_kept_has_figures_without_bounds():
    numbers = overloaded(users=100, rate=100.0, seconds=10.0)
    latency = numbers.total.lines[0].latency
    assert (numbers.not_begun, latency.waited.count, numbers.delivery.behind) == (0, 0, 0.0)
    assert latency.percentile(99) == latency.most(99) == pytest.approx(11.4 * MS, rel=1e-3)
    assert latency.interval(50) is not None


def test_what_workers_had_ahead_of_an_interruption_was_due_too():
    """It was said that 1,000 of 950 operations had ended."""
    numbers = play(lambda sent: sent + MS, [Stage(10.0, (10, 10), (100.0, 100.0))], interrupted=9.5)
    assert numbers.total.count == 1000
    assert (numbers.delivery.due, numbers.delivery.not_begun) == (1000, 0)
    assert (asked_load(numbers).operations, delivered_load(numbers).operations) == (1000, 1000)


def test_the_operations_share_what_never_began():
    numbers = overloaded()
    assert [section.latency.waited.count for section in numbers.sections] == [numbers.not_begun] * 2
    assert numbers.sections[1].latency.percentile(99) == numbers.total.latency.percentile(99)


def test_a_store_that_falls_behind_is_seen_where_everything_began():
    """Each operation takes longer than the one before: all begin, and fewer end than are due."""
    late = play(lambda sent: sent + 0.9 * sent, [Stage(20, (4000, 4000), (100, 100))])
    assert late.not_begun == 0
    # What ends until t was sent until t / 1.9.
    assert late.delivery.behind == pytest.approx(1 - 1 / 1.9, abs=0.02)
    kept = play(lambda sent: sent + 3.0, [Stage(20, (4000, 4000), (100, 100))], arrivals="poisson")
    assert kept.delivery.behind == 0.0


def test_a_closed_loop_is_judged_by_the_latency_to_the_last_byte():
    numbers = play(lambda sent: sent + 10 * MS, [Stage(2, (4, 4))])
    line = numbers.total.lines[0]
    assert numbers.delivery is None
    assert line.latency.measured is line.last_byte
    assert line.latency.together is line.last_byte


def test_stages_with_and_without_a_rate_have_latencies_of_both():
    plan = [Stage(5, (4, 4)), Stage(5, (4, 4), (100, 100))]
    numbers = play(lambda sent: sent + 50 * MS, plan)
    closed, open_ = (each.numbers for each in numbers.stages)
    assert (closed.delivery, open_.delivery) == (None, numbers.delivery)
    assert numbers.total.latency.count == closed.total.count + open_.total.count + open_.not_begun
    assert open_.not_begun > 50
    assert closed.total.latency.percentile(50) == pytest.approx(50 * MS)


def test_percentiles_with_endless_ones_follow_the_rule():
    few = select_latencies(np.arange(1.0, 11.0))
    assert few.percentile(50, endless=0) == 5.5
    assert few.percentile(50, endless=9) == 10.0
    assert few.percentile(50, endless=10) == math.inf
    assert math.isnan(select_latencies(np.empty(0)).percentile(50))
    found = CensoredLatencies.of(few, select_latencies(np.array([0.5] * 2)))
    assert (found.percentile(50), found.most(50)) == (4.5, 6.5)
    assert CensoredLatencies.of(few, merge_latencies(())).percentile(90) == 9.5
