"""The numbers of each stage of a run, by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ssbench.results import RunDescription, RunSummary, StageFacts
from ssbench.scenario.model import Stage
from ssbench.statistics.collect import Collector

if TYPE_CHECKING:
    from ssbench.statistics.summary import RunFacts, RunStatistics

#: Makes numbers of what was collected, given what is known of a run and how many users it had.
Numbers = Callable[[Collector, "RunFacts", float], "RunStatistics"]


@dataclass(frozen=True, slots=True)
class StageStatistics:
    """A stage of a run, by itself.

    ``load`` is what the scenario asks for, with its users; ``facts`` is how it went, None of a run that was
    killed. ``numbers`` are those of a run that has only the results of this stage, without stages.
    """

    name: str
    load: Stage
    facts: StageFacts | None
    numbers: RunStatistics


@dataclass(frozen=True, slots=True)
class _OwnFacts:
    """What is known of a stage as if it were a run."""

    run: RunDescription
    size_classes: Sequence[str]
    summary: RunSummary | None
    warnings: Sequence[str] = ()
    current: bool = True


def stage_statistics(
    collector: Collector, facts: RunFacts, make_numbers: Numbers
) -> tuple[StageStatistics, ...]:
    """Return the numbers of each stage that was collected."""
    loads = facts.run.scenario.plan
    return tuple(
        _stage(own, facts, place, loads[place], make_numbers)
        for place, own in enumerate(collector.stages)
        if place < len(loads)
    )


def _stage(
    collector: Collector, facts: RunFacts, place: int, load: Stage, make_numbers: Numbers
) -> StageStatistics:
    run, summary = facts.run, facts.summary
    known = summary.stages[place] if summary and place < len(summary.stages) else None
    if summary is not None and known is not None:
        summary = replace(summary, sent_until=known.ends, not_sendable=(), stages=())
    else:
        summary = None
    numbers = make_numbers(collector, _OwnFacts(run, facts.size_classes, summary), mean_users((load,)))
    if known is not None and known.due is not None:
        numbers = replace(numbers, due=known.due, not_begun=max(0, known.due - collector.due))
    return StageStatistics(run.stages[place], load, known, numbers)


def mean_users(plan: Sequence[Stage]) -> float:
    """Return how many users there are on average."""
    if len(plan) == 1:  # it may have no end
        return sum(plan[0].users or (0,)) / 2
    weighed = sum(stage.seconds * sum(stage.users or (0,)) / 2 for stage in plan)
    return weighed / sum(stage.seconds for stage in plan)
