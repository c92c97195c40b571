"""What an open loop delivered, from figures and blocks in memory."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from counted import SCENARIO, failed, row
from result_rows import block

from ssbench.results.block import ResultBlock
from ssbench.results.run_description import RunDescription, StageFacts
from ssbench.scenario.model import Stage
from ssbench.statistics.by_second import LatencyTable
from ssbench.statistics.confidence import estimate_climb
from ssbench.statistics.counted_figures import CountedFigures, FiguresCollector, merge_figures
from ssbench.statistics.delivery import (
    Delivery,
    list_unbegun_waits,
    measure_latency_climb,
    measure_shortfall,
    merge_deliveries,
    spread_waits,
)

RATE = Stage(20.0, (1, 1), (100.0, 100.0))
WENT = StageFacts(1000.0, 1020.0, due=2000)


def figures(ends: list[float], failures: int = 0) -> CountedFigures:
    """The figures of operations that ended then, the last ones of which failed."""
    places = range(len(ends) - failures, len(ends))
    return counted(block([row(completed=end) for end in ends], failures=failed(*places)) if ends else None)


def counted(results: ResultBlock | None) -> CountedFigures:
    """The figures of results, or of none."""
    made = FiguresCollector()
    if results is not None:
        made.add(results, results.started, 0)
    return merge_figures(made.finish().values())


def each_second(counts: dict[int, int]) -> list[float]:
    return [second + 0.5 for second, count in counts.items() for _ in range(count)]


def test_shares_of_what_was_due() -> None:
    made = Delivery(due=200, not_begun=50, late=30)
    assert (made.undelivered, made.late_or_not_begun, made.behind) == (0.25, 0.4, 0.0)
    nothing = Delivery(0, 0, 0)
    assert (nothing.undelivered, nothing.late_or_not_begun) == (0.0, 0.0)


def test_stages_together() -> None:
    assert merge_deliveries([]) is None
    found = merge_deliveries([Delivery(100, 1, 10, 0.2, 0.001), Delivery(50, 2, 20, 0.1, 0.003)])
    assert found == Delivery(150, 3, 30, 0.2, 0.003)


def test_each_group_gets_as_much_of_what_never_began_as_it_has_of_what_ended() -> None:
    leaves = {(1, 0): figures(each_second({1000: 6}), failures=3), (2, 0): figures(each_second({1000: 2}))}
    waited = np.arange(1.0, 101.0)
    parts = spread_waits(leaves, waited)
    assert [*parts] == [*leaves]
    assert [each.due.waited.count for each in parts.values()] == [75, 25]
    # Each gets waits of all lengths.
    for each in parts.values():
        assert each.due.waited.minimum <= 5
        assert each.due.waited.maximum >= 96
        assert each.due.waited.mean == pytest.approx(50, abs=3)
    assert sum(each.due.waited.mean * each.due.waited.count for each in parts.values()) == waited.sum()


def test_where_nothing_ended_there_is_no_kind_to_give_it_to() -> None:
    parts = spread_waits({(1, 0): figures([])}, np.array([1.0]))
    assert parts[1, 0].due.waited.count == 0


def test_what_never_began_waited_from_the_last_moments_at_which_it_was_due() -> None:
    plan = (Stage(5.0, (1, 1), (2.0, 2.0)), Stage(5.0, (1, 1), (4.0, 4.0)))
    run = RunDescription(replace(SCENARIO, stages=plan, arrivals="even"), seed=1)
    went = [StageFacts(100.0, 105.0, 10), StageFacts(105.0, 110.0, 20)]
    first, second = list_unbegun_waits(run, went, [2, 3])
    # At 2 a second the last ones are due half a second apart, at 4 a quarter.
    assert np.diff(first).tolist() == pytest.approx([0.5])
    assert np.diff(second).tolist() == pytest.approx([0.25, 0.25])
    assert first[0] <= 0.5
    assert second[0] <= 0.25
    assert min(first[0], second[0]) > 0
    assert [len(each) for each in list_unbegun_waits(run, went, [0, 1])] == [0, 1]
    assert [len(each) for each in list_unbegun_waits(run, went, [0, 0])] == [0, 0]
    assert [len(each) for each in list_unbegun_waits(run, [], [3])] == [0]
    # A run that ended in its first stage.
    (early,) = list_unbegun_waits(run, [StageFacts(100.0, 102.0, 4)], [1])
    assert 0 < early[0] <= 0.5


def test_what_ended_in_the_second_half_is_compared_with_what_was_due() -> None:
    kept = figures(each_second(dict.fromkeys(range(1000, 1020), 100)))
    assert measure_shortfall(RATE, WENT, kept, 1000.0) == 0.0
    half = figures(each_second(dict.fromkeys(range(1000, 1020), 50)))
    assert measure_shortfall(RATE, WENT, half, 1000.0) == 0.5
    # What was kept up in the first half does not count.
    late = figures(each_second({second: 100 if second < 1010 else 25 for second in range(1000, 1020)}))
    assert measure_shortfall(RATE, WENT, late, 1000.0) == 0.75


@pytest.mark.parametrize(("short", "is_behind"), [(126, False), (127, True)])
def test_up_to_four_roots_it_may_be_chance(short: int, is_behind: bool) -> None:
    """1,000 are due in the ten seconds: 4 * sqrt(1000) is 126.5."""
    counts = dict.fromkeys(range(1010, 1020), 100)
    counts[1015] -= 100
    counts[1016] -= short - 100
    assert (measure_shortfall(RATE, WENT, figures(each_second(counts)), 1000.0) > 0) == is_behind


def test_only_whole_seconds_after_the_warm_up_count() -> None:
    counts = dict.fromkeys(range(1000, 1030), 10)
    went = StageFacts(1000.4, 1020.9)
    # The whole seconds of the second half are 1011 to 1019.
    assert measure_shortfall(RATE, went, figures(each_second({**counts, 1011: 820})), 1000.0) == 0.0
    assert measure_shortfall(RATE, went, figures(each_second({**counts, 1019: 820})), 1000.0) == 0.0
    outside = figures(each_second({**counts, 1010: 900, 1020: 900}))
    assert measure_shortfall(RATE, went, outside, 1000.0) == pytest.approx(0.9)
    warm = figures(each_second({**counts, 1015: 900}))
    assert measure_shortfall(RATE, went, warm, 1016.0) == pytest.approx(0.9)
    assert measure_shortfall(RATE, went, warm, 1018.0) == pytest.approx(0.9)
    assert measure_shortfall(RATE, went, warm, 1018.1) == 0.0  # one second is too short to see it
    assert measure_shortfall(RATE, went, warm, 1015.0) < 0.9


def test_failures_end_too() -> None:
    ends = each_second(dict.fromkeys(range(1000, 1020), 100))
    half_failed = figures(ends, failures=len(ends) // 2)
    # The first half of the operations succeeded: those of the second half of the time ended too.
    assert measure_shortfall(RATE, WENT, half_failed, 1000.0) == 0.0
    assert measure_shortfall(RATE, WENT, figures(ends, failures=len(ends)), 1000.0) == 0.0
    # Each ends when it does, wherever most failures were.
    slow = figures(each_second({second: 100 if second < 1010 else 25 for second in range(1000, 1020)}), 200)
    assert measure_shortfall(RATE, WENT, slow, 1000.0) == 0.75
    both = block([row(completed=end) for end in ends] * 2, failures=failed(*range(len(ends), 2 * len(ends))))
    assert measure_shortfall(Stage(20.0, (1, 1), (200.0, 200.0)), WENT, counted(both), 1000.0) == 0.0
    none = counted(block([row(completed=1001.0)], failures=failed(0)))
    assert measure_shortfall(RATE, WENT, none, 1000.0) == 1.0


@pytest.mark.parametrize("stage", [Stage(20.0, (5, 5)), Stage(20.0, (5, 5), (100.0, 200.0))])
def test_a_closed_loop_and_a_ramp_are_not_behind(stage: Stage) -> None:
    assert measure_shortfall(stage, WENT, figures([]), 1000.0) == 0.0


def test_nothing_at_all_is_all_behind() -> None:
    assert measure_shortfall(RATE, WENT, figures([]), -math.inf) == 1.0


@pytest.mark.parametrize(
    ("begins", "ends", "warm_up", "first", "last"),
    [
        (1000.0, 1030.0, 990.0, 1000, 1029),
        (1000.2, 1030.9, 990.0, 1001, 1029),
        (1000.0, 1030.0, 1004.5, 1005, 1029),
        (1000.0, 1030.0, 1005.0, 1005, 1029),
    ],
)
def test_response_times_climb_in_the_whole_seconds_of_a_stage_after_the_warm_up(
    begins: float, ends: float, warm_up: float, first: int, last: int
) -> None:
    """The median response of each second is known; outside of the seconds that count it falls."""
    medians = {second: 0.1 + 0.002 * (second - first) for second in range(first, last + 1)}
    outside = {second: 9.0 - 0.1 * (second - 990) for second in range(990, 1041)}
    seconds = np.array([*{**outside, **medians}])
    values = np.array([*{**outside, **medians}.values()])
    table = LatencyTable.of(np.repeat(seconds + 0.5, 3), np.repeat(values, 3))
    total = SimpleNamespace(due=SimpleNamespace(response=SimpleNamespace(by_second=table)))
    went = StageFacts(begins, ends)
    found = measure_latency_climb(RATE, went, total, warm_up)
    assert found == pytest.approx(0.002, rel=0.1)
    of_seconds = table.percentiles(0.5)[1][(seconds >= first) & (seconds <= last)]
    assert found == estimate_climb(of_seconds)
    for other in (Stage(20.0, (5, 5)), Stage(20.0, (5, 5), (100.0, 200.0))):
        assert measure_latency_climb(other, went, total, warm_up) == 0.0
