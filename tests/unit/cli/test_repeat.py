"""Repeated runs: their options, their exit code, and the summary of the group."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ssbench.base.errors import ExitCode
from ssbench.cli import repeat
from ssbench.comparison.repeated_runs import find_outlier_runs
from ssbench.comparison.run_figures import FigureSample, RunFigures
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.run.benchmark_run import RunOutcome


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
    """Let runs end so, and return what runs one and the numbers of those."""
    seen, left = [], list(given)
    monkeypatch.setattr(repeat, "open_results", lambda path: path)
    monkeypatch.setattr(repeat, "summarize", lambda path: SimpleNamespace(path=path))
    codes = {each.path: each.exit_code for each in given if isinstance(each, RunOutcome)}

    def verdict(statistics):
        return SimpleNamespace(exit_code=codes[statistics.path], judgments=(), reasons=(), undelivered=[])

    monkeypatch.setattr(repeat, "verdict_of", verdict)

    def once(number):
        seen.append(number)
        outcome = left.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return once, seen


def ended(number, **changes):
    return RunOutcome(run_id=1, seed=1, path=Path(f"r-{number}.stat.gz"), count=10, **changes)


THRICE = repeat.Repetition(3, 0.0, prints=True)
KEPT = replace(repeat.make_group_reduction(), keep=lambda _statistics, name: run(name))


def test_all_runs_are_summed_up(monkeypatch, capsys):
    once, seen = outcomes(monkeypatch, ended(1), ended(2), ended(3))
    assert repeat.repeat_run(once, THRICE, KEPT) is ExitCode.OK
    assert seen == [1, 2, 3]
    assert capsys.readouterr().out.startswith("3 runs: r-1 to r-3")


def test_a_run_that_ends_early_ends_the_group(monkeypatch, capsys):
    once, seen = outcomes(monkeypatch, ended(1), ended(2, interrupted=True))
    assert repeat.repeat_run(once, THRICE, KEPT) is ExitCode.INTERRUPTED
    assert len(seen) == 2
    assert capsys.readouterr().out == ""


def test_ctrl_c_between_runs_leaves_the_summary(monkeypatch, capsys):
    once, _ = outcomes(monkeypatch, ended(1, errors=1), ended(2), KeyboardInterrupt())
    assert repeat.repeat_run(once, THRICE, KEPT) is ExitCode.INTERRUPTED
    assert capsys.readouterr().out.startswith("2 runs: r-1 to r-2")


def test_of_several_exit_codes_the_worst_counts(monkeypatch):
    """An undecided run is a warning for CI; one after it that is not good enough has to be red."""
    once, _ = outcomes(monkeypatch, ended(1), ended(2), ended(3))
    codes = iter([ExitCode.UNDECIDED, ExitCode.THRESHOLD, ExitCode.FAILED])
    monkeypatch.setattr(repeat.run_report, "choose_final_code", lambda _verdict, _outcome: next(codes))
    assert repeat.repeat_run(once, THRICE, KEPT) is ExitCode.THRESHOLD


@pytest.mark.parametrize(("output", "code"), [("gone", 1), ("/dev/full", 1)])
def test_a_summary_that_nobody_takes_leaves_the_exit_code(monkeypatch, output, code):
    """As ``run-scenario --repeat 3 --fail-if ... | head``."""
    once, _ = outcomes(monkeypatch, ended(1, errors=1), ended(2), ended(3))
    if output == "gone":
        reading, writing = os.pipe()
        os.close(reading)
    else:
        writing = os.open(output, os.O_WRONLY)
    with open(writing, "w") as out:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, "stdout", out)
        assert repeat.repeat_run(once, THRICE, KEPT) == code


def test_a_summary_that_could_not_be_printed_is_a_failure(monkeypatch):
    once, _ = outcomes(monkeypatch, ended(1), ended(2), ended(3))
    with open("/dev/full", "w") as out:  # noqa: PTH123 - as a shell does
        monkeypatch.setattr(sys, "stdout", out)
        assert repeat.repeat_run(once, THRICE, KEPT) is ExitCode.FAILED


def test_standard_output_that_was_closed_is_none(monkeypatch):
    once, _ = outcomes(monkeypatch, ended(1), ended(2), ended(3))
    monkeypatch.setattr(sys, "stdout", None)
    assert repeat.repeat_run(once, THRICE, KEPT) is ExitCode.OK
