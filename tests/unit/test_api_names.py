"""What ``import ssbench`` offers is there: its modules are imported by name, when it is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from full_run import RUN, write_full_run
from golden_words import GoldenWords
from planted_bench import PlantedBench

import ssbench
from ssbench import api
from ssbench.base.errors import ExitCode
from ssbench.plans import plan_work
from ssbench.run.benchmark_run import RunOutcome
from ssbench.statistics.run_verdict import RunVerdict

KNOWN = Path(__file__).parents[1] / "data" / "version-1-known.stat.gz"


@pytest.mark.parametrize("name", ssbench.__all__)
def test_each_public_name_is_there(name: str) -> None:
    assert getattr(ssbench, name) is not None


@pytest.mark.parametrize(("trouble", "code"), [(False, ExitCode.OK), (True, ExitCode.FAILED)])
def test_a_run_whose_clean_up_fails_is_not_good(
    trouble: bool, code: ExitCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes after the stat file, by which the verdict is made; run-scenario ends with 1."""

    class Bench:
        def __init__(self, _options: object) -> None:
            pass

        def __enter__(self) -> Bench:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def run(self, *_: Any, **_more: Any) -> RunOutcome:
            return RunOutcome(run_id=1, seed=1, path=KNOWN, count=9, trouble=trouble)

    monkeypatch.setattr(api, "Bench", Bench)
    report = ssbench.run_scenario("very_small", operations=9, local_swift=True)
    monkeypatch.setattr(RunVerdict, "exit_code", ExitCode.OK)
    assert report.exit_code is code


def test_runs_are_found_by_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    monkeypatch.setenv("SSBENCH_RESULTS_DIR", str(tmp_path))
    for number, label in enumerate(("a", "b", "b")):
        run = replace(RUN, started=1e9 + number, options={**RUN.options, "label": label})
        write_full_run(tmp_path / f"{number}.stat.gz", run)
    assert ssbench.report("last").path == tmp_path / "2.stat.gz"
    assert ssbench.report("last-1").path == tmp_path / "1.stat.gz"
    assert ssbench.report("@a").path == tmp_path / "0.stat.gz"
    assert len(ssbench.compare(["@a"], ["last"]).rows) > 1
    assert ssbench.compare(["@b"], ["@a", "@b"]).runs == (2, 3)
    between = ssbench.compare_between(["@a", "@b"], "label")
    assert (between.before, between.after) == ("a", "b")
    assert [row.runs for row in between.rows] == [(1, 2)]
    with pytest.raises(ssbench.SsbenchError, match="--between size: expected label"):
        ssbench.compare_between(["@a", "@b"], "size")
    with golden_words.raises(ssbench.SsbenchError):
        ssbench.report("@b")
    with pytest.raises(ssbench.SsbenchError, match="there is no last-3, only 3 runs"):
        ssbench.open_results("last-3")


SCENARIO = {
    "name": "s",
    "sizes": [{"name": "small", "size": 9}],
    "initial_files": {"small": 4},
    "profile": {"read": 1},
    "user_count": 8,
    "run_seconds": 20,
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlantedBench:
    made = PlantedBench(tmp_path)
    monkeypatch.setattr(plan_work, "Bench", made)
    return made


def how(store: PlantedBench, runs: list[str], name: str = "x") -> api.PlanKeywords:
    options = ssbench.RunOptions(stats_file=store.folder / f"{name}.stat.gz")
    return {"options": options, "on_run": lambda done: runs.append(done.trial.label)}


def test_loads_are_swept_and_searched_from_python(store: PlantedBench) -> None:
    runs: list[str] = []
    swept = ssbench.sweep(SCENARIO, "users=2,4", **how(store, runs))
    assert swept.found is not None
    assert [step.value for step in swept.found.steps] == [2, 4]
    assert runs == ["users-2", "users-4"]
    assert [path.name for path in swept.files] == ["x.users-2.stat.gz", "x.users-4.stat.gz"]
    assert (swept.code, swept.why) == (ExitCode.OK, "")
    # What is there is not run again, and what is not is.
    again: list[str] = []
    more = ssbench.sweep(SCENARIO, "users=2,4,8", resumes=True, **how(store, again))
    assert (again, len(more.files)) == (["users-8"], 3)
    found = ssbench.find(SCENARIO, "read.p99 <= 10ms", **how(store, runs, "y"))
    assert found.found is not None
    assert found.found.answer is not None
    with pytest.raises(ssbench.SsbenchError, match="is not"):
        ssbench.sweep(SCENARIO, "users=x")
    with pytest.raises(ssbench.SsbenchError):
        ssbench.find(SCENARIO, "read.p98765 <= 1s")


def test_a_store_with_more_and_more_objects_is_measured_from_python(store: PlantedBench) -> None:
    runs: list[str] = []
    keywords = how(store, runs)
    keywords["options"] = replace(keywords["options"], noop=True)  # nothing is filled
    aged = ssbench.age("10..320", operations=["read", "update"], seconds=20, users=4, **keywords)
    assert aged.found is not None
    assert [name for name, _ in aged.found.phases] == ["read", "update"]
    assert len(runs) == 12
    assert runs[:3] == ["read.objects-10", "update.objects-10", "read.objects-20"]
    assert {each.user_count for each in store.scenarios} == {4}
    for wrong in ({"objects": "10,20"}, {"operations": ["reed"]}, {"users": 0}, {"object_size": "4 parsecs"}):
        with pytest.raises(ssbench.SsbenchError):
            ssbench.age(**{"objects": "10..320", **wrong})


def test_runs_are_repeated_and_compared_from_python(store: PlantedBench, golden_words: GoldenWords) -> None:
    runs: list[str] = []
    repeated = ssbench.repeat(SCENARIO, 2, **how(store, runs))
    assert (len(repeated.found or ()), runs) == (2, ["run-1", "run-2"])
    other = ssbench.RunOptions(stats_file=store.folder / "x.stat.gz", label="other")
    compared = ssbench.versus(SCENARIO, SCENARIO, 1, other_options=other, **how(store, runs))
    assert compared.found is not None
    assert compared.found.runs == (1, 1)
    assert [each.label for each in store.options[-2:]] == [None, "other"]
    equal = ssbench.noise(SCENARIO, minutes=3, **how(store, runs, "y"))
    assert equal.found is not None
    assert len(equal.files) == len(runs) - 4
    with golden_words.raises(ssbench.SsbenchError):
        ssbench.repeat(SCENARIO, 0)


def test_a_suite_is_run_from_python(store: PlantedBench, tmp_path: Path) -> None:
    runs: list[str] = []
    text = {"name": "t", "scenarios": {"o": SCENARIO}, "rows": {"a": {"scenario": "o"}}, "rounds": 2}
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(text))
    table = ssbench.suite(tmp_path / "t.yaml", seconds=20, **how(store, runs))
    assert table.found is not None
    assert [(row.name, len(row.runs)) for row in table.found.rows] == [("a", 2)]
    assert len(runs) == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda **how: ssbench.repeat(SCENARIO, 2, benhc=1, **how),  # type: ignore[call-arg]  # refused
        lambda **how: ssbench.repeat(SCENARIO, 2, bench={}, **how),
        lambda **how: ssbench.repeat(SCENARIO, 2, pause=-1, **how),
        lambda **how: ssbench.repeat(SCENARIO, 2, pause=math.nan, **how),
        lambda **how: ssbench.repeat(SCENARIO, 2, pause="1", **how),
        lambda **how: ssbench.noise(SCENARIO, minutes=math.inf, **how),
        lambda **how: ssbench.noise(SCENARIO, minutes=None, **how),
        lambda **how: ssbench.noise(SCENARIO, detect=5, **how),
        lambda **how: ssbench.find(SCENARIO, "errors <= 1%", within=0, **how),
    ],
)
def test_a_wrong_value_from_python_begins_no_run(
    call: Callable[..., object], store: PlantedBench, golden_words: GoldenWords
) -> None:
    runs: list[str] = []
    with golden_words.raises(ssbench.SsbenchError):
        call(**how(store, runs))
    assert not runs


def test_what_is_no_list_is_refused_in_one_line(golden_words: GoldenWords) -> None:
    calls: list[Callable[[Any], object]] = [
        lambda value: ssbench.age("10..320", operations=value),
        lambda value: ssbench.envelope(sizes=value),
        lambda value: ssbench.envelope(operations=value),
        lambda value: ssbench.load_scenario(SCENARIO, bodies=value),
        lambda value: ssbench.report(KNOWN, value),
        lambda value: ssbench.compare(value, [KNOWN]),
        lambda value: ssbench.compare_between(value, "users"),
    ]
    for call in calls:
        for value in ("read", [5]):
            with golden_words.raises(ssbench.SsbenchError):
                call(value)
