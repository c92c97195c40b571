"""Compute the statistics of a run, and of each of its stages, groups of users and sides.

:func:`summarize` reads all results; :func:`make_collector` and :func:`make_statistics` do the same while they
come in. A group is treated as if it were a run. A stage is one of the paces of a run: how long its operations
waited that never began follows from all of them together.

:class:`FollowedStatistics` counts the results of a run by reading on in its stat file while that is being
written. What comes out is what a report makes of the same file later, to the last digit: the blocks are the
same, and they are counted in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from msgspec import structs

from ssbench.results.block import ResultBlock
from ssbench.results.current import ResultsFollower
from ssbench.results.run_description import EVENTS_OPTION, EventFacts, RunSummary, ServerCpuSample, StageFacts
from ssbench.scenario.draws import derive_group_seed
from ssbench.scenario.model import Stage
from ssbench.statistics.collector import Collector
from ssbench.statistics.counted_figures import CountedFigures
from ssbench.statistics.delivery import (
    Delivery,
    Waits,
    list_unbegun_waits,
    measure_latency_climb,
    measure_shortfall,
    merge_deliveries,
    spread_waits,
)
from ssbench.statistics.latencies import merge_latencies
from ssbench.statistics.run_statistics import (
    PartContext,
    ReadableResults,
    RunContext,
    RunPart,
    RunStatistics,
    compute_statistics,
    drop_rate_intervals,
)
from ssbench.statistics.server_cpu import measure_server_cpu, select_cpu_samples
from ssbench.statistics.steadiness import AUTOMATIC_WARM_UP, find_warm_up_end


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
    if numbers.replay is not None:  # its rate changes all the time
        return Delivery(begun + not_begun, not_begun, late)
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


def _list_late_begins(facts: RunContext) -> list[EventFacts]:
    """Return when groups of users began that did so after the run, as far as they did."""
    scenario, summary = facts.run.scenario, facts.summary
    found = []
    parts = zip(scenario.groups, scenario.parts, summary.groups if summary else (), strict=False)
    for group, part, own in parts:
        if part.plan[0].is_idle and len(own.stages) > 1:
            moment = own.stages[1].begins
            found.append(
                EventFacts(moment - own.stages[0].begins, f"{group.name} begins", moment, group=group.name)
            )
    return found


def list_group_contexts(facts: RunContext) -> list[RunContext]:
    """Return what is known of each group as if it were a run; none where there are no groups."""
    run, summary = facts.run, facts.summary
    if not run.scenario.groups:
        return []
    found: list[RunContext] = []
    begins = _list_late_begins(facts)
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
                events=(*summary.events, *(each for each in begins if each.group != name)),
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


# -- The whole run ---------------------------------------------------------------------------------


_NO_CUT_TEXT = (
    "--warmup auto excluded nothing: no warm-up was seen, or the run was shorter than a minute or not"
    " steady by its middle"
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
    begins_late = any(part.plan[0].is_idle for part in facts.run.scenario.parts)
    groups = [
        make_collector(group, begin=begin, over_time=begins_late) for group in list_group_contexts(facts)
    ]
    parts = {
        "stage": [own(by, whole=False) for _ in facts.run.stages],
        "group": groups or [own(whole=False, objects=True) for _ in facts.run.sides],
    }
    # What happened around the commands of a run is found in bins of time.
    return own(by, over_time=over_time or bool(facts.run.options.get(EVENTS_OPTION)), parts=parts)


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
    numbers = _add_server_cpu(replace(numbers, delivery=found, stages=stages), facts)
    sides = make_side_statistics(collector, facts)
    return replace(
        numbers,
        sides=tuple(
            replace(each, numbers=_with_cpu(each.numbers, select_cpu_samples(numbers.cpu_samples, side=side)))
            for side, each in enumerate(sides)
        ),
    )


def _add_server_cpu(numbers: RunStatistics, facts: RunContext) -> RunStatistics:
    """Return the numbers of a run with the CPU of servers for an operation, without that of the warm-up."""
    samples = facts.summary.server_cpu if facts.summary else ()
    return _with_cpu(numbers, select_cpu_samples(samples, numbers.start if numbers.warmed_up else None))


def _with_cpu(numbers: RunStatistics, samples: tuple[ServerCpuSample, ...]) -> RunStatistics:
    return replace(numbers, server_cpu=measure_server_cpu(samples), cpu_samples=samples)


def _add_groups(collector: Collector, facts: RunContext) -> RunStatistics:
    scenario, names = facts.run.scenario, facts.size_classes
    found = tuple(
        # Of which group a request was, no server knows.
        RunPart(
            group.name,
            own_facts.run.scenario.plan,
            _with_cpu(make_statistics(own, own_facts), ()),
        )
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
    return replace(_add_server_cpu(numbers, facts), delivery=delivered, by_group=found)


# -- While the stat file is written ----------------------------------------------------------------


class FollowedStatistics:
    """The results of a file so far; raises OSError where it cannot be opened.

    ``by`` and ``over_time`` are those of :func:`ssbench.statistics.summary.summarize`.
    """

    def __init__(self, path: Path, by: Sequence[str] = (), *, over_time: bool = False) -> None:
        self._following = ResultsFollower(path)
        self._by = by
        self._over_time = over_time
        self._collector: Collector | None = None
        self._blocks: Iterator[ResultBlock] = iter(())

    @property
    def path(self) -> Path:
        """The file."""
        return self._following.path

    @property
    def results(self) -> int:
        """How many results were counted, or wait to be."""
        return self._following.results

    @property
    def begun(self) -> bool:
        """Whether the file says what run it is of."""
        return self._following.run is not None

    @property
    def ended(self) -> bool:
        """Whether the file was read to the end of its run."""
        return self._following.summary is not None

    @property
    def needs_all_twice(self) -> bool:
        """Whether the figures of this run need all of its results twice, to find its warm-up."""
        run = self._following.run
        return run is not None and run.options.get("warmup") == AUTOMATIC_WARM_UP

    def close(self) -> None:
        """Close the file."""
        self._following.close()

    def some(self) -> bool:
        """Count the next block; return whether there was one. Raises DamageError and OSError."""
        block = next(self._blocks, None)
        if block is None:
            self._blocks = self._following.blocks()
            block = next(self._blocks, None)
        if self._collector is None and self.begun:
            self._collector = make_collector(self._facts(None, ()), self._by, over_time=self._over_time)
        if block is None or self._collector is None:
            return False
        self._collector.add(block)
        return True

    def statistics(self, so_far: RunSummary | None = None) -> RunStatistics | None:
        """Return the numbers of what was counted; None where nothing is known of the run.

        ``so_far`` is the summary of a run that has not ended.
        """
        summary, warnings = self._following.summary, self._following.warnings
        if summary is None and so_far is not None:
            summary, warnings = so_far, [*so_far.warnings]
        if self._collector is None:
            return None
        return make_statistics(self._collector, self._facts(summary, warnings))

    def _facts(self, summary: RunSummary | None, warnings: Sequence[str]) -> PartContext:
        run = self._following.run
        if run is None:
            raise RuntimeError("nothing is known of the run yet")
        return PartContext(run, [each.name for each in run.scenario.size_classes], summary, [*warnings])
