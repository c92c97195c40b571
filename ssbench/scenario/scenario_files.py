"""The text of a scenario: of a file, or of one that ships with ssbench."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from ssbench.base import errors
from ssbench.base.errors import ScenarioError

#: Maximum size of a scenario file in bytes; a larger file is not a scenario.
MAX_SCENARIO_BYTES = 1_000_000


def read_scenario_text(path_or_name: str) -> str:
    """Return the text of a file, or of the scenario that ships under a name; raises ScenarioError."""
    return _read_text(path_or_name, "scenario", find_shipped_file, _not_found)


def read_suite_text(path_or_name: str) -> str:
    """Return the text of a file, or of the suite that ships under a name; raises ScenarioError."""
    return _read_text(path_or_name, "suite", _find_shipped_suite, _describe_suites)


def _read_text(
    path_or_name: str, what: str, find: Callable[[str], Traversable | None], explain: Callable[[str], str]
) -> str:
    try:
        path = Path(path_or_name)
        found: Path | Traversable | None = path
        if not path.exists() or path.is_dir():
            found = find(path_or_name)
        if found is None:
            why = f"it is a folder; expected a {what} file" if path.is_dir() else explain(path_or_name)
            raise ScenarioError(f"{path_or_name}: {why}")
        with found.open("rb") as file:
            content = file.read(MAX_SCENARIO_BYTES + 1)
    except OSError as error:
        raise ScenarioError(f"{path_or_name}: cannot be read: {error.strerror}") from None
    if len(content) > MAX_SCENARIO_BYTES:
        raise ScenarioError(f"{path_or_name}: expected a scenario of at most {MAX_SCENARIO_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ScenarioError(f"{path_or_name}:{line}: expected UTF-8 text") from None


def _not_found(path_or_name: str) -> str:
    if names := suggest_scenarios(path_or_name):
        return (
            f"there is no such file; did you mean {' or '.join(names)}, which ships with ssbench?"
            " ('ssbench-master help scenarios' lists all)"
        )
    names = [name for name, _ in list_shipped_scenarios()]
    return (
        f"there is no such file; expected a scenario file or the name of a shipped one ({', '.join(names)})"
    )


def list_shipped_scenarios() -> list[tuple[str, str]]:
    """Return the name and purpose of each scenario that ships with ssbench, sorted by name.

    The purpose is the comment on the first line of its file.
    """
    return _list_files(_shipped_folder())


def list_shipped_suites() -> list[tuple[str, str]]:
    """Return the name and purpose of each suite that ships with ssbench, sorted by name."""
    return _list_files(_shipped_folder() / "suites")


def _list_files(folder: Traversable) -> list[tuple[str, str]]:
    files = [entry for entry in folder.iterdir() if entry.name.endswith(".yaml")]
    return sorted(
        (entry.name.removesuffix(".yaml"), entry.read_text("utf-8").partition("\n")[0].lstrip("# "))
        for entry in files
    )


def _find_shipped_suite(name: str) -> Traversable | None:
    """Return the file of the suite that ships as ``NAME`` or ``NAME.yaml``."""
    bare = name.removesuffix(".yaml")
    if not bare or "/" in bare or "\0" in bare:
        return None
    file = _shipped_folder() / "suites" / f"{bare}.yaml"
    return file if file.is_file() else None


def _describe_suites(name: str) -> str:
    names = [each for each, _ in list_shipped_suites()]
    hint = errors.did_you_mean(name, names)
    known = f"the name of a shipped one ({', '.join(names)})"
    return f"there is no such file; expected a suite file or {known}{hint}"


def _shipped_folder() -> Traversable:
    try:
        return resources.files("ssbench.scenarios")
    except ModuleNotFoundError:  # a checkout, where the folder is at the top
        return Path(__file__).parents[2] / "scenarios"


def find_shipped_file(name: str) -> Traversable | None:
    """Return the file that ships as ``NAME``, ``NAME.yaml`` or, in 0.x, ``scenarios/NAME.scenario``.

    Those for erasure coding were in ``scenarios/ec_test_scenarios`` there.
    """
    bare = name.removesuffix(".yaml")
    if name.endswith(".scenario"):
        bare = name.removesuffix(".scenario").removeprefix("scenarios/").removeprefix("ec_test_scenarios/")
    if not bare or "/" in bare or "\0" in bare:
        return None
    file = _shipped_folder() / f"{bare}.yaml"
    return file if file.is_file() else None


def suggest_scenarios(path_or_name: str) -> list[str]:
    """Return the names of shipped scenarios that the user may have meant, the likeliest first."""
    wanted = re.sub(r"\.(scenario|ya?ml|json)$", "", Path(path_or_name).name.lower())
    names = {name.lower(): name for name, _ in list_shipped_scenarios()}
    if wanted in names:
        return [names[wanted]]
    return errors.find_similar(wanted, names.values())
