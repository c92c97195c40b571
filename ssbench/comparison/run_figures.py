"""What is compared of a run: a few figures of each operation and size class, and its configuration.

Shares of operations that failed have intervals of their own. A share of independent operations is a binomial.
Failures seldom are independent: a server that stalls for two seconds fails all of these seconds. So what the
failures of each second are beyond the share says by how much the truth may be off, too, and the larger of
both counts. One burst of failures is one event, however many operations it had, and shows no difference by
itself.

Facts are what two runs should have in common to be compared: every setting that their stat files hold. They
follow from the scenario's fields and from the options that a stat file keeps, so that a new one is compared
as soon as it is recorded; only what cannot change a figure is left out by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from ssbench.document.figures import COMPARED_FIGURES, Figure, Range, Scope
from ssbench.results.run_description import (
    PLAN_BEGAN_OPTION,
    SIDE_SWIFTS_OPTION,
    SWIFT_SETTINGS_OPTION,
    RunDescription,
)
from ssbench.scenario.key_rules import CRUD_OPERATIONS
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics.by_second import is_plausible_span
from ssbench.statistics.confidence import MIN_SECONDS, Series, effective_size, t_quantile, wilson_interval
from ssbench.statistics.counted_figures import CountedFigures
from ssbench.statistics.run_statistics import FiguresSection, RunStatistics, SectionLine
from ssbench.statistics.run_verdict import NOTHING_SENT, find_load_reasons

_T_SHARE = 0.975


def failure_share(figures: CountedFigures) -> float:
    """Return which share of the operations failed; 0 without any."""
    return figures.failed / max(1, figures.count + figures.failed)


def failure_half_width(figures: CountedFigures) -> float | None:
    """Return half the width of the 95 % interval of a run's share; None of a run that was too short."""
    parts = _parts_by_second([(1, figures)])
    if len(parts) < MIN_SECONDS:
        return None
    error, freedom = _standard_error(parts, [figures])
    return t_quantile(_T_SHARE, freedom) * error


def binomial_half_width(figures: CountedFigures) -> float:
    """Return half the width of the 95 % interval of a run's share, if operations fail independently."""
    return t_quantile(_T_SHARE, math.inf) * math.sqrt(_variance(figures))


def failure_difference_error(before: CountedFigures, after: CountedFigures) -> tuple[float, float] | None:
    """Return the standard error of the difference of both sides' shares, and its degrees of freedom.

    Both sides met the same seconds: what failed of both in one of them is no difference of theirs. None of a
    run that was too short, or where a side did nothing.
    """
    parts = _parts_by_second([(-1, before), (1, after)])
    if len(parts) < MIN_SECONDS or not all(_count_operations(each) for each in (before, after)):
        return None
    return _standard_error(parts, [before, after])


def failure_interval(figures: CountedFigures) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share, of as many operations as its seconds are worth."""
    error, _ = _standard_error(_parts_by_second([(1, figures)]), [figures])
    variance = _variance(figures)
    return wilson_interval(
        failure_share(figures), _count_operations(figures) * variance / max(variance, error**2)
    )


def _count_operations(figures: CountedFigures) -> int:
    return figures.count + figures.failed


def _standard_error(parts: Series, sides: Sequence[CountedFigures]) -> tuple[float, float]:
    """Return the standard error of a share, or of the difference of two, and its degrees of freedom."""
    alone = sum(_variance(each) for each in sides)
    size = effective_size(parts, alone * len(parts))
    scatter = float(np.var(parts, ddof=1)) / size if len(parts) > 1 else 0.0
    return math.sqrt(max(alone, scatter)), max(1.0, size - 1)


def _variance(figures: CountedFigures) -> float:
    """Return the variance of a binomial share, with one success and one failure added (Agresti and Caffo)."""
    count = _count_operations(figures) + 2
    share = (figures.failed + 1) / count
    return share * (1 - share) / count


def _parts_by_second(sides: Sequence[tuple[int, CountedFigures]]) -> Series:
    """Return what each second adds to a share, or to the difference of two, beyond what it should.

    Their mean is 0: what is known is how much they scatter.
    """
    counted = [each.by_second for _, each in sides]
    seconds = {second for each in counted for counts in (each.counts, each.failed) for second in counts}
    first = min(seconds, default=0)
    span = max(seconds, default=0) - first + 1
    if not is_plausible_span(span, len(seconds)):
        return np.empty(0)
    parts = np.zeros(span)
    for (sign, figures), own in zip(sides, counted, strict=True):
        share, every = failure_share(figures), max(1, _count_operations(figures))
        for counts, weight in ((own.counts, -share), (own.failed, 1 - share)):
            for second, count in counts.items():
                parts[second - first] += sign * weight * count * span / every
    return parts


# -- Facts -----------------------------------------------------------------------------------------


#: Fields of a scenario that are facts under another name, or none: its file, and what is judged afterwards.
_SCENARIO_FACTS = {
    "name",
    "size_classes",
    "user_count",
    "operation_count",
    "run_seconds",
    "container_count",
    "policy",
    "rate",
    "data",
    "fail_if",
    "stages",
}

#: Options that name a run, or whose value is another one in each run.
_IGNORED_OPTIONS = {
    "suite",
    "row",
    "row_words",
    "round",
    "plan_phase",
    PLAN_BEGAN_OPTION,
    "label",
    "trans_id_extra",
    "start_at",
    "store_clock",
    "seed_of_parts",
    SWIFT_SETTINGS_OPTION,  # its settings are facts of their own
    SIDE_SWIFTS_OPTION,
}

#: How the facts begin that say what is set in a Swift which a run started itself, and the fact that it did.
_SWIFT_FACT = "local Swift: "
_STARTED_SWIFT_FACT = "local swift"

#: The fact which version that Swift has.
SWIFT_VERSION_FACT = f"{_SWIFT_FACT}version"

_SHARED_CPU_TEXT = (
    "both Swifts ran on this machine at the same time: one that needs more CPU slows the other too, so that"
    " each alone may differ by another share (--repeat with --versus compares them in turn)"
)

#: More values of a side than this are not named.
_MAX_NAMED_VALUES = 3


def collect_run_facts(statistics: RunStatistics) -> dict[str, str]:
    """Return each fact in words; "" stands for none. Stat files of ssbench 0.x know no options."""
    run = statistics.run
    hosts = sorted({worker.host for worker in (statistics.fleet or run.workers) if worker.host})
    workers = " on ".join([str(statistics.worker_count), *([", ".join(hosts)] if hosts else [])])
    return collect_described_facts(run, workers)


def collect_described_facts(run: RunDescription, workers: str = "") -> dict[str, str]:
    """Return the facts of a run that its description says, which may be one that is to be made."""
    scenario = run.scenario
    seconds = "" if scenario.run_seconds is None else f"{scenario.run_seconds:g} s"
    facts = {
        "scenario": scenario.name,
        "sizes": ", ".join(
            f"{each.name} {each.size_min}-{each.size_max}{_spell_shape(each)} x {each.initial_files}"
            for each in scenario.size_classes
        ),
        "mix": ", ".join(f"{each.name} {_spell_mix(each)}" for each in scenario.size_classes),
        "users": str(scenario.user_count),
        "rate": "" if scenario.rate is None else f"{scenario.rate:g}/s",
        "length": seconds or f"{scenario.operation_count} operations",
        "containers": str(scenario.containers),
        "policy": scenario.policy or "",
        "seed": "" if run.seed is None else str(run.seed),
        "storage URL": ", ".join(run.storage_urls),
        "ssbench": run.version,
        "master": run.host,
        "workers": workers,
    }
    if (settings := run.swift_settings) is not None:
        facts["storage URL"] = "a local Swift"  # its port is another one each time
        facts |= {f"{_SWIFT_FACT}{name}": value for name, value in settings.items()}
    for name, value in (*_list_settings(scenario), *run.options.items()):
        if name not in _IGNORED_OPTIONS:
            title = name.replace("_", " ")
            facts[title] = _spell_value(value) or facts.get(title, "")
    if "trans_id_extra" in run.options:
        facts["marks of transactions"] = _spell_value(bool(run.options["trans_id_extra"]))
    return facts


def _spell_shape(size_class: SizeClass) -> str:
    return size_class.title.removeprefix(size_class.name)


def _spell_mix(size_class: SizeClass) -> str:
    """Return weights as the four of create, read, update and delete, or with names where there are others."""
    weights = {name: weight for name, weight in size_class.weights.items() if weight}
    if weights.keys() <= set(CRUD_OPERATIONS):
        return "/".join(f"{weights.get(name, 0):g}" for name in CRUD_OPERATIONS)
    return ", ".join(f"{name} {weight:g}" for name, weight in sorted(weights.items()))


def _list_settings(scenario: Scenario) -> Iterator[tuple[str, object]]:
    for key in fields(scenario):
        if key.name not in _SCENARIO_FACTS:
            yield key.name, getattr(scenario, key.name)
    # Their own words say nothing of how long they are.
    yield "stages", tuple(f"{each} for {each.seconds:g} s" for each in scenario.stages)


def _spell_value(value: object) -> str:
    """Return a value in words; what is off is ""."""
    match value:
        case None | False | 0 | 0.0:
            return ""
        case True:
            return "yes"
        case float():
            return f"{value:g}"
        case list() | tuple():
            return ", ".join(": ".join(each) if isinstance(each, tuple) else str(each) for each in value)
    return str(value)


def describe_noop(runs: Iterable[RunFigures]) -> tuple[str, ...]:
    """Say that nothing was sent, where that is so of a run."""
    return (f"no-op runs: {NOTHING_SENT}",) if any(run.facts.get("noop") for run in runs) else ()


def describe_fact_differences(
    before: Sequence[Mapping[str, str]], after: Sequence[Mapping[str, str]]
) -> Iterator[str]:
    """Say which facts the runs of two sides do not have in common."""
    if found := [*_list_swift_differences(before, after)]:
        yield f"the local Swifts of before and after differ in: {', '.join(found)}"
    unknown: dict[str, list[str]] = {"before": [], "after": []}
    for fact in dict.fromkeys(fact for facts in (*before, *after) for fact in facts):
        if fact.startswith(_SWIFT_FACT):
            continue
        # Repeated runs of one seed would differ from others by the seed alone.
        sides = [dict.fromkeys(facts.get(fact) for facts in runs) for runs in (before, after)]
        if fact == "seed" and max(map(len, sides)) > 1:
            continue
        if [None] in [[*side] for side in sides]:
            if any(value for side in sides for value in side):
                unknown["before" if [*sides[0]] == [None] else "after"].append(fact)
            continue
        sides = [dict.fromkeys(value or "" for value in side) for side in sides]
        if sides[0] == sides[1] and len(sides[0]) == 1:
            continue
        texts = [" and ".join(value or "none" for value in [*side][:_MAX_NAMED_VALUES]) for side in sides]
        if texts[0] == texts[1]:
            yield f"{fact} differs among the runs of a side: {texts[0]}"
        else:
            yield f"{fact} differs: {texts[0]} before, {texts[1]} after"
    for side, facts in unknown.items():
        if facts:
            yield f"not known {side}: {', '.join(facts)}"


def describe_side_swifts(run: RunDescription) -> list[str]:
    """Say what differs between the Swifts that a run started for its two sides, and what they share."""
    facts = [
        {_STARTED_SWIFT_FACT: "yes", **{f"{_SWIFT_FACT}{name}": value for name, value in swift.items()}}
        for swift in run.side_swifts
    ]
    found = [*_list_swift_differences(facts[:1], facts[1:])]
    differences = f"the local Swifts of {' and '.join(run.sides)} differ in: {', '.join(found)}"
    return [*([differences] if found else []), *([_SHARED_CPU_TEXT] if facts else [])]


def _list_swift_differences(
    before: Sequence[Mapping[str, str]], after: Sequence[Mapping[str, str]]
) -> Iterator[str]:
    """Yield which settings differ between Swifts that the runs started themselves, with the values."""
    sides = [[facts for facts in runs if facts.get(_STARTED_SWIFT_FACT)] for runs in (before, after)]
    if not all(sides):
        return  # what another cluster has set is not known
    for fact in dict.fromkeys(fact for runs in sides for facts in runs for fact in facts):
        if fact.startswith(_SWIFT_FACT):
            # "default" is what Swift does without the setting.
            values = [dict.fromkeys(facts.get(fact, "default") for facts in runs) for runs in sides]
            if values[0] != values[1] or len(values[0]) > 1:
                texts = [" and ".join([*each][:_MAX_NAMED_VALUES]) for each in values]
                yield f"{fact.removeprefix(_SWIFT_FACT)} {texts[0]} -> {texts[1]}"


# -- Figures ---------------------------------------------------------------------------------------


#: (operation, size class): "ALL" is all operations, None all classes. Those of a group of users have its name
#: before them, as in conditions: "backup.READ", "backup.ALL".
FigureKey = tuple[str, str | None]

ALL_KEY: FigureKey = ("ALL", None)


def make_operation_key(operation: str | None, group: str | None = None) -> str:
    """Return what an operation is called in a key, of a group of users or of all; None is all operations."""
    name = operation.upper() if operation else "ALL"
    return f"{group}.{name}" if group else name


@dataclass(frozen=True, slots=True)
class FigureSample:
    """A figure of one run."""

    value: float  # in its unit
    #: Half the width of its 95 % interval, of the logarithm (of shares: of the value); None: not known.
    half: float | None = None


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures of a run, and the facts that two runs should have in common to be compared."""

    name: str
    rows: Mapping[FigureKey, Mapping[str, FigureSample]]
    facts: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    label: str = ""
    started: float | None = None  # seconds since 1970; None: not known
    #: The size class of each operation that has one, whose figures are those of the operation and stand in no
    #: row of their own.
    only_classes: Mapping[str, str] = field(default_factory=dict)
    turn: int | None = None  # its place among the runs of its file, where no moments are known
    local_swift: tuple[str, ...] = ()  # the storage URLs of the Swift on this machine that it used


def runs_with_figure(runs: Sequence[RunFigures], key: FigureKey, figure: Figure) -> Sequence[RunFigures]:
    """Return the runs that have a figure; none where it is a percentile that only some of them have.

    Those without it had too few operations for it, mostly because they were slow. The mean of the others is
    too good, and a 99th percentile of fast runs can be below a 95th percentile of all.
    """
    found = [run for run in runs if figure.key in run.rows.get(key, {})]
    return [] if figure.rank is not None and len(found) < len(runs) else found


_INCOMPLETE_WARNING = "the run is under way, or was killed: its figures are those so far"


def make_run_figures(statistics: RunStatistics, name: str) -> RunFigures:
    """Return the figures of a run that is called ``name``; classes where an operation has several."""
    rows: dict[FigureKey, Mapping[str, FigureSample]] = {}
    for operation, section, numbers in _sections(statistics):
        lines = section.lines if section.operation and len(section.lines) > 2 else section.lines[:1]
        for line in lines:
            rows[operation, line.size_class] = dict(_samples(line, numbers))
    other_load = (each.text for each in find_load_reasons(statistics))
    incomplete = () if statistics.complete else (_INCOMPLETE_WARNING,)
    warnings = [f"{name}: {warning}" for warning in (*incomplete, *other_load, *statistics.warnings)]
    label = statistics.run.options.get("label")
    return RunFigures(
        name,
        rows,
        collect_run_facts(statistics),
        tuple(warnings),
        label if isinstance(label, str) else "",
        statistics.run.started or statistics.start,
        classes_by_operation(statistics),
        local_swift=list_local_urls(statistics),
    )


def list_local_urls(statistics: RunStatistics) -> tuple[str, ...]:
    """Return the storage URLs of a run whose Swift was started on this machine; none of other runs."""
    run = statistics.run
    is_local = run.swift_settings is not None or run.side_swifts or statistics.cpu_samples
    return run.storage_urls if is_local else ()


def classes_by_operation(statistics: RunStatistics) -> dict[str, str]:
    """Return the size class of each operation that has one."""
    return {
        operation: section.lines[1].size_class or ""
        for operation, section, _ in _sections(statistics)
        if section.operation and len(section.lines) == 2
    }


def _sections(statistics: RunStatistics) -> Iterator[tuple[str, FiguresSection, RunStatistics]]:
    """Yield the operations of each group of users, then those of all, with what they are called."""
    parts = [*((group.name, group.numbers) for group in statistics.by_group), (None, statistics)]
    for group, numbers in parts:
        for section in (*numbers.sections[1:], numbers.total):
            yield (
                make_operation_key(section.operation.name if section.operation else None, group),
                section,
                numbers,
            )


def _samples(line: SectionLine, run: RunStatistics) -> Iterator[tuple[str, FigureSample]]:
    for key, figure in COMPARED_FIGURES.items():
        if figure.scope is Scope.RUN and line is not run.total.lines[0]:
            continue
        if figure.is_share:
            share = figure.share(line, run)
            if share is not None:
                yield key, FigureSample(share, failure_half_width(line))
        elif (value := figure.value(line, run)) and math.isfinite(value) and not figure.at_least(line, run):
            yield key, _sample(value, figure.interval(line, run))


def _sample(value: float, interval: Range | None) -> FigureSample:
    if interval is None or math.isinf(interval.high) or interval.low <= 0:
        return FigureSample(value)
    return FigureSample(value, max(math.log(interval.high / value), math.log(value / interval.low)))
