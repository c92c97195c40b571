"""The index of a folder of stat files, in SQLite."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from ssbench.base.errors import StatFileError, UsageError
from ssbench.base.suggestions import did_you_mean
from ssbench.comparison import index as database
from ssbench.comparison.entry import ArchiveEntry
from ssbench.comparison.references import LAST_PATTERN
from ssbench.document.columns import format_plural

#: The file of the index, in its folder.
INDEX_FILE = "index.sqlite"

#: Of SQLite's primary codes, those of a file that is no index, and of one that cannot be written.
_DAMAGED_CODES = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_TOOBIG)
_NOT_WRITABLE_CODES = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)

_STAT_FILE_ENDINGS = (".stat.gz", ".stat")


class Archive:
    """A folder of stat files.

    ``read`` makes the entry of a file; it raises StatFileError for one that cannot be read, which is then
    named in ``unreadable`` and left out; what is wrong with the index itself is there too. The runs in
    ``earlier`` folders are there as well, with the whole path of their files.
    """

    def __init__(
        self, folder: Path, read: Callable[[Path], ArchiveEntry], earlier: Sequence[Path] = ()
    ) -> None:
        self.folder = folder
        self.unreadable: list[str] = []
        self._read = read
        self._earlier = [Archive(each, read) for each in earlier]

    def entries(self) -> list[ArchiveEntry]:
        """Return all runs, the oldest first, after a look at which files are new, changed or gone.

        An index that is damaged is made again. Where none can be written, one in memory takes its place.
        Raises UsageError where there is no such folder, or its index cannot be used.
        """
        found = self._entries()
        for archive in self._earlier:
            found += [replace(entry, file=str(archive.folder / entry.file)) for entry in archive.entries()]
            self.unreadable += archive.unreadable
        return sorted(found, key=lambda entry: entry.started) if self._earlier else found

    def _entries(self) -> list[ArchiveEntry]:
        try:
            if not self.folder.is_dir():
                raise UsageError(f"{self.folder}: is not a folder")
            return self._indexed()
        except OSError as error:
            raise UsageError(f"{self.folder}: cannot be read: {error.strerror}") from None

    def _indexed(self) -> list[ArchiveEntry]:
        path = self.folder / INDEX_FILE
        try:
            try:
                return self._read_all(database.open_index(path), [])
            except database.ForeignIndexError as error:
                note = f"{path}: {error}, and left alone; what was read is not kept"
                return self._read_all(database.copy_index(None), [note])
            except sqlite3.Error as error:
                kind = error.sqlite_errorcode & 0xFF
                if kind in _DAMAGED_CODES:
                    with suppress(OSError):
                        path.unlink()
                        note = f"{path}: the index was damaged and is made again"
                        return self._read_all(database.open_index(path), [note])
                elif kind not in _NOT_WRITABLE_CODES:
                    raise
                note = f"{path}: the index cannot be written; what was read is not kept"
                return self._read_all(database.copy_index(path), [note])
        except sqlite3.Error as error:
            raise UsageError(
                f"{path}: the index cannot be used ({error}); it may be deleted, and is then made again"
            ) from None

    def _read_all(self, opened: sqlite3.Connection, notes: list[str]) -> list[ArchiveEntry]:
        self.unreadable = notes
        with closing(opened) as index:
            self._update(index)
            return database.read_entries(index)

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
            back = int((LAST_PATTERN.match(reference) or ["", None])[1] or 0)
            found = entries[len(entries) - 1 - back :][:1] if back < len(entries) else []
            if not found:
                raise UsageError(
                    f"{self.folder}: {reference} is not there; it has {format_plural(len(entries), 'run')}"
                )
        return [self.folder / entry.file for entry in found]

    def _update(self, index: sqlite3.Connection) -> None:
        """Read the files that the index does not have as they are, and forget those that are gone.

        Each is committed by itself: no process waits for another one's reading, and Ctrl-C loses one file.
        """
        known = {entry.file: (entry.size, entry.changed) for entry in database.read_entries(index)}
        there: dict[str, tuple[int, int]] = {}
        for path in self.folder.iterdir():
            if path.name.endswith(_STAT_FILE_ENDINGS):
                if shown := _not_utf8(path):
                    self.unreadable.append(f"{shown}: left out, because its name is not UTF-8")
                    continue
                with suppress(OSError):  # it is gone since
                    status = path.stat()
                    if status.st_size:  # an empty one is of a run that has not begun
                        there[path.name] = status.st_size, status.st_mtime_ns
        for file in [file for file in known if known[file] != there.get(file)]:
            database.delete_entry(index, file)
        for file in sorted(there):
            if known.get(file) == there[file]:
                continue
            try:
                entry = self._read(self.folder / file)
            except StatFileError as error:
                self.unreadable.append(str(error))
                continue
            database.put_entry(index, entry)


def _not_utf8(path: Path) -> str | None:
    """Return a path as it may be shown, where its name is not UTF-8; else None."""
    try:
        path.name.encode()
    except UnicodeEncodeError:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    return None
