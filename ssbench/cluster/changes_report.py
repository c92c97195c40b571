"""What changed between two runs by Swift's logs, as a document and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal

from ssbench.base import record
from ssbench.base.version import __version__
from ssbench.cluster.changes import LONGER, NOTHING, SHORTER, Change, Changes, Difference, Side
from ssbench.cluster.sentences import listed
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
from ssbench.document.units import DASH, milliseconds

#: What is compared, by part; of operations, and of servers.
_PARTS = {
    "client": "client",
    "way": "to proxy",
    "proxy": "proxy",
    "server": "server",
    "update": "update",
    "body": "body",
}
_SERVERS = {
    "own": "reads, deletes",
    "writes": "writes",
    "updates": "updates",
    "own part": "own part",
    "way": "way to it",
}
_SENTENCES = {
    "own": "its reads and deletes take",
    "writes": "its replicas of writes take",
    "updates": "container updates with it take",
    "own part": "its own part of requests takes",
    "way": "the way to it takes",
}
_TONES = {LONGER: Tone.BAD, SHORTER: Tone.GOOD}
_MOST_SENTENCES, _MOST_ROWS = 8, 15
#: With a larger share of the operations not compared, what is said is of the others.
_FEW_MISSING = 0.01

_HOW = (
    "A time is compared with those of the same operation, policy, size and server in the other run; before"
    " and after are medians of these times, the change that of their kinds. Servers are judged by how much"
    " more they changed than their peers (beside), at p < 0.01 for all comparisons together and 5 % of the"
    " time. The time of a replica of a write is what it takes beyond the fastest other replica of the write."
)
_ONE_RUN = (
    "What all servers have in common may have changed because of what else the cluster did: one run of each"
    " does not tell. Repeat both, and see ssbench-master compare."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Changes):
    """What changed between two runs, by part and by server."""

    format: Literal["ssbench attribution changes"] = "ssbench attribution changes"
    version: Literal[1] = 1
    made_by: str = __version__
    answer: list[str]


def as_json(changes: Changes, *_: Any) -> str:
    """Return it as one JSON document."""
    own = {field.name: getattr(changes, field.name) for field in fields(Changes)}
    return record.text(Report(**own, answer=answer(changes)))


def document(changes: Changes, _view: View) -> Document:
    """Return the verdict, then every change."""
    shown = [change for change in changes.changes if change.verdict != NOTHING]
    # What clients waited differs from run to run.
    tones = {_TONES[change.verdict] for change in shown if change.level != "operation"}
    elements: list[Element] = []
    if warnings := [*changes.warnings, *_incomplete(changes)]:
        elements.append(Warnings(warnings))
    operations = [change for change in changes.changes if change.level == "operation"]
    servers = [change for change in changes.changes if change.level != "operation"]
    servers.sort(key=lambda change: (change.verdict == NOTHING, change.judged.probability))
    if operations:
        elements.append(_of_operations(operations))
    if servers:
        elements.append(_of_servers(servers))
    if changes.changes:
        elements += [Note(_HOW), Note(_ONE_RUN)]
    return Document(
        "What changed between two runs, by Swift's logs",
        elements,
        Verdict(tones.pop() if len(tones) == 1 else Tone.DOUBTFUL, _title(shown), answer(changes)),
        [_side("before", changes.before), _side("after", changes.after)],
    )


def answer(changes: Changes) -> list[str]:
    """Return what changed as sentences; never empty."""
    found = [_client(change) for change in changes.changes if change.part == "client"]
    if not found:
        found = ["Inconclusive: these are too few requests of the same kind in both runs."]
    found += _parts([change for change in changes.changes if change.level == "operation"])
    servers = [change for change in changes.changes if change.level != "operation"]
    shown = [change for change in servers if change.verdict != NOTHING]
    shown.sort(key=lambda change: change.judged.probability)
    found += [_server(change) for change in shown[:_MOST_SENTENCES]]
    if len(shown) > _MOST_SENTENCES:
        found.append(f"{len(shown) - _MOST_SENTENCES} more changes of servers are in the table.")
    if servers and not shown:
        found.append("No device, node or proxy is shown to have changed more than its peers.")
    for names, when in ((changes.gone, "before"), (changes.new, "after")):
        if names:
            found.append(f"Only {when}: {listed(names)}. What has another name now is not compared.")
    if changes.inconclusive:
        found.append(f"Too few times to compare: {listed(changes.inconclusive)}.")
    return found


def _title(shown: list[Change]) -> str:
    """Return who changed, and what clients waited, which may be for another reason."""
    texts = []
    for words, verdict in (("Shorter", SHORTER), ("Longer", LONGER)):
        mine = [change for change in shown if change.verdict == verdict]
        servers = [
            f"{change.name} ({_SERVERS[change.part]})" for change in mine if change.level != "operation"
        ]
        clients = [change.name for change in mine if change.part == "client"]
        if servers:
            texts.append(f"{words}: {listed(servers)}")
        if clients:
            texts.append(f"clients waited {verdict}: {listed(clients)}")
    text = "; ".join(texts) or "No difference shown"
    return f"{text[:1].upper()}{text[1:]}"


def _client(change: Change) -> str:
    difference = change.difference
    if change.verdict == NOTHING:
        return f"{change.name}: no difference shown ({_interval(difference)})."
    share = f"{units.change(difference.seconds / change.before)} %, " if change.before > 0 else ""
    return (
        f"{change.name}: {_by(difference.seconds)} ({share}{_interval(difference)};"
        f" median {units.duration(change.before)} before, {units.duration(change.after)} after)."
    )


def _parts(changes: list[Change]) -> Iterator[str]:
    """Say which parts of operations changed."""
    for part, words in _PARTS.items():
        shown = [
            change for change in changes if change.part == part != "client" and change.verdict != NOTHING
        ]
        if shown:
            listed = ", ".join(f"{change.name} {_by(change.difference.seconds)}" for change in shown)
            yield f"Of that, {words}: {listed}."


def _server(change: Change) -> str:
    kind = f"{change.level} {change.name}" if change.level != "device" else change.name
    beside = " beside its peers" if change.beside else ""
    return (
        f"{kind}: {_SENTENCES[change.part]} {_by(change.judged.seconds)}{beside} ({_interval(change.judged)};"
        f" median {units.duration(change.before)} before, {units.duration(change.after)} after)."
    )


def _by(value: float) -> str:
    return f"{units.duration(abs(value))} {'more' if value > 0 else 'less'}"


def _interval(difference: Difference) -> str:
    return f"95 %: {units.difference(difference.low)} to {units.difference(difference.high)} ms"


def _incomplete(changes: Changes) -> Iterator[str]:
    for when, side in (("before", changes.before), ("after", changes.after)):
        good = side.operations - side.failed
        if side.complete < (1 - _FEW_MISSING) * good:
            yield (
                f"{when}: {good - side.complete:,} of {good:,} operations lack a line of an object server: is"
                " the log of every storage node given?"
            )


def _side(when: str, side: Side) -> str:
    failed = f", {side.failed:,} failed" if side.failed else ""
    return f"{when}: {side.file}: {side.operations:,} operations{failed}, {side.compared:,} compared"


def _of_operations(changes: list[Change]) -> Table:
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
    order = list(_PARTS)
    ordered = sorted(changes, key=lambda change: (change.name, order.index(change.part)))
    rows: list[Row] = [
        [
            change.name,
            _PARTS[change.part],
            _times(change),
            milliseconds(change.before),
            milliseconds(change.after),
            *_difference(change.difference),
            _shown(change),
        ]
        for change in ordered
    ]
    return Table(columns, rows, keys=2, title="What clients waited, and its parts (ms)")


def _of_servers(changes: list[Change]) -> Table:
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
            _SERVERS[change.part],
            _times(change),
            milliseconds(change.before),
            milliseconds(change.after),
            units.difference(change.difference.seconds),
            *(_difference(change.beside) if change.beside else (DASH, _difference(change.difference)[1])),
            _shown(change),
        ]
        for change in changes
    ]
    return Table(columns, rows, keys=2, title="Own times of servers (ms)", most=_MOST_ROWS)


def _times(change: Change) -> str:
    before, after = change.times
    return f"{before:,} / {after:,}"


def _difference(difference: Difference) -> tuple[str, str]:
    return (
        units.difference(difference.seconds),
        f"{units.difference(difference.low)} to {units.difference(difference.high)}",
    )


def _shown(change: Change) -> Cell:
    if change.verdict == NOTHING:
        return Cell("no difference shown", short=DASH)
    return Cell(change.verdict, tone=_TONES[change.verdict])
