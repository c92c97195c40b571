"""From the results of a run to its numbers, and to those of each of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np

from ssbench.statistics.collect import Collector
from ssbench.statistics.delivery import spread, together, waits
from ssbench.statistics.facts import Results, RunFacts
from ssbench.statistics.parts import (
    delivery,
    facts_of_groups,
    mean_users,
    side_statistics,
    stage_statistics,
    with_waits,
)
from ssbench.statistics.run_statistics import RunPart, RunStatistics, numbers_of
from ssbench.statistics.steadiness import AUTOMATIC, find_cut

_NO_CUT = (
    "no warm-up was left out (--warmup auto): none was seen, or the run was shorter than a minute or not"
    " steady by its half"
)


def summarize(results: Results, by: Sequence[str] = (), *, over_time: bool = False) -> RunStatistics:
    """Read all results and count them; raises what ``results.blocks()`` raises.

    ``by`` names fields to keep apart in :attr:`RunStatistics.groups`, beside operation and size class.
    With ``over_time`` :attr:`RunStatistics.over_time` and :attr:`RunStatistics.slowest` are there.
    """
    automatic = results.run.options.get("warmup") == AUTOMATIC
    begin = _cut(results) if automatic else None
    collector = collector_of(results, by, begin=begin, over_time=over_time)
    for block in results.blocks():
        collector.add(block)
    statistics = make_statistics(collector, results)
    if not automatic or begin is not None:
        return statistics
    return replace(statistics, warnings=(*statistics.warnings, _NO_CUT))


def collector_of(
    facts: RunFacts, by: Sequence[str] = (), *, begin: float | None = None, over_time: bool = False
) -> Collector:
    """Return what counts the results of a run, and those of each of its stages, groups of users and sides."""
    own = partial(Collector, current=facts.current, begin=begin, mixed=facts.run.scenario.is_mixed)
    groups = [collector_of(group, begin=begin) for group in facts_of_groups(facts)]
    parts = {
        "stage": [own(by, whole=False) for _ in facts.run.stages],
        "group": groups or [own(whole=False, objects=True) for _ in facts.run.sides],
    }
    return own(by, over_time=over_time, parts=parts)


def _cut(results: Results) -> float | None:
    with closing(results.again()) as first_reading:
        return find_cut(first_reading.blocks())


def make_statistics(collector: Collector, facts: RunFacts) -> RunStatistics:
    """Return the numbers of what was collected so far."""
    if facts.run.scenario.groups and "group" in collector.parts:
        return _with_groups(collector, facts)
    known = facts.summary.stages if facts.summary else ()
    own = collector.parts.get("stage", (collector,))
    not_begun = [
        0 if stage.due is None else max(0, stage.due - each.due)
        for stage, each in zip(known, own, strict=False)
    ]
    waited = waits(facts.run, known, not_begun)
    everything = np.sort(np.concatenate([*waited, np.empty(0)]))
    users = mean_users(facts.run.scenario.plan)
    numbers = numbers_of(
        collector, facts, users, partial(spread, waited=everything), pooled="stage" in collector.parts
    )
    stages = stage_statistics(collector, facts, waited)
    if stages:
        found = together(each.numbers.delivery for each in stages if each.numbers.delivery)
    elif known:
        found = delivery(
            numbers, facts.run.scenario.plan[0], known[0], known[0].begins, own[0].due, not_begun[0]
        )
    else:
        found = None
    return replace(numbers, delivery=found, stages=stages, sides=side_statistics(collector, facts))


def _with_groups(collector: Collector, facts: RunFacts) -> RunStatistics:
    scenario, names = facts.run.scenario, facts.size_classes
    found = tuple(
        RunPart(group.name, own_facts.run.scenario.plan, make_statistics(own, own_facts))
        for group, own, own_facts in zip(
            scenario.groups, collector.parts["group"], facts_of_groups(facts), strict=True
        )
    )
    users = sum(mean_users(part.plan) for part in scenario.parts)
    numbers = numbers_of(
        collector,
        facts,
        users,
        lambda leaves: with_waits(leaves, found, names),
        pooled=scenario.is_staged,
    )
    delivered = together(each.numbers.delivery for each in found if each.numbers.delivery)
    return replace(numbers, delivery=delivered, by_group=found)
