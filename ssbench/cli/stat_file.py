"""Opening a stat file, with a progress bar, for the sub-commands that read one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ssbench.run_results import RunResults, open_results
from ssbench.screen.bars import ReadingBar


@contextmanager
def reading(path: Path) -> Iterator[RunResults]:
    """Open a stat file, and show on a terminal how much of it has been read; raises StatFileError."""
    bar = ReadingBar(path.name)
    try:
        with closing(open_results(path, bar)) as results:
            yield results
    finally:
        bar.stop()
