"""The table of operations: how each is sent, what is timed, what it does to the objects that exist.

Code that needs to know something of an operation looks its row up by code or by name: in :data:`OPERATIONS`,
or, where it may be one that a scenario defines, in the table of that scenario, its ``operation_table``.
A new operation is a new row. It needs a function in :mod:`ssbench.worker.operation_requests` only where it is
more than one plain request. What a scenario says of an operation is in :class:`OperationSettings`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from ssbench.base.errors import UsageError
from ssbench.scenario.value_rules import (
    FLAG_RULE,
    LABEL_RULE,
    TEXT_RULE,
    Rule,
    make_list_rule,
    make_size_rule,
    make_whole_rule,
    shorten_value,
)

#: A header field of a request.
Header = tuple[str, str]

#: The largest code: stat files and the rows of the master have one byte for it.
MAX_OPERATION_CODE = 255

#: The codes from here on are of operations that scenarios define.
FIRST_DEFINED_CODE = 128

#: How large objects are read, unless a scenario says otherwise.
DEFAULT_READ_MODES: tuple[str, ...] = ("whole",)

#: The least and the largest number of bytes of a part, unless a scenario says others.
DEFAULT_PART_LENGTH = (4096, 4096)

#: The most entries of a page of a listing, unless a scenario says otherwise.
DEFAULT_LISTING_LIMIT = 1000

#: Of reads and of uploads one in so many has its ETag compared with the MD5 of the body: the first of each
#: worker, and then each time that so many more were made.
SAMPLE_INTERVAL = 128

#: The same of bodies of more than LARGE_BYTES. MD5 of one in 128 would be 3 to 5 % of all that they cost from
#: 32 KiB on, and a tenth of 1 MB.
LARGE_SAMPLE_INTERVAL = 1024
LARGE_BYTES = 16384

#: In the body of an upload up to this size what tells it from all others comes last, in a larger one first.
SMALL_BYTES = 4096

#: Results have room for so many steps.
MAX_STEPS = 12

#: How often a step of a sequence may be repeated.
_MAX_TIMES = 1000

#: Longer values of settings are shortened.
_MAX_VALUE_CHARACTERS = 60


class Effect(Enum):
    """What an operation does to the objects that exist.

    Only operations with :attr:`READS` may be in flight together on one object, and updates of one request
    where scenarios say which object is chosen (:mod:`ssbench.scenario.chosen_objects`).
    """

    ADDS = "adds"  # makes a new object
    READS = "reads"  # leaves the object as it is
    REWRITES = "rewrites"  # replaces the object's data
    CHANGES = "changes"  # alters the object, but not its data
    COPIES = "copies"  # makes a new object of one that exists; nothing else uses the new one
    NONE = "none"  # needs no object
    REMOVES = "removes"  # deletes the object


#: Names of header fields whose values are secrets: Authorization, Cookie, X-Service-Token, X-Amz-Signature,
#: X-Container-Meta-Temp-URL-Key and so on. Rather too many than one too few.
_SECRET_PATTERN = re.compile(
    r"auth|token|key|cookie|secret|passw|signature|credential|session", re.IGNORECASE
)

#: What is shown in place of a secret.
HIDDEN_VALUE = "(not shown)"

#: Keys of a scenario, and fields of records, that hold header fields.
_HEADER_KEYS = {"headers", "get_headers", "container_put_headers"}


def hide_secret_value(field: str, value: Any) -> Any:
    """Return the value of a header field as it may be shown and kept: not where that is a secret."""
    return HIDDEN_VALUE if _SECRET_PATTERN.search(field) else value


def remove_secrets(data: Any) -> Any:
    """Return plain data of a scenario without the secrets among its header fields."""
    match data:
        case dict():
            return {
                key: _shown_fields(value) if key in _HEADER_KEYS else remove_secrets(value)
                for key, value in data.items()
            }
        case list() | tuple():
            return [remove_secrets(each) for each in data]
    return data


def _shown_fields(fields: Any) -> Any:
    """Return header fields, a mapping or a list of pairs, without secrets; anything else unchanged."""
    match fields:
        case dict():
            return {name: hide_secret_value(str(name), value) for name, value in fields.items()}
        case list() | tuple():
            return [_shown_pair(each) for each in fields]
    return fields


def _shown_pair(pair: Any) -> Any:
    match pair:
        case [str() as name, value]:
            return [name, hide_secret_value(name, value)]
    return pair


class RequestTarget(Enum):
    """What the request of an operation is for."""

    OBJECT = "object"
    CONTAINER = "container"
    ACCOUNT = "account"


@dataclass(frozen=True, slots=True)
class OperationSettings:
    """What a scenario says of one operation: header fields, and values of the keys of its row."""

    name: str  # that of the operation
    headers: tuple[Header, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    #: Method, effect and code of an operation that the scenario defines itself.
    defined: tuple[str, str, int] | None = None

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.words)})"

    @property
    def words(self) -> list[str]:
        """What is set, for people."""
        requests = self.defined is not None and "path" in self.values
        words = [f"{self.defined[0]} {self.values['path']}"] if self.defined and requests else []
        words += [
            f"{key} {_format_value(value)}"
            for key, value in self.values.items()
            if key != "path" or not requests
        ]
        return words + [f"header {field}: {hide_secret_value(field, value)}" for field, value in self.headers]


def _format_value(value: object) -> str:
    if isinstance(value, list) and all(isinstance(each, str | dict) for each in value):
        return ", ".join(map(_format_step, value))
    if isinstance(value, tuple | list):
        return " to ".join(str(each) for each in dict.fromkeys(value))
    return (
        str(value) if len(str(value)) <= _MAX_VALUE_CHARACTERS else f"{str(value)[:_MAX_VALUE_CHARACTERS]}..."
    )


def _format_step(step: str | Mapping[str, Any]) -> str:
    """Return a step of a sequence, or a name, in words: ``3 x range (length 1 to 9)``."""
    if isinstance(step, str):
        return step
    own = [f"{key} {_format_value(value)}" for key, value in step.items() if key not in _STEP_KEYS]
    return f"{_name_step(step)} ({', '.join(own)})" if own else _name_step(step)


def _name_step(step: str | Mapping[str, Any]) -> str:
    """Return what reports call a step."""
    if isinstance(step, str):
        return step
    return f"{step['times']} x {step['name']}" if "times" in step else str(step["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationKind:
    """One kind of job."""

    #: Number in messages and stat files: unique, from 0 to :data:`MAX_OPERATION_CODE`, never used again for
    #: another operation.
    code: int
    name: str  # what scenarios and reports call it
    method: str  # HTTP method of its (last) request
    effect: Effect
    sends_body: bool = False  # the bytes of the job are sent
    returns_object: bool = False  # the bytes of the result may be those of the object that exists
    #: How many bytes it receives on average of an object of so many, by the values of its settings; None: all
    #: of it where it ``returns_object``, else none.
    receives: Callable[[float, Mapping[str, Any]], float] | None = None
    times_first_byte: bool = False  # the latency of the first byte means something
    may_be_step: bool = False  # sequences may have it as a step
    drawn: bool = True  # scenarios may give it a weight; if not, only ssbench itself sends it
    stat_type: str = ""  # its name in the stat files of ssbench 0.x; empty: it has none
    on: RequestTarget = RequestTarget.OBJECT  # what its request is for
    headers: tuple[Header, ...] = ()  # those that its request has
    query: str = ""  # that of its request
    success: frozenset[int] = frozenset()  # statuses that mean success; empty: 200 to 299
    causes: Mapping[int, str] = field(default_factory=dict, hash=False)  # names of failures by status
    needs: str = ""  # feature that the store must have
    keys: Mapping[str, Rule] = field(default_factory=dict, hash=False)  # those of its settings in a scenario
    requests: int = 1
    repeats: str = ""
    one_side: bool = False  # it is not possible in a run of two sides
    #: In place of a token it has a signature of the container, with a key that is written to the account.
    signed: bool = False
    beside: bool = False  # it uses a container beside each of the scenario
    #: Keys without which it cannot be sent, each with an example.
    required: Mapping[str, str] = field(default_factory=dict, hash=False)
    #: Those of which the time is reported, in order: names, or in braces the key of its settings that has
    #: them.
    steps: tuple[str, ...] = ()
    posts: bool = False  # it may replace the metadata of an object
    reads_part: bool = False  # it reads a part of an object, which has to have one byte or more
    group_key: str = ""  # groups of users may set this key of its settings, under its name
    #: The name of its check in :mod:`ssbench.store.conformance_checks`, which runs make first, where they
    #: would not see that the store ignores what is asked; empty: they see it, or there is none.
    check: str = ""

    def most_requests(self, settings: OperationSettings, known: Iterable[OperationSettings] = ()) -> int:
        """Return how many requests it is at most, those included that remove what it made.

        ``requests`` without settings; twice the value of the key ``repeats`` adds to that. A sequence has
        those of its steps, with the ``known`` settings of these.
        """
        steps = resolve_steps(settings.values.get("steps", ()), known)
        if steps:
            return 2 + sum(step.times * step.row.most_requests(step.settings) for step in steps)
        return self.requests + 2 * int(settings.values.get(self.repeats, 0))

    def steps_of(self, settings: OperationSettings) -> tuple[str, ...]:
        """Return the names of its steps; those of the same name are numbered."""
        names: list[str] = []
        for each in self.steps:
            key = each.strip("{}")
            names += [each] if key == each else map(_name_step, settings.values.get(key, DEFAULT_READ_MODES))
        return tuple(
            f"{name} {names[: place + 1].count(name)}" if names.count(name) > 1 else name
            for place, name in enumerate(names)
        )

    def mean_sent(self, size: float, settings: OperationSettings) -> float:
        """Return how many bytes of an object of ``size`` bytes it sends."""
        steps = resolve_steps(settings.values.get("steps", ()))
        if steps:
            return sum(step.times * step.row.mean_sent(size, step.settings) for step in steps)
        return size if self.sends_body else 0.0

    def mean_received(
        self, size: float, settings: OperationSettings, known: Iterable[OperationSettings] = ()
    ) -> float:
        """Return how many bytes it receives on average of an object of ``size`` bytes.

        The steps of a sequence have ``known`` settings.
        """
        steps = resolve_steps(settings.values.get("steps", ()), known)
        if steps:
            return sum(step.times * step.row.mean_received(size, step.settings) for step in steps)
        if self.receives is not None:
            return self.receives(size, settings.values)
        return size if self.returns_object else 0.0

    @property
    def has_object(self) -> bool:
        """Whether an object is chosen for it."""
        return self.effect is not Effect.NONE

    @property
    def makes_objects(self) -> bool:
        """Whether it makes objects that nothing else uses, and removes them itself."""
        return bool(self.steps) and not (self.defined and self.has_object)

    @property
    def defined(self) -> bool:
        """Whether a scenario defines it."""
        return self.code >= FIRST_DEFINED_CODE


# -- Sequences -------------------------------------------------------------------------------------


#: The keys of a step that are not settings of its operation.
_STEP_KEYS = ("name", "times")


@dataclass(frozen=True, slots=True)
class SequenceStep:
    """An operation of a sequence, with the settings that it has there; it is made so many ``times``."""

    row: OperationKind
    settings: OperationSettings
    times: int


def resolve_steps(steps: Iterable[Any], known: Iterable[OperationSettings] = ()) -> list[SequenceStep]:
    """Return the steps of a sequence, each with the ``known`` settings of its operation and its own.

    Raises ValueError for what is no step.
    """
    settings = {each.name: each for each in known}
    found = []
    for step in steps:
        values: dict[str, Any] = {"name": step} if isinstance(step, str) else {}
        values |= step if isinstance(step, dict) else {}
        row, times = _find_step(values.pop("name", None)), values.pop("times", 1)
        if row is None:
            raise ValueError(f"{shorten_value(step)} is no step of a sequence")
        own = settings.get(row.name, OperationSettings(row.name))
        found.append(SequenceStep(row, replace(own, values={**own.values, **values}), times))
    return found


def _find_step(name: object) -> OperationKind | None:
    return next((row for row in OPERATIONS if row.may_be_step and row.name == name), None)


def find_sequence_effect(steps: Sequence[SequenceStep]) -> Effect:
    """Return what a sequence does to its object, which follows from what its steps do one after the other.

    It is that which an operation would have that is of one request: a sequence in which an object is deleted
    and created anew replaces it. Raises ValueError where a step has no object, or one too many.
    """
    began: bool | None = None
    exists: bool | None = None
    effects = [step.row.effect for step in steps if step.row.on is RequestTarget.OBJECT]
    for step in steps:
        name, effect = step.row.name, step.row.effect
        if step.row.on is not RequestTarget.OBJECT:
            continue
        needs = effect not in {Effect.ADDS, Effect.NONE}
        began, exists = (needs, needs) if exists is None else (began, exists)
        if needs and not exists:
            raise ValueError(f"{name} needs an object, and there is none at that point")
        if exists and not needs:
            raise ValueError(f"{name} is for an object that does not exist, and there is one at that point")
        if step.times > 1 and effect in {Effect.ADDS, Effect.REMOVES}:
            raise ValueError(f"{name} is possible once, not {step.times} times")
        exists = {Effect.ADDS: True, Effect.REMOVES: False}.get(effect, exists)
    if began is False:
        return Effect.ADDS if exists else Effect.NONE
    if exists is False:
        return Effect.REMOVES
    written = {Effect.ADDS, Effect.REWRITES} & {*effects}
    return Effect.REWRITES if written else Effect.CHANGES if Effect.CHANGES in effects else Effect.READS


def _read_steps(value: object) -> list[str | dict[str, Any]]:
    """Return steps of a sequence with numbers in place of texts with units; raises ValueError."""
    if not isinstance(value, list) or not 0 < len(value) <= MAX_STEPS:
        words = f"a list of 1 to {MAX_STEPS} operations, such as [head, read]"
        raise ValueError(f"expected {words}, not {shorten_value(value)}")
    steps = [_read_step(each) for each in value]
    find_sequence_effect(resolve_steps(steps))
    return steps


def _read_step(step: object) -> str | dict[str, Any]:
    values = {"name": step} if isinstance(step, str) else step
    name = values.get("name") if isinstance(values, dict) else None
    row = _find_step(name)
    if not isinstance(values, dict) or row is None:
        names = [each.name for each in OPERATIONS if each.may_be_step]
        words = f"{', '.join(names)}, or a mapping such as {{name: read, times: 3}}"
        raise ValueError(f"expected steps of {words}, not {shorten_value(step)}")
    # Metadata are verified by the settings of the operation that sets them.
    rules = {"name": LABEL_RULE, "times": make_whole_rule(1, _MAX_TIMES), **({} if row.posts else row.keys)}
    found = {}
    for key, each in values.items():
        if key not in rules:
            raise ValueError(f"{name} as a step has the keys {', '.join(rules)}, not {shorten_value(key)}")
        read = rules[key].read(each)
        if not rules[key].accepts(read):
            raise ValueError(f"{key} of {name}: expected {rules[key].expected}, not {shorten_value(each)}")
        found[str(key)] = read
    if found.get("times") == 1:
        del found["times"]
    return found if len(found) > 1 else str(name)


def _read_own_steps(value: object) -> list[str | dict[str, Any]]:
    """Return the steps of a sequence on an object that it makes and removes itself; raises ValueError."""
    steps = _read_steps(value)
    effects = [step.row.effect for step in resolve_steps(steps)]
    if Effect.ADDS not in effects or effects.index(Effect.ADDS) != min(
        place for place, effect in enumerate(effects) if effect is not Effect.NONE
    ):
        raise ValueError(
            "expected a create before all that needs an object: this sequence has one of its own"
            " (a sequence with another name is for objects of the scenario)"
        )
    return steps


_STEPS_WORDS = f"a list of 1 to {MAX_STEPS} operations"

#: The steps of a sequence over objects of the scenario; and those over one of its own.
STEPS_RULE = Rule(lambda value: isinstance(value, list), _STEPS_WORDS, convert=_read_steps)
_OWN_STEPS_RULE = Rule(lambda value: isinstance(value, list), _STEPS_WORDS, convert=_read_own_steps)


# -- The table -------------------------------------------------------------------------------------


#: The cause of a failure of a condition that does not hold, where the answer is as if it did.
IGNORED_CAUSE = "condition ignored"

#: The cause of a failure to create an object that exists: it is not this run's.
EXISTS_CAUSE = "exists already"

#: That of a look for an object that should not be there.
FOUND_CAUSE = "not missing"


class OperationTable:
    """Operations by code and by name. Iteration is in the order of the report's sections."""

    def __init__(self, rows: Iterable[OperationKind]) -> None:
        self._by_code: dict[int, OperationKind] = {}
        #: The operations that scenarios may give a weight.
        self.drawn: tuple[OperationKind, ...] = ()
        for row in rows:
            self.add(row)

    def add(self, operation: OperationKind) -> None:
        """Add a row after the others, before the first scenario is read.

        Master and workers need the same rows. Raises ValueError if the code or the name is taken, or
        the code is out of range.
        """
        if not 0 <= operation.code <= MAX_OPERATION_CODE:
            raise ValueError(
                f"operation {operation.name}: code {operation.code} is not 0 to {MAX_OPERATION_CODE}"
            )
        for row in self:
            if operation.code == row.code or operation.name == row.name:
                raise ValueError(f"operation {operation.name} ({operation.code}) is already there: {row}")
        self._by_code[operation.code] = operation
        if operation.drawn:
            self.drawn = (*self.drawn, operation)

    def with_defined(self, settings: Iterable[OperationSettings]) -> OperationTable:
        """Return the table of a scenario with these settings: these rows, then those that it defines.

        One that it defines replaces a row of its name, which a later version of ssbench may have added.
        Raises ValueError where a code or a name is there twice, or a code is not one for these.
        """
        defined = [self.of(each) for each in settings if each.defined is not None]
        if not defined:
            return self
        names, codes = {row.name for row in defined}, {row.code for row in defined}
        if len(names) < len(defined) or len(codes) < len(defined):
            raise ValueError("two of the operations that it defines have the same name or code")
        if not all(FIRST_DEFINED_CODE <= code <= MAX_OPERATION_CODE for code in codes):
            raise ValueError(f"codes of operations that are not {FIRST_DEFINED_CODE} to {MAX_OPERATION_CODE}")
        found = OperationTable(())
        found._by_code = {row.code: row for row in (*self, *defined)}
        found.drawn = (*(row for row in self.drawn if row.name not in names), *defined)
        return found

    def joined_with(self, other: OperationTable) -> tuple[OperationTable, list[int]]:
        """Return a table that has the rows of another too, and the codes there by those in the other.

        Of two tables' defined operations those are the same that are equal but for their code. Raises
        UsageError where there are more of them than codes.
        """
        found, codes = OperationTable(()), list(range(MAX_OPERATION_CODE + 1))
        found._by_code, found.drawn = dict(self._by_code), self.drawn
        free = (code for code in codes[FIRST_DEFINED_CODE:] if code not in found._by_code)
        for row in other:
            if row not in OPERATIONS:
                same = next((each for each in found if replace(each, code=row.code) == row), None)
                if same is None:
                    code = next(free, None)
                    if code is None:
                        raise UsageError("both runs together define too many operations")
                    found._by_code[code] = same = replace(row, code=code)
                    found.drawn = (*found.drawn, same)
                codes[row.code] = same.code
        return found, codes

    def of(self, settings: OperationSettings) -> OperationKind:
        """Return the row that settings are of; with the code that they say where the scenario defines it."""
        if settings.defined is None:
            return self.named(settings.name)
        method, effect, code = settings.defined
        if "steps" in settings.values:
            return _make_sequence(code, settings)
        return OperationKind(
            code=code,
            name=settings.name,
            method=method,
            effect=Effect(effect),
            times_first_byte=method not in {"PUT", "POST"},
        )

    def __iter__(self) -> Iterator[OperationKind]:
        return iter(self._by_code.values())

    def __getitem__(self, code: int) -> OperationKind:
        """Return the operation with this code; raises KeyError."""
        return self._by_code[code]

    def get(self, code: int) -> OperationKind | None:
        """Return the operation with this code, None if there is none."""
        return self._by_code.get(code)

    @property
    def length_by_code(self) -> int:
        """How long a list must be that is indexed by the codes of operations that are drawn."""
        return 1 + max(operation.code for operation in self.drawn)

    def named(self, name: str) -> OperationKind:
        """Return the operation with this name; raises KeyError."""
        for row in reversed(self._by_code.values()):
            if row.name == name:
                return row
        raise KeyError(name)


def _make_sequence(code: int, settings: OperationSettings) -> OperationKind:
    """Return the row of a sequence over objects of the scenario; raises ValueError for wrong steps."""
    steps = resolve_steps(settings.values["steps"])
    rows = [step.row for step in steps]
    if not rows:
        raise ValueError(f"{settings.name} has no steps")
    return OperationKind(
        code=code,
        name=settings.name,
        method=rows[-1].method,
        effect=find_sequence_effect(steps),
        sends_body=any(row.sends_body for row in rows),
        returns_object=any(row.returns_object for row in rows),
        needs=next((row.needs for row in rows if row.needs), ""),
        one_side=any(row.one_side for row in rows),
        signed=any(row.signed for row in rows),
        steps=("{steps}",),
        posts=any(row.posts for row in rows),
        reads_part=any(row.reads_part for row in rows),
    )


CREATE = OperationKind(
    code=0,
    name="create",
    method="PUT",
    effect=Effect.ADDS,
    may_be_step=True,
    sends_body=True,
    stat_type="upload_object",
    keys={"etag": FLAG_RULE},
)
READ = OperationKind(
    code=1,
    name="read",
    method="GET",
    effect=Effect.READS,
    may_be_step=True,
    returns_object=True,
    times_first_byte=True,
    stat_type="get_object",
)
UPDATE = OperationKind(
    code=2,
    name="update",
    method="PUT",
    effect=Effect.REWRITES,
    may_be_step=True,
    sends_body=True,
    stat_type="update_object",
    keys={"etag": FLAG_RULE},
)
DELETE = OperationKind(
    code=3,
    name="delete",
    method="DELETE",
    effect=Effect.REMOVES,
    may_be_step=True,
    times_first_byte=True,
    stat_type="delete_object",
)
HEAD = OperationKind(
    code=4, name="head", method="HEAD", effect=Effect.READS, may_be_step=True, times_first_byte=True
)
HEAD_CONTAINER = OperationKind(
    code=5,
    name="head_container",
    method="HEAD",
    effect=Effect.NONE,
    may_be_step=True,
    on=RequestTarget.CONTAINER,
    times_first_byte=True,
)
HEAD_ACCOUNT = OperationKind(
    code=6,
    name="head_account",
    method="HEAD",
    effect=Effect.NONE,
    on=RequestTarget.ACCOUNT,
    times_first_byte=True,
)
_LISTING_KEYS = {
    "prefix": TEXT_RULE,
    "delimiter": LABEL_RULE,
    "marker": TEXT_RULE,
    "limit": make_whole_rule(1, 100_000),
    "pages": make_whole_rule(1, 100_000),
}
LIST = OperationKind(
    code=7,
    name="list",
    method="GET",
    effect=Effect.NONE,
    may_be_step=True,
    on=RequestTarget.CONTAINER,
    times_first_byte=True,
    keys=_LISTING_KEYS,
    repeats="pages",
)
LIST_ACCOUNT = OperationKind(
    code=8,
    name="list_account",
    method="GET",
    effect=Effect.NONE,
    on=RequestTarget.ACCOUNT,
    times_first_byte=True,
    keys=_LISTING_KEYS,
    repeats="pages",
)
#: A cache asks whether what it has is still right: any ETag is, as long as the object exists.
CONDITIONAL = OperationKind(
    code=9,
    name="conditional",
    method="GET",
    effect=Effect.READS,
    may_be_step=True,
    times_first_byte=True,
    headers=(("If-None-Match", "*"),),
    success=frozenset({304}),
    causes={200: IGNORED_CAUSE},
    check="conditional",
)
POST = OperationKind(
    code=10,
    name="post",
    method="POST",
    effect=Effect.CHANGES,
    may_be_step=True,
    keys={"metadata": make_whole_rule(1, 89), "metadata_bytes": make_whole_rule(1, 256)},
    posts=True,
    check="post",
)
CREATE_ONLY = OperationKind(
    code=11,
    name="create_only",
    method="PUT",
    effect=Effect.ADDS,
    may_be_step=True,
    sends_body=True,
    headers=(("If-None-Match", "*"),),
    causes={412: EXISTS_CAUSE},
    keys={"etag": FLAG_RULE},
    check="create_only",
)


def _mean_range(size: float, values: Mapping[str, Any]) -> float:
    least, most = values.get("length", DEFAULT_PART_LENGTH)
    return min(size, float(least + most) / 2)


RANGE = OperationKind(
    code=12,
    name="range",
    method="GET",
    effect=Effect.READS,
    may_be_step=True,
    returns_object=True,
    receives=_mean_range,
    times_first_byte=True,
    keys={"offset": make_size_rule(0), "length": make_size_rule(1)},
    reads_part=True,
)
PUBLIC = OperationKind(
    code=13,
    name="public",
    method="GET",
    effect=Effect.READS,
    may_be_step=True,
    returns_object=True,
    times_first_byte=True,
    causes={401: "not public", 403: "not public"},
)
COPY = OperationKind(
    code=14,
    name="copy",
    method="COPY",
    effect=Effect.COPIES,
    times_first_byte=True,
)
SYMLINK = OperationKind(
    code=15,
    name="symlink",
    method="PUT",
    effect=Effect.READS,
    returns_object=True,
    needs="symlink",
    requests=4,
    steps=("write", "read", "delete"),
)
SLO = OperationKind(
    code=16,
    name="slo",
    method="PUT",
    effect=Effect.NONE,
    needs="slo",
    requests=12,
    repeats="segments",
    keys={
        "segments": make_whole_rule(1, 1000),
        "segment_size": make_size_rule(1),
        "reads": make_list_rule(("whole", "range", "part")),
    },
    steps=("segments", "manifest", "{reads}", "delete"),
)
DLO = replace(
    SLO,
    code=19,
    name="dlo",
    needs="",
    requests=16,
    keys={**SLO.keys, "reads": make_list_rule(("whole", "range"))},
)
BULK = OperationKind(
    code=17,
    name="bulk",
    method="PUT",
    effect=Effect.NONE,
    needs="bulk_upload",
    requests=12,
    repeats="objects",
    keys={"objects": make_whole_rule(1, 1000), "size": make_size_rule(0)},
    steps=("upload", "delete"),
)
#: A read by temporary URL, with the signature of its container in place of a token.
TEMPURL = OperationKind(
    code=18,
    name="tempurl",
    method="GET",
    effect=Effect.READS,
    may_be_step=True,
    returns_object=True,
    times_first_byte=True,
    causes={401: "signature refused", 403: "signature refused"},
    needs="tempurl",
    one_side=True,
    signed=True,
)
#: Versions of objects in a container beside that of the job, which the master makes for it.
VERSIONS = OperationKind(
    code=20,
    name="versions",
    method="PUT",
    effect=Effect.NONE,
    needs="object_versioning",
    requests=18,
    repeats="versions",
    keys={"versions": make_whole_rule(1, 100), "size": make_size_rule(0)},
    steps=("write", "read", "list", "delete", "remove"),
    beside=True,
)
#: Operations on an object of its own, one after the other, by one user.
SEQUENCE = OperationKind(
    code=21,
    name="sequence",
    method="PUT",
    effect=Effect.NONE,
    sends_body=True,
    requests=8,
    keys={"steps": _OWN_STEPS_RULE},
    required={"steps": "[create, post, read]"},
    steps=("{steps}",),
    posts=True,
    group_key="steps",
)
#: A look for an object that is not there: as a step of a sequence for the object of that, else for any.
MISSING = OperationKind(
    code=22,
    name="missing",
    method="HEAD",
    effect=Effect.NONE,
    may_be_step=True,
    times_first_byte=True,
    success=frozenset({404}),
    causes={200: FOUND_CAUSE},
    keys={"method": Rule(lambda value: value in ("HEAD", "GET"), "HEAD or GET")},
)
#: Part after part of an object in segments, each as long as these, as a program reads that needs all of it.
PARTS = OperationKind(
    code=23,
    name="parts",
    method="GET",
    effect=Effect.READS,
    may_be_step=True,
    returns_object=True,
    times_first_byte=True,
    reads_part=True,
)
#: An initial object: HEAD, and PUT if there is none of a size in the range of its class.
UPLOAD_IF_MISSING = OperationKind(
    code=64,
    name="upload_if_missing",
    method="PUT",
    effect=Effect.ADDS,
    sends_body=True,
    returns_object=True,
    drawn=False,
)
#: The clean-up after a run: DELETE, for which 404 is a success.
REMOVE = OperationKind(
    code=65, name="remove", method="DELETE", effect=Effect.REMOVES, times_first_byte=True, drawn=False
)
#: A sample of initial objects that were prepared: HEAD, which has to find an object of that size.
CHECK = OperationKind(
    code=66, name="check", method="HEAD", effect=Effect.READS, times_first_byte=True, drawn=False
)

#: A first try of something that stores may ignore; in place of a size the job has the number of the check.
TRY = OperationKind(code=67, name="first_try", method="PUT", effect=Effect.NONE, drawn=False)

#: The steps of operations on objects in segments.
LARGE_OBJECT_STEPS: Mapping[str, tuple[str, ...]] = {
    "create": ("segments", "manifest"),
    "create_only": ("segments", "manifest"),
    "update": ("look", "segments", "manifest", "old segments"),
    "parts": ("first part", "other parts"),
}

#: Every operation.
OPERATIONS = OperationTable(
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
        MISSING,
        PARTS,
        UPLOAD_IF_MISSING,
        REMOVE,
        CHECK,
        TRY,
    )
)
