"""``run-scenario --sweep`` and ``--find``: what they run and say, with runs whose results are planted."""

from __future__ import annotations

import csv
import io
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asked_commands import ask
from golden_words import GoldenWords
from json_records import valid
from planted_bench import AT_ONCE, PlantedBench
from replays import make_replay
from said import HAS_GROUPS

from ssbench.base.errors import ClusterError, ExitCode, SsbenchError, TooManyErrorsError, UsageError
from ssbench.cli import plans, unfit_options
from ssbench.cli.asked import fit_options
from ssbench.cli.option_table import Objective, RunScenarioAsked
from ssbench.fleet.addresses import BindAddress
from ssbench.plans import plan_work
from ssbench.plans.plan_work import PlanSide, PlanWork
from ssbench.plans.steps_work import SearchWork, SweepWork
from ssbench.run.bench_options import BenchOptions, RunOptions, RunSide
from ssbench.run.benchmark_run import RunOutcome
from ssbench.run.plan import PlanSettings, silence_runs
from ssbench.scenario.model import Scenario, SizeClass, Stage, UserGroup

SCENARIO = Scenario("s", (SizeClass("small", 1, 9, 1, {"read": 1.0}),), user_count=8, run_seconds=20.0)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> PlantedBench:
    caplog.set_level(logging.INFO)
    made = PlantedBench(tmp_path)
    monkeypatch.setattr(plan_work, "Bench", made)
    return made


def arguments(*options: object) -> RunScenarioAsked:
    return ask("run-scenario", "-f", "very_small", *map(str, options))


def carry_out(
    store: PlantedBench, *options: object, scenario: Scenario = SCENARIO, bench: BenchOptions | None = None
) -> ExitCode:
    given = arguments("-s", store.folder / "x.stat.gz", *options)
    given = fit_options(given, unfit_options.UNFIT_FOR_CALL, None)
    unfit_options.check_options(given)
    sides_ = tuple(RunSide(text.partition("=")[0], policy="gold") for text in given.ab or ())
    side = PlanSide(scenario, RunOptions(stats_file=store.folder / "x.stat.gz", sides=sides_))
    other = PlanSide(replace(scenario, name="other"), side.options)
    sides = [side] if given.versus is None else [side, other]
    work: PlanWork[Any]
    if given.sweep:
        work = SweepWork(sides, given.sweep, given.repeat or 1, 0.0)
    else:
        find = given.find or Objective()
        work = SearchWork(side, find.conditions, find.within, given.repeat or 1)
    made = bench or BenchOptions(address=BindAddress("127.0.0.1"))
    if made.workers and work.list_users():
        made = replace(made, concurrency=-(-max(work.list_users()) // made.workers))
    return plans.run_plan(given, work, made, PlanSettings())


def search_replay(store: PlantedBench, requests: int, seconds: float) -> tuple[list[float], dict[str, Any]]:
    """Search for the highest rate of a replayed log; return the rates of its steps, and what was found."""
    moments = np.linspace(0.0, seconds, requests, endpoint=False)
    replay = make_replay([(float(each), "read", 1, 70) for each in moments])
    side = PlanSide(
        replace(SCENARIO, rate=requests / seconds, run_seconds=None, operation_count=requests),
        RunOptions(stats_file=store.folder / "x.stat.gz", replayed=replay),
    )
    given = arguments("--find", "errors <= 50%", "--json", store.folder / "found.json", "--repeat", 1)
    assert given.find is not None
    work = SearchWork(side, given.find.conditions)
    assert (
        plans.run_plan(given, work, BenchOptions(address=BindAddress("127.0.0.1")), PlanSettings())
        == ExitCode.OK
    )
    return [each.rate or 0.0 for each in store.scenarios], json.loads(
        (store.folder / "found.json").read_text()
    )


def test_a_search_replays_a_log_in_two_seconds_or_more(store: PlantedBench) -> None:
    rates, found = search_replay(store, 400, 40.0)
    assert max(rates) == found["answer"]["value"] == 200
    assert found["answer"]["at_least"]
    assert "Nothing higher was tried: all of the log would then take less than 2 s." in json.dumps(found)
    assert "That is 19.95 times the traffic of log (at least)." in found["conclusion"]


def test_a_search_says_how_many_times_the_traffic_of_a_log_that_is(store: PlantedBench) -> None:
    store.most_rate = 34
    _, found = search_replay(store, 400, 40.0)
    assert (found["answer"]["value"], found["answer"]["low"], found["answer"]["high"]) == (33, 31, 37)
    # The log has 400 requests in 39.9 s.
    assert "That is 3.29 times the traffic of log (95 % sure: 3.09 to 3.69 times)." in found["conclusion"]


def test_a_log_that_is_shorter_is_not_searched(store: PlantedBench) -> None:
    with pytest.raises(UsageError, match=r"--find: log has 40 requests in 390 ms, .* choose more of the log"):
        search_replay(store, 40, 0.4)


def users(store: PlantedBench) -> list[int]:
    return [each.user_count for each in store.scenarios]


def test_a_sweep_goes_through_its_values_with_the_same_objects(
    store: PlantedBench, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found = tmp_path / "found.json"
    assert carry_out(store, "--sweep", "users=5,10,20", "--json", found) == ExitCode.OK
    assert users(store) == [5, 10, 20]
    assert len({each.seed for each in store.options}) == 1
    assert [each.stats_file.name for each in store.options if each.stats_file] == [
        f"x.users-{each}.stat.gz" for each in (5, 10, 20)
    ]
    steps = json.loads(found.read_text())["steps"]
    assert [step["value"] for step in steps] == [5, 10, 20]
    assert [step["ops_per_second"] for step in steps] == pytest.approx([500, 1000, 2000], rel=0.02)
    assert caplog.messages[0] == "Sweep: 3 steps, about 1 min 3 s to 1 min 12 s, besides initial uploads"
    assert "Step 2: 10 users, 20 s: 999.9 ops/s, 0 failed" in caplog.messages
    assert f"Results saved to {tmp_path / 'x.users-*.stat.gz'}" in caplog.messages
    # Later runs are quiet.
    assert [line for line in caplog.messages if line.startswith("run of")] == ["run of 5"]
    said = " ".join(capsys.readouterr().out.split())
    assert "2,000" in said
    assert "initial uploads; forecast without them: 3 steps, about 1 min 3 s to 1 min 12 s" in said


def test_a_sweep_ends_where_more_brings_nothing(store: PlantedBench) -> None:
    assert carry_out(store, "--sweep", "users=5..5000") == ExitCode.OK
    assert AT_ONCE < users(store)[-1] < 640


def test_the_steps_of_a_sweep_can_be_repeated(store: PlantedBench, tmp_path: Path) -> None:
    """The first round says how far the others go; every other one goes down."""
    found = tmp_path / "found.json"
    assert carry_out(store, "--sweep", "users=5..5000", "--repeat", 3, "--json", found) == ExitCode.OK
    reached = len(users(store)) // 3
    first = users(store)[:reached]
    assert first == sorted(first)
    assert users(store) == [*first, *first[::-1], *first]
    steps = json.loads(found.read_text())["steps"]
    assert [step["value"] for step in steps] == sorted(first * 3)
    assert [Path(step["stat_file"]).name for step in steps[:3]] == [
        f"x.users-5{each}.stat.gz" for each in ("", ".2", ".3")
    ]
    seeds = [(each.seed or 0) - (store.options[0].seed or 0) for each in store.options]
    assert seeds == [0] * reached + [1] * reached + [2] * reached


def test_two_sweeps_take_turns_and_are_compared_value_by_value(
    store: PlantedBench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = tmp_path / "found.json"
    options = ("--sweep", "users=5,10", "--repeat", 3, "--versus=", "--json", found)
    assert carry_out(store, *options) == ExitCode.OK
    names = [each.stats_file.name.removeprefix("x.") for each in store.options if each.stats_file]
    turns = ["a-5", "b-5", "b-10", "a-10", "a-10.2", "b-10.2", "b-5.2", "a-5.2", "b-5.3", "a-5.3"]
    turns += ["a-10.3", "b-10.3"]
    assert [each.replace(".users", "").removesuffix(".stat.gz") for each in names] == turns
    report = json.loads(found.read_text())
    assert [(row["name"], row["runs"]) for row in report["rows"]] == [
        ("5 users", [3, 3]),
        ("10 users", [3, 3]),
    ]
    said = " ".join(capsys.readouterr().out.split())
    assert "Before: Peak 999.9 ops/s at 10 users." in said


@pytest.mark.parametrize("repeats", [1, 3])
def test_each_step_of_a_sweep_may_have_two_sides(
    store: PlantedBench, tmp_path: Path, capsys: pytest.CaptureFixture[str], repeats: int
) -> None:
    store.slower = 1.3
    found = tmp_path / "found.json"
    options = ("--sweep", "users=4,8,16", "--ab", "old=x", "new=y", "--repeat", repeats)
    assert carry_out(store, *options, "--json", found, "--csv") == ExitCode.OK
    assert sorted(users(store)) == sorted([4, 8, 16] * repeats)
    sides = valid(found.read_text(), "capacity")["sides"]
    assert (sides["before"], sides["after"], sides["verdict"]["word"]) == ("old", "new", "slower")
    assert [(row["name"], row["runs"]) for row in sides["rows"]] == [
        (f"{each} users", [repeats, repeats]) for each in (4, 8, 16)
    ]
    for row in sides["rows"]:
        change = row["changes"]["p50"]
        assert change["change"] == pytest.approx(0.3, abs=0.02)
        assert 0.05 < change["low"] < change["change"] < change["high"]
        assert row["changes"]["rate"]["change"] is None  # rates follow from latencies
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {(row["before"], row["after"]) for row in rows} == {("old", "new")}
    assert all(0.05 < float(row["p50_low"]) < float(row["p50_high"]) for row in rows)
    assert carry_out(store, *options, "--resume", "--html", tmp_path / "page.html") == ExitCode.OK
    assert len(users(store)) == 3 * repeats  # nothing is run again
    said = " ".join(capsys.readouterr().out.split())
    assert "new against old: slower: " in said
    assert "p50 ms old" in said
    assert "Latency of both sides" in (tmp_path / "page.html").read_text()


def test_equal_sides_of_a_sweep_are_no_difference(store: PlantedBench, tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    carry_out(store, "--sweep", "users=4,8,16", "--ab", "old=x", "new=y", "--json", found)
    assert json.loads(found.read_text())["sides"]["verdict"]["word"] == "no difference shown"


def test_a_sweep_goes_on_after_an_interruption(store: PlantedBench) -> None:
    def interrupt(outcome: RunOutcome) -> RunOutcome:
        assert outcome.path is not None
        outcome.path.write_bytes(outcome.path.read_bytes()[:200])  # as one that was killed
        return replace(outcome, path=None, interrupted=True)

    store.instead[3] = interrupt
    assert carry_out(store, "--sweep", "users=5,10,20") == ExitCode.INTERRUPTED
    store.instead = {}
    assert carry_out(store, "--sweep", "users=5,10,20", "--resume") == ExitCode.OK
    assert users(store) == [5, 10, 20, 20]


def test_a_sweep_in_which_nothing_succeeds_has_failed(store: PlantedBench) -> None:
    store.failing = True
    assert carry_out(store, "--sweep", "users=5,10") == ExitCode.FAILED


def test_local_workers_have_room_for_the_most_users_from_the_first_step_on(store: PlantedBench) -> None:
    carry_out(store, "--sweep", "users=5,11", bench=BenchOptions(workers=2))
    assert store.bench.concurrency == 6
    carry_out(store, "--sweep", "workers=1,2", bench=BenchOptions(workers=1))
    assert store.bench.concurrency is None
    assert store.workers == [1, 2]


def test_a_search_finds_what_the_store_bears(
    store: PlantedBench, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    found = tmp_path / "found.json"
    assert (
        carry_out(store, "--find", "read.p99 <= 25ms", "--json", found, "--no-default-report") == ExitCode.OK
    )
    answer = json.loads(found.read_text())
    # 20 users at once take 10 ms, and as many times longer as there are more of them.
    value = json.dumps(answer)
    assert answer["exit_code"] == 0
    best = max(step["value"] for step in answer["steps"] if step["p99"] <= 0.025)
    assert 45 <= best <= 50, value
    assert "p99" in caplog.text
    assert any("; holds: read.p99 " in line for line in caplog.messages)
    assert any("; does not hold: read.p99 " in line for line in caplog.messages)


def test_each_load_of_a_search_may_be_repeated(
    store: PlantedBench,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    golden_words: GoldenWords,
) -> None:
    found = tmp_path / "found.json"
    options = ("--find", "read.p99 <= 25ms", "--repeat", 3, "--json", found)
    assert carry_out(store, *options) == ExitCode.OK
    tried = users(store)
    assert len(tried) % 3 == 0
    assert all(len(set(tried[first : first + 3])) == 1 for first in range(0, len(tried), 3))
    seeds = [(each.seed or 0) - (store.options[0].seed or 0) for each in store.options]
    assert seeds == [0, 1, 2] * (len(tried) // 3)
    names = [each.stats_file.name for each in store.options[:3] if each.stats_file]
    assert names == [f"x.users-8{each}.stat.gz" for each in ("", ".2", ".3")]
    report = valid(found.read_text(), "capacity")
    assert 45 <= report["answer"]["value"] <= 50
    golden_words(report["conclusion"])
    assert "All 3: holds: read.p99 10ms in 3 runs" in report["judged_by"][2]
    assert all("All 3" not in each for each in report["judged_by"][:2])
    assert any(line.startswith("8 users, 3 runs: holds") for line in caplog.messages)
    assert "It rests on" in capsys.readouterr().out
    assert carry_out(store, *options, "--resume", "--force") == ExitCode.OK
    assert users(store) == tried  # nothing is run again


def test_a_search_that_is_interrupted_between_runs_of_a_load(store: PlantedBench, tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    store.instead[5] = lambda outcome: replace(outcome, interrupted=True)
    assert carry_out(store, "--find", "read.p99 <= 25ms", "--repeat", 3, "--json", found) == 130
    report = json.loads(found.read_text())
    assert len(report["steps"]) == 5
    assert [each.startswith("not judged") for each in report["judged_by"]] == [False] * 3 + [True] * 2
    assert "It rests on 1 trial of 3 runs each" in report["conclusion"]


@pytest.mark.parametrize(
    ("full", "expected"), [((1,), "run 1 of 3"), ((2,), "run 2 of 3"), ((1, 3), "runs 1 and 3 of 3")]
)
def test_a_generator_that_was_full_in_one_run_of_a_load_ends_the_search(
    store: PlantedBench, tmp_path: Path, full: tuple[int, ...], expected: str, golden_words: GoldenWords
) -> None:
    def change_room(outcome: RunOutcome) -> RunOutcome:
        """Have too few slots in some of the runs of 8 users, the first load."""
        store.room = 4 if len(store.scenarios) in full else 1000
        return outcome

    store.instead = dict.fromkeys(range(1, 91), change_room)
    found = tmp_path / "found.json"
    carry_out(store, "--find", "read.p99 <= 25ms", "--repeat", 3, "--json", found)
    report = json.loads(found.read_text())
    assert max(users(store)) == 8
    golden_words(report["conclusion"])


def test_a_search_without_limit_ends_where_more_users_only_wait(store: PlantedBench) -> None:
    assert carry_out(store, "--find", "errors <= 1%") in {ExitCode.OK, ExitCode.UNDECIDED}
    assert users(store)[-1] < 1000


def test_a_search_whose_goal_never_holds_has_failed(store: PlantedBench) -> None:
    assert carry_out(store, "--find", "read.p99 <= 1ms") == ExitCode.FAILED
    assert min(users(store)) == 1


@pytest.mark.parametrize("lost", [0, 3])
@pytest.mark.parametrize("option", ["--sweep=users=2,4,8", "--find=read.p99 <= 25ms"])
def test_steps_that_lost_operations_with_a_worker_fail_the_plan_and_are_named(
    store: PlantedBench, tmp_path: Path, option: str, lost: int
) -> None:
    found, store.losing = tmp_path / "found.json", {2: lost}
    code = ExitCode.FAILED if lost else ExitCode.OK
    assert carry_out(store, option, "--json", found) == code
    report = json.loads(found.read_text())
    assert report["exit_code"] == code
    assert [step["lost"] for step in report["steps"]][:2] == [0, lost]
    said = f"3 operations failed as lost with a worker, at {report['steps'][1]['value']:g} users"
    assert any(note.startswith(said) for note in report["notes"]) is bool(lost)


def test_a_run_with_too_many_errors_is_a_step_that_does_not_hold(store: PlantedBench) -> None:
    too_many = TooManyErrorsError("100 operations failed")

    def ended(outcome: RunOutcome) -> RunOutcome:
        return replace(outcome, error=too_many)

    store.instead = dict.fromkeys(range(2, 40), ended)
    assert carry_out(store, "--find", "read.p99 <= 100ms") == ExitCode.OK
    assert max(users(store)[1:]) <= 16


@pytest.mark.parametrize(
    ("change", "code", "why"),
    [
        ({"path": None, "interrupted": True}, ExitCode.INTERRUPTED, "interrupted"),
        ({"interrupted": True}, ExitCode.INTERRUPTED, "interrupted"),
        ({"error": ClusterError("nothing succeeded")}, ExitCode.CLUSTER, "nothing succeeded"),
        ({"trouble": True}, ExitCode.FAILED, None),
    ],
)
@pytest.mark.parametrize("option", ["--sweep=users=2,4,8", "--find=read.p99 <= 25ms"])
def test_how_a_step_ends_early(
    store: PlantedBench,
    tmp_path: Path,
    option: str,
    change: dict[str, Any],
    code: ExitCode,
    why: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    store.instead[2] = lambda outcome: replace(outcome, **change)
    found = tmp_path / "found.json"
    assert carry_out(store, option, "--json", found) == code
    assert (len(store.scenarios) == 2) == (why is not None)
    assert ("The same command with --resume" in caplog.text) == (code == ExitCode.INTERRUPTED)
    report = json.loads(found.read_text())
    assert report["exit_code"] == code
    if why is not None:
        assert why in json.dumps(report["conclusion"])


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ClusterError("no answer")])
def test_what_is_known_is_written_where_a_step_cannot_run(
    store: PlantedBench, tmp_path: Path, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def end(_: RunOutcome) -> RunOutcome:
        raise error

    store.instead[3] = end
    found = tmp_path / "found.json"
    with pytest.raises(type(error)):
        carry_out(store, "--sweep", "users=2,4,8", "--json", found)
    report = json.loads(found.read_text())
    assert [step["value"] for step in report["steps"]] == [2, 4]
    assert f"Results saved to {tmp_path / 'x.users-*.stat.gz'}" in caplog.messages
    expected = error.exit_code if isinstance(error, SsbenchError) else ExitCode.INTERRUPTED
    assert report["exit_code"] == expected


def test_a_report_that_cannot_be_written_is_no_success(store: PlantedBench, tmp_path: Path) -> None:
    folder = tmp_path / "removed meanwhile"
    folder.mkdir()

    def remove(outcome: RunOutcome) -> RunOutcome:
        folder.rmdir()
        return outcome

    store.instead[1] = remove
    assert carry_out(store, "--sweep", "users=2,4", "--json", folder / "x.json") == ExitCode.FAILED


@pytest.mark.parametrize(
    ("options", "changes", "message"),
    [
        (["--sweep=users=1,2", "-u", "4"], {}, "--sweep varies what -u/--user-count sets"),
        (["--sweep=rate=1,2", "--rate", "4"], {}, "--sweep varies what --rate sets"),
        (["--sweep=workers=1,2", "--zmq-bind-ip", "127.0.0.1"], {}, "--sweep workers= starts local workers"),
        (["--sweep=workers=1,9999"], {}, "workers: expected "),
        (["--sweep=users=2,3", "--ab", "a=x", "b=y"], {}, "--sweep: 3 users cannot be halved"),
        (["--find=errors <= 1%", "--ab", "a=x", "b=y"], {}, "--find judges all users of a run; --sweep"),
        (["--find=errors <= 1%", "--repeat", "2", "--versus="], {}, "--find looks for the limit of one way"),
        (["--find=errors <= 1%", "--until", "2%"], {}, "--find makes many runs"),
        (["--find=errors <= 1%"], {"run_seconds": None}, "--find needs -r/--run-seconds"),
        (["--find=errors <= 1%"], {"stages": (Stage(1.0, (1, 2)),)}, "--find needs -r"),
        (["--find=web.p99 <= 1s"], {}, "--find: "),
        (["--find=errors <= 1%"], {"groups": True}, f"--find{HAS_GROUPS}; vary those"),
    ],
)
def test_what_does_not_go_together(
    store: PlantedBench, options: list[str], changes: dict[str, Any], message: str
) -> None:
    if changes.get("groups"):
        changes = {
            "groups": (UserGroup("a", 4, SCENARIO.size_classes), UserGroup("b", 4, SCENARIO.size_classes))
        }
    with pytest.raises(UsageError) as caught:
        carry_out(store, *options, scenario=replace(SCENARIO, **changes))
    assert str(caught.value).startswith(message)
    assert not store.scenarios


@pytest.mark.parametrize(
    ("options", "checked"),
    [
        (["--sweep=users=2,4,8"], [2, 8]),
        (["--sweep=users=2"], [2]),
        (["--sweep=users=2,4,8", "--repeat", "1", "--versus="], [2, 8, 2, 8]),
        (["--find=errors <= 1%"], [8]),
    ],
)
def test_the_ends_of_a_sweep_are_checked_before_the_first_step(
    store: PlantedBench, monkeypatch: pytest.MonkeyPatch, options: list[str], checked: list[int]
) -> None:
    asked: list[int] = []

    def refuse(_self: PlantedBench, scenario: Scenario, _options: RunOptions) -> None:
        assert not store.scenarios
        asked.append(scenario.user_count)
        if len(asked) == len(checked):
            raise UsageError("not over the S3 API")

    monkeypatch.setattr(PlantedBench, "check", refuse)
    with pytest.raises(UsageError, match="not over the S3 API"):
        carry_out(store, *options)
    assert asked == checked
    assert not store.scenarios


def test_messages_of_phases_come_back_after_a_step() -> None:
    log = logging.getLogger("ssbench.run")
    before = log.level
    with silence_runs(True):
        assert log.level == logging.WARNING
    assert log.level == before
    with silence_runs(False):
        assert log.level == before


def test_the_forecast_of_a_search_counts_that_steps_near_the_limit_take_longer(
    store: PlantedBench, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    carry_out(store, "--find", "read.p99 <= 25ms", "--no-default-report")
    golden_words(caplog.messages[0])
    took = sum(each.run_seconds or 0.0 for each in store.scenarios)
    assert 105 <= took + len(store.scenarios) <= 915


def test_the_forecast_of_a_search_counts_clean_up_and_that_errors_are_few(
    store: PlantedBench, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    classes = (SizeClass("small", 1, 9, 1, {"read": 3.0, "create": 1.0}),)
    scenario = replace(SCENARIO, size_classes=classes)
    carry_out(store, "--find", "errors <= 0.1%", "--no-default-report", scenario=scenario)
    golden_words(caplog.messages[0])
