"""Conditions (:mod:`ssbench.scenario.conditions`) against the numbers of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import msgspec

from ssbench.document.gates import Result
from ssbench.document.units import Unit
from ssbench.scenario.conditions import Condition, parse
from ssbench.statistics.certainty import certainty
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.sections import Line, Section

#: Conditions that cannot be read are cut to this many characters.
_MOST_CHARACTERS = 200


class Judgment(msgspec.Struct, frozen=True):
    """A condition under which a run fails, what came, and whether the run fails by that.

    ``value`` is None where the run has no such figure. That fails, because it is not known to be good; so
    does a condition of a scenario that a later version of ssbench has written and this one cannot read.
    ``most`` is more than ``value`` where this is a lower bound. ``count`` is how many results there are, and
    ``enough`` how many would decide, where it is undecided and these can be estimated. ``few`` is whether
    they are fewer than reports show the figure of (:attr:`~ssbench.document.figures.Figure.needs`).
    """

    condition: Condition
    value: float | None
    result: Result
    most: float | None = None
    count: int | None = None
    enough: float | None = None
    few: bool = False

    @property
    def failed(self) -> bool:
        """Whether the run fails by it."""
        return self.result is Result.FAILED

    @property
    def undecided(self) -> bool:
        """Whether the run is not enough to tell."""
        return self.result is Result.UNDECIDED

    @property
    def at_least(self) -> bool:
        """Whether the value is a lower bound."""
        return self.value is not None and self.most is not None and self.most > self.value

    @property
    def text(self) -> str:
        """One line for people, without ``fail-if``."""
        return f"{self.condition.text}: {self.result.value} ({self._came})"

    @property
    def _came(self) -> str:
        if not self.condition.figure:
            return "this version of ssbench cannot read it"
        if self.value is None:
            return "not measured"
        came = self.condition.spell_measured(self.value)
        if self.at_least:
            came = f"at least {came}"
            return f"{came}, because operations that were due never began" if self.undecided else came
        if self.count is not None and (self.few or self.undecided):
            came += f", of {self.count:,} operations"
        if not self.undecided:
            return came
        if self.enough is None:
            return f"{came}; it is too near to its limit, or changes too much"
        return f"{came}; about {_rounded(self.enough):,} would decide"


def judge(statistics: RunStatistics, conditions: Iterable[Condition]) -> tuple[Judgment, ...]:
    """Judge each condition; none of them may be a change."""
    return tuple(_judgment(statistics, condition) for condition in conditions)


def _judgment(statistics: RunStatistics, condition: Condition) -> Judgment:
    """Judge by what is certain of the figure: see :mod:`ssbench.statistics.certainty`."""
    if condition.group is not None:
        own = statistics.group(condition.group)
        if own is None:
            return Judgment(condition, None, Result.FAILED)
        statistics = own.numbers
    line, found = line_of(statistics, condition), value(statistics, condition)
    if line is None or found is None:
        return Judgment(condition, None, Result.FAILED)
    row = condition.row
    most = found
    if row.measured_most is not None:
        most = max(found, row.most(line, statistics) or found)
    known = certainty(statistics, line, condition, found, most)
    holds, fails = (known.above, known.below) if condition.relation[0] == ">" else (known.below, known.above)
    result = Result.FAILED if holds else Result.PASSED if fails else Result.UNDECIDED
    count = row.times(line).count if row.times else row.results(line, statistics)
    few = not row.is_supported(line, statistics)
    return Judgment(condition, found, result, most, count, known.enough, few)


def _rounded(number: float) -> int:
    """Return a number of operations to two digits, no less than it is."""
    step: int = 10 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1)
    return math.ceil(number / step) * step


def judge_run(statistics: RunStatistics, more: Iterable[Condition] = ()) -> tuple[Judgment, ...]:
    """Judge the conditions of the run's scenario, and more."""
    conditions = {condition.text: condition for condition in (*_of_scenario(statistics), *more)}
    return judge(statistics, conditions.values())


def _of_scenario(statistics: RunStatistics) -> Iterator[Condition]:
    for text in statistics.run.scenario.fail_if:
        try:
            yield parse(text, grouped=True)
        except ValueError:
            shown = repr(text[:_MOST_CHARACTERS])
            yield Condition(None, None, figure="", relation=">", limit=0.0, unit=Unit.COUNT, text=shown)


def value(statistics: RunStatistics, condition: Condition) -> float | None:
    """Return the figure that a condition names, in its unit; None where the run has none.

    Of a change it is the figure itself, in the unit that it has without one.
    """
    line = line_of(statistics, condition)
    if line is None or not condition.figure:
        return None
    row = condition.row
    found = row.measured(line, statistics)
    if found is None or condition.unit is not Unit.SHARE or row.whole is None:
        return None if found is None else float(found)
    whole = row.whole(line, statistics)
    return found / whole if whole else None


def line_of(statistics: RunStatistics, condition: Condition) -> Line | None:
    """Return the figures that a condition is about; None where the run has none."""
    return line(statistics, condition.operation, condition.size_class)


def line(statistics: RunStatistics, operation: str | None, size_class: str | None) -> Line | None:
    """Return the figures of an operation and a size class, None for all; None where the run has none."""
    section = _section(statistics, operation)
    return _line(section, size_class) if section else None


def _section(statistics: RunStatistics, operation: str | None) -> Section | None:
    for section in statistics.sections:
        if (section.operation.name if section.operation else None) == operation:
            return section
    return None


def _line(section: Section, size_class: str | None) -> Line | None:
    return next((line for line in section.lines if line.size_class == size_class), None)
