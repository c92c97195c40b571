"""The one loop over plans: names of stat files, seeds, pauses, what goes on after an interruption."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import any_results
import pytest
import result_rows
from golden_words import GoldenWords
from planted_plans import SCENARIO, Planted, carry_out, grid

from ssbench.base import interruption
from ssbench.base.errors import (
    ClusterError,
    ExitCode,
    SsbenchError,
    StatFileError,
    TooManyErrorsError,
    UsageError,
)
from ssbench.plans.plan_rules import GridRule
from ssbench.results.writer import RunResultsWriter
from ssbench.run import plan
from ssbench.run.bench_options import ObjectFill, RunOptions
from ssbench.run.benchmark_run import RunOutcome
from ssbench.run.plan import PlanCell, PlanEnd, PlanTrial
from ssbench.scenario.forecast import SECONDS_PER_REQUEST
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.value_rules import TimedCommand
from ssbench.store.request_options import RequestOptions


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Planted:
    return Planted(monkeypatch)


@pytest.mark.parametrize(("number", "label"), [(1, "users-4"), (2, "users-4.2"), (3, "users-4.3")])
def test_a_value_has_a_number_from_its_second_run_on(number: int, label: str) -> None:
    assert PlanTrial(PlanCell("users-4", SCENARIO, RunOptions(), is_counted=False), number).label == label


def test_files_of_another_plan_are_seen_before_the_first_run(bench: Planted, tmp_path: Path) -> None:
    (tmp_path / "s.b-512.stat.gz").touch()
    with pytest.raises(StatFileError, match="b-512"):
        carry_out(grid(tmp_path, "a", "b"), bench)
    assert not bench.options
    assert carry_out(grid(tmp_path, "a", "b", force=True), bench).done


def test_cells_that_the_store_cannot_carry_out_are_skipped(
    bench: Planted, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rule = grid(tmp_path, "a", "b", "c")
    lacking = replace(rule.cells[0].options, label="impossible")
    rule.cells = [replace(each, may_be_skipped=True) for each in rule.cells]
    rule.cells[0] = replace(rule.cells[0], options=lacking)
    with caplog.at_level("INFO"):
        end = carry_out(rule, bench)
    assert [name.split(".")[1] for name in bench.names] == ["b-1", "c-1", "c-2", "b-2"]
    assert end.skipped == {"a": "not over the S3 API"}
    assert bench.checked == 3
    assert "Skipped 1 of 3 (a): not over the S3 API" in caplog.messages
    assert [each for each in caplog.messages if each.startswith("Run 5 of 6")]
    rule = grid(tmp_path, "d", force=True)
    rule.cells = [replace(rule.cells[0], options=lacking, may_be_skipped=True)]
    with pytest.raises(UsageError, match="not over the S3 API"):
        carry_out(rule, bench)


def test_a_plan_goes_on_with_what_it_lacks(bench: Planted, tmp_path: Path) -> None:
    """Killed in its fourth run, of which an incomplete file is left."""
    bench.ends = {4: {"killed": True}, 5: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        carry_out(grid(tmp_path, "a", "b", rounds=3), bench)
    first = bench.options[:4]
    bench.options, bench.ends = [], {}
    end = carry_out(grid(tmp_path, "a", "b", rounds=3), bench, resumes=True)
    assert [name.split(".")[1] for name in bench.names] == ["a-2", "a-3", "b-3"]
    assert (end.resumed, len(end.done)) == (3, 6)
    assert bench.options[0].force  # of what is left there
    assert bench.options[0].seed == first[3].seed  # the operations that the plan drew
    again = carry_out(grid(tmp_path, "a", "b", rounds=3), bench, resumes=True)
    assert again.resumed == 6
    assert len(bench.options) == 3


def test_a_plan_does_not_go_on_with_runs_of_something_else(
    bench: Planted, tmp_path: Path, golden_words: GoldenWords
) -> None:
    carry_out(grid(tmp_path, "a"), bench)
    rule = grid(tmp_path, "a")
    rule.cells = [replace(each, scenario=replace(SCENARIO, user_count=99)) for each in rule.cells]
    with golden_words.raises(UsageError):
        carry_out(rule, bench, resumes=True)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("think_time", 1.0),
        ("arrivals", "poisson"),
        ("size_classes", SCENARIO.size_classes[:1]),
        ("size_classes", tuple(replace(each, crud_profile={"head": 1.0}) for each in SCENARIO.size_classes)),
    ],
)
def test_every_key_of_the_load_is_the_same_where_a_plan_goes_on(
    bench: Planted, tmp_path: Path, key: str, value: Any, golden_words: GoldenWords
) -> None:
    carry_out(grid(tmp_path, "a"), bench)
    rule = grid(tmp_path, "a")
    rule.cells = [replace(each, scenario=replace(SCENARIO, **{key: value})) for each in rule.cells]
    with golden_words.raises(UsageError):
        carry_out(rule, bench, resumes=True)


@pytest.mark.parametrize(
    "options",
    [
        {"requests": RequestOptions(retries=3)},
        {"verify": True},
        {"seed": 8},
        {"events": (TimedCommand(1.0, "true"),)},
    ],
)
def test_a_plan_goes_on_with_the_same_options(
    bench: Planted, tmp_path: Path, options: dict[str, Any], golden_words: GoldenWords
) -> None:
    carry_out(grid(tmp_path, "a", seed=7), bench)
    with golden_words.raises(UsageError):
        carry_out(grid(tmp_path, "a", **options), bench, resumes=True)


def test_a_plan_does_not_go_on_at_another_store(bench: Planted, tmp_path: Path) -> None:
    """Which one it is is known when the first run has been made there."""
    bench.ends = {3: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        carry_out(grid(tmp_path, "a", "b"), bench)
    bench.ends, bench.url = {}, "http://two/v1/AUTH_a"
    for _ in range(2):  # neither then nor later
        with pytest.raises(UsageError, match=r"b-2.stat.gz: went to http://two.*a-1.stat.gz to http://one"):
            carry_out(grid(tmp_path, "a", "b"), bench, resumes=True)
    assert len(bench.options) == 4


def test_each_store_of_a_plan_has_addresses_of_its_own(bench: Planted, tmp_path: Path) -> None:
    rule = grid(tmp_path, "a", "b")
    options = rule.cells[0].options
    rule.cells = [replace(each, options=replace(options, store=each.name)) for each in rule.cells]
    urls = {"a": "http://one/v1/AUTH_a", "b": "s3+http://one"}
    run = bench.run

    def run_at_its_store(scenario: object, options: RunOptions, **more: Any) -> RunOutcome:
        bench.url = urls[options.store or ""]
        return run(scenario, options, **more)

    bench.run = run_at_its_store
    for _ in range(2):
        end = carry_out(rule, bench, resumes=True)
        assert [each.path.name[2] for each in end.done] == ["a", "b", "b", "a"]
        rule = GridRule(rule.cells, 2, lambda _, name: name)
    assert len(bench.options) == 4
    rule.cells = [replace(each, options=options) for each in rule.cells]
    with pytest.raises(UsageError, match="is a run with store a, not None; --resume needs"):
        carry_out(rule, bench, resumes=True)


def test_a_full_disk_under_a_stat_file_ends_a_plan(bench: Planted, tmp_path: Path) -> None:
    """The figures of what could be written were taken for those of the run, and the next one was made."""
    bench.ends[2] = {"results_lost": 1234, "trouble": True}
    end = carry_out(grid(tmp_path, "a", "b"), bench)
    assert (end.why, end.code) == ("1,234 results could not be written", ExitCode.FAILED)
    assert [each.ended_early for each in end.done] == [None, end.why]
    assert len(bench.options) == 2


def test_a_run_that_lost_results_is_made_again(bench: Planted, tmp_path: Path) -> None:
    """Its stat file says that it ended as it should: the disk was full only while it went on."""
    bench.ends[2] = {"results_lost": 1234, "trouble": True}
    carry_out(grid(tmp_path, "a", "b"), bench)
    bench.options, bench.ends = [], {}
    end = carry_out(grid(tmp_path, "a", "b"), bench, resumes=True)
    assert (end.resumed, len(end.done)) == (1, 4)
    assert [name.split(".")[1] for name in bench.names] == ["b-1", "b-2", "a-2"]


def test_a_stat_file_says_how_many_results_are_not_in_it(tmp_path: Path) -> None:
    for lost in (0, 5):
        writer = RunResultsWriter(tmp_path / f"{lost}.stat.gz", any_results.RUN)
        writer.add(result_rows.block([any_results.row(1)]))
        writer.results_lost = lost
        writer.end(any_results.SUMMARY)
        statistics, found = plan.read_statistics(writer.path)
        assert (statistics.complete, found) == (True, lost)


@pytest.mark.parametrize("place", [0, 1])
def test_what_one_of_the_runs_could_not_do_is_said_before_the_first(
    bench: Planted, tmp_path: Path, place: int
) -> None:
    rule = grid(tmp_path, "a", "b")
    options = replace(rule.cells[place].options, label="impossible")
    rule.cells = [
        replace(each, options=options) if each is rule.cells[place] else each for each in rule.cells
    ]
    with pytest.raises(UsageError, match="not over the S3 API"):
        carry_out(rule, bench)
    assert not bench.options


def test_a_plan_whose_runs_are_all_done_needs_no_store(bench: Planted, tmp_path: Path) -> None:
    carry_out(grid(tmp_path, "a", "b"), bench)
    assert bench.checked == 2
    end = carry_out(grid(tmp_path, "a", "b"), bench, resumes=True)
    assert (end.resumed, end.why, bench.checked) == (4, "", 2)
    bench.ends = {5: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        carry_out(grid(tmp_path, "a", "b", rounds=3), bench, resumes=True)
    assert bench.checked == 4  # one run was left


@pytest.mark.parametrize("fill", [None, ObjectFill()])
def test_uploads_are_not_expected_of_the_runs_that_are_left(
    bench: Planted,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fill: ObjectFill | None,
) -> None:
    """Not those of the first run; of runs that each may have some the message says so."""
    times = iter([0.0, 600.0, 600.0, 610.0, 610.0, 620.0, 620.0, 630.0])
    monkeypatch.setattr(plan, "time", SimpleNamespace(monotonic=lambda: next(times), time=lambda: 0.0))
    caplog.set_level("INFO")
    rule = grid(tmp_path, "a", "b")
    rule.cells = [replace(each, fill=fill) for each in rule.cells]
    carry_out(rule, bench, pause=0)
    besides = ", besides uploads" if fill else ""
    assert [each for each in caplog.messages if each.startswith("Run")] == [
        "Run 1 of 4",
        f"Run 2 of 4; about 30 min left{besides}",
        f"Run 3 of 4; about 20 s left{besides}",
        f"Run 4 of 4; about 10 s left{besides}",
    ]


def test_to_go_on_takes_a_name(bench: Planted, golden_words: GoldenWords) -> None:
    rule: GridRule[str] = GridRule([PlanCell("a", SCENARIO, RunOptions())], 1, lambda _, name: name)
    with golden_words.raises(UsageError):
        carry_out(rule, bench, resumes=True)


@pytest.mark.parametrize(
    ("end", "stops", "made", "code"),
    [
        ({"interrupted": True}, False, 2, ExitCode.INTERRUPTED),
        ({"path": None, "interrupted": True}, False, 2, ExitCode.INTERRUPTED),
        ({"error": ClusterError("gone")}, False, 2, ExitCode.CLUSTER),
        ({"error": TooManyErrorsError("many")}, False, 4, ExitCode.OK),
        ({"error": TooManyErrorsError("many")}, True, 2, ExitCode.THRESHOLD),
        ({"trouble": True}, False, 4, ExitCode.FAILED),
    ],
)
def test_how_a_run_ends_the_plan(
    bench: Planted, tmp_path: Path, end: dict[str, Any], stops: bool, made: int, code: ExitCode
) -> None:
    bench.ends = {2: end}
    found = carry_out(grid(tmp_path, "a", "b"), bench, stops_on_errors=stops)
    assert (len(bench.options), found.code) == (made, code)
    assert bool(found.why) is (made == 2)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ClusterError("no answer")])
def test_what_is_done_is_kept_where_a_run_cannot_begin(
    bench: Planted, tmp_path: Path, error: BaseException
) -> None:
    bench.ends = {3: error}
    end: PlanEnd[Any] = PlanEnd()
    with pytest.raises(type(error)):
        carry_out(grid(tmp_path, "a", "b"), bench, end)
    assert len(end.done) == 2
    assert end.why == (str(error) or "interrupted")
    assert end.code == (error.exit_code if isinstance(error, SsbenchError) else ExitCode.INTERRUPTED)


def test_pauses_are_between_runs_that_are_made(
    bench: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    sleep: Callable[[float], None] = slept.append
    monkeypatch.setattr(interruption, "sleep_interruptibly", sleep)
    carry_out(grid(tmp_path, "a", "b"), bench, pause=9.0)
    assert slept == [9.0] * 3
    carry_out(grid(tmp_path, "a", "b", rounds=3), bench, pause=9.0, resumes=True)
    assert slept == [9.0] * 4


def test_all_that_is_done_is_told_after_each_run(bench: Planted, tmp_path: Path) -> None:
    told: list[int] = []

    def note(done: Sequence[object]) -> None:
        told.append(len(done))

    carry_out(grid(tmp_path, "a", "b"), bench, on_done=note)
    assert told == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("weights", "seconds", "pause"),
    [
        ({"read": 1}, 20.0, 0.0),
        ({"read": 1}, 20.0, 5.0),
        # What it creates is deleted, and what it deletes is uploaded again.
        ({"read": 6, "create": 3, "delete": 1}, 20.0, 0.0),
        ({"read": 1}, None, 0.0),
    ],
)
def test_the_time_that_a_plan_takes(
    weights: dict[str, float], seconds: float | None, pause: float, golden_words: GoldenWords
) -> None:
    scenario = Scenario("s", (SizeClass("c", 1, 1, 0, weights, weight=1.0),), 4, run_seconds=seconds)
    golden_words(plan.describe_time_needed([scenario], 3, pause))


def test_the_time_of_a_plan_counts_what_is_looked_for_before_each_run() -> None:
    scenario = Scenario("s", (SizeClass("c", 1, 1, 4000, {"read": 1}),), 8, run_seconds=20.0)
    least, most = plan.bound_run_seconds(scenario)
    assert (least, most) == (21.0, 24.0 + 4000 * SECONDS_PER_REQUEST / 8)
    other = replace(scenario, run_seconds=40.0)
    assert plan.describe_time_needed([scenario, other], 4).startswith("about 2 min 4 s to ")
