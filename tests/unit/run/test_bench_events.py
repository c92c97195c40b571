"""Commands of a scenario, which may be somebody else's, are run only where that is allowed."""

from __future__ import annotations

import pytest
from golden_words import GoldenWords

from ssbench.base.errors import ScenarioError, UsageError
from ssbench.run.bench import Bench
from ssbench.run.bench_options import BenchOptions, RunOptions
from ssbench.scenario.master_shares import MasterShare, take_master_share
from ssbench.scenario.scenario_reading import check_scenario_text
from ssbench.scenario.value_rules import TimedCommand, make_timed_command

TEXT = (
    "{name: a, run_seconds: 5, user_count: 4, sizes: [{name: s, size: 4kB}], initial_files: {s: 9},"
    " profile: {read: 1}, events: EVENTS}"
)


def read(events: str) -> tuple[TimedCommand, ...]:
    return check_scenario_text(TEXT.replace("EVENTS", events), "file").events


def test_commands_of_a_scenario_need_to_be_allowed(golden_words: GoldenWords) -> None:
    scenario = check_scenario_text(TEXT.replace("EVENTS", "[{at: 1m, command: rm x}]"), "file")
    bench = Bench(BenchOptions(workers=1))
    with golden_words.raises(UsageError):
        bench._check(scenario, RunOptions(noop=True))
    assert bench._check(scenario, RunOptions(noop=True, allow_events=True)).events == scenario.events


def test_events_of_a_file() -> None:
    assert read("[{at: 1m, command: a}, {at: 0.5, command: b}]") == (
        TimedCommand(60.0, "a"),
        TimedCommand(0.5, "b"),
    )
    assert read("[]") == ()


@pytest.mark.parametrize(
    "events",
    [
        "reboot",
        "[{at: 1}]",
        "[{at: -1, command: a}]",
        "[{at: soon, command: a}]",
        "[{at: true, command: a}]",
        "[{at: 1, command: ''}]",
        "[{at: 1, command: 5}]",
    ],
)
def test_wrong_events(events: str, golden_words: GoldenWords) -> None:
    with pytest.raises(ScenarioError) as found:
        read(events)
    golden_words(str(found.value))


def test_the_first_of_several_masters_runs_them() -> None:
    scenario = check_scenario_text(TEXT.replace("EVENTS", "[{at: 1m, command: a}]"), "file")
    assert [len(take_master_share(scenario, MasterShare(each, 2)).events) for each in (1, 2)] == [1, 0]


def test_times_of_the_command_line_have_units() -> None:
    assert make_timed_command("1m30s", "x") == TimedCommand(90.0, "x")
    assert str(TimedCommand(90.0, "x")) == "90 s: x"
