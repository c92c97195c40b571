"""The mutants that ``tox -e mutation`` draws from, and how one gets into a program."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from marks import REACHED, marked
from mutants import Mutant, compiles, places
from mutated import Finder, Program, module_name
from pytest_runs import Reached
from reach import SECONDS_OF_TESTS, Reach

MUTATION = Path(__file__).parents[2] / "mutation"


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


def test_a_guard_of_a_case_is_of_its_match() -> None:
    source = b"match a:\n    case 1:\n        b()\n    case c if c < 2:\n        d()\n"
    assert {(each.line, each.statement) for place in places(source, "m.py") for each in place} == {
        (2, 1),
        (3, 3),
        (4, 1),
        (5, 5),
    }


SOURCE = b'''"""Words of the module."""
LIMIT = 3
TWICE = 2 * LIMIT


class Box:
    """A class."""

    size: int = 1

    def fits(self, count: int, more: int = 0) -> bool:
        """Words of the function."""
        if count > TWICE:
            return False
        elif count < 0:
            raise ValueError("less than nothing")
        for each in range(count):
            more += each
        return more < self.size


def far(place):
    return place > LIMIT
'''


def test_a_marked_program_notes_the_statements_that_it_reaches() -> None:
    program, lines = marked(SOURCE)
    assert lines == {13, 14, 15, 16, 17, 18, 19, 23}
    reached: list[int] = []
    names: dict[str, Any] = {REACHED: reached.append}
    exec(compile(program, "m.py", "exec"), names)
    assert reached == []  # an import is no test
    box = names["Box"]()
    assert box.fits.__doc__ == "Words of the function."
    assert not box.fits(2)
    assert reached == [13, 15, 17, 18, 18, 19]
    reached.clear()
    with pytest.raises(ValueError, match="less than nothing"):
        box.fits(-1)
    assert reached == [13, 15, 16]


def test_another_program_is_imported_and_the_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "changed_for_a_test"
    package.mkdir()
    for name, text in (("__init__", ""), ("other", "ANSWER = 41\n"), ("module", "ANSWER = 41\n")):
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    program = Program(lambda path: compile("ANSWER = 40 + MORE", path, "exec"), {"MORE": 2})
    monkeypatch.setattr(
        sys, "meta_path", [Finder({module_name("changed_for_a_test/module.py"): program}), *sys.meta_path]
    )
    found = [importlib.import_module(f"changed_for_a_test.{name}") for name in ("module", "other")]
    assert [each.ANSWER for each in found] == [42, 41]
    assert (package / "module.py").read_text() == "ANSWER = 41\n"
    assert module_name("a/b/__init__.py") == "a.b"


def run(folder: Path, program: str) -> Any:
    """Run a program that prints JSON, in a folder, beside the modules of the mutation."""
    environment = os.environ | {"PYTHONPATH": f"{MUTATION}:{folder}"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return json.loads(done.stdout)


def test_calls_in_processes_of_their_own(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        """
import json, os, time
from separate import Call, results
def of(function, *calls):
    return sorted((key, list(found) if isinstance(found, tuple) else found)
                  for key, found in results(function, [Call(*each) for each in calls], 2))
print(json.dumps([
    of(len, ("a", ("xy",), 50), ("b", ("xyz",), 50), ("c", ("",), 50)),
    of(os._exit, ("exits", (3,), 50)),
    of(time.sleep, ("slow", (60,), 0.5), ("quick", (0,), 50)),
]))
""",
    )
    assert found == [
        [["a", 2], ["b", 3], ["c", 0]],
        [["exits", [3]]],  # a process that died, and its exit code
        [["quick", None], ["slow", [None]]],
    ]


def test_tests_of_a_program_that_is_changed(tmp_path: Path) -> None:
    program = (
        "def least(a, b):\n    while b < a:\n        a -= 1\n    return a\n\n\ndef most(a):\n    return a\n"
    )
    (tmp_path / "program.py").write_text(program)
    (tmp_path / "test_program.py").write_text(
        "import pytest\nfrom program import least, most\n\n\n"
        "def test_least():\n    assert least(5, 3) == 3\n\n\n"
        "def test_equal():\n    assert least(3, 3) == 3\n\n\n"
        "def test_wrong():\n    assert most(1) == 2\n\n\n"
        "def test_skipped():\n    pytest.skip('so')\n"
    )
    mutants = {
        text: (program.index(old), program.index(old) + len(old), text)
        for old, text in (("b < a", "b > a"), ("b < a", "b <= a - 0"), ("a -= 1", "a += 1"), ("1", "1 * 1"))
    }
    found = run(
        tmp_path,
        f"""
import json, marshal
from pathlib import Path
from marks import marked
from mutants import Mutant
from pytest_runs import noticed, reached
from separate import Call, results
source = Path("program.py").read_bytes()
program = compile(marked(source)[0], "program.py", "exec")
Path("programs").write_bytes(marshal.dumps({{"program.py": program}}))
((_, first),) = results(reached, [Call("", ("test_program.py", Path("programs")), 50)], 1)
calls = [
    Call(key, (Mutant("program.py", 1, 1, *change), dict.fromkeys(first, 0.0)), 50)
    for key, change in {mutants!r}.items()
]
print(json.dumps([{{name: each.lines for name, each in first.items()}}, dict(results(noticed, calls, 2))]))
""",
    )
    lines = {name: each["program.py"] for name, each in found[0].items()}
    assert lines == {"test_program.py::test_least": 0b11100, "test_program.py::test_equal": 0b10100}
    assert found[1] == {
        "b > a": ["test_program.py::test_least", False],
        "b <= a - 0": ["test_program.py::test_least", False],
        "a += 1": [-signal.SIGPROF],  # it never ends
        "1 * 1": [None, False],
    }


def reach(**tests: tuple[float, list[int]]) -> Reach:
    """Tests, each with its seconds and the lines of m.py that it reaches."""
    return Reach(
        {"m.py": SOURCE, "n.py": b"def near(box):\n    return box.size\n"},
        {
            f"{name[0]}.py::{name}": Reached(
                seconds,
                {"m.py": sum(1 << line for line in lines if line > 0), "n.py": 4 if 0 in lines else 0},
            )
            for name, (seconds, lines) in tests.items()
        },
    )


def at(line: int, statement: int | None = None) -> Mutant:
    return Mutant("m.py", line, statement or line, 0, 1, "")


def test_tests_that_reach_a_mutant_come_first_and_others_of_their_files_follow() -> None:
    found = reach(
        wide=(0.1, [13, 15, 17, 19]),
        narrow=(0.1, [19]),
        quick=(0.0, [19, 23]),
        slow=(SECONDS_OF_TESTS, [19]),
        whole=(0.1, [13]),
        other=(0.1, [23]),
    )
    assert found.tests(at(19)) == ["q.py::quick", "n.py::narrow", "w.py::wide", "w.py::whole"]
    assert found.tests(at(18, 17)) == ["w.py::wide", "w.py::whole"]
    assert found.tests(at(16)) == []
    assert found.seconds(["w.py::wide", "q.py::quick"]) == {"w.py::wide": 0.1, "q.py::quick": 0.0}


def test_one_slow_test_is_better_than_none() -> None:
    found = reach(slow=(2 * SECONDS_OF_TESTS, [13]), later=(3 * SECONDS_OF_TESTS, [13]))
    assert found.tests(at(13)) == ["s.py::slow"]


@pytest.mark.parametrize(
    ("line", "tests"),
    [
        (2, ["f.py::fits", "x.py::far"]),  # a constant: where it is used, and what is made of it
        (3, ["f.py::fits"]),
        (9, ["l.py::last", "n.py::near"]),  # a field of a class, in any module
        (11, ["f.py::fits", "l.py::last"]),  # a default of a function, in all of it
    ],
)
def test_what_an_import_makes_is_tested_where_it_is_used(line: int, tests: list[str]) -> None:
    found = reach(fits=(0.1, [13]), last=(0.1, [19]), near=(0.1, [0]), xfar=(0.1, [23]))
    assert sorted(found.tests(at(line))) == sorted(each.replace("far", "xfar") for each in tests)


def test_each_part_names_modules_that_exist() -> None:
    spec = importlib.util.spec_from_file_location("mutation", MUTATION / "__main__.py")
    assert spec is not None
    assert spec.loader is not None
    mutation = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mutation)
    assert all(mutation.read(patterns) for patterns in mutation.PARTS.values())
