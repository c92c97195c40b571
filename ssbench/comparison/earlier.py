"""Earlier runs of a folder: its archive, and how the stat files of that are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path

from ssbench.base.errors import StatFileError, UsageError
from ssbench.comparison.archive import Archive
from ssbench.comparison.compare import Comparison
from ssbench.comparison.entry import ArchiveEntry, make_entry
from ssbench.comparison.equal import find_equal_run_floors
from ssbench.comparison.facts import collect_run_facts
from ssbench.comparison.sides import compare_sides
from ssbench.results.formats import open_results
from ssbench.results.reading import RunResults
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize

#: Opens a stat file.
OpenStatFile = Callable[[Path], AbstractContextManager[RunResults]]


def _open_run(path: Path) -> AbstractContextManager[RunResults]:
    return closing(open_results(path))


def read_entry(path: Path, reading: OpenStatFile = _open_run) -> ArchiveEntry:
    """Make the entry of a stat file; raises StatFileError."""
    try:
        status = path.stat()
    except OSError as error:
        raise StatFileError(f"{path}: {error.strerror}") from None
    with reading(path) as results:
        return make_entry(summarize(results), path.name, status.st_size, status.st_mtime_ns)


def list_folder_runs(folder: Path | None) -> Sequence[ArchiveEntry] | None:
    """Return the runs of a folder; None without one, or where it cannot be read."""
    if folder is None:
        return None
    try:
        return Archive(folder, read_entry).entries()
    except UsageError:
        return None


def compare_with_earlier(
    runs: Sequence[ArchiveEntry] | None, path: Path, statistics: RunStatistics
) -> Comparison:
    """Compare the sides of the run of a stat file, by what differs between the runs that are equal to it."""
    floors = (
        None if runs is None else find_equal_run_floors(runs, [collect_run_facts(statistics)], [str(path)])
    )
    return compare_sides(statistics, floors=floors)
