"""Python processes of our own, which import this very ssbench wherever they are started."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[2]


def make_python_command(module: str, *flags: str) -> list[str]:
    """Return the command that runs a module as a program.

    It imports nothing from the current folder, where a folder of results may have the name ``ssbench``.
    """
    return [sys.executable, "-P", *flags, "-m", module]


def make_child_environment(without: Collection[str] = ()) -> Mapping[str, str]:
    """Return the environment for such a process, in whatever folder, ``without`` some variables."""
    kept = {name: value for name, value in os.environ.items() if name not in without}
    search = [Path(entry).resolve() for entry in kept.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if not _CHECKOUT.is_relative_to(sys.prefix):  # a checkout, which need not be installed
        search.insert(0, _CHECKOUT)
    if search:
        kept["PYTHONPATH"] = os.pathsep.join(map(str, search))
    return kept
