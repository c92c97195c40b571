"""Conditions (:mod:`ssbench.conditions`) against the numbers of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ssbench.conditions import Condition, parse
from ssbench.figures import Unit
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.sections import Line, Section

#: Conditions that cannot be read are cut to this many characters.
_MOST_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Judgment:
    """A condition under which a run fails, and what came; None where the run has no such figure.

    A figure that is not there fails: nobody can say that it was good. So does a condition of a scenario that
    a later version of ssbench has written and this one cannot read; it has no figure. ``few`` is the
    number of latencies of a percentile that rests on too few of them
    (:data:`~ssbench.statistics.latencies.MIN_BEYOND`), else None.
    """

    condition: Condition
    value: float | None
    few: int | None = None

    @property
    def failed(self) -> bool:
        """Whether the run fails by it."""
        return self.value is None or self.condition.holds(self.value)

    @property
    def text(self) -> str:
        """One line for people, without ``fail-if``."""
        if not self.condition.figure:
            came = "this version of ssbench cannot read it"
        else:
            came = "not measured" if self.value is None else self.condition.spell_measured(self.value)
        if self.few is not None:
            came += f", of {self.few:,} operations only"
        return f"{self.condition.text}: {'FAILED' if self.failed else 'ok'} ({came})"


def judge(statistics: RunStatistics, conditions: Iterable[Condition]) -> tuple[Judgment, ...]:
    """Return what came of each condition; none of them may be a change."""
    return tuple(
        Judgment(condition, value(statistics, condition), _few(statistics, condition))
        for condition in conditions
    )


def judge_run(statistics: RunStatistics, more: Iterable[Condition] = ()) -> tuple[Judgment, ...]:
    """Return what came of the conditions of the run's scenario, and of more."""
    conditions = {condition.text: condition for condition in (*_of_scenario(statistics), *more)}
    return judge(statistics, conditions.values())


def _of_scenario(statistics: RunStatistics) -> Iterator[Condition]:
    for text in statistics.run.scenario.fail_if:
        try:
            yield parse(text)
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
    section = _section(statistics, condition.operation)
    return _line(section, condition.size_class) if section else None


def _few(statistics: RunStatistics, condition: Condition) -> int | None:
    """Return how many latencies a percentile rests on, where those are too few."""
    line = line_of(statistics, condition)
    if line is None or not condition.figure:
        return None
    row = condition.row
    return None if row.is_supported(line, statistics) else row.results(line, statistics) or None


def _section(statistics: RunStatistics, operation: str | None) -> Section | None:
    for section in statistics.sections:
        if (section.operation.name if section.operation else None) == operation:
            return section
    return None


def _line(section: Section, size_class: str | None) -> Line | None:
    return next((line for line in section.lines if line.size_class == size_class), None)
