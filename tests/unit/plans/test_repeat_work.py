"""Repeated runs: their options, and their exit code."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from asked_commands import ask
from repeated_runs import run

from ssbench.base.errors import ExitCode
from ssbench.cli import plans
from ssbench.comparison.family import RowRun
from ssbench.comparison.suite_rows import KeptRun
from ssbench.plans import plan_work, repeat_work
from ssbench.run import plan
from ssbench.run.bench_options import BenchOptions, RunOptions
from ssbench.run.benchmark_run import RunOutcome
from ssbench.scenario.scenario_reading import read_scenario

SCENARIO = read_scenario("very_small")


def outcomes(monkeypatch, *given, codes=()):
    """Let runs end so, with verdicts of these exit codes; return the numbers of those that were made."""
    seen, left = [], list(given)
    ends = [each for each in given if isinstance(each, RunOutcome)]
    codes = dict(zip((each.path for each in ends), codes or (each.exit_code for each in ends), strict=True))

    class Bench:
        def __init__(self, _options):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def capacity(self):
            return 1

        def start_swifts(self, _runs):
            pass

        def check(self, *_):
            pass

        def run(self, _scenario, _options, **_):
            seen.append(len(seen) + 1)
            outcome = left.pop(0)
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

    def keep(statistics, name):
        code = codes[statistics.path]
        verdict = SimpleNamespace(exit_code=code, judgments=(), reasons=(), undelivered=[])
        return KeptRun(name, 1, RowRun({}), run(name), verdict)

    monkeypatch.setattr(plan_work, "Bench", Bench)
    monkeypatch.setattr(plan, "read_statistics", lambda path: (SimpleNamespace(path=path, sides=()), 0))
    monkeypatch.setattr(repeat_work, "make_kept_run", keep)
    return seen


def repeat(monkeypatch, *given, codes=()):
    """Repeat a run three times, that ends so."""
    seen = outcomes(monkeypatch, *given, codes=codes)
    argv = ["run-scenario", "-f", "small", "--repeat", "3"]
    work = repeat_work.RepeatWork([plan_work.PlanSide(SCENARIO, RunOptions())], 3, 0.0)
    settings = plan.PlanSettings(stops_on_errors=True)
    return plans.run_plan(ask(*argv), work, BenchOptions(workers=1), settings), seen


def ended(number, **changes):
    return RunOutcome(run_id=1, seed=1, path=Path(f"r-{number}.stat.gz"), count=10, **changes)


def test_all_runs_are_summed_up(monkeypatch, capsys):
    code, seen = repeat(monkeypatch, ended(1), ended(2), ended(3))
    assert code is ExitCode.OK
    assert seen == [1, 2, 3]
    assert capsys.readouterr().out.startswith("3 runs: r-1 to r-3")


def test_a_run_that_ends_early_ends_the_group(monkeypatch, capsys):
    code, seen = repeat(monkeypatch, ended(1), ended(2, interrupted=True))
    assert code is ExitCode.INTERRUPTED
    assert len(seen) == 2
    assert capsys.readouterr().out == ""


def test_ctrl_c_between_runs_leaves_the_summary(monkeypatch, capsys):
    with pytest.raises(KeyboardInterrupt):
        repeat(monkeypatch, ended(1, errors=1), ended(2), KeyboardInterrupt())
    assert capsys.readouterr().out.startswith("2 runs: r-1 to r-2")


def test_of_several_exit_codes_the_worst_counts(monkeypatch):
    """An undecided run is a warning for CI; one after it that is not good enough has to be red."""
    codes = [ExitCode.UNDECIDED, ExitCode.THRESHOLD, ExitCode.FAILED]
    assert repeat(monkeypatch, ended(1), ended(2), ended(3), codes=codes)[0] is ExitCode.THRESHOLD


@pytest.mark.parametrize(("output", "code"), [("gone", 1), ("/dev/full", 1)])
def test_a_summary_that_nobody_takes_leaves_the_exit_code(monkeypatch, output, code):
    """As ``run-scenario --repeat 3 --fail-if ... | head``."""
    if output == "gone":
        reading, writing = os.pipe()
        os.close(reading)
    else:
        writing = os.open(output, os.O_WRONLY)
    with open(writing, "w") as out:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, "stdout", out)
        assert repeat(monkeypatch, ended(1, errors=1), ended(2), ended(3))[0] == code


def test_a_summary_that_could_not_be_printed_is_a_failure(monkeypatch):
    with open("/dev/full", "w") as out:  # noqa: PTH123 - as a shell does
        monkeypatch.setattr(sys, "stdout", out)
        assert repeat(monkeypatch, ended(1), ended(2), ended(3))[0] is ExitCode.FAILED


def test_standard_output_that_was_closed_is_none(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert repeat(monkeypatch, ended(1), ended(2), ended(3))[0] is ExitCode.OK
