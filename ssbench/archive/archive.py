"""The index of a folder of stat files, in SQLite."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, fields
from pathlib import Path

from ssbench.archive.entry import Entry
from ssbench.errors import StatFileError, UsageError
from ssbench.suggestions import did_you_mean

#: The file of the index, in its folder.
INDEX = "index.sqlite"

#: Goes up when an entry changes; an index of another version is made again.
_VERSION = 1

#: Seconds to wait for another program that writes to the index.
_TIMEOUT = 10.0

_ENDINGS = (".stat.gz", ".stat")
_LAST = re.compile(r"last(?:-(\d{1,6}))?\Z", re.ASCII)
_COLUMNS = tuple(field.name for field in fields(Entry))


class Archive:
    """A folder of stat files.

    ``read`` makes the entry of a file; it raises StatFileError for one that cannot be read, which is then
    named in ``unreadable`` and left out.
    """

    def __init__(self, folder: Path, read: Callable[[Path], Entry]) -> None:
        self.folder = folder
        self.unreadable: list[str] = []
        self._read = read

    def entries(self) -> list[Entry]:
        """Return all runs, the oldest first, after a look at which files are new, changed or gone.

        Raises UsageError where there is no such folder, or its index cannot be used.
        """
        if not self.folder.is_dir():
            raise UsageError(f"{self.folder}: is not a folder")
        self.unreadable = []
        with self._index() as index:
            self._update(index)
            found = index.execute(f"SELECT {', '.join(_COLUMNS)} FROM runs ORDER BY started, file")  # noqa: S608
            return [Entry(*row) for row in found]

    def find(self, reference: str) -> list[Path]:
        """Return the files that a reference means, the oldest first.

        ``last`` is the newest run, ``last-1`` the one before it, ``@LABEL`` all with a label. Raises
        UsageError where there is none.
        """
        entries = self.entries()
        if reference.startswith("@"):
            found = [entry for entry in entries if entry.label == reference[1:]]
            if not found:
                labels = sorted({entry.label for entry in entries if entry.label})
                raise UsageError(
                    f"{self.folder}: no run has the label {reference[1:]!r}"
                    + did_you_mean(reference[1:], labels)
                )
        else:
            back = int((_LAST.match(reference) or ["", None])[1] or 0)
            found = entries[len(entries) - 1 - back :][:1] if back < len(entries) else []
            if not found:
                raise UsageError(f"{self.folder}: {reference} is not there; it has {len(entries)} runs")
        return [self.folder / entry.file for entry in found]

    @contextmanager
    def _index(self) -> Iterator[sqlite3.Connection]:
        path = self.folder / INDEX
        try:
            with closing(sqlite3.connect(path, timeout=_TIMEOUT)) as index, index:
                (version,) = index.execute("PRAGMA user_version").fetchone()
                if version != _VERSION:
                    index.execute("DROP TABLE IF EXISTS runs")
                    index.execute(f"CREATE TABLE runs ({', '.join(_COLUMNS)}, PRIMARY KEY (file))")
                    index.execute(f"PRAGMA user_version = {_VERSION}")
                yield index
        except sqlite3.Error as error:
            raise UsageError(
                f"{path}: the index cannot be used ({error}); it may be deleted, and is then made again"
            ) from None

    def _update(self, index: sqlite3.Connection) -> None:
        """Read the files that the index does not have as they are, and forget those that are gone."""
        known = {
            file: (size, changed)
            for file, size, changed in index.execute("SELECT file, size, changed FROM runs")
        }
        there: dict[str, tuple[int, int]] = {}
        for path in self.folder.iterdir():
            if path.name.endswith(_ENDINGS):
                with suppress(OSError):  # it is gone since
                    status = path.stat()
                    if status.st_size:  # an empty one is of a run that has not begun
                        there[path.name] = status.st_size, status.st_mtime_ns
        gone = [(file,) for file in known if known[file] != there.get(file)]
        index.executemany("DELETE FROM runs WHERE file = ?", gone)
        for file in sorted(there):
            if known.get(file) == there[file]:
                continue
            try:
                entry = self._read(self.folder / file)
            except StatFileError as error:
                self.unreadable.append(str(error))
                continue
            marks = ", ".join("?" * len(_COLUMNS))
            index.execute(f"INSERT OR REPLACE INTO runs VALUES ({marks})", astuple(entry))  # noqa: S608


def is_reference(text: str) -> bool:
    """Whether a text is a reference to runs of an archive, and not the name of a file that exists."""
    return (text.startswith("@") or _LAST.match(text) is not None) and not Path(text).exists()
