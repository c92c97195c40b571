"""Secrets in the header fields of a scenario: they are sent, and neither shown nor kept."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from full_run import RUN

from ssbench.base.errors import ScenarioError
from ssbench.cli import master
from ssbench.results.run_description import RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario import scenario_reading
from ssbench.scenario.operations import HIDDEN_VALUE, hide_secret_value, remove_secrets

SCENARIO = """
name: secrets
sizes: [{name: tiny, size: 1kB}]
initial_files: {tiny: 1}
profile: {read: 1, sync: 1}
user_count: 1
operation_count: 1
get_headers: {Authorization: s3cret-1, X-Newest: shown-1}
container_put_headers: {X-Container-Meta-Temp-URL-Key: s3cret-2, X-Container-Read: shown-2}
operations:
- {name: sync, method: GET, path: "{account}", headers: {X-Service-Token: s3cret-3, X-Foo: shown-3}}
"""


@pytest.mark.parametrize(
    "field",
    [
        *("Authorization", "proxy-authorization", "X-Auth-Key", "X-Service-Token", "X-Amz-Security-Token"),
        *("Cookie", "X-Container-Meta-Temp-URL-Key-2", "X-Amz-Signature", "X-Amz-Credential", "X-Api-Key"),
    ],
)
def test_the_values_of_secret_fields_are_not_shown(field: str) -> None:
    assert hide_secret_value(field, "value") == HIDDEN_VALUE


@pytest.mark.parametrize(
    "field", ["X-Newest", "Range", "If-None-Match", "X-Container-Read", "X-Trans-Id-Extra"]
)
def test_other_values_are_shown(field: str) -> None:
    assert hide_secret_value(field, "value") == "value"


def test_only_header_fields_are_touched() -> None:
    data = {
        "initial_files": {"key": "1"},
        "headers": "wrong",
        "operations": [{"headers": [["Cookie", "x"], 5]}],
    }
    expected = {**data, "operations": [{"headers": [["Cookie", HIDDEN_VALUE], 5]}]}
    assert remove_secrets(data) == expected


def test_no_report_and_no_file_has_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO)
    scenario = scenario_reading.read_scenario(str(file))
    sent = [field for each in scenario.operations for field in each.headers]
    assert ("Authorization", "s3cret-1") in sent
    stat = tmp_path / "run.stat.gz"
    RunResultsWriter(stat, replace(RUN, scenario=scenario)).end(RunSummary(1e9))
    outputs = [f"--json={tmp_path / 'json'}", f"--html={tmp_path / 'html'}", f"--ci=md={tmp_path / 'md'}"]
    assert master.main(["report-scenario", str(stat), "--report", "full", "-v", *outputs]) == 0
    assert master.main(["check-scenario", str(file), "--json", str(tmp_path / "check"), "-v"]) == 0
    shown = capsys.readouterr()
    kept = gzip.decompress(stat.read_bytes()).decode("latin-1")
    texts = [shown.out, shown.err, kept]
    texts += [(tmp_path / each).read_text() for each in ("json", "html", "md", "check")]
    for text in texts:
        assert "s3cret" not in text
    for text in (
        kept,
        (tmp_path / "html").read_text(),
        (tmp_path / "json").read_text(),
    ):
        assert all(f"shown-{number}" in text for number in (1, 2, 3))
        assert HIDDEN_VALUE in text


def test_a_fault_does_not_show_them(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO.replace("X-Foo: shown-3", "Host: shown-3"))
    with pytest.raises(ScenarioError) as caught:
        scenario_reading.read_scenario(str(file))
    assert "shown-3" in str(caught.value)
    assert "s3cret" not in str(caught.value)
