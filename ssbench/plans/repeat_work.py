"""Runs that are repeated, of one way to run or in turn of two."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ssbench.base.errors import choose_worst_code
from ssbench.comparison.change import MIN_RUNS_FOR_WORD
from ssbench.comparison.paired_sides import compare_sided
from ssbench.comparison.run_comparison import compare_runs
from ssbench.comparison.suite_rows import KeptRun, make_kept_run
from ssbench.plans.plan_rules import GridRule
from ssbench.plans.plan_work import Conclusion, GridWork, PlanSide, tabulate_trials
from ssbench.reports.products import Product
from ssbench.run.plan import DoneTrial, PlanCell, PlanEnd
from ssbench.run.verdict_messages import log_thresholds
from ssbench.scenario.user_groups import leave_out_group

_log = logging.getLogger(__name__)


class RepeatWork(GridWork[KeptRun]):
    """The runs of ``--repeat``: of one way to run, or in turn of the two of ``--versus``."""

    name = "Repetition"

    def __init__(self, sides: Sequence[PlanSide], count: int, pause: float) -> None:
        self._kinds = ("a", "b") if len(sides) > 1 else ("run",)
        self._has_sides = bool(sides[0].options.sides)
        cells = [
            PlanCell(kind, each.scenario, each.options, side=kind)
            for kind, each in zip(self._kinds, sides, strict=True)
        ]
        super().__init__(GridRule(cells, count, make_kept_run), pause)
        self._count = count
        self.product = Product.COMPARISON if len(cells) > 1 or self._has_sides else Product.REPEATED

    def find_shortage(self) -> str:
        """Return why two sides will have no verdict; empty where they may have one."""
        if self.product is not Product.COMPARISON or self._count >= MIN_RUNS_FOR_WORD:
            return ""
        return f"--repeat {self._count}: a verdict on two sides needs {MIN_RUNS_FOR_WORD} runs or more"

    def say(self, done: Sequence[DoneTrial[KeptRun]]) -> None:
        """Log where the results of the last run are, and what was judged."""
        last = done[-1]
        _log.info("Results saved to %s", last.path)
        log_thresholds(last.kept.verdict, in_report=False)

    def conclude(self, end: PlanEnd[KeptRun], took: str) -> Conclusion[Any]:
        """Return the summary of the runs that ended as they should; their worst code counts."""
        codes = [choose_worst_code([each.kept.verdict.exit_code, each.ending_code]) for each in end.done]
        code = choose_worst_code(codes)
        good = [each for each in end.done if each.ended_early is None]
        if len(good) < self.rule.count:
            _log.warning("%d of %d runs ended as they should", len(good), self.rule.count)
        table = tabulate_trials(self.rule, good).reduced(lambda kept: kept.run)
        runs = next(iter(table.rows.values()), [])
        found: Any = None
        if len(runs) > 1 and all(runs):
            found = compare_runs(runs[0], runs[1])
        elif len(runs) == 1 and len(runs[0]) > 1:
            sided = [each.kept.sided for each in good if each.kept.sided is not None]
            found = compare_sided(sided) if self._has_sides else runs[0]
        return Conclusion(self.product, found, code)

    def say_files(self, done: Sequence[DoneTrial[KeptRun]], program: str) -> None:
        """Log the command that compares both sides again."""
        if len(self._kinds) < 2:
            return
        files = {each.trial.cell.name: each.path for each in done}
        if len(files) == len(self._kinds):
            before, after = (_make_file_pattern(files[kind], f".{kind}-") for kind in self._kinds)
            _log.info("Compare them again with: %s compare %s --to %s", program, before, after)


def leave_out_side_group(side: PlanSide, group: str) -> PlanSide:
    """Return a way to run without one of the groups of users, and without waiting for figures of that group.

    Raises UsageError where the scenario has no such group, or no other one.
    """
    until = tuple(each for each in side.options.until if each.group != group)
    return PlanSide(leave_out_group(side.scenario, group), replace(side.options, until=until))


def _make_file_pattern(file: Path, kind: str) -> str:
    """Return the pattern of a shell that matches the files of a series."""
    name, found, _ = str(file).rpartition(kind)
    return f"{shlex.quote(name + found)}*.stat.gz"
