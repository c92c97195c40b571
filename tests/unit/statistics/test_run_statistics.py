"""The numbers of a run that come from its facts and its summary, from results in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs
from result_rows import many

from ssbench.results.block import ResultBlock
from ssbench.results.run_description import (
    EventFacts,
    GroupFacts,
    RunDescription,
    RunSummary,
    StageFacts,
    WorkerFacts,
)
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import OPERATIONS
from ssbench.statistics.collector import Collector
from ssbench.statistics.run_statistics import PartContext, RunPart, RunStatistics, Spread, compute_statistics

SCENARIO = Scenario("s", (SizeClass("small", 1, 9, 1, {"read": 1.0}),), user_count=4, run_seconds=10.0)
RUN = RunDescription(SCENARIO, started=1e9, workers=(WorkerFacts(1), WorkerFacts(2)))
READ = OPERATIONS.named("read")


def results(count: int = 100) -> ResultBlock:
    times = [1e9 + (number + 1) / 10 for number in range(count)]
    return many(range(count), operation=READ.code, size=5, last_byte=0.04, completed=times)


def numbers(
    *blocks: ResultBlock, summary: RunSummary | None, facts: PartContext | None = None
) -> RunStatistics:
    facts = facts or PartContext(RUN, ["small"], summary)
    collector = Collector(current=facts.current)
    for block in blocks:
        collector.add(block)
    return compute_statistics(collector, structs.replace(facts, summary=summary), 4.0)


def test_how_evenly_work_is_spread() -> None:
    assert Spread.of([]) == Spread(0.0, 0.0, 0.0, 0.0)
    assert Spread.of([7]) == Spread(7.0, 7.0, 7.0, 0.0)
    assert Spread.of([1, 3]) == Spread(1.0, 3.0, 2.0, 1.0)


def test_a_run_without_results_has_no_times() -> None:
    found = numbers(summary=RunSummary(1e9 + 10))
    assert (found.start, found.end, found.duration) == (None, None, 0.0)
    assert found.total.count == 0
    assert found.worker_count == 0
    assert found.due is found.not_begun is None


def test_what_a_summary_says_of_the_run() -> None:
    summary = RunSummary(
        1e9 + 10,
        not_sendable=((READ.code, 0, 3), (READ.code, 9, 1), (255, 0, 1)),
        workers=(WorkerFacts(1, "h"),),
        counters={"drawn": 103.0},
        interrupted=True,
        ended_early="too many errors",
        error_code=4,
        trouble=True,
        sent_until=1e9 + 9,
        stages=(StageFacts(1e9, 1e9 + 9),),
    )
    found = numbers(results(), summary=summary)
    # An operation, or a size class, that this program does not know is left out.
    assert found.not_sendable == ((READ, "small", 3),)
    assert found.fleet == summary.workers
    assert found.counters == {"drawn": 103.0}
    assert (found.interrupted, found.ended_early, found.error_code, found.trouble) == (True, True, 4, True)
    assert found.complete
    assert found.sending == pytest.approx(9.0)


def test_sending_begins_with_the_first_group() -> None:
    groups = tuple(GroupFacts((StageFacts(1e9 + begins, 1e9 + 9),)) for begins in (3, 2))
    summary = RunSummary(1e9 + 10, sent_until=1e9 + 9, groups=groups)
    assert numbers(results(), summary=summary).sending == pytest.approx(7.0)
    summary = RunSummary(1e9 + 10, sent_until=1e9 + 9)
    assert numbers(results(), summary=summary).sending is None


def test_a_run_that_has_not_ended() -> None:
    found = numbers(results(), summary=None)
    assert not found.complete
    assert found.fleet == RUN.workers
    assert found.sending is None
    assert found.total.count == 100
    old = numbers(results(), summary=None, facts=PartContext(RUN, ["small"], None, current=False))
    assert old.complete  # files of 0.x never say that they end


def test_warnings_of_the_file_come_first() -> None:
    facts = PartContext(RUN, ["small"], None, warnings=("of the file",))
    assert numbers(results(), summary=None, facts=facts).warnings[0] == "of the file"


def test_groups_are_found_by_name() -> None:
    part = RunPart("web", (), numbers(results(), summary=None))
    found = replace(numbers(results(), summary=None), by_group=(part,))
    assert found.group("web") is part
    assert found.group("backup") is None


@pytest.mark.parametrize(
    ("until", "stages", "groups", "seconds"),
    [
        (1e9 + 0.5, [1e9], [], 0.5),
        (1e9 + 0.5, [1e9, 1e9 - 3], [], 0.5),  # stages are in order
        (1e9 + 9, [], [1e9 + 2, None, 1e9 + 1], 8.0),  # since the first group began
        (1e9 + 9, [1e9 + 4], [1e9 + 2], 7.0),
        (1e9 - 1, [1e9], [], 0.0),
        (1e9 + 9, [], [None], None),
        (None, [1e9], [], None),
    ],
)
def test_operations_are_sent_from_the_first_stage_on(
    until: float | None, stages: list[float], groups: list[float | None], seconds: float | None
) -> None:
    summary = RunSummary(
        1e9 + 10,
        sent_until=until,
        stages=tuple(StageFacts(begins, begins + 1) for begins in stages),
        groups=tuple(GroupFacts((StageFacts(each, each + 1),) if each else ()) for each in groups),
    )
    assert numbers(results(), summary=summary).sending == seconds
    assert numbers(results(), summary=None).sending is None


def test_what_happened_around_commands_is_known_of_runs_that_are_counted_over_time() -> None:
    events = (EventFacts(2.0, "x", 1e9 + 2, 1e9 + 2, 0),)
    for summary in (RunSummary(1e9 + 10, events=events), RunSummary(1e9 + 10), None):
        assert numbers(results(), summary=summary).events == ()
    collector = Collector(over_time=True)
    collector.add(results())
    facts = PartContext(RUN, ["small"], RunSummary(1e9 + 10, events=events))
    (found,) = compute_statistics(collector, facts, 4.0).events
    assert (found.facts, found.start) == (events[0], pytest.approx(2.0 - 0.06))
