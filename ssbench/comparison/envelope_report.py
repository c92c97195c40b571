"""An envelope as a document and as JSON: first what one can hand to a customer, then how sure all that is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np

from ssbench.base import record
from ssbench.base.errors import GateResult
from ssbench.base.record import Seconds
from ssbench.comparison.comparison_report import describe_condition
from ssbench.comparison.family import SidedRows, describe_sides, make_sided_record, make_value_elements
from ssbench.comparison.store_limits import (
    WIDE_FACTOR,
    Envelope,
    EnvelopeCell,
    EnvelopeStep,
    LoggedRun,
    MixedLoad,
)
from ssbench.document.columns import format_plural
from ssbench.document.elements import (
    CURVE_COLOURS,
    Chart,
    Column,
    Curve,
    Document,
    Element,
    Note,
    Section,
    Table,
    Tone,
    Verdict,
    View,
)
from ssbench.document.units import (
    AT_LEAST,
    DASH,
    format_count,
    format_latency,
    format_megabytes,
    format_milliseconds,
    format_number,
    format_percent,
)

_HEADS = ("store", "object", "operation", "ops/s", "95 %", "MB/s", "users", "p50 ms", "p99 ms", "ms alone")
_LOGS_NOTE = (
    "By the logs of Swift, of the nearest run with more users than the limit. Slow servers bound the store"
    " where the p99 of requests without them is at most half of that of all, and only those that are needed"
    " for this. Where requests fail, the fewest servers that served half of these bound it."
    " 'ssbench-master attribute' tells more of such a run."
)
_SURE_HEADS = (
    "store",
    "object",
    "operation",
    "users",
    "95 %",
    "knee",
    "alone p99",
    "half",
    "half p50",
    "half p99",
    "run at",
    "first byte",
    "runs",
)


def make_envelope_document(found: Envelope, _view: View | None = None) -> Document:
    """Return the document."""
    elements: list[Element] = [
        _make_table(_HEADS, [*_make_rows(found)], found.cells),
        *_make_charts(found),
        Note(
            f"Up to there: {found.condition}. {AT_LEAST}: at least, as no load was tried that was too much."
        ),
        Note(
            "users: the most at which the condition holds, estimated from all runs; p50, p99: of the run with"
            " the nearest number of users up to that (run at, below); ms alone: the median of one user."
        ),
        *(Note(_describe_mixed(each)) for each in found.mixed),
        *(make_value_elements("Stores", found.stores) if found.stores is not None else []),
        Section("How sure, and what bounded it", [*_make_second_page(found)]),
    ]
    facts = [
        f"{found.minutes:g} minute{'' if found.minutes == 1 else 's'}",
        *([found.storage_url] if found.storage_url else []),
    ]
    return Document("What this store can do", elements, _make_verdict(found), facts)


def _make_table(
    heads: Sequence[str], rows: Sequence[tuple[str, ...]], cells: Sequence[EnvelopeCell]
) -> Table:
    """Return a table of cells, without the column of stores where there is one."""
    first = 0 if any(each.store for each in cells) else 1
    columns = [Column(head, is_number=place > 2) for place, head in enumerate(heads)]
    return Table(columns[first:], [row[first:] for row in rows], keys=3 - first)


def _make_verdict(found: Envelope) -> Verdict:
    known = [each for each in found.cells if each.users]
    open_ends = sum(each.at_least for each in known)
    results = [each.result for each in found.conditions]
    vague = sum(each.is_vague for each in known)
    wide = sum(each.is_wide and not each.is_vague for each in known)
    is_whole = len(known) == len(found.cells) and not open_ends + vague + wide and not found.is_shared
    tone = Tone.GOOD if is_whole else Tone.DOUBTFUL
    if GateResult.FAILED in results:
        tone = Tone.BAD
    elif GateResult.UNDECIDED in results:
        tone = Tone.DOUBTFUL
    said = f"{len(known) - open_ends - vague} of {len(found.cells)} limits are known"
    lacking = len(found.cells) - len(known)
    more = [
        *([f"lower bounds: {open_ends}"] if open_ends else []),
        *([f"too few runs: {vague}"] if vague else []),
        *([f"rates known to a factor above {WIDE_FACTOR:g} only: {wide}"] if wide else []),
        *([f"no limit: {lacking}"] if lacking else []),
    ]
    for each in found.mixed:
        of_store = f" of {each.store}" if each.store else ""
        more.append(f"the mixed load{of_store} {'lasted' if each.lasted else 'did not last'}")
    if found.stores is not None:
        more.append(describe_sides(found.stores).removesuffix("."))
    return Verdict(tone, said, [*map(describe_condition, found.conditions), *found.notes], more)


def _make_rows(found: Envelope) -> Iterator[tuple[str, ...]]:
    for cell in found.cells:
        names = cell.store, cell.size_name, cell.operation
        mark = AT_LEAST * cell.at_least
        if not cell.users:
            yield (
                *names,
                DASH,
                DASH,
                DASH,
                "0" if cell.runs > 1 else DASH,
                DASH,
                DASH,
                _spell_alone(cell),
            )
            continue
        yield (
            *names,
            f"{mark}{format_number(cell.rate)}",
            _spell_interval(cell.rate_low, cell.rate_high),
            f"{mark}{format_megabytes(cell.moved)}" if cell.moved else DASH,
            f"{mark}{cell.users}",
            *(_spell_latency(getattr(cell.limit, name, math.nan)) for name in ("p50", "p99")),
            _spell_alone(cell),
        )


def _spell_alone(cell: EnvelopeCell) -> str:
    return _spell_latency(cell.one_user.p50 if cell.one_user else math.nan)


def _spell_latency(seconds: float) -> str:
    return DASH if math.isnan(seconds) else format_milliseconds(seconds)


def _spell_users(cell: EnvelopeCell) -> str:
    return f"{cell.users_low} {'or more' if cell.at_least or cell.is_vague else f'to {cell.users_high}'}"


def _spell_interval(low: float, high: float) -> str:
    if math.isnan(low):
        return DASH
    return (
        f"{format_number(low)} or more"
        if math.isinf(high)
        else f"{format_number(low)} to {format_number(high)}"
    )


def _describe_mixed(mixed: MixedLoad) -> str:
    latency = "" if math.isnan(mixed.p99) else f", p99 {format_latency(mixed.p99)}"
    of_store = f"{mixed.store}: all" if mixed.store else "All"
    lacking = f" It did not last: {'; '.join(mixed.shortfalls)}." if mixed.shortfalls else ""
    return (
        f"{of_store} sizes together at {format_percent(mixed.share)} % of what the limits allow,"
        f" {format_number(mixed.asked)} ops/s for {mixed.seconds:.0f} s:"
        f" {format_number(mixed.rate)} ops/s{latency}, {format_percent(mixed.failed)} % failed.{lacking}"
    )


def _make_charts(found: Envelope) -> Iterator[Chart]:
    """Yield the chart of the highest rates by size."""
    curves = []
    kinds = dict.fromkeys((each.store, each.operation) for each in found.cells)
    for place, kind in enumerate(kinds):
        own = [each for each in found.cells if (each.store, each.operation) == kind and each.users]
        if own:
            x, y = (
                np.array(values, np.float64) for values in zip(*((c.size, c.rate) for c in own), strict=True)
            )
            colour = CURVE_COLOURS[place % len(CURVE_COLOURS)]
            curves.append(Curve(" ".join(kind).strip(), x, y, colour, width=2.0, pointed=True))
    if curves:
        ticks = sorted({each.size for each in found.cells})
        yield Chart(
            "The highest rate by size of the objects", "ops/s", curves, axis="bytes", log=True, ticks=ticks
        )


def _make_second_page(found: Envelope) -> Iterator[Element]:
    yield _make_table(_SURE_HEADS, [*_make_sure_rows(found.cells)], found.cells)
    yield Note(
        "users, 95 %: the most users, with the interval of that; knee: users from which on more bring hardly"
        " more ops/s; alone p99: that of one user, in ms; half: users of a run with about half of these, and"
        " its p50 and p99; run at: users of the run with the p50 and p99 above, and with first byte, the"
        " median in ms; runs: how many there were."
    )
    logged = [(each, each.by_logs) for each in found.cells if each.by_logs is not None]
    inside = (
        ""
        if logged
        else " What bounds the store within is not known: with --swift-logs (and --resume, of runs that are"
        " there) the logs of Swift tell which node or device it is."
    )
    yield Note(f"Deletions have as many writes beside them.{inside}")
    yield Table(
        [
            Column(head, is_number=False, is_long=head == "condition")
            for head in ("limit", "bounded by", "condition")
        ],
        [(each.name, each.bounded_by, each.condition or DASH) for each in found.cells],
    )
    if logged:
        yield Note(_LOGS_NOTE)
        yield from (Note(_describe_logged_run(*each)) for each in logged)
    yield from map(Note, found.not_asked)
    if found.settings:
        yield Table([Column("setting", is_number=False), Column("value", is_number=False)], [*found.settings])
    if found.took:
        yield Note(f"It {found.took}.")
    if found.command:
        yield Note(f"Make it again with: {found.command}")


def _describe_logged_run(cell: EnvelopeCell, logged: LoggedRun) -> str:
    """Say what logs tell of the run beyond the limit of a cell."""
    facts = [*logged.facts]
    if not math.isnan(logged.p99_of_others):
        of_all, of_others = map(format_latency, (logged.p99, logged.p99_of_others))
        facts.append(f"p99 {of_all}, of the others {of_others}")
    users = f" with {format_plural(cell.beyond.users, 'user')}" if cell.beyond is not None else ""
    said = f"{logged.headline} ({'; '.join(facts)})" if facts else logged.headline
    return f"{cell.name}{users}: {said}; stat file {logged.file}."


def _make_sure_rows(cells: Sequence[EnvelopeCell]) -> Iterator[tuple[str, ...]]:
    for cell in cells:
        limit: EnvelopeStep | None = cell.limit
        yield (
            cell.store,
            cell.size_name,
            cell.operation,
            DASH if cell.users is None else f"{AT_LEAST * cell.at_least}{cell.users}",
            _spell_users(cell) if cell.users else DASH,
            DASH if math.isnan(cell.knee) else format_number(cell.knee),
            _spell_latency(cell.one_user.p99 if cell.one_user else math.nan),
            str(cell.half.users) if cell.half else DASH,
            *(_spell_latency(getattr(cell.half, name, math.nan)) for name in ("p50", "p99")),
            str(limit.users) if limit else DASH,
            _spell_latency(limit.first_byte if limit else math.nan),
            format_count(cell.runs),
        )


class EnvelopeReport(record.JsonHead, frozen=True, kw_only=True):
    """What a store can do: a cell for each size and operation, and the mixed load of all.

    ``condition`` is what holds up to each limit, in words; that of each cell has its own numbers. ``notes``
    say what could not be tried, ``not_asked`` which usual sizes and operations were not asked for;
    ``conditions`` are those of ``--fail-if``, ``seconds`` is how long all of its calls took.
    """

    format: Literal["ssbench envelope"] = "ssbench envelope"
    version: Literal[2] = 2  # 1 had the mixed load of one store, or null, instead of a list, and no stores
    minutes: float
    storage_url: str
    condition: str
    cells: tuple[EnvelopeCell, ...]
    mixed: tuple[MixedLoad, ...]
    stores: SidedRows | None  # the second of two stores against the first
    conditions: tuple[str, ...]
    notes: tuple[str, ...]
    command: str
    not_asked: tuple[str, ...] = ()
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    seconds: Seconds = 0.0


def make_envelope_json(found: Envelope, *_: object) -> str:
    """Return an envelope as one JSON document."""
    conditions = tuple(map(describe_condition, found.conditions))
    return record.format_json(
        record.make_record_from(
            EnvelopeReport,
            found,
            conditions=conditions,
            stores=make_sided_record(found.stores),
            settings=dict(found.settings),
        )
    )
