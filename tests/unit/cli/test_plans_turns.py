"""Two ways to run in turn: the options of the second one, the order, the comparison."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from asked_commands import ask
from golden_words import GoldenWords
from msgspec import structs
from simulated_runs import reads

from ssbench.base.errors import ExitCode, UsageError
from ssbench.cli import plans, unfit_options
from ssbench.cli.asked import fit_options
from ssbench.cli.option_table import RunScenarioAsked
from ssbench.comparison.comparison_verdict import judge_comparison
from ssbench.comparison.family import RowRun
from ssbench.comparison.paired_sides import SidedRun, compare_sided, make_sided_run
from ssbench.comparison.run_figures import FigureSample, RunFigures
from ssbench.comparison.suite_rows import KeptRun
from ssbench.plans import plan_work, repeat_work
from ssbench.run import plan
from ssbench.run.bench_options import BenchOptions, RunOptions
from ssbench.run.benchmark_run import RunOutcome
from ssbench.scenario.scenario_reading import read_scenario

SCENARIO = read_scenario("very_small")


def arguments(*more: str) -> RunScenarioAsked:
    return ask("run-scenario", "-f", "small", "--repeat", "4", "-u", "7", *more)


def test_the_second_way_has_the_options_of_the_first_but_those_that_are_named() -> None:
    first = arguments("--label", "one", "--versus=-f medium -p silver --block-size 4K --label two")
    other = plans.parse_second_side(first)
    changed = {name for name in vars(first) if getattr(first, name) != getattr(other, name)} - {"sources"}
    assert changed == {"scenario_file", "policy", "options"}
    requests = structs.replace(first.options.requests, block_size=4096)
    assert other.options == replace(first.options, label="two", requests=requests)
    assert (other.user_count, first.options.label) == (7, "one")
    assert not plans.parse_second_side(arguments("--verify", "--versus=--no-verify")).options.verify
    first = arguments(
        "--local-swift=2.37.4", "--swift-config=proxy-server:app:x=1", "--versus=--local-swift=2.38.3"
    )
    other = plans.parse_second_side(first)
    assert (first.local_swift, other.local_swift) == ("2.37.4", "2.38.3")
    assert other.swift.make_trial_swift(other.local_swift).settings == ("proxy-server:app:x=1",)
    counted = plans.parse_second_side(arguments("-r", "60", "--versus=-o 5"))
    assert (counted.run_seconds, counted.op_count) == (None, 5)
    same = arguments("--versus=")
    assert plans.parse_second_side(same) == same


@pytest.mark.parametrize(
    "options",
    [
        "--workers 2",
        "-s x",
        "--repeat 5",
        "--local-swift",
        "--seed 5",
        "-u x",
        "'",
    ],
)
def test_what_cannot_differ_is_refused(options: str, golden_words: GoldenWords) -> None:
    with golden_words.raises(UsageError):
        plans.parse_second_side(arguments(f"--versus={options}"))


@pytest.mark.parametrize("other", [("--ab", "a=x", "b=y"), ("--metrics", "9102")])
def test_what_does_not_go_with_it(other: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=r"--versus.*leave out|leave out --versus"):
        unfit_options.check_options(
            fit_options(arguments("--versus=", *other), unfit_options.UNFIT_FOR_CALL, None)
        )


def test_two_ways_in_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any, caplog: Any) -> None:
    """The store becomes slower by 5 % from run to run; the second way is 3 % slower."""
    done: list[RunOptions] = []

    class Recorder:
        def __init__(self, _options: object) -> None:
            pass

        def __enter__(self) -> Recorder:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def capacity(self) -> int:
            return 1

        def start_swifts(self, _runs: object) -> None:
            pass

        def check(self, *_: object) -> None:
            pass

        def run(self, _scenario: object, options: RunOptions, **_more: object) -> RunOutcome:
            done.append(options)
            return RunOutcome(run_id=1, seed=options.seed or 0, path=options.stats_file, count=10)

    def keep(_statistics: object, name: str) -> KeptRun:
        p50 = 1.05 ** len(done) * (1.03 if ".b-" in name else 1.0) * (1 + len(done) % 3 / 1000)
        row = {("ALL", None): {"p50": FigureSample(p50)}}
        figures = RunFigures(name, row, {}, started=float(len(done)))
        return KeptRun(name, 1, RowRun({}), figures, good)

    monkeypatch.setattr(plan, "read_statistics", lambda path: (SimpleNamespace(path=path, sides=()), 0))
    good = SimpleNamespace(exit_code=ExitCode.OK, judgments=(), reasons=(), undelivered=[])
    monkeypatch.setattr(plan_work, "Bench", Recorder)
    monkeypatch.setattr(repeat_work, "make_kept_run", keep)
    options = RunOptions(stats_file=tmp_path / "s.stat.gz")
    sides = [plan_work.PlanSide(SCENARIO, each) for each in (options, replace(options, label="x"))]
    caplog.set_level("INFO")
    work = repeat_work.RepeatWork(sides, 4, 0.0)
    assert plans.run_plan(arguments(), work, BenchOptions(workers=1), plan.PlanSettings()) is ExitCode.OK
    names = [each.stats_file.name.split(".")[1] for each in done if each.stats_file]
    # Neither way is always the first of a pair.
    assert names == ["a-1", "b-1", "b-2", "a-2", "a-3", "b-3", "b-4", "a-4"]
    seeds = [each.seed for each in done if each.seed is not None]
    assert [seed - seeds[0] for seed in seeds] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert done[1].label == "x"
    out = capsys.readouterr().out
    assert "pairs of runs, which were measured in turn" in " ".join(out.split())
    assert "Drift from the first run to the last, besides the change: p50 +40" in " ".join(out.split())
    assert f"compare {tmp_path}/s.a-*.stat.gz --to {tmp_path}/s.b-*.stat.gz" in caplog.text
    assert (
        caplog.messages[0] == "Repetition: 8 runs, as long as their operations take, besides initial uploads"
    )
    assert "Run 8 of 8" in caplog.text


def sided(place: int, change: float, sides: tuple[str, ...] = ("old", "new")) -> SidedRun:
    level = 1.05**place
    values = {(("ALL", None), "p50"): (level, level * change), (("ALL", None), "errors"): (0.0, 0.0)}
    return SidedRun(f"r{place}", sides, values, float(place), ("it was hot",))


def test_runs_with_two_sides_count_once_each() -> None:
    changes = (1.09, 1.11, 1.1, 1.12, 1.08)
    found = compare_sided([sided(place, change) for place, change in enumerate(changes)])
    change = found.find(None, None, "p50")
    assert change is not None
    assert change.word == "slower"
    assert change.change == pytest.approx(math.prod(changes) ** 0.2 - 1)
    assert change.low is not None
    assert change.low > 0.07
    assert found.runs == (5, 5)
    assert [(side.label, side.first, side.last) for side in found.sides] == [
        ("old", 0.0, 4.0),
        ("new", 0.0, 4.0),
    ]
    assert found.warnings == ("it was hot",)
    assert found.drifts == {"p50": pytest.approx(1.05**4 - 1, rel=0.1)}
    assert judge_comparison(found).headline.startswith("slower: ALL p50 (+10.0 %)")
    few = compare_sided([sided(0, 1.1), sided(1, 1.1)])
    assert not few.repeated
    assert "fewer than 4 runs: no verdict" in few.judgment


def test_runs_with_other_sides_are_not_compared() -> None:
    with pytest.raises(ValueError, match="different sides"):
        compare_sided([sided(0, 1.0), sided(1, 1.0, ("x", "y"))])
    with pytest.raises(ValueError, match="no two sides"):
        make_sided_run(reads(np.random.default_rng(1), 12), "r")
    kept = make_sided_run(reads(np.random.default_rng(1), 12, 1.5, sides=("a", "b")), "r")
    before, after = kept.values[("READ", None), "p50"]
    assert after / before == pytest.approx(1.5, rel=0.2)
