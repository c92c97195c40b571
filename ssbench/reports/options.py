"""What reports can be asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """``percentile`` is the one to show in the table, above 0 and up to 100; ``more`` stand behind it."""

    percentile: float = 95.0
    more: tuple[float, ...] = ()
