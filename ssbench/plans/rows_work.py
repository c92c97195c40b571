"""Runs that are rows of one table: those of a suite, and phases one after the other."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ssbench.base.errors import ExitCode
from ssbench.comparison.change import MIN_RUNS_FOR_WORD, NOISE_SHARE
from ssbench.comparison.run_table import check_sides, name_row_without
from ssbench.comparison.suite_report import SuiteFindings, judge_suite
from ssbench.comparison.suite_rows import KeptRun, SuiteRow, compare_suites, make_kept_run
from ssbench.document.columns import format_plural
from ssbench.document.units import format_latency, format_number
from ssbench.plans.plan_rules import GridRule
from ssbench.plans.plan_work import Conclusion, GridWork, PlanSide, find_row_shortage
from ssbench.reports.products import Product
from ssbench.run.bench_options import RunOptions, SuitePlace
from ssbench.run.plan import DoneTrial, PlanCell, PlanEnd
from ssbench.scenario.model import Scenario
from ssbench.scenario.suite_file import GroupCost, Suite, list_container_bases

_log = logging.getLogger(__name__)

#: Writes the page of a stat file for a row of this name, and returns its address in the page of the table;
#: empty where it cannot be written.
PageWriter: TypeAlias = Callable[[str, str], str]


class RowsWork(GridWork[KeptRun]):
    """Runs that are rows of one table."""

    name = "Suite"
    product = Product.SUITE

    def __init__(
        self, rule: GridRule[KeptRun], table: SuiteFindings, pause: float, page_writer: PageWriter | None
    ) -> None:
        super().__init__(rule, pause)
        self._table = table  # without rows
        self._page_writer = page_writer
        self._costs: Mapping[str, tuple[GroupCost, ...]] = {}  # by rows

    def forecast(self) -> str:
        """Return how long it will take, in words."""
        return f"{format_plural(len(self.rule.cells), 'row')}, {super().forecast()}"

    def say(self, done: Sequence[DoneTrial[KeptRun]]) -> None:
        """Log the result of the last run in one line."""
        trial, found = done[-1].trial, done[-1].kept.figures.figures
        rate = format_number(found["rate"].value) if "rate" in found else "no"
        p99 = f", p99 {format_latency(found['p99'].value)}" if "p99" in found else ""
        failed = "".join(f"; {reason}" for reason in done[-1].kept.reasons[:1])
        number = f", round {trial.number}" if trial.cell.is_counted else ""
        _log.info("%s%s: %s ops/s%s%s", trial.cell.row, number, rate, p99, failed)

    def conclude(self, end: PlanEnd[KeptRun], took: str) -> Conclusion[Any]:
        """Return what is known; nothing where no run was made, which leaves files of earlier calls alone."""
        if not end.done:
            return Conclusion(self.product, None, end.code)
        found = self._make_findings(end, took)
        return Conclusion(Product.SUITE, found, judge_suite(found).exit_code)

    def _make_findings(self, end: PlanEnd[KeptRun], took: str) -> SuiteFindings:
        """Return the table of all runs that are known."""
        rows = [
            SuiteRow(
                cell.row,
                tuple(
                    replace(each.kept, file=str(each.path), round=each.trial.number)
                    for each in end.done
                    if each.trial.cell is cell and each.ending_code is not ExitCode.INTERRUPTED
                ),
                store=cell.options.store or "",
                skipped=end.skipped.get(cell.name, ""),
                words=_get_words(cell),
                costs=self._costs.get(cell.row, ()),
            )
            for cell in self.rule.cells
        ]
        if self._page_writer is not None:
            rows = [self._write_page(row, cell) for row, cell in zip(rows, self.rule.cells, strict=True)]
        undecided = self.rule.cells[0].options.undecided
        return replace(
            self._table, rows=tuple(rows), why=end.why, code=end.code, took=took, undecided=undecided
        )

    def _write_page(self, row: SuiteRow, cell: PlanCell) -> SuiteRow:
        """Write the page of one of the runs of a row, and return the row with it."""
        run = row.choose_typical_run()
        if run is None or self._page_writer is None:
            return row
        return replace(row, page=self._page_writer(run.file, cell.name))


class SuiteWork(RowsWork):
    """The runs of a suite."""

    def __init__(
        self,
        suite: Suite,
        cells: Sequence[PlanCell],
        pause: float,
        page_writer: PageWriter | None,
        *,
        stores: Mapping[str, str] | None = None,
        between: str = "",
    ) -> None:
        if between:  # before the runs: they may take hours
            check_sides([*map(_get_words, cells)], between)
        rule = GridRule(cells, suite.rounds, make_kept_run, in_turn=suite.in_turn)
        table = SuiteFindings(
            suite.name,
            (),
            suite.rounds,
            in_turn=suite.in_turn,
            scale="" if suite.scale == 1 else str(suite.scale),
            left_out=suite.left_out,
            between=between,
        )
        super().__init__(rule, table, pause, page_writer)
        self._suite = suite
        self._costs = {each.name: each.costs for each in suite.variants}
        self._stores = stores  # what --store says of each; None: the objects of the suite go with their store

    def find_shortage(self) -> str:
        """Return why values of a key, or costs of groups, will have no verdict; empty if there may be one."""
        if any(self._costs.values()) and self._table.rounds < MIN_RUNS_FOR_WORD:
            needed = f"what a group costs the others needs {MIN_RUNS_FOR_WORD} rounds or more"
            return f"--rounds {self._table.rounds}: a verdict on {needed}"
        key, own = self._table.between, [(cell.row, _get_words(cell)) for cell in self.rule.cells]
        names = [name_row_without(name, words, key) for name, words in own if key in words]
        compared = len(names) - len({*names})
        return find_row_shortage(compared, self._table.rounds, "row", "--rounds") if names else ""

    def say_files(self, done: Sequence[DoneTrial[KeptRun]], program: str) -> None:
        """Log where the results are, and how to delete the objects."""
        super().say_files(done, program)
        if self.rule.cells[0].options.noop or self._stores is None:
            return
        commands = dict.fromkeys(
            _write_deletion(program, base, self._stores.get(store, ""))
            for store, bases in list_container_bases(self._suite).items()
            for base in bases
        )
        _log.info("Delete the objects of the suite with: %s", "; ".join(commands))


#: The ways to run each phase: one, or the two of ``--versus``.
PhaseSides = tuple[str, Sequence[PlanSide]]


class PhasesWork(RowsWork):
    """The runs of ``--phases``: a row for each, in rounds, of one way to run or in turn of two."""

    name = "Phases"

    def __init__(
        self, phases: Sequence[PhaseSides], rounds: int | None, pause: float, page_writer: PageWriter | None
    ) -> None:
        self._two = len(phases[0][1]) > 1
        self.product = Product.SUITES if self._two else Product.SUITE
        cells = [
            PlanCell(
                f"{'ab'[place]}.{phase}" if self._two else phase,
                side.scenario,
                side.options,
                row=phase,
                side="ab"[place] if self._two else "",
                is_counted=rounds is not None,
            )
            for phase, sides in phases
            for place, side in enumerate(sides)
        ]
        self._shortage = find_row_shortage(len(phases), rounds or 1, "phase") if self._two else ""
        table = SuiteFindings(phases[0][1][0].scenario.name, (), rounds or 1, kind=self.name)
        super().__init__(GridRule(cells, rounds or 1, make_kept_run), table, pause, page_writer)

    def find_shortage(self) -> str:
        """Return why two ways to run will have no verdict; empty where they may have one."""
        return self._shortage

    def conclude(self, end: PlanEnd[KeptRun], took: str) -> Conclusion[Any]:
        """Return what is known, of two ways to run what changed."""
        if not self._two or not end.done:
            return super().conclude(end, took)
        found = self._make_findings(end, took)
        code = judge_suite(found).exit_code
        if not any(one.runs and two.runs for one, two in zip(found.rows[::2], found.rows[1::2], strict=True)):
            return Conclusion(self.product, None, code)
        sides = [(f"{found.name} ({name})", found.rows[place::2]) for place, name in enumerate("ab")]
        changes = compare_suites(sides[0], sides[1], NOISE_SHARE)
        return Conclusion(self.product, changes, code)


def _write_deletion(program: str, base: str, store: str) -> str:
    """Return the command that deletes the objects of a suite in a store: a URL, or @FILE; "": the account."""
    command = f"{program} cleanup-containers --container-base {shlex.quote(base)}"
    if store.startswith("@"):
        file = store[1:] if "/" in store else f"./{store[1:]}"
        return f"(set -a; . {shlex.quote(file)}; {command})"
    return f"{command} -S {shlex.quote(store)}" if store else command


def _get_words(cell: PlanCell) -> Mapping[str, str]:
    """Return what the name of a row says of each key that varies."""
    place = cell.options.suite_place
    return {} if place is None else place.row_words


def make_suite_cells(suite: Suite, options: RunOptions, scenarios: Sequence[Scenario] = ()) -> list[PlanCell]:
    """Return the ways to run of a suite; ``scenarios`` are used in place of those of its variants."""
    return [
        PlanCell(
            each.file_name,
            scenario,
            replace(
                options, suite_place=SuitePlace(suite.name, each.name, row_words=each.words), store=each.store
            ),
            row=each.name,
            may_be_skipped=True,
        )
        for each, scenario in zip(
            suite.variants, scenarios or [each.scenario for each in suite.variants], strict=True
        )
    ]
