"""The text of a scenario: of a file, or of one that ships with ssbench."""

from __future__ import annotations

from importlib.resources.abc import Traversable
from pathlib import Path

from ssbench.errors import ScenarioError
from ssbench.scenario.shipped import shipped, shipped_file, similar

#: Maximum size of a scenario file in bytes; a larger file is not a scenario.
MAX_FILE_BYTES = 1_000_000


def text_of(path_or_name: str) -> str:
    """Return the text of a file, or of the scenario that ships under a name; raises ScenarioError."""
    try:
        path = Path(path_or_name)
        found: Path | Traversable | None = path
        if not path.exists() or path.is_dir():
            found = shipped_file(path_or_name)
        if found is None:
            raise ScenarioError(f"{path_or_name}: {_not_found(path_or_name)}")
        with found.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ScenarioError(f"{path_or_name}: cannot be read: {error.strerror}") from None
    if len(content) > MAX_FILE_BYTES:
        raise ScenarioError(f"{path_or_name}: expected a scenario of at most {MAX_FILE_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ScenarioError(f"{path_or_name}:{line}: expected UTF-8 text") from None


def _not_found(path_or_name: str) -> str:
    if names := similar(path_or_name):
        return (
            f"there is no such file; did you mean {' or '.join(names)}, which ships with ssbench?"
            " ('ssbench-master run-scenario --list-scenarios' lists all)"
        )
    names = [name for name, _ in shipped()]
    return (
        f"there is no such file; expected a scenario file or the name of a shipped one ({', '.join(names)})"
    )
