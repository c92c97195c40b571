"""Groups of users in scenarios: what a file may say of them, what they draw, how they are judged."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
import yaml
from golden_words import GoldenWords
from result_rows import slow_result

from ssbench.base.errors import GateResult, ScenarioError, UsageError
from ssbench.comparison import sweep_variables
from ssbench.comparison.capacity_report import describe_other_groups
from ssbench.comparison.comparison_verdict import judge_change_condition, judge_comparison
from ssbench.comparison.run_comparison import compare_runs
from ssbench.comparison.run_figures import RunFigures, make_run_figures
from ssbench.comparison.sweep import GroupStep, SweepStep, make_step_scenario
from ssbench.comparison.sweep_variables import GroupVariable, Variable
from ssbench.document.elements import Note
from ssbench.reports import json, key_figures
from ssbench.reports.key_figures import format_object_path
from ssbench.reports.writing import ReportOptions, make_run_report
from ssbench.results.block import Failure, ResultBlock
from ssbench.results.run_description import GroupFacts, RunDescription, RunSummary, StageFacts, WorkerFacts
from ssbench.scenario.conditions import find_unknown_subject, parse_condition
from ssbench.scenario.consistency import override
from ssbench.scenario.draws import Workload, derive_group_seed
from ssbench.scenario.forecast import forecast_scenario
from ssbench.scenario.model import GROUP_RULES, SCENARIO_KEYS, Scenario, Stage
from ssbench.scenario.names import object_prefix
from ssbench.scenario.operations import CREATE, OPERATIONS, READ
from ssbench.scenario.scenario_reading import check_scenario_data, read_scenario
from ssbench.statistics.collector import Collector
from ssbench.statistics.confidence import Interval
from ssbench.statistics.run_verdict import verdict_of
from ssbench.statistics.summary import make_collector, make_statistics

WEB: dict[str, Any] = {"name": "web", "users": 8, "sizes": {"small": 1}, "profile": {"read": 9, "create": 1}}
BACKUP: dict[str, Any] = {
    "name": "backup",
    "users": 4,
    "rate": 5,
    "sizes": {"big": 1},
    "profile": [1, 0, 0, 0],
    "container_base": "backups",
}
#: The shares of a group's size classes are those of its initial files.
NONE = {"small": 0, "big": 0}
SCENARIO: dict[str, Any] = {
    "name": "both",
    "sizes": [
        {"name": "small", "size_min": 1, "size_max": 9},
        {"name": "big", "size_min": 100, "size_max": 900},
    ],
    "initial_files": {"small": 100, "big": 10},
    "run_seconds": 10,
    "groups": [WEB, BACKUP],
}


def read(folder: Path, **changes: Any) -> Scenario:
    path = folder / "groups.yaml"
    path.write_text(
        yaml.safe_dump({key: value for key, value in (SCENARIO | changes).items() if value is not None})
    )
    return read_scenario(str(path))


def faults(folder: Path, **changes: Any) -> str:
    with pytest.raises(ScenarioError) as caught:
        read(folder, **changes)
    return str(caught.value)


def test_each_group_is_what_a_scenario_is_otherwise(tmp_path: Path) -> None:
    scenario = read(tmp_path, container_count=7, warmup=1, groups=[WEB, BACKUP | {"container_count": 2}])
    assert (scenario.user_count, scenario.run_seconds, scenario.containers) == (12, 10, 9)
    web, backup = scenario.parts
    assert [each.share for each in web.size_classes] == [1, 0]
    assert [each.initial_files for each in web.size_classes] == [100, 0]
    assert (web.user_count, web.container_base, web.container_count, web.is_open) == (8, "ssbench", 7, False)
    assert (backup.rate, backup.container_base, backup.container_count, backup.warmup) == (5, "backups", 2, 1)
    assert backup.size_classes[1].weights["create"] == 1
    assert scenario.is_open
    assert scenario.is_mixed
    assert not scenario.stages
    assert str(scenario.groups[0]) == "web 8 users, small x 1 of 100 initial files (create 1, read 9)"


def test_a_scenario_without_groups_is_its_own_part(tmp_path: Path) -> None:
    scenario = read(tmp_path, groups=None, user_count=3, crud_profile=[1, 1, 1, 1])
    assert scenario.parts == (scenario,)
    assert [each.share for each in scenario.size_classes] == [100, 10]


def test_what_a_group_leaves_out_is_that_of_the_scenario(tmp_path: Path) -> None:
    plain = {"name": "plain", "users": 2}
    scenario = read(
        tmp_path, crud_profile=[0, 1, 0, 0], groups=[plain, WEB | {"initial_files": {"small": 5}}]
    )
    everything, web = scenario.parts
    assert [each.initial_files for each in everything.size_classes] == [100, 10]
    assert [each.share for each in everything.size_classes] == [100, 10]
    assert everything.size_classes[0].weights["read"] == 1
    assert [each.initial_files for each in web.size_classes] == [5, 0]


def test_a_class_may_have_initial_files_of_one_group_only(tmp_path: Path) -> None:
    plain, own = {"name": "plain", "users": 2}, {"name": "own", "users": 1, "initial_files": {"big": 7}}
    for initial in ({"small": 100}, {"small": 100, "big": 0}):
        scenario = read(tmp_path, crud_profile=[0, 1, 0, 0], initial_files=initial, groups=[plain, own])
        shares = [{each.name: each.share for each in part.size_classes} for part in scenario.parts]
        assert shares == [{"small": 100, "big": 0}, {"small": 100, "big": 7}]
        assert forecast_scenario(scenario).uploads == 207
    nothing_else = own | {"initial_files": {"small": 0, "big": 7}}
    scenario = read(
        tmp_path, crud_profile=[0, 1, 0, 0], initial_files={"small": 9}, groups=[plain, nothing_else]
    )
    assert [each.uploads for each in forecast_scenario(scenario).groups.values()] == [9, 7]


def test_a_group_may_be_called_like_an_operation_of_another_scenario_only(
    tmp_path: Path, golden_words: GoldenWords
) -> None:
    defined = [{"name": "browse", "method": "GET", "path": "/x"}]
    groups = [WEB | {"name": "browse"}, BACKUP]
    read(tmp_path, operations=defined)
    assert [each.name for each in read(tmp_path, groups=groups).groups] == ["browse", BACKUP["name"]]
    found = faults(tmp_path, operations=defined, groups=groups)
    golden_words(found)


def test_stages_of_groups(tmp_path: Path, golden_words: GoldenWords) -> None:
    stages = [{"seconds": 4, "users": 2}, {"seconds": 3, "users": "2..9"}]
    scenario = read(
        tmp_path, run_seconds=None, groups=[WEB, {"name": "ramp", "profile": {"read": 1}, "stages": stages}]
    )
    assert (scenario.run_seconds, scenario.user_count) == (7, 17)
    assert [part.run_seconds for part in scenario.parts] == [7, 7]
    assert scenario.parts[1].plan[1] == Stage(3, (2, 9))
    golden_words(
        faults(
            tmp_path, run_seconds=5, groups=[WEB, {"name": "ramp", "profile": {"read": 1}, "stages": stages}]
        )
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"groups": []},
        {"groups": [WEB, 3]},
        {"groups": [WEB, WEB]},
        {"groups": [WEB | {"name": "read"}]},
        {"groups": [WEB | {"name": "a.b"}]},
        {"groups": [WEB | {"users": 0}]},
        {"groups": [{"name": "web", "profile": {"read": 1}}]},
        {"groups": [WEB | {"size": {"small": 1}}]},
        {"groups": [WEB | {"sizes": {"smal": 1}}]},
        {"groups": [WEB | {"sizes": {"small": 0}}]},
        {"groups": [WEB | {"sizes": {"small": -1}}]},
        {"groups": [WEB | {"initial_files": {"small": 1.5}}]},
        {"groups": [WEB, {"name": "w", "users": 1, "profile": [1, 0, 0, 0], "initial_files": NONE}]},
        {"groups": [WEB | {"initial_files": {"small": 1, "big": 7}}]},
        {"groups": [WEB | {"sizes": {"small": 1, "big": 0}, "initial_files": {"big": 7}}]},
        {"groups": [WEB | {"crud_profile": [1, 0, 0, 0]}]},
        {"groups": [{"name": "web", "users": 1}]},
        {"groups": [BACKUP | {"think_time": 1}]},
        {
            "sizes": [{"name": "small", "size": "0..9"}, SCENARIO["sizes"][1]],
            "groups": [WEB | {"profile": {"range": 1}}],
        },
        {"user_count": 3},
        {"rate": 3},
        {"stages": [{"seconds": 1, "users": 1}]},
        {"run_seconds": None},
        {"fail_if": ["wep.read.p99 > 1s"]},
    ],
)
def test_what_is_wrong_with_groups(
    tmp_path: Path, changes: dict[str, Any], golden_words: GoldenWords
) -> None:
    golden_words(faults(tmp_path, **changes))


def test_all_faults_of_groups_are_told_at_once(tmp_path: Path) -> None:
    groups = [WEB | {"users": "x"}, BACKUP | {"rate": -1, "sizes": {"bog": 1}}]
    assert len(faults(tmp_path, groups=groups, think_time=1).splitlines()) == 4


def test_options_of_the_command_line_set_nothing_that_groups_say(
    tmp_path: Path, golden_words: GoldenWords
) -> None:
    scenario = read(tmp_path)
    for key, value in (("user_count", 3), ("rate", 2.0), ("operation_count", 9), ("think_time", 1.0)):
        with golden_words.raises(UsageError):
            override(scenario, **{key: value})
    changed = override(scenario, run_seconds=3.0, container_count=4, policy="gold")
    assert [part.run_seconds for part in changed.parts] == [3, 3]
    assert [part.policy for part in changed.parts] == ["gold", "gold"]


def test_groups_draw_independently_and_whatever_the_others_are(tmp_path: Path) -> None:
    scenario = read(tmp_path)
    both = [
        list(islice(Workload(part, derive_group_seed(7, name)).draws(), 50))
        for part, name in zip(scenario.parts, ("web", "backup"), strict=True)
    ]
    assert {draw[:2] for draw in both[0]} <= {(READ.code, 0), (CREATE.code, 0)}
    assert {draw[:2] for draw in both[1]} == {(CREATE.code, 1)}
    # Golden: a group draws the same as long as numpy does.
    assert derive_group_seed(7, "web") == 3641777846950646421
    alone = read(tmp_path, groups=[WEB])
    assert list(islice(Workload(alone.parts[0], derive_group_seed(7, "web")).draws(), 50)) == both[0]
    assert derive_group_seed(7, "web") != derive_group_seed(8, "web") != derive_group_seed(7, "backup")


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "doc" / "scenarios.rst").read_text("utf-8")
    example = (
        text.partition("Groups of users\n-------")[2]
        .partition(".. code-block:: yaml\n")[2]
        .partition("\nAll ")[0]
    )
    path = tmp_path / "example.yaml"
    path.write_text(dedent(example))
    scenario = read_scenario(str(path))
    assert [group.name for group in scenario.groups] == ["web", "backup"]
    section = text.partition("Groups of users\n-------")[2].partition("\nUnits\n")[0]
    own = {"name", "users", "sizes", "initial_files"} | {*GROUP_RULES} - {key.name for key in SCENARIO_KEYS}
    assert [key for key in own if f"``{key}``" not in section] == []


def test_groups_that_are_null_are_as_if_absent() -> None:
    plain = {key: value for key, value in SCENARIO.items() if key != "groups"} | {"profile": {"read": 1}}
    with pytest.raises(ScenarioError, match=r"^scenario: user_count: missing"):
        check_scenario_data(plain | {"groups": None})
    found = check_scenario_data(plain | {"groups": None, "user_count": 3})
    assert (found.user_count, found.groups) == (3, ())


def test_names_of_objects_and_containers(tmp_path: Path) -> None:
    run = RunDescription(read(tmp_path, policy="gold"))
    assert object_prefix("", "small") == "small"
    assert (run.container(1, 1), run.name_object("big", 5, 1)) == (
        "backups_000001_gold",
        "backup-big_000005",
    )
    assert (run.container(1, 0), run.name_object("small", 5)) == (
        "ssbench_000001_gold",
        "web-small_000005",
    )
    assert run.group_names == ("web", "backup")


# -- conditions ----------------------------------------------------------------------------------


def test_the_container_of_an_operation_without_an_object_is_that_of_its_group(tmp_path: Path) -> None:
    run = RunDescription(read(tmp_path))
    bases = [part.container_base for part in run.scenario.parts]
    assert len(set(bases)) > 1
    for name in ("bulk", "list"):
        code = OPERATIONS.named(name).code
        for group, base in enumerate(bases):
            slowest = slow_result(operation=code, container=3, object=1, group=group)
            assert format_object_path(run, slowest) == f"{base}_000003", name


def test_conditions_on_groups(golden_words: GoldenWords) -> None:
    found = parse_condition("web.read.small.p99.9 > 50ms", grouped=True)
    assert (found.group, found.operation, found.size_class, found.figure) == ("web", "read", "small", "p99.9")
    assert found.text == "web.read.small.p99.9 > 50ms"
    assert parse_condition(found.text, grouped=True) == found
    assert parse_condition("backup.undelivered > 1%", grouped=True).group == "backup"
    for plain in ("read.p99 > 1s", "total.p50 > 1s", "rate < 5", "READ.small.p99 > 1s"):
        assert parse_condition(plain, grouped=True) == parse_condition(plain)
    with pytest.raises(ValueError, match="'web' is not an operation"):
        parse_condition("web.read.p99 > 1s")
    assert find_unknown_subject(found, ["small"], ["web"]) is None
    golden_words(str(find_unknown_subject(found, ["small"], ["backup"])))
    # As before where there are no groups.
    assert "'raed' is not an operation" in str(
        find_unknown_subject(parse_condition("raed.p99 > 1s", grouped=True), ["small"])
    )


# -- statistics and verdict ----------------------------------------------------------------------


def results(count: int, group: int, *, due: bool = False, latency: float = 0.01) -> ResultBlock:
    completed = 1e9 + np.linspace(0.1, 9.9, count)
    columns: dict[str, Any] = {
        "operation": np.full(count, CREATE.code if group else READ.code),
        "size_class": np.full(count, group),
        "group": np.full(count, group),
        "worker": np.zeros(count, np.int64),
        "size": np.full(count, 5),
        "completed": completed,
        "last_byte": np.full(count, latency),
        "first_byte": np.full(count, latency),
    }
    if due:
        columns["due"] = completed - latency
    return ResultBlock(count, columns)


class Facts:
    current = True
    warnings = ()
    size_classes = ("small", "big")

    def __init__(self, scenario: Scenario, due: int) -> None:
        self.run = RunDescription(scenario, seed=3, started=1e9)
        stages = [(StageFacts(1e9, 1e9 + 10, each),) for each in (None, due)]
        self.summary = RunSummary(
            1e9 + 11, sent_until=1e9 + 10, groups=tuple(GroupFacts(each) for each in stages)
        )


def judged(scenario: Scenario, *blocks: ResultBlock, due: int = 50) -> Any:
    facts = Facts(scenario, due)
    collector: Collector = make_collector(facts)
    for block in blocks:
        collector.add(block)
    return make_statistics(collector, facts)


def test_figures_by_group_add_up_and_each_is_judged_by_its_own(tmp_path: Path) -> None:
    scenario = read(tmp_path, fail_if=["web.read.p50 > 20ms", "backup.p50 > 20ms"])
    numbers = judged(scenario, results(400, 0), results(50, 1, due=True, latency=0.03))
    web, backup = numbers.by_group
    assert (web.numbers.total.count, backup.numbers.total.count, numbers.total.count) == (400, 50, 450)
    assert web.numbers.total.requests_per_second == pytest.approx(40, rel=0.05)
    assert (backup.numbers.due, backup.numbers.not_begun, numbers.due) == (50, 0, 50)
    found = verdict_of(numbers)
    assert [each.result.value for each in found.judgments] == ["ok", "FAILED"]
    assert [(each.group, each.asked.users, each.asked.rate) for each in found.groups] == [
        ("web", 8, None),
        ("backup", 4, 5),
    ]
    assert [each.delivered.operations for each in found.groups] == [400, 50]
    assert not found.asked.mix


def test_a_group_that_is_twice_as_slow_has_a_row_in_a_comparison(tmp_path: Path) -> None:
    """Its operations are a tenth of all, so that the median of all is the same."""
    scenario = read(tmp_path)

    def runs(latency: float) -> list[RunFigures]:
        return [
            make_run_figures(
                judged(
                    scenario,
                    results(400, 0, latency=0.01 + each / 1e5),
                    results(50, 1, due=True, latency=latency + each / 1e5),
                ),
                f"{latency}-{each}",
            )
            for each in range(4)
        ]

    found = compare_runs(runs(0.03), runs(0.06))
    assert [row.operation for row in found.rows][-1] == "ALL"
    assert {"web.READ", "web.ALL", "backup.CREATE", "backup.ALL"} <= {row.operation for row in found.rows}
    said = judge_comparison(found)
    assert said.headline.startswith("slower: most: ") or said.headline.startswith("slower: ")
    assert "not shown of ALL p50" in said.headline
    assert found.find(None, None, "p50", "web").word == "no difference shown"
    condition = parse_condition("backup.p50 > +50%", relative=True, grouped=True)
    assert judge_change_condition(found, condition).result is GateResult.FAILED
    assert found.groups() == ["web", "backup"]


def test_the_stages_of_groups_make_no_interval_of_all_and_no_number_of_users(tmp_path: Path) -> None:
    """All together had an interval of the rate, and users busy as if the most were always there."""
    stages = [{"seconds": 15, "users": 2}, {"seconds": 15, "users": 8}]
    web = {"name": "web", "profile": {"read": 1}, "stages": stages}
    scenario = read(tmp_path, run_seconds=None, groups=[web])
    facts = Facts(scenario, 0)
    went = (StageFacts(1e9, 1e9 + 15), StageFacts(1e9 + 15, 1e9 + 30))
    facts.summary = replace(facts.summary, sent_until=1e9 + 30, groups=(GroupFacts(went),))
    completed = 1e9 + np.linspace(0.1, 29.9, 600)
    collector = make_collector(facts)
    collector.add(results(600, 0).having(completed=completed, stage=(completed > 1e9 + 15).astype(int)))
    numbers = make_statistics(collector, facts)
    (group,) = numbers.by_group
    for each in (numbers, group.numbers):
        assert each.total.rate_interval is None
        assert verdict_of(each).delivered.users is None
    assert [each.numbers.total.rate_interval is not None for each in group.numbers.stages] == [True, True]


LATE = {"name": "noisy", "profile": {"create": 1}, "stages": [{"seconds": 30, "users": 0}]}


@pytest.mark.parametrize("falls", [True, False])
def test_what_happens_to_others_when_a_group_begins_later_is_said(falls: bool, tmp_path: Path) -> None:
    web = {"name": "web", "users": 2, "profile": {"read": 1}}
    noisy = LATE | {"stages": [*LATE["stages"], {"seconds": 30, "users": 4}]}
    scenario = read(tmp_path, run_seconds=60, groups=[web, noisy])
    assert [str(stage) for stage in scenario.groups[1].stages] == ["0 users", "4 users"]
    facts = Facts(scenario, 0)
    went = (StageFacts(1e9, 1e9 + 30), StageFacts(1e9 + 30, 1e9 + 60))
    whole = GroupFacts((StageFacts(1e9, 1e9 + 60),))
    facts.summary = replace(facts.summary, sent_until=1e9 + 60, groups=(whole, GroupFacts(went)))
    random = np.random.default_rng(1)
    moments = np.sort(1e9 + random.uniform(0, 60, 12_000))
    if falls:
        moments = moments[(moments < 1e9 + 30) | (np.arange(len(moments)) % 2 == 0)]
    slow = np.where(moments < 1e9 + 30, 0.01, 0.02)
    late = 1e9 + np.linspace(30.1, 59.9, 900)
    collector = make_collector(facts)
    collector.add(results(len(moments), 0).having(completed=moments, last_byte=slow))
    block = results(900, 1).having(
        completed=late, stage=np.ones(900, int), operation=np.full(900, CREATE.code)
    )
    collector.add(block)
    numbers = make_statistics(collector, facts)
    (effect,) = numbers.by_group[0].numbers.events
    assert (effect.facts.group, effect.facts.at, effect.fell) == ("noisy", 30.0, falls)
    spans = [each for each in (effect.before, effect.during, effect.after) if each is not None]
    assert [(each.start, each.seconds) for each in spans] == [
        (pytest.approx(0, abs=0.1), pytest.approx(30, abs=0.1)),
        (pytest.approx(30, abs=0.1), pytest.approx(30, abs=0.1)),
    ]
    assert [each.p50 for each in spans] == [pytest.approx(0.01, rel=0.02), pytest.approx(0.02, rel=0.02)]
    assert spans[1].count == pytest.approx(spans[0].count / (2 if falls else 1), rel=0.05)
    assert numbers.by_group[1].numbers.events == ()
    # Its own rate is that of its own time.
    assert numbers.by_group[1].numbers.total.requests_per_second == pytest.approx(30, rel=0.05)
    said = " ".join(make_run_report("full", numbers, ReportOptions()).split())
    how = "rate fell below" if falls else "rate did not fall below"
    assert f"web, from 30 s on with noisy: the {how} that of the slowest second before" in said


@pytest.mark.parametrize(
    ("groups", "stages"),
    [
        ([LATE], None),
        ([LATE | {"stages": [{"seconds": 5, "users": 2}, *LATE["stages"]]}], None),
        ([LATE | {"stages": [{"seconds": 5, "users": 0, "rate": 2}, {"seconds": 5, "users": 2}]}], None),
        (None, [*LATE["stages"], {"seconds": 5, "users": 2}]),
    ],
)
def test_only_the_first_stage_of_a_group_has_no_users(
    groups: list[Any] | None, stages: list[Any] | None, tmp_path: Path, golden_words: GoldenWords
) -> None:
    how = {"groups": groups} if groups else {"groups": None, "stages": stages, "profile": {"read": 1}}
    with golden_words.raises(ScenarioError):
        read(tmp_path, run_seconds=None, **how)


def test_users_of_a_group_that_think_are_not_said_to_be_idle_otherwise(
    tmp_path: Path, golden_words: GoldenWords
) -> None:
    def said(**changes: Any) -> str:
        numbers = judged(read(tmp_path, groups=[WEB | changes]), results(400, 0))
        return next(
            each.text
            for each in key_figures.make_figure_elements(numbers)
            if isinstance(each, Note) and each.text.startswith("Users: ")
        )

    golden_words(said())
    assert said(think_time=1).endswith(" % of the window")


def test_the_causes_of_failures_of_a_group_are_told(tmp_path: Path) -> None:
    whole = results(400, 0)
    causes = [*["HTTP 503"] * 2, "reset", "closed", "read timeout"]
    failures = {place: Failure(cause, "", {}) for place, cause in enumerate(causes)}
    block = ResultBlock(400, {name: getattr(whole, name) for name in whole.given}, failures)
    said = make_run_report("full", judged(read(tmp_path), block), ReportOptions())
    assert "Failures: 2 x HTTP 503, 1 x closed, 1 x read timeout, 1 more cause\n" in said


def test_a_group_that_is_not_met_makes_no_run_green(tmp_path: Path) -> None:
    scenario = read(tmp_path)
    found = verdict_of(judged(scenario, results(400, 0), results(30, 1, due=True)))
    assert found.exit_code == 4 or found.exit_code.name == "NOT_DELIVERED"
    assert any(
        each.text.startswith("group backup: 20 of 50 operations that were due") for each in found.reasons
    )
    nothing = verdict_of(judged(scenario, results(400, 0)))
    assert any(each.text == "group backup: no operation succeeded" for each in nothing.reasons)
    # Which operations a group drew is compared with its own profile.
    others = results(400, 0)
    found = verdict_of(
        judged(scenario, others.having(operation=np.full(400, CREATE.code)), results(50, 1, due=True))
    )
    assert any(
        each.text.startswith("group web: the mix differed from the scenario's: ") for each in found.reasons
    )


@pytest.mark.parametrize(
    "waited",
    [
        390,
        0,
    ],
)
def test_a_group_whose_users_wait_for_objects_does_not_wait_for_the_generator(
    tmp_path: Path, waited: int, golden_words: GoldenWords
) -> None:
    facts = Facts(read(tmp_path), 50)
    web, backup = facts.summary.groups
    facts.summary = replace(
        facts.summary, groups=(replace(web, waited=waited), backup), workers=(WorkerFacts(0, "box"),)
    )
    collector: Collector = make_collector(facts)
    for block in (results(400, 0), results(50, 1, due=True)):
        collector.add(block)
    said = [each.text for each in verdict_of(make_statistics(collector, facts)).reasons]
    (found,) = (each for each in said if each.startswith("group web: ") and "the mix" not in each)
    golden_words(found)


# -- sweeps --------------------------------------------------------------------------------------


def test_a_sweep_over_a_group(tmp_path: Path, golden_words: GoldenWords) -> None:
    found = sweep_variables.parse_sweep("backup.users=0,4,16")
    assert (found.variable, found.values) == (GroupVariable("backup", Variable.USERS), (0, 4, 16))
    assert found.variable.words(1) == "1 user of backup"
    for wrong in ("backup.size=1,2", "backup.user=1", "users=0,1", "backup.users=-1"):
        with pytest.raises(ValueError, match=wrong.partition("=")[0]):
            sweep_variables.parse_sweep(wrong)
    scenario = read(tmp_path, fail_if=["backup.p50 > 1s", "web.p50 > 1s"])
    more = make_step_scenario(scenario, found.variable, 16)
    assert ([group.user_count for group in more.groups], more.user_count) == ([8, 16], 24)
    without = make_step_scenario(scenario, found.variable, 0)
    assert ([group.name for group in without.groups], without.user_count) == (["web"], 8)
    assert without.fail_if == ("web.p50 > 1s",)
    assert make_step_scenario(scenario, GroupVariable("backup", Variable.RATE), 9).groups[1].rate == 9
    with pytest.raises(UsageError, match="which has web, backup; did you mean backup"):
        make_step_scenario(scenario, GroupVariable("backups", Variable.USERS), 4)
    with golden_words.raises(UsageError):
        make_step_scenario(
            replace(scenario, groups=scenario.groups[:1]), GroupVariable("web", Variable.USERS), 0
        )
    with pytest.raises(UsageError, match=r"^web: the scenario '.*' has no groups of users"):
        make_step_scenario(replace(scenario, groups=()), GroupVariable("web", Variable.USERS), 4)


@pytest.mark.parametrize(
    "interval",
    [
        Interval(80, 95, 9),
        Interval(80, 99.5, 9),
        None,
    ],
)
def test_what_one_group_costs_another(interval: Interval | None, golden_words: GoldenWords) -> None:
    def step(value: float, *groups: GroupStep) -> SweepStep:
        return SweepStep(value, 60, 8, 1, None, 1, 1, 1, 1, 1, 0, None, groups=groups)

    backup = GroupStep("backup", 5, None, 0.1, float("nan"))
    steps = [
        step(0, GroupStep("web", 100, Interval(99, 101, 9), 0.01, 0.02)),
        step(16, GroupStep("web", 90, interval, 0.02, 0.05), backup),
    ]
    (sentence,) = describe_other_groups(GroupVariable("backup", Variable.USERS), steps)
    golden_words(sentence)
    assert sentence.startswith("web: 100.0 ops/s, p50 10.0 ms, p99 20.0 ms beside 0 users of backup, ")


def test_a_sequence_of_a_group_is_its_profile(tmp_path: Path, golden_words: GoldenWords) -> None:
    web = {"name": "web", "users": 8, "sequence": ["create", "post", "read"], "popularity": {"zipf": 0.9}}
    scenario = read(tmp_path, groups=[web, {"name": "backup", "users": 1, "profile": {"read": 1}}])
    first, second = scenario.parts
    assert first.operation_names == {"sequence"}
    assert first.steps_of(OPERATIONS.named("sequence")) == ("create", "post", "read")
    assert scenario.steps_of(OPERATIONS.named("sequence")) == ("create", "post", "read")
    assert (str(first.popularity), second.popularity, second.operation_names) == ("zipf 0.9", None, {"read"})
    of_json: Any = json.make_scenario_record(scenario)
    assert {each.name: each.weights for each in of_json.size_classes} == {"small": {}, "big": {}}
    weights = of_json.groups["web"].size_classes[0].weights
    assert {name: weight for name, weight in weights.items() if weight} == {"sequence": 1.0}
    with golden_words.raises(ScenarioError):
        read(tmp_path, groups=[web | {"profile": {"read": 1}}])
