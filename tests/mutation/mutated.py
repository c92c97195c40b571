"""Import modules as another program than their files have: with a change, or with marks.

No file is changed, so that an interrupted run leaves none behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple


class Program(NamedTuple):
    """What runs in place of a module."""

    code: Callable[[str], CodeType]
    #: What it has as globals besides its own.
    names: Mapping[str, Any] = {}


class Finder:
    """Finds modules, by their names, of which another program is to be imported (``sys.meta_path``)."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        self._programs = programs

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        """Find it where it would be found anyway."""
        if name not in self._programs:
            return None
        spec = PathFinder.find_spec(name, path)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Loader(name, spec.origin, self._programs[name])
        return spec


def module_name(path: str) -> str:
    """Return the name by which the module of a path is imported."""
    return ".".join(Path(path).with_suffix("").parts).removesuffix(".__init__")


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, program: Program) -> None:
        super().__init__(name, path)
        self._program = program

    def get_code(self, fullname: str) -> CodeType:
        """Return the other program; what Python keeps compiled is that of the file."""
        return self._program.code(self.path)

    def exec_module(self, module: ModuleType) -> None:
        """Give it its globals first."""
        vars(module).update(self._program.names)
        super().exec_module(module)
