"""``run-scenario --repeat N``: the same run several times, and what differs between them.

With ``--versus OPTIONS`` there are two ways to run, which take turns over the same workers.
"""

from __future__ import annotations

import argparse
import copy
import logging
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

from ssbench.base import interruption
from ssbench.base.errors import ExitCode, StatFileError, UsageError
from ssbench.cli import option_table, run_report, settings
from ssbench.cli.options import parse_label
from ssbench.cli.output_file import make_view, try_to_write_output
from ssbench.cli.own_program import quote_own_command
from ssbench.cli.parser import Parser
from ssbench.comparison.compare import compare_runs
from ssbench.comparison.run_figures import RunFigures, make_run_figures
from ssbench.comparison.sides import SidedRun, compare_sided, make_sided_run
from ssbench.document.elements import View
from ssbench.document.gates import choose_worst_code
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.results.reading import open_results
from ssbench.run.bench import Bench
from ssbench.run.benchmark_run import RunOutcome
from ssbench.run.options import RunOptions
from ssbench.run.series import Series
from ssbench.scenario.model import Scenario
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import RunVerdict, verdict_of
from ssbench.statistics.summary import summarize

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
            codes.append(run_report.choose_final_code(_keep_run(outcome, number, runs, reduction), outcome))
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
    run_report.log_thresholds(found, in_report=False)
    return found


# -- Runs in turn ----------------------------------------------------------------------------------


#: What both sides share, or what would make more than two of them.
_SHARED_OPTIONS = ("ab", "repeat", "pause", "versus", "until", "local_swift", "keep_objects", "seed")


class _VersusParser(Parser):
    """A parser of options within an option."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"--versus: {message}")


def parse_second_side(arguments: argparse.Namespace) -> argparse.Namespace:
    """Return the options of the second side; raises UsageError.

    They are those of the command line, but for what ``--versus`` names.
    """
    if arguments.ab:
        raise UsageError("--ab compares two sides within each run; leave out --versus")
    settings.refuse_options(
        arguments,
        "--versus is for runs of two kinds",
        "--metrics-port",
        "--metrics-push",
        "--otlp",
        "--statsd",
    )
    try:
        words = shlex.split(arguments.versus)
    except ValueError as error:
        raise UsageError(f"--versus: {error}") from None
    parser = _VersusParser(prog="--versus", add_help=False)
    parser.add_argument("-f", "--scenario-file")
    parser.add_argument("--label", type=parse_label)
    option_table.add_load_arguments(parser)
    option_table.add_request_arguments(parser)
    parser.add_opposites()
    other = copy.copy(arguments)
    del other.given
    found, unknown = parser.parse_known_args(words, other)
    if unknown:
        raise UsageError(
            f"--versus: {unknown[0]} is no option that can differ: a scenario (-f), load, requests, --label"
        )
    for name in _SHARED_OPTIONS:
        if getattr(found, name) != getattr(arguments, name):
            raise UsageError(f"--versus: --{name.replace('_', '-')} is for both sides")
    if "op_count" in found.given and "run_seconds" not in found.given:
        found.run_seconds = None  # of the first side, which would win
    found.given |= arguments.given
    found.set_elsewhere = arguments.set_elsewhere
    return found


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What is run several times: the only way to run, or one of the two of ``--versus``."""

    arguments: argparse.Namespace
    scenario: Scenario
    options: RunOptions


def run_in_turn(
    plans: Sequence[RunPlan],
    repetition: Repetition,
    bench: Bench,
    once: Callable[[Series, RunPlan, str, int], RunOutcome],
) -> ExitCode:
    """Run one plan several times, or two in turn; return the worst exit code.

    ``once`` carries out a plan as the run of a series, which has a name and a number from 1.
    """
    # In a pair of runs both ways draw the same operations.
    seed = plans[0].options.seed
    seed = secrets.randbits(32) if seed is None else seed
    kinds = ("a", "b") if len(plans) > 1 else ("run",)
    series = [
        Series(bench, replace(plan.options, seed=seed), kind) for plan, kind in zip(plans, kinds, strict=True)
    ]
    if len(plans) > 1:

        def in_turn(number: int) -> RunOutcome:
            side, pair = find_side_and_pair(number)
            return once(series[side], plans[side], str(pair), pair)

        code = repeat_run(in_turn, replace(repetition, count=2 * repetition.count), _make_versus_reduction())
        if all(each.files for each in series):
            before, after = (
                _make_file_pattern(each.files, f".{kind}-") for each, kind in zip(series, kinds, strict=True)
            )
            _log.info("Compare them again with: %s compare %s --to %s", quote_own_command(), before, after)
        return code

    def again(number: int) -> RunOutcome:
        return once(series[0], plans[0], str(number), number)

    if plans[0].options.sides:
        return repeat_run(again, repetition, make_sides_reduction())
    return repeat_run(again, repetition, make_group_reduction())


def _make_file_pattern(files: Sequence[Path], kind: str) -> str:
    """Return the pattern of a shell that matches the files of a series."""
    name, found, _ = str(files[0]).rpartition(kind)
    return f"{shlex.quote(name + found)}*.stat.gz"


def find_side_and_pair(number: int) -> tuple[int, int]:
    """Return the side (0 or 1) and the pair (from 1) of a run, which are numbered from 1: A B, B A, A B."""
    pair = (number + 1) // 2
    return (number + pair) % 2, pair


def _make_versus_reduction() -> Reduction[RunFigures]:
    """Return the reduction for the runs of both sides: how they compare."""

    write = products.find_writer(Product.COMPARISON, "text")

    def summary(found: Mapping[int, RunFigures], view: View) -> str:
        before, after = (
            [run for number, run in found.items() if find_side_and_pair(number)[0] == side] for side in (0, 1)
        )
        return write(compare_runs(before, after), view) if before and after else ""

    return Reduction(make_run_figures, summary)
