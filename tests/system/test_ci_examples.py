"""The files of examples/ci: their commands are run as GitHub and GitLab run them, against a real Swift."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from ssbench.local_swift import LocalSwift

EXAMPLE = Path(__file__).parents[2] / "examples" / "ci"


def read(name: str) -> Any:
    return yaml.safe_load((EXAMPLE / name).read_text())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that consists of the example, in whose environment ssbench is installed."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    return Path(shutil.copytree(EXAMPLE, tmp_path / "project"))


def bash(folder: Path, commands: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", "\n".join(commands)],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def of_github(name: str) -> str:
    steps = read(".github/workflows/benchmark.yml")["jobs"]["benchmark"]["steps"]
    (command,) = (step["run"] for step in steps if step.get("name") == name)
    return str(command)


def of_gitlab() -> list[str]:
    install, *commands = read(".gitlab-ci.yml")["benchmark"]["script"]
    assert install == of_github("Install").strip()
    return commands


@pytest.mark.timeout(400)
def test_the_first_runs_are_the_baseline_and_the_next_are_compared_with_it(
    project: Path, swift_environment: LocalSwift
) -> None:
    short = {"SSBENCH_RUN_SECONDS": "1", "SSBENCH_PAUSE": "0", "SSBENCH_WORKERS": "1", "RUNS": "2"}
    first = bash(project, of_gitlab(), CI_COMMIT_BRANCH="topic", CI_DEFAULT_BRANCH="main", **short)
    assert first.returncode == 0, first.stdout + first.stderr
    baseline = sorted(each.name for each in (project / "baseline").iterdir())
    assert len(baseline) == 2
    assert not (project / "comparison.xml").exists()

    second = bash(project, [of_github("Measure and compare")], **short)
    assert second.returncode in {0, 5}, second.stdout + second.stderr  # 6 is a warning, and passes
    cases = ElementTree.parse(project / "comparison.xml").iter("testcase")
    text = (project / "comparison.md").read_text()
    assert [each.get("name") for each in cases] == [
        "the verdict",
        "not p50 > +10%",
        "not rate < -10%",
        "not errors > 0.1%",
    ]
    assert "fail-if errors" in text
    assert Path(os.environ["GITHUB_STEP_SUMMARY"]).read_text() == text

    candidate = sorted(each.name for each in (project / "candidate").iterdir())
    assert bash(project, [of_github("Let these runs be the next baseline")]).returncode == 0
    assert sorted(each.name for each in (project / "baseline").iterdir()) == candidate != baseline


@pytest.mark.parametrize(("code", "passes", "warns"), [(0, True, False), (5, False, False), (6, True, True)])
def test_undecided_is_a_warning(project: Path, code: int, *, passes: bool, warns: bool) -> None:
    (project / "benchmark.sh").write_text(f"#!/bin/sh\nexit {code}\n")
    done = bash(project, [of_github("Measure and compare")])
    assert (done.returncode == 0) is passes
    assert ("::warning" in done.stdout) is warns
    of_branch = {"CI_COMMIT_BRANCH": "topic", "CI_DEFAULT_BRANCH": "main"}
    assert bash(project, of_gitlab(), **of_branch).returncode == code
    assert read(".gitlab-ci.yml")["benchmark"]["allow_failure"] == {"exit_codes": 6}


def test_the_scenario_is_right() -> None:
    command = [sys.executable, "-m", "ssbench.cli.master", "check-scenario", str(EXAMPLE / "store.yaml")]
    assert subprocess.run(command, timeout=60, check=False, stdout=subprocess.DEVNULL).returncode == 0
