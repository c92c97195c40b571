"""Repeated runs: their options, their exit code, and the summary of the group."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from asked_commands import ask

from ssbench.base.errors import ExitCode
from ssbench.cli import plans
from ssbench.comparison.equal_runs import find_outlier_runs
from ssbench.comparison.run_figures import FigureSample, RunFigures
from ssbench.plans import plan_work, repeat_work
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.run import plan
from ssbench.run.benchmark_run import RunOutcome
from ssbench.run.options import BenchOptions, RunOptions
from ssbench.scenario.reading import read_scenario

SCENARIO = read_scenario("very_small")


def run(name, rate=500.0, p50=0.01, half=0.01, **more):
    row = {
        "rate": FigureSample(rate, half),
        "p50": FigureSample(p50),
        "errors": FigureSample(more.get("errors", 0.0)),
    }
    return RunFigures(name, {("READ", None): row, ("ALL", None): row}, {}, more.get("warnings", ()))


def test_an_outlier_is_named_and_its_neighbours_are_not():
    runs = [run(f"r{index}", 500 + index) for index in range(7)]
    assert find_outlier_runs(runs) == []
    found = find_outlier_runs([*runs, run("odd", 400)])
    assert len(found) == 1
    assert found[0].startswith("odd does not fit: ops/s -20.")
    assert find_outlier_runs([run("a", 1), run("b", 2), run("c", 4)]) == []


def test_the_summary_of_a_group():
    write = products.find_writer(Product.REPEATED, "text")
    lines = write([run("a", 490), run("b", 500), run("c", 510, warnings=("c: it was hot",))]).splitlines()
    assert lines[0] == "3 runs: a to c"
    rate = next(line for line in lines if line.startswith("READ")).split()
    assert float(rate[2]) == pytest.approx(499.9, abs=0.1)
    assert rate[3:6] == ["475.7", "to", "525.4"]  # t of 2 degrees of freedom is 4.303
    assert rate[6:] == ["490.0", "510.0", "2.0", "%"]
    assert max(map(len, lines)) <= 80
    assert "! c: it was hot" in lines
    assert "More runs say more than longer ones" in " ".join(" ".join(lines).split())


def test_the_summary_says_what_runs_warn_of_alike_once():
    write = products.find_writer(Product.REPEATED, "text")
    runs = [run(name, warnings=(f"{name}: others used {used} %",)) for name, used in (("a", 31), ("b", 42))]
    text = " ".join(write(runs).split())
    assert "! a: others used 31 % (and alike in 1 more run)" in text
    assert "b: others" not in text


def test_a_percentile_that_a_run_lacks_is_left_out_of_the_summary():
    rows = [
        {"rate": FigureSample(60.0), "p99": FigureSample(1.8)},
        {"rate": FigureSample(55.0), "p99": FigureSample(1.9)},
    ]
    runs = [RunFigures(f"r{index}", {("ALL", None): row}) for index, row in enumerate(rows)]
    write = products.find_writer(Product.REPEATED, "text")
    assert "p99 ms" in write(runs)
    assert "left out" not in write(runs)
    text = write([*runs, RunFigures("slow", {("ALL", None): {"rate": FigureSample(20.0)}})])
    assert "p99 ms" not in text
    assert "Percentiles for which a run had too few operations (p99: 1,000) are left out" in " ".join(
        text.split()
    )


def outcomes(monkeypatch, *given):
    """Let runs end so; return the numbers of those that were made."""
    seen, left = [], list(given)
    codes = {each.path: each.exit_code for each in given if isinstance(each, RunOutcome)}

    class Bench:
        def __init__(self, _options):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def capacity(self):
            return 1

        def check(self, *_):
            pass

        def run(self, _scenario, _options, **_):
            seen.append(len(seen) + 1)
            outcome = left.pop(0)
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

    def verdict(statistics):
        return SimpleNamespace(exit_code=codes[statistics.path], judgments=(), reasons=(), undelivered=[])

    monkeypatch.setattr(plan_work, "Bench", Bench)
    monkeypatch.setattr(plan, "read_statistics", lambda path: (SimpleNamespace(path=path, sides=()), 0))
    monkeypatch.setattr(repeat_work, "verdict_of", verdict)
    monkeypatch.setattr(repeat_work, "make_run_figures", lambda _, name: run(name))
    return seen


def repeat(monkeypatch, *given):
    """Repeat a run three times, that ends so."""
    seen = outcomes(monkeypatch, *given)
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
    codes = iter([ExitCode.UNDECIDED, ExitCode.THRESHOLD, ExitCode.FAILED])

    def verdict(_path):
        return SimpleNamespace(exit_code=next(codes), judgments=(), reasons=(), undelivered=[])

    monkeypatch.setattr(
        repeat_work,
        "make_repetition",
        lambda *given: repeat_work.RepeatedRun(verdict(given), run(given[1]), None),
    )
    assert repeat(monkeypatch, ended(1), ended(2), ended(3))[0] is ExitCode.THRESHOLD


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
