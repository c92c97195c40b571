"""The sections of a report: the figures of an operation, a line for each of its size classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ssbench.scenario.operation import Operation
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.statistics.confidence import Interval
from ssbench.statistics.figures import Figures, intervals, merge_figures, rates, without_seconds
from ssbench.statistics.timeline import Window


class RatedFigures(Figures, frozen=True):
    """Figures with rates, and with their 95 % intervals.

    ``requests_per_second`` is infinite where no time passed. ``moved_per_second`` is bytes of body. Files of
    ssbench 0.x have rates of their own. ``window`` is that of the intervals, None where there are none.
    """

    requests_per_second: float
    moved_per_second: float
    window: Window | None

    @property
    def rate_interval(self) -> Interval | None:
        """The interval of operations a second; None of runs that were too short and of old files.

        It is found when it is asked for: a run may have thousands of lines, of which few are shown.
        """
        return intervals(self, self.window)[0]

    @property
    def moved_interval(self) -> Interval | None:
        """The interval of bytes a second, as :attr:`rate_interval`."""
        return intervals(self, self.window)[1]

    @property
    def retry_rate(self) -> float:
        """Retries, those of failures too, for each hundred successes; 0 without any."""
        return 100 * self.counted["retries"] / self.count if self.count else 0.0


class Line(RatedFigures, frozen=True):
    """The figures of one size class of an operation, or of all of them (``size_class`` is None)."""

    size_class: str | None


class Section(RatedFigures, frozen=True):
    """The figures of an operation, or of all of them (``operation`` is None).

    ``lines`` begins with the same figures; a line for each size class follows.
    """

    operation: Operation | None
    lines: tuple[Line, ...]


def sections_of(
    leaves: Mapping[tuple[int, ...], Figures],
    names: Sequence[str],
    window: Window | None,
    *,
    pooled: bool = False,
    total: Figures | None = None,
) -> Iterator[Section]:
    """Yield the section of all operations together, then that of each that has results.

    ``leaves`` are figures by operation and size class, ``names`` those of the size classes, ``total`` all of
    them together where that is known already. Figures of
    several stages together (``pooled``) have no intervals.
    """
    yield _section(None, leaves, total or merge_figures(leaves.values()), names, window, pooled=pooled)
    for operation in OPERATIONS.drawn:
        own = {key: figures for key, figures in leaves.items() if key[0] == operation.code}
        if own:
            yield _section(operation, own, merge_figures(own.values()), names, window, pooled=pooled)


def without_rate_intervals(section: Section) -> Section:
    """Return a section without the intervals of its rates; those of latencies stay."""
    return replace(section, window=None, lines=tuple(replace(line, window=None) for line in section.lines))


def _section(
    operation: Operation | None,
    leaves: Mapping[tuple[int, ...], Figures],
    total: Figures,
    names: Sequence[str],
    window: Window | None,
    *,
    pooled: bool,
) -> Section:
    """Return the section of some groups, which are keyed by operation and size class."""
    classes: dict[int, list[Figures]] = {}
    for (_, size_class), figures in leaves.items():
        classes.setdefault(size_class, []).append(figures)
    rated: dict[str | None, dict[str, Any]] = {None: _rated(total, window, pooled=pooled)}
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
    if pooled:
        figures = without_seconds(figures)
    return {
        **{name: getattr(figures, name) for name in Figures.__struct_fields__},
        "requests_per_second": rate,
        "moved_per_second": moved_rate,
        "window": None if pooled else window,
    }
