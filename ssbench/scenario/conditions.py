"""Conditions on the figures of a run, as people write them: ``read.p99 > 200ms``, ``errors > 0.1%``.

::

    [GROUP.][OPERATION.[SIZE CLASS.]]FIGURE RELATION LIMIT

Without an operation, or with ``total``, a condition is about all operations. A run whose users are in groups
has figures of each: ``web.read.p99 > 50ms``. Where changes are allowed, a
limit may be one: ``read.p99 > +10%``. What the figures of a run are, and whether a condition that holds is
good or bad, is up to who asks.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from ssbench.base import text_values
from ssbench.base.errors import did_you_mean
from ssbench.document import figures
from ssbench.document.figures import CPU_KEYS, Figure, Scope
from ssbench.document.units import Unit
from ssbench.scenario.operations import OPERATIONS
from ssbench.scenario.value_rules import Precision

#: What compares a value with the limit of a condition, by what stands between them.
RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_CONDITION_PATTERN = re.compile(r"(?P<subject>.*?)\s*(?P<relation>[<>]=?)\s*(?P<limit>[^<>=]*)\Z", re.DOTALL)
_NUMBER_PATTERN = re.compile(r"\d{1,18}(?:\.\d{1,9})?\Z", re.ASCII)
_CHANGE_PATTERN = re.compile(r"([+-])\s*(\d{1,6}(?:\.\d{1,6})?)\s*%\Z", re.ASCII)

#: Names of all operations together.
_TOTAL_NAMES = ("total", "all")
_MAX_CHARACTERS = 200

#: What is between two conditions where several are allowed.
_AND_PATTERN = re.compile(r"\s+and\s+")

CONDITION_EXAMPLES = "such as 'read.p99 > 200ms', 'errors > 0.1%', 'rate < 500' or 'create.mb_per_s < 100'"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a figure."""

    operation: str | None  # name of one; None: all
    size_class: str | None  # None: all of the operation
    figure: str
    relation: str
    limit: float  # in ``unit``
    unit: Unit
    text: str  # the condition in a plain form, which :func:`parse_condition` reads again
    group: str | None = None  # name of a group of users; None: all of them

    def holds(self, value: float) -> bool:
        """Return whether it holds of a value, in the unit of the limit."""
        return bool(RELATIONS[self.relation](value, self.limit))

    @property
    def relative(self) -> bool:
        """Whether the limit is a change against another run."""
        return self.unit is Unit.CHANGE

    @property
    def subject(self) -> str:
        """Which figure it is about, as in the text: ``read.p99``."""
        return self.text.partition(" ")[0]

    @property
    def row(self) -> Figure:
        """The figure itself; raises KeyError where this version of ssbench has none of that name."""
        found = figures.find_figure(self.figure)
        if found is None:
            raise KeyError(self.figure)
        return found

    @property
    def rank(self) -> float | None:
        """The rank of a percentile, 100 for ``max``; None for another figure."""
        return self.row.rank

    @property
    def kind(self) -> str:
        """What a latency is of: see :class:`~ssbench.document.figures.Figure`."""
        return self.row.kind

    def spell(self, value: float) -> str:
        """Return a value of the figure with its unit, with all digits that a limit has."""
        return self.unit.spell(value)

    def spell_measured(self, value: float) -> str:
        """Return a measured value with its unit: 3 digits, or as many as distinguish it from the limit."""
        if not math.isfinite(value):
            return self.spell(value)
        short = (_round_significant(value, digits) for digits in range(3, 9))
        enough = (each for each in short if self.relative or self.holds(each) == self.holds(value))
        return self.spell(next(enough, value))


def find_precision_figure(asked: Precision) -> Figure:
    """Return the figure that is to be known precisely."""
    return _find_row(asked.figure, asked.text)


def parse_condition(
    text: str, defined: Collection[str] = (), *, relative: bool = False, grouped: bool = False
) -> Condition:
    """Return a condition; raises ValueError, whose text says in one line what is wrong.

    ``defined`` are the names of the operations that the scenario defines. With ``relative`` a limit may be a
    change. With ``grouped`` it may name a group of users, whatever its name: :func:`find_unknown_subject`
    says whether the run has it.
    """
    parts = _CONDITION_PATTERN.match(text.strip()) if len(text) <= _MAX_CHARACTERS else None
    if parts is None or not parts["subject"]:
        raise ValueError(f"{text[:_MAX_CHARACTERS]!r} is not a condition, {CONDITION_EXAMPLES}")
    if _AND_PATTERN.search(text):
        raise ValueError(f"{text!r}: one condition is expected; give each by itself")
    name = parts["subject"].strip()
    group, operation, size_class, row = _parse_subject_of_group(name, defined, text, grouped=grouped)
    written = parts["limit"].strip()
    limit, unit = _parse_limit(written, row, text, relative=relative)
    name = ".".join(each for each in (group, operation, size_class, row.key) if each)
    plain = f"{name} {parts['relation']} {written}"
    return Condition(operation, size_class, row.key, parts["relation"], limit, unit, plain, group)


_PRECISION_PATTERN = re.compile(
    r"(?:(?P<subject>\S+)\s+)?(?:\+-\s*)?(?P<percent>\d{1,3}(?:\.\d{1,6})?)\s*%?\Z", re.ASCII
)

#: Figures of which the precision can be asked for, besides latencies.
_PRECISE_FIGURES = ("rate", "mb_per_s", "errors")


def parse_precisions(text: str, defined: Collection[str] = ()) -> tuple[Precision, ...]:
    """Return what ``read.p99 5% and create.p50 3%`` asks for; a percentage alone is about the rate.

    ``defined`` are the names of the operations that the scenario defines. Groups of users, whatever their
    names, are accepted: :func:`find_unknown_subject` says whether the run has them. Raises ValueError.
    """
    return tuple(_parse_precision(each, defined) for each in _AND_PATTERN.split(text.strip()))


def _parse_precision(text: str, defined: Collection[str]) -> Precision:
    parts = _PRECISION_PATTERN.match(text) if len(text) <= _MAX_CHARACTERS else None
    share = float(parts["percent"]) / 100 if parts else 0.0
    if parts is None or not 0 < share < 1:
        raise ValueError(
            f"{text[:_MAX_CHARACTERS]!r} is not a precision above 0 and below 100 %, such as 'read.p99 5%' or"
            " 2% (of the rate)"
        )
    name = parts["subject"] or "rate"
    group, operation, size_class, row = _parse_subject_of_group(name, defined, text, grouped=True)
    if row.key not in _PRECISE_FIGURES and (row.times is None or row.rank == 100):
        raise ValueError(
            f"{text!r}: {row.key} has no interval that a run could wait for; {', '.join(_PRECISE_FIGURES)},"
            " percentiles and means of latencies have one"
        )
    subject = ".".join(each for each in (group, operation, size_class, row.key) if each)
    return Precision(operation, size_class, row.key, share, f"{subject} {100 * share:.6g}%", group)


def parse_subject(
    name: str, defined: Collection[str] = (), text: str | None = None
) -> tuple[str | None, str | None, Figure]:
    """Return the operation, the size class and the figure that a name such as ``read.tiny.p99`` is of.

    ``defined`` are the names of the operations that the scenario defines. Raises ValueError, whose message
    begins with ``text``, the condition that the name stands in.
    """
    text = text or name
    names, percentile, rank = _split_subject(name)
    operation, size_class = _subject(names, text, defined)
    row = _find_row(percentile + rank, text)
    if size_class is not None and row.scope is not Scope.SIZE_CLASS:
        raise ValueError(f"{text!r}: {row.key} are not counted by size class")
    if operation is not None and row.scope is Scope.RUN:
        raise ValueError(f"{text!r}: {row.key} is of all operations together")
    return operation, size_class, row


def _parse_subject_of_group(
    name: str, defined: Collection[str], text: str, *, grouped: bool
) -> tuple[str | None, str | None, str | None, Figure]:
    """Return the group too; what is no operation here may be one that the scenario, yet unread, defines.

    So in ``mine.tiny.p99`` ``mine`` may be such an operation, and ``tiny`` a size class.
    """
    group = _group_of(name, defined) if grouped else None
    rest = name.removeprefix(f"{group}.")
    names, percentile, rank = _split_subject(rest)
    row = _find_row(percentile + rank, text)
    if group and names and "." not in names[0] and row.scope is Scope.SIZE_CLASS and _group_of(rest, defined):
        return group, None, names[0], row
    return group, *parse_subject(rest, defined, text)


def find_unknown_subject(
    condition: Condition | Precision,
    size_classes: Iterable[str],
    groups: Iterable[str] = (),
    defined: Collection[str] = (),
) -> str | None:
    """Return what is wrong where a condition is about a size class or a group that does not exist.

    ``defined`` are the names of the operations that the scenario defines.
    """
    known = list(groups)
    if condition.group is not None and condition.group not in known:
        if not known:
            return _no_operation(condition.group, condition.text, defined)
        names = f"({', '.join(known)}){did_you_mean(condition.group, (*known, *_operation_names(defined)))}"
        return f"{condition.text!r}: {condition.group!r} is neither an operation nor a group {names}"
    if condition.size_class is not None and condition.operation is None:
        return _no_operation(condition.size_class, condition.text, defined)
    known = list(size_classes)
    if condition.size_class is None or condition.size_class in known:
        return None
    return (
        f"{condition.text!r}: {condition.size_class!r} is not a size class ({', '.join(known)})"
        + did_you_mean(condition.size_class, known)
    )


def parse_conditions(text: str, *, relative: bool = False, grouped: bool = False) -> tuple[Condition, ...]:
    """Return conditions with ``and`` between them, each as :func:`parse_condition` does.

    Raises ValueError.
    """
    return tuple(
        parse_condition(part, relative=relative, grouped=grouped) for part in _AND_PATTERN.split(text.strip())
    )


def _split_subject(subject: str) -> tuple[list[str], str, str]:
    """Return what precedes the figure, and the figure in two parts: a percentile may have a dot."""
    found = re.search(r"(?:^|\.)((?:first_|response_|service_)?p)(\d+\.\d+)\Z", subject, re.ASCII)
    if found:
        return [name for name in (subject[: found.start()],) if name], found[1], found[2]
    before, _, figure = subject.rpartition(".")
    group, _, server = before.rpartition(".")
    if f"{server}_{figure}".lower() in CPU_KEYS:  # of servers of the cluster, not of operations: proxy.cpu
        before, figure = group, f"{server}_{figure}"
    return [name for name in (before,) if name], figure.lower(), ""


def _operation_names(defined: Collection[str]) -> tuple[str, ...]:
    """Return what may be the operation of a condition."""
    return (*dict.fromkeys([*(each.name for each in OPERATIONS.drawn), *defined]), "total")


#: What other programs call operations.
_OTHER_NAMES = {"get": "read", "put": "create", "upload": "create", "write": "create", "download": "read"} | {
    "stat": "head",
    "del": "delete",
    "remove": "delete",
    "all": "total",
}


def _no_operation(name: str, text: str, defined: Collection[str]) -> str:
    if other := _OTHER_NAMES.get(name.lower()):
        return f"{text!r}: {name!r} is not an operation; did you mean {other}?"
    return (
        f"{text!r}: {name!r} is not an operation "
        f"({', '.join(_operation_names(defined))}){did_you_mean(name, _operation_names(defined))}"
    )


def _group_of(name: str, defined: Collection[str]) -> str | None:
    """Return the group that the name of a figure begins with; what is no operation is a group."""
    names, _, _ = _split_subject(name)
    first = names[0].partition(".")[0] if names else ""
    return None if not first or first.lower() in (*_operation_names(defined), *_TOTAL_NAMES) else first


def _subject(names: list[str], text: str, defined: Collection[str]) -> tuple[str | None, str | None]:
    if not names:
        return None, None
    operation, _, size_class = names[0].partition(".")
    if operation.lower() in _TOTAL_NAMES:
        if size_class:
            raise ValueError(f"{text!r}: size classes are of one operation, as in read.{size_class}.p99")
        return None, None
    if operation.lower() not in _operation_names(defined):
        raise ValueError(_no_operation(operation, text, defined))
    return operation.lower(), size_class or None


def _find_row(key: str, text: str) -> Figure:
    found = figures.find_figure(key)
    if found is None:
        raise ValueError(
            f"{text!r}: {key!r} is not a figure ({', '.join(figures.FIGURES)}; before a latency, first_: to"
            f" the first byte, response_: since it was due, service_: since it was sent)"
            f"{did_you_mean(key, figures.LIKELY_KEYS)}"
        )
    return found


def _parse_limit(limit: str, row: Figure, text: str, *, relative: bool) -> tuple[float, Unit]:
    figure, usual = row.key, row.unit
    if change := _CHANGE_PATTERN.match(limit):
        if not relative:
            raise ValueError(f"{text!r}: a change such as {limit!r} needs two runs: see compare")
        return float(change[1] + change[2]) / 100, Unit.CHANGE
    if usual is Unit.SECONDS:
        if not limit[-1:].isalpha():
            raise ValueError(f"{text!r}: the limit of {figure} needs a unit, such as 200ms or 2s")
        try:
            seconds = text_values.parse_seconds(limit)
        except ValueError as error:
            raise ValueError(f"{text!r}: {error}") from None
        if seconds < 0:
            raise ValueError(f"{text!r}: a latency is never below 0")
        return seconds, usual
    if limit.endswith("%") and row.whole is not None and _NUMBER_PATTERN.match(limit[:-1].strip()):
        share = float(limit[:-1]) / 100
        if share > 1 and figure == "errors":
            raise ValueError(f"{text!r}: there are never more than 100% errors")
        return share, Unit.SHARE
    number = limit.removesuffix(usual.value).strip()
    if not _NUMBER_PATTERN.match(number):
        suffixes = " or a share such as 0.1%" if row.whole is not None else ""
        raise ValueError(f"{text!r}: the limit of {figure} is a number such as 500{usual.value}{suffixes}")
    return float(number), usual


def _round_significant(value: float, digits: int) -> float:
    """Return a value rounded to this many digits; all digits before the point are kept."""
    return float(f"{value:.{digits}g}") if abs(value) < 10 ** (digits - 1) else float(round(value))
