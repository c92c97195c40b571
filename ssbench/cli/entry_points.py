"""The functions that the installed commands and those of ``bin/`` call.

Ctrl-C ends a command silently, with exit code 130, while it imports what it needs. So this module imports
almost nothing itself. Before it Python starts, and says what it likes.
"""

from __future__ import annotations

import os
import signal
import sys


def start_master() -> int:
    """Run ``ssbench-master``; return its exit code."""
    return _start("ssbench-master", "ssbench.cli.master")


def start_worker() -> int:
    """Run ``ssbench-worker``; return its exit code."""
    return _start("ssbench-worker", "ssbench.cli.worker")


def start_from_checkout(program: str, module: str) -> int:
    """Run the ``main`` of a module; return its exit code, or 2 after one line on what is not installed."""
    if sys.version_info < (3, 11):  # noqa: UP036 - a checkout may be run with any Python
        sys.stderr.write(f"{program}: needs Python 3.11 or later, and this is {sys.version.split()[0]}\n")
        return 2
    try:
        return _start(program, module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in {"", "ssbench"}:
            raise
        sys.stderr.write(
            f"{program}: the package {missing!r} is not installed for {sys.executable}; in the checkout:"
            f" python3 -m venv .venv && .venv/bin/pip install -e . && .venv/bin/{program}\n"
        )
        return 2


def _start(program: str, module: str) -> int:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_silently)
    import importlib  # from here on Ctrl-C does no harm

    interruption = importlib.import_module("ssbench.base.interruption")
    main = importlib.import_module(module).main
    interruption.handle_interrupts(program, instead_of=_end_silently)
    code: int = main()
    return code


def _end_silently(_number: int, _frame: object) -> None:
    # A line could wait for its reader, and what writes it without waiting is not imported yet.
    os._exit(130)
