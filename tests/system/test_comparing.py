"""Two sides in one run, and groups of runs, with real processes."""

from __future__ import annotations

import re
from pathlib import Path

from json_records import valid
from processes import PATIENCE, Fleet
from runs import store, write_scenario


def test_two_sides_of_a_run_meet_objects_of_their_own(fleet: Fleet, tmp_path: Path) -> None:
    # Many reads, so that there is a median where stalls of the worker delayed most of the slow ones. The
    # quick store takes its time, too: how many more a machine can do says nothing.
    with store(0.02) as (quick, options), store(0.1) as (slow, others):
        scenario = write_scenario(
            tmp_path,
            operation_count=None,
            run_seconds=4,
            user_count=16,
            initial_files={"tiny": 20},
            crud_profile=[1, 8, 1, 0],
        )
        sides = f"old={options[1]}", f"new={others[1]}"
        run = fleet.run(scenario, "--workers", 1, "--ab", *sides, *options[2:], "-k", "--seed", 2)
        assert run.end(PATIENCE) == 0
        sets = [
            {path.rpartition("/")[2].partition("-")[0] for path in rule.objects()} for rule in (quick, slow)
        ]
        assert sets == [{"a"}, {"b"}]
        assert "before: old" in run.out
        compared = fleet.master("compare", fleet.stats, "-f", "json")
        assert compared.end(PATIENCE) == 0
        rows = {row["operation"]: row["changes"] for row in valid(compared.out, "comparison")["rows"]}
        assert rows["READ"]["p50"]["change"] > 1


def test_repeated_runs_are_listed_and_compared(fleet: Fleet, tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path, crud_profile=[0, 1, 0, 0])  # of others the mixes may differ by chance
    folder = ("--results-dir", tmp_path / "results")
    arguments = ("--noop", "--workers", 1, "--repeat", 2, "--pause", 0, "--label", "both", *folder)
    run = fleet.master("run-scenario", "-f", scenario, *arguments)
    assert run.end(PATIENCE) == 0
    assert re.match(r"2 runs:\s+\S+\.run-1\s+to\s+\S+\.run-2\n", run.out)
    listed = fleet.master("list", *folder)
    compared = fleet.master("compare", "last-1", "last", "--fail-if", "rate < -99.9%", *folder)
    assert listed.end(PATIENCE) == 0
    assert [line.split()[4] for line in listed.out.splitlines()[1:3]] == ["both", "both"]
    assert compared.end(PATIENCE) == 6  # single runs decide no condition on a change
    assert "! seed differs: " in compared.out
    assert "No repeated runs: no verdict" in compared.out
    assert "it needs at least 4 runs a side" in compared.out.replace("\n  ", " ")


def test_two_ways_to_run_are_compared_in_turn(fleet: Fleet, tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path)
    arguments = ("--noop", "--workers", 1, "--repeat", 2, "--pause", 0, "--versus=--block-size 4K")
    run = fleet.master("run-scenario", "-f", scenario, *arguments, "-s", tmp_path / "s.stat.gz")
    assert run.end(PATIENCE) == 0
    assert "! block size differs: 65536 before, 4096 after" in run.out
    assert "measured in turn" in run.out.replace("\n  ", " ")
    made = sorted(path.name for path in tmp_path.glob("s.*"))
    assert made == [f"s.{side}-{number}.stat.gz" for side in "ab" for number in (1, 2)]
