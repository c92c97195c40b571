"""The operations of a benchmark, in one table.

Whoever wants to know something of an operation (how it is sent, what is timed, what it does to the
objects that exist) looks here, so that a new operation is a new row and not an ``if`` in five modules.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Effect(Enum):
    """What a successful operation does to the line of existing objects of its size class."""

    ADDS = "adds"  # a new object joins the end of the line
    VISITS = "visits"  # the oldest object is used and goes to the end of the line
    REMOVES = "removes"  # the oldest object leaves the line


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of request that a benchmark draws.

    ``code`` is its number on the wire and in stat files and its place in :data:`OPERATIONS`;
    ``stat_type`` is its name in the stat files of ssbench 0.x.
    """

    code: int
    name: str
    method: str
    effect: Effect
    sends_body: bool
    times_first_byte: bool
    stat_type: str


CREATE = Operation(0, "create", "PUT", Effect.ADDS, True, False, "upload_object")
READ = Operation(1, "read", "GET", Effect.VISITS, False, True, "get_object")
UPDATE = Operation(2, "update", "PUT", Effect.VISITS, True, False, "update_object")
DELETE = Operation(3, "delete", "DELETE", Effect.REMOVES, False, True, "delete_object")

#: Every operation, ordered by code; the order of ``crud_profile`` and of the report's sections.
OPERATIONS: tuple[Operation, ...] = (CREATE, READ, UPDATE, DELETE)
