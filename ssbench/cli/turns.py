"""``run-scenario --repeat N``, and ``--versus OPTIONS``: two ways to run, in turn, over the same workers."""

from __future__ import annotations

import argparse
import copy
import logging
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from ssbench.base.errors import ExitCode, UsageError
from ssbench.cli import load_options, option_table, repeat, unfit
from ssbench.cli.invocation import quote_own_command
from ssbench.cli.options import parse_label
from ssbench.cli.parser import Parser
from ssbench.cli.repeat import Reduction, Repetition
from ssbench.comparison.compare import compare_runs
from ssbench.comparison.figures import RunFigures, make_run_figures
from ssbench.document.elements import View
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.run import Bench, RunOptions, RunOutcome
from ssbench.run.series import Series
from ssbench.scenario.model import Scenario

_log = logging.getLogger(__name__)

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
    unfit.refuse_options(
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
    load_options.add_load_arguments(parser)
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

        code = repeat.repeat_run(
            in_turn, replace(repetition, count=2 * repetition.count), _make_versus_reduction()
        )
        if all(each.files for each in series):
            before, after = (
                _make_file_pattern(each.files, f".{kind}-") for each, kind in zip(series, kinds, strict=True)
            )
            _log.info("Compare them again with: %s compare %s --to %s", quote_own_command(), before, after)
        return code

    def again(number: int) -> RunOutcome:
        return once(series[0], plans[0], str(number), number)

    if plans[0].options.sides:
        return repeat.repeat_run(again, repetition, repeat.make_sides_reduction())
    return repeat.repeat_run(again, repetition, repeat.make_group_reduction())


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
