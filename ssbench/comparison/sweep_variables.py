"""What differs from step to step: users, rate, size, objects or workers, and through which values it goes.

It imports little, because the command line reads it for its help.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ssbench.base.errors import did_you_mean
from ssbench.document.units import format_given_number
from ssbench.scenario.value_series import LARGEST_IN_SERIES, parse_series

SWEEP_EXAMPLES = "such as users=4,8,16 or users=4..512, or backup.users=0,4,16 of a group"


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
LARGEST_VALUES = {each: LARGEST_IN_SERIES[each.value] for each in Variable}


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
    found = parse_series(variable.value, values, text, least)
    return Sweep(GroupVariable(group, variable) if dot else variable, found)
