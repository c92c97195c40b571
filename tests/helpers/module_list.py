"""The list of modules in the documentation: ``python tests/helpers/module_list.py`` writes it anew."""

from __future__ import annotations

import ast
import re
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "doc" / "modules.rst"

_HEAD = """\
Modules
=======

Each module of ssbench and what it is for, in the first words of its docstring.
`architecture.rst <architecture.rst>`_ says how the packages depend on each other, and
`where-to-change.rst <where-to-change.rst>`_ where a change goes.
"""


def made_list() -> str:
    """Return the document, with a section for each package."""
    paths = sorted(
        (path.relative_to(ROOT) for path in ROOT.glob("ssbench/**/*.py")),
        key=lambda path: (path.parent, path),
    )
    parts = [_HEAD]
    for folder, modules in groupby(paths, key=lambda path: path.parent):
        head = f"{folder}/"
        parts.append(
            f"\n{head}\n{'-' * len(head)}\n\n"
            + "".join(f"- ``{path.name}``: {_say(path)}\n" for path in modules)
        )
    return "".join(parts)


def _say(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse((ROOT / path).read_text("utf-8")))
    assert docstring, f"{path} has no docstring"
    return re.sub(r":\w+:`(.+?)`", r"``\1``", " ".join(docstring.split("\n\n")[0].split()))


if __name__ == "__main__":
    DOCUMENT.write_text(made_list(), "utf-8")
