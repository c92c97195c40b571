"""References to runs, as ``last`` and ``@label``, and what distinguishes them from names of files."""

from __future__ import annotations

import os
import re

#: ``last``, ``last-1`` and so on; the number is its first group.
LAST_PATTERN = re.compile(r"last(?:-(\d{1,6}))?\Z", re.ASCII)


def is_reference(text: str) -> bool:
    """Whether a text is a reference to runs of an archive, and not the name of a file that exists."""
    if not text.startswith("@") and LAST_PATTERN.match(text) is None:
        return False
    return not os.path.exists(text)  # noqa: PTH110 - it raises nothing where that cannot be known


def is_foreign_name(name: str) -> bool:
    """Whether a file is one of another tool than ssbench, by the end of its name."""
    return name.endswith((".csv", ".csv.zst", ".json"))
