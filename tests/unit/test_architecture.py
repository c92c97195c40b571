"""The packages import each other in one direction, and doc/architecture.rst names what there is."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ssbench"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}

#: What a package must not import, because it is to be usable and testable without it.
FORBIDDEN = {
    "attribution": {"cli", "fleet", "run", "screen", "worker"},
    "comparison": {"cli", "fleet", "run", "run_results", "screen", "worker"},
    "document": {"cli", "fleet", "reports", "run", "run_results", "scenario", "screen", "statistics"},
    "cluster": {"swift"},
    "fleet": {"run", "worker", "screen", "swift", "cli"},
    "metrics": {"fleet", "swift"},
    "reports": {"run", "run_results", "screen", "cli"},
    "results": {"fleet", "run_results", "screen"},
    "run": {"cli", "reports", "statistics", "worker"},
    "run_results": {"fleet", "run", "screen", "statistics"},
    "store": {"fleet", "run", "scenario", "swift", "worker"},
    "statistics": {"fleet", "run", "run_results", "screen", "reports"},
    "swift": {"fleet", "run", "screen", "worker"},
    "verdict": {"cli", "fleet", "reports", "run", "run_results", "screen", "worker"},
    "web": {"cli", "fleet", "run", "worker"},
    "worker": {"run", "scenario", "screen", "workload"},
    "workload": {"fleet", "run", "screen", "swift"},
}


def package(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports(path: Path) -> set[str]:
    """Return the modules of ssbench that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found.update(name if name in MODULES else node.module for name in names)
    return found & MODULES.keys()


@cache
def packages() -> dict[str, set[str]]:
    graph: dict[str, set[str]] = defaultdict(set)
    for module, path in MODULES.items():
        graph[package(module)].update(package(each) for each in imports(path))
    # The package itself holds the version, and imports nothing.
    return {name: others - {name, ""} for name, others in graph.items() if name}


def test_packages_import_each_other_in_one_direction() -> None:
    TopologicalSorter(packages()).prepare()  # raises CycleError, which names the cycle


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_a_package_does_not_know(name: str) -> None:
    assert FORBIDDEN[name] <= packages().keys()
    assert not packages()[name] & FORBIDDEN[name]


def described() -> set[str]:
    """Return the names in the first column of the table of modules."""
    text = (ROOT / "doc" / "architecture.rst").read_text()
    names = set()
    for cell in re.findall(r"^   \* - (``.*(?:\n     ``.*)*)", text, re.MULTILINE):
        names.update(re.findall(r"``([\w/]+?)/?``", cell))
    return names


def test_the_documentation_names_modules_that_exist() -> None:
    names = described()
    assert len(names) > 20
    for name in names:
        assert (PACKAGE / f"{name}.py").is_file() or (PACKAGE / name).is_dir(), name


def test_what_the_table_says_of_modules_is_of_some_that_exist() -> None:
    """The second column too, with names of modules within a package."""
    text = (ROOT / "doc" / "architecture.rst").read_text()
    table = text[text.index(".. list-table::") : text.index("Local workers reach the master")]
    known = {path.stem for path in MODULES.values()} | {path.parent.name for path in MODULES.values()}
    named = {re.split("[./]", name)[-1] for name in re.findall(r"``([a-z_./]+?)/?``", table)}
    # A reference to a run, and files that are no modules.
    assert named - known <= {"last", "jinja", "js", "uplot"}


def test_the_documentation_leaves_no_package_out() -> None:
    written = {name.split("/")[0] for name in described()}
    missing = packages().keys() - written - {"errors", "names", "profiling", "suggestions"}
    assert not missing


def test_every_package_is_in_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packed = set(project["tool"]["setuptools"]["packages"])
    there = {".".join(path.parent.relative_to(ROOT).parts) for path in PACKAGE.rglob("__init__.py")}
    assert there <= packed
