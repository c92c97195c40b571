"""The numbers of each stage of a run, by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ssbench.results import StageFacts
from ssbench.scenario.model import Stage
from ssbench.statistics.collect import Collector
from ssbench.statistics.delivery import Delivery, Waits, behind, spread
from ssbench.statistics.facts import OwnFacts, RunFacts
from ssbench.statistics.run_statistics import RunStatistics, StageStatistics, numbers_of


def stage_statistics(
    collector: Collector, facts: RunFacts, waited: Sequence[Waits]
) -> tuple[StageStatistics, ...]:
    """Return the numbers of each stage that was collected.

    ``waited`` is how long those of each stage had waited that never began; none where it is not known.
    """
    loads = facts.run.scenario.plan
    return tuple(
        _stage(own, facts, place, loads[place], waited)
        for place, own in enumerate(collector.stages)
        if place < len(loads)
    )


def _stage(
    collector: Collector, facts: RunFacts, place: int, load: Stage, waited: Sequence[Waits]
) -> StageStatistics:
    run, summary = facts.run, facts.summary
    known = summary.stages[place] if summary and place < len(summary.stages) else None
    if summary is not None and known is not None:
        own_summary = replace(summary, sent_until=known.ends, not_sendable=(), stages=())
    else:
        own_summary = None
    own = OwnFacts(run, facts.size_classes, own_summary)
    if summary is None or known is None or known.due is None:
        numbers = numbers_of(collector, own, mean_users((load,)))
    else:
        numbers = numbers_of(collector, own, mean_users((load,)), partial(spread, waited=waited[place]))
        begun_at = summary.stages[0].begins
        numbers = replace(numbers, delivery=delivery(numbers, load, known, begun_at, len(waited[place])))
    return StageStatistics(run.stages[place], load, known, numbers)


def delivery(
    numbers: RunStatistics, load: Stage, known: StageFacts, begun_at: float, not_begun: int
) -> Delivery | None:
    """Return the delivery of a stage, or of a run without stages.

    ``begun_at`` is when the run began. None in a closed loop.
    """
    if known.due is None:
        return None
    late, measured_from = numbers.total.due.late, begun_at + numbers.run.scenario.warmup
    return Delivery(known.due, not_begun, late, behind(load, known, numbers.total, measured_from))


def mean_users(plan: Sequence[Stage]) -> float:
    """Return how many users there are on average."""
    if len(plan) == 1:  # it may have no end
        return sum(plan[0].users or (0,)) / 2
    weighed = sum(stage.seconds * sum(stage.users or (0,)) / 2 for stage in plan)
    return weighed / sum(stage.seconds for stage in plan)
