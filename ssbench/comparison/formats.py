"""A comparison as CSV, as JSON, and as JUnit XML for CI: cases for its verdict and for each condition."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from ssbench.base import record
from ssbench.base.measures import Moment
from ssbench.base.printable import escape_csv_cell
from ssbench.base.version import __version__
from ssbench.comparison.change import FigureChange
from ssbench.comparison.compare import Comparison
from ssbench.comparison.figures import FigureSample, RunFigures
from ssbench.comparison.verdict import ComparisonVerdict, judge_comparison
from ssbench.document.elements import View
from ssbench.document.gates import GateResult
from ssbench.reports.junit import JUnitCase, make_junit_suite
from ssbench.statistics.verdict import Outcome


def make_comparison_csv(comparison: Comparison, _view: View | None = None) -> str:
    """Return a line a figure, with values in seconds, operations or megabytes a second, and shares."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["Operation", "Size class", "Figure", *(_title(name) for name in FigureChange.__slots__)])
    for row in comparison.rows:
        for figure, change in row.changes.items():
            values = asdict(change).values()
            writer.writerow([row.operation, escape_csv_cell(row.size_class or ""), figure, *values])
    return out.getvalue()


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def make_comparison_junit(comparison: Comparison, _view: View | None = None) -> str:
    """Return the document; what is undecided is a case that was skipped."""
    said = judge_comparison(comparison)
    cases = [_junit_case(said)]
    for judged in comparison.conditions:
        text = f"{judged.came}{f'; it needs {judged.needs}' if judged.needs else ''}"
        failed = judged.result is GateResult.FAILED
        cases.append(
            JUnitCase(
                f"not {judged.condition}",
                ("threshold", text) if failed else None,
                text,
                f"undecided: {text}" if judged.undecided else "",
            )
        )
    words = [said.headline, *said.reasons, *(f"Warning: {warning}" for warning in comparison.warnings)]
    return make_junit_suite(f"{comparison.before} to {comparison.after}", cases, words)


def _junit_case(said: ComparisonVerdict) -> JUnitCase:
    failed = said.outcome is Outcome.FAILED
    undecided = said.outcome is Outcome.UNDECIDED
    return JUnitCase(
        "the verdict",
        (said.word.value, said.headline) if failed else None,
        said.headline,
        said.headline if undecided else "",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonReport(Comparison):
    """A comparison of runs, with its verdict.

    ``changes`` are keyed by figure, as conditions (``--fail-if``) have it: ``rate`` is operations a second,
    ``mb_per_s`` megabytes a second; latencies are in seconds, ``errors`` is a share of 1.
    """

    format: Literal["ssbench comparison"] = "ssbench comparison"
    version: Literal[2] = 2
    made_by: str = __version__
    verdict: ComparisonVerdict


def make_comparison_report(comparison: Comparison, *_: Any) -> str:
    """Return it as one JSON document."""
    own = {field.name: getattr(comparison, field.name) for field in fields(Comparison)}
    return record.format_json(ComparisonReport(**own, verdict=judge_comparison(comparison)))


class PlaceFigures(record.JsonRecord, frozen=True, kw_only=True):
    """The figures of an operation, or ``ALL``, and a size class (null: all of them), by their keys."""

    operation: str
    size_class: str | None
    figures: dict[str, FigureSample]


class FiguresOfRun(record.JsonRecord, frozen=True, kw_only=True):
    """The figures of a run, and the facts that it should share with runs that it is compared with."""

    name: str
    label: str | None
    started: Moment | None
    facts: dict[str, str]
    places: tuple[PlaceFigures, ...]
    warnings: tuple[str, ...]


class FiguresTable(record.JsonHead, frozen=True, kw_only=True):
    """The figures of many runs."""

    format: Literal["ssbench table"] = "ssbench table"
    version: Literal[1] = 1
    runs: tuple[FiguresOfRun, ...]


def make_figures_table(runs: Sequence[RunFigures], *_: Any) -> str:
    """Return the figures of many runs as one JSON document."""
    return record.format_json(FiguresTable(runs=tuple(map(_figures_of_run, runs))))


def _figures_of_run(run: RunFigures) -> FiguresOfRun:
    places = (
        PlaceFigures(operation=operation, size_class=size_class, figures=dict(figures))
        for (operation, size_class), figures in run.rows.items()
    )
    return FiguresOfRun(
        name=run.name,
        label=run.label or None,
        started=run.started,
        facts=dict(run.facts),
        places=tuple(places),
        warnings=run.warnings,
    )
