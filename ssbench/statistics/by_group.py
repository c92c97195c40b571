"""The numbers of each group of users by itself, and what follows from them for all together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ssbench.scenario.arrivals import seed_of_group
from ssbench.statistics.facts import OwnFacts, RunFacts
from ssbench.statistics.figures import Figures
from ssbench.statistics.latencies import merge
from ssbench.statistics.run_statistics import GroupStatistics


def facts_of_groups(facts: RunFacts) -> list[RunFacts]:
    """Return what is known of each group as if it were a run; none where there are no groups."""
    run, summary = facts.run, facts.summary
    if not run.scenario.groups:
        return []
    found: list[RunFacts] = []
    for place, part in enumerate(run.scenario.parts):
        name = run.scenario.groups[place].name
        seed = None if run.seed is None else seed_of_group(run.seed, name)
        own_run = replace(run, scenario=part, seed=seed, stages=part.stage_names, group=name)
        own_summary = None
        if summary is not None and place < len(summary.groups):
            own = summary.groups[place]
            own_summary = replace(
                summary,
                stages=own.stages,
                not_sendable=own.not_sendable,
                counters={"drawn": own.drawn},
                sent_until=own.stages[-1].ends if own.stages else summary.sent_until,
                groups=(),
                cluster=None,
                warnings=(),
            )
        found.append(OwnFacts(own_run, facts.size_classes, own_summary))
    return found


def with_waits(
    leaves: Mapping[tuple[int, ...], Figures], groups: Iterable[GroupStatistics], names: Sequence[str]
) -> Mapping[tuple[int, ...], Figures]:
    """Add to figures of all groups how long those operations waited that never began, of each group."""
    found: dict[tuple[int, ...], list[Figures]] = {}
    for group in groups:
        for section in group.numbers.sections[1:]:
            for line in section.lines[1:]:
                if section.operation is not None and line.size_class is not None:
                    key = section.operation.code, names.index(line.size_class)
                    found.setdefault(key, []).append(line)
    return {
        key: replace(
            figures, due=replace(figures.due, waited=merge(each.due.waited for each in found.get(key, ())))
        )
        for key, figures in leaves.items()
    }
