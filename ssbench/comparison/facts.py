"""What two runs should have in common to be compared: every setting that their stat files hold.

The facts follow from the scenario's fields and from the options that a stat file keeps, so that a new one is
compared as soon as it is recorded; only what cannot change a figure is left out by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

from ssbench.scenario.model import CRUD_OPERATIONS, Scenario, SizeClass
from ssbench.statistics.run_statistics import RunStatistics

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
_IGNORED_OPTIONS = {"label", "trans_id_extra", "start_at", "store_clock", "seed_of_parts"}

#: More values of a side than this are not named.
_MAX_NAMED_VALUES = 3


def collect_run_facts(statistics: RunStatistics) -> dict[str, str]:
    """Return each fact in words; "" stands for none. Stat files of ssbench 0.x know no options."""
    run, scenario = statistics.run, statistics.run.scenario
    hosts = sorted({worker.host for worker in (statistics.fleet or run.workers) if worker.host})
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
        "workers": " on ".join([str(statistics.worker_count), *([", ".join(hosts)] if hosts else [])]),
    }
    for name, value in (*_list_settings(scenario), *run.options.items()):
        if name not in _IGNORED_OPTIONS:
            title = name.replace("_", " ")
            facts[title] = _spell_value(value) or facts.get(title, "")
    if "trans_id_extra" in run.options:
        facts["marks of transactions"] = _spell_value(bool(run.options["trans_id_extra"]))
    return facts


def _spell_shape(size_class: SizeClass) -> str:
    return "" if size_class.shape is None else f" ({size_class.shape})"


def _spell_mix(size_class: SizeClass) -> str:
    """Return weights as the four of create, read, update and delete, or with names where there are others."""
    weights = {name: weight for name, weight in size_class.weights.items() if weight}
    if weights.keys() <= set(CRUD_OPERATIONS):
        return "/".join(f"{weights.get(name, 0):g}" for name in CRUD_OPERATIONS)
    return ", ".join(f"{name} {weight:g}" for name, weight in sorted(weights.items()))


def _list_settings(scenario: Scenario) -> Iterator[tuple[str, object]]:
    for field in fields(scenario):
        if field.name not in _SCENARIO_FACTS:
            yield field.name, getattr(scenario, field.name)
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


def describe_fact_differences(
    before: Sequence[Mapping[str, str]], after: Sequence[Mapping[str, str]]
) -> Iterator[str]:
    """Say which facts the runs of two sides do not have in common."""
    unknown: dict[str, list[str]] = {"before": [], "after": []}
    for fact in dict.fromkeys(fact for facts in (*before, *after) for fact in facts):
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
