"""Which unit tests reach which line, and how long each of them takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from coverage import CoverageData
from mutants import Mutant

#: The tests of a mutant take so many seconds at most: those that reach the most other lines are left out.
SECONDS_OF_TESTS = 12.0

SETTINGS = """
[run]
include = {patterns}
data_file = {folder}/lines
concurrency = thread, gevent
"""


def measure(root: Path, patterns: Iterable[str], folder: Path, processes: int) -> bool:
    """Run all unit tests once and keep in a folder which lines they reach; return whether they passed."""
    settings = folder / "coverage.ini"
    wanted = ",".join(str(root / pattern) for pattern in patterns)
    settings.write_text(SETTINGS.format(patterns=wanted, folder=folder))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "mutated"]
    command += ["-n", str(processes), "--dist", "worksteal", "--cov", f"--cov-config={settings}"]
    command += ["--cov-context=test", "--cov-report=", "tests/unit"]
    seconds = folder / "seconds.new"
    environment = environment_of_tests() | {"DURATIONS": str(seconds)}
    if subprocess.run(command, cwd=root, env=environment, check=False).returncode:
        return False
    seconds.rename(folder / "seconds.json")
    return True


def environment_of_tests() -> dict[str, str]:
    """Return the environment in which pytest finds the plugin next to this module."""
    return os.environ | {"PYTHONPATH": str(Path(__file__).parent)}


class Reach:
    """What was measured, read from its folder."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._lines = CoverageData(str(folder / "lines"))
        self._lines.read()
        self._seconds: dict[str, float] = json.loads((folder / "seconds.json").read_text())
        self._of_file: dict[str, dict[int, set[str]]] = {}
        self._breadth = Counter(
            name
            for path in self._lines.measured_files()
            for names in self._of(path).values()
            for name in names
        )

    def _of(self, path: str) -> dict[int, set[str]]:
        if path not in self._of_file:
            found = self._lines.contexts_by_lineno(path)
            self._of_file[path] = {
                line: {name.rpartition("|")[0] for name in names} for line, names in found.items()
            }
        return self._of_file[path]

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a mutant, those first that reach the fewest other lines."""
        lines = self._of(str(self._root / mutant.path))
        names = set().union(*(lines.get(line, ()) for line in range(mutant.statement, mutant.line + 1)))
        if names == {""}:  # it runs only when its module is imported
            names = set().union(*lines.values())
        kept, left = [], SECONDS_OF_TESTS
        for name in sorted(names - {""}, key=lambda name: (self._breadth[name], name)):
            if (seconds := self._seconds.get(name, 0.0)) <= left:
                kept.append(name)
                left -= seconds
        if not kept:
            kept = sorted(names - {""}, key=lambda name: self._seconds.get(name, 0.0))[:1]
        return kept

    def seconds(self, tests: Iterable[str]) -> float:
        """How long these tests take by themselves."""
        return sum(self._seconds.get(name, 0.0) for name in tests)
