"""What changed between two runs by Swift's logs, as a document and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal

from ssbench.base import record
from ssbench.base.version import __version__
from ssbench.cluster.changes import (
    LONGER,
    NO_CHANGE_SHOWN,
    SHORTER,
    Changes,
    ComparedRun,
    SliceDifference,
    TimeChange,
)
from ssbench.cluster.sentences import list_names
from ssbench.document import units
from ssbench.document.elements import (
    Cell,
    Column,
    Detail,
    Document,
    Element,
    Note,
    Row,
    Table,
    Tone,
    Verdict,
    View,
    Warnings,
)
from ssbench.document.units import DASH, format_milliseconds

#: What is compared, by part; of operations, and of servers.
_PART_TITLES = {
    "client": "client",
    "way": "to proxy",
    "proxy": "proxy",
    "server": "server",
    "update": "update",
    "body": "body",
}
_SERVER_TITLES = {
    "own": "reads, deletes",
    "writes": "writes",
    "updates": "updates",
    "own part": "own part",
    "way": "way to it",
}
_SERVER_SENTENCES = {
    "own": "its reads and deletes take",
    "writes": "its replicas of writes take",
    "updates": "container updates with it take",
    "own part": "its own part of requests takes",
    "way": "the way to it takes",
}
_CHANGE_TONES = {LONGER: Tone.BAD, SHORTER: Tone.GOOD}
_MAX_SENTENCES, _MAX_ROWS = 8, 15
#: With a larger share of the operations not compared, what is said is of the others.
_MAX_MISSING_SHARE = 0.01

_METHOD_NOTE = (
    "A time is compared with those of the same operation, policy, size and server in the other run; before"
    " and after are medians of these times, the change that of their kinds. Servers are judged by how much"
    " more they changed than their peers (beside), at p < 0.01 for all comparisons together and 5 % of the"
    " time. The time of a replica of a write is what it takes beyond the fastest other replica of the write."
)
_ONE_RUN_NOTE = (
    "What all servers have in common may have changed because of what else the cluster did: one run of each"
    " does not tell. Repeat both, and see ssbench-master compare."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesReport(Changes):
    """What changed between two runs, by part and by server."""

    format: Literal["ssbench attribution changes"] = "ssbench attribution changes"
    version: Literal[1] = 1
    made_by: str = __version__
    answer: list[str]


def make_changes_json(changes: Changes, *_: Any) -> str:
    """Return it as one JSON document."""
    own = {field.name: getattr(changes, field.name) for field in fields(Changes)}
    return record.format_json(ChangesReport(**own, answer=describe_changes(changes)))


def make_changes_document(changes: Changes, _view: View) -> Document:
    """Return the verdict, then every change."""
    shown = [change for change in changes.changes if change.verdict != NO_CHANGE_SHOWN]
    # What clients waited differs from run to run.
    tones = {_CHANGE_TONES[change.verdict] for change in shown if change.level != "operation"}
    elements: list[Element] = []
    if warnings := [*changes.warnings, *_describe_incomplete(changes)]:
        elements.append(Warnings(warnings))
    operations = [change for change in changes.changes if change.level == "operation"]
    servers = [change for change in changes.changes if change.level != "operation"]
    servers.sort(key=lambda change: (change.verdict == NO_CHANGE_SHOWN, change.judged.probability))
    if operations:
        elements.append(_make_operations_table(operations))
    if servers:
        elements.append(_make_servers_table(servers))
    if changes.changes:
        elements += [Note(_METHOD_NOTE), Note(_ONE_RUN_NOTE)]
    return Document(
        "What changed between two runs, by Swift's logs",
        elements,
        Verdict(
            tones.pop() if len(tones) == 1 else Tone.DOUBTFUL, _format_title(shown), describe_changes(changes)
        ),
        [_describe_run("before", changes.before), _describe_run("after", changes.after)],
    )


def describe_changes(changes: Changes) -> list[str]:
    """Return what changed as sentences; never empty."""
    found = [_describe_client(change) for change in changes.changes if change.part == "client"]
    if not found:
        found = ["Inconclusive: these are too few requests of the same kind in both runs."]
    found += _describe_parts([change for change in changes.changes if change.level == "operation"])
    servers = [change for change in changes.changes if change.level != "operation"]
    shown = [change for change in servers if change.verdict != NO_CHANGE_SHOWN]
    shown.sort(key=lambda change: change.judged.probability)
    found += [_describe_server(change) for change in shown[:_MAX_SENTENCES]]
    if len(shown) > _MAX_SENTENCES:
        found.append(f"{len(shown) - _MAX_SENTENCES} more changes of servers are in the table.")
    if servers and not shown:
        found.append("No device, node or proxy is shown to have changed more than its peers.")
    for names, when in ((changes.gone, "before"), (changes.new, "after")):
        if names:
            found.append(f"Only {when}: {list_names(names)}. What has another name now is not compared.")
    if changes.inconclusive:
        found.append(f"Too few times to compare: {list_names(changes.inconclusive)}.")
    return found


def _format_title(shown: list[TimeChange]) -> str:
    """Return who changed, and what clients waited, which may be for another reason."""
    texts = []
    for words, verdict in (("Shorter", SHORTER), ("Longer", LONGER)):
        mine = [change for change in shown if change.verdict == verdict]
        servers = [
            f"{change.name} ({_SERVER_TITLES[change.part]})" for change in mine if change.level != "operation"
        ]
        clients = [change.name for change in mine if change.part == "client"]
        if servers:
            texts.append(f"{words}: {list_names(servers)}")
        if clients:
            texts.append(f"clients waited {verdict}: {list_names(clients)}")
    text = "; ".join(texts) or "No difference shown"
    return f"{text[:1].upper()}{text[1:]}"


def _describe_client(change: TimeChange) -> str:
    difference = change.difference
    if change.verdict == NO_CHANGE_SHOWN:
        return f"{change.name}: no difference shown ({_format_interval(difference)})."
    share = f"{units.format_change(difference.seconds / change.before)} %, " if change.before > 0 else ""
    return (
        f"{change.name}: {_format_by(difference.seconds)} ({share}{_format_interval(difference)};"
        f" median {units.format_latency(change.before)} before, {units.format_latency(change.after)} after)."
    )


def _describe_parts(changes: list[TimeChange]) -> Iterator[str]:
    """Say which parts of operations changed."""
    for part, words in _PART_TITLES.items():
        shown = [
            change
            for change in changes
            if change.part == part != "client" and change.verdict != NO_CHANGE_SHOWN
        ]
        if shown:
            listed = ", ".join(f"{change.name} {_format_by(change.difference.seconds)}" for change in shown)
            yield f"Of that, {words}: {listed}."


def _describe_server(change: TimeChange) -> str:
    kind = f"{change.level} {change.name}" if change.level != "device" else change.name
    beside = " beside its peers" if change.beside else ""
    return (
        f"{kind}: {_SERVER_SENTENCES[change.part]} {_format_by(change.judged.seconds)}{beside} ({_format_interval(change.judged)};"
        f" median {units.format_latency(change.before)} before, {units.format_latency(change.after)} after)."
    )


def _format_by(value: float) -> str:
    return f"{units.format_latency(abs(value))} {'more' if value > 0 else 'less'}"


def _format_interval(difference: SliceDifference) -> str:
    return f"95 %: {units.format_time_difference(difference.low)} to {units.format_time_difference(difference.high)} ms"


def _describe_incomplete(changes: Changes) -> Iterator[str]:
    for when, side in (("before", changes.before), ("after", changes.after)):
        good = side.operations - side.failed
        if side.complete < (1 - _MAX_MISSING_SHARE) * good:
            yield (
                f"{when}: {good - side.complete:,} of {good:,} operations lack a line of an object server: is"
                " the log of every storage node given?"
            )


def _describe_run(when: str, side: ComparedRun) -> str:
    failed = f", {side.failed:,} failed" if side.failed else ""
    return f"{when}: {side.file}: {side.operations:,} operations{failed}, {side.compared:,} compared"


def _make_operations_table(changes: list[TimeChange]) -> Table:
    columns = (
        Column("operation", is_number=False),
        Column("part", is_number=False),
        Column("times", detail=Detail.VERBOSE),
        Column("before ms", short="before"),
        Column("after ms", short="after"),
        Column("change"),
        Column("95 % interval", short="95 %"),
        Column("shown", is_number=False, is_whole=True),
    )
    order = list(_PART_TITLES)
    ordered = sorted(changes, key=lambda change: (change.name, order.index(change.part)))
    rows: list[Row] = [
        [
            change.name,
            _PART_TITLES[change.part],
            _format_times(change),
            format_milliseconds(change.before),
            format_milliseconds(change.after),
            *_format_difference(change.difference),
            _format_shown(change),
        ]
        for change in ordered
    ]
    return Table(columns, rows, keys=2, title="What clients waited, and its parts (ms)")


def _make_servers_table(changes: list[TimeChange]) -> Table:
    columns = (
        Column("server", is_number=False),
        Column("times of", is_number=False, short="of"),
        Column("times", detail=Detail.VERBOSE),
        Column("before ms", short="before"),
        Column("after ms", short="after"),
        Column("change"),
        Column("beside"),
        Column("95 % interval", short="95 %"),
        Column("shown", is_number=False, is_whole=True),
    )
    rows: list[Row] = [
        [
            change.name,
            _SERVER_TITLES[change.part],
            _format_times(change),
            format_milliseconds(change.before),
            format_milliseconds(change.after),
            units.format_time_difference(change.difference.seconds),
            *(
                _format_difference(change.beside)
                if change.beside
                else (DASH, _format_difference(change.difference)[1])
            ),
            _format_shown(change),
        ]
        for change in changes
    ]
    return Table(columns, rows, keys=2, title="Own times of servers (ms)", most=_MAX_ROWS)


def _format_times(change: TimeChange) -> str:
    before, after = change.times
    return f"{before:,} / {after:,}"


def _format_difference(difference: SliceDifference) -> tuple[str, str]:
    return (
        units.format_time_difference(difference.seconds),
        f"{units.format_time_difference(difference.low)} to {units.format_time_difference(difference.high)}",
    )


def _format_shown(change: TimeChange) -> Cell:
    if change.verdict == NO_CHANGE_SHOWN:
        return Cell("no difference shown", short=DASH)
    return Cell(change.verdict, tone=_CHANGE_TONES[change.verdict])
