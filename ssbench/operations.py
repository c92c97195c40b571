"""The operations of a benchmark, in one table.

Whoever wants to know something of an operation (how it is sent, what is timed, what it does to the
objects that exist) looks here, so that a new operation is a new row and not an ``if`` in five modules.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Effect(Enum):
    """What an operation does to the objects that exist.

    Only operations with :attr:`READS` may be in flight together on one object.
    """

    ADDS = "adds"  # makes a new object
    READS = "reads"  # leaves the object as it is
    REWRITES = "rewrites"  # replaces the object's data
    REMOVES = "removes"  # deletes the object


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
READ = Operation(1, "read", "GET", Effect.READS, False, True, "get_object")
UPDATE = Operation(2, "update", "PUT", Effect.REWRITES, True, False, "update_object")
DELETE = Operation(3, "delete", "DELETE", Effect.REMOVES, False, True, "delete_object")

#: Every operation, ordered by code; the order of ``crud_profile`` and of the report's sections.
OPERATIONS: tuple[Operation, ...] = (CREATE, READ, UPDATE, DELETE)
