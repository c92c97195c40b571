"""How a run was set up, and what the master counted besides its results, in the words of the options."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from ssbench.document.elements import Element, Lines, Table, make_columns
from ssbench.document.units import format_count, format_given_number
from ssbench.reports import load
from ssbench.reports.key_figures import format_utc
from ssbench.results.description import EXISTING_OPTION, OBJECT_TAG_OPTION, STORE_CLOCK_OPTION
from ssbench.statistics.run_statistics import RunStatistics

#: Characters of the scenario file beyond this are cut off: the page stays small whatever the run was.
_MAX_FILE_CHARACTERS = 20_000

#: Options that are kept by another name than that of the command line, or need a unit: words, unit.
_OPTION_NAMES: Mapping[str, tuple[str, str]] = {
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
    OBJECT_TAG_OPTION: ("mark in the names of objects", ""),
    EXISTING_OPTION: ("containers that existed (--existing)", ""),
    STORE_CLOCK_OPTION: ("clock here against that of Swift: at least, at most", "s"),
}

#: What the master counts. Those that are 0 are left out.
_COUNTER_TEXTS = {
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


def make_parameter_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield the load, the options, the counts, the size classes and the scenario file."""
    run, scenario = statistics.run, statistics.run.scenario
    known: list[tuple[str, object]] = [
        ("scenario", scenario.name),
        ("load", load.describe_load(scenario)),
        ("run time (s)", None if scenario.run_seconds is None else f"{scenario.run_seconds:g}"),
        ("operations", None if scenario.operation_count is None else format_count(scenario.operation_count)),
        ("arrivals", scenario.arrivals if scenario.is_open else None),
        ("warm-up (s)", scenario.warmup or None),
        ("think time (s)", scenario.think_time or None),
        ("stages", "; ".join(f"{each.seconds:g} s: {each}" for each in scenario.stages)),
        ("popularity", scenario.popularity),
        ("reuse of objects in use", scenario.reuse),
        ("contents of objects", scenario.body),
        ("metadata", scenario.metadata),
        ("connections", scenario.connections),
        ("containers", format_count(scenario.container_count)),
        ("accounts", format_count(scenario.accounts) if scenario.accounts > 1 else None),
        ("names of containers begin with", scenario.container_base),
        ("names of objects", scenario.object_names),
        ("storage policy", scenario.policy),
        ("objects expire after (s)", scenario.expiry),
        ("storage URLs", ", ".join(run.storage_urls)),
        ("first request", format_utc(statistics.start)),
        ("last completion", format_utc(statistics.end)),
        ("seed", run.seed),
        ("id of the run", run.run_id),
        ("host of the master", run.host),
        ("version of ssbench", run.version),
    ]
    yield _parameter_table(
        "parameter", {name: str(value) for name, value in known if value not in {None, ""}}
    )
    options = (_option_row(name, value) for name, value in run.options.items())
    yield _parameter_table("option", dict(each for each in options if each is not None))
    counts = {
        _COUNTER_TEXTS.get(name, name.replace("_", " ")): format_given_number(value)
        for name, value in statistics.counters.items()
        if value
    }
    yield _parameter_table("counted", counts, "number", texts=1)
    classes = [
        [
            each.name if each.shape is None else f"{each.name} ({each.shape})",
            format_count(each.size_min),
            format_count(each.size_max),
            format_count(each.initial_files),
            ", ".join(f"{name} {weight:g}" for name, weight in each.weights.items() if weight),
        ]
        for each in scenario.size_classes
    ]
    heads = ("size class", "smallest (bytes)", "largest (bytes)", "initial objects", "weights")
    yield Table(make_columns(*heads), classes)
    if scenario.data:
        yield _file_lines(scenario.data)


def _parameter_table(name: str, rows: Mapping[str, str], value: str = "value", *, texts: int = 2) -> Table:
    return Table(make_columns(name, value, texts=texts), [*rows.items()])


def _option_row(name: str, value: object) -> tuple[str, str] | None:
    """Return an option in the words of the command line; None where it has no value."""
    words, unit = _OPTION_NAMES.get(name, (f"--{name.replace('_', '-')}", ""))
    match value:
        case None | "" | False:
            return None
        case True:
            return words, "yes"
        case float() | int():
            text = format_given_number(value)
        case list() | tuple():
            text = ", ".join(map(str, value))
        case _:
            text = str(value)
    return words, f"{text} {unit}" if unit else text


def _file_lines(data: object) -> Lines:
    text = json.dumps(data, indent=2, ensure_ascii=False, default=str)
    if len(text) > _MAX_FILE_CHARACTERS:
        text = text[:_MAX_FILE_CHARACTERS] + "\n..."
    return Lines(text.split("\n"), "The scenario file")
