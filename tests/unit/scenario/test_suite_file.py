"""Suites in files: rows, values that vary, scales, and what is wrong with them."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from golden_words import GoldenWords
from said import NO_SUCH_FILE, WANTED_NAME

from ssbench.base.errors import ScenarioError, UsageError
from ssbench.comparison.run_table import name_row_without
from ssbench.scenario.scenario_files import list_shipped_suites
from ssbench.scenario.scenario_reading import read_scenario
from ssbench.scenario.suite_file import Suite, list_container_bases, read_suite

SCENARIO = {
    "sizes": [{"name": "kv", "size": "8MiB"}, {"name": "other", "size": "1..4kB"}],
    "initial_files": {"kv": 4, "other": 2000},
    "container_count": 2,
    "profile": {"read": 1, "range": 1},
    "operations": [{"name": "range", "length": "64KiB"}],
    "user_count": 4,
    "operation_count": 10,
}


def write(folder: Path, **changes: object) -> str:
    suite = {"name": "s", "seconds": 5, "scenarios": {"o": SCENARIO}, "rows": {"kv": {"scenario": "o"}}}
    path = folder / "suite.yaml"
    path.write_text(yaml.safe_dump(suite | changes, sort_keys=False))
    return str(path)


def names(suite: Suite) -> list[str]:
    return [each.name for each in suite.variants]


def test_a_row_has_a_variant_for_each_combination(tmp_path: Path) -> None:
    vary = {"sizes.kv.size": ["1MiB", "2MiB"], "users": [4, 8]}
    suite = read_suite(write(tmp_path, rounds=3, rows={"kv": {"scenario": "o", "vary": vary}}))
    assert names(suite) == [f"kv size={size}MiB users={users}" for size in (1, 2) for users in (4, 8)]
    assert suite.variants[0].file_name == "kv,size=1MiB,users=4"
    found = [(each.scenario.size_classes[0].size_max, each.scenario.user_count) for each in suite.variants]
    assert found == [(size << 20, users) for size in (1, 2) for users in (4, 8)]
    assert (suite.rounds, suite.in_turn) == (3, True)
    assert {each.scenario.run_seconds for each in suite.variants} == {5.0}
    assert {each.scenario.operation_count for each in suite.variants} == {None}


@pytest.mark.parametrize("values", [[4, 4], [{"read": 1}, {"read": 2}]])
def test_no_two_variants_have_the_name_of_one_file(
    tmp_path: Path, values: list[object], golden_words: GoldenWords
) -> None:
    """The run of the second would be taken for that of the first where the suite is gone on with."""
    key = "profile" if isinstance(values[0], dict) else "users"
    rows = {"kv": {"scenario": "o", "vary": {key: values}}}
    with golden_words.raises(ScenarioError):
        read_suite(write(tmp_path, rows=rows))


def test_variants_share_the_containers_of_the_objects_that_they_share(tmp_path: Path) -> None:
    """Those of another size would be replaced in each round."""
    vary = {"sizes.kv.size": ["1MiB", "2MiB"], "users": [4, 8]}
    rows = {
        "kv": {"scenario": "o", "vary": vary},
        "reads": {"scenario": "o", "set": {"profile": {"read": 1}}},
    }
    suite = read_suite(write(tmp_path, rows=rows))
    bases = [each.scenario.container_base for each in suite.variants]
    assert bases == ["ssbench-kv-"] * 2 + ["ssbench-kv-2-"] * 2 + ["ssbench-reads-"]
    assert list_container_bases(suite) == {"": ["ssbench-kv-", "ssbench-kv-2-", "ssbench-reads-"]}
    alone = read_suite(write(tmp_path, rows={"a": {"scenario": "o", "vary": {"users": [1, 2]}}}))
    assert list_container_bases(alone) == {"": ["ssbench"]}


def test_containers_of_other_header_fields_are_others(tmp_path: Path) -> None:
    """A container keeps what it was made with: rows without versions would have those of other rows."""
    vary = {"container_put_headers": {"plain": None, "versions": {"X-Versions-Enabled": "true"}}}
    suite = read_suite(write(tmp_path, rows={"kv": {"scenario": "o", "vary": vary}}))
    assert [each.scenario.container_base for each in suite.variants] == ["ssbench-kv-", "ssbench-kv-2-"]


def test_a_variant_says_the_word_of_each_key_that_varies(tmp_path: Path) -> None:
    vary = {"sizes.kv.size": ["1MiB", "2MiB"], "profile": {"put": {"create": 1}}, "users": [4]}
    (first, _) = read_suite(write(tmp_path, rows={"kv": {"scenario": "o", "vary": vary}})).variants
    assert first.words == {"size": "size=1MiB", "profile": "put", "users": "users=4"}
    assert first.name == " ".join(["kv", *first.words.values()])


def test_rows_are_run_at_the_stores_that_they_name(tmp_path: Path) -> None:
    rows = {
        "Kv_1": {"scenario": "o", "vary": {"store": ["swift", "s3"], "users": [4, 8]}},
        "own": {"scenario": "o", "set": {"store": "old"}},
        "none": {"scenario": "o", "set": {"store": "none"}},
        "rest": {"scenario": "o"},
    }
    suite = read_suite(write(tmp_path, rows=rows), stores={"old": "http://h/v1/AUTH_a", "new": "@new.env"})
    assert [(each.name, each.store) for each in suite.variants] == [
        *[(f"Kv_1 store={api} users={users}", api) for api in ("swift", "s3") for users in (4, 8)],
        ("own", "old"),
        ("none", None),
        ("rest store=old", "old"),
        ("rest store=new", "new"),
    ]
    # Both APIs see the same objects, in containers whose names both take.
    assert {each.scenario.container_base for each in suite.variants} == {"ssbench-"}
    (alone,) = read_suite(write(tmp_path), stores={"s3": ""}).variants
    assert (alone.name, alone.store) == ("kv", "s3")


def test_names_of_containers_are_such_as_both_apis_take(tmp_path: Path) -> None:
    """Objects in segments are others over each API: those of a manifest, and those of an upload of parts."""
    vary = {"store": ["swift", "s3"]}
    rows = {
        "Kv_1.a": {"scenario": "o", "vary": vary},
        "parts": {"scenario": "o", "set": {"sizes.kv.segment_size": "5MiB"}, "vary": vary},
    }
    suite = read_suite(write(tmp_path, rows=rows))
    bases = [each.scenario.container_base for each in suite.variants]
    assert bases == ["ssbench-kv-1-a-"] * 2 + ["ssbench-parts-", "ssbench-parts-2-"]
    assert [*list_container_bases(suite)] == ["swift", "s3"]


def test_what_a_row_sets_varies_no_more(tmp_path: Path) -> None:
    rows = {"kv": {"scenario": "o", "set": {"users": 7}}, "other": {"scenario": "o"}}
    suite = read_suite(write(tmp_path, rows=rows, vary={"users": [1, 2]}))
    assert names(suite) == ["kv", "other users=1", "other users=2"]


@pytest.mark.parametrize(
    ("key", "value", "spelt"),
    [
        ("profile", {"read": 1}, "profile=read"),
        ("profile", {"create": 1, "read": 1}, "profile=create+read"),
        ("profile", {"create": 20, "read": 80}, "profile=create20+read80"),
        ("sizes.kv.size", None, "size=none"),
        ("container_count", 7, "container_count=7"),
        ("operations.range.length", "1KiB", "length=1KiB"),
        ("size", "3kB", "size=3kB"),
    ],
)
def test_how_values_are_called(tmp_path: Path, key: str, value: object, spelt: str) -> None:
    rows = {"kv": {"scenario": "o", "set": {"sizes.kv.size_min": 1, "sizes.kv.size_max": 2}}}
    rows["kv"]["vary"] = {key: [value]}
    if key != "sizes.kv.size":
        rows["kv"].pop("set")
    assert names(read_suite(write(tmp_path, rows=rows))) == [f"kv {spelt}"]


@pytest.mark.parametrize(
    ("key", "text", "spelt"),
    [
        ("objects", "1e3..1e4/3", ["objects=1000", "objects=3162", "objects=10000"]),
        ("users", "4..16", ["users=4", "users=8", "users=16"]),
        ("user_count", "16,4", ["users=4", "users=16"]),
        ("rate", "100..300", ["rate=100", "rate=200", "rate=300"]),
        ("size", "4kB..10kB", ["size=4kB", "size=8kB", "size=10kB"]),
        ("sizes.kv.size", "4KiB,1MB", ["size=4KiB", "size=1MB"]),
    ],
)
def test_values_are_written_as_those_of_sweeps(tmp_path: Path, key: str, text: str, spelt: list[str]) -> None:
    suite = read_suite(write(tmp_path, rows={"kv": {"scenario": "o", "vary": {key: text}}}))
    assert names(suite) == [f"kv {each}" for each in spelt]


def test_values_may_have_names(tmp_path: Path) -> None:
    vary: dict[str, object] = {"profile": {"put": {"create": 1}, "get": {"read": 1}}, "users": [4, 8]}
    suite = read_suite(write(tmp_path, rows={"kv": {"scenario": "o", "vary": vary}}))
    assert names(suite) == ["kv put users=4", "kv put users=8", "kv get users=4", "kv get users=8"]
    assert [
        name for name, weight in suite.variants[0].scenario.size_classes[0].weights.items() if weight
    ] == ["create"]
    vary = {"events": {"quiet": "none", "fault": [{"at": "1s", "command": "true"}]}}
    suite = read_suite(write(tmp_path, rows={"kv": {"scenario": "o", "vary": vary}}))
    assert [(each.name, len(each.scenario.events)) for each in suite.variants] == [
        ("kv quiet", 0),
        ("kv fault", 1),
    ]


def test_a_scale_makes_sizes_smaller_and_no_rows_fewer(tmp_path: Path) -> None:
    (variant,) = read_suite(write(tmp_path), scale=Fraction(1, 64), seconds=2.0).variants
    scenario = variant.scenario
    kv, other = scenario.size_classes
    assert (kv.size_max, kv.initial_files) == (128 << 10, 4)
    assert (other.size_min, other.size_max, other.initial_files) == (1, 62, 1000)
    assert dict(scenario.operations[0].values)["length"] == (1024, 1024)
    assert scenario.run_seconds == 2.0
    assert variant.name == "kv"


def test_names_of_a_scaled_suite_have_the_sizes_of_its_objects(tmp_path: Path) -> None:
    """A row "kv size=64MiB" had objects of 1 MiB."""
    vary = {"sizes.kv.size": ["64MiB", "1000kB", 640, "128..256KiB"], "users": [4]}
    suite = read_suite(write(tmp_path, rows={"kv": {"scenario": "o", "vary": vary}}), scale=Fraction(1, 64))
    sizes = ["1MiB", "15625", "10", "2..4KiB"]
    assert names(suite) == [f"kv size={size} users=4" for size in sizes]
    found = [each.scenario.size_classes[0] for each in suite.variants]
    assert [each.size_max for each in found] == [1 << 20, 15625, 10, 4 << 10]
    assert suite.scale == Fraction(1, 64)
    # Two sizes may become one.
    vary = {"sizes.kv.size": [1, 2]}
    suite = read_suite(write(tmp_path, rows={"kv": {"scenario": "o", "vary": vary}}), scale=Fraction(1, 64))
    assert names(suite) == ["kv size=1-of-1", "kv size=1-of-2"]


@pytest.mark.parametrize(
    ("stores", "url", "segments"),
    [
        ({}, "", [256 << 10, 1 << 20]),
        ({"s3": ""}, "", [5 << 20, 5 << 20]),
        ({"swift": "", "s3": ""}, "", [5 << 20, 5 << 20] * 2),
        ({"far": "s3+https://h"}, "", [5 << 20, 5 << 20]),
        ({"far": "https://h/v1/AUTH_a"}, "s3+https://h", [256 << 10, 1 << 20]),
        ({}, "s3+https://h", [5 << 20, 5 << 20]),
    ],
)
def test_scaled_segments_are_those_that_the_stores_of_a_row_take(
    tmp_path: Path, stores: dict[str, str], url: str, segments: list[int]
) -> None:
    """Of two stores both have the larger ones, so that they can be compared."""
    scenario = {**SCENARIO, "sizes": [{"name": "kv", "size": "1GiB", "segment_size": "16MiB"}]}
    scenario |= {"initial_files": {"kv": 1}, "profile": {"read": 1}, "operations": []}
    vary = {"sizes.kv.segment_size": ["16MiB", "64MiB"]}
    file = write(tmp_path, scenarios={"o": scenario}, rows={"kv": {"scenario": "o", "vary": vary}})
    found = read_suite(file, scale=Fraction(1, 64), stores=stores, storage_url=url)
    assert sorted(each.scenario.size_classes[0].segment_size for each in found.variants) == sorted(segments)
    if len(stores) > 1:  # the same stores, named by sets of keys
        sets = {name: {"store": name, "size": "2GiB"} for name in stores}
        both = {**vary, "set": sets}
        file = write(tmp_path, scenarios={"o": scenario}, rows={"kv": {"scenario": "o", "vary": both}})
        found = read_suite(file, scale=Fraction(1, 64), stores=stores, storage_url=url)
        assert sorted(each.scenario.size_classes[0].segment_size for each in found.variants) == segments
    large = {**scenario, "sizes": [{"name": "kv", "size": "1GiB", "segment_size": "1MiB"}]}
    file = write(tmp_path, scenarios={"o": large})
    small = read_suite(file, scale=Fraction(1, 64), stores={"s3": ""}).variants[0].scenario
    assert small.size_classes[0].segment_size == 1 << 20  # it was too small before


@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        (["kv"], ["kv size=1MiB users=4", "kv size=1MiB users=8"]),
        (["*users=8"], ["kv size=1MiB users=8"]),
        (["l*", "kv size=1MiB users=4"], ["kv size=1MiB users=4", "list"]),
        ([], ["kv size=1MiB users=4", "kv size=1MiB users=8", "list"]),
    ],
)
def test_rows_are_chosen_by_names_and_patterns(tmp_path: Path, rows: list[str], chosen: list[str]) -> None:
    vary = {"sizes.kv.size": ["1MiB"], "users": [4, 8]}
    file = write(tmp_path, rows={"kv": {"scenario": "o", "vary": vary}, "list": {"scenario": "o"}})
    suite = read_suite(file, rows=rows)
    assert (names(suite), suite.left_out) == (chosen, 3 - len(chosen))
    # Those that are left out have no part in what the containers are called.
    bases = {each.name: each.scenario.container_base for each in read_suite(file).variants}
    assert [each.scenario.container_base for each in suite.variants] == [bases[name] for name in chosen]
    stores = read_suite(file, rows=rows, stores={"swift": "", "s3": ""})
    assert len(stores.variants) == 2 * len(chosen)


def test_a_row_that_there_is_not_is_answered_with_a_suggestion(tmp_path: Path) -> None:
    file = write(tmp_path, rows={"kv": {"scenario": "o"}, "listing": {"scenario": "o"}})
    expected = "--rows: 'listings' is none of the rows kv, listing; did you mean listing?"
    with pytest.raises(UsageError, match=re.escape(expected)):
        read_suite(file, rows=["kv", "listings"])


def test_scenarios_are_of_the_suite_or_beside_it_or_shipped(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"name": "mine", **SCENARIO}))
    rows = {"o": {}, "very_small": {}, "m": {"scenario": "mine.yaml"}}
    suite = read_suite(write(tmp_path, rows=rows))
    assert [each.scenario.name for each in suite.variants] == ["o", "Small test scenario", "mine"]


def test_conditions_of_the_suite_and_of_a_row_are_added(tmp_path: Path) -> None:
    rows = {"kv": {"scenario": "o", "fail_if": ["p99 > 1s"]}}
    (variant,) = read_suite(write(tmp_path, rows=rows, fail_if=["errors > 1%"])).variants
    assert variant.scenario.fail_if == ("errors > 1%", "p99 > 1s")


def test_several_keys_vary_together_and_a_suite_has_swifts_of_its_own(tmp_path: Path) -> None:
    together = {"plain": None, "coded": {"store": "ec", "sizes.kv.size": "1MiB"}, "slow": {"store": "s3"}}
    rows = {"kv": {"scenario": "o", "vary": {"users": [1], "set": together}}}
    stores = {"ec": {"policies": ["slim:ec:2+1"], "replicas": 2, "x": {"app": {"y": True}}}, "unused": {}}
    file = write(tmp_path, rows=rows, stores=stores, between="set")
    suite = read_suite(file)
    assert names(suite) == ["kv users=1 plain", "kv users=1 coded", "kv users=1 slow"]
    assert [each.store for each in suite.variants] == [None, "ec", "s3"]
    assert [each.scenario.size_classes[0].size_max >> 20 for each in suite.variants] == [8, 1, 8]
    assert suite.variants[1].words == {"users": "users=1", "set": "coded"}
    said = {"policies": ["slim:ec:2+1"], "replicas": "2", "x": {"app": {"y": "true"}}}
    assert (suite.between, suite.swifts) == ("set", {"ec": said})
    # Those that the command line names are others; rows have a store already.
    other = read_suite(file, stores={"ec": "http://h/v1/AUTH_a"})
    assert (names(other), other.swifts) == (names(suite), {})
    alone = read_suite(file, rows=["*plain"])
    assert (alone.between, alone.swifts) == ("", {})


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"rows": {}}, "rows: expected a mapping of one row or more"),
        ({"rows": {"kv": {"scenari": "o"}}}, r"scenari: unknown key.*did you mean scenario"),
        ({"rows": {"kv": {"scenario": "x"}}}, f"rows.kv.scenario: x: {NO_SUCH_FILE}"),
        ({"rows": {"a b": {"scenario": "o"}}}, f"{WANTED_NAME} letters"),
        ({"rows": {"kv": {"scenario": "o", "vary": {"users": 4}}}}, "rows.kv.vary.users: expected a list"),
        (
            {"rows": {"kv": {"scenario": "o", "vary": {"sizes.vk.size": [1]}}}},
            r"sizes.vk.size: there is no sizes.vk \(kv, other\)",
        ),
        ({"rows": {"kv": {"scenario": "o", "vary": {"user_cuont": [1]}}}}, "user_cuont: unknown key"),
        ({"rows": {"kv": {"scenario": "o", "fail_if": ["p99 ~ 1"]}}}, "rows.kv.fail_if: "),
        ({"order": "random"}, "order: expected 'in turn' or 'one after another', not 'random'"),
        ({"vary": {"objects": "1e3..x"}}, r"rows.kv.vary.objects: 'objects=1e3..x': 'x' is not a number"),
        ({"vary": {"think_time": "1..4"}}, r"rows.kv.vary.think_time: expected a list, or a mapping"),
        ({"vary": {"users": {"a b": 1}}}, r"rows.kv.vary.users: expected a list, or a mapping of names to"),
        (
            {"vary": {"store": ["s4"]}},
            r"store: expected swift, s3 or a name that --store NAME=URL gives, not 's4'",
        ),
        ({"set": {"store": ["s3"]}}, r"rows.kv: store: expected swift"),
        ({"vary": {"set": [4]}}, "rows.kv: set: expected keys and values, not 4"),
        ({"vary": {"set": {"a": {"store": "own"}}}}, "store: expected swift, s3 or a name"),
        ({"stores": {"s3": {}}}, "stores: expected another name, not 's3'"),
        ({"stores": {"own": "2.37.4"}}, "stores.own: expected a mapping, not '2.37.4'"),
        ({"stores": {"own": {}}}, "stores: no row has one of them"),
        ({"between": "users"}, "between: no row varies 'users'"),
        ({"between": 3}, "between: expected a key, not 3"),
        ({"rounds": 0}, "rounds: expected 1 to 1000, not 0"),
        ({"name": ""}, "name: expected a text"),
        ({"rows": {"kv": {"scenario": "o", "vary": {"users": [*range(1, 600)]}}}}, "more than 500 variants"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, changes: dict[str, object], wrong: str) -> None:
    with pytest.raises(ScenarioError, match=wrong):
        read_suite(write(tmp_path, **changes))


def test_what_varies_together_is_said_to_be_wrong_at_another_store_too(
    tmp_path: Path, golden_words: GoldenWords
) -> None:
    with golden_words.raises(ScenarioError):
        read_suite(write(tmp_path, vary={"set": {"a": 4}}), stores={"s3": ""})


@pytest.mark.parametrize(
    ("changes", "line", "wrong"),
    [
        ({"seconds": -3}, 2, "seconds: expected "),
        ({"seconds": 5, "set": {"users": 0}}, None, "set.users: expected "),
        (
            {"rows": {"kv": {"scenario": "o", "vary": {"users": [1, 0]}}}},
            None,
            "rows.kv.vary.users: expected ",
        ),
        (
            {"rows": {"kv": {"scenario": "o", "set": {"sizes.kv.size": -1}}}},
            None,
            "rows.kv: kv: sizes[0].size: expected ",
        ),
    ],
)
def test_a_wrong_value_is_named_as_in_the_suite(
    tmp_path: Path, changes: dict[str, object], line: int | None, wrong: str
) -> None:
    """Not by the name and the line of the scenario that is made of it, which is no file."""
    file = write(tmp_path, **changes)
    with pytest.raises(ScenarioError) as caught:
        read_suite(file)
    (text,) = str(caught.value).splitlines()
    place, _, said = text.partition(": ")
    assert said.startswith(wrong)
    assert place.startswith(f"{file}:")
    assert line is None or place == f"{file}:{line}"
    assert text.count("suite.yaml") == 1


def test_a_suite_that_is_read_as_a_scenario_is_called_one(tmp_path: Path) -> None:
    file = write(tmp_path)
    with pytest.raises(ScenarioError) as caught:
        read_scenario(file)
    assert str(caught.value) == f"{file}: this is a suite: ssbench-master suite {file}"


def test_the_shipped_suites() -> None:
    shipped = ["ai", "features", "quick", "releases", "standard"]
    assert [name for name, _ in list_shipped_suites()] == shipped
    for name, purpose in list_shipped_suites():
        assert len(purpose) > 20
        suite = read_suite(name)
        assert suite.name == name
        assert suite.rounds == 4
    assert len(read_suite("ai", scale=Fraction(1, 64)).variants) == 20
    quick = read_suite("quick")
    names_ = ["small put", "small get", "small mixed", "large put", "large get", "list"]
    assert names(quick) == names_
    # What is created is deleted at the end of each run, at about the same rate.
    seconds = [each.scenario.run_seconds or 0.0 for each in quick.variants]
    deletions = sum(each for name, each in zip(names_, seconds, strict=True) if name.endswith("put"))
    assert 240 <= quick.rounds * (sum(seconds) + deletions) <= 300
    with pytest.raises(
        ScenarioError, match=r"quik: .*\(ai, features, quick, releases, standard\); did you mean quick"
    ):
        read_suite("quik")


SHOP = {
    "sizes": [{"name": "tiny", "size": 1}],
    "initial_files": {"tiny": 10},
    "groups": [
        {"name": "web", "users": 2, "profile": {"read": 1}},
        {"name": "noisy", "users": 4, "profile": {"create": 1}},
    ],
}
COST = "web.read.p99 > +20% with noisy"


def test_a_row_is_run_without_a_group_whose_cost_is_judged(tmp_path: Path) -> None:
    rows = {"shop": {"scenario": "shop", "fail_if": [COST, "errors > 1%"], "vary": {"size": ["1kB", "2kB"]}}}
    path = write(tmp_path, scenarios={"shop": SHOP, "o": SCENARIO}, rows={**rows, "kv": {"scenario": "o"}})
    suite = read_suite(path)
    assert names(suite) == [
        *(
            "shop size=1kB without=noisy",
            "shop size=1kB",
            "shop size=2kB without=noisy",
            "shop size=2kB",
            "kv",
        ),
    ]
    without, whole = suite.variants[:2]
    assert [[each.name for each in row.scenario.groups] for row in (without, whole)] == [
        ["web"],
        ["web", "noisy"],
    ]
    assert without.scenario.container_base == whole.scenario.container_base  # the same objects
    assert {row.scenario.fail_if for row in (without, whole)} == {("errors > 1%",)}
    (cost,) = whole.costs
    assert (cost.text, cost.condition.limit, cost.name_row_without("shop")) == (
        COST,
        0.2,
        "shop without=noisy",
    )
    assert not without.costs
    # So that sizes are compared without the group too.
    assert [name_row_without(row.name, row.words, "size") for row in (without, whole)] == [
        "shop without=noisy",
        "shop",
    ]
    # What is chosen has what it is compared with.
    assert names(read_suite(path, rows=["shop size=2kB"])) == ["shop size=2kB without=noisy", "shop size=2kB"]
    assert read_suite(path, rows=["shop size=2kB"]).left_out == 2


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("web.read.p99 > +20% with nosy", "nosy is not a group of users"),
        ("web.read.p99 > 2s with noisy", "expected a change, as in 'web.read.p99 > +20% with noisy'"),
        ("noisy.create.p99 > +20% with noisy", "expected a figure of another group (web) before 'with'"),
        ("read.p99 > +20% with noisy", "expected a figure of another group (web) before 'with'"),
        ("web.delete.p99 > +20% with web", "expected a figure of another group (noisy)"),
        ("web.reed.p99 > +20% with noisy", "'reed'"),
        ("web.read.p99 with noisy", "is not a condition"),
    ],
)
def test_a_cost_of_a_group_that_cannot_be_judged_is_refused(condition: str, why: str, tmp_path: Path) -> None:
    rows = {"shop": {"scenario": "shop", "fail_if": [condition]}}
    with pytest.raises(ScenarioError, match=r"rows\.shop\.fail_if: ") as error:
        read_suite(write(tmp_path, scenarios={"shop": SHOP}, rows=rows))
    assert why in str(error.value)
