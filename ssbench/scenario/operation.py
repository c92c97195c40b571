"""What an operation is, and what a scenario says of one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ssbench.scenario.rule import Rule

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

#: Results have room for so many steps.
MAX_STEPS = 6

#: Longer values of settings are shortened.
_MAX_VALUE_CHARACTERS = 60


class Effect(Enum):
    """What an operation does to the objects that exist.

    Only operations with :attr:`DEFAULT_READ_MODES` may be in flight together on one object.
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
    """What a scenario says of one operation, by its name: header fields, and values of the keys of its row.

    ``defined`` are the method, the effect and the code of an operation that the scenario defines itself.
    """

    name: str
    headers: tuple[Header, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    defined: tuple[str, str, int] | None = None

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.words)})"

    @property
    def words(self) -> list[str]:
        """What is set, for people."""
        words = [f"{self.defined[0]} {self.values['path']}"] if self.defined else []
        words += [
            f"{key} {_format_value(value)}"
            for key, value in self.values.items()
            if key != "path" or not self.defined
        ]
        return words + [f"header {field}: {hide_secret_value(field, value)}" for field, value in self.headers]


def _format_value(value: object) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    if isinstance(value, tuple | list):
        return " to ".join(str(each) for each in dict.fromkeys(value))
    return (
        str(value) if len(str(value)) <= _MAX_VALUE_CHARACTERS else f"{str(value)[:_MAX_VALUE_CHARACTERS]}..."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationKind:
    """One kind of job.

    ``code`` is its number in messages and stat files: unique, from 0 to :data:`MAX_OPERATION_CODE`, never used
    again for another operation. ``name`` is what scenarios and reports call it. ``method`` is the HTTP
    method of its (last) request. ``sends_body``: the bytes of the job are sent. ``returns_object``: the
    bytes of the result may be those of the object that exists. ``times_first_byte``: the latency of the
    first byte means something. ``drawn``: scenarios may give it a weight; if not, only ssbench
    itself sends it. ``stat_type`` is its name in the stat files of ssbench 0.x, empty if it has none.

    ``on`` is what its request is for, with these ``headers`` and this ``query``. ``success`` are the statuses
    that mean success (none: 200 to 299), ``causes`` the names of failures by status. ``needs`` is the feature
    that the store must have. ``keys`` are those of its settings in a scenario. ``one_side``: it is not
    possible in a run of two sides. ``signed``: in place of a token it has a signature of the container, with
    a key that is written to the account. ``beside``: it uses a container beside each of the scenario.
    ``required`` are the keys without which it cannot be sent, each with an example. ``steps`` are those of
    which the time is reported, in order: names, or in braces the key of its settings that has them.
    ``posts``: it may replace the metadata of an object. ``group_key``: groups of users may set this key of
    its settings, under its name.
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
    on: RequestTarget = RequestTarget.OBJECT
    headers: tuple[Header, ...] = ()
    query: str = ""
    success: frozenset[int] = frozenset()
    causes: Mapping[int, str] = field(default_factory=dict, hash=False)
    needs: str = ""
    keys: Mapping[str, Rule] = field(default_factory=dict, hash=False)
    requests: int = 1
    repeats: str = ""
    one_side: bool = False
    signed: bool = False
    beside: bool = False
    required: Mapping[str, str] = field(default_factory=dict, hash=False)
    steps: tuple[str, ...] = ()
    posts: bool = False
    group_key: str = ""

    def most_requests(self, settings: OperationSettings) -> int:
        """Return how many requests it is at most, those included that remove what it made.

        ``requests`` without settings; twice the value of the key ``repeats`` adds to that.
        """
        return self.requests + 2 * int(settings.values.get(self.repeats, 0))

    def steps_of(self, settings: OperationSettings) -> tuple[str, ...]:
        """Return the names of its steps; those of the same name are numbered."""
        names: list[str] = []
        for each in self.steps:
            key = each.strip("{}")
            names += [each] if key == each else settings.values.get(key, DEFAULT_READ_MODES)
        return tuple(
            f"{name} {names[: place + 1].count(name)}" if names.count(name) > 1 else name
            for place, name in enumerate(names)
        )

    @property
    def reads_part(self) -> bool:
        """Whether it reads a part of an object, which has to have one byte or more."""
        return self.returns_object and "length" in self.keys

    def mean_received(self, size: float, settings: OperationSettings) -> float:
        """Return how many bytes it receives on average of an object of ``size`` bytes."""
        if not self.returns_object:
            return 0.0
        return (
            min(size, sum(settings.values.get("length", DEFAULT_PART_LENGTH)) / 2)
            if self.reads_part
            else size
        )

    @property
    def has_object(self) -> bool:
        """Whether an object is chosen for it."""
        return self.effect is not Effect.NONE

    @property
    def defined(self) -> bool:
        """Whether a scenario defines it."""
        return self.code >= FIRST_DEFINED_CODE
