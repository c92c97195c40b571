"""Runs of pytest, each in a process of its own: a file of tests with marks, or the tests of a mutant."""

from __future__ import annotations

import marshal
import os
import signal
import sys
from collections.abc import Callable, Generator, Mapping
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import pytest
from marks import REACHED
from mutants import Mutant
from mutated import Finder, Program, module_name

#: Nothing is printed, so assertions need no explanation. The time-out is for a test that waits.
OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", "--timeout=30"]

#: Seconds of CPU time for a test of a mutant: so many, and so many times as long as it takes without it.
BEGIN, SLOWER = 2.0, 8.0

#: Seconds of CPU time to import the program and the tests.
IMPORT = 60.0


class Reached(NamedTuple):
    """The seconds of CPU time of a test, and by path the lines that it reaches, as bits."""

    seconds: float
    lines: dict[str, int]


class Noticed(NamedTuple):
    """How the tests of a mutant ended: the name of the first that failed, and whether by its time limit."""

    by: str | None
    late: bool = False


def _return_code(code: CodeType, _path: object) -> CodeType:
    return code


def reached(tests: str, programs: Path) -> dict[str, Reached]:
    """Run a file of tests with a marked program; return what those reach that pass."""
    lines: dict[str, set[int]] = {}
    names: dict[str, Program] = {}
    for path, code in marshal.loads(programs.read_bytes()).items():
        lines[path] = set()
        names[module_name(path)] = Program(partial(_return_code, code), {REACHED: lines[path].add})
    sys.meta_path.insert(0, Finder(names))
    notes = _Notes(lines)
    pytest.main([*OPTIONS, tests], plugins=[notes])
    return notes.passed()


def noticed(mutant: Mutant, tests: Mapping[str, float]) -> Noticed:
    """Run tests with a mutant until one fails; ``tests`` are in order, with the CPU time that each takes."""
    change = Program(
        lambda path: compile(mutant.apply(Path(path).read_bytes()), path, "exec", dont_inherit=True)
    )
    sys.meta_path.insert(0, Finder({module_name(mutant.path): change}))
    first = _First(tests)
    code = pytest.main([*OPTIONS, "-x", *dict.fromkeys(map(file_of, tests))], plugins=[first])
    if first.by is None and code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        return Noticed("import")
    return Noticed(first.by, first.late)


def file_of(test: str) -> str:
    """Return the path of the file that a test is in."""
    return test.partition("::")[0]


class _Notes:
    """A plugin that notes what each test reaches."""

    def __init__(self, lines: Mapping[str, set[int]]) -> None:
        self._lines = lines
        self._reached: dict[str, Reached] = {}
        self._passed: set[str] = set()
        self._failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        for lines in self._lines.values():
            lines.clear()
        began = _cpu_seconds()
        result = yield
        reached = {
            path: sum(1 << line for line in list(lines)) for path, lines in self._lines.items() if lines
        }
        self._reached[item.nodeid] = Reached(_cpu_seconds() - began, reached)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid)
        if report.failed:
            self._failed.add(report.nodeid)

    def passed(self) -> dict[str, Reached]:
        return {name: each for name, each in self._reached.items() if name in self._passed - self._failed}


class _First:
    """A plugin that runs tests in their order, keeps the first failure, and ends what takes too long."""

    def __init__(self, tests: Mapping[str, float]) -> None:
        self.by: str | None = None
        self.late = False
        self._places = {name: place for place, name in enumerate(tests)}
        self._seconds = tests
        _limit(IMPORT)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._places]
        items.sort(key=lambda item: self._places[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        _limit(BEGIN + SLOWER * self._seconds[item.nodeid])
        result = yield
        _limit(IMPORT)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.by is None:
            self.by, self.late = report.nodeid, "Timeout (>" in str(report.longrepr)


def _cpu_seconds() -> float:
    """Return what this process has used, and those that it has started and waited for."""
    return sum(os.times()[:4])


#: SIGPROF ends a process that does nothing about it.
_limit: Callable[[float], object] = partial(signal.setitimer, signal.ITIMER_PROF)
