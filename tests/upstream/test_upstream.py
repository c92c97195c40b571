"""What deploy/upstream has for other projects: applied, run and checked with what they really are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from ssbench.local_swift import LocalSwift

ROOT = Path(__file__).parents[2]
UPSTREAM = ROOT / "deploy" / "upstream"
BIN = Path(sys.executable).parent


def call(*command: object, cwd: Path, fails: bool = False, **variables: str) -> str:
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode != 0) is fails, done.stdout
    return done.stdout


def test_the_patch_applies_to_swift(tmp_path: Path) -> None:
    call(
        *(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "swift", "swift"),
        *("--no-build-isolation", "-d", tmp_path),
        cwd=tmp_path,
    )
    (archive,) = tmp_path.glob("swift-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    source = tmp_path / archive.name.removesuffix(".tar.gz")
    call("git", "apply", "--verbose", UPSTREAM / "swift-associated-projects.patch", cwd=source)
    assert "`ssbench <" in (source / "doc" / "source" / "associated_projects.rst").read_text()


def rally(folder: Path, *command: object, fails: bool = False, **variables: str) -> str:
    settings = folder / "rally.conf"
    settings.write_text(f"[database]\nconnection = sqlite:///{folder}/rally.db\n")
    plugin = UPSTREAM / "rally_ssbench.py"
    return call(
        *("rally", "--config-file", settings, "--plugin-paths", plugin, *command),
        cwd=folder,
        fails=fails,
        HOME=str(folder),
        XDG_STATE_HOME=str(folder / "state"),
        **variables,
    )


def check_criteria(folder: Path, *, fails: bool = False) -> list[dict[str, Any]]:
    """Return what Rally says of each criterion, which comes after lines of its log."""
    said = rally(folder, "task", "sla-check", "--json", fails=fails)
    found: list[dict[str, Any]] = json.loads(said[said.index("[{") :])
    return found


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A folder with a database of Rally and an environment in it."""
    rally(tmp_path, "db", "create")
    (tmp_path / "env.json").write_text("{}")
    rally(tmp_path, "env", "create", "--name", "here", "--spec", tmp_path / "env.json")
    return tmp_path


def test_rally_runs_a_benchmark_and_judges_it_by_its_verdict(environment: Path) -> None:
    said = rally(environment, "task", "start", UPSTREAM / "rally-task.yaml")
    assert "ops/s" in said
    checked = check_criteria(environment)
    assert {each["criterion"]: each["status"] for each in checked} == {
        "failure_rate": "PASS",
        "ssbench_verdict": "PASS",
    }


def test_rally_fails_a_verdict_that_is_too_bad(environment: Path, swift: LocalSwift) -> None:
    """A run whose condition fails has figures, and no error; one without credentials has neither."""
    task = yaml.safe_load((UPSTREAM / "rally-task.yaml").read_text())
    (subtask,) = task["subtasks"]
    scenario = {
        "name": "s",
        "sizes": [{"name": "a", "size": 100}],
        "initial_files": {"a": 10},
        "profile": {"read": 1},
        "user_count": 1,
        "operation_count": 100,
        "fail_if": ["count > 1"],
    }
    (environment / "s.yaml").write_text(yaml.safe_dump(scenario))
    subtask["scenario"] = {"SsbenchSwift.run_scenario": {"scenario": str(environment / "s.yaml")}}
    (environment / "task.yaml").write_text(yaml.safe_dump(task))
    login = {"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key}
    rally(environment, "task", "start", environment / "task.yaml", fails=True, **login)
    checked = check_criteria(environment, fails=True)
    details = {each["criterion"]: each["detail"] for each in checked if each["status"] != "PASS"}
    assert details == {"ssbench_verdict": "Worst verdict of ssbench: failed, at most warned - Failed"}
    none = dict.fromkeys(login, "")
    said = rally(environment, "task", "start", environment / "task.yaml", fails=True, **none)
    assert "not set: ST_AUTH, ST_USER, ST_KEY" in said


def test_the_role_measures_a_swift(tmp_path: Path, swift: LocalSwift) -> None:
    values = {
        "ssbench_package": str(ROOT),
        "ssbench_venv": str(tmp_path / "venv"),
        "ssbench_results": str(tmp_path / "results"),
        "ssbench_scenario": "very_small",
        "ssbench_seconds": 3,
        "ssbench_fail_if": ["errors > 0", "rate < 1"],
        "ssbench_auth_url": swift.auth_url,
        "ssbench_user": swift.user,
        "ssbench_key": swift.key,
        "ansible_python_interpreter": sys.executable,
    }
    play = ["ansible-playbook", "-i", "localhost,", "-c", "local", UPSTREAM / "saio-benchmark" / "run.yaml"]
    said = call(*play, "-e", json.dumps(values), cwd=tmp_path, HOME=str(tmp_path))
    assert "fail-if errors > 0: ok" in said
    made = {each.name for each in (tmp_path / "results").iterdir()}
    assert {"report.html", "report.xml", "report.json"} <= made
