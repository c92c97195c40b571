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
from ssbench.screen import terminal

if TYPE_CHECKING:
    from ssbench.screen.bars import SparingProgress

#: What is over sooner needs no progress bar.
_PATIENCE_SECONDS = 1.0


class _ReadingBar:
    """A progress bar on a terminal, once reading takes longer than one has patience for."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._begun = time.monotonic()
        self._bar: SparingProgress | None = None

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None:
            if time.monotonic() - self._begun < _PATIENCE_SECONDS:
                return
            from rich.markup import escape  # noqa: PLC0415 - a tenth of a second that few reports need

            from ssbench.screen.bars import SparingProgress  # noqa: PLC0415

            self._bar = SparingProgress(*SparingProgress.get_default_columns())
            self._bar.add_task(escape(f"Reading {self._name}"), total=total)
            self._bar.start()
        self._bar.show(self._bar.task_ids[0], done=done)

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


class ReaderGoneError(Exception):
    """Whoever read standard output (``head``, a pager) has closed it: no error where that is all we do."""


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Yield standard output; raises UsageError where it is closed or what it goes to is full.

    Raises ReaderGoneError where its reader is gone.
    """
    if sys.stdout is None:  # closed by the shell; typeshed does not know
        raise UsageError("standard output is closed")
    terminal.drain()  # both may go to one place, and are to be in order there
    try:
        yield sys.stdout
        sys.stdout.flush()
    except OSError as error:
        # The interpreter must not try again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise ReaderGoneError from None
        raise UsageError(f"standard output: cannot be written: {error.strerror}") from None
