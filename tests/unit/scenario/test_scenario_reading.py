"""Scenario files: what is read, what is refused and in which words."""

from __future__ import annotations

import json
import logging
import math
import re
from dataclasses import replace
from itertools import islice
from pathlib import Path
from textwrap import dedent

import pytest
import yaml
from golden_words import GoldenWords
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from said import (
    FROM_ONE,
    OF_NO_OBJECT,
    WANTED_MAPPINGS,
    WANTED_NAME,
)
from scenario_texts import EXPECTED, YAML, faults_of, with_stages

from ssbench import load_scenario
from ssbench.base.errors import ScenarioError, UsageError
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.scenario import key_rules, model, sizes
from ssbench.scenario.consistency import override
from ssbench.scenario.draws import Workload
from ssbench.scenario.model import Stage
from ssbench.scenario.operations import OPERATIONS
from ssbench.scenario.scenario_files import list_shipped_scenarios
from ssbench.scenario.scenario_reading import read_scenario


def test_of_very_many_faults_the_first_twenty_are_said_and_how_many_more_there_are(tmp_path: Path) -> None:
    """The text was longer than what may wait for a terminal, and dropped as a whole."""
    file = tmp_path / "many.yaml"
    file.write_text("name: x\n" + "".join(f"key{number}: 1\n" for number in range(10_000)))
    with pytest.raises(ScenarioError) as caught:
        read_scenario(str(file))
    first, *others, last = str(caught.value).split("\n")
    assert len(others) == 19
    assert "missing" in first  # what has no line comes first
    assert f"{file}:2: key0: unknown key" in str(caught.value)
    assert last == f"{file}: and 9,984 more faults"
    file.write_text(f"name: x\n{'y' * 900_000}: 1\n")
    with pytest.raises(ScenarioError) as caught:
        read_scenario(str(file))
    assert len(str(caught.value)) < 50_000


def test_yaml(write):
    assert read_scenario(write(YAML)) == EXPECTED


def test_a_scenario_of_a_mapping(golden_words: GoldenWords):
    data = EXPECTED.data
    assert load_scenario(data) == EXPECTED
    endless = {key: value for key, value in data.items() if key != "operation_count"}
    assert load_scenario(endless, limited=True).operation_count is None
    with pytest.raises(ScenarioError, match=r"^scenario: "):
        load_scenario(endless)
    with golden_words.raises(UsageError):
        load_scenario({**data, "name": object()})


def test_every_key(write):
    more = "container_base: bench\ncontainer_count: 5\ncontainer_concurrency: 3\n"
    scenario = read_scenario(write(YAML + more + "delete_after: 60\npolicy: gold\n"))
    assert (scenario.container_base, scenario.container_count, scenario.container_concurrency) == (
        "bench",
        5,
        3,
    )
    assert (scenario.delete_after, scenario.policy) == (60, "gold")


def test_optional_keys_may_be_empty(write):
    scenario = read_scenario(write(YAML + "delete_after:\npolicy: null\nrun_seconds: ~\n"))
    assert (scenario.delete_after, scenario.policy, scenario.run_seconds) == (None, None, None)


def test_no_common_profile_needed_when_each_used_class_has_one(write):
    text = YAML.replace("crud_profile: [3, 4, 2, 2]\n", "").replace(
        "size_max: 65536", "size_max: 65536\n  crud_profile: [1, 0, 0, 0]"
    )
    assert [each.crud_profile for each in read_scenario(write(text)).size_classes] == [
        (1.0, 0.0, 0.0, 0.0),
        (0.0, 9.0, 0.0, 1.0),
    ]


def test_weights_by_name_mean_the_same_as_a_list(write):
    by_name = YAML.replace("[0, 9, 0, 1]", "{read: 9, delete: 1}")
    scenario = read_scenario(write(by_name))
    assert scenario.size_classes[1].crud_profile == {"read": 9.0, "delete": 1.0}
    assert scenario.size_classes[0].weights == {"create": 3.0, "read": 4.0, "update": 2.0, "delete": 2.0}
    listed = read_scenario(write(YAML))
    draws = [list(islice(Workload(each, 7).draws(), 2000)) for each in (scenario, listed)]
    assert draws[0] == draws[1]


def test_seconds_win_over_a_count_in_the_file(write, caplog):
    with caplog.at_level(logging.WARNING):
        scenario = read_scenario(write(YAML + "run_seconds: 30\n"))
    assert (scenario.run_seconds, scenario.operation_count) == (30, None)
    assert "run_seconds wins" in caplog.text


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("name: Small", "nam: x\nname: Small", "1"),
        ("user_count: 7", "user_count: 7\nrun_second: 5", "19"),
        ("user_count: 7", "user_count: 7\nduration: 5", "19"),
        ("user_count: 7", "user_count: 7\nVUs: 5", "19"),
        ("name: Small test scenario\n", "", None),
        ("name: Small test scenario", "name: 2013-06-07", "1"),
        ("name: Small test scenario", "name: ''", "1"),
        ("name: Small", "name: x\nname: Small", "2"),
        ("user_count: 7\n", "", None),
        ("user_count: 7", "user_count: 0", "18"),
        ("user_count: 7", "user_count: true", "18"),
        ("user_count: 7", "user_count: 7.5", "18"),
        ("user_count: 7", "user_count:", "18"),
        ("operation_count: 500\n", "", None),
        ("operation_count: 500", "run_seconds: .nan", "16"),
        ("operation_count: 500", "run_seconds: .inf", "16"),
        ("operation_count: 500", "run_seconds: 0", "16"),
        ("operation_count: 500", "operation_count: '500'", "16"),
        ("crud_profile: [3, 4, 2, 2]\n", "", None),
        ("[3, 4, 2, 2]", "[0, 0, 0, 0]", "17"),
        ("[3, 4, 2, 2]", "[3, 4, 2]", "17"),
        ("[3, 4, 2, 2]", "[3, 4, 2, -1]", "17"),
        ("[3, 4, 2, 2]", "[3, 4, 2, .nan]", "17"),
        ("[3, 4, 2, 2]", "[3, 4, 2, true]", "17"),
        ("[3, 4, 2, 2]", "[1.0e+308, 1.0e+308, 2, 2]", "17"),
        ("[0, 9, 0, 1]", "[0, 0, 0, 0]", "9"),
        ("- name: unused", "- name: tiny", "10"),
        ("- name: unused", '- name: "two\\nlines"', "10"),
        ("- name: unused", "- name: no", "10"),
        ("size_min: 4096", "size_min: 70000", "4"),
        ("size_min: 4096", "size_min: -1", "4"),
        ("size_max: 65536", "size_max: 1e-6", "5"),
        ("size_max: 65536", "size_max: 65536.5", "5"),
        ("size_max: 65536", "size_max: 9223372036854775808", "5"),
        ("size_max: 65536", "size_max: 64Q", "5"),
        ("size_max: 65536", "size_max: '65536'", "5"),
        ("operation_count: 500", "run_seconds: 5parsec", "16"),
        ("operation_count: 500", "run_seconds: 0s", "16"),
        ("user_count: 7", "user_count: 7\ndelete_after: 1500ms", "19"),
        ("user_count: 7", "user_count: 7s", "18"),
        ("  size_max: 65536\n", "", "3"),
        ("  size_max: 65536", "  size_max: 65536\n  colour: red", "6"),
        ("- name: unused", "- 5\n- name: unused", "10"),
        ("  small: 10", "  large: 10", "14"),
        ("  small: 10", "  smal: 10", "14"),
        ("  small: 10", "  small: -1", "14"),
        ("  small: 10", "  7: 10", "14"),
        ("  small: 10\n  tiny: 100", "  small: 0", "13"),
        ("  small: 10\n  tiny: 100", "- small", "13"),
        ("user_count: 7", "user_count: 7\npolicy: 'a/b'", "19"),
        ("user_count: 7", 'user_count: 7\npolicy: "a\\r\\nX-Evil: 1"', "19"),
        ("user_count: 7", "user_count: 7\ncontainer_base: a/b", "19"),
        ("user_count: 7", "user_count: 7\ncontainer_count: 0", "19"),
        ("user_count: 7", "user_count: 7\ndelete_after: -5", "19"),
        ("user_count: 7", "user_count: [7", "19"),
        ("user_count: 7", "user_count: *seven", "18"),
        ("user_count: 7", "user_count: !!python/name:os.system", "18"),
        ("user_count: 7", "user_count: 7\n---\nname: two", "19"),
        ("user_count: 7", "user_count: !!int seven", "18"),
        ("user_count: 7", "user_count: 2013-13-45", "18"),
        ("user_count: 7", "user_count: !!set {a, b}", "18"),
        ("user_count: 7", "[user_count]: 7", "18"),
        ("user_count: 7", "<<: 7", "18"),
        ("user_count: 7", "user_count: \0", None),
    ],
)
def test_one_fault(write, old, new, line, golden_words: GoldenWords):
    assert old in YAML
    (fault,) = faults_of(write(YAML.replace(old, new, 1)))
    golden_words(fault)
    assert fault.startswith(f"{line}: " if line else " ")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("size_max: 65536", "size_max: 65536.0"),
        ("size_max: 65536", "size_max: 6.5536e4"),
        ("size_min: 100000", "size_min: 1e5"),
        ("size_min: 100000", "size_min: 1E+5"),
        ("tiny: 100", "tiny: 1e2"),
        ("operation_count: 500", "operation_count: 500.0"),
        ("user_count: 7", "user_count: 7.0"),
    ],
)
def test_a_whole_number_may_be_spelt_in_any_way(write, old, new):
    assert old in YAML
    assert replace(read_scenario(write(YAML.replace(old, new))), data={}) == replace(EXPECTED, data={})


def test_sizes_as_numbers_of_json_write_them():
    """Programs write 1e3 and 3000.0, which ssbench 0.3.9 took."""
    case = Path(__file__).parents[2] / "data" / "cases" / "62-whole-floats" / "floats.scenario"
    found = read_scenario(str(case))
    (size_class,) = found.size_classes
    assert (size_class.size_min, size_class.size_max, found.operation_count) == (1000, 3000, 20)
    assert {type(size_class.size_min), type(size_class.size_max), type(found.operation_count)} == {int}


def test_stages_take_whole_numbers_in_any_spelling(write):
    stages = "stages:\n- {seconds: 5, users: 1e1}\n- {seconds: 5, users: 4.0}\n"
    found = read_scenario(write(with_stages(stages, users=""))).stages
    assert [stage.users for stage in found] == [(10, 10), (4, 4)]


def test_all_faults_are_told_at_once_in_the_order_of_the_file(write):
    text = (
        YAML.replace("user_count: 7", "user_count: many")
        .replace("4096", "-4")
        .replace("tiny: 100", "tony: 1")
    )
    assert [fault.split(" expected")[0] for fault in faults_of(write(text))] == [
        "4: sizes[0].size_min:",
        "15: initial_files.tony:",
        "18: user_count:",
    ]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["tiny", "small", [3, 4, 2, 2], {"tiny": 5}]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=10,
)
KEYS = st.sampled_from([*EXPECTED.data, "run_seconds", "policy", "delete_after", "container_base", "other"])


def loads_or_is_refused(path: Path) -> None:
    try:
        scenario = read_scenario(str(path))
    except ScenarioError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - most inputs are refused, some are not
    else:
        assert scenario.size_classes
        assert (scenario.operation_count is None) != (scenario.run_seconds is None)
        assert all(
            each.size_min <= each.size_max and sum(each.crud_profile) > 0 for each in scenario.size_classes
        )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=4), st.booleans())
def test_any_values_load_or_are_refused(tmp_path, changes, as_json):
    data = EXPECTED.data | changes
    path = tmp_path / "any"
    path.write_text(json.dumps(data) if as_json else yaml.safe_dump(data, allow_unicode=True), "utf-8")
    loads_or_is_refused(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.binary(max_size=60) | st.text("{}[]:,-&*<!|>'\"\n ab1.~#%@`?\t", max_size=60).map(str.encode),
    st.integers(0, len(YAML)),
    st.integers(0, 20),
)
def test_any_bytes_load_or_are_refused(tmp_path, inserted, at, cut):
    path = tmp_path / "any"
    path.write_bytes(YAML[:at].encode() + inserted + YAML[at + cut :].encode())
    loads_or_is_refused(path)
    path.write_bytes(inserted)
    loads_or_is_refused(path)


def test_the_documentation_tells_every_key_and_every_shipped_scenario(write):
    folder = Path(__file__).parents[3] / "doc"
    text = (folder / "scenarios.rst").read_text("utf-8")
    example = (
        text.partition("Format\n------\n")[2].partition(".. code-block:: yaml\n")[2].partition("\n``")[0]
    )
    assert read_scenario(write(dedent(example))).size_classes == EXPECTED.size_classes
    keys = {*model.SCENARIO_RULES, *key_rules.CLASS_RULES, *key_rules.STAGE_RULES}
    keys |= {"sizes", "initial_files", "stages", "operations", "size", *sizes.SIZE_KINDS}
    keys |= {key for row in OPERATIONS for key in row.keys}
    keys |= {row.name for row in OPERATIONS.drawn if not row.defined}
    stages = (
        text.partition("Stages\n------\n")[2].partition(".. code-block:: yaml\n")[2].partition("\nA run ")[0]
    )
    assert len(read_scenario(write(with_stages(dedent(stages), ""))).stages) == 4
    reference = text + (folder / "scenario-keys.rst").read_text("utf-8")
    assert {f"``{key}``" for key in keys if f"``{key}``" not in reference} == set()
    named = {re.sub("(?<=_test)_(read|write)_only$", "", name) for name, _ in list_shipped_scenarios()}
    assert {name for name in named if f"``{name}``" not in text} == set()


def test_a_closed_loop_without_stages_is_one_stage(write):
    scenario = read_scenario(write(YAML))
    assert scenario.plan == (Stage(math.inf, (7, 7)),)
    assert not scenario.is_open
    assert (scenario.warmup, scenario.think_time, scenario.arrivals) == (0.0, 0.0, "even")


def test_an_open_loop(write):
    scenario = read_scenario(write(YAML + "rate: 12.5\narrivals: poisson\nwarmup: 500ms\nrun_seconds: 60\n"))
    assert (scenario.rate, scenario.arrivals, scenario.warmup) == (12.5, "poisson", 0.5)
    assert scenario.plan == (Stage(60, (7, 7), (12.5, 12.5)),)
    assert scenario.is_open
    changed = override(scenario, rate=100.0, arrivals="even", warmup=2.0)
    assert (changed.rate, changed.arrivals, changed.warmup) == (100.0, "even", 2.0)


def test_stages(write):
    scenario = read_scenario(write(with_stages()))
    assert scenario.stages == (
        Stage(60, (16, 16)),
        Stage(30.0, (16, 64)),
        Stage(60.0, None, (500, 500)),
        Stage(10, (7, 7), (0, 99.5)),
    )
    assert (scenario.run_seconds, scenario.operation_count, scenario.user_count) == (160, None, 64)
    assert [str(stage) for stage in scenario.plan] == ["16 users", "16..64 users", "500/s", "0..99.5/s"]
    assert scenario.plan[2].users == (64, 64)
    assert override(scenario, user_count=100).plan[2].users == (100, 100)


def test_the_user_count_follows_from_stages_that_have_users(write, golden_words: GoldenWords):
    scenario = read_scenario(
        write(with_stages("stages: [{seconds: 1, users: 5}, {seconds: 1, users: 9..2}]\n", ""))
    )
    assert scenario.user_count == 9
    golden_words(faults_of(write(with_stages(users=""))))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9), st.lists))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_stands_in_stages_ends_in_faults_or_in_stages(write, value):
    text = YAML.replace("operation_count: 500\n", "") + yaml.safe_dump(
        {"stages": [{"seconds": 3, "users": value, "rate": value}, value]}, allow_unicode=True
    )
    with pytest.raises(ScenarioError):
        read_scenario(write(text))


def test_the_example_of_operations_in_the_documentation(write):
    text = (Path(__file__).parents[3] / "doc" / "scenarios.rst").read_text("utf-8")
    example = text.partition("Operations\n----------\n")[2].partition("yaml\n")[2].partition("\nEach op")[0]
    found = read_scenario(write(YAML.replace("crud_profile: [3, 4, 2, 2]\n", dedent(example))))
    assert found.size_classes[0].weights == {"create": 3, "read": 10, "head": 5, "list": 1, "info": 1}
    read, listing, info = found.operations
    assert read.headers == (("X-Newest", "true"),)
    assert listing.values == {"prefix": "tiny", "limit": 1000}
    assert info.defined is not None
    assert info.defined[:2] == ("GET", "none")
    words = products.find_writer(Product.OUTLOOK, "text")(found)
    for expected in (
        "%): header X-Newest: true",
        "prefix tiny, limit 1000",
        "GET /info, success 200",
    ):
        assert expected in words


def test_get_headers_are_headers_of_read(write):
    more = "get_headers: {X-Newest: 'true'}\ncontainer_put_headers: {X-Container-Sharding: 'on'}\n"
    found = read_scenario(write(f"{YAML}\n{more}operations: [{{name: read, headers: {{X-A: b}}}}]\n"))
    assert [each.headers for each in found.operations] == [(("X-Newest", "true"), ("X-A", "b"))]
    assert found.container_put_headers == (("X-Container-Sharding", "on"),)


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ("7", f"operations: {WANTED_MAPPINGS} name, not 7"),
        ("[7]", "operations[0]: expected a mapping, not 7"),
        ("[{limit: 3}]", "operations[0].name: expected a name"),
        ("[{name: lst}]", "not 'lst'; did you mean list?"),
        ("[{name: list, limit: 0}]", f"operations[0].limit: {FROM_ONE} 100000, not 0"),
        ("[{name: list, limits: 3}]", "operations[0].limits: unknown key"),
        ("[{name: read, limit: 3}]", "operations[0].limit: unknown key"),
        ("[{name: read}, {name: read}]", "operations[1].name: expected once, 'read' is there already"),
        ("[{name: range, length: 0}]", "operations[0].length: expected a size of 1 or more"),
        ("[{name: range, length: 5..3}]", "operations[0].length: the smaller size comes first, but not in"),
        (
            "[{name: slo, reads: [whole, whole]}]",
            "operations[0].reads: expected a list of one or more of whole",
        ),
        ("[{name: sequence, steps: [read, create]}]", f"create {OF_NO_OBJECT}"),
        ("[{name: sequence, steps: [create, delete, read]}]", "read needs an object"),
        ("[{name: read, headers: {Host: x}}]", "operations[0].headers: expected a mapping of header fields"),
        ('[{name: read, headers: {A: "b\\r\\nC: d"}}]', "operations[0].headers: expected a mapping"),
        ("[{name: read, method: GET, path: /x}]", "'read' is an operation of ssbench"),
        (
            "[{name: Mine, method: GET, path: /x}]",
            f"operations[0].name: {WANTED_NAME} lower-case letters",
        ),
        ("[{name: mine, method: GRAB, path: /x}]", "operations[0].method: expected one of GET"),
        ("[{name: mine, method: GET}]", "operations[0].path: missing"),
        ("[{name: mine, method: GET, path: 'x y'}]", "operations[0].path: expected a path"),
        ("[{name: mine, method: GET, path: '/{object}'}]", "{object} needs an effect on an object"),
        ("[{name: mine, method: GET, path: /x, success: [42]}]", "a list of statuses from 200 to 599"),
        ("[{name: mine, method: GET, path: /x, effect: adds}]", "one of none, reads, changes"),
    ],
)
def test_wrong_settings_of_operations(write, operations, expected):
    assert any(expected in fault for fault in faults_of(write(f"{YAML}\noperations: {operations}\n")))


def test_a_range_needs_objects_that_are_not_empty(write, golden_words: GoldenWords):
    text = YAML.replace("[3, 4, 2, 2]", "{range: 1}").replace("size_min: 4096", "size_min: 0")
    (fault,) = faults_of(write(text))
    golden_words(fault)


def test_an_operation_of_another_scenario_is_not_one_of_this(write, golden_words: GoldenWords):
    read_scenario(
        write(YAML.replace("[3, 4, 2, 2]", "{own: 1}\noperations: [{name: own, method: GET, path: /x}]"))
    )
    (fault,) = faults_of(write(YAML.replace("[3, 4, 2, 2]", "{own: 1}")))
    golden_words(fault)


def test_all_keys_are_listed_once(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text("zzz: 1\nyyy: 1\nuser_cuont: 1\n")
    with pytest.raises(ScenarioError) as caught:
        read_scenario(str(path))
    text = str(caught.value)
    assert text.count("container_concurrency") == 1
    assert f"{path}:2: yyy: unknown key\n" in text
    assert "user_cuont: unknown key; did you mean user_count?" in text


@pytest.mark.parametrize("steps", ["[crate, read]", "5", "[post, create]"])
def test_wrong_steps_are_one_error(steps: str, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(
        "name: x\nuser_count: 2\noperation_count: 3\ninitial_files: {a: 2}\nsizes: [{name: a, size: 4K}]\n"
        f"crud_profile: {{sequence: 1}}\noperations: [{{name: sequence, steps: {steps}}}]\n"
    )
    with pytest.raises(ScenarioError, match=r"operations\[0\]\.steps: ") as caught:
        read_scenario(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("sizes", ["3", "[]", "[5]"])
def test_without_size_classes_nothing_is_said_of_their_names(sizes: str, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(
        f"name: x\nuser_count: 2\noperation_count: 3\ninitial_files: {{a: 2}}\nsizes: {sizes}\n"
        "crud_profile: [1, 1, 1, 1]\n"
    )
    with pytest.raises(ScenarioError, match=r"sizes(\[0\])?: expected a ") as caught:
        read_scenario(str(path))
    assert "\n" not in str(caught.value)
