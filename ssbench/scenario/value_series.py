"""Values that differ from run to run, as sweeps and suites have them: ``4,8,16``, ``4..512``, ``4..512/12``.

It imports little, because the command line reads it for its help.
"""

from __future__ import annotations

import re
from decimal import Decimal

from ssbench.base import text_values

MAX_SERIES_VALUES = 64

#: The largest value of each that may differ.
LARGEST_IN_SERIES = {
    "users": 10**7,
    "rate": 10**7,
    "size": 5 * 2**30,
    "objects": 10**9,
    "workers": 10**4,
}


def parse_series(name: str, values: str, whole: str, least: int = 1) -> tuple[int, ...]:
    """Return the values of what differs by its name, in ascending order; raises ValueError.

    ``A..B`` doubles from A on and ends with B, ``A..B/12`` are 12 values. ``whole`` is the text that an error
    names.
    """
    if ".." in values:
        first, _, end = values.partition("..")
        last, slash, count = end.partition("/")
        ends = _parse_number(name, first, whole), _parse_number(name, last, whole)
        found = _space_values(*ends, count, whole) if slash else _double_values(*ends, whole)
    else:
        found = [_parse_number(name, part, whole, least) for part in values.split(",")]
    found = sorted(set(found))
    if len(found) > MAX_SERIES_VALUES:
        raise ValueError(f"{whole!r}: {len(found)} steps are more than {MAX_SERIES_VALUES}")
    return tuple(found)


def _parse_number(name: str, text: str, whole: str, least: int = 1) -> int:
    text = text.strip()
    try:
        match name:
            case "size":
                value = text_values.parse_size(text)
            case "objects":
                number = Decimal(text)  # 1e6
                value = int(number) if number % 1 == 0 and number <= LARGEST_IN_SERIES[name] else -1
            case _:
                value = int(text)
    except (ValueError, ArithmeticError):
        value = -1
    if not least <= value <= LARGEST_IN_SERIES[name] or not re.match(r"\d", text, re.ASCII):
        expected = f"a number from {least} to {LARGEST_IN_SERIES[name]:,}"
        ends = re.fullmatch(r"(\w+)\s*(?:-|to|:|\.{3,}|…)\s*(\w+)", text, re.ASCII)
        meant = f"; did you mean {name}={ends[1]}..{ends[2]}?" if ends else ""
        raise ValueError(f"{whole!r}: {text!r} is not {expected}{meant}")
    return int(value)


def _space_values(first: int, last: int, count: str, text: str) -> list[int]:
    """Return so many values, each the same number of times the one before."""
    if not re.fullmatch(r"[0-9]{1,3}", count) or not 2 <= int(count) <= MAX_SERIES_VALUES or first >= last:
        raise ValueError(
            f"{text!r}: expected 2 to {MAX_SERIES_VALUES} steps from a lower value to a higher one, such as"
            " users=4..512/12"
        )
    steps = int(count)
    found = [round(first * (last / first) ** (place / (steps - 1))) for place in range(steps)]
    if len(apart := sorted({*found})) < steps:
        name, listed = text.partition("=")[0], ",".join(map(str, apart))
        raise ValueError(f"{text!r}: {steps} steps have {len(apart)} different values: write {name}={listed}")
    return found


def _double_values(first: int, last: int, text: str) -> list[int]:
    if last < first:
        raise ValueError(f"{text!r}: {last} is less than {first}")
    values = [first]
    while values[-1] * 2 < last:
        values.append(values[-1] * 2)
    return [*values, last]
