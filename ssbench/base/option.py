"""Options as one table: what is said of an option is said at its field, and all else follows from that.

A field of a record is an option where its type is annotated with an :class:`Option`::

    retries: Annotated[int, Meta(ge=0), Option("maximum number of retries", Unit.NUMBER)] = 10

From that follow its argument on the command line, its help with the default, the check of a value that a
program gives (:func:`check_option_bounds`), and what the stat file keeps (:func:`record_options`). Where the
record is one of the wire, its place there follows too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from functools import cache
from typing import Any, get_args, get_type_hints

from msgspec import Meta, structs

from ssbench.base.errors import UsageError


class OptionUnit(Enum):
    """What a value is, which says how it is read and how the help names it."""

    SECONDS = auto()
    BYTES = auto()
    NUMBER = auto()
    LABEL = auto()
    FLAG = auto()


class OptionGroup(Enum):
    """Where the help of the command line has an option; the value is the heading."""

    LOAD = "load"
    REQUESTS = "requests"
    RESULTS = "results"
    FLEET = "fleet"


class OptionScope(IntEnum):
    """Which commands have an option besides ``run-scenario``; each scope has those of the one before."""

    ONE_RUN = auto()  # none: it is of one run, and run-scenario refuses it where it makes several
    MANY_RUNS = auto()  # those that make many runs (suite, noise)
    PREPARATION = auto()  # those, and prepare


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What is said of an option, besides its default and its bounds, which are those of the field."""

    help: str
    unit: OptionUnit
    letter: str | None = None  # its short spelling
    default: str | None = None  # says in the help what no value means, or how the default is spelt
    parse: Callable[[str], Any] | None = None  # reads a value that no unit describes; raises ValueError
    kept: bool = True  # the stat file keeps it
    metavar: str | None = None  # how the help names a value where its unit does not say it
    group: OptionGroup = OptionGroup.REQUESTS  # the heading under which the help has it
    scope: OptionScope = OptionScope.MANY_RUNS  # which commands have it
    other_workers: bool = False  # it says that workers come that are not started here
    on_command_line: bool = True  # otherwise programs alone have it


@dataclass(frozen=True, slots=True)
class OptionRow:
    """An option, with what follows from its field."""

    name: str
    option: Option
    default: Any
    least: float | None  # values are this or more
    above: float | None  # values are above this
    most: float | None = None  # values are this or less

    @property
    def flag(self) -> str:
        """The long spelling."""
        return "--" + self.name.replace("_", "-")


def list_options(record: type) -> Mapping[str, OptionRow]:
    """Return the options of a record, a dataclass or a struct, by the names of their fields."""
    return _list_options(record)


@cache
def _list_options(record: Any) -> Mapping[str, OptionRow]:
    rows = {}
    defaults = _find_defaults(record)
    for name, hint in get_type_hints(record, include_extras=True).items():
        notes = list(_find_annotations(hint))
        option = next((note for note in notes if isinstance(note, Option)), None)
        if option is None:
            continue
        bounds = next((note for note in notes if isinstance(note, Meta)), Meta())
        rows[name] = OptionRow(name, option, defaults[name], bounds.ge, bounds.gt, bounds.le)
    return rows


def _find_annotations(hint: Any) -> Iterator[object]:
    """Yield what a type is annotated with, and what its alternatives are (``Time | None``)."""
    yield from getattr(hint, "__metadata__", ())
    for alternative in get_args(getattr(hint, "__origin__", None)):
        yield from getattr(alternative, "__metadata__", ())


def _find_defaults(record: type) -> dict[str, Any]:
    if dataclasses.is_dataclass(record):
        return {field.name: field.default for field in dataclasses.fields(record)}
    return {field.name: field.default for field in structs.fields(record)}


def check_option_bounds(record: object) -> None:
    """Raise UsageError for a number that is out of the bounds of its field."""
    for row in list_options(type(record)).values():
        value = getattr(record, row.name)
        if value is None:
            continue
        if row.least is not None and not value >= row.least:
            raise UsageError(f"{row.name}: expected {row.least:g} or more, not {value!r}")
        if row.above is not None and not value > row.above:
            raise UsageError(f"{row.name}: expected a number above {row.above:g}, not {value!r}")
        if row.most is not None and not value <= row.most:
            raise UsageError(f"{row.name}: expected {row.most:.20g} or less, not {value!r}")


def record_options(record: object) -> dict[str, object]:
    """Return what the stat file keeps of the options of a record, as plain values or texts."""
    kept = {
        row.name: getattr(record, row.name) for row in list_options(type(record)).values() if row.option.kept
    }
    plain = (bool, int, float, str, type(None))
    return {name: value if isinstance(value, plain) else str(value) for name, value in kept.items()}
