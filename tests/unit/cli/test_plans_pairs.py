"""Every pair of the options that make many runs, or belong to these: it works, or one sentence says why not.

The runs are planted; what a real store makes of the same command lines is tried by hand.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from json_records import valid
from planted_bench import PlantedBench
from said import ALL_OK

from ssbench.base import interruption
from ssbench.base.errors import ExitCode
from ssbench.cli import master
from ssbench.cli import run_scenario as command
from ssbench.plans import plan_work

#: What is said of why --pause is refused.
PAUSE_IS_BETWEEN = "--pause is between the runs of --repeat, --sweep, --find or --phases"
#: What is said of why --resume is refused.
RESUME_IS_FOR = "--resume is for --repeat, --sweep, --find or --phases"

#: Each option, as it is given.
OPTIONS: dict[str, list[str]] = {
    "repeat": ["--repeat", "2"],
    "versus": ["--versus=--block-size 1K"],
    "ab": ["--ab", "one=gold", "two=silver"],
    "sweep": ["--sweep", "users=2,4"],
    "find": ["--find", "p99 <= 25ms"],
    "phases": ["--phases", "put,get"],
    "resume": ["--resume"],
    "pause": ["--pause", "0"],
    "at": ["--at", "1s", "true"],
    "noise": ["noise"],
}

#: What is said of pairs that are refused. All others work; with "noise" the sub-command is meant.
REFUSED: dict[frozenset[str], str] = {
    frozenset(pair): text
    for *pair, text in (
        ("versus", "ab", "--versus needs --repeat, which says how often both are run"),
        ("versus", "sweep", "--versus needs --repeat"),
        ("versus", "find", "--versus needs --repeat"),
        ("versus", "phases", "--versus needs --repeat"),
        ("versus", "resume", f"{RESUME_IS_FOR}: leave out --resume"),
        ("versus", "pause", PAUSE_IS_BETWEEN),
        ("versus", "at", "--versus needs --repeat"),
        ("ab", "find", "--find judges all users of a run; --sweep compares the sides at each load"),
        ("ab", "resume", f"{RESUME_IS_FOR}: leave out --resume"),
        ("ab", "pause", PAUSE_IS_BETWEEN),
        ("sweep", "find", "argument --find: not allowed with argument --sweep"),
        ("resume", "pause", PAUSE_IS_BETWEEN),
        ("resume", "at", f"{RESUME_IS_FOR}: leave out --resume"),
        ("pause", "at", PAUSE_IS_BETWEEN),
        ("noise", "repeat", "unrecognized arguments: --repeat"),
        ("noise", "versus", "unrecognized arguments: --versus"),
        ("noise", "ab", "unrecognized arguments: --ab"),
        ("noise", "sweep", "unrecognized arguments: --sweep"),
        ("noise", "find", "unrecognized arguments: --find"),
        ("noise", "phases", "unrecognized arguments: --phases"),
    )
}

#: Three and more of which two would need the third.
FURTHER: dict[tuple[str, ...], str] = {
    ("repeat", "versus", "ab"): "--ab compares two sides within each run; leave out --versus",
    ("repeat", "versus", "sweep"): "",
    ("repeat", "versus", "find"): "--find looks for the limit of one way to run; --sweep compares two",
    ("repeat", "versus", "phases"): "",
    (
        "repeat",
        "versus",
        "phases",
        "sweep",
    ): "--phases with --sweep has one way to run",
    ("repeat", "versus", "resume", "pause", "at"): "",
    ("repeat", "ab", "phases"): "",
    ("repeat", "ab", "sweep"): "",
    ("repeat", "ab", "phases", "sweep", "at", "pause"): "",
    ("repeat", "find", "phases", "resume"): "",
}

ALL = [*((pair, REFUSED.get(frozenset(pair), "")) for pair in combinations(OPTIONS, 2)), *FURTHER.items()]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlantedBench:
    made = PlantedBench(tmp_path)
    monkeypatch.setattr(plan_work, "Bench", made)
    monkeypatch.setattr(command, "Bench", made)
    monkeypatch.setattr(interruption, "sleep_interruptibly", lambda _seconds: None)  # pauses of --repeat
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return made


def call(*words: str) -> ExitCode | int:
    try:
        return master.main([*words])
    except SystemExit as error:  # by argparse
        return int(error.code or 0)


def run(folder: Path, names: tuple[str, ...], *more: str) -> ExitCode | int:
    given = [word for name in names if name != "noise" for word in OPTIONS[name]]
    line = "size=4kB" if "phases" in names else "size=4kB mix=get"
    load = ["-f", line, "-r", "12", *([] if "sweep" in names else ["-u", "2"])]
    common = [*load, "--local-swift", "--workers", "1", "--progress", "none", *given, *more]
    if "noise" in names:
        return call("noise", *common, "--minutes", "2", "--results-dir", str(folder))
    return call("run-scenario", *common, "-s", str(folder / "x.stat"))


@pytest.mark.parametrize(("names", "refusal"), ALL, ids=["+".join(names) for names, _ in ALL])
def test_a_pair_works_or_one_sentence_says_why_not(
    bench: PlantedBench,
    tmp_path: Path,
    names: tuple[str, ...],
    refusal: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if "noise" in names and "resume" in names:
        assert run(tmp_path, ("noise",)) in {ExitCode.OK, ExitCode.UNDECIDED}
        bench.options.clear()
    code = run(tmp_path, names)
    said = capfd.readouterr()
    if refusal:
        assert code == ExitCode.USAGE
        assert refusal in said.err.strip().splitlines()[-1]
        assert not bench.options
        assert not said.out
        return
    assert code in {ExitCode.OK, ExitCode.UNDECIDED}, said.err
    assert bool(bench.options) != ("noise" in names and "resume" in names)
    assert said.out.strip()
    assert "Traceback" not in said.err


@pytest.mark.parametrize(("seconds", "minutes", "too_short"), [("12", "2", True), ("90", "10", False)])
def test_that_runs_are_too_short_for_until_is_said_once(
    seconds: str,
    minutes: str,
    too_short: bool,
    bench: PlantedBench,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    load = ["-f", "size=4kB mix=get", "-r", seconds, "-u", "2", "--local-swift", "--workers", "1"]
    call("noise", *load, "--minutes", minutes, "--until", "5%", "--results-dir", str(tmp_path))
    said = capfd.readouterr().err
    assert said.count("--until: runs of 12 s are too short for it; it takes 1 min 3 s or more") == too_short
    assert len(bench.goals) >= 6
    assert {goal is None for goal in bench.goals} == {too_short}


PHASES = ("phases",)


def read(path: Path, kind: str) -> dict[str, object]:
    found: dict[str, object] = valid(path.read_text(), kind)
    return found


def test_phases_end_with_one_table_of_all_of_them(
    bench: PlantedBench, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each has its report, below them and in the file that was named is the table."""
    files = ("--json", str(tmp_path / "p.json"), "--html", str(tmp_path / "p.html"))
    assert run(tmp_path, PHASES, *files, "--label", "new") == ExitCode.OK
    assert [each.label for each in bench.options] == ["new-put", "new-get"]
    found = read(tmp_path / "p.json", "suite")
    assert [row["name"] for row in found["rows"]] == ["put", "get"]  # type: ignore[attr-defined]
    for name, operation in (("put", "create"), ("get", "read")):
        own = json.loads((tmp_path / f"p.{name}.json").read_text())
        assert own["operations"][1]["operation"] == operation
        assert f'href="p.{name}.html"' in (tmp_path / "p.html").read_text()
        assert (tmp_path / f"p.{name}.html").exists()
    said = capfd.readouterr().out
    assert said.index("READ") < said.index("Phases 4kB objects") < said.index("2 rows, 2 runs")
    run(tmp_path, PHASES, "--resume")
    assert len(bench.options) == 2  # nothing is run again
    again = " ".join(capfd.readouterr().out.split())
    assert f"2 rows, 2 runs: {ALL_OK}" in again
    assert "for 0 runs (2 were there already); forecast of all" in again


def test_the_worst_phase_is_the_exit_code(bench: PlantedBench, tmp_path: Path) -> None:
    assert run(tmp_path, PHASES, "--fail-if", "read.p50 > 1ms") == ExitCode.THRESHOLD
    assert len(bench.options) == 2
    assert run(
        tmp_path, PHASES, "--fail-if", "create.p50 > 1ms", "--repeat", "2", "--pause", "0", "--force"
    ) == (ExitCode.THRESHOLD)


def test_csv_of_phases_has_no_table_below_it(
    bench: PlantedBench, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, PHASES, "--csv")
    assert "Phases" not in capfd.readouterr().out
    run(tmp_path, PHASES, "--csv", "--repeat", "2", "--pause", "0")
    assert capfd.readouterr().out.startswith("row,runs,rate,rate_low")


def test_repeated_phases_have_rounds(bench: PlantedBench, tmp_path: Path) -> None:
    assert run(tmp_path, ("phases", "repeat", "pause"), "--json", str(tmp_path / "p.json")) == ExitCode.OK
    names = [each.stats_file.name for each in bench.options if each.stats_file]
    assert names == [f"x.{each}.stat.gz" for each in ("put-1", "get-1", "get-2", "put-2")]
    found = read(tmp_path / "p.json", "suite")
    assert [len(row["stat_files"]) for row in found["rows"]] == [2, 2]  # type: ignore[attr-defined]


def test_two_ways_to_run_are_compared_phase_by_phase(bench: PlantedBench, tmp_path: Path) -> None:
    words = ("phases", "repeat", "versus", "pause")
    assert run(tmp_path, words, "--json", str(tmp_path / "p.json")) == ExitCode.OK
    found = read(tmp_path / "p.json", "suites")
    assert [(row["name"], row["runs"]) for row in found["rows"]] == [  # type: ignore[attr-defined]
        ("put", [2, 2]),
        ("get", [2, 2]),
    ]
    assert "block" in " ".join(found["warnings"])
    assert found["before"] == "4kB objects (a)"


def test_two_sides_of_each_phase(
    bench: PlantedBench, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bench.slower = 1.3
    assert run(tmp_path, ("phases", "ab"), "--json", str(tmp_path / "p.json")) == ExitCode.OK
    sides = json.loads((tmp_path / "p.json").read_text())["sides"]
    assert (sides["before"], sides["after"], sides["verdict"]["word"]) == ("one", "two", "slower")
    assert [row["name"] for row in sides["rows"]] == ["put", "get"]
    assert "Sides: two against one: slower" in " ".join(capfd.readouterr().out.split())


@pytest.mark.parametrize("option", ["sweep", "find"])
def test_phases_are_swept_and_searched_one_after_the_other(
    bench: PlantedBench, tmp_path: Path, option: str, capfd: pytest.CaptureFixture[str]
) -> None:
    files = ("--json", str(tmp_path / "p.json"), "--html", str(tmp_path / "p.html"))
    assert run(tmp_path, ("phases", option), *files) in {ExitCode.OK, ExitCode.UNDECIDED}
    names = [each.stats_file.name for each in bench.options if each.stats_file]
    assert names == sorted(names, reverse=True, key=lambda name: name.split(".")[1])
    assert names[0] == "x.put.users-2.stat.gz"
    found = read(tmp_path / "p.json", "phases")["phases"]
    assert [*found] == ["put", "get"]
    assert "2 phases, each to its end" in capfd.readouterr().out
    assert [each.label for each in bench.options] == [name.split(".")[1] for name in names]
    made = len(bench.options)
    run(tmp_path, ("phases", option, "resume"), "--csv")
    assert len(bench.options) == made
    rows = capfd.readouterr().out.splitlines()
    assert rows[0].startswith("phase,users,")
    assert len(rows) == made + 1


def test_an_interruption_leaves_what_is_known_of_phases(bench: PlantedBench, tmp_path: Path) -> None:
    bench.instead[3] = lambda outcome: outcome.__class__(
        run_id=1, seed=1, path=None, count=0, interrupted=True
    )
    code = run(tmp_path, ("phases", "sweep"), "--json", str(tmp_path / "p.json"))
    assert code == ExitCode.INTERRUPTED
    found = read(tmp_path / "p.json", "phases")
    assert [*found["phases"]] == ["put"]
    assert found["ended_early"] == "interrupted"


def test_what_continues_runs_whose_files_got_a_name(
    bench: PlantedBench, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = (
        "run-scenario",
        "-f",
        "size=4kB mix=get",
        *("--local-swift", "--workers", "1", "--progress", "none"),
    )
    words += ("-u", "2", "-r", "12", "--repeat", "3")
    bench.instead[2] = lambda outcome: replace(outcome, interrupted=True)
    assert call(*words, "--results-dir", str(tmp_path)) == ExitCode.INTERRUPTED
    said = capfd.readouterr().err
    found = re.search(r"The same command with (.*) in place of --results-dir and --resume cont", said)
    assert found is not None
    bench.instead = {}
    bench.options.clear()
    [second] = tmp_path.glob("*.run-2.stat.gz")
    second.unlink()  # as one that was killed leaves it
    assert call(*words, *found[1].split(), "--resume") == ExitCode.OK
    assert len(bench.options) == 2


def test_noise_goes_on_with_the_last_call(
    bench: PlantedBench, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Interrupted in the fifth of eight runs: the other ones are made, and its table is CSV."""
    bench.instead[5] = lambda outcome: replace(outcome, interrupted=True)
    assert run(tmp_path, ("noise",)) == ExitCode.INTERRUPTED
    first = [each.stats_file for each in bench.options]
    bench.instead = {}
    bench.options.clear()
    bench.scenarios.clear()
    for path in tmp_path.glob("*.b-2.stat.gz"):
        path.unlink()  # as one that was killed leaves it
    capfd.readouterr()
    assert run(tmp_path, ("noise", "resume"), "--format", "csv") in {ExitCode.OK, ExitCode.UNDECIDED}
    assert len(bench.options) == 8 - 5 + 1
    assert bench.options[0].stats_file in first
    said = capfd.readouterr().out.splitlines()
    assert said[0].startswith("figure,mean,is_head,deviation,")
    assert said[1].startswith("rate,")


def test_noise_goes_on_with_the_last_call_that_has_a_result(bench: PlantedBench, tmp_path: Path) -> None:
    """One that was killed while it prepared has an empty file, and all runs still to make."""
    run(tmp_path, ("noise",))
    first = bench.options[0].stats_file
    assert first is not None

    def name_file(moment: str) -> Path:
        return tmp_path / re.sub(r"\d{4}-\d\d-\d\d\.\d{6}", moment, first.name)

    empty = name_file("9999-12-31.000000")
    empty.touch()
    name_file("2001-01-01.000000").write_text("x")
    (tmp_path / "other.9999-12-31.000000.a-1.stat.gz").write_text("x")
    bench.options.clear()
    run(tmp_path, ("noise", "resume"))
    assert not bench.options  # all runs of the first call are there
    for path in {*tmp_path.glob("*.stat.gz")} - {empty}:
        path.unlink()
    run(tmp_path, ("noise", "resume"))
    assert bench.options[0].stats_file == empty


def test_noise_without_an_earlier_call_has_nothing_to_go_on_with(
    bench: PlantedBench, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, ("noise", "resume")) == ExitCode.USAGE
    assert f"--resume: {tmp_path} has no run of noise with 4kB objects" in capfd.readouterr().err
    assert not bench.options
