"""What two runs should have in common: every setting that is recorded is compared."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest
from golden_words import GoldenWords
from simulated_runs import SCENARIO

from ssbench.base.option import OptionRow, list_options
from ssbench.comparison.run_figures import (
    FigureSample,
    RunFigures,
    collect_run_facts,
    describe_fact_differences,
    describe_side_swifts,
)
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.results.reading import open_results
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.run.bench_options import BenchOptions, ErrorLimit, RunOptions, RunSide, recorded_options
from ssbench.run.trial_swift import TrialSwift
from ssbench.scenario.master_shares import MasterShare
from ssbench.scenario.model import SCENARIO_KEYS, Scenario, SizeClass, Stage, UserGroup, Weights
from ssbench.scenario.operations import OperationSettings
from ssbench.scenario.value_rules import TimedCommand
from ssbench.statistics.summary import summarize
from ssbench.store.request_options import RequestOptions

BENCH = BenchOptions(workers=2)

#: What the options of a run are, by the names of their fields.
ROWS = {**list_options(RequestOptions), **list_options(RunOptions)}

#: Options that change no figure, or that a stat file keeps elsewhere.
ELSEWHERE = {name for name, row in ROWS.items() if not row.option.kept} | {
    "label",
    "allow_events",
    "stats_file",
    "force",
    "until",  # how long a run was is kept
    "profile",
    "undecided",
    "suite_place",
    "plan_phase",
    "plan_began",
    "fill",  # which objects there are is kept
    "filled",  # of the counters
    "existing",  # of a row of a suite, whose name is kept
    "replayed",  # the name of its scenario says which log it is of
}


def other_value(row: OptionRow) -> object:
    """Return a value other than the default."""
    return not row.default if isinstance(row.default, bool) else (row.default or row.least or 0) + 1


#: A value other than the default for each option of a run that the stat file keeps.
OPTIONS = {
    **{name: other_value(row) for name, row in ROWS.items() if name not in ELSEWHERE},
    "resolve": "swift=10.0.0.1,10.0.0.2",
    "max_errors": ErrorLimit(count=3),
    "find_warmup": True,
    "sides": (RunSide("a", policy="x"), RunSide("b", policy="y")),
    "part": MasterShare(1, 4),
    "events": (TimedCommand(1.0, "true"),),
    "store": "s3",
}

#: Keys with values other than the default, as a scenario has them.
EXAMPLES = {key.name: key.rule.read(key.example) for key in SCENARIO_KEYS if key.rule is not None}

#: A value other than the default for each field of a scenario.
SETTINGS = {
    **{field.name: EXAMPLES[field.name] for field in fields(Scenario) if field.name in EXAMPLES},
    "size_classes": (SizeClass("small", 2, 3, 4, (0, 1, 0, 0)),),
    "delete_after": 60,
    "delete_after_most": 90,
    "stages": (Stage(20.0, (1, 2)),),
    "phase": 0.25,
    "keeps_places": True,
    "operations": (OperationSettings("read", (("X-Newest", "true"),)),),
    "groups": (UserGroup("web", SCENARIO.size_classes, 3),),
}


def facts(
    tmp_path: Path, scenario: Scenario = SCENARIO, bench: BenchOptions = BENCH, **options: object
) -> dict[str, str]:
    """Return the facts of a run as its stat file has them."""
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.stat.gz"
    of_requests = {name: options.pop(name) for name in [*options] if name in list_options(RequestOptions)}
    requests = RequestOptions(**of_requests)
    run = RunOptions(requests=requests, **options)
    writer = RunResultsWriter(path, RunDescription(scenario, "1", 7, recorded_options(bench, run, "mark")))
    writer.end(RunSummary(1e9))
    return collect_run_facts(summarize(open_results(path)))


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_that_differs_is_said(tmp_path: Path, option: str) -> None:
    found = list(describe_fact_differences([facts(tmp_path)], [facts(tmp_path, **{option: OPTIONS[option]})]))
    assert len(found) == 1
    assert " differs: " in found[0]


def test_no_option_is_forgotten() -> None:
    names = {field.name for field in fields(RunOptions)} - {"requests", "swift"} | ROWS.keys()
    assert names == OPTIONS.keys() | ELSEWHERE, "a new field is an option, or named here"


@pytest.mark.parametrize("setting", sorted(SETTINGS.keys() - {"operation_count", "fail_if"}))
def test_every_setting_of_a_scenario_that_differs_is_said(tmp_path: Path, setting: str) -> None:
    other = replace(SCENARIO, **{setting: SETTINGS[setting]})
    found = list(describe_fact_differences([facts(tmp_path)], [facts(tmp_path, other)]))
    assert found
    assert all(" differs: " in each for each in found)


def test_stages_that_differ_in_their_lengths_alone_are_said(tmp_path: Path) -> None:
    """The same loads for 10 and 50 s, and for 50 and 10 s, were equal runs, of one noise floor."""
    first, second = (
        facts(tmp_path, replace(SCENARIO, stages=(Stage(one, (4, 4)), Stage(60.0 - one, (64, 64)))))
        for one in (10.0, 50.0)
    )
    assert [*describe_fact_differences([first], [second])] == [
        "stages differs: 4 users for 10 s, 64 users for 50 s before,"
        " 4 users for 50 s, 64 users for 10 s after"
    ]


#: A value other than the default for each field of a group.
GROUP = {
    **{field.name: EXAMPLES[field.name] for field in fields(UserGroup) if field.name in EXAMPLES},
    "name": "backup",
    "size_classes": (replace(SCENARIO.size_classes[0], initial_files=77, weight=1.0),),
    "user_count": 9,
    "stages": (Stage(20.0, (1, 2)),),
    "operations": (OperationSettings("sequence", values={"steps": ["create", "read"]}),),
}


@pytest.mark.parametrize("setting", [field.name for field in fields(UserGroup)])
def test_every_setting_of_a_group_that_differs_is_said(tmp_path: Path, setting: str) -> None:
    classes = (replace(SCENARIO.size_classes[0], weight=1.0),)
    group = UserGroup("web", classes, 3)
    before, after = (
        facts(tmp_path, replace(SCENARIO, groups=(each,)))["groups"]
        for each in (group, replace(group, **{setting: GROUP[setting]}))
    )
    assert before != after


def test_no_setting_is_forgotten() -> None:
    names = {field.name for field in fields(Scenario)}
    assert names - {"data"} == SETTINGS.keys()


def test_equal_runs_have_all_in_common(tmp_path: Path) -> None:
    assert list(describe_fact_differences([facts(tmp_path)], [facts(tmp_path, label="x")])) == []


def test_settings_of_local_swifts_that_differ_are_said_in_one_sentence(
    tmp_path: Path, golden_words: GoldenWords
) -> None:
    def of_swift(*settings: str, filters: tuple[str, ...] = ()) -> dict[str, str]:
        swift = TrialSwift(settings=settings, filters=filters)
        return facts(tmp_path, bench=BenchOptions(workers=2, local_swift=True), swift=swift)

    slower, faster = (of_swift(f"proxy-server:filter:slo:concurrency={number}") for number in (2, 8))
    golden_words(list(describe_fact_differences([slower], [faster, faster])))
    assert list(describe_fact_differences([faster], [faster])) == []
    encrypted = of_swift("object-server:app:splice=yes", "*:DEFAULT:log_level=DEBUG", filters=("encryption",))
    golden_words(list(describe_fact_differences([of_swift()], [encrypted])))
    golden_words(list(describe_fact_differences([slower, faster], [faster])))
    secret = of_swift("proxy-server:filter:keymaster:encryption_root_secret=xyz")
    assert "xyz" not in str(secret)
    # What another cluster has set is not known.
    assert list(describe_fact_differences([facts(tmp_path)], [faster])) == [
        "storage URL differs: none before, a local Swift after",
        "local swift differs: none before, yes after",
    ]


def test_the_swifts_of_both_sides_that_differ_are_said_in_one_sentence(golden_words: GoldenWords) -> None:
    def of_sides(*swifts: TrialSwift) -> RunDescription:
        sides = tuple(
            RunSide(name, swift=swift) for name, swift in zip(("old", "new"), swifts, strict=bool(swifts))
        )
        options = recorded_options(BENCH, RunOptions(sides=sides), "mark")
        return RunDescription(SCENARIO, "1", 7, options, sides=tuple(each.name for each in sides))

    old, new = TrialSwift(version="2.37.4"), TrialSwift(version="2.38.3", filters=("encryption",))
    differences, shared = describe_side_swifts(of_sides(old, new))
    assert differences == (
        "the local Swifts of old and new differ in: version 2.37.4 -> 2.38.3,"
        " filter encryption default -> added"
    )
    golden_words(shared)
    assert of_sides(old, new).sides_as_given == ("old=2.37.4", "new=2.38.3")
    assert describe_side_swifts(of_sides(old, old)) == [shared]
    assert not describe_side_swifts(of_sides())


def test_what_a_file_does_not_know_is_named_once() -> None:
    new = {"users": "4", "block size": "65536", "retries": "10", "verify": ""}
    assert list(describe_fact_differences([{"users": "4"}], [new])) == [
        "not known before: block size, retries"
    ]
    assert list(describe_fact_differences([new], [{"users": "4"}])) == [
        "not known after: block size, retries"
    ]


def test_a_table_tells_apart_whatever_differs() -> None:
    def run(label: str, **known: str) -> RunFigures:
        row = {("ALL", None): {"rate": FigureSample(5.0)}}
        return RunFigures("r", row, {"scenario": "s", "seed": label, **known}, label=label)

    write = products.find_writer(Product.CONFIGURATIONS, "text")
    lines = write([run("a"), run("a"), run("b", **{"think time": "0.5"})]).splitlines()
    assert lines[0].split() == ["scenario", "label", "think", "time", "runs", "all/s", "MB/s", "p99", "ms"]
    assert lines[1].split()[:4] == ["s", "a", "2", "5.00"]
    assert lines[2].split()[:4] == ["s", "b", "0.5", "1"]
    assert write([run("")]).split()[:2] == ["scenario", "runs"]


@pytest.mark.parametrize(
    ("before", "after", "mix"),
    [
        ({"read": 9, "head": 1}, {"read": 9, "list": 1}, "head 1, read 9"),
        ((1, 9, 0, 0.5), {"read": 9, "create": 1}, "1/9/0/0.5"),
    ],
)
def test_mixes_of_other_operations_differ(tmp_path: Path, before: Weights, after: Weights, mix: str) -> None:
    first, second = (
        facts(
            tmp_path, replace(SCENARIO, size_classes=(replace(SCENARIO.size_classes[0], crud_profile=each),))
        )
        for each in (before, after)
    )
    assert first["mix"] != second["mix"]
    assert first["mix"] == f"{SCENARIO.size_classes[0].name} {mix}"


def test_a_mix_is_the_same_however_a_scenario_says_it(tmp_path: Path) -> None:
    mixes = {
        facts(
            tmp_path, replace(SCENARIO, size_classes=(replace(SCENARIO.size_classes[0], crud_profile=each),))
        )["mix"]
        for each in (
            (1.0, 9.0, 0.0, 0.0),
            {"read": 9.0, "create": 1.0},
            {"create": 1.0, "read": 9.0, "head": 0.0},
        )
    }
    assert len(mixes) == 1
