"""Run a program from a checkout, for ``bin/``; its dependencies may not be installed."""

from __future__ import annotations

import importlib
import sys


def run_from_checkout(program: str, module: str) -> int:
    """Run the ``main`` of a module; return its exit code, or 2 after one line on what is not installed."""
    if sys.version_info < (3, 11):  # noqa: UP036 - a checkout may be run with any Python
        sys.stderr.write(f"{program}: needs Python 3.11 or later, and this is {sys.version.split()[0]}\n")
        return 2
    try:
        code: int = importlib.import_module(module).main()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in {"", "ssbench"}:
            raise
        sys.stderr.write(
            f"{program}: the package {missing!r} is not installed for {sys.executable}; in the checkout:"
            f" python3 -m venv .venv && .venv/bin/pip install -e . && .venv/bin/{program}\n"
        )
        return 2
    return code
