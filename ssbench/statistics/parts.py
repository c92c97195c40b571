"""The numbers of each part of a run by itself: its stages, its groups of users, its sides.

A group is known as if it were a run. A stage is one of the paces of a run: how long its operations waited
that never began follows from all of them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from msgspec import structs

from ssbench.results.description import StageFacts
from ssbench.scenario.arrivals import derive_group_seed
from ssbench.scenario.model import Stage
from ssbench.statistics.collect import Collector
from ssbench.statistics.delivery import (
    Delivery,
    Waits,
    measure_latency_climb,
    measure_shortfall,
    spread_waits,
)
from ssbench.statistics.facts import PartContext, RunContext
from ssbench.statistics.figures import CountedFigures
from ssbench.statistics.latencies import merge_latencies
from ssbench.statistics.run_statistics import RunPart, RunStatistics, compute_statistics
from ssbench.statistics.sections import drop_rate_intervals


def make_stage_statistics(
    collector: Collector, facts: RunContext, waited: Sequence[Waits]
) -> tuple[RunPart, ...]:
    """Return the numbers of each stage that was collected.

    ``waited`` is how long those of each stage had waited that never began; none where it is not known.
    """
    loads = facts.run.scenario.plan
    return tuple(
        _make_stage(own, facts, place, loads[place], waited)
        for place, own in enumerate(collector.parts.get("stage", ()))
        if place < len(loads)
    )


def _make_stage(
    collector: Collector, facts: RunContext, place: int, load: Stage, waited: Sequence[Waits]
) -> RunPart:
    run, summary = facts.run, facts.summary
    known = summary.stages[place] if summary and place < len(summary.stages) else None
    if summary is not None and known is not None:
        own_summary = replace(summary, sent_until=known.ends, not_sendable=(), stages=())
    else:
        own_summary = None
    own = PartContext(run, facts.size_classes, own_summary)
    if summary is None or known is None or known.due is None:
        numbers = compute_statistics(collector, own, mean_users((load,)))
    else:
        numbers = compute_statistics(
            collector, own, mean_users((load,)), partial(spread_waits, waited=waited[place])
        )
        begun_at = summary.stages[0].begins
        numbers = replace(
            numbers,
            delivery=measure_delivery(numbers, load, known, begun_at, collector.due, len(waited[place])),
        )
    return RunPart(run.stages[place], (load,), numbers, known)


def measure_delivery(
    numbers: RunStatistics, load: Stage, known: StageFacts, begun_at: float, begun: int, not_begun: int
) -> Delivery | None:
    """Return the delivery of a stage, or of a run without stages.

    ``begun_at`` is when the run began, ``begun`` how many operations did, those among them that workers had
    ahead when the run was interrupted and that were due after that. None in a closed loop.
    """
    if known.due is None:
        return None
    late, measured_from = numbers.total.due.late, begun_at + numbers.run.scenario.warmup
    of_stage = load, known, numbers.total, measured_from
    return Delivery(
        begun + not_begun, not_begun, late, measure_shortfall(*of_stage), measure_latency_climb(*of_stage)
    )


def mean_users(plan: Sequence[Stage]) -> float:
    """Return how many users there are on average."""
    if len(plan) == 1:  # it may have no end
        return sum(plan[0].users or (0,)) / 2
    weighed = sum(stage.seconds * sum(stage.users or (0,)) / 2 for stage in plan)
    return weighed / sum(stage.seconds for stage in plan)


def list_group_contexts(facts: RunContext) -> list[RunContext]:
    """Return what is known of each group as if it were a run; none where there are no groups."""
    run, summary = facts.run, facts.summary
    if not run.scenario.groups:
        return []
    found: list[RunContext] = []
    for place, part in enumerate(run.scenario.parts):
        name = run.scenario.groups[place].name
        seed = None if run.seed is None else derive_group_seed(run.seed, name)
        own_run = replace(run, scenario=part, seed=seed, stages=part.stage_names, group=name)
        own_summary = None
        if summary is not None and place < len(summary.groups):
            own = summary.groups[place]
            own_summary = replace(
                summary,
                stages=own.stages,
                not_sendable=own.not_sendable,
                counters={"drawn": own.drawn, "waited": own.waited},
                sent_until=own.stages[-1].ends if own.stages else summary.sent_until,
                groups=(),
                cluster=None,
                warnings=(),
            )
        found.append(PartContext(own_run, facts.size_classes, own_summary))
    return found


def make_side_statistics(collector: Collector, facts: RunContext) -> tuple[RunPart, ...]:
    """Return the numbers of each of the two sides; none of a run without sides.

    Each has half of the users, and as long as the run. What was due is not known by side. The sides of a run
    with stages are compared within its seconds, but their rates have no intervals.
    """
    run, summary = facts.run, facts.summary
    own_run = replace(run, sides=(), stages=())
    if summary is not None:
        summary = replace(
            summary, stages=(), groups=(), not_sendable=(), counters={}, warnings=(), cluster=None
        )
    own, users = PartContext(own_run, facts.size_classes, summary), mean_users(run.scenario.plan)
    return tuple(
        RunPart(name, run.scenario.plan, _make_side(each, own, users / len(run.sides)))
        for name, each in zip(run.sides, collector.parts.get("group", ()), strict=False)
    )


def _make_side(collector: Collector, facts: RunContext, users: float) -> RunStatistics:
    numbers = compute_statistics(collector, facts, users)
    if not facts.run.scenario.is_staged:
        return numbers
    sections = tuple(map(drop_rate_intervals, numbers.sections))
    return replace(numbers, sections=sections, pooled=True)


def add_waits(
    leaves: Mapping[tuple[int, ...], CountedFigures], groups: Iterable[RunPart], names: Sequence[str]
) -> Mapping[tuple[int, ...], CountedFigures]:
    """Add to figures of all groups how long those operations waited that never began, of each group."""
    found: dict[tuple[int, ...], list[CountedFigures]] = {}
    for group in groups:
        for section in group.numbers.sections[1:]:
            for line in section.lines[1:]:
                if section.operation is not None and line.size_class is not None:
                    key = section.operation.code, names.index(line.size_class)
                    found.setdefault(key, []).append(line)
    waited = {key: merge_latencies(line.due.waited for line in lines) for key, lines in found.items()}
    return {
        key: structs.replace(
            figures, due=structs.replace(figures.due, waited=waited.get(key, merge_latencies(())))
        )
        for key, figures in leaves.items()
    }
