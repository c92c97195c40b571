"""How the programs begin and end: hidden secrets, fast imports, a quick end, and how they were called.

At the end of a run Python takes more than 0.1 s to free each of its objects; the system takes back the memory
of a process at once (:func:`end_without_freeing`). Messages that name the next command use the one by which
the user called this program.
"""

from __future__ import annotations

import atexit
import gc
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from ssbench.base.errors import SsbenchError, UsageError

#: An option with a secret, and what of it is in the same word. --os-key and --zmq-key have names of files.
_SECRET_OPTION_PATTERN = re.compile(
    r"(?:-[KT]|--(?!(?:os|zmq)[-_]key)[a-z_-]*(?:key|password|secret|token)(?P<joined>=|\Z))"
    r"(?P<value>.*)",
    re.DOTALL,
)

#: The exit code, once it is known.
_noted_codes: list[int] = []


def end_without_freeing() -> None:
    """Let the process end at once after :func:`note_exit_code`; call it before other modules are imported.

    What is registered first is called last: threads were waited for and everything else that was registered
    was called.
    """
    atexit.register(_end_at_once)


@contextmanager
def explain_memory_errors() -> Iterator[None]:
    """Have an error that a lack of memory caused raised as UsageError, one line for the user."""
    # Nothing here does linear algebra, for which numpy would start a thread on each core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        yield
    except Exception as error:
        from ssbench.base import own_processes

        text = own_processes.describe_memory_shortage(error)
        if text is None or isinstance(error, SsbenchError):
            raise
        raise UsageError(text) from None


def hide_secret_options(words: Sequence[str]) -> None:
    """Hide passwords, keys and tokens of the command line, by the names of their options, from other users.

    Call it before other modules are imported: what each word means is known some tenths of a second later
    (``AuthAsked.hide_secrets`` of :mod:`ssbench.cli.auth_options`).
    """
    secrets = {
        found["value"] or (following if not found["joined"] else "")
        for word, following in pairwise([*words, ""])
        if (found := _SECRET_OPTION_PATTERN.match(word))
    }
    if secrets:
        from ssbench.base.own_processes import hide_arguments

        hide_arguments(secrets)


def note_exit_code(code: int) -> int:
    """Take note of the exit code, and return it. Without one the process ends as usual."""
    _noted_codes[:] = [code]
    return code


def _end_at_once() -> None:
    if not _noted_codes:
        return
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # closed by the shell; typeshed does not know
                stream.flush()
    except (OSError, ValueError):  # Python says so, and has an exit code for that
        return
    os._exit(_noted_codes[0])


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


@contextmanager
def import_faster() -> Iterator[None]:
    """Import in this context: it saves a tenth of the CPU that the start of a program takes."""
    # Nothing here does linear algebra, for which numpy would start a thread on each core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # What is loaded stays: there is no garbage to look for.
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
