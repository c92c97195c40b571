"""Facts of a run, for its reports: its head, its load, errors, slowest operations, waits, parameters.

The load is what was asked for, and how that was kept to: in a closed loop, or with operations that were due;
and the mix. ``doc/numbers.rst`` defines response time, service time and lateness. The parameters are how the
run was set up, and what the master counted besides its results, in the words of the options.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ssbench.document.columns import format_clock, format_plural
from ssbench.document.elements import (
    Cell,
    Column,
    Element,
    Item,
    Items,
    Lines,
    Note,
    Table,
    drop_columns,
    make_columns,
)
from ssbench.document.figures import LATENCY_RANKS, LINE_RANKS, count_needed_results
from ssbench.document.units import (
    format_count,
    format_given_number,
    format_latency,
    format_milliseconds,
    format_moment,
    format_number,
    format_percent,
    format_run_length,
    format_seconds,
    format_share,
)
from ssbench.reports.key_figures import (
    format_object_path,
    format_percentiles,
    format_utc,
    make_list_note,
    percentile_heads,
)
from ssbench.results.result_fields import NO_WORKER
from ssbench.results.run_description import (
    EXISTING_OPTION,
    OBJECT_TAG_OPTION,
    STORE_CLOCK_OPTION,
    SWIFT_SETTINGS_OPTION,
    ReplayFacts,
    RunDescription,
)
from ssbench.scenario.key_rules import REPLAY_WORD
from ssbench.scenario.model import SCENARIO_KEYS, KeyTopic, Scenario, ScenarioKey, explain_replacement
from ssbench.scenario.operations import OperationTable
from ssbench.scenario.store_kinds import find_store_kind
from ssbench.statistics import waits
from ssbench.statistics.collector import Cause
from ssbench.statistics.latencies import SlowResult
from ssbench.statistics.latency_parts import LATE_START_SECONDS
from ssbench.statistics.over_time import EventEffect, SpanFigures, describe_event_effect
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import NOTHING_SENT, asked_mix, delivered_load


def make_load_notes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield what was asked for: load, seed, capacity, and the mix beside what was done."""
    run = statistics.run
    if statistics.interrupted:
        yield Note(
            f"Interrupted after {format_run_length(statistics.lasted)} s: figures cover the time until then"
        )
    kind = "open loop" if run.scenario.is_open else "closed loop"
    kind = "both" if run.scenario.is_mixed and run.scenario.groups else kind
    capacity = statistics.counters.get("capacity")
    more = f"; the workers run {format_count(round(capacity))} operations at once" if capacity else ""
    yield Note(f"Load: {kind}, {describe_load(run.scenario)}{more}")
    if run.seed is not None:
        yield Note(f"Seed: {run.seed}")
    yield from _requests(run)
    yield from _mix(statistics)


def _select_keys(run: RunDescription) -> Iterator[ScenarioKey]:
    """Yield the keys that mean something over the stores of a run."""
    kinds = {"", *(find_store_kind(url).name for url in run.storage_urls)}
    return (key for key in SCENARIO_KEYS if key.only_over in kinds)


def _requests(run: RunDescription) -> Iterator[Note]:
    """Yield what uploads consist of and which connections there are, where the scenario says so."""
    scenario = run.scenario
    for key in _select_keys(run):
        if not key.note:
            continue
        if key.in_groups and scenario.groups:
            found = [
                (f" of group {group.name}", part)
                for group, part in zip(scenario.groups, scenario.parts, strict=True)
            ]
        else:
            found = [("", scenario)]
        for of, part in found:
            if (value := getattr(part, key.name)) is not None:
                yield Note(f"{key.note}{of}: {value}")


def _mix(statistics: RunStatistics) -> Iterator[Note]:
    """Yield what share of the operations each was to be, and was; failures count as done."""
    scenario = statistics.run.scenario
    wanted, done = asked_mix(scenario), delivered_load(statistics).mix
    if done and not statistics.by_group:
        rows = scenario.operation_table.drawn
        names = [each.name for each in rows if wanted.get(each.name) or done.get(each.name)]
        shares = (
            f"{name.upper()} {format_percent(wanted.get(name, 0.0))}/{format_percent(done.get(name, 0.0))}"
            for name in names
        )
        yield Note(f"Mix in %, asked for/done: {', '.join(shares)}")


def make_load_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield how the load was kept to; nothing of a closed loop without think time."""
    scenario, due = statistics.run.scenario, statistics.total.due
    if scenario.think_time:
        yield Note(f"Think time: {scenario.think_time:g} s after each operation of a user")
    if not scenario.is_open:
        return
    began = due.lateness.count
    yield Note(
        f"Open loop: {describe_load(scenario)}"
        + (f"; due: {format_count(statistics.due)}" if statistics.due else "")
    )
    most = (
        f" ({format_share(due.late, began)}), at most {format_latency(due.lateness.maximum)}" if began else ""
    )
    yield Note(f"Began more than {LATE_START_SECONDS * 1000:g} ms late: {format_count(due.late)}{most}")
    if statistics.not_begun:
        yield Note(
            f"Due, but not begun by the end: {format_count(statistics.not_begun)} (in"
            f" response times as at least)"
        )
    rows = [["ALL", format_count(began), *format_percentiles(due.lateness, LATENCY_RANKS)]] if began else []
    yield Table(make_columns("Lateness in ms", "n", *percentile_heads(LATENCY_RANKS)), rows)


def describe_load(scenario: Scenario) -> str:
    """Return the load that a scenario asks for in a few words."""
    if scenario.groups:
        names = ", ".join(
            f"{group.name} {describe_load(part)}"
            for group, part in zip(scenario.groups, scenario.parts, strict=True)
        )
        return f"{format_plural(len(scenario.groups), 'group')} of users: {names}"
    if scenario.stages:
        return (
            f"{format_plural(len(scenario.stages), 'stage')}, at most"
            f" {format_count(scenario.user_count)} in flight"
        )
    if scenario.rate is None:
        return format_plural(scenario.user_count, "user")
    how = {"even": "evenly", "poisson": "Poisson", REPLAY_WORD: "timed by the log"}.get(
        scenario.arrivals, scenario.arrivals
    )
    operations = "operation" if scenario.rate == 1 else "operations"
    most = format_count(scenario.user_count)
    return f"{scenario.rate:g} {operations} a second, {how}, at most {most} in flight"


def make_open_loop_notes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield what the summary says of an open loop besides its table, which has response times."""
    due = statistics.total.due
    if not statistics.run.scenario.is_open or not due.lateness.count:
        return
    service = statistics.total.last_byte
    parts = [
        f"p{rank:g} {format_milliseconds(seconds)}"
        for rank in LINE_RANKS
        if (seconds := service.supported_percentile(rank)) is not None
    ]
    if service.count:
        parts.append(f"max {format_latency(service.maximum)}")
    late = f"{format_count(due.late)} began late (max {format_latency(due.lateness.maximum)})"
    not_begun = f", {format_count(statistics.not_begun)} never" if statistics.not_begun else ""
    sent = f" From when they were sent: {' '.join(parts)}." if parts else ""
    yield Note(f"Latency counts from when operations were due.{sent} {late}{not_begun}")


# -- The head, warnings, errors and slowest operations ---------------------------------------------


#: More causes than these are counted in the summary.
_MAX_CAUSES = 5

#: The columns of the table of errors.
_CAUSE_COLUMNS = (
    Column("cause", is_number=False),
    Column("errors"),
    Column("% of all"),
    Column("ms to fail: median", short="ms to fail"),
    Column("max"),
    Column("HTTP status", is_number=False, is_whole=True),
    Column("operations", is_number=False, is_whole=True),
    Column("first transaction id", is_number=False, is_whole=True),
)


def make_run_facts(statistics: RunStatistics) -> list[str]:
    """Return what stands at the head of a report: where, with which load, when, for how long."""
    run, scenario = statistics.run, statistics.run.scenario
    sides = run.sides_as_given
    label = run.options.get("label")
    found = [f"label {label}"] if label else []
    if sides:
        found.append(f"two sides, {' and '.join(sides)}: figures are of both together")
    if run.options.get("noop"):
        found.append(f"no-op run: {NOTHING_SENT}")
    elif run.storage_urls and not any("://" in each for each in sides):
        more = len(run.storage_urls) - 1
        found.append(f"{run.storage_urls[0]}{f' and {more} more' if more else ''}")
    if settings := run.swift_settings:
        version = settings.pop("version", "")
        others = ", ".join(f"{key} {value}" for key, value in settings.items())
        found.append(" ".join(filter(None, ["Swift", version, others and f"with {others}"])))
    if scenario.policy:
        found.append(f"policy {scenario.policy}")
    if scenario.accounts > 1:
        found.append(format_plural(scenario.accounts, "account"))
    if statistics.current:
        each = " a side" if run.sides else " each" if scenario.accounts > 1 else ""
        found.append(format_plural(scenario.containers, "container") + each)
    if run.seed is not None:
        found.append(f"seed {run.seed}")
    found.append(describe_load(scenario))
    hosts = {worker.host for worker in statistics.fleet if worker.host}
    workers = format_plural(len(statistics.fleet) or statistics.worker_count, "worker")
    found.append(f"{workers} on {format_plural(len(hosts), 'host')}" if hosts else workers)
    found.append(f"{format_run_seconds(statistics)} from {format_utc(statistics.start)}")
    return [*found, f"ssbench {run.version}"]


def make_run_stamp(statistics: RunStatistics) -> str:
    """Return the label of a run, where it has one, and when it began."""
    begun = [format_utc(statistics.start)] if statistics.start is not None else []
    return ", ".join(filter(None, [str(statistics.run.options.get("label") or ""), *begun]))


def format_run_seconds(statistics: RunStatistics) -> str:
    """Return how long the run took; with its unit."""
    return f"{format_run_length(statistics.duration)} s"


def find_run_warnings(statistics: RunStatistics) -> list[str]:
    """Return what the reader should know before relying on figures."""
    none = ["there is no result in this stat file"] if statistics.start is None else []
    return [*statistics.warnings, *none]


_REPLAY_RANKS = (50, 95, 99)


def make_replay_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield what was replayed, with the latencies of the log beside its own, and which statuses differ."""
    replay = statistics.replay
    if replay is None:
        return
    source = replay.source
    copies = f", each {source.copies} times," if source.copies > 1 else ""
    places = f"{format_plural(source.containers, 'container')} of {format_plural(source.accounts, 'account')}"
    yield Note(
        f"Log: {source.title}, {format_plural(source.requests, 'request')}{copies} of"
        f" {format_run_length(source.seconds)} s from {format_utc(source.began)}, for"
        f" {format_plural(source.objects, 'object')} in {places}; {format_count(source.prepared)} prepared"
    )
    per_second = source.requests / source.seconds if source.seconds else math.nan
    due, delivered = per_second * source.copies * replay.speed, delivered_load(statistics)
    made = (delivered.operations or 0) / delivered.seconds if delivered.seconds else math.nan
    yield Note(
        f"Speed: {format_given_number(float(f'{replay.speed:.5g}'))}; requests a second:"
        f" {format_number(per_second)} in the log, {format_number(due)} due, {format_number(made)} made"
    )
    yield _make_log_table(statistics, replay)
    yield from map(Note, source.doubts)
    if source.left_out:
        left_out = format_plural(source.left_out, "request")
        yield Note(f"Left out: {left_out} that no operation makes, or that the store refused in the log")
    before = "" if source.early_requests is None else f" (in the log {format_count(source.early_requests)})"
    raced = format_plural(replay.early_requests, "request")
    yield Note(f"Due before a write of their object had ended: {raced}{before}")
    if not statistics.run.options.get("noop"):
        yield from _make_status_elements(replay)


def _make_log_table(statistics: RunStatistics, replay: ReplayFacts) -> Table:
    """Return the latencies of operations in the log and those of the replay, in turn."""
    sections = {each.operation.name: each for each in statistics.sections[1:] if each.operation}
    rows: list[Sequence[str | Cell]] = []
    for logged in replay.source.operations:
        ranks = zip(_REPLAY_RANKS, (logged.p50, logged.p95, logged.p99), strict=True)
        seconds = [value if logged.count >= count_needed_results(rank) else None for rank, value in ranks]
        seconds.append(logged.maximum)
        rows.append(
            [logged.operation.upper(), "log", format_count(logged.count), *map(format_milliseconds, seconds)]
        )
        if (own := sections.get(logged.operation)) is not None:
            met = own.lines[0].latency
            own_seconds = [*(met.supported_percentile(rank) for rank in _REPLAY_RANKS)]
            own_seconds.append(met.percentile(100) if met.count else None)
            rows.append(["", "replay", format_count(own.count), *map(format_milliseconds, own_seconds)])
    heads = [Column("operation", is_number=False, short=""), Column("of", is_number=False, short="")]
    return Table([*heads, *make_columns("ops", "ms:p50", "p95", "p99", "max")], rows, keys=2)


def _make_status_elements(replay: ReplayFacts) -> Iterator[Element]:
    """Yield how many statuses are those of the log, and a table of the others."""
    total = sum(each.count for each in replay.statuses)
    others = [each for each in replay.statuses if not each.is_same]
    differ = sum(each.count for each in others)
    yield Note(
        f"Statuses that differ from the log's: {format_count(differ)} of {format_count(total)}"
        + (f" ({format_share(differ, total)})" if differ else "")
    )
    if others:
        yield Table(
            [
                Column("operation", is_number=False, short=""),
                *make_columns("status in the log", "now", "ops"),
            ],
            [
                [
                    each.operation.upper(),
                    str(each.logged),
                    str(each.status or "none"),
                    format_count(each.count),
                ]
                for each in sorted(others, key=lambda each: -each.count)
            ],
        )


def make_wait_items(statistics: RunStatistics) -> Iterator[Items]:
    """Yield waits that are as long as a constant of the system."""
    yield Items([Item(waits.describe_wait(wait)) for wait in statistics.waits])


def make_wait_notes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield the same for the summary."""
    for wait in statistics.waits:
        yield Note(f"Wait: {waits.describe_wait(wait)}")


_SPAN_COLUMNS = [
    *make_columns("", "from s", "s", "ops", "ops/s", "ms:p50", "p99", "errors"),
    Column("causes", is_number=False, is_long=True),
]


def make_event_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield what happened around the commands that were run meanwhile, and around begins of groups."""
    rows: list[Sequence[str | Cell]] = []
    several = len(statistics.events) > 1
    for number, each in enumerate(statistics.events, 1):
        spans = [("before", each.before if number == 1 else None)]
        spans += [
            (f"{name} {number}" if several else name, span)
            for name, span in (("during", each.during), ("after", each.after))
        ]
        rows += [_span_row(name, span) for name, span in spans if span is not None]
    if rows:
        yield Table(_SPAN_COLUMNS, rows)
    for number, each in enumerate(statistics.events, 1):
        name = f"{number}: " if several else ""
        how = "; ".join([_describe_command(each), *describe_event_effect(each)])
        yield Note(f"{name}{each.facts.command}: {how}")
    for each in statistics.events:
        if each.facts.output:
            more = ["..."] if each.facts.is_cut else []
            title = f"Output of the command at {format_moment(each.facts.at)} s"
            yield Lines([*each.facts.output.splitlines(), *more], title)
    yield from _make_begin_elements(statistics)


def _make_begin_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield what happened to groups of users when another one began later."""
    rows: list[Sequence[str | Cell]] = []
    notes = []
    for part in statistics.by_group:
        begins = [each for each in part.numbers.events if each.facts.group]
        for number, each in enumerate(begins):
            name = each.facts.group
            spans = [("before", each.before if not number else None), (f"with {name}", each.during)]
            spans.append((f"with {name}", each.after))
            rows += [_span_row(f"{part.name} {what}", span) for what, span in spans if span is not None]
            how = (
                "; ".join(describe_event_effect(each))
                or "too few seconds before to tell whether its rate fell"
            )
            notes.append(Note(f"{part.name}, from {format_moment(each.facts.at)} s on with {name}: {how}"))
    if rows:
        yield Table(_SPAN_COLUMNS, rows)
        yield from notes
        yield Note("Whether it is the group: --repeat 4 --versus 'without GROUP' tells it from what drifts.")


def _describe_command(effect: EventEffect) -> str:
    facts = effect.facts
    if facts.began is None or effect.start is None:
        return f"not run at {format_moment(facts.at)} s"
    began = f"at {format_seconds(effect.start)} s"
    if facts.failure:
        return f"{began}, could not be started: {facts.failure}"
    if facts.ended is None:
        return f"{began}, killed at the end of the run"
    return f"{began}, exit code {facts.exit_code} after {format_seconds(facts.ended - facts.began)} s"


def _span_row(name: str, span: SpanFigures) -> list[str | Cell]:
    return [
        name,
        format_moment(span.start),
        format_moment(span.seconds),
        format_count(span.count),
        format_number(span.rate),
        format_milliseconds(span.p50),
        format_milliseconds(span.p99),
        format_count(span.failed),
        ", ".join(f"{format_count(count)} x {cause}" for cause, count in span.causes.items()),
    ]


def make_error_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield the causes of errors, of retries, and operations that could not be sent."""
    if statistics.errors:
        total = statistics.total.count + statistics.total.failed
        operations = statistics.run.scenario.operation_table
        rows: list[Sequence[str | Cell]] = []
        for name, cause in statistics.errors.items():
            of = [
                f"{operation.name.upper()} {format_count(times)}"
                for code, times in sorted(cause.operations.items())
                if (operation := operations.get(code))
            ]
            rows.append(
                [
                    name,
                    format_count(cause.count),
                    format_percent(cause.count / total if total else 0.0),
                    format_milliseconds(cause.times.supported_percentile(50)),
                    format_milliseconds(cause.times.maximum),
                    _statuses(cause),
                    ", ".join(of),
                    _code(cause.trans_id),
                ]
            )
        yield Table(_CAUSE_COLUMNS, rows)
    if statistics.retries:
        retries = [(name, format_count(times)) for name, times in statistics.retries.items()]
        yield Table(make_columns("cause of retries", "retries"), retries)
    if statistics.not_sendable:
        unsent = [(each.name.upper(), name, format_count(n)) for each, name, n in statistics.not_sendable]
        yield Table(make_columns("no object for", "size class", "not sent", texts=2), unsent)


def make_error_notes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield what the summary says of errors, of retries and of the warm-up."""
    causes = list(statistics.errors.items())
    for name, cause in causes[:_MAX_CAUSES]:
        yield Note(f"errors: {_describe_cause(name, cause, statistics.run.scenario.operation_table)}")
    if len(causes) > _MAX_CAUSES:
        rest = sum(cause.count for _, cause in causes[_MAX_CAUSES:])
        more = format_plural(len(causes) - _MAX_CAUSES, "more cause")
        yield Note(f"errors: {format_count(rest)} of {more}: --report full")
    if statistics.retries:
        texts = [f"{format_count(times)} x {name}" for name, times in statistics.retries.items()]
        yield make_list_note("retries", texts[:_MAX_CAUSES])
    if statistics.warmed_up:
        yield Note(f"left out: {format_plural(statistics.warmed_up, 'result')} of the warm-up")


def _describe_cause(name: str, cause: Cause, operations: OperationTable) -> str:
    counts = sorted(cause.operations.items(), key=lambda item: -item[1])
    names = {operation.name.upper(): times for code, times in counts if (operation := operations.get(code))}
    texts = [f"{text} {format_count(times)}" if len(names) > 1 else text for text, times in names.items()]
    first = f", first {cause.trans_id}" if cause.trans_id else ""
    return f"{format_count(cause.count)} x {name} {', '.join(texts)}{first}"


def _statuses(cause: Cause) -> str:
    """Return the HTTP statuses of a cause; how often each came where there are several."""
    several = sorted((status, times) for status, times in cause.statuses.items() if status > 0)[:3]
    return ", ".join(
        f"{status}" if times == cause.count else f"{status} x {times}" for status, times in several
    )


def make_slowest_table(statistics: RunStatistics) -> Table:
    """Return the slowest operations, with transaction ids to copy."""
    rows = [_slowest_row(statistics, each) for each in statistics.slowest]
    columns = [
        Column("ms"),
        Column("operation", is_number=False),
        *make_columns("at s", "first byte ms", "bytes", "retries", "worker", texts=0),
        *make_columns("object", "transaction id", "storage URL", texts=3),
    ]
    table = Table(columns, rows, keys=2)
    return table if len(statistics.run.storage_urls) > 1 else drop_columns(table, [len(columns) - 1])


def make_slowest_notes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield the slowest operation of all, with its transaction id."""
    slowest = statistics.total.lines[0].last_byte.slowest
    if slowest is None or not slowest.latency:
        return
    operation = statistics.run.scenario.operation_table.get(slowest.operation)
    texts = [slowest.trans_id] if slowest.trans_id else []
    if statistics.start is not None:
        texts.append(f"at {format_clock(slowest.completed - slowest.latency - statistics.start)}")
    if slowest.worker >= 0:  # below are those of old files whose ids are texts
        texts.append(f"worker {slowest.worker}")
    texts.append(format_object_path(statistics.run, slowest))
    name = operation.name.upper() if operation else "operation"
    yield make_list_note(f"slowest {name} {format_latency(slowest.latency)}", texts)


def _slowest_row(statistics: RunStatistics, slow: SlowResult) -> list[str | Cell]:
    urls = statistics.run.storage_urls
    operation = statistics.run.scenario.operation_table.get(slow.operation)
    where = urls[slow.storage_url] if 0 <= slow.storage_url < len(urls) else ""
    begun = slow.completed - slow.latency - (statistics.start or 0.0)
    return [
        format_milliseconds(slow.latency),
        operation.name.upper() if operation else str(slow.operation),
        format_seconds(begun),
        format_milliseconds(slow.first_byte),
        format_count(slow.size) if slow.size >= 0 else "-",
        str(slow.retries),
        "-" if slow.worker == NO_WORKER else str(slow.worker),
        format_object_path(statistics.run, slow),
        _code(slow.trans_id),
        where,
    ]


def _code(text: str | None) -> Cell:
    return Cell(text or "", is_code=True)


# -- Parameters ------------------------------------------------------------------------------------


#: Characters of the scenario file beyond this are cut off: the page stays small whatever the run was.
_MAX_FILE_CHARACTERS = 20_000

#: Options that are kept by another name than that of the command line, or need a unit: words, unit.
_OPTION_NAMES: Mapping[str, tuple[str, str]] = {
    "block_size": ("--block-size", "bytes"),
    "connect_timeout": ("--connect-timeout", "s"),
    "network_timeout": ("--network-timeout", "s"),
    "request_timeout": ("request_timeout", "s"),
    "retry_404": ("retry_404", ""),
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
    SWIFT_SETTINGS_OPTION: ("settings of the local Swift", ""),
}


class CounterText(msgspec.Struct, frozen=True):
    """What is said of a counter of the master that is not 0."""

    name: str  # in the table of parameters
    sentence: str = ""  # in the full report, with ``{}`` for the number; empty: none


#: What the master counts. Those that are 0 are left out.
COUNTER_TEXTS: Mapping[str, CounterText] = {
    "drawn": CounterText("operations that the scenario drew"),
    "capacity": CounterText("operations that the workers can run at once"),
    "waited": CounterText(
        "operations that waited for a free object",
        "small population: {} operations waited for a free object",
    ),
    "reused": CounterText(
        "repeated reads, as the scenario asks",
        "{} reads repeated an earlier one, as the scenario asks",
    ),
    "redrawn": CounterText(
        "objects chosen again, because the first was in use",
        "{} operations took another object: the one drawn was in use",
    ),
    "shared": CounterText(
        "operations on an object beside an update of it",
        "{} operations used an object beside an update of it; reads got the data from before or after",
    ),
    "not_begun": CounterText(
        "operations that still waited for a free object at the end, and were not sent",
        "{} operations still waited for a free object at the end; not sent",
    ),
    "passed_on": CounterText(
        "operations of lost workers that others carried out",
        "{} operations of lost workers were done by others (not begun before, as far as is known)",
    ),
    "in_doubt": CounterText(
        "operations held at the end by workers that no longer answered",
        "{} operations may have been carried out or not: their workers no longer answered at the end",
    ),
    "expired": CounterText(
        "objects that expired before they were used",
        "{} objects were no longer used: their delete_after had passed",
    ),
    "initial_uploaded": CounterText("initial objects uploaded"),
    "initial_replaced": CounterText("initial objects replaced"),
    "initial_of_others": CounterText("of these, objects of another scenario or run"),
    "initial_reused": CounterText("initial objects reused"),
    "initial_seconds": CounterText("seconds that initial uploads took"),
    "taken_back": CounterText("operations that workers held at the end and had not begun"),
    "handed_back": CounterText("operations that workers returned"),
    "refused_connections": CounterText(
        "connections to the master's ports that were refused",
        "{} connections to the master's ports were refused: they were not from workers of this fleet, or"
        " there was no room for them",
    ),
    "late_results": CounterText("results that came after their worker was lost"),
    "foreign_results": CounterText("results from workers of another run"),
    "invalid_results": CounterText("results with impossible figures"),
}

#: Options of run-scenario that change what counts as a failure, and their defaults.
_REQUEST_DEFAULTS = {"retries": 10, "request_timeout": None, "retry_404": 0}


def make_request_option_notes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield what a request was allowed, where that was not the default."""
    options = statistics.run.options
    for name, default in _REQUEST_DEFAULTS.items():
        if options.get(name, default) != default:
            yield Note(f"{_spell_option(name)[0]} {options[name]}")


def make_count_notes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield what was counted of objects, of operations that were not sent as drawn, and of CPU."""
    yield from map(Note, _count_sentences(statistics))
    sides = [(f" of {side.name}", side.numbers) for side in statistics.sides if side.numbers.server_cpu]
    for name, numbers in sides or [("", statistics)]:
        if numbers.server_cpu:
            yield Note(f"CPU of Swift's servers{name} for an operation: {_describe_server_cpu(numbers)}")
    started = [*statistics.run.side_swifts, *filter(None, [statistics.run.swift_settings])]
    if started and not any("cores" in each for each in started):
        yield Note("Swift's servers and the load shared the cores of this machine (--swift-config cores=...)")


def _describe_server_cpu(statistics: RunStatistics) -> str:
    found = []
    for kind, cpu in statistics.server_cpu.items():
        known = cpu.interval
        ends = f" ({1000 * known.low:.3g} to {1000 * known.high:.3g})" if known else ""
        found.append(f"{kind} {1000 * cpu.seconds:.3g} ms{ends}")
    return ", ".join(found)


def _count_sentences(statistics: RunStatistics) -> Iterator[str]:
    count = Counter({name: int(number) for name, number in statistics.counters.items()})
    uploaded, replaced, reused = (count[f"initial_{what}"] for what in ("uploaded", "replaced", "reused"))
    if statistics.run.options.get("noop"):
        yield f"no-op run: {NOTHING_SENT}; bytes are those that would have been moved"
    if uploaded or replaced or reused:
        verified = bool(statistics.run.options.get("verify"))
        why = explain_replacement(replaced, count["initial_of_others"], verified=verified)
        why = f" ({why})" if why else ""
        yield f"initial objects: {uploaded} uploaded, {replaced} replaced{why}, {reused} reused"
    if count["initial_sampled"]:
        yield f"initial objects: as prepared; {count['initial_sampled']} of them, drawn at random, looked at"
    if count["existing"]:
        yield (
            f"{count['existing']} objects that were there already were only read: nothing was prepared or"
            f" written; {count['existing_skipped']} others skipped: their sizes do not fit"
        )
    for name, text in COUNTER_TEXTS.items():
        if text.sentence and count[name]:
            yield text.sentence.format(count[name])


def make_parameter_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield the load, the options, the counts, the size classes and the scenario file."""
    run, scenario = statistics.run, statistics.run.scenario
    known: list[tuple[str, object]] = [
        ("scenario", scenario.name),
        ("load", describe_load(scenario)),
        ("run time (s)", None if scenario.run_seconds is None else f"{scenario.run_seconds:g}"),
        ("operations", None if scenario.operation_count is None else format_count(scenario.operation_count)),
        ("arrivals", scenario.arrivals if scenario.is_open else None),
        *_find_titled(run, KeyTopic.LOAD),
        ("stages", "; ".join(f"{each.seconds:g} s: {each}" for each in scenario.stages)),
        *_find_titled(run, KeyTopic.REQUESTS),
        ("containers", format_count(scenario.container_count)),
        ("accounts", format_count(scenario.accounts) if scenario.accounts > 1 else None),
        *_find_titled(run, KeyTopic.PLACES),
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
    options = (spell_option_row(name, value) for name, value in run.options.items())
    yield _parameter_table("option", dict(each for each in options if each is not None))
    counts = {
        COUNTER_TEXTS[name].name if name in COUNTER_TEXTS else name.replace("_", " "): format_given_number(
            value
        )
        for name, value in statistics.counters.items()
        if value
    }
    yield _parameter_table("counted", counts, "number", texts=1)
    classes = [
        [
            each.title,
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


def _find_titled(run: RunDescription, topic: KeyTopic) -> Iterator[tuple[str, object]]:
    """Yield the values of the keys that are parameters by themselves, None for what is off."""
    for key in _select_keys(run):
        if key.title and key.topic is topic:
            yield key.title, getattr(run.scenario, key.name) or None


def _parameter_table(name: str, rows: Mapping[str, str], value: str = "value", *, texts: int = 2) -> Table:
    return Table(make_columns(name, value, texts=texts), [*rows.items()])


def _spell_option(name: str) -> tuple[str, str]:
    """Return what the command line calls an option, and its unit."""
    return _OPTION_NAMES.get(name, (f"--{name.replace('_', '-')}", ""))


def spell_option_row(name: str, value: object) -> tuple[str, str] | None:
    """Return an option in the words of the command line and its value with the unit; None without a value."""
    words, unit = _spell_option(name)
    match value:
        case None | "" | False:
            return None
        case True:
            return words, "yes"
        case float() | int():
            text = format_given_number(value)
        case list() | tuple():
            text = ", ".join(map(str, value))
        case dict():
            text = ", ".join(f"{key} {each}" for key, each in value.items())
            if not text:
                return None
        case _:
            text = str(value)
    return words, f"{text} {unit}" if unit else text


def _file_lines(data: object) -> Lines:
    text = json.dumps(data, indent=2, ensure_ascii=False, default=str)
    if len(text) > _MAX_FILE_CHARACTERS:
        text = text[:_MAX_FILE_CHARACTERS] + "\n..."
    return Lines(text.split("\n"), "The scenario file")
