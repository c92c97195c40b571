"""A scenario shared out to several masters: nothing is lost, nothing is added, and what differs is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_words import GoldenWords
from hypothesis import given
from hypothesis import strategies as st

from ssbench.base.errors import ExitCode, UsageError
from ssbench.cli.master import main
from ssbench.results.reading import open_results
from ssbench.run.bench import Bench
from ssbench.run.bench_options import BenchOptions, RunOptions
from ssbench.scenario.draws import Arrivals, derive_group_seed
from ssbench.scenario.master_shares import (
    MasterShare,
    combine_scenarios,
    find_scenario_difference,
    parse_master_share,
    take_master_share,
)
from ssbench.scenario.model import Scenario, SizeClass, Stage, UserGroup

CLASSES = (SizeClass("tiny", 1, 9, 60, (3, 4, 2, 1)), SizeClass("big", 90, 99, 5, (0, 1, 0, 0)))
SCENARIO = Scenario("whole", CLASSES, 17, run_seconds=9.0, rate=100.0)
STAGED = replace(
    SCENARIO, rate=None, stages=(Stage(4, users=(8, 17)), Stage(5, rate=(10.0, 90.0), users=(17, 17)))
)
GROUPED = replace(
    SCENARIO,
    rate=None,
    groups=(UserGroup("web", CLASSES, 12, think_time=1.0), UserGroup("backup", CLASSES, 5, rate=3.0)),
)


def all_of(scenario: Scenario, of: int) -> list[Scenario]:
    return [take_master_share(scenario, MasterShare(number, of)) for number in range(1, of + 1)]


@pytest.mark.parametrize("scenario", [SCENARIO, STAGED, GROUPED], ids=["rate", "stages", "groups"])
@pytest.mark.parametrize("of", [1, 2, 3, 4, 5])
def test_the_portions_of_all_masters_are_the_whole(scenario: Scenario, of: int) -> None:
    portions = all_of(scenario, of)
    for each in portions:
        assert find_scenario_difference(portions[0], each) == ""
        assert each.user_count >= 1
        assert each.user_count == sum(group.user_count for group in each.groups or [each])
    whole = combine_scenarios(portions)
    assert replace(whole, rate=None, stages=(), groups=()) == replace(
        scenario, rate=None, stages=(), groups=()
    )
    assert [stage.users for stage in whole.stages] == [stage.users for stage in scenario.stages]
    found: Any
    expected: Any
    for found, expected in zip((whole, *whole.groups), (scenario, *scenario.groups), strict=True):
        assert found.rate == (None if expected.rate is None else pytest.approx(expected.rate))
        assert found.size_classes == expected.size_classes


@given(st.integers(0, 10**9), st.integers(1, 1000))
def test_a_number_is_shared_out_evenly(whole: int, of: int) -> None:
    shares = [MasterShare(number, of).count(whole) for number in range(1, of + 1)]
    assert sum(shares) == whole
    assert max(shares) - min(shares) <= 1


def test_each_master_has_an_object_of_each_class_and_the_same_mix() -> None:
    portions = all_of(replace(SCENARIO, operation_count=1000, run_seconds=None), 8)
    assert sum(each.operation_count or 0 for each in portions) == 1000
    for each in portions:
        tiny, big = each.size_classes
        assert big.initial_files == 1
        assert tiny.share / big.share == 60 / 5


@pytest.mark.parametrize(
    ("scenario", "wrong"),
    [
        (replace(SCENARIO, user_count=3), "3 users cannot be shared by 4 masters: expected 4 or more"),
        (replace(SCENARIO, operation_count=3), "3 operations cannot be shared by 4 masters"),
        (
            replace(GROUPED, groups=(replace(GROUPED.groups[0], user_count=2),)),
            "2 users of the group web cannot be shared",
        ),
    ],
)
def test_too_little_for_all_is_refused(scenario: Scenario, wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        take_master_share(scenario, MasterShare(1, 4))


def test_what_is_due_evenly_is_due_evenly_of_all_masters_together() -> None:
    moments = []
    for each in all_of(SCENARIO, 4):
        arrivals = Arrivals(each.plan, "even", 1, each.phase)
        moments += arrivals.take(10_000)
    assert len(moments) == 900
    assert np.diff(sorted(moments)) == pytest.approx(0.01)


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/", "/4", "1/4/2", "-1/4", "a/b", "1/99999", ""])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a part such as 1/4"):
        parse_master_share(text)


def test_a_part_is_read_as_it_is_written() -> None:
    assert str(parse_master_share("2/4")) == "2/4"
    assert len({parse_master_share(f"{number}/4").tag for number in range(1, 5)}) == 4


_OTHER_SIZE = (replace(CLASSES[0], size_max=10), CLASSES[1])


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"run_seconds": 8.0},
        {"warmup": 1.0},
        {"rate": None},
        {"size_classes": _OTHER_SIZE},
        {"size_classes": (CLASSES[0], replace(CLASSES[1], initial_files=9))},
        {"container_count": 7},
        {"groups": GROUPED.groups},
    ],
)
def test_what_differs_is_named(changes: dict[str, Any], golden_words: GoldenWords) -> None:
    golden_words(find_scenario_difference(SCENARIO, replace(SCENARIO, **changes)))
    assert find_scenario_difference(SCENARIO, replace(SCENARIO, user_count=3, rate=1.0, data={"x": 1})) == ""


def test_groups_of_one_name_that_differ() -> None:
    other = replace(GROUPED, groups=(replace(GROUPED.groups[0], think_time=2.0), GROUPED.groups[1]))
    assert find_scenario_difference(GROUPED, other) == "the group web"


def test_a_bench_carries_out_the_part_that_it_was_asked_for(tmp_path: Path) -> None:
    options = RunOptions(noop=True, part=MasterShare(2, 3), stats_file=tmp_path / "part.stat.gz", seed=7)
    with Bench(BenchOptions(workers=1)) as bench:
        outcome = bench.run(replace(SCENARIO, rate=None, run_seconds=None, operation_count=100), options)
    assert outcome.count == 33
    results = open_results(tmp_path / "part.stat.gz")
    results.close()
    assert (results.run.scenario.user_count, results.run.options["part"]) == (6, "2/3")
    assert (results.run.options["seed_of_parts"], results.run.seed) == (7, derive_group_seed(7, "part 2/3"))


def test_a_part_without_a_common_beginning_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    for options in (["--part", "1/2"], ["--part", "1/2@2099-01-01T00:00:00"], []):
        assert main(["run-scenario", "-f", "no-such-scenario", *options]) == ExitCode.USAGE
        assert ("--part without a time" in capsys.readouterr().err) is (options[-1:] == ["1/2"])
