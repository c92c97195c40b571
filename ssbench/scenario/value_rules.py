"""What a value of a scenario file must be, with the words for messages.

Commands that are run at moments of a benchmark, and precisions that are asked for, are here as well, because
``--help`` needs them, and nothing else of a scenario.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from ssbench.base import text_values

#: Leaves room in the 32 bits that container and object numbers have on the wire.
MAX_NUMBER = 1_000_000_000
MAX_BYTES = 2**63 - 1


class Rule(NamedTuple):
    """What a value must be."""

    accepts: Callable[[object], bool]  # a test
    words: str | Callable[[], str]  # a description for messages
    #: Turns a text with a unit into a number, or raises ValueError; None: no unit is allowed.
    parse: Callable[[str], float] | None = None
    convert: Callable[[object], object] | None = None  # does so with any value
    #: Likewise, with the names of the operations that the scenario defines.
    convert_named: Callable[[object, Collection[str]], object] | None = None
    whole: bool = False  # whether 3000.0 and 1e3 are taken for the whole numbers that they are

    def read(self, value: object, defined: Collection[str] = ()) -> object:
        """Return a number for a text with a unit, any other value unchanged; raises ValueError.

        ``defined`` are the names of the operations that the scenario defines.
        """
        if self.convert_named is not None:
            return self.convert_named(value, defined)
        if self.convert is not None:
            return self.convert(value)
        # A number in quotes is a text in YAML, and was always refused.
        if self.parse is None or not isinstance(value, str) or not value.strip()[-1:].isalpha():
            return make_whole(value) if self.whole else value
        return self.parse(value)

    @property
    def expected(self) -> str:
        """The words for what a value must be."""
        return self.words if isinstance(self.words, str) else self.words()


def make_whole_rule(low: int, high: int) -> Rule:
    """Return a rule for a whole number between two, both included."""
    # type() and not isinstance(), because True is an int
    return Rule(
        lambda value: type(value) is int and low <= value <= high,
        f"a whole number from {low} to {high}",
        whole=True,
    )


#: What YAML takes for a text where JSON and people have a number.
_EXPONENT_PATTERN = re.compile(r"\d{1,20}(\.\d{1,20})?[eE]\+?\d{1,2}", re.ASCII)


def make_whole(value: object) -> object:
    """Return a whole number of any spelling (3000.0, 1e3) as an int, any other value unchanged."""
    if isinstance(value, str) and _EXPONENT_PATTERN.fullmatch(value):
        value = float(value)
    return int(value) if type(value) is float and value.is_integer() else value


def is_text(value: object) -> bool:
    """Whether a value is a text that names on the wire can hold."""
    try:  # JSON can spell halves of surrogate pairs, which no name on the wire can hold
        return isinstance(value, str) and 1 <= len(value.encode()) <= 900
    except UnicodeEncodeError:
        return False


def is_label(value: object) -> bool:
    """Whether a value is a text for one line."""
    # nothing that ends a line, of a report or of an HTTP header
    return isinstance(value, str) and 1 <= len(value) <= 200 and value.isprintable()


def is_number(value: object) -> bool:
    """Whether a value is a finite number of 0 or more."""
    return type(value) in {int, float} and 0 <= value < math.inf  # type: ignore[operator]


def _parse_sizes(value: object) -> object:
    """Return the two ends of ``4kB..64kB``, or of one size; any other value unchanged."""
    if isinstance(value, str):
        low, dots, high = value.partition("..")
        ends = text_values.parse_size(low), text_values.parse_size(high if dots else low)
        if ends[0] > ends[1]:
            raise ValueError(f"the smaller size comes first, but not in {shorten_value(value)}")
        return ends
    value = make_whole(value)
    return (value, value) if type(value) is int else value


def make_size_rule(low: int) -> Rule:
    """Return a rule for a size, or two between which each is drawn."""
    return Rule(
        lambda value: (
            isinstance(value, tuple) and len(value) == 2 and low <= value[0] <= value[1] <= MAX_BYTES
        ),
        f"a size of {low} or more, or two as in 4kB..64kB, between which each is drawn evenly",
        convert=_parse_sizes,
    )


def make_list_rule(names: tuple[str, ...]) -> Rule:
    """Return a rule for a list of some of these names, each at most once."""
    return Rule(
        lambda value: (
            isinstance(value, list)
            and bool(value)
            and all(each in names for each in value)
            and len(set(value)) == len(value)
        ),
        f"a list of one or more of {', '.join(names)}, each once",
    )


def shorten_value(value: object) -> str:
    """Show a value in an error message, shortened."""
    return "nothing" if value is None else reprlib.repr(value)


def _parse_headers(value: object) -> object:
    """Return a mapping of header fields as pairs; any other value unchanged."""
    if not isinstance(value, dict):
        return value
    return tuple((name, each if isinstance(each, str) else str(each)) for name, each in value.items())


def _are_headers(value: object) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(name, str)
        and _FIELD_NAME(name)
        and name.lower() not in _RESERVED_FIELDS
        and _FIELD_VALUE(each)
        and type(each) is str
        for name, each in value
    )


#: Names and values of header fields (RFC 9110, 5.5 and 5.6.2); those that only ssbench can send.
_FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}").fullmatch
_FIELD_VALUE = re.compile(r"[\x20-\x7e]{0,4000}").fullmatch
_RESERVED_FIELDS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "x-auth-token", "expect", "upgrade"}
)

HEADERS_RULE = Rule(
    _are_headers,
    "a mapping of header fields to printable ASCII texts, without those that ssbench sends"
    " (Host, Content-Length, Connection, X-Auth-Token)",
    convert=_parse_headers,
)
LABEL_RULE = Rule(
    is_label, "a string of 1 to 200 printable characters (quote what YAML may take for a number)"
)
TEXT_RULE = Rule(is_text, "a string of 1 to 900 bytes (quote it if it looks like a number or a date)")
FLAG_RULE = Rule(lambda value: type(value) is bool, "true or false")
SIZE_RULE = make_whole_rule(0, MAX_BYTES)._replace(parse=text_values.parse_size)

#: What requests of the S3 API say of bodies.
PayloadMode = Literal["unsigned", "signed", "chunked"]

PAYLOAD_RULE = Rule(lambda value: value in get_args(PayloadMode), "unsigned, signed or chunked")


# -- Commands at moments ---------------------------------------------------------------------------


#: A run with more of them is a mistake.
_MAX_EVENTS = 100
_MAX_COMMAND_CHARACTERS = 10_000
_MAX_EVENT_SECONDS = 1e9

_EXPECTED_EVENTS = (
    "a list of mappings with at, seconds from the beginning of the run on, and command, a text for a shell"
)


@dataclass(frozen=True, slots=True)
class TimedCommand:
    """A command that is run at a moment of the benchmark."""

    at: float  # seconds after its beginning
    command: str  # what a shell gets

    def __str__(self) -> str:
        return f"{self.at:g} s: {self.command}"


def make_timed_command(at: Any, command: object) -> TimedCommand:
    """Return a command at a time, which may have a unit; raises ValueError."""
    seconds = text_values.parse_seconds(at) if isinstance(at, str) else at
    if not is_number(seconds) or not 0 <= seconds <= _MAX_EVENT_SECONDS:
        raise ValueError(f"at: expected a time of 0 or more, {text_values.TIME_EXAMPLES}, not {at!r}")
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise ValueError("expected a command that is not empty")
    if len(command) > _MAX_COMMAND_CHARACTERS:
        raise ValueError(f"expected a command of at most {_MAX_COMMAND_CHARACTERS:,} characters")
    return TimedCommand(float(seconds), command)


def _parse_events(value: object) -> object:
    if not isinstance(value, list) or not all(
        isinstance(each, dict) and each.keys() == {"at", "command"} for each in value
    ):
        raise ValueError(f"expected {_EXPECTED_EVENTS}, not {shorten_value(value)}")
    return tuple(make_timed_command(each["at"], each["command"]) for each in value)


EVENTS_RULE = Rule(
    lambda value: isinstance(value, tuple) and len(value) <= _MAX_EVENTS,
    f"at most {_MAX_EVENTS} commands",
    convert=_parse_events,
)


@dataclass(frozen=True, slots=True)
class Precision:
    """How precisely a figure is to be known: ``read.p99 5%``."""

    operation: str | None  # name of one; None: all
    size_class: str | None  # None: all of the operation
    figure: str
    share: float  # half the width of its 95 % interval at most, as a share of its value
    text: str  # in a plain form, which ``parse_precisions`` of ``conditions`` reads again
    group: str | None = None  # name of a group of users; None: all of them

    @property
    def subject(self) -> str:
        """Which figure it is about, as in the text: ``read.p99``."""
        return self.text.partition(" ")[0]
