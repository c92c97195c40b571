"""The sections of a report: the figures of an operation, a line for each of its size classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ssbench.operations import OPERATIONS, Operation
from ssbench.statistics.confidence import Interval
from ssbench.statistics.due import Due
from ssbench.statistics.figures import Figures, intervals, merge_figures, rates
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.parts import Parts
from ssbench.statistics.timeline import Window
from ssbench.statistics.within import Within


@dataclass(frozen=True, slots=True)
class Line:
    """The figures of one size class of an operation, or of all of them (``size_class`` is None).

    ``count``, ``failed``, ``moved`` and the rates are as in :class:`Section`. The intervals (95 %) of the
    rates are None of runs that were too short, and of older formats. ``due`` is what is known of operations
    that were due in an open loop, ``last_attempt`` what the last attempts took, without connecting.
    """

    size_class: str | None
    first_byte: Latencies
    last_byte: Latencies
    count: int
    failed: int
    moved: int
    requests_per_second: float
    moved_per_second: float
    rate_interval: Interval | None
    moved_interval: Interval | None
    due: Due
    last_attempt: Latencies


@dataclass(frozen=True, slots=True)
class Section:
    """The figures of an operation, or of all of them (``operation`` is None).

    ``lost`` counts operations whose worker vanished; they are neither in ``count`` nor in ``errors``.
    ``requests_per_second`` is infinite where no time passed. ``resent`` counts requests that were
    sent again because a kept connection had gone stale; they are no retries. ``held_up`` are the
    latencies that are in no other figure, because a worker stood still. ``within`` is what ended
    in the window of the run. ``moved`` is bytes of body, all that successes moved, and
    ``moved_per_second`` those of the window a second. Files of ssbench 0.x have rates of their own.
    """

    operation: Operation | None
    count: int
    errors: int
    lost: int
    retries: int
    requests_per_second: float
    lines: tuple[Line, ...]
    resent: int
    parts: Parts
    held_up: Latencies
    within: Within
    moved: int
    moved_per_second: float

    @property
    def failed(self) -> int:
        """Operations that did not succeed, lost ones too."""
        return self.errors + self.lost

    @property
    def rate_interval(self) -> Interval | None:
        """The interval of ``requests_per_second``."""
        return self.lines[0].rate_interval

    @property
    def due(self) -> Due:
        """What is known of operations that were due in an open loop."""
        return self.lines[0].due

    @property
    def retry_rate(self) -> float:
        """Retries, those of failures too, for each hundred successes; 0 without any."""
        return 100 * self.retries / self.count if self.count else 0.0


def sections_of(
    leaves: Mapping[tuple[int, ...], Figures], names: Sequence[str], window: Window | None
) -> Iterator[Section]:
    """Yield the section of all operations together, then that of each that has results.

    ``leaves`` are figures by operation and size class, ``names`` those of the size classes.
    """
    yield _section(None, leaves, names, window)
    for operation in OPERATIONS.drawn:
        own = {key: figures for key, figures in leaves.items() if key[0] == operation.code}
        if own:
            yield _section(operation, own, names, window)


def _section(
    operation: Operation | None,
    leaves: Mapping[tuple[int, ...], Figures],
    names: Sequence[str],
    window: Window | None,
) -> Section:
    """Return the section of some groups, which are keyed by operation and size class."""
    classes: dict[int, list[Figures]] = {}
    for (_, size_class), figures in leaves.items():
        classes.setdefault(size_class, []).append(figures)
    total = merge_figures(leaves.values())
    by_class: dict[str | None, Figures] = {None: total}
    for size_class in sorted(classes):
        by_class[names[size_class]] = merge_figures(classes[size_class])
    rate, moved_rate = rates(total, window)
    return Section(
        operation=operation,
        count=total.count,
        errors=total.errors,
        lost=total.lost,
        retries=total.retries,
        requests_per_second=rate,
        lines=tuple(
            Line(
                name,
                figures.first_byte,
                figures.last_byte,
                figures.count,
                figures.failed,
                figures.moved,
                *rates(figures, window),
                *intervals(figures, window),
                figures.due,
                figures.last_attempt,
            )
            for name, figures in by_class.items()
        ),
        resent=total.resent,
        parts=total.parts,
        held_up=total.held_up,
        within=total.within,
        moved=total.moved,
        moved_per_second=moved_rate,
    )
