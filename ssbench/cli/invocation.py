"""How the user called this program, for messages that name the next command."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path


def quote_own_command() -> str:
    """Return the words, quoted for a shell, that start this program again from the same folder."""
    called = sys.argv[0]
    if called.endswith(".py"):  # python -m MODULE, of which argv has the file
        return shlex.join(sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1])
    found = shutil.which(Path(called).name)
    try:
        on_path = found is not None and Path(found).samefile(called)
    except OSError:
        on_path = False
    return shlex.quote(Path(called).name if on_path else called)


def make_report_command(*names: str) -> str:
    """Return what prints the report on stat files again: their paths, or ``last`` and the like."""
    # A name like an option needs the equals sign.
    options = [shlex.quote(f"--stats-file={each}" if each.startswith("-") else each) for each in names]
    return f"{quote_own_command()} report-scenario {' '.join(options)}"
