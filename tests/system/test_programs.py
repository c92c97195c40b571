"""The programs as a user calls them: from a checkout, by a path, by a name on the PATH."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from runs import write_scenario

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("program", "argument"), [("ssbench-master", "run-scenario"), ("ssbench-worker", "1")]
)
def test_a_checkout_without_its_dependencies_is_one_line(program: str, argument: str) -> None:
    # -S leaves out site-packages.
    command = [sys.executable, "-S", "-E", ROOT / "bin" / program, argument]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 2
    assert re.fullmatch(
        rf"{program}: the package '\w+' is not installed for \S+; in the checkout: .*pip install.*\n",
        run.stderr,
    )


def call(command: str, folder: Path, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("way", ["a path", "the PATH", "python -m"])
def test_the_command_for_another_report_works_where_the_user_is(tmp_path: Path, way: str) -> None:
    programs = tmp_path / "it's here" / "bin"
    programs.mkdir(parents=True)
    shutil.copytree(ROOT / "bin", programs, dirs_exist_ok=True)
    script = programs / "ssbench-master"
    # As pip would write it, with the Python of these tests.
    script.write_text(
        f"#!{sys.executable}\nimport sys\nfrom ssbench.cli.master import main\nsys.exit(main())\n"
    )
    path = os.environ["PATH"]
    name = {
        "a path": shlex.quote(str(script.relative_to(tmp_path))),
        "the PATH": "ssbench-master",
        "python -m": f"{shlex.quote(sys.executable)} -m ssbench.cli.master",
    }[way]
    if way == "the PATH":
        path = f"{programs}:{path}"
    write_scenario(tmp_path)
    first = call(f"{name} run-scenario -f scenario.yaml --noop --workers 1 -s x", tmp_path, path)
    assert first.returncode == 0, first.stderr
    command = re.search(r"Report on them again with: (.*)", first.stderr)[1]
    assert command.startswith(name)
    again = call(command, tmp_path, path)
    assert (again.returncode, again.stdout) == (0, first.stdout), again.stderr
