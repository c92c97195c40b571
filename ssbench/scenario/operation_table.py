"""The table of operations: how each is sent, what is timed, what it does to the objects that exist.

Code that needs to know something of an operation looks its row up in :data:`OPERATIONS`, by code or by
name. A new operation is a new row. It needs a function in :mod:`ssbench.worker.builders` only where it is
more than one plain request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ssbench.scenario.operation import FIRST_DEFINED, MAX_CODE, MOST_STEPS, Effect, On, Operation, Settings
from ssbench.scenario.rule import FLAG, LABEL, TEXT, Rule, sizes, some_of, whole

#: The cause of a failure to create an object that exists: it is not this run's.
EXISTS = "exists already"

#: Operations that a sequence begins with, and those that may follow.
_FIRST = ("create", "create_only")
_LATER = ("read", "head", "conditional", "range", "post", "update", "delete")

SEQUENCE_STEPS = Rule(
    lambda value: (
        isinstance(value, list)
        and 1 < len(value) <= MOST_STEPS
        and value[0] in _FIRST
        and all(each in _LATER for each in value[1:])
        and "delete" not in value[:-1]
    ),
    f"a list of 2 to {MOST_STEPS} operations: {' or '.join(_FIRST)}, then any of {', '.join(_LATER)};"
    " a delete is the last",
)


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

    def define(self, settings: Settings) -> Operation:
        """Return the row of an operation that a scenario defines; it is added where there is none yet.

        The same name, method and effect have the same row as long as the process lives. Raises ValueError
        where there is no room for more.
        """
        new = self.of(settings)
        for row in self:
            if row.defined and replace(new, code=row.code) == row:
                return row
        code = max((row.code + 1 for row in self if row.defined), default=FIRST_DEFINED)
        if code > MAX_CODE:
            raise ValueError(f"more than {MAX_CODE - FIRST_DEFINED + 1} operations of their own")
        self._by_code[code] = row = replace(new, code=code)
        self.drawn = (*self.drawn, row)
        return row

    def of(self, settings: Settings) -> Operation:
        """Return the row that settings are of; with the code that they say where the scenario defines it."""
        if settings.defined is None:
            return self.named(settings.name)
        method, effect, code = settings.defined
        return Operation(
            code=code,
            name=settings.name,
            method=method,
            effect=Effect(effect),
            times_first_byte=method not in {"PUT", "POST"},
        )

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
        for row in reversed(self._by_code.values()):
            if row.name == name:
                return row
        raise KeyError(name)


CREATE = Operation(
    code=0,
    name="create",
    method="PUT",
    effect=Effect.ADDS,
    sends_body=True,
    stat_type="upload_object",
    keys={"etag": FLAG},
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
    code=2,
    name="update",
    method="PUT",
    effect=Effect.REWRITES,
    sends_body=True,
    stat_type="update_object",
    keys={"etag": FLAG},
)
DELETE = Operation(
    code=3,
    name="delete",
    method="DELETE",
    effect=Effect.REMOVES,
    times_first_byte=True,
    stat_type="delete_object",
)
HEAD = Operation(code=4, name="head", method="HEAD", effect=Effect.READS, times_first_byte=True)
HEAD_CONTAINER = Operation(
    code=5, name="head_container", method="HEAD", effect=Effect.NONE, on=On.CONTAINER, times_first_byte=True
)
HEAD_ACCOUNT = Operation(
    code=6, name="head_account", method="HEAD", effect=Effect.NONE, on=On.ACCOUNT, times_first_byte=True
)
_LISTING = {
    "prefix": TEXT,
    "delimiter": LABEL,
    "marker": TEXT,
    "limit": whole(1, 100_000),
    "pages": whole(1, 100_000),
}
LIST = Operation(
    code=7,
    name="list",
    method="GET",
    effect=Effect.NONE,
    on=On.CONTAINER,
    times_first_byte=True,
    keys=_LISTING,
    repeats="pages",
)
LIST_ACCOUNT = Operation(
    code=8,
    name="list_account",
    method="GET",
    effect=Effect.NONE,
    on=On.ACCOUNT,
    times_first_byte=True,
    keys=_LISTING,
    repeats="pages",
)
#: A cache asks whether what it has is still right: any ETag is, as long as the object exists.
CONDITIONAL = Operation(
    code=9,
    name="conditional",
    method="GET",
    effect=Effect.READS,
    times_first_byte=True,
    headers=(("If-None-Match", "*"),),
    success=frozenset({304}),
    causes={200: "condition ignored"},
)
POST = Operation(
    code=10,
    name="post",
    method="POST",
    effect=Effect.CHANGES,
    keys={"metadata": whole(1, 89), "metadata_bytes": whole(1, 256)},
    posts=True,
)
CREATE_ONLY = Operation(
    code=11,
    name="create_only",
    method="PUT",
    effect=Effect.ADDS,
    sends_body=True,
    headers=(("If-None-Match", "*"),),
    causes={412: EXISTS},
    keys={"etag": FLAG},
)
RANGE = Operation(
    code=12,
    name="range",
    method="GET",
    effect=Effect.READS,
    returns_object=True,
    times_first_byte=True,
    keys={"offset": sizes(0), "length": sizes(1)},
)
PUBLIC = Operation(
    code=13,
    name="public",
    method="GET",
    effect=Effect.READS,
    returns_object=True,
    times_first_byte=True,
    causes={401: "not public", 403: "not public"},
)
COPY = Operation(
    code=14,
    name="copy",
    method="COPY",
    effect=Effect.COPIES,
    times_first_byte=True,
    success=frozenset({201}),
)
SYMLINK = Operation(
    code=15,
    name="symlink",
    method="PUT",
    effect=Effect.READS,
    returns_object=True,
    needs="symlink",
    requests=4,
    steps=("write", "read", "delete"),
)
SLO = Operation(
    code=16,
    name="slo",
    method="PUT",
    effect=Effect.NONE,
    needs="slo",
    requests=12,
    repeats="segments",
    keys={
        "segments": whole(1, 1000),
        "segment_size": sizes(1),
        "reads": some_of(("whole", "range", "part")),
    },
    steps=("segments", "manifest", "{reads}", "delete"),
)
DLO = replace(
    SLO,
    code=19,
    name="dlo",
    needs="",
    requests=16,
    keys={**SLO.keys, "reads": some_of(("whole", "range"))},
)
BULK = Operation(
    code=17,
    name="bulk",
    method="PUT",
    effect=Effect.NONE,
    needs="bulk_upload",
    requests=12,
    repeats="objects",
    keys={"objects": whole(1, 1000), "size": sizes(0)},
    steps=("upload", "delete"),
)
#: A read by temporary URL, with the signature of its container in place of a token.
TEMPURL = Operation(
    code=18,
    name="tempurl",
    method="GET",
    effect=Effect.READS,
    returns_object=True,
    times_first_byte=True,
    causes={401: "signature refused"},
    needs="tempurl",
    one_side=True,
    signed=True,
)
#: Versions of objects in a container beside that of the job, which the master makes for it.
VERSIONS = Operation(
    code=20,
    name="versions",
    method="PUT",
    effect=Effect.NONE,
    needs="object_versioning",
    requests=18,
    repeats="versions",
    keys={"versions": whole(1, 100), "size": sizes(0)},
    steps=("write", "read", "list", "delete", "remove"),
    beside=True,
)
#: Operations on an object of its own, one after the other, by one user.
SEQUENCE = Operation(
    code=21,
    name="sequence",
    method="PUT",
    effect=Effect.NONE,
    sends_body=True,
    requests=8,
    keys={"steps": SEQUENCE_STEPS},
    required={"steps": "[create, post, read]"},
    steps=("{steps}",),
    posts=True,
    group_key="steps",
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
#: A sample of initial objects that were prepared: HEAD, which has to find an object of that size.
CHECK = Operation(
    code=66, name="check", method="HEAD", effect=Effect.READS, times_first_byte=True, drawn=False
)

#: Every operation.
OPERATIONS = Operations(
    (
        CREATE,
        READ,
        UPDATE,
        DELETE,
        HEAD,
        HEAD_CONTAINER,
        HEAD_ACCOUNT,
        LIST,
        LIST_ACCOUNT,
        CONDITIONAL,
        POST,
        CREATE_ONLY,
        RANGE,
        PUBLIC,
        COPY,
        SYMLINK,
        SLO,
        BULK,
        TEMPURL,
        DLO,
        VERSIONS,
        SEQUENCE,
        UPLOAD_IF_MISSING,
        REMOVE,
        CHECK,
    )
)
