"""What the programs of bin/ say where something is missing that they need."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ssbench.cli import own_program

Run = Callable[[str, str], int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run the main of a module with this text."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def _run(name: str, text: str) -> int:
        (tmp_path / f"{name}.py").write_text(text)
        return own_program.run_from_checkout("ssbench-x", name)

    yield _run
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
    assert own_program.run_from_checkout("ssbench-x", "no_such_module") == 2
    said = capsys.readouterr().err
    assert said.startswith("ssbench-x: needs Python 3.11 or later, and this is 3.")
    assert said.count("\n") == 1
