"""Conditions (:mod:`ssbench.scenario.conditions`) against the numbers of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import msgspec

from ssbench.document.gates import GateResult
from ssbench.document.units import Unit
from ssbench.scenario.conditions import Condition, parse_condition
from ssbench.statistics.certainty import judge_certainty
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.sections import FiguresSection, SectionLine

#: Conditions that cannot be read are cut to this many characters.
_MAX_CHARACTERS = 200


class ConditionJudgment(msgspec.Struct, frozen=True):
    """A condition under which a run fails, what came, and whether the run fails by that.

    ``value`` is None where the run has no such figure. That fails, because it is not known to be good; so
    does a condition of a scenario that a later version of ssbench has written and this one cannot read.
    ``most`` is more than ``value`` where this is a lower bound. ``count`` is how many results there are, and
    ``enough`` how many would decide, where it is undecided and these can be estimated. ``few`` is whether
    they are fewer than reports show the figure of (:attr:`~ssbench.document.figures.Figure.needs`).
    """

    condition: Condition
    value: float | None
    result: GateResult
    most: float | None = None
    count: int | None = None
    enough: float | None = None
    few: bool = False

    @property
    def failed(self) -> bool:
        """Whether the run fails by it."""
        return self.result is GateResult.FAILED

    @property
    def undecided(self) -> bool:
        """Whether the run is not enough to tell."""
        return self.result is GateResult.UNDECIDED

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
        return f"{came}; about {_round_up(self.enough):,} would decide"


def judge_conditions(
    statistics: RunStatistics, conditions: Iterable[Condition]
) -> tuple[ConditionJudgment, ...]:
    """Judge each condition; none of them may be a change."""
    return tuple(_make_judgment(statistics, condition) for condition in conditions)


def _make_judgment(statistics: RunStatistics, condition: Condition) -> ConditionJudgment:
    """Judge by what is certain of the figure: see :mod:`ssbench.statistics.certainty`."""
    if condition.group is not None:
        own = statistics.group(condition.group)
        if own is None:
            return ConditionJudgment(condition, None, GateResult.FAILED)
        statistics = own.numbers
    line, found = find_condition_line(statistics, condition), figure_value(statistics, condition)
    if line is None or found is None:
        return ConditionJudgment(condition, None, GateResult.FAILED)
    row = condition.row
    most = found
    if row.measured_most is not None:
        most = max(found, row.most(line, statistics) or found)
    known = judge_certainty(statistics, line, condition, found, most)
    holds, fails = (known.above, known.below) if condition.relation[0] == ">" else (known.below, known.above)
    result = GateResult.FAILED if holds else GateResult.PASSED if fails else GateResult.UNDECIDED
    count = row.times(line).count if row.times else row.results(line, statistics)
    few = not row.is_supported(line, statistics)
    return ConditionJudgment(condition, found, result, most, count, known.enough, few)


def _round_up(number: float) -> int:
    """Return a number of operations to two digits, no less than it is."""
    step: int = 10 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1)
    return math.ceil(number / step) * step


def judge_run(statistics: RunStatistics, more: Iterable[Condition] = ()) -> tuple[ConditionJudgment, ...]:
    """Judge the conditions of the run's scenario, and more."""
    conditions = {condition.text: condition for condition in (*_scenario_conditions(statistics), *more)}
    return judge_conditions(statistics, conditions.values())


def _scenario_conditions(statistics: RunStatistics) -> Iterator[Condition]:
    for text in statistics.run.scenario.fail_if:
        try:
            yield parse_condition(text, grouped=True)
        except ValueError:
            shown = repr(text[:_MAX_CHARACTERS])
            yield Condition(None, None, figure="", relation=">", limit=0.0, unit=Unit.COUNT, text=shown)


def figure_value(statistics: RunStatistics, condition: Condition) -> float | None:
    """Return the figure that a condition names, in its unit; None where the run has none.

    Of a change it is the figure itself, in the unit that it has without one.
    """
    line = find_condition_line(statistics, condition)
    if line is None or not condition.figure:
        return None
    row = condition.row
    found = row.measured(line, statistics)
    if found is None or condition.unit is not Unit.SHARE or row.whole is None:
        return None if found is None else float(found)
    whole = row.whole(line, statistics)
    return found / whole if whole else None


def find_condition_line(statistics: RunStatistics, condition: Condition) -> SectionLine | None:
    """Return the figures that a condition is about; None where the run has none."""
    return find_line(statistics, condition.operation, condition.size_class)


def find_line(statistics: RunStatistics, operation: str | None, size_class: str | None) -> SectionLine | None:
    """Return the figures of an operation and a size class, None for all; None where the run has none."""
    section = _find_section(statistics, operation)
    return _find_class_line(section, size_class) if section else None


def _find_section(statistics: RunStatistics, operation: str | None) -> FiguresSection | None:
    for section in statistics.sections:
        if (section.operation.name if section.operation else None) == operation:
            return section
    return None


def _find_class_line(section: FiguresSection, size_class: str | None) -> SectionLine | None:
    return next((line for line in section.lines if line.size_class == size_class), None)
