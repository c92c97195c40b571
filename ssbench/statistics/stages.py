"""The numbers of each stage of a run, by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ssbench.results import RunDescription, RunSummary
from ssbench.scenario.model import Stage
from ssbench.statistics.collect import Collector
from ssbench.statistics.facts import RunFacts
from ssbench.statistics.run_statistics import StageStatistics, numbers_of


@dataclass(frozen=True, slots=True)
class _OwnFacts:
    """What is known of a stage as if it were a run."""

    run: RunDescription
    size_classes: Sequence[str]
    summary: RunSummary | None
    warnings: Sequence[str] = ()
    current: bool = True


def stage_statistics(collector: Collector, facts: RunFacts) -> tuple[StageStatistics, ...]:
    """Return the numbers of each stage that was collected."""
    loads = facts.run.scenario.plan
    return tuple(
        _stage(own, facts, place, loads[place])
        for place, own in enumerate(collector.stages)
        if place < len(loads)
    )


def _stage(collector: Collector, facts: RunFacts, place: int, load: Stage) -> StageStatistics:
    run, summary = facts.run, facts.summary
    known = summary.stages[place] if summary and place < len(summary.stages) else None
    if summary is not None and known is not None:
        summary = replace(summary, sent_until=known.ends, not_sendable=(), stages=())
    else:
        summary = None
    numbers = numbers_of(collector, _OwnFacts(run, facts.size_classes, summary), mean_users((load,)))
    if known is not None and known.due is not None:
        numbers = replace(numbers, due=known.due, not_begun=max(0, known.due - collector.due))
    return StageStatistics(run.stages[place], load, known, numbers)


def mean_users(plan: Sequence[Stage]) -> float:
    """Return how many users there are on average."""
    if len(plan) == 1:  # it may have no end
        return sum(plan[0].users or (0,)) / 2
    weighed = sum(stage.seconds * sum(stage.users or (0,)) / 2 for stage in plan)
    return weighed / sum(stage.seconds for stage in plan)
