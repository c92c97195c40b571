"""What reports can be asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ssbench.document.elements import View
from ssbench.document.gates import Undecided
from ssbench.scenario.conditions import Condition
from ssbench.statistics.run_statistics import RunStatistics


@dataclass(frozen=True, slots=True)
class ReportOptions(View):
    """``percentile`` is the one to show in the table, above 0 and up to 100; ``more`` come after it.

    With ``verbose`` the summary has size classes, workers and storage URLs. ``fail_if`` are conditions
    besides those of the scenario, ``undecided`` what one of them counts as that is undecided (None: as the
    run was asked for). ``compare_sides`` compares the two sides of a run by what is known of earlier ones
    (None: by the run alone).
    """

    percentile: float = 95.0
    more: tuple[float, ...] = ()
    fail_if: tuple[Condition, ...] = ()
    undecided: Undecided | None = None
    compare_sides: Callable[[RunStatistics], Any] | None = None
