"""What differs from step to step: users, rate, size, objects or workers, and through which values it goes.

It imports little, because the command line reads it for its help.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

from ssbench.base import text_values
from ssbench.base.errors import did_you_mean
from ssbench.document.units import format_given_number

SWEEP_EXAMPLES = "such as users=4,8,16 or users=4..512, or backup.users=0,4,16 of a group"

_MAX_SWEEP_STEPS = 64


def format_exact(value: float) -> str:
    """Return a value with all of its digits, as the command line takes it."""
    return f"{value:.10g}"


class Variable(Enum):
    """What differs from step to step, and in what it is counted."""

    USERS = "users"
    RATE = "rate"
    SIZE = "size"
    OBJECTS = "objects"
    WORKERS = "workers"

    @property
    def unit(self) -> str:
        """The unit of its values."""
        return {Variable.RATE: "ops/s", Variable.SIZE: "bytes"}.get(self, self.value)

    @property
    def head(self) -> str:
        """The head of a column of its values, which are not to be mistaken for what was measured."""
        return "due/s" if self is Variable.RATE else self.unit

    @property
    def most(self) -> str:
        """What the highest of its values is called."""
        return "the highest rate" if self is Variable.RATE else f"the most {self.value}"

    def words(self, value: float) -> str:
        """Return a value with its unit."""
        unit = self.unit.removesuffix("s") if value == 1 and self is not Variable.RATE else self.unit
        return f"{format_given_number(value)} {unit}"

    @property
    def is_load(self) -> bool:
        """Whether more of it is more load, so that it ends where more brings nothing."""
        return self not in {Variable.SIZE, Variable.OBJECTS}


@dataclass(frozen=True, slots=True)
class GroupVariable:
    """What differs is the users, or the rate, of one group of users beside others."""

    group: str
    variable: Variable

    @property
    def value(self) -> str:
        """Its name: ``backup.users``."""
        return f"{self.group}.{self.variable.value}"

    @property
    def unit(self) -> str:
        """The unit of its values."""
        return f"{self.variable.unit} of {self.group}"

    @property
    def head(self) -> str:
        """The head of a column of its values."""
        return self.variable.head

    @property
    def most(self) -> str:
        """What the highest of its values is called."""
        return f"{self.variable.most} of {self.group}"

    def words(self, value: float) -> str:
        """Return a value with its unit."""
        return f"{self.variable.words(value)} of {self.group}"

    @property
    def is_load(self) -> bool:
        """More of it is no load that the whole run is to keep up with: the other groups are looked at."""
        return False


#: What a sweep may vary.
Varied = Variable | GroupVariable

#: What may differ of a group.
_GROUP_VARIABLES = (Variable.USERS, Variable.RATE)

#: The largest value of each.
LARGEST_VALUES = {
    Variable.USERS: 10**7,
    Variable.RATE: 10**7,
    Variable.SIZE: 5 * 2**30,
    Variable.OBJECTS: 10**9,
    Variable.WORKERS: 10**4,
}


@dataclass(frozen=True, slots=True)
class Sweep:
    """What is swept, through which values, in ascending order for loads."""

    variable: Varied
    values: tuple[int, ...]


def parse_sweep(text: str) -> Sweep:
    """Return a sweep; raises ValueError, whose text says in one line what is wrong.

    ``A..B`` doubles from A on and ends with B, ``A..B/12`` are 12 values. ``GROUP.users`` and ``GROUP.rate``
    are those of a group of users, which may be 0: the group is left out.
    """
    name, equals, values = (part.strip() for part in text.partition("="))
    group, dot, name = name.rpartition(".")
    known = [each.value for each in Variable]
    if name not in known:
        raise ValueError(f"{text!r}: {name!r} is none of {', '.join(known)}{did_you_mean(name, known)}")
    if not equals or not values:
        raise ValueError(f"{text!r} is not a sweep, {SWEEP_EXAMPLES}")
    variable = Variable(name)
    if dot and variable not in _GROUP_VARIABLES:
        raise ValueError(
            f"{text!r}: of a group only {' and '.join(each.value for each in _GROUP_VARIABLES)} may differ"
        )
    # Without any users of a group, it shows what the others do by themselves.
    least = 0 if dot else 1
    if ".." in values:
        first, _, end = values.partition("..")
        last, slash, count = end.partition("/")
        ends = _parse_number(variable, first, text), _parse_number(variable, last, text)
        found = _space_values(*ends, count, text) if slash else _double_values(*ends, text)
    else:
        found = [_parse_number(variable, part, text, least) for part in values.split(",")]
    found = sorted(set(found))
    if len(found) > _MAX_SWEEP_STEPS:
        raise ValueError(f"{text!r}: {len(found)} steps are more than {_MAX_SWEEP_STEPS}")
    return Sweep(GroupVariable(group, variable) if dot else variable, tuple(found))


def _parse_number(variable: Variable, text: str, whole: str, least: int = 1) -> int:
    text = text.strip()
    try:
        match variable:
            case Variable.SIZE:
                value = text_values.parse_size(text)
            case Variable.OBJECTS:
                number = Decimal(text)  # 1e6
                value = int(number) if number % 1 == 0 and number <= LARGEST_VALUES[variable] else -1
            case _:
                value = int(text)
    except (ValueError, ArithmeticError):
        value = -1
    if not least <= value <= LARGEST_VALUES[variable] or not re.match(r"\d", text, re.ASCII):
        expected = f"a number from {least} to {LARGEST_VALUES[variable]:,}"
        ends = re.fullmatch(r"(\w+)\s*(?:-|to|:|\.{3,}|…)\s*(\w+)", text, re.ASCII)
        meant = f"; did you mean {variable.value}={ends[1]}..{ends[2]}?" if ends else ""
        raise ValueError(f"{whole!r}: {text!r} is not {expected}{meant}")
    return int(value)


def _space_values(first: int, last: int, count: str, text: str) -> list[int]:
    """Return so many values, each the same number of times the one before."""
    if not re.fullmatch(r"[0-9]{1,3}", count) or not 2 <= int(count) <= _MAX_SWEEP_STEPS or first >= last:
        raise ValueError(
            f"{text!r}: expected 2 to {_MAX_SWEEP_STEPS} steps from a lower value to a higher one, such as"
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
