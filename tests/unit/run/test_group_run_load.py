"""Which pace a run has, and its stages as they went."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from ssbench.fleet.phase import LEAD_SECONDS, ClosedLoop, StagedPace
from ssbench.run.group_run import BenchmarkLoad
from ssbench.run.phases import Benchmark
from ssbench.scenario.draws import Workload
from ssbench.scenario.model import Scenario, SizeClass, Stage
from ssbench.scenario.population import Population

SCENARIO = Scenario("s", (SizeClass("a", 1, 1, 1, {"create": 1.0}),), user_count=8, run_seconds=10.0)
CLOSED = ClosedLoop(8, 3)
STAGED = replace(SCENARIO, stages=(Stage(2, (1, 8)), Stage(3, (4, 4), (10, 20)), Stage(5, None, (10, 10))))


@dataclass
class Ended:
    """A benchmark that has ended."""

    sent_until: float
    epoch: float = 1e9
    start: float = 50.0


def load(scenario: Scenario) -> BenchmarkLoad:
    return BenchmarkLoad(scenario, 1, CLOSED)


def stages(scenario: Scenario, seconds: float, *, interrupted: bool = False, taken: int = 0) -> Any:
    found = load(scenario)
    found._arrivals.take(taken)
    facts = found.stages(Ended(1e9 + 50 + seconds), interrupted=interrupted)
    return [(each.begins - 1e9 - 50, each.ends - 1e9 - 50, each.due) for each in facts]


def test_a_closed_loop_keeps_its_pace() -> None:
    assert load(SCENARIO).pace(0.0) is CLOSED
    assert load(replace(SCENARIO, think_time=1.0)).pace(0.0) is CLOSED
    for scenario in (STAGED, replace(SCENARIO, rate=5.0)):
        pace = load(scenario).pace(3.0)
        assert isinstance(pace, StagedPace)
        assert pace.batch_size == 3


def test_the_stages_as_they_went() -> None:
    assert stages(STAGED, 10) == [(0, 2, None), (2, 5, 45), (5, 10, 50)]
    assert STAGED.stage_names == ("1: 1..8 users", "2: 10..20/s", "3: 10/s")
    assert (stages(SCENARIO, 10), SCENARIO.stage_names) == ([(0, 10, None)], ())
    assert stages(replace(SCENARIO, rate=100.0), 10) == [(0, 10, 1000)]


def test_of_an_interrupted_run_only_what_began() -> None:
    assert stages(STAGED, 5.95, interrupted=True) == [(0, 2, None), (2, 5, 45), (5, pytest.approx(5.95), 10)]
    assert stages(STAGED, 1.0, interrupted=True) == [(0, 1, None)]
    # in which nothing was sent at all
    assert stages(replace(SCENARIO, rate=100.0), -LEAD_SECONDS, interrupted=True) == [(0, -LEAD_SECONDS, 0)]


def test_a_run_of_so_many_operations_has_as_many_due_as_were_handed_out() -> None:
    counted = replace(SCENARIO, run_seconds=None, operation_count=500, rate=100.0)
    assert stages(counted, 4.8, taken=500) == [(0, pytest.approx(4.8), 500)]
    assert stages(counted, 1.0, taken=126, interrupted=True) == [(0, 1.0, 101)]


def test_an_open_loop_starts_when_its_first_operations_can_have_reached_a_worker() -> None:
    for scenario, lead in ((SCENARIO, 0.0), (replace(SCENARIO, rate=5.0), LEAD_SECONDS), (STAGED, 0.0)):
        state = Population(scenario, Workload(scenario, 1))
        benchmark = Benchmark(
            state,
            [],
            lambda: False,
            operation_count=None,
            run_seconds=10.0,
            drain_timeout=None,
            plan=scenario.plan,
        )
        assert benchmark.start - benchmark.began == lead
        assert not benchmark.exhausted(benchmark.start + 9.99)
        assert benchmark.exhausted(benchmark.start + 10.01)
