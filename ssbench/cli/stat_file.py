"""What the sub-commands that read a stat file share: opening it, with a progress bar."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ssbench.errors import UsageError
from ssbench.run_results import RunResults, open_results

if TYPE_CHECKING:
    from rich.progress import Progress

#: What is over sooner needs no progress bar.
_PATIENCE_SECONDS = 1.0


class _ReadingBar:
    """A progress bar on a terminal, once reading takes longer than one has patience for."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._begun = time.monotonic()
        self._bar: Progress | None = None

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None:
            if time.monotonic() - self._begun < _PATIENCE_SECONDS:
                return
            from rich.console import Console  # noqa: PLC0415  (a tenth of a second that few reports need)
            from rich.markup import escape  # noqa: PLC0415
            from rich.progress import Progress  # noqa: PLC0415

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.add_task(escape(f"Reading {self._name}"), total=total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done)

    def stop(self) -> None:
        if self._bar:
            self._bar.stop()


@contextmanager
def reading(path: Path) -> Iterator[RunResults]:
    """Open a stat file, and show on a terminal how far it has been read; raises StatFileError."""
    visible = sys.stderr.isatty() and logging.getLogger().isEnabledFor(logging.INFO)
    bar = _ReadingBar(path.name) if visible else None
    results = None
    try:
        results = open_results(path, bar)
        yield results
    finally:
        if results:
            results.close()
        if bar:
            bar.stop()


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Yield standard output; raises UsageError where it is closed or what it goes to is full.

    A reader that has seen enough is no error: BrokenPipeError is left to the program.
    """
    if sys.stdout is None:  # closed by the shell; typeshed does not know
        raise UsageError("standard output is closed")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # The interpreter must not try again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise UsageError(f"standard output: cannot be written: {error.strerror}") from None
