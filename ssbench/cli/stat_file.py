"""Opening a stat file, with a progress bar, for the sub-commands that read one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from ssbench.results.formats import open_results
from ssbench.results.reading import RunResults
from ssbench.run.bars import ReadingBar
from ssbench.statistics.facts import ReadableResults


@contextmanager
def open_stat_file(path: Path) -> Iterator[RunResults]:
    """Open a stat file, and show on a terminal how much of it has been read; raises StatFileError."""
    bar = ReadingBar(path.name)
    try:
        with closing(open_results(path, bar)) as results:
            yield results
    finally:
        bar.stop()


@contextmanager
def open_stat_files(paths: Sequence[Path]) -> Iterator[ReadableResults]:
    """Open the stat file of one run, or those of the masters that made it; raises UsageError as well."""
    if len(paths) == 1:
        with open_stat_file(paths[0]) as results:
            yield results
    else:
        from ssbench.results.several import MergedResults

        yield MergedResults(paths)
