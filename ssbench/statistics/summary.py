"""From the results of a run to its numbers, and to those of each of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np

from ssbench.statistics.collect import Collector
from ssbench.statistics.delivery import list_unbegun_waits, merge_deliveries, spread_waits
from ssbench.statistics.facts import ReadableResults, RunContext
from ssbench.statistics.parts import (
    add_waits,
    list_group_contexts,
    make_side_statistics,
    make_stage_statistics,
    mean_users,
    measure_delivery,
)
from ssbench.statistics.run_statistics import RunPart, RunStatistics, compute_statistics
from ssbench.statistics.steadiness import AUTOMATIC_WARM_UP, find_warm_up_end

_NO_CUT_TEXT = (
    "no warm-up was left out (--warmup auto): none was seen, or the run was shorter than a minute or not"
    " steady by its half"
)


def summarize(results: ReadableResults, by: Sequence[str] = (), *, over_time: bool = False) -> RunStatistics:
    """Read all results and count them; raises what ``results.blocks()`` raises.

    ``by`` names fields to keep apart in :attr:`RunStatistics.groups`, beside operation and size class.
    With ``over_time`` :attr:`RunStatistics.over_time` and :attr:`RunStatistics.slowest` are there.
    """
    automatic = results.run.options.get("warmup") == AUTOMATIC_WARM_UP
    begin = _find_cut(results) if automatic else None
    collector = make_collector(results, by, begin=begin, over_time=over_time)
    for block in results.blocks():
        collector.add(block)
    statistics = make_statistics(collector, results)
    if not automatic or begin is not None:
        return statistics
    return replace(statistics, warnings=(*statistics.warnings, _NO_CUT_TEXT))


def make_collector(
    facts: RunContext, by: Sequence[str] = (), *, begin: float | None = None, over_time: bool = False
) -> Collector:
    """Return what counts the results of a run, and those of each of its stages, groups of users and sides."""
    own = partial(Collector, current=facts.current, begin=begin, mixed=facts.run.scenario.is_mixed)
    groups = [make_collector(group, begin=begin) for group in list_group_contexts(facts)]
    parts = {
        "stage": [own(by, whole=False) for _ in facts.run.stages],
        "group": groups or [own(whole=False, objects=True) for _ in facts.run.sides],
    }
    return own(by, over_time=over_time, parts=parts)


def _find_cut(results: ReadableResults) -> float | None:
    with closing(results.again()) as first_reading:
        return find_warm_up_end(first_reading.blocks())


def make_statistics(collector: Collector, facts: RunContext) -> RunStatistics:
    """Return the numbers of what was collected so far."""
    if facts.run.scenario.groups and "group" in collector.parts:
        return _add_groups(collector, facts)
    known = facts.summary.stages if facts.summary else ()
    own = collector.parts.get("stage", (collector,))
    not_begun = [
        0 if stage.due is None else max(0, stage.due - each.due)
        for stage, each in zip(known, own, strict=False)
    ]
    waited = list_unbegun_waits(facts.run, known, not_begun)
    everything = np.sort(np.concatenate([*waited, np.empty(0)]))
    users = mean_users(facts.run.scenario.plan)
    numbers = compute_statistics(
        collector, facts, users, partial(spread_waits, waited=everything), pooled="stage" in collector.parts
    )
    stages = make_stage_statistics(collector, facts, waited)
    if stages:
        found = merge_deliveries(each.numbers.delivery for each in stages if each.numbers.delivery)
    elif known:
        found = measure_delivery(
            numbers, facts.run.scenario.plan[0], known[0], known[0].begins, own[0].due, not_begun[0]
        )
    else:
        found = None
    return replace(numbers, delivery=found, stages=stages, sides=make_side_statistics(collector, facts))


def _add_groups(collector: Collector, facts: RunContext) -> RunStatistics:
    scenario, names = facts.run.scenario, facts.size_classes
    found = tuple(
        RunPart(group.name, own_facts.run.scenario.plan, make_statistics(own, own_facts))
        for group, own, own_facts in zip(
            scenario.groups, collector.parts["group"], list_group_contexts(facts), strict=True
        )
    )
    users = sum(mean_users(part.plan) for part in scenario.parts)
    numbers = compute_statistics(
        collector,
        facts,
        users,
        lambda leaves: add_waits(leaves, found, names),
        pooled=scenario.is_staged,
    )
    delivered = merge_deliveries(each.numbers.delivery for each in found if each.numbers.delivery)
    return replace(numbers, delivery=delivered, by_group=found)
