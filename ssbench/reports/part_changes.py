"""By which part two sides differ, from the logs of their Swifts: the record, and what documents show of it.

The package ``cluster`` finds it (:mod:`ssbench.cluster.changes`); reports of runs and comparisons have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssbench.base.record import Count, PerhapsNumber, PerhapsSeconds, Seconds
from ssbench.document import units
from ssbench.document.elements import Cell, Column, Detail, Element, Note, Row, Table, Tone, Warnings
from ssbench.document.units import DASH, format_milliseconds

#: What is said of a change.
LONGER, SHORTER, NO_CHANGE_SHOWN = "longer", "shorter", "no difference shown"
CHANGE_TONES = {LONGER: Tone.BAD, SHORTER: Tone.GOOD}

#: What is compared of operations, by part, in the order of tables.
PART_TITLES = {
    "client": "client",
    "way": "to proxy",
    "proxy": "proxy",
    "server": "server",
    "update": "update",
    "body": "body",
}


@dataclass(frozen=True, slots=True)
class SliceDifference:
    """A difference in seconds, with its 95 % interval and the probability of one as large by chance."""

    seconds: Seconds
    low: Seconds
    high: Seconds
    probability: PerhapsNumber


@dataclass(frozen=True, slots=True)
class TimeChange:
    """How a time changed from one run to the other."""

    level: str  # ``operation``, ``device``, ``node`` or ``proxy``
    name: str  # who it is
    #: Of an operation ``client`` (all of it) or one of
    #: :class:`~ssbench.cluster.operation_times.LatencyColumns`; of servers ``own`` (reads and deletes),
    #: ``writes`` (the time beyond that of the fastest replica of the same write), ``before`` (what clients
    #: wait for in writes and its own clock does not show) or ``updates`` (of containers); of proxies
    #: ``own part`` or ``way``.
    part: str
    times: tuple[Count, Count]  # how many times there are before and after
    before: PerhapsSeconds  # mean of the medians of slices, as if both runs had as much of each kind
    after: PerhapsSeconds  # the same; less ``before`` it is the difference
    difference: SliceDifference
    beside: SliceDifference | None  # the change less that of peers; None: it has no peers
    #: Of ``beside``, or of the change itself where there are no peers, at p < 0.01 (Holm's method for all)
    #: and 5 % of the time before.
    verdict: str

    @property
    def judged(self) -> SliceDifference:
        """What the verdict rests on."""
        return self.beside or self.difference


@dataclass(frozen=True, slots=True)
class ChangesByPart:
    """By which part two sides differ, as the logs of their Swifts have it."""

    answer: str  # the operation that changed, by how much, and in which part, in one sentence
    operations: tuple[TimeChange, ...]  # what clients waited for each operation, and its parts
    warnings: tuple[str, ...] = ()


def make_part_elements(found: ChangesByPart) -> list[Element]:
    """Return the sentence, and the table of all parts."""
    elements: list[Element] = [Note(f"By the logs of both: {found.answer}")]
    if found.operations:
        elements.append(make_operations_table(found.operations))
    if found.warnings:
        elements.append(Warnings(list(found.warnings)))
    return elements


def make_operations_table(changes: Sequence[TimeChange]) -> Table:
    """Return a row for each part of each operation."""
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
    order = list(PART_TITLES)
    ordered = sorted(changes, key=lambda change: (change.name, order.index(change.part)))
    rows: list[Row] = [
        [
            change.name,
            PART_TITLES[change.part],
            format_time_counts(change),
            format_milliseconds(change.before),
            format_milliseconds(change.after),
            *format_slice_difference(change.difference),
            make_shown_cell(change),
        ]
        for change in ordered
    ]
    return Table(columns, rows, keys=2, title="What clients waited, and its parts (ms)")


def format_time_counts(change: TimeChange) -> str:
    """Return how many times there are: ``1,200 / 1,300``."""
    before, after = change.times
    return f"{before:,} / {after:,}"


def format_slice_difference(difference: SliceDifference) -> tuple[str, str]:
    """Return a difference and its interval in milliseconds."""
    return (
        units.format_time_difference(difference.seconds),
        f"{units.format_time_difference(difference.low)} to {units.format_time_difference(difference.high)}",
    )


def make_shown_cell(change: TimeChange) -> Cell:
    """Return the verdict on a change."""
    if change.verdict == NO_CHANGE_SHOWN:
        return Cell(NO_CHANGE_SHOWN, short=DASH)
    return Cell(change.verdict, tone=CHANGE_TONES[change.verdict])
