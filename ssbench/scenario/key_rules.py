"""What the values of the keys of a scenario must be, with the words for messages.

Which key has which of these rules is in the table of :mod:`ssbench.scenario.model`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Literal

from ssbench.base import text_values
from ssbench.base.errors import did_you_mean
from ssbench.scenario import conditions
from ssbench.scenario.operations import OPERATIONS
from ssbench.scenario.value_rules import (
    LABEL_RULE,
    MAX_BYTES,
    MAX_NUMBER,
    SIZE_RULE,
    Rule,
    is_label,
    is_number,
    make_whole,
    make_whole_rule,
    shorten_value,
)

#: The operations that a list of four weights stands for.
CRUD_OPERATIONS = ("create", "read", "update", "delete")

#: Those of a list of five.
CRUD_AND_LIST_OPERATIONS = (*CRUD_OPERATIONS, "list")

#: Operations a second that no master can hand out.
_MAX_RATE = 10_000_000


#: Each message to a worker holds the storage URLs of all accounts, and tokens.
MAX_ACCOUNTS = 1000

_ACCOUNT_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}\Z", re.ASCII)
_GROUP_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,32}\Z", re.ASCII)


def _is_group_name(value: object) -> bool:
    # part of the names of objects, and of conditions such as web.read.p99 > 50ms
    return (
        isinstance(value, str)
        and _GROUP_NAME_PATTERN.match(value) is not None
        and value.lower() not in {"total", "all", *(operation.name for operation in OPERATIONS)}
    )


def _is_container_part(value: object) -> bool:
    return is_label(value) and "/" not in str(value)


class _Range(Rule):
    """A rule for a number, or for two of which the second is reached evenly: ``16..64``."""

    def read(self, value: object, defined: Collection[str] = ()) -> object:
        """Return the numbers at the beginning and at the end; raises ValueError."""
        value = make_whole(value)
        if not isinstance(value, str):
            return value, value
        low, dots, high = value.partition("..")
        if not dots:
            raise ValueError(f"expected {self.expected}, not {shorten_value(value)}")
        return _parse_number(low), _parse_number(high)


def _parse_number(text: str) -> float | None:
    """Return the number that a text is; a whole one where it has no point, None where it is none."""
    for kind in (int, float):
        try:
            return make_whole(kind(text))  # type: ignore[return-value]
        except ValueError:
            continue
    return None


def _are_users(value: object) -> bool:
    if not isinstance(value, tuple) or not all(type(each) is int for each in value):
        return False
    return all(1 <= each <= MAX_NUMBER for each in value) or value == (0, 0)


def _is_rate(value: object) -> bool:
    return is_number(value) and 0 <= value <= _MAX_RATE  # type: ignore[operator]


def _are_rates(value: object) -> bool:
    return isinstance(value, tuple) and all(map(_is_rate, value)) and any(value)


def _is_weights(value: object) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    elif not isinstance(value, list) or len(value) not in {
        len(CRUD_OPERATIONS),
        len(CRUD_AND_LIST_OPERATIONS),
    }:
        return False
    return all(map(is_number, value)) and sum(value) > 0 and max(value) < 1e300


def _check_weights(value: object, defined: Collection[str]) -> object:
    """Return weights unchanged; raises ValueError for what is no operation."""
    names = {*(operation.name for operation in OPERATIONS.drawn), *defined}
    for name in value if isinstance(value, dict) else ():
        if name not in names:
            meant = did_you_mean(str(name), names) or f" (there are {', '.join(sorted(names))})"
            raise ValueError(f"expected names of operations, not {shorten_value(name)}{meant}")
    return value


def _whole_seconds(text: str) -> float:
    value = text_values.parse_seconds(text)
    return int(value) if value.is_integer() else value


def _parse_life(value: object) -> object:
    """Return whole seconds of a text with a unit, two of a text with dots; any other value unchanged."""
    if not isinstance(value, str):
        return make_whole(value)
    low, dots, high = value.partition("..")
    if not dots:
        return _whole_seconds(value) if value.strip()[-1:].isalpha() else make_whole(value)
    return tuple(_whole_seconds(each if each.strip()[-1:].isalpha() else f"{each}s") for each in (low, high))


def _is_life(value: object) -> bool:
    if isinstance(value, tuple):
        return all(type(each) is int for each in value) and 0 < value[0] <= value[1] <= 2**62
    return type(value) is int and 0 <= value <= 2**62


def split_delete_after(value: Any) -> dict[str, int | None]:
    """Return the keys of a scenario for a valid value of ``delete_after``."""
    least, most = value if isinstance(value, tuple) else (value, None)
    return {"delete_after": least, "delete_after_most": most}


def read_segments(entry: Mapping[str, Any]) -> tuple[int, Literal["static", "dynamic"]]:
    """Return the size and the kind of the segments of a size class."""
    return entry.get("segment_size", 0), entry.get("segments", "static")


def _parse_conditions(value: object, defined: Collection[str]) -> object:
    """Return conditions as texts; what is no list of texts is left as it is."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return value
    return tuple(conditions.parse_condition(text, defined, grouped=True).text for text in texts)


ACCOUNT_BASE_RULE = Rule(
    lambda value: isinstance(value, str) and _ACCOUNT_NAME_PATTERN.match(value) is not None,
    "1 to 64 letters, digits, hyphens and underscores",
)
CONTAINER_PART_RULE = Rule(_is_container_part, "a string of 1 to 200 printable characters without '/'")
WEIGHTS_RULE = Rule(
    _is_weights,
    "four numbers of 0 or more that do not sum to 0: create, read, update, delete (a fifth: list);"
    " or a mapping of operations to such numbers, as in {read: 9, head: 1}",
    convert_named=_check_weights,
)
INITIAL_FILES_RULE = make_whole_rule(0, MAX_NUMBER)
SECONDS_RULE = Rule(
    lambda value: is_number(value) and 0 < value <= 1e9,  # type: ignore[operator]
    "a number of seconds above 0",
    text_values.parse_seconds,
)

SECONDS_OR_0_RULE = Rule(
    lambda value: is_number(value) and value <= 1e9,  # type: ignore[operator]
    "a number of seconds of 0 or more",
    text_values.parse_seconds,
)
RATE_RULE = Rule(
    lambda value: _is_rate(value) and value != 0,
    f"a number of operations a second above 0, up to {_MAX_RATE}",
)


#: How the arrivals of a replay are called, which no file can ask for.
REPLAY_WORD = "replay"

#: How arrivals in bursts are called in a scenario's record: this, and their coefficient of variation squared.
BURST_WORD = "burst "
_MAX_BURST = 1000


def _convert_arrivals(value: object) -> object:
    match value:
        case {"burst": int() | float() as burst, **others} if not others and is_number(burst):
            return f"{BURST_WORD}{burst:g}" if 1 < burst <= _MAX_BURST else value
        case str() if value.startswith(BURST_WORD):
            return [value]  # which is none: the key has a mapping for it
    return value


ARRIVALS_RULE = Rule(
    lambda value: isinstance(value, str) and (value in ("even", "poisson") or value.startswith(BURST_WORD)),
    f"even or poisson, or a mapping with burst, a number above 1, up to {_MAX_BURST}",
    convert=_convert_arrivals,
)

GROUP_NAME_RULE = Rule(
    _is_group_name,
    "1 to 32 letters, digits, hyphens and underscores that are not the name of an operation",
)
DELETE_AFTER_RULE = Rule(
    _is_life,
    f"a whole number from 0 to {2**62} of seconds, or two as in 1m..1h, for each object one between them",
    convert=_parse_life,
)
CONDITIONS_RULE = Rule(
    lambda value: isinstance(value, tuple),
    "a list of conditions, such as 'read.p99 > 200ms'",
    convert_named=_parse_conditions,
)

#: Keys of a size class.
CLASS_RULES = {
    "name": LABEL_RULE,
    "size_min": SIZE_RULE,
    "size_max": SIZE_RULE,
    "crud_profile": WEIGHTS_RULE,
    "profile": WEIGHTS_RULE,
    "segment_size": make_whole_rule(1, MAX_BYTES)._replace(parse=text_values.parse_size),
    "segments": Rule(lambda value: value in ("static", "dynamic"), "static or dynamic"),
}

#: Most segments of an object: of a static one those that a manifest may have, of a dynamic one a page of a
#: listing, unless the cluster is configured otherwise.
MAX_SEGMENTS = {"static": 1000, "dynamic": 10_000}

#: Bytes of the largest object, or segment, that a Swift takes unless it is configured otherwise
#: (``max_file_size``): 5 GiB.
DEFAULT_MAX_FILE_BYTES = 5 * 2**30 + 2

#: Keys of a stage.
STAGE_RULES = {
    "seconds": SECONDS_RULE,
    "users": _Range(
        _are_users,
        f"a whole number from 1 to {MAX_NUMBER}, or two as in 16..64, from the first to the second (0: the"
        " group has not begun)",
    ),
    "rate": _Range(
        _are_rates,
        f"a number of operations a second above 0, up to {_MAX_RATE}, or two as in 100..500,"
        " from the first to the second",
    ),
}
#: The share of a size class in the operations of a group.
SHARE_RULE = Rule(
    lambda value: is_number(value) and value < 1e300,  # type: ignore[operator]
    "a number of 0 or more",
)
