"""The numbers of the stages of a run, from blocks in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from counted import SCENARIO, Memory, row
from result_rows import block

from ssbench.results.run_description import RunDescription, RunSummary, StageFacts
from ssbench.scenario.model import Stage, UserGroup
from ssbench.statistics.run_statistics import PartContext
from ssbench.statistics.summary import list_group_contexts, mean_users, summarize

PLAN = (Stage(10.0, (2, 2)), Stage(20.0, (2, 6)), Stage(5.0, (4, 4), (2.0, 2.0)))


def run_of(*blocks: object, summary: RunSummary | None = None) -> Memory:
    run = RunDescription(replace(SCENARIO, stages=PLAN), stages=("one", "two", "three"))
    return Memory(*blocks, run=run, summary=summary)


def staged(stage: int, *completed: float, due: float | None = None) -> object:
    common = {"stage": stage} if due is None else {"stage": stage, "due": due}
    return block([row(completed=end) for end in completed], common=common)


WENT = RunSummary(
    ended=140.0,
    sent_until=135.0,
    stages=(StageFacts(100.0, 110.0), StageFacts(110.0, 130.0), StageFacts(130.0, 135.0, due=10)),
)


def test_users_on_average() -> None:
    assert mean_users(PLAN[:1]) == 2.0
    assert mean_users((Stage(float("inf"), (2, 6)),)) == 4.0
    assert mean_users((Stage(5.0),)) == 0.0
    assert mean_users(PLAN[:2]) == pytest.approx((10 * 2 + 20 * 4) / 30)
    assert mean_users((PLAN[0], Stage(30.0))) == pytest.approx(0.5)


def test_each_stage_has_its_own_results_and_window() -> None:
    numbers = summarize(
        run_of(
            staged(0, 101.0, 102.0, 103.0), staged(1, 111.0, 129.0, 130.05), staged(2, 132.0), summary=WENT
        )
    )
    assert [stage.name for stage in numbers.stages] == ["one", "two", "three"]
    assert [stage.plan for stage in numbers.stages] == [(each,) for each in PLAN]
    assert [stage.facts for stage in numbers.stages] == [*WENT.stages]
    assert [stage.numbers.total.count for stage in numbers.stages] == [3, 3, 1]
    assert numbers.total.count == 7
    # The last one of the second stage ended after its end.
    windows = [stage.numbers.course.window for stage in numbers.stages if stage.numbers.course]
    assert [window.end for window in windows] == [110.0, 130.0, 135.0]
    assert numbers.stages[1].numbers.total.requests_per_second == pytest.approx(
        2 / (130.0 - windows[1].start)
    )


def test_only_a_stage_with_a_rate_has_a_delivery_which_is_that_of_the_run() -> None:
    numbers = summarize(run_of(staged(0, 101.0), staged(2, 131.1, 131.2, 131.3, due=131.0), summary=WENT))
    own = [stage.numbers.delivery for stage in numbers.stages]
    assert own[:2] == [None, None]
    assert own[2] is not None
    assert (own[2].due, own[2].not_begun) == (10, 7)
    assert numbers.delivery == own[2]
    assert numbers.stages[2].numbers.total.latency.count == 10
    assert numbers.stages[0].numbers.total.latency.count == 1


def test_a_run_that_was_killed_has_stages_without_facts() -> None:
    memory = run_of(staged(0, 101.0), staged(1, 111.0))
    memory.summary = None
    numbers = summarize(memory)
    assert [stage.facts for stage in numbers.stages] == [None, None, None]
    assert [stage.numbers.total.count for stage in numbers.stages] == [1, 1, 0]


def test_a_run_that_ended_early_has_facts_of_the_stages_that_began() -> None:
    numbers = summarize(run_of(staged(0, 101.0), summary=replace(WENT, stages=WENT.stages[:1])))
    assert [stage.facts for stage in numbers.stages] == [WENT.stages[0], None, None]


def test_what_could_not_be_sent_is_of_no_stage() -> None:
    summary = replace(WENT, not_sendable=((1, 0, 9),))
    numbers = summarize(run_of(staged(0, 101.0), summary=summary))
    assert len(numbers.not_sendable) == 1
    assert [stage.numbers.not_sendable for stage in numbers.stages] == [(), (), ()]


def test_each_side_has_half_of_the_users() -> None:
    """Two users all the time, of whom each side has one that is always busy."""
    ends = [100 + (place + 1) / 10 for place in range(400)]
    rows = [row(completed=end, last=0.1) for end in ends]
    sides = [block(rows, common={"group": side}) for side in (0, 1)]
    run = RunDescription(replace(SCENARIO, run_seconds=40.0), sides=("a", "b"))
    numbers = summarize(Memory(*sides, run=run, summary=RunSummary(ended=140.0, sent_until=140.0)))
    assert [side.name for side in numbers.sides] == ["a", "b"]
    for each in (numbers, *(side.numbers for side in numbers.sides)):
        assert each.course is not None
        assert each.course.busy == pytest.approx(1.0, abs=0.01)


def test_groups_draw_from_seeds_of_their_own() -> None:
    groups = tuple(UserGroup(name, SCENARIO.size_classes, 2) for name in ("web", "backup"))
    scenario = replace(SCENARIO, groups=groups)
    for seed in (7, None):
        facts = PartContext(RunDescription(scenario, seed=seed), ["small", "big"], None)
        web, backup = (each.run.seed for each in list_group_contexts(facts))
        assert len({web, backup, seed}) == (1 if seed is None else 3)
