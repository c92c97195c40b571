"""The mutants that ``tox -e mutation`` draws from, and how one gets into a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from coverage import CoverageData
from mutants import Mutant, compiles, places
from reach import SECONDS_OF_TESTS, Reach

MUTATION = Path(__file__).parents[1] / "mutation"


def changed(source: str) -> list[str]:
    return [
        each.apply(source.encode()).decode() for place in places(source.encode(), "m.py") for each in place
    ]


@pytest.mark.parametrize(
    ("source", "mutants"),
    [
        ("(a)<(b)", ["(a)<=(b)", "(a)>=(b)"]),
        ("a is  not b", ["a is b"]),
        ("a not in b", ["a in b"]),
        ("a and b or c", ["a and b and c", "a or b or c"]),
        ("a - b // c", ["a + b // c", "a - b * c"]),
        ("not a", ["a"]),
        ("x = -1", ["x = 1"]),
        ("x = 0.5, True", ["x = 1.0, True", "x = 0.5, False"]),
        ("min(a, b)", ["pass", "max(a, b)"]),
        ("x = n.minimum(a)", ["x = n.maximum(a)"]),
        ("a.b = c", ["pass"]),
        ("a.b: int = c", ["pass"]),
        ("n += m", ["n -= m", "pass"]),
        ("x = a if b else c", ["x = a if (not (b)) else c"]),
        ("x = [a for a in b if a]", ["x = [a for a in b if (not (a))]"]),
        ("del a[0]", ["pass"]),
        ("find(a, side='left')", ["pass", "find(a, side='right')"]),
        ("'ü', a < b", ["'ü', a <= b", "'ü', a >= b"]),
    ],
)
def test_what_is_changed(source: str, mutants: list[str]) -> None:
    assert sorted(changed(source)) == sorted(mutants)


@pytest.mark.parametrize(
    "source",
    [
        "import a",
        "from __future__ import annotations",
        "'a text of no use'",
        "x = y",
        "x: Literal[1] = y",
        "def f(a: Literal[1]) -> Literal[2]:\n    '''Say.'''\n    return a",
        "if TYPE_CHECKING:\n    x = 1",
        "class A(Protocol):\n    x = 1",
        "x = f'{a + 1} b'",
        "x = 'a' + b",
        "zip(a, strict=True).x",
    ],
)
def test_what_stays_as_it_is(source: str) -> None:
    assert not changed(source)


def test_a_mutant_is_shown_with_its_line() -> None:
    source = b"def f():\n    if a:\n        b.c(\n            1)\n"
    shown = [
        (each.line, each.statement, *each.shown(source)) for place in places(source, "m.py") for each in place
    ]
    assert shown == [
        (2, 2, "if a:", "if (not (a)):"),
        (3, 3, "b.c( 1)", "pass"),
        (4, 3, "1)", "2)"),
    ]


def test_a_change_that_leaves_no_program() -> None:
    assert compiles(b"while a:\n    break")
    assert not compiles(b"break")


def test_a_mutant_is_imported_and_the_file_stays(tmp_path: Path) -> None:
    package = tmp_path / "changed"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "other.py").write_text("ANSWER = 41\n")
    (package / "module.py").write_text("ANSWER = 41\n")
    program = (
        "import mutated, changed.module as module, changed.other as other; print(module.ANSWER, other.ANSWER)"
    )
    environment = os.environ | {
        "PYTHONPATH": f"{MUTATION}:{tmp_path}",
        "MUTANT": json.dumps(["changed/module.py", 9, 11, "42"]),
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "42 41\n"
    assert (package / "module.py").read_text() == "ANSWER = 41\n"


def reach(folder: Path, lines: dict[str, list[int]], seconds: dict[str, float]) -> Reach:
    """Which tests reach which lines of m.py; the empty name is the import."""
    data = CoverageData(str(folder / "lines"))
    for name, reached in lines.items():
        data.set_context(name and f"{name}|run")
        data.add_lines({str(folder / "m.py"): reached})
    data.write()
    (folder / "seconds.json").write_text(json.dumps(seconds))
    return Reach(folder, folder)


def at(line: int, statement: int | None = None) -> Mutant:
    return Mutant("m.py", line, statement or line, 0, 1, "")


def test_tests_that_reach_little_else_come_first_and_slow_ones_make_room(tmp_path: Path) -> None:
    lines = {"": [1], "wide": [2, 3, 4, 5], "near": [2], "slow": [2, 3], "other": [5, 6]}
    found = reach(tmp_path, lines, {"wide": 1.0, "near": 1.0, "slow": SECONDS_OF_TESTS, "other": 0.5})
    assert found.tests(at(2)) == ["near", "wide"]
    assert found.tests(at(4)) == ["wide"]
    assert found.tests(at(6, 5)) == ["other", "wide"]  # a statement of two lines
    assert found.tests(at(7)) == []
    assert set(found.tests(at(1))) == {"near", "wide", "other"}  # at its import: all that use the module
    assert found.seconds(["wide", "other"]) == 1.5


def test_one_slow_test_is_better_than_none(tmp_path: Path) -> None:
    lines = {"slow": [1], "slower": [1]}
    found = reach(tmp_path, lines, {"slow": 2 * SECONDS_OF_TESTS, "slower": 3 * SECONDS_OF_TESTS})
    assert found.tests(at(1)) == ["slow"]
