"""Each key of the table is read, kept, sent to workers, written as JSON and told of as its row says."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import scenario_table
from said import NOT_BESIDE_GROUPS

from ssbench.base.errors import ScenarioError
from ssbench.document.elements import Table, View
from ssbench.document.renderers import text
from ssbench.fleet import wire
from ssbench.fleet.phase import ClosedLoop
from ssbench.reports import json as reports_json
from ssbench.reports import run_facts
from ssbench.reports.scenario_outlook import make_outlook_document
from ssbench.results.reading import open_results
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.run.bench_options import RunOptions
from ssbench.run.group_run import BenchmarkLoad, make_run_parameters
from ssbench.scenario.model import SCENARIO_KEYS, KeyTopic, Scenario, ScenarioKey
from ssbench.scenario.scenario_reading import check_scenario_data
from ssbench.statistics.summary import summarize

DEFAULTS = {field.name: field.default for field in fields(Scenario)}

CLOSED = ClosedLoop(2, 1)

#: Those whose value is in a field of a scenario, which has it as the rule reads it.
KEPT = [key for key in SCENARIO_KEYS if key.rule is not None and key.name in DEFAULTS]


def of_file(key: ScenarioKey | None = None, value: object = None) -> dict[str, Any]:
    """Return what a file says, with a value of a key."""
    data: dict[str, Any] = {
        "name": "keys",
        "sizes": [{"name": "a", "size": "1kB"}],
        "initial_files": {"a": 6},
        "profile": {"read": 1},
        "run_seconds": 60,
        "user_count": 2,
    }
    if key is None:
        return data
    if key.name == "operation_count":
        del data["run_seconds"]
    if key.name == "account_base":
        data["accounts"] = 2
    return data | {key.name: value}


def in_group(key: ScenarioKey | None = None, value: object = None) -> Scenario:
    """Return a scenario with a group of users that has a value of a key."""
    data = of_file()
    del data["user_count"]
    group = {"name": "web", "users": 2} | ({} if key is None else {key.name: value})
    return check_scenario_data(data | {"groups": [group]})


def read(key: ScenarioKey | None = None, value: object = None) -> Scenario:
    return check_scenario_data(of_file(key, value))


def of_json(scenario: Scenario) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(reports_json.make_outlook_json(scenario))["scenario"]
    return {name: value for name, value in found.items() if name != "file"}


@pytest.mark.parametrize("key", KEPT, ids=lambda key: key.name)
def test_a_value_is_kept_and_sent_and_written_as_json(key: ScenarioKey) -> None:
    scenario = read(key, key.example)
    values = [getattr(scenario, name) for name in key.fields]
    assert None not in values
    assert all(value != DEFAULTS[name] for name, value in zip(key.fields, values, strict=True))
    parameters = make_run_parameters(1, None, scenario, RunOptions(), [])
    sent = wire.unpack_parameters(wire.pack_parameters(parameters)).scenario
    if key.sent is not None:
        assert [getattr(sent, name) for name in key.fields] == values
    else:
        assert not hasattr(sent, key.name)
    if key.benchmark_only:
        changed: dict[str, object] = {}
        workers, benchmark = SimpleNamespace(change=changed.update), SimpleNamespace(start=0.0)
        BenchmarkLoad(read(), 1, CLOSED).begin(workers, benchmark)
        assert (changed, getattr(parameters, key.name)) == ({}, DEFAULTS[key.name])
        BenchmarkLoad(scenario, 1, CLOSED).begin(workers, benchmark)
        assert [changed[name] for name in key.fields] == values
    if key.json is not None:
        plain, found = of_json(read()), of_json(scenario)
        assert all(found[name] not in {plain[name], None} for name in key.fields)


@pytest.mark.parametrize("key", SCENARIO_KEYS, ids=lambda key: key.name)
def test_a_value_may_be_null_where_the_table_says_so(key: ScenarioKey) -> None:
    required = key.name in {"profile", "run_seconds"}  # so says another fault
    if key.nullable and not required:
        assert of_json(check_scenario_data(of_file() | {key.name: None})) == of_json(read())
    else:
        with pytest.raises(ScenarioError, match=key.name):
            read(key, None)


@pytest.mark.parametrize("key", KEPT, ids=lambda key: key.name)
def test_a_group_may_have_what_the_table_says(key: ScenarioKey) -> None:
    if key.name in {"name", "objects_per_container"}:
        return  # a group has a name of its own, and only how many containers it has
    if not key.in_groups:
        with pytest.raises(ScenarioError, match=f"{key.name}: unknown key"):
            in_group(key, key.example)
        return
    found, plain = in_group(key, key.example), in_group()
    assert [getattr(found.parts[0], name) for name in key.fields] == [
        getattr(read(key, key.example), name) for name in key.fields
    ]
    assert str(found.groups[0]) != str(plain.groups[0])
    if key.topic is KeyTopic.LOAD:
        with pytest.raises(ScenarioError, match=f"{key.name}{NOT_BESIDE_GROUPS}"):
            check_scenario_data(of_file() | {"groups": [{"name": "web", "users": 2}], key.name: key.example})


@pytest.mark.parametrize("key", [key for key in SCENARIO_KEYS if key.outlook], ids=lambda key: key.name)
def test_check_scenario_tells_of_it(key: ScenarioKey) -> None:
    view = View(columns=200)
    said = text.render(make_outlook_document(read(key, key.example), view), view)
    assert key.outlook.partition("{")[0] in said
    assert key.outlook.partition("{")[0] not in text.render(make_outlook_document(read(), view), view)


def report(folder: Path, scenario: Scenario, url: str = "s3+http://h") -> list[str]:
    """Return the parameters of a report of a run, and what it says of the load."""
    path = folder / "run.stat.gz"
    path.unlink(missing_ok=True)
    RunResultsWriter(path, RunDescription(scenario, storage_urls=[url])).end(RunSummary(1e9))
    statistics = summarize(open_results(path))
    (table, *_) = run_facts.make_parameter_elements(statistics)
    assert isinstance(table, Table)
    return [
        *(str(row[0]) for row in table.rows),
        *(note.text.partition(":")[0] for note in run_facts.make_load_notes(statistics)),
    ]


@pytest.mark.parametrize("key", [key for key in KEPT if key.title or key.note], ids=lambda key: key.name)
def test_reports_tell_of_it(tmp_path: Path, key: ScenarioKey) -> None:
    named = {key.title, key.note} - {""}
    assert named <= {*report(tmp_path, read(key, key.example))}
    always = {key.title, *[key.note] * bool(key.only_over)} if DEFAULTS[key.name] else set()
    assert named & {*report(tmp_path, read())} == always
    if key.only_over:
        assert not named & {*report(tmp_path, read(key, key.example), "http://h/v1/a")}


def test_what_holds_without_a_key_is_its_default() -> None:
    for key in SCENARIO_KEYS:
        value = DEFAULTS.get(key.name)
        if isinstance(value, int | float | str):
            assert key.default == (value if isinstance(value, str) else f"{value:g}")
    for name in {name for key in SCENARIO_KEYS if key.json for name in key.fields}:
        assert of_json(read())[name] in {
            *(each.default or None for each in SCENARIO_KEYS if name in each.fields),
            DEFAULTS[name],
        }


def test_the_table_in_the_documentation() -> None:
    # After a change: python tests/helpers/scenario_table.py
    assert scenario_table.kept_table() == scenario_table.made_table()
