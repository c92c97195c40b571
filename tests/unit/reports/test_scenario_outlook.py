"""What ``check-scenario`` says."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from statistics import median

import pytest

from ssbench.cli.master import main
from ssbench.scenario.draws import Target, Workload
from ssbench.scenario.forecast import find_running_out
from ssbench.scenario.population import Population
from ssbench.scenario.scenario_reading import read_scenario

SCENARIO = """
name: Two kinds
sizes:
  - {name: tiny, size_min: 1000, size_max: 3000}
  - {name: large, size_min: 1MB, size_max: 1MB, crud_profile: [1, 0, 0, 0]}
initial_files: {tiny: 30, large: 10}
crud_profile: {read: 3, delete: 1}
operation_count: 4000
user_count: 8
container_count: 5
policy: gold
delete_after: 1h
"""


def test_random_arrivals_without_a_rate_are_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.yaml"
    for more, told in (("", False), ("arrivals: poisson\n", True), ("arrivals: poisson\nrate: 5\n", False)):
        path.write_text(SCENARIO + more)
        assert main(["check-scenario", str(path)]) == 0
        assert ("! arrivals: poisson has no effect without a rate" in capsys.readouterr().out) is told


def test_what_a_scenario_would_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(SCENARIO)
    assert main(["check-scenario", str(path)]) == 0
    assert (
        capsys.readouterr().out
        == """\
Two kinds: 8 operations at once
  containers: 5, ssbench_000000_gold to ssbench_000004_gold, policy gold
    initial objects in each: 8
  first upload 40 objects, about 10.1 MB, where they are not there yet
    tiny: 30 objects of 1 kB to 3 kB; 75.0 % of operations
    large: 10 objects of 1 MB; 25.0 % of operations
  then 4,000 operations:
    about 1,000 x create (25.0 %)
    about 2,250 x read (56.2 %)
    about 750 x delete (18.8 %)
  ! tiny: no object is left after about 160 operations:
    25.0 % of its operations delete, 0.00 % create
    operations on this class are then skipped
  objects expire 3,600 s after they were written
  an operation sends 250 kB and receives 1.12 kB on average
  estimated time: 1 s for the uploads, 10 s for the operations
    (with 20 ms a request, and 100 MB a second in all)
"""
    )


def test_one_user_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(SCENARIO.replace("user_count: 8", "user_count: 1"))
    assert main(["check-scenario", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "Two kinds: 1 operation at once"


@pytest.mark.parametrize(
    ("load", "first", "lines"),
    [
        (
            "rate: 500\narrivals: poisson\nwarmup: 2",
            "at most 8 operations at once",
            [
                "    due at random (Poisson) at 500 a second, whatever the store does (open loop)",
                "    the first 2 s are excluded from the report (warm-up)",
                "  estimated time: 1 s for the uploads, 10 s for the operations",
            ],
        ),
        (
            "think_time: 1m",
            " 8 operations at once",
            [
                "    a user waits 60 s after each",
                "  estimated time: 1 s for the uploads, 8 h 20 min for the operations",
            ],
        ),
        (
            "stages: [{seconds: 60, users: 2..8}, {seconds: 1m, rate: 10..50, users: 3..5}]",
            " 8 operations at once",
            [
                "    stage 1, 60 s: 2..8 users, in a closed loop",
                "    stage 2, 60 s: 10..50/s, due evenly, at most 3 to 5 at once",
            ],
        ),
    ],
)
def test_how_much_load_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], load: str, first: str, lines: list[str]
) -> None:
    path = tmp_path / "load.yaml"
    path.write_text(
        SCENARIO.replace("operation_count: 4000\n", "" if "stages" in load else "operation_count: 4000\n")
        + load
    )
    assert main(["check-scenario", str(path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"Two kinds: {first.strip()}"
    assert [line for line in said if line in lines] == lines


def test_faults_are_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(SCENARIO.replace("user_count", "user_cuont"))
    assert main(["check-scenario", str(path)]) == 2
    said = capsys.readouterr().err
    assert "user_cuont: unknown key" in said
    assert "did you mean user_count?" in said
    assert "user_count: missing" in said


def test_classes_whose_objects_run_out_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "drain.yaml"
    path.write_text(DRAIN)
    assert main(["check-scenario", str(path)]) == 0
    said = capsys.readouterr().out
    assert "  ! drain: no object is left after about " in said
    assert "    25.0 % of its operations delete, 5.00 % create\n" in said
    assert "  ! even: no object may be left after about " in said
    assert "  ! few: no object may be left at times:\n" in said
    assert "are then skipped" in said
    assert "! reads" not in said
    assert "! grows" not in said


DRAIN = """
name: Drain
sizes:
  - {name: drain, size_min: 1, size_max: 1, crud_profile: {create: 1, delete: 5, read: 14}}
  - {name: even, size_min: 1, size_max: 1, crud_profile: {create: 2, delete: 2, read: 6}}
  - {name: few, size_min: 1, size_max: 1, crud_profile: {create: 3, delete: 2, read: 6}}
  - {name: reads, size_min: 1, size_max: 1, crud_profile: {read: 1}}
  - {name: grows, size_min: 1, size_max: 1, crud_profile: {create: 3, delete: 2, read: 6}}
initial_files: {drain: 300, even: 10, few: 2, reads: 1, grows: 100}
run_seconds: 40
user_count: 8
container_count: 5
"""


@pytest.mark.parametrize(
    "load", ["run_seconds: 40\nrate: 20", "stages: [{seconds: 20, rate: 10}, {seconds: 20, rate: 10..30}]"]
)
def test_no_class_runs_out_after_the_last_operation_that_is_due(tmp_path: Path, load: str) -> None:
    path = tmp_path / "drain.yaml"
    path.write_text(DRAIN.replace("run_seconds: 40", load))
    assert "drain" not in {each.size_class for each in find_running_out(read_scenario(path))}


def test_they_run_out_when_that_was_said(tmp_path: Path) -> None:
    path = tmp_path / "drain.yaml"
    path.write_text(DRAIN)
    scenario = read_scenario(path)
    said = {each.size_class: each for each in find_running_out(scenario)}
    names = [each.name for each in scenario.size_classes]
    first: dict[str, list[int]] = {name: [] for name in names}
    for seed in range(30):
        population = Population(scenario, Workload(scenario, seed))
        for index, each in enumerate(scenario.size_classes):
            for number in range(1, each.initial_files + 1):
                population.add_initial(index, number, 1)
        flying: deque[Target] = deque()
        missing: set[int] = set()
        while population.drawn < 4000:
            flying.extend(population.next_jobs(scenario.user_count - len(flying)))
            for _, index in population.not_sendable:
                if index not in missing:
                    missing.add(index)
                    first[names[index]].append(population.drawn)
            code, index, container, number, _ = flying.popleft()
            population.finished(code, index, container, number, True)
    assert len(first["drain"]) == 30
    assert median(first["drain"]) == pytest.approx(said["drain"].operations, rel=0.1)
    assert 0 < len(first["even"]) < 30
    assert min(first["even"]) > said["even"].operations / 2
    assert first["few"]
    assert not first["reads"]
    assert not first["grows"]


def test_commands_are_shown_before_they_are_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yaml"
    text = (
        "{name: a, run_seconds: 5, user_count: 4, sizes: [{name: s, size: 4kB}], initial_files: {s: 9},"
        " profile: {read: 1}, events: [{at: 1m, command: rm x}, {at: 2m, command: touch x}]}"
    )
    path.write_text(text)
    assert main(["check-scenario", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "runs commands on the master's host, with --allow events:" in shown
    assert "60 s: rm x" in shown
    assert "120 s: touch x" in shown
    path.write_text(text.replace("user_count: 4,", "groups: [{name: g, users: 4}],"))
    assert main(["check-scenario", str(path)]) == 0
    assert capsys.readouterr().out.count("60 s: rm x") == 1
