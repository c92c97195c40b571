"""The packages import each other in one direction, and doc/architecture.rst names what there is."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

from ssbench.scenario.store_kinds import STORE_KINDS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ssbench"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}

#: The floor of each package, which imports from lower floors only. Leaves are on top: nothing imports them.
FLOORS = {
    "base": 1,
    "document": 2,
    "scenario": 3,
    "results": 4,
    "store": 4,
    "fleet": 5,
    "logs": 5,
    "statistics": 5,
    "reports": 6,
    "run": 6,
    "worker": 6,
    "comparison": 7,
    "plans": 8,
    "api": 9,
    "cli": 9,
    "cluster": 10,
    "local_swift": 10,
    "monitoring": 10,
    "traffic": 10,
}

#: Packages that only some runs need. The others find them by name: in the modules that are named here.
LEAVES = {"cluster", "local_swift", "monitoring", "traffic"}
NAME_OF_LEAF = rf"ssbench\.({'|'.join(sorted(LEAVES))})[\w.:]*"
FINDERS = {"cli.option_table", "cli.master", "reports.run_charts", "reports.products", "run.load_samples"}

#: Packages of stores, and modules that know which one it is. Others ask :mod:`ssbench.store.stores` for it.
OF_STORES = tuple(f"ssbench.store.{name}." for name in STORE_KINDS)
KNOW_STORES = {"cli.auth_options"}

#: Tests of the whole house, and those of the helpers of tests.
WHOLE = {"test_api_names", "test_architecture", "test_deploy", "test_documentation"}

#: Names that several modules have: those that packages of stores and leaves are asked for.
SHARED_NAMES = {"__init__", "dialect", "store", "run_options"}

#: Calls with more values by position can exchange two of them unnoticed: keywords, or a record.
MAX_POSITIONAL = 9

#: Calls that may have more, and why.
LONG_CALLS = {
    "add_options": "any number of options, each of which says what it is",
    "zip": "any number of columns",
    "pack": "a packer of C, which takes no keywords, once for each result",
    "BackendLine": "once for each line of logs: with keywords it takes three times as long",
    "LoggedRequest": "likewise",
}

#: A function with so many parameters lacks a record.
MANY_PARAMETERS = 8

#: Functions with as many. New ones are not welcome; one that loses some goes.
LONG_FUNCTIONS = {
    "api.run_scenario",
    "fleet.worker_state.WorkerState.__init__",
    "local_swift.cluster.LocalSwift.__init__",
    "logs.request_formats._make_request",
    "run.benchmark_run.BenchmarkRun.__init__",
    "run.group_run.GroupRun.__init__",
    "run.group_run.make_run_parameters",
    "run.phases.Benchmark.__init__",
    "run.result_rows.RowMaker.__init__",
    "run.run_records.make_run_summary",
    "run.setup.StoreSetup.__init__",
    "run.setup.upload_initial_objects",
    "statistics.collector.Collector.__init__",
    "store.http.client.HttpClient.request",
    "store.http.connection.HttpConnection.exchange_briefly",
    "store.s3.store.explain_refusal",
}

#: Modules of more than 100 lines without a file of tests by their names, and what tests them.
TESTED_ELSEWHERE = {
    "cli.run_scenario_options": "cli/test_option_table_overriding.py, cli/test_settings.py",
    "cli.worker": "whole workers, in tests/system",
    "scenario.value_rules": "keys with such rules: scenario/test_key_rules.py, scenario/test_model_keys.py",
    "store.http.dialect": "what is one: store/swift/test_dialect.py, store/s3/test_dialect.py",
}


def package(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


class Facts(NamedTuple):
    """What the tests look for in a module."""

    imports: set[str]  # modules of ssbench that it imports, anywhere in it, also under TYPE_CHECKING
    leaves: set[str]  # texts that name a leaf, or a part of one
    long_calls: list[int]  # lines of calls with many values by position
    parameters: dict[str, int]  # their number of each function, by its name behind that of its class, if any


def count_parameters(function: ast.FunctionDef) -> int:
    names = [
        each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    ]
    return len(names) - (names[:1] in (["self"], ["cls"]))


@cache
def look_at(path: Path) -> Facts:
    """Return the facts of a module; thousands of nodes, so that it is read once for all tests."""
    facts, tree = Facts(set(), set(), [], {}), ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            facts.imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            facts.imports.update(name if name in MODULES else node.module for name in names)
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str) and re.fullmatch(NAME_OF_LEAF, node.value):
                facts.leaves.add(node.value)
        elif (
            isinstance(node, ast.Call)
            and len(node.args) > MAX_POSITIONAL
            and ast.unparse(node.func).rpartition(".")[2] not in LONG_CALLS
        ):
            facts.long_calls.append(node.lineno)
    facts.imports.intersection_update(MODULES)
    for node in tree.body:
        inside, owner = (node.body, f"{node.name}.") if isinstance(node, ast.ClassDef) else ([node], "")
        functions = [each for each in inside if isinstance(each, ast.FunctionDef)]
        facts.parameters.update({owner + each.name: count_parameters(each) for each in functions})
    return facts


@cache
def arrows() -> dict[str, set[str]]:
    """Return for each module those that it imports."""
    return {module: look_at(path).imports - {module} for module, path in MODULES.items()}


@cache
def packages() -> dict[str, set[str]]:
    graph: dict[str, set[str]] = defaultdict(set)
    for module, others in arrows().items():
        graph[package(module)].update(map(package, others))
    # The package itself offers what others have, and is imported by none of them.
    return {name: others - {name} for name, others in graph.items() if name}


def test_the_map_has_all_packages_and_nothing_is_loose() -> None:
    assert packages().keys() == FLOORS.keys()
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "api.py"}
    assert len(set(FLOORS.values())) <= 10


def test_a_package_imports_from_lower_floors_alone() -> None:
    upwards = {
        f"{module} -> {other}"
        for module, others in arrows().items()
        for other in others
        if package(module) not in {"", package(other)}
        and FLOORS.get(package(other), 10) >= FLOORS[package(module)]
    }
    assert not upwards


def test_modules_import_each_other_in_one_direction() -> None:
    TopologicalSorter(arrows()).prepare()  # raises CycleError, which names the cycle


def test_leaves_are_named_where_they_are_found_and_nowhere_else() -> None:
    for module, path in MODULES.items():
        if package(module) in LEAVES:
            continue
        named = look_at(path).leaves
        assert not named or module.removeprefix("ssbench.") in FINDERS, (module, named)
        for name in named:
            assert name.partition(":")[0] in MODULES


def test_only_a_few_know_which_store_it_is() -> None:
    knowing = {
        module.removeprefix("ssbench.")
        for module, others in arrows().items()
        if package(module) != "store" and any(each.startswith(OF_STORES) for each in others)
    }
    assert knowing == KNOW_STORES


def test_the_http_client_knows_no_store() -> None:
    for module, others in arrows().items():
        if module.startswith("ssbench.store.http"):
            assert not {each for each in others if each.startswith(OF_STORES)}


@cache
def files_of_modules() -> dict[str, list[str]]:
    """Return for each module the files of its tests; those of none have the module ``""``."""
    found: dict[str, list[str]] = defaultdict(list)
    folder = ROOT / "tests" / "unit"
    for path in folder.rglob("test_*.py"):
        tested = path.parent.relative_to(folder)
        if tested.parts[:1] == ("helpers",) or (not tested.parts and path.stem in WHOLE):
            continue
        name = path.stem.removeprefix("test_")
        stems = [each.stem for each in (PACKAGE / tested).glob("*.py")]
        fitting = [stem for stem in stems if f"{name}_".startswith(f"{stem.strip('_')}_")]
        # Of run_document and run_document_summary the longer name is meant.
        module = ".".join((*tested.parts, max(fitting, key=len))) if fitting else ""
        found[module].append(str(path.relative_to(folder)))
    return found


def test_a_file_of_tests_has_the_name_of_its_module() -> None:
    """``tests/unit/PACKAGE/test_MODULE.py``; what follows the name of the module says what of it."""
    assert not files_of_modules()[""]


def has_behaviour(path: Path) -> bool:
    """Return whether a module of more than 100 lines has a public function, or a public class with one."""
    text = path.read_text()
    if text.count("\n") <= 100:
        return False
    public = [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    return any(isinstance(each, ast.FunctionDef) for node in public for each in (node, *ast.walk(node)))


def test_each_module_has_a_file_of_tests() -> None:
    without = {
        module.removeprefix("ssbench.")
        for module, path in MODULES.items()
        if path.stem not in {"__init__", "api"} and has_behaviour(path)
    } - files_of_modules().keys()
    assert without == TESTED_ELSEWHERE.keys()


def described() -> dict[str, set[str]]:
    """Return the packages of the table in the documentation, each with the modules that it names."""
    text = (ROOT / "doc" / "architecture.rst").read_text()
    table = text[text.index("The map\n") : text.index("Local workers reach the master")]
    rows = re.findall(r"^   \* - ``(\w+)``\n     - (.*(?:\n       .*)*)", table, re.MULTILINE)
    return {name: set(re.findall(r"``([a-z_]+)``", what)) for name, what in rows}


def test_the_documentation_has_every_package_and_modules_that_exist() -> None:
    assert described().keys() == FLOORS.keys() - {"api"}
    for name, modules in described().items():
        there = {each.stem for each in (PACKAGE / name).rglob("*.py")} | {
            each.name for each in (PACKAGE / name).iterdir()
        }
        assert modules - there <= {"api"}, name


def test_the_description_is_short() -> None:
    text = (ROOT / "doc" / "architecture.rst").read_text()
    assert len(text.split()) <= 2300
    terms = text[text.index("Terms\n") : text.index("The way of the data\n")]
    assert len(re.findall(r"^\S.*\n  \S", terms, re.MULTILINE)) <= 20


def test_every_package_is_in_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packed = set(project["tool"]["setuptools"]["packages"])
    there = {".".join(path.parent.relative_to(ROOT).parts) for path in PACKAGE.rglob("__init__.py")}
    assert there <= packed


def test_many_values_are_handed_over_by_name() -> None:
    assert {name: lines for name, path in MODULES.items() if (lines := look_at(path).long_calls)} == {}


def test_no_more_functions_have_many_parameters() -> None:
    found = {
        f"{module.removeprefix('ssbench.')}.{name}"
        for module, path in MODULES.items()
        for name, count in look_at(path).parameters.items()
        if count >= MANY_PARAMETERS
    }
    assert found == LONG_FUNCTIONS


def test_a_module_is_found_by_its_name() -> None:
    names = Counter(path.stem for path in MODULES.values())
    assert {name for name, count in names.items() if count > 1} <= SHARED_NAMES
