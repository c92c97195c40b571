"""Files as plain data, whatever they hold: both eras of files, broken ones, and those that would expand."""

from __future__ import annotations

import json

import pytest
import yaml
from golden_words import GoldenWords
from scenario_texts import EXPECTED, YAML, faults_of

from ssbench.base.errors import ScenarioError
from ssbench.scenario.scenario_reading import read_scenario


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(EXPECTED.data),
        json.dumps(EXPECTED.data, indent="\t"),
        "\ufeff" + json.dumps(EXPECTED.data, indent=2).replace("\n", "\r\n"),
        yaml.safe_dump(EXPECTED.data, default_flow_style=True),
        json.dumps(EXPECTED.data).replace("}", ",}"),
    ],
    ids=["json", "json with tabs", "json with BOM and CRLF", "flow YAML", "JSON with YAML's last comma"],
)
@pytest.mark.parametrize("ending", ["scenario", "json", "yaml"])
def test_both_eras_are_told_apart_by_content(write, text, ending):
    assert read_scenario(write(text, f"x.{ending}")) == EXPECTED


def test_json_that_is_no_yaml(write):
    name = "Se\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")
    data = EXPECTED.data | {"name": name, "run_seconds": 1500.0}
    del data["operation_count"]
    text = json.dumps(data).replace("1500.0", "1.5e3")
    assert r"\ud83d" in text
    scenario = read_scenario(write(text))
    assert (scenario.name, scenario.run_seconds) == (name, 1500.0)


def test_anchors_and_merges(write):
    text = YAML.replace("- name: tiny", "- &first\n  name: tiny").replace(
        "- name: small\n  size_min: 100000\n  size_max: 200000",
        "- <<: *first\n  name: small\n  size_max: 200000",
    )
    small = read_scenario(write(text)).size_classes[1]
    assert (small.name, small.size_min, small.size_max) == ("small", 4096, 200000)


def test_faults_in_json_have_lines_where_yaml_can_read_it(write):
    text = json.dumps(EXPECTED.data | {"user_count": 0}, indent=1)
    line = next(n for n, row in enumerate(text.splitlines(), 1) if "user_count" in row)
    (fault,) = faults_of(write(text))
    assert fault.startswith(f"{line}: user_count: expected")
    (fault,) = faults_of(write(text.replace("Small test", r"Sm\ud83d\ude00all")))
    assert fault.startswith(" user_count: expected")


@pytest.mark.parametrize(("name", "where"), [("x", "5: "), (r"\ud83d\ude00", " ")])
def test_key_twice_in_json(write, name, where):
    text = json.dumps(EXPECTED.data).replace("Small test scenario", name)
    text = text.replace('"user_count": 7', '\n\n\n\n"user_count": 7, "user_count": 7')
    (fault,) = faults_of(write(text))
    assert fault.startswith(where + "user_count: expected once")


def test_broken_json(write, golden_words: GoldenWords):
    (fault,) = faults_of(write('{"name": "x",\n "sizes": [}'))
    golden_words(fault)


def test_lone_surrogate(write):
    for key in ("name", "policy"):
        (fault,) = faults_of(write(json.dumps(EXPECTED.data | {key: "\ud83d"})))
        assert f"{key}: expected a string" in fault


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"just words",
        b"- a\n- b\n",
        b"name: x\nsizes: \xff",
        b"#" * 1_000_001,
        b"[" * 100_000,
        b"- " * 100_000,
        b'{"a":' * 100_000,
        b"a: &a\n  b: *a\n",
        b"name: " + b"9" * 5000,
    ],
    ids=[
        "empty",
        "words",
        "list",
        "latin-1",
        "huge",
        "deep",
        "deep blocks",
        "deep JSON",
        "recursive",
        "digits",
    ],
)
def test_files_that_are_something_else(write, content, golden_words: GoldenWords):
    (fault,) = faults_of(write(content))
    golden_words(fault)


@pytest.mark.parametrize(
    "number",
    ["0x" + "f" * 5000, "0b" + "1" * 20_000, "1" * 5000, "1" + ":59" * 5000, "." + "1" * 900],
    ids=["hexadecimal", "binary", "decimal", "of 60", "fraction"],
)
@pytest.mark.parametrize("key", ["user_count", "delete_after", "surprise"])
def test_a_number_without_end_is_refused_in_one_line(write, key, number):
    with pytest.raises(ScenarioError) as caught:
        read_scenario(write(f"{key}: {number}\n"))
    assert "characters" in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("form", ["[{0}]", "{{<<: [{0}]}}"], ids=["lists", "merges"])
def test_aliases_that_explode_are_refused(write, form, golden_words: GoldenWords):
    text = "a0: &a0 {x: 1}\n" + "".join(
        f"a{n}: &a{n} {form.format(', '.join([f'*a{n - 1}'] * 10))}\n" for n in range(1, 15)
    )
    (fault,) = faults_of(write(text))
    golden_words(fault)
