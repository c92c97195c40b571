"""--json of the sub-commands, and the schema of each kind of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from json_records import valid

from ssbench import record, schemas
from ssbench.cli import master


def printed(capsys: pytest.CaptureFixture[str], kind: str, *arguments: str) -> dict[str, Any]:
    """Return what a sub-command prints with ``--json -``, which is all that it prints."""
    code = master.main([*arguments, "--json", "-"])
    found = valid(capsys.readouterr().out, kind)
    assert found["exit_code"] == code
    return found


def head(schema: dict[str, Any]) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


@pytest.mark.parametrize("kind", schemas.KINDS)
def test_each_kind_has_a_schema_that_the_command_prints(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert master.main(["schema", kind]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    top = schema["$defs"][head(schema)]
    assert {"format", "version", "made_by"} <= set(top["required"])
    (name,) = top["properties"]["format"]["enum"]
    assert name.startswith("ssbench ")


def test_no_two_kinds_have_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = [record.schema(schemas.find(kind)) for kind in schemas.KINDS]
    names = [each["$defs"][head(each)]["properties"]["format"]["enum"][0] for each in kinds]
    assert len(set(names)) == len(names)
    assert master.main(["schema"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(schemas.KINDS)


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
