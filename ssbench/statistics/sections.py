"""The sections of a report: the figures of an operation, a line for each of its size classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ssbench.operation import Operation
from ssbench.operations import OPERATIONS
from ssbench.statistics.confidence import Interval
from ssbench.statistics.figures import Figures, intervals, merge_figures, rates, without_seconds
from ssbench.statistics.timeline import Window


@dataclass(frozen=True, slots=True)
class RatedFigures(Figures):
    """Figures with rates, and with their 95 % intervals, None of runs that were too short and of old files.

    ``requests_per_second`` is infinite where no time passed. ``moved_per_second`` is bytes of body. Files of
    ssbench 0.x have rates of their own.
    """

    requests_per_second: float
    moved_per_second: float
    rate_interval: Interval | None
    moved_interval: Interval | None

    @property
    def retry_rate(self) -> float:
        """Retries, those of failures too, for each hundred successes; 0 without any."""
        return 100 * self.retries / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class Line(RatedFigures):
    """The figures of one size class of an operation, or of all of them (``size_class`` is None)."""

    size_class: str | None


@dataclass(frozen=True, slots=True)
class Section(RatedFigures):
    """The figures of an operation, or of all of them (``operation`` is None).

    ``lines`` begins with the same figures, and goes on with a line for each size class.
    """

    operation: Operation | None
    lines: tuple[Line, ...]


def sections_of(
    leaves: Mapping[tuple[int, ...], Figures],
    names: Sequence[str],
    window: Window | None,
    *,
    pooled: bool = False,
) -> Iterator[Section]:
    """Yield the section of all operations together, then that of each that has results.

    ``leaves`` are figures by operation and size class, ``names`` those of the size classes. Figures of
    several stages together (``pooled``) have no intervals.
    """
    yield _section(None, leaves, names, window, pooled=pooled)
    for operation in OPERATIONS.drawn:
        own = {key: figures for key, figures in leaves.items() if key[0] == operation.code}
        if own:
            yield _section(operation, own, names, window, pooled=pooled)


def without_rate_intervals(section: Section) -> Section:
    """Return a section without the intervals of its rates; those of latencies stay."""
    lines = tuple(replace(line, rate_interval=None, moved_interval=None) for line in section.lines)
    return replace(section, rate_interval=None, moved_interval=None, lines=lines)


def _section(
    operation: Operation | None,
    leaves: Mapping[tuple[int, ...], Figures],
    names: Sequence[str],
    window: Window | None,
    *,
    pooled: bool,
) -> Section:
    """Return the section of some groups, which are keyed by operation and size class."""
    classes: dict[int, list[Figures]] = {}
    for (_, size_class), figures in leaves.items():
        classes.setdefault(size_class, []).append(figures)
    rated: dict[str | None, dict[str, Any]] = {
        None: _rated(merge_figures(leaves.values()), window, pooled=pooled)
    }
    for size_class in sorted(classes):
        rated[names[size_class]] = _rated(merge_figures(classes[size_class]), window, pooled=pooled)
    return Section(
        **rated[None],
        operation=operation,
        lines=tuple(Line(**values, size_class=name) for name, values in rated.items()),
    )


def _rated(figures: Figures, window: Window | None, *, pooled: bool) -> dict[str, Any]:
    """Return the fields of figures with rates."""
    rate, moved_rate = rates(figures, window)
    rate_interval, moved_interval = (None, None) if pooled else intervals(figures, window)
    if pooled:
        figures = without_seconds(figures)
    return {
        **{field.name: getattr(figures, field.name) for field in fields(Figures)},
        "requests_per_second": rate,
        "moved_per_second": moved_rate,
        "rate_interval": rate_interval,
        "moved_interval": moved_interval,
    }
