"""``run-scenario --repeat N``: the same run several times, and what differs between them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ssbench.base import interruption
from ssbench.base.errors import ExitCode, StatFileError
from ssbench.cli import thresholds
from ssbench.cli.output_file import make_view, try_to_write_output
from ssbench.comparison.figures import RunFigures, make_run_figures
from ssbench.comparison.sides import SidedRun, compare_sided, make_sided_run
from ssbench.document.elements import View
from ssbench.document.gates import choose_worst_code
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.results.formats import open_results
from ssbench.run import RunOutcome
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize
from ssbench.statistics.verdict import RunVerdict, verdict_of

_log = logging.getLogger(__name__)

_Reduced = TypeVar("_Reduced")


@dataclass(frozen=True, slots=True)
class Repetition:
    """How often, with how many seconds between two runs, and whether the summary is printed."""

    count: int
    pause: float
    prints: bool


@dataclass(frozen=True, slots=True)
class Reduction(Generic[_Reduced]):
    """What is kept of each run, from its statistics by some fields and its name; and the summary of all.

    ``summary`` gets what was kept by the numbers of the runs.
    """

    keep: Callable[[RunStatistics, str], _Reduced]
    summary: Callable[[Mapping[int, _Reduced], View], str]


def make_group_reduction() -> Reduction[RunFigures]:
    """Return the reduction for runs of one kind: by how much they differ."""
    write = products.find_writer(Product.REPEATED, "text")
    return Reduction(make_run_figures, lambda found, view: write([*found.values()], view))


def make_sides_reduction() -> Reduction[SidedRun]:
    """Return the reduction for runs with two sides: how the sides compare."""
    write = products.find_writer(Product.COMPARISON, "text")
    return Reduction(make_sided_run, lambda found, view: write(compare_sided([*found.values()]), view))


def repeat_run(
    run: Callable[[int], RunOutcome], repetition: Repetition, reduction: Reduction[_Reduced]
) -> ExitCode:
    """Carry out runs, which are numbered from 1, with the same fleet.

    Returns the worst of their exit codes. A run that ends early ends the group.
    """
    runs: dict[int, _Reduced] = {}
    codes: list[ExitCode] = []
    try:
        for number in range(1, repetition.count + 1):
            if number > 1:
                _log.info("Waiting for %g s before the next run", repetition.pause)
                interruption.sleep_interruptibly(repetition.pause)
            _log.info("Run %d of %d", number, repetition.count)
            outcome = run(number)
            codes.append(thresholds.choose_final_code(_keep_run(outcome, number, runs, reduction), outcome))
            if outcome.ended_early:
                break
    except KeyboardInterrupt:
        codes.append(ExitCode.INTERRUPTED)
    if len(runs) < repetition.count:
        _log.warning("%d of %d runs ended as they should", len(runs), repetition.count)
    if repetition.prints and len(runs) > 1:
        written = try_to_write_output(
            Path("-"), lambda out: out.write(reduction.summary(runs, make_view(out)))
        )
        codes.append(ExitCode.OK if written else ExitCode.FAILED)
    return choose_worst_code(codes)


def _keep_run(
    outcome: RunOutcome, number: int, runs: dict[int, _Reduced], reduction: Reduction[_Reduced]
) -> RunVerdict | None:
    """Keep what is needed of a run that did not end early, and judge it; None where it cannot be read."""
    if outcome.path is None:
        return None
    _log.info("Results saved to %s", outcome.path)
    try:
        statistics = summarize(open_results(outcome.path))
    except StatFileError as error:
        _log.warning("%s", error)
        return None
    if not outcome.ended_early:
        name = outcome.path.name.removesuffix(".gz").removesuffix(".stat")
        runs[number] = reduction.keep(statistics, name)
    found = verdict_of(statistics)
    thresholds.log_thresholds(found, in_report=False)
    return found
