"""The fields of a result, in one table.

A field is one row of :data:`FIELDS`. What follows from it: its place in the packed rows of the master
(:mod:`ssbench.results.block`), its column in a :class:`~ssbench.results.block.ResultBlock`, in the stat
file, in the export, and its line in ``doc/stat-files.rst``. A new field is a new row here, and a value
for it from whoever knows it.

A column that a block was not given has the field's default in every row. It costs nothing to pack
and nothing in the stat file, and files from before the field existed read the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ssbench.scenario.operations import MAX_STEPS

#: A latency that was not measured, a moment that is not known.
NOT_MEASURED = float("nan")

#: The worker id of an operation whose worker is not known.
NO_WORKER = 2**63 - 1

#: A number that is not known: a size, an index, a status.
UNKNOWN_NUMBER = -1


class ResultMark(IntFlag):
    """Bits of the field ``marks``."""

    WARM_UP = 1  # belongs to the warm-up, which reports leave out
    DELAYED = 2  # its worker stalled for a tenth of its time or more, so that its latency is not the store's


class FieldKind(Enum):
    """What the values of a field are, which decides how they are kept and exported."""

    NUMBER = "number"
    SECONDS = "seconds"  # a duration; NaN where it was not measured
    COMPLETION = "completion"  # the moment that the other moments of a result are kept relative to
    MOMENT = "moment"  # seconds since 1970; NaN where it is not known
    TEXT = "text"  # a text of its own for each result; None where there is none
    FAILURES = "failures"  # a Failure for a few of the results


class ResultColumns(Protocol):
    """Results as columns of equal length, as a :class:`~ssbench.results.block.ResultBlock` has them."""

    def __getattr__(self, name: str) -> Any:
        """Return the column of a field."""


@dataclass(frozen=True, slots=True)
class ResultField:
    """A field of a result."""

    name: str
    number: int  # that of the field in the stat file, never used again
    kind: FieldKind
    unit: str
    since: int  # the version of the stat file that it came with
    export: str  # name of its column in an export
    description: str
    packed: str = ""  # :mod:`struct` code of one value in a packed row
    in_row: bool = False  # every row has the field, not only those of runs that ask for it
    default: float | None = 0  # the value where none was given; None: what ``derive`` returns
    #: Computes from other fields what the value nearly always is; stat files keep the difference from that.
    derive: Callable[[ResultColumns], npt.NDArray[Any]] | None = None
    text_number: int = 0  # a second number, of the characters of a text
    counts_successes: bool = False  # a counter of this name adds up those of successes alone


def _sent(block: ResultColumns) -> npt.NDArray[np.float64]:
    """Return when successes were sent, which end with their last byte; NaN for failures."""
    return np.asarray(block.completed - block.last_byte)


def _usual_status(block: ResultColumns) -> npt.NDArray[np.int64]:
    """Return the status of a success, by the operation. Stat files depend on it: it never changes."""
    return np.asarray(np.array((201, 200, 201, 204, 200))[np.minimum(block.operation, 4)])


def _started(block: ResultColumns) -> npt.NDArray[np.float64]:
    return np.asarray(block.started)


def _tries(block: ResultColumns) -> npt.NDArray[np.int64]:
    return np.asarray(block.retries + 1)


def _only_attempt(block: ResultColumns) -> npt.NDArray[np.float64]:
    """Return what the last attempt took where it was the only one."""
    return np.asarray(np.maximum(block.last_byte - block.connecting - block.pausing, 0.0))


def _connected(block: ResultColumns) -> npt.NDArray[np.int64]:
    """Return 1 for operations that took time to connect: most of those made one connection.

    Whole nanoseconds count, which are what is stored: what is written and what is read derive the same.
    """
    return np.asarray(np.rint(block.connecting * 1e9) > 0, np.int64)


def _size(block: ResultColumns) -> npt.NDArray[np.int64]:
    return np.asarray(block.size)


_NUMBER, _SECONDS, _MOMENT, _TEXT = FieldKind.NUMBER, FieldKind.SECONDS, FieldKind.MOMENT, FieldKind.TEXT

#: The fields of the steps of operations of several requests, in their order.
STEP_FIELDS = tuple(f"step_{number}" for number in range(1, MAX_STEPS + 1))

# The numbers 19, 20 and 22 were of fields that nothing ever wrote; they are not used again.
# A table is read by its columns.
# fmt: off
_FIELD_TABLE = (
    ResultField("operation", 1, _NUMBER, "code", 1, "operation",
          "0 create, 1 read, 2 update, 3 delete; a code of its own for each other operation", "B",
          in_row=True),
    ResultField("size_class", 2, _NUMBER, "index", 1, "size_class",
          "place in ``size_classes``, from 0", "H", in_row=True),
    ResultField("worker", 3, _NUMBER, "id", 1, "worker_id",
          "2**63 - 1 where it is not known which worker had it", "q", in_row=True, default=NO_WORKER),
    ResultField("container", 4, _NUMBER, "number", 1, "container",
          "``<container_base>_<number, six or more digits>``, and ``_<policy>`` with a policy",
          "I", in_row=True),
    ResultField("object", 5, _NUMBER, "number", 1, "object",
          "``<size class>_<number, six or more digits>``", "I", in_row=True),
    ResultField("size", 6, _NUMBER, "bytes", 1, "size",
          "bytes of body that were moved, -1 where it is not known; in version 1 a failure has the size"
          " of its object", "q", in_row=True, default=UNKNOWN_NUMBER),
    ResultField("first_byte", 7, _SECONDS, "seconds", 1, "first_byte_latency",
          "latency of a success; creates and updates have none", "d", in_row=True, default=NOT_MEASURED),
    ResultField("last_byte", 8, _SECONDS, "seconds", 1, "last_byte_latency",
          "latency of a success", "d", in_row=True, default=NOT_MEASURED),
    ResultField("completed", 9, FieldKind.COMPLETION, "seconds since 1970", 1, "completed_at",
          "when the operation ended, by the master's clock", "d", in_row=True),
    ResultField("retries", 10, _NUMBER, "count", 1, "retries",
          "attempts after the first one", "I"),
    ResultField("trans_id", 11, _TEXT, "text", 1, "trans_id",
          "transaction id of the last answer", text_number=12),
    ResultField("failures", 13, FieldKind.FAILURES, "JSON", 1, "error, error_detail, retried",
          "cause (null: a success after retries), one line for people, how often each cause of a retry"),
    ResultField("status", 14, _NUMBER, "HTTP status", 2, "status",
          "of the last answer, a failure's too; -1 where there was none; derived: 201, 200, 201, 204 for the"
          " operations 0 to 3, 200 for others", "h",
          in_row=True, default=UNKNOWN_NUMBER, derive=_usual_status),
    ResultField("started", 15, _MOMENT, "seconds since 1970", 2, "started_at",
          "when the first attempt was sent; derived: completed less last byte", "d",
          default=None, derive=_sent),
    ResultField("due", 16, _MOMENT, "seconds since 1970", 2, "due_at",
          "when an open loop was to send it; relative to started", "d",
          default=NOT_MEASURED, derive=_started),
    ResultField("attempts", 17, _NUMBER, "count", 2, "attempts",
          "requests that were sent; derived: retries + 1", "I", default=None, derive=_tries),
    ResultField("storage_url", 18, _NUMBER, "index", 2, "storage_url",
          "place in ``storage_urls``, from 0; -1 where it is not known", "h", default=UNKNOWN_NUMBER),
    ResultField("stage", 21, _NUMBER, "index", 2, "stage", "place in ``stages``, from 0", "H"),
    ResultField("expected_size", 23, _NUMBER, "bytes", 2, "expected_size",
          "bytes that were to be moved, -1 where it is not known; derived: size", "q",
          default=None, derive=_size),
    ResultField("marks", 24, _NUMBER, "bits", 2, "marks",
          "1: belongs to the warm-up; 2: its worker stalled for a tenth of its time or more", "B"),
    ResultField("connecting", 25, _SECONDS, "seconds", 2, "connecting",
          "part of the operation's time that went into new connections: name, TCP, TLS", "d", default=0.0),
    ResultField("pausing", 26, _SECONDS, "seconds", 2, "pausing",
          "part of it that went into our own pauses before further attempts (over S3 also into checksums of "
          "bodies of further requests)", "d", default=0.0),
    ResultField("last_attempt", 27, _SECONDS, "seconds", 2, "last_attempt",
          "what the last attempt of a success took, without connecting; default: last byte less connecting"
          " and pausing", "d", default=None, derive=_only_attempt),
    ResultField("connections", 28, _NUMBER, "count", 2, "connections",
          "new connections that were made for it; derived: 1 where there is time for connecting", "I",
          default=None, derive=_connected),
    ResultField("resumed", 29, _NUMBER, "count", 2, "resumed",
          "those of them that continued an earlier TLS session", "I"),
    ResultField("group", 40, _NUMBER, "index", 2, "group",
          "place in the ``groups`` of the scenario, or in the ``sides`` of a run with two, from 0", "B"),
    ResultField("entries", 45, _NUMBER, "count", 2, "entries", "entries of the listings that came", "q",
          counts_successes=True),
    ResultField("master", 46, _NUMBER, "index", 2, "master",
          "place in ``masters``, from 0: whose result it is, where several made one run", "H"),
    ResultField("account", 47, _NUMBER, "index", 2, "account",
          "place in ``accounts``, from 0, in a run with several", "H"),
    ResultField("address", 48, _NUMBER, "index", 2, "address",
          "place in ``addresses``, from 0, of hosts with several; -1 where it is not known", "h",
          default=UNKNOWN_NUMBER),
    ResultField("expected_entries", 49, _NUMBER, "count", 2, "expected_entries",
          "names that the listings had to have at least: of objects that existed before and after", "q"),
    ResultField("unchecked", 50, _NUMBER, "count", 2, "unchecked",
          "answers without an MD5 as ETag, by which a body would have been checked", "I",
          counts_successes=True),
    ResultField("repeated", 51, _NUMBER, "count", 2, "repeated",
          "uploads that were sent again after an attempt that had no answer, and so may have been done twice",
          "I", counts_successes=True),
    *(
        ResultField(name, number, _SECONDS, "seconds", 2, name,
              f"step {number - 59} of a success, where an operation has steps", "d", default=NOT_MEASURED)
        for number, name in enumerate(STEP_FIELDS, 60)
    ),
)
# fmt: on

#: Every field by its name, in the order of its columns.
FIELDS: dict[str, ResultField] = {field.name: field for field in _FIELD_TABLE}


def row_fields(also: tuple[str, ...] = ()) -> tuple[ResultField, ...]:
    """Return the fields of a packed row: those of every row, then those that are asked for."""
    always = tuple(field for field in FIELDS.values() if field.in_row)
    return always + tuple(FIELDS[name] for name in also)
