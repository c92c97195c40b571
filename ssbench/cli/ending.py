"""The end of a program, without freeing each of its objects first.

After a run Python takes more than 0.1 s for that; the system takes back the memory of a process at once.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ssbench.base.errors import SsbenchError, UsageError

#: The exit code, once it is known.
_noted_codes: list[int] = []


def end_without_freeing() -> None:
    """Let the process end at once after :func:`note_exit_code`; to be called before other modules are imported.

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
        from ssbench.base import memory

        text = memory.describe_memory_shortage(error)
        if text is None or isinstance(error, SsbenchError):
            raise
        raise UsageError(text) from None


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
