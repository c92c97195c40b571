"""The table of operations: how each is sent, what is timed, what it does to the objects that exist.

Code that needs to know something of an operation looks its row up in :data:`OPERATIONS`, by code or by
name. A new operation is a new row. It needs a function in :mod:`ssbench.worker.requests` only where it is
more than one request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

#: The largest code: stat files and the rows of the master have one byte for it.
MAX_CODE = 255


class Effect(Enum):
    """What an operation does to the objects that exist.

    Only operations with :attr:`READS` may be in flight together on one object.
    """

    ADDS = "adds"  # makes a new object
    READS = "reads"  # leaves the object as it is
    REWRITES = "rewrites"  # replaces the object's data
    REMOVES = "removes"  # deletes the object


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One kind of job.

    ``code`` is its number in messages and stat files: unique, from 0 to :data:`MAX_CODE`, never used
    again for another operation. ``name`` is what scenarios and reports call it. ``method`` is the HTTP
    method of its (last) request. ``sends_body``: the bytes of the job are sent. ``returns_object``: the
    bytes of the result may be those of the object that exists. ``times_first_byte``: the latency of the
    first byte means something. ``drawn``: scenarios may give it a weight; if not, only ssbench
    itself sends it. ``stat_type`` is its name in the stat files of ssbench 0.x, empty if it has none.
    """

    code: int
    name: str
    method: str
    effect: Effect
    sends_body: bool = False
    returns_object: bool = False
    times_first_byte: bool = False
    drawn: bool = True
    stat_type: str = ""


class Operations:
    """Operations by code and by name. Iteration is in the order of the report's sections."""

    def __init__(self, rows: Iterable[Operation]) -> None:
        self._by_code: dict[int, Operation] = {}
        #: The operations that scenarios may give a weight.
        self.drawn: tuple[Operation, ...] = ()
        for row in rows:
            self.add(row)

    def add(self, operation: Operation) -> None:
        """Add a row after the others, before the first scenario is read.

        Master and workers need the same rows. Raises ValueError if the code or the name is taken, or
        the code is out of range.
        """
        if not 0 <= operation.code <= MAX_CODE:
            raise ValueError(f"operation {operation.name}: code {operation.code} is not 0 to {MAX_CODE}")
        for row in self:
            if operation.code == row.code or operation.name == row.name:
                raise ValueError(f"operation {operation.name} ({operation.code}) is already there: {row}")
        self._by_code[operation.code] = operation
        if operation.drawn:
            self.drawn = (*self.drawn, operation)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._by_code.values())

    def __getitem__(self, code: int) -> Operation:
        """Return the operation with this code; raises KeyError."""
        return self._by_code[code]

    def get(self, code: int) -> Operation | None:
        """Return the operation with this code, None if there is none."""
        return self._by_code.get(code)

    @property
    def length_by_code(self) -> int:
        """How long a list must be that is indexed by the codes of operations that are drawn."""
        return 1 + max(operation.code for operation in self.drawn)

    def named(self, name: str) -> Operation:
        """Return the operation with this name; raises KeyError."""
        for row in self:
            if row.name == name:
                return row
        raise KeyError(name)


CREATE = Operation(
    code=0, name="create", method="PUT", effect=Effect.ADDS, sends_body=True, stat_type="upload_object"
)
READ = Operation(
    code=1,
    name="read",
    method="GET",
    effect=Effect.READS,
    returns_object=True,
    times_first_byte=True,
    stat_type="get_object",
)
UPDATE = Operation(
    code=2, name="update", method="PUT", effect=Effect.REWRITES, sends_body=True, stat_type="update_object"
)
DELETE = Operation(
    code=3,
    name="delete",
    method="DELETE",
    effect=Effect.REMOVES,
    times_first_byte=True,
    stat_type="delete_object",
)
#: An initial object: HEAD, and PUT if there is none of a size in the range of its class.
UPLOAD_IF_MISSING = Operation(
    code=64,
    name="upload_if_missing",
    method="PUT",
    effect=Effect.ADDS,
    sends_body=True,
    returns_object=True,
    drawn=False,
)
#: The clean-up after a run: DELETE, for which 404 is a success.
REMOVE = Operation(
    code=65, name="remove", method="DELETE", effect=Effect.REMOVES, times_first_byte=True, drawn=False
)

#: Every operation.
OPERATIONS = Operations((CREATE, READ, UPDATE, DELETE, UPLOAD_IF_MISSING, REMOVE))
