"""``ssbench-master noise``: equal runs, and what they say of comparisons on this store."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.base.errors import ExitCode, UsageError, choose_worst_code
from ssbench.base.text_values import is_foreign_name
from ssbench.cli import archives, option_table, unfit_options
from ssbench.cli.asked import UnfitOptions, fit_options
from ssbench.cli.option_table import LoadAsked
from ssbench.cli.options import (
    ALLOW_OPTION,
    MINUTES,
    PERCENT,
    SCENARIO_FILE,
    SECONDS_OR_0,
    Argument,
    ValueKind,
    add_options,
)
from ssbench.cli.own_program import import_faster
from ssbench.cli.suite import add_arguments_of_plans
from ssbench.reports.products import Product
from ssbench.run.bench_options import RunOptions

if TYPE_CHECKING:
    from ssbench.comparison.equal_runs import EqualRun

USAGE = "%(prog)s (-f FILE | RUN ...) [option ...]"

EXAMPLE = "ssbench-master noise -f small --minutes 15 --detect 5% --workers 2"

#: What the short help shows.
BRIEF = (
    "--scenario-file",
    "--minutes",
    "--detect",
    "--user-count",
    "--run-seconds",
    "--local-swift",
    "--workers",
    "--label",
    "--results-dir",
    "--html",
    "--json",
)

DESCRIPTION = (
    "Make equal runs, or read existing ones, and say how often simple rules would call equal runs"
    " different here, which change 5, 15 and 60 minutes of runs detect in 9 of 10 cases, and the"
    " cheapest plan for the change you ask for. See doc/comparing.rst."
)


@dataclass(frozen=True, kw_only=True)
class NoiseAsked(LoadAsked):
    """What ``noise`` is asked."""

    runs: Sequence[str]
    minutes: float
    detect: float


ASKED = NoiseAsked

_READ_RUNS_WHY = "existing runs are read, and none are made"

_UNFIT_OPTIONS: tuple[UnfitOptions[NoiseAsked, None], ...] = (
    UnfitOptions(
        ("--op-count",),
        "equal runs are timed",
        lambda asked, _: not asked.runs,
        refusal="equal runs are timed: give -r/--run-seconds instead of -o/--op-count",
    ),
    UnfitOptions(
        ("--scenario-file", "--resume", "--until"), _READ_RUNS_WHY, lambda asked, _: bool(asked.runs)
    ),
    UnfitOptions(("--minutes",), _READ_RUNS_WHY, lambda asked, _: bool(asked.runs), is_ignored=False),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    add_options(
        parser,
        Argument(
            "runs",
            ValueKind("RUN", completes="runs"),
            "equal runs that are there: stat files; last, last-1, @LABEL; or results of other tools",
            default=[],
            settings={"nargs": "*"},
        ),
        Argument(
            "-f --scenario-file",
            SCENARIO_FILE,
            "make runs of a scenario in YAML or JSON, or of a shipped one",
        ),
        ALLOW_OPTION,
        Argument("--minutes", MINUTES, "make equal runs for this long, not counting initial uploads", 15.0),
        Argument("--detect", PERCENT, "the change that the plan should detect", 0.05, "5%%"),
    )
    option_table.add_load_arguments(
        parser,
        (
            option_table.WARMUP_OPTION,
            option_table.UNTIL_OPTION,
            Argument("--pause", SECONDS_OR_0, "seconds between two runs", 0.0),
            option_table.make_resume_option(
                "continue the last call for this scenario in the folder of results"
            ),
        ),
    )
    add_arguments_of_plans(
        parser, Product.NOISE, "folder for the stat files of all runs, and to find last and @LABEL in"
    )


def run(asked: NoiseAsked) -> ExitCode:
    """Make the runs, or read them, and report; raises SsbenchError."""
    asked = fit_options(asked, _UNFIT_OPTIONS, None)
    if asked.runs:
        return _judge_runs(asked)
    if not asked.scenario_file:
        raise UsageError("name existing runs, or give -f/--scenario-file to make some")
    return _make_equal_runs(asked)


def _make_equal_runs(asked: NoiseAsked) -> ExitCode:
    """Make equal runs in turn, and report on them."""
    with import_faster():
        from ssbench.cli.run_scenario import PlanFiles, begin_plan, load_asked_scenario, start_plan
        from ssbench.plans.noise_work import NoiseWork, choose_equal_runs
        from ssbench.plans.plan_work import PlanSide
        from ssbench.run.folders import default_stats_stem
        from ssbench.run.plan import PlanSettings
        from ssbench.scenario.consistency import override

    asked, place = begin_plan(asked)
    asked = fit_options(asked, unfit_options.UNFIT_FOR_SIDE, None)
    asked, scenario = load_asked_scenario(asked, place)
    seconds, pairs = choose_equal_runs(
        scenario, asked.minutes, asked.pause, asked.run_seconds, ends_early=bool(asked.until)
    )
    scenario = override(scenario, run_seconds=seconds)

    def make_work(options: RunOptions) -> NoiseWork:
        return NoiseWork(PlanSide(scenario, options), pairs, asked.pause, asked.detect)

    files = PlanFiles(default_stats_stem(scenario), f"noise with {scenario.name}", r"[ab]-\d+")
    plan = PlanSettings(pause=asked.pause, stops_on_errors=True)
    return start_plan(asked, place, files, make_work, plan, keeps=True)


def _judge_runs(asked: NoiseAsked) -> ExitCode:
    """Report on runs that are there."""
    from ssbench.cli.plans import PlanOutput
    from ssbench.comparison.equal_runs import measure_noise
    from ssbench.comparison.noise_report import judge_noise
    from ssbench.plans.plan_work import Conclusion

    names = list(dict.fromkeys(archives.resolve_references(asked.results_dir, asked.runs)))
    output = PlanOutput(asked, Product.NOISE)
    runs, notes, whole = _read_equal_runs(names)
    found = measure_noise(runs, asked.detect, notes=notes)
    code = judge_noise(found).exit_code
    output.write(Conclusion(Product.NOISE, found, code))
    return choose_worst_code([code, ExitCode.OK if whole else ExitCode.FAILED])


def _read_equal_runs(names: Sequence[str]) -> tuple[list[EqualRun], list[str], bool]:
    """Return the runs of some files, what cannot be known of them, and whether all files are whole."""
    from ssbench.comparison.equal_runs import EqualRun, make_equal_run
    from ssbench.comparison.foreign_results import read_foreign_results
    from ssbench.statistics.summary import summarize

    runs: list[EqualRun] = []
    notes: dict[str, None] = {}
    whole = True
    for name in names:
        path = Path(name)
        if is_foreign_name(name):
            foreign = read_foreign_results(path)
            if len(foreign.sides) != 1:
                raise UsageError(f"{name}: has {len(foreign.sides)} sides, expected runs that are equal")
            runs += [EqualRun(each) for side in foreign.sides.values() for each in side]
            notes[f"{foreign.note[:1].upper()}{foreign.note[1:]}. So plans have runs as long as these."] = (
                None
            )
            continue
        with archives.open_stat_file(path) as results:
            statistics = summarize(results)
            whole &= results.is_whole
        short = path.name.removesuffix(".gz").removesuffix(".stat")
        if not statistics.complete or statistics.interrupted or statistics.ended_early:
            notes[f"{short} did not end as it should, and is left out."] = None
            continue
        runs.append(make_equal_run(statistics, short))
    if not runs:
        raise UsageError("expected runs that ended as they should, found none")
    return runs, [*notes], whole
