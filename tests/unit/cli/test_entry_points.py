"""How commands begin: Ctrl-C while they import, and what those of bin/ say where something is missing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ssbench.base import interruption
from ssbench.cli import entry_points

ROOT = Path(__file__).parents[3]

Run = Callable[[str, str], int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run the main of a module with this text."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(interruption._state, "program", None)
    handler = signal.getsignal(signal.SIGINT)

    def _run(name: str, text: str) -> int:
        (tmp_path / f"{name}.py").write_text(text)
        return entry_points.start_from_checkout("ssbench-x", name)

    yield _run
    signal.signal(signal.SIGINT, handler)
    for name in ("program_that_ends", "program_that_lacks", "program_with_a_fault"):
        sys.modules.pop(name, None)


def test_the_code_of_the_program_is_its_own(run: Run) -> None:
    assert run("program_that_ends", "def main():\n    return 7\n") == 7


def test_a_package_that_is_not_installed_is_named_with_the_way_to_it(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "def main():\n    import no_such_package.inside\n"
    assert run("program_that_lacks", text) == 2
    said = capsys.readouterr().err
    assert said.startswith(
        f"ssbench-x: the package 'no_such_package' is not installed for {sys.executable}; "
    )
    assert "pip install -e ." in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("module", ["ssbench.no_such_module", "ssbench.cli.no_such.module"])
def test_a_fault_of_its_own_is_no_missing_package(run: Run, module: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        run("program_with_a_fault", f"import {module}\n")


def test_an_old_python_is_told_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 99))
    assert entry_points.start_from_checkout("ssbench-x", "no_such_module") == 2
    said = capsys.readouterr().err
    assert said.startswith("ssbench-x: needs Python 3.11 or later, and this is 3.")
    assert said.count("\n") == 1


#: What sends SIGINT to the process when it imports a module.
INTERRUPT = """
import os, signal, sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
"""


def _interrupt(tmp_path: Path, module: str, command: list[str]) -> tuple[int, str, str]:
    """Run a command and interrupt it when it imports a module; return its exit code and its output."""
    (tmp_path / "sitecustomize.py").write_text(INTERRUPT.format(module=module))
    made = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
    )
    return made.returncode, made.stdout, made.stderr


def _installed_command(program: str) -> list[str]:
    """Return what pip makes of an entry point."""
    target = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"][program]
    module, name = target.split(":")
    return ["-c", f"import sys; from {module} import {name}; sys.exit({name}())", "--version"]


@pytest.mark.parametrize("where", ["installed", "bin"])
@pytest.mark.parametrize("module", ["ssbench.base.interruption", "argparse"])
@pytest.mark.parametrize("name", ["master", "worker"])
def test_ctrl_c_while_a_command_imports_what_it_needs_is_silent(
    tmp_path: Path, where: str, module: str, name: str
) -> None:
    program = f"ssbench-{name}"
    command = _installed_command(program) if where == "installed" else [str(ROOT / "bin" / program)]
    assert _interrupt(tmp_path, module, command) == (130, "", "")


def test_an_ignored_ctrl_c_stays_ignored(tmp_path: Path) -> None:
    command = _installed_command("ssbench-master")
    command[1] = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {command[1]}"
    code, out, err = _interrupt(tmp_path, "argparse", command)
    assert (code, err) == (0, "")
    assert out.startswith("ssbench ")


def test_from_then_on_ctrl_c_says_a_line(tmp_path: Path) -> None:
    command = _installed_command("ssbench-master")
    command[-1:] = ["check-scenario", "-f", "very_small"]
    assert _interrupt(tmp_path, "ssbench.cli.check_scenario", command) == (
        130,
        "",
        "ssbench-master: interrupted\n",
    )
