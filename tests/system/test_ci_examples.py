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


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_first_runs_are_the_baseline_and_the_next_are_compared_with_it(
    project: Path, swift_environment: LocalSwift
) -> None:
    # What is compared matters to no test: few objects, and few requests by users that pause.
    scenario = project / "store.yaml"
    fewer = {
        "initial_files: {small: 200}": "initial_files: {small: 20}",
        "user_count: 8": "user_count: 2\nthink_time: 50ms",
    }
    for usual, few in fewer.items():
        assert usual in scenario.read_text()
        scenario.write_text(scenario.read_text().replace(usual, few))
    short = {"SSBENCH_RUN_SECONDS": "1", "SSBENCH_PAUSE": "0", "SSBENCH_WORKERS": "1", "RUNS": "2"}
    first = bash(project, of_gitlab(), CI_COMMIT_BRANCH="topic", CI_DEFAULT_BRANCH="main", **short)
    assert first.returncode == 0, first.stdout + first.stderr
    first_runs = stat_files(project / "candidate")
    assert len(first_runs) == 2
    assert stat_files(project / "fixed") == stat_files(project / "last") == first_runs
    assert not [*project.glob("*.xml")]

    on_main = {**short, "UPDATE_BASELINE": "1"}
    second = bash(project, [of_github("Measure and compare")], **on_main)
    assert second.returncode in {0, 5}, second.stdout + second.stderr  # 6 is a warning, and passes
    for baseline in ("fixed", "last"):
        cases = ElementTree.parse(project / f"comparison-{baseline}.xml").iter("testcase")
        assert [each.get("name") for each in cases] == [
            "the verdict",
            "not p50 > +10%",
            "not rate < -10%",
            "not errors > 0.1%",
        ]
    text = (project / "comparison.md").read_text()
    assert text.count("fail-if errors") == 2
    assert Path(os.environ["GITHUB_STEP_SUMMARY"]).read_text() == text


def stat_files(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.glob("*.stat.gz"))


#: In place of ssbench-master: a run leaves a file, a comparison ends with what the file of its baseline says.
FAKE_MASTER = """#!/bin/sh
case "$1" in
run-scenario) echo 0 > candidate/new.stat.gz; exit "${RUNS_CODE:-0}" ;;
compare)
    code=$(cat "$2")
    while [ $# -gt 1 ]; do [ "$1" != --output ] || echo compared > "$2"; shift; done
    exit "$code" ;;
esac
"""


def use_fake_master(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = project / "bin" / "ssbench-master"
    fake.parent.mkdir()
    fake.write_text(FAKE_MASTER)
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("runs", "compared", "code"), [(0, 0, 0), (5, None, 5), (5, 0, 5), (5, 6, 5), (1, None, 1), (3, 0, 3)]
)
def test_runs_of_which_too_many_operations_fail_are_compared_and_make_no_baseline(
    project: Path, monkeypatch: pytest.MonkeyPatch, *, runs: int, compared: int | None, code: int
) -> None:
    use_fake_master(project, monkeypatch)
    for name in ("fixed", "last") if compared is not None else ():
        (project / name).mkdir()
        (project / name / "old.stat.gz").write_text(f"{compared}\n")
    done = bash(project, ["./benchmark.sh"], UPDATE_BASELINE="1", RUNS_CODE=str(runs))
    assert done.returncode == code, done.stderr
    assert stat_files(project / "last") == (
        ["new.stat.gz"] if not runs else [] if compared is None else ["old.stat.gz"]
    )
    has_comparison = (project / "comparison-fixed.xml").exists()
    assert has_comparison == (compared is not None and runs in {0, 5})


def test_runs_are_made_with_a_condition_on_errors() -> None:
    """Without one, an operation that failed among thousands ended the job, and nothing was compared."""
    text = (EXAMPLE / "benchmark.sh").read_text()
    runs = text[text.index("run-scenario") : text.index("compare()")]
    assert "--fail-if 'errors > 0.1%'" in runs
    assert "--undecided pass" in runs


@pytest.mark.parametrize(
    ("fixed", "last", "code", "replaced"),
    [
        (0, 0, 0, True),
        (5, 0, 5, False),
        (6, 0, 6, False),
        (0, 6, 6, False),
        (6, 5, 5, False),
        (5, 6, 5, False),
    ],
)
def test_only_runs_that_are_as_good_replace_the_last_baseline(
    project: Path, monkeypatch: pytest.MonkeyPatch, *, fixed: int, last: int, code: int, replaced: bool
) -> None:
    """A baseline that went with every green run let 9 % a merge pass, and an undecided one let it go on."""
    use_fake_master(project, monkeypatch)
    for name, found in (("fixed", fixed), ("last", last)):
        (project / name).mkdir()
        (project / name / "old.stat.gz").write_text(f"{found}\n")
    done = bash(project, ["./benchmark.sh"], UPDATE_BASELINE="1")
    assert done.returncode == code, done.stderr
    assert stat_files(project / "fixed") == ["old.stat.gz"]
    assert stat_files(project / "last") == (["new.stat.gz"] if replaced else ["old.stat.gz"])


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
