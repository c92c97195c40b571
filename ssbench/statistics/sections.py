"""The sections of a report: the figures of an operation, a line for each of its size classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ssbench.scenario.operation import OperationKind
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.statistics.confidence import Interval
from ssbench.statistics.figures import (
    CountedFigures,
    drop_seconds,
    estimate_rate_intervals,
    measure_rates,
    merge_figures,
)
from ssbench.statistics.timeline import Window


class RatedFigures(CountedFigures, frozen=True):
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
        return estimate_rate_intervals(self, self.window)[0]

    @property
    def moved_interval(self) -> Interval | None:
        """The interval of bytes a second, as :attr:`rate_interval`."""
        return estimate_rate_intervals(self, self.window)[1]

    @property
    def retry_rate(self) -> float:
        """Retries, those of failures too, for each hundred successes; 0 without any."""
        return 100 * self.counted["retries"] / self.count if self.count else 0.0


class SectionLine(RatedFigures, frozen=True):
    """The figures of one size class of an operation, or of all of them (``size_class`` is None)."""

    size_class: str | None


class FiguresSection(RatedFigures, frozen=True):
    """The figures of an operation, or of all of them (``operation`` is None).

    ``lines`` begins with the same figures; a line for each size class follows.
    """

    operation: OperationKind | None
    lines: tuple[SectionLine, ...]


def make_sections(
    leaves: Mapping[tuple[int, ...], CountedFigures],
    names: Sequence[str],
    window: Window | None,
    *,
    pooled: bool = False,
    total: CountedFigures | None = None,
) -> Iterator[FiguresSection]:
    """Yield the section of all operations together, then that of each that has results.

    ``leaves`` are figures by operation and size class, ``names`` those of the size classes, ``total`` all of
    them together where that is known already. Figures of
    several stages together (``pooled``) have no intervals.
    """
    yield _make_section(None, leaves, total or merge_figures(leaves.values()), names, window, pooled=pooled)
    for operation in OPERATIONS.drawn:
        own = {key: figures for key, figures in leaves.items() if key[0] == operation.code}
        if own:
            yield _make_section(operation, own, merge_figures(own.values()), names, window, pooled=pooled)


def drop_rate_intervals(section: FiguresSection) -> FiguresSection:
    """Return a section without the intervals of its rates; those of latencies stay."""
    return replace(section, window=None, lines=tuple(replace(line, window=None) for line in section.lines))


def _make_section(
    operation: OperationKind | None,
    leaves: Mapping[tuple[int, ...], CountedFigures],
    total: CountedFigures,
    names: Sequence[str],
    window: Window | None,
    *,
    pooled: bool,
) -> FiguresSection:
    """Return the section of some groups, which are keyed by operation and size class."""
    classes: dict[int, list[CountedFigures]] = {}
    for (_, size_class), figures in leaves.items():
        classes.setdefault(size_class, []).append(figures)
    rated: dict[str | None, dict[str, Any]] = {None: _rated_fields(total, window, pooled=pooled)}
    for size_class in sorted(classes):
        rated[names[size_class]] = _rated_fields(merge_figures(classes[size_class]), window, pooled=pooled)
    return FiguresSection(
        **rated[None],
        operation=operation,
        lines=tuple(SectionLine(**values, size_class=name) for name, values in rated.items()),
    )


def _rated_fields(figures: CountedFigures, window: Window | None, *, pooled: bool) -> dict[str, Any]:
    """Return the fields of figures with rates."""
    rate, moved_rate = measure_rates(figures, window)
    if pooled:
        figures = drop_seconds(figures)
    return {
        **{name: getattr(figures, name) for name in CountedFigures.__struct_fields__},
        "requests_per_second": rate,
        "moved_per_second": moved_rate,
        "window": None if pooled else window,
    }
