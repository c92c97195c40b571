"""Texts of scenario files as plain data: what is written is read, with lines, and at a bounded cost."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from golden_words import GoldenWords
from hypothesis import given
from hypothesis import strategies as st
from said import BROKEN_YAML

from ssbench.scenario import parsed_text
from ssbench.scenario.parsed_text import (
    MAX_DEPTH,
    MAX_SCALAR_CHARACTERS,
    Fault,
    parse_scenario_text,
    spell_path,
)

KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
MAPPINGS = st.dictionaries(KEYS, VALUES, max_size=5)


@given(MAPPINGS, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_json_is_read_as_it_was_written(data: dict[str, Any], indent: int | str | None, ascii_: bool) -> None:
    document = parse_scenario_text(json.dumps(data, indent=indent, ensure_ascii=ascii_))
    assert document.data == data
    assert document.faults == []


@given(MAPPINGS, st.sampled_from([None, False, True]))
def test_yaml_is_read_as_it_was_written(data: dict[str, Any], flow: bool | None) -> None:
    document = parse_scenario_text(yaml.safe_dump(data, default_flow_style=flow))
    assert document.data == data
    assert document.faults == []


@given(st.text() | st.text("{}[]<>&*!|:,-# \n\t\"'ab0.", max_size=60))
def test_any_text_is_read_or_has_faults(given_: str) -> None:
    document = parse_scenario_text(given_)
    assert document.data is None or not any("broken" in fault.text for fault in document.faults)
    lines = given_.count("\n") + given_.count("\r") + len(given_.splitlines()) + 1
    assert all(fault.line is None or 1 <= fault.line <= lines for fault in document.faults)


def test_each_value_has_its_line() -> None:
    document = parse_scenario_text("name: x\nsizes:\n- name: tiny\n  size_min: 1\n-\n  name: big\n")
    assert {spell_path(path): line for path, line in document.lines.items()} == {
        "": 1,
        "name": 1,
        "sizes": 2,
        "sizes[0]": 3,
        "sizes[0].name": 3,
        "sizes[0].size_min": 4,
        "sizes[1]": 6,
        "sizes[1].name": 6,
    }


@pytest.mark.parametrize("written", ["a: 1\nb: 2\na: 3\n", '{"a": 1,\n"b": 2,\n"a": 3}'])
def test_a_key_twice_is_a_fault_with_the_line_of_the_second(written: str) -> None:
    document = parse_scenario_text(written)
    assert document.faults == [Fault(3, "a: expected once, found again in the same mapping")]
    assert document.data == {"a": 3, "b": 2}


def test_merged_keys_are_behind_those_of_the_mapping_and_in_order() -> None:
    found = parse_scenario_text("x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz:\n  <<: [*x, *y]\n  c: 3\n").data
    assert isinstance(found, dict)
    assert found["z"] == {"a": 1, "b": 1, "c": 3}


@pytest.mark.parametrize("opening", ["[", "- ", "{a: "])
def test_nesting_is_bounded(opening: str) -> None:
    closing = {"[": "]", "{a: ": "}", "- ": ""}[opening]
    fits = parse_scenario_text("a: \n  " + opening * (MAX_DEPTH - 1) + "1" + closing * (MAX_DEPTH - 1))
    assert fits.faults == []
    (fault,) = parse_scenario_text("a: \n  " + opening * 100_000).faults
    assert fault == Fault(2, f"{BROKEN_YAML}: nested deeper than {MAX_DEPTH} levels")


def test_json_that_is_nested_too_deeply_is_refused(golden_words: GoldenWords) -> None:
    (fault,) = parse_scenario_text('{"a": ' + "[" * 100_000).faults
    golden_words(fault.text)


def test_values_are_counted_as_often_as_aliases_repeat_them(
    monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    monkeypatch.setattr(parsed_text, "MAX_VALUES", 20)
    assert parse_scenario_text("a: &a [1, 2, 3]\nb: [*a, *a, *a]\n").faults == []
    (fault,) = parse_scenario_text("a: &a [1, 2, 3]\nb: [*a, *a, *a, *a]\n").faults
    golden_words(fault.text)


def test_an_alias_of_itself_ends(golden_words: GoldenWords) -> None:
    (fault,) = parse_scenario_text("a: &a [*a]\n").faults
    golden_words(fault.text)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("a: " + "1" * (MAX_SCALAR_CHARACTERS + 1), "int with 401 characters"),
        ("a: 2024-13-01", "'2024-13-01' is no value of"),
        ("a: !!int x", "'x' is no value of"),
        ("a: !!python/object:os.system x", "unexpected tag|no value|could not determine a constructor"),
        ("? [a]\n: 1", "a key must be plain text"),
        ("a: {<<: 1}", "<< takes mappings"),
        ("a: !!set {x, y}", "unexpected tag"),
        ("a: 1\n---\nb: 2\n", "expected YAML or JSON"),
    ],
)
def test_what_is_refused(written: str, says: str) -> None:
    document = parse_scenario_text(written)
    assert document.data is None
    (fault,) = document.faults
    assert any(each in fault.text for each in says.split("|"))
    assert fault.line is not None
