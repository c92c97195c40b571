"""How a run was set up, and what the master counted besides its results, in the words of the options."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from ssbench.document.elements import Element, Lines, Table, columns_of
from ssbench.document.units import count, given
from ssbench.reports import load
from ssbench.reports.key_figures import utc
from ssbench.results.description import EXISTING, OBJECT_TAG, STORE_CLOCK
from ssbench.statistics.run_statistics import RunStatistics

#: Characters of the scenario file beyond this are cut off: the page stays small whatever the run was.
_MOST_TEXT = 20_000

#: Options that are kept by another name than that of the command line, or need a unit: words, unit.
_OPTIONS: Mapping[str, tuple[str, str]] = {
    "block_size": ("--block-size", "bytes"),
    "connect_timeout": ("--connect-timeout", "s"),
    "network_timeout": ("--network-timeout", "s"),
    "request_timeout": ("--request-timeout", "s"),
    "give_up_after": ("--give-up-after", "s"),
    "warmup": ("--warmup", ""),
    "sides": ("--ab", ""),
    "local_workers": ("--workers", ""),
    "sealed": ("workers need a key (--key-file)", ""),
    "seed_of_parts": ("--seed", ""),
    "undecided": ("undecided conditions (--undecided)", ""),
    "trans_id_extra": ("end of transaction ids in Swift's logs", ""),
    OBJECT_TAG: ("mark in the names of objects", ""),
    EXISTING: ("containers that existed (--existing)", ""),
    STORE_CLOCK: ("clock here against that of Swift: at least, at most", "s"),
}

#: What the master counts. Those that are 0 are left out.
_COUNTERS = {
    "drawn": "operations that the scenario drew",
    "capacity": "operations that the workers can run at once",
    "waited": "operations that waited for a free object",
    "not_begun": "operations that still waited for a free object at the end, and were not sent",
    "expired": "objects that expired before they were used",
    "redrawn": "objects chosen again, because the first was in use",
    "reused": "reads of an object that another operation was using",
    "initial_uploaded": "initial objects uploaded",
    "initial_replaced": "initial objects replaced",
    "initial_of_others": "of these, objects of another scenario or run",
    "initial_reused": "initial objects reused",
    "taken_back": "operations that workers held at the end and had not begun",
    "in_doubt": "operations that workers held at the end that no longer answered",
    "passed_on": "operations of lost workers that others carried out",
    "handed_back": "operations that workers returned",
    "late_results": "results that came after their worker was lost",
    "foreign_results": "results from workers of another run",
    "invalid_results": "results with figures that cannot be",
}


def elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield the load, the options, the counts, the size classes and the scenario file."""
    run, scenario = statistics.run, statistics.run.scenario
    known: list[tuple[str, object]] = [
        ("scenario", scenario.name),
        ("load", load.words(scenario)),
        ("run time (s)", None if scenario.run_seconds is None else f"{scenario.run_seconds:g}"),
        ("operations", None if scenario.operation_count is None else count(scenario.operation_count)),
        ("arrivals", scenario.arrivals if scenario.is_open else None),
        ("warm-up (s)", scenario.warmup or None),
        ("think time (s)", scenario.think_time or None),
        ("stages", "; ".join(f"{each.seconds:g} s: {each}" for each in scenario.stages)),
        ("popularity", scenario.popularity),
        ("reuse of objects in use", scenario.reuse),
        ("contents of objects", scenario.body),
        ("metadata", scenario.metadata),
        ("connections", scenario.connections),
        ("containers", count(scenario.container_count)),
        ("accounts", count(scenario.accounts) if scenario.accounts > 1 else None),
        ("names of containers begin with", scenario.container_base),
        ("names of objects", scenario.object_names),
        ("storage policy", scenario.policy),
        ("objects expire after (s)", scenario.expiry),
        ("storage URLs", ", ".join(run.storage_urls)),
        ("first request", utc(statistics.start)),
        ("last completion", utc(statistics.end)),
        ("seed", run.seed),
        ("id of the run", run.run_id),
        ("host of the master", run.host),
        ("version of ssbench", run.version),
    ]
    yield _table("parameter", {name: str(value) for name, value in known if value not in {None, ""}})
    options = (_option(name, value) for name, value in run.options.items())
    yield _table("option", dict(each for each in options if each is not None))
    counts = {
        _COUNTERS.get(name, name.replace("_", " ")): given(value)
        for name, value in statistics.counters.items()
        if value
    }
    yield _table("counted", counts, "number", texts=1)
    classes = [
        [
            each.name if each.shape is None else f"{each.name} ({each.shape})",
            count(each.size_min),
            count(each.size_max),
            count(each.initial_files),
            ", ".join(f"{name} {weight:g}" for name, weight in each.weights.items() if weight),
        ]
        for each in scenario.size_classes
    ]
    heads = ("size class", "smallest (bytes)", "largest (bytes)", "initial objects", "weights")
    yield Table(columns_of(*heads), classes)
    if scenario.data:
        yield _file(scenario.data)


def _table(name: str, rows: Mapping[str, str], value: str = "value", *, texts: int = 2) -> Table:
    return Table(columns_of(name, value, texts=texts), [*rows.items()])


def _option(name: str, value: object) -> tuple[str, str] | None:
    """Return an option in the words of the command line; None where it has no value."""
    words, unit = _OPTIONS.get(name, (f"--{name.replace('_', '-')}", ""))
    match value:
        case None | "" | False:
            return None
        case True:
            return words, "yes"
        case float() | int():
            text = given(value)
        case list() | tuple():
            text = ", ".join(map(str, value))
        case _:
            text = str(value)
    return words, f"{text} {unit}" if unit else text


def _file(data: object) -> Lines:
    text = json.dumps(data, indent=2, ensure_ascii=False, default=str)
    if len(text) > _MOST_TEXT:
        text = text[:_MOST_TEXT] + "\n..."
    return Lines(text.split("\n"), "The scenario file")
