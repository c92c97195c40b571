"""Equal runs in turn, which say how much runs differ by themselves."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

from ssbench.base.errors import UsageError
from ssbench.comparison.equal_runs import MIN_EQUAL_RUNS, EqualRun, make_equal_run, measure_noise
from ssbench.comparison.noise_report import judge_noise
from ssbench.comparison.run_figures import ALL_KEY
from ssbench.document.units import format_number
from ssbench.plans.plan_rules import GridRule
from ssbench.plans.plan_work import Conclusion, GridWork, PlanSide
from ssbench.reports.products import Product
from ssbench.run.plan import RUN_OVERHEAD_SECONDS, DoneTrial, PlanCell, PlanEnd
from ssbench.scenario.model import Scenario

_log = logging.getLogger(__name__)

#: Runs of equal ones, unless the scenario or -r says otherwise; shorter ones have no intervals of their own.
EQUAL_RUN_SECONDS = 20.0
_SHORTEST_EQUAL_RUN = 10.0

#: So many pairs tell enough, so that runs may be as long as the scenario says.
_ENOUGH_PAIRS = 10


def choose_equal_runs(
    scenario: Scenario, minutes: float, pause: float, given: float | None = None, *, ends_early: bool = False
) -> tuple[float | None, int]:
    """Return how long each of some equal runs is (None: as its stages say), and how many pairs there are.

    Of runs that may end early (``--until``) it is the longest that leaves time for as many as are needed.
    Raises UsageError where too few fit into ``--minutes``.
    """
    budget = 60 * minutes + pause
    beside = RUN_OVERHEAD_SECONDS + pause
    longest = budget / (MIN_EQUAL_RUNS if ends_early else 2 * _ENOUGH_PAIRS) - beside
    seconds = given or scenario.run_seconds or EQUAL_RUN_SECONDS
    if given is None and not scenario.stages:
        seconds = math.floor(max(min(seconds, longest), min(seconds, _SHORTEST_EQUAL_RUN)))
    pairs = math.floor(budget / (2 * (seconds + beside)))
    if 2 * pairs < MIN_EQUAL_RUNS:
        raise UsageError(
            f"--minutes {minutes:g}: {2 * pairs} runs of {seconds:g} s do not tell how much runs"
            f" differ; {MIN_EQUAL_RUNS} or more do: give more minutes, or a shorter -r/--run-seconds"
        )
    return None if scenario.stages else float(seconds), pairs


class NoiseWork(GridWork[EqualRun]):
    """Equal runs in turn."""

    name = "Noise"
    product = Product.NOISE

    def __init__(self, side: PlanSide, pairs: int, pause: float, wanted: float) -> None:
        cells = [PlanCell(kind, side.scenario, side.options, side=kind) for kind in ("a", "b")]
        super().__init__(GridRule(cells, pairs, make_equal_run), pause)
        self._wanted = wanted

    def say(self, done: Sequence[DoneTrial[EqualRun]]) -> None:
        """Log the rate of the last run."""
        found = done[-1].kept.figures.rows.get(ALL_KEY, {}).get("rate")
        _log.info("Run %d: %s ops/s", len(done), "no" if found is None else format_number(found.value))

    def conclude(self, end: PlanEnd[EqualRun], took: str) -> Conclusion[Any]:
        """Return what is known of the runs that ended as they should."""
        runs = [each.kept for each in end.done if each.ended_early is None]
        if not runs:
            return Conclusion(Product.NOISE, None)
        found = measure_noise(runs, self._wanted, took=took)
        return Conclusion(Product.NOISE, found, judge_noise(found).exit_code)
