"""--json of the sub-commands."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from full_run import RUN, write_full_run
from json_records import valid

from ssbench.cli import master
from ssbench.cli import options as cli_options


def printed(capsys: pytest.CaptureFixture[str], kind: str, *arguments: str) -> dict[str, Any]:
    """Return what a sub-command prints with ``--json -``, which is all that it prints."""
    code = master.main([*arguments, "--json", "-"])
    found = valid(capsys.readouterr().out, kind)
    assert found["exit_code"] == code
    return found


def test_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    Path("ssbench.toml").write_text("[run-scenario]\nworkers = 2\nfail-if = ['errors > 1%']\n")
    monkeypatch.setenv("SSBENCH_RETRIES", "3")
    options = printed(capsys, "settings", "config", "run-scenario")["options"]
    assert {each["name"]: (each["value"], each["source"]) for each in options} == {
        "workers": (2, "ssbench.toml [run-scenario]"),
        "fail-if": (["errors > 1%"], "ssbench.toml [run-scenario]"),
        "retries": ("3", "SSBENCH_RETRIES"),
    }
    every = printed(capsys, "settings", "config", "--all")["options"]
    usual = {(each["command"], each["name"]): each for each in every}["cleanup-containers", "concurrency"]
    assert (usual["value"], usual["source"]) == (10, None)
    assert usual["variable"] == "SSBENCH_CONCURRENCY"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runs of one scenario, the second with a label."""
    for number, label in enumerate([None, "later"]):
        run = replace(RUN, started=1e9 + number, options={"label": label} if label else {})
        write_full_run(tmp_path / f"{number}.stat.gz", run)
    return tmp_path


def test_a_list_and_a_trend(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = printed(capsys, "list", "list", "--results-dir", str(folder))["runs"]
    assert [(each["name"], each["file"], each["label"]) for each in runs] == [
        ("last-1", "0.stat.gz", None),
        ("last", "1.stat.gz", "later"),
    ]
    assert runs[0]["facts"]["users"] == str(runs[0]["users"])
    (scenario,) = printed(capsys, "trend", "list", "--trend", "--results-dir", str(folder))["scenarios"]
    assert scenario["left_out"] == 0
    first, second = scenario["runs"]
    assert first["changes"] == []
    assert {"about": "fact", "name": "label", "before": None, "after": "later"} in second["changes"]
    assert master.main(["list", "--results-dir", str(folder), "--format", "json"]) == 0
    assert valid(capsys.readouterr().out, "list")["runs"] == runs


def test_a_comparison_and_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(folder / "0.stat.gz"), str(folder / "1.stat.gz")]
    file = folder / "compared.json"
    condition = ("--fail-if", "errors > 0.1%")
    code = master.main(["compare", *files, *condition, "--json", str(file)])
    assert "before:" in capsys.readouterr().out
    found = valid(file.read_text(), "comparison")
    assert (found["verdict"]["exit_code"], found["verdict"]["outcome"]) == (code, "failed") == (5, "failed")
    assert found["conditions"][0]["result"] == "FAILED"
    assert {each["operation"] for each in found["rows"]} >= {"READ", "ALL"}
    assert master.main(["compare", *files, *condition, "--json", "-"]) == code
    assert valid(capsys.readouterr().out, "comparison") == found
    table = printed(capsys, "table", "compare", *files, files[0])
    assert [(run["name"], run["label"]) for run in table["runs"]][1] == ("1", "later")
    (everything,) = (each for each in table["runs"][0]["places"] if each["operation"] == "ALL")
    assert everything["figures"]["errors"]["value"] == pytest.approx(0.5)


def test_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "name: s\nsizes: [{name: tiny, size_min: 1000, size_max: 3000}]\ninitial_files: {tiny: 100}\n"
        "operation_count: 2000\ncrud_profile: [1, 1, 0, 2]\nuser_count: 2\ncontainer_count: 3\n"
        "fail_if: ['errors > 1%']\n"
    )
    found = printed(capsys, "scenario", "check-scenario", str(path))
    assert (found["scenario"]["users"], found["scenario"]["operation_count"]) == (2, 2000)
    forecast = found["forecast"]
    assert (forecast["uploads"], forecast["upload_bytes"]) == (100, 200_000)
    assert forecast["mix"] == {"create": 0.25, "read": 0.25, "delete": 0.5}
    assert (forecast["sent_bytes"], forecast["received_bytes"]) == (500, 500)
    assert forecast["last_container"] == "ssbench_000002"
    assert (forecast["upload_seconds"], forecast["operation_seconds"]) == (1.0, 20.0)
    (class_,) = forecast["runs_out"]
    assert (class_["size_class"], class_["certain"], class_["deleted"]) == ("tiny", True, 0.5)
    assert found["fail_if"] == ["errors > 1%"]
    assert master.main(["check-scenario", str(tmp_path / "missing"), "--json", "-"]) == 2
    assert capsys.readouterr().out == ""


def test_a_file_is_not_overwritten_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.json"
    assert master.main(["config", "--json", str(file)]) == 0
    out, err = capsys.readouterr()
    assert out  # the text is printed too
    assert f"Wrote {file}" in err
    valid(file.read_text(), "settings")
    assert master.main(["config", "--json", str(file)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert master.main(["config", "--json", str(file), "--force"]) == 0


def test_a_reader_that_has_seen_enough_changes_no_exit_code(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As ``cleanup-containers --json - | head -1``, whose exit code says whether deletes failed."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as out:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, "stdout", out)
        cli_options.write_json_output(cli_options.JsonAsked(json=Path("-"), force=False), ["{}\n"])
    assert not caplog.messages


def test_a_file_is_written_where_the_reader_of_the_text_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``config --json FILE | head -1``."""
    file = tmp_path / "config.json"
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as out:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, "stdout", out)
        assert master.main(["config", "--json", str(file)]) == 0
    valid(file.read_text(), "settings")


def test_nothing_is_said_to_be_written_where_the_reader_of_a_pipe_is_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def parts() -> Iterator[str]:
        os.close(reading)
        yield "{}\n"

    with caplog.at_level(logging.INFO):
        cli_options.write_json_output(cli_options.JsonAsked(json=pipe, force=True), parts())
    assert not caplog.messages


def test_what_the_reader_of_a_pipe_did_not_take_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As ``export FILE | head -1``."""
    write_full_run(tmp_path / "run.stat.gz")
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as out:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, "stdout", out)
        assert master.main(["export", str(tmp_path / "run.stat.gz")]) == 0
    assert "results exported" not in capsys.readouterr().err
