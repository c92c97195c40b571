"""A plugin of pytest: import one module with a change, or write down how long each test takes.

``MUTANT`` is the path of the module, a number of the first and of the last byte, and the text that
stands there instead. No file is changed, so that an interrupted run leaves none behind.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, start: int, end: int, text: str) -> None:
        super().__init__(name, path)
        self._change = start, end, text

    def get_code(self, fullname: str) -> CodeType:
        """Compile the changed source each time: what is cached is that of the file."""
        start, end, text = self._change
        source = self.get_data(self.path)
        return self.source_to_code(source[:start] + text.encode() + source[end:], self.path)


class _Finder:
    """Finds only the module that is to be changed."""

    def __init__(self, path: str, start: int, end: int, text: str) -> None:
        self._name = ".".join(Path(path).with_suffix("").parts).removesuffix(".__init__")
        self._change = start, end, text

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        """Find it where it would be found anyway."""
        if name != self._name:
            return None
        spec = PathFinder.find_spec(name, path)
        spec.loader = _Loader(name, spec.origin, *self._change)
        return spec


class _Durations:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps(self._seconds))


def pytest_configure(config: pytest.Config) -> None:
    """Write down durations in the process that gets the reports of all."""
    if "DURATIONS" in os.environ and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Durations(Path(os.environ["DURATIONS"])))


if "MUTANT" in os.environ:
    sys.meta_path.insert(0, _Finder(*json.loads(os.environ["MUTANT"])))
