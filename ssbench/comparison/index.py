"""The database of the index: opened only where it is ours, and what is in it is checked.

The folder may be shared, and the file may have been put there, or damaged, by others: a link would lead to
another program's database, a view or a trigger would be run, and any column of SQLite may hold any type.
"""

from __future__ import annotations

import json
import math
import sqlite3
import stat
from contextlib import closing, suppress
from dataclasses import astuple, fields
from pathlib import Path

import msgspec

from ssbench.comparison.entry import ArchiveEntry

#: Goes up when an entry changes; an index of another version is made again.
INDEX_VERSION = 8

#: Seconds to wait for another program that writes to the index.
_TIMEOUT_SECONDS = 10.0
#: Bytes of a row; a longer one is damage.
_MAX_ROW_BYTES = 1_000_000
#: Steps of SQLite's machine between two looks at how many there were, and how many looks there are.
_STEPS_BETWEEN_LOOKS, _MAX_LOOKS = 1_000_000, 5_000

_COLUMNS = tuple(field.name for field in fields(ArchiveEntry))
_CREATE_STATEMENT = f"CREATE TABLE runs ({', '.join(_COLUMNS)}, PRIMARY KEY (file))"
#: Columns that the table had in every version.
_PERMANENT_COLUMNS = {"file", "size", "changed"}

#: Seconds since 1970 up to the year 5138, as those of results.
_LATEST_MOMENT = 1e11


class ForeignIndexError(Exception):
    """There is something else where the index should be; the text says what. It is left alone."""


def open_index(path: Path) -> sqlite3.Connection:
    """Open the index, which may be new; raises sqlite3.Error, and NotOursError for what is none of ours."""
    with suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            raise ForeignIndexError("is a link")
        if not stat.S_ISREG(mode):
            raise ForeignIndexError("is no plain file")
    index = _open_database(str(path))
    try:
        _make_table(index)
    except BaseException:
        index.close()
        raise
    return index


def copy_index(path: Path | None) -> sqlite3.Connection:
    """Return a copy of an index in memory; an empty one where it cannot be read, or there is none of ours."""
    made = _open_database(":memory:")
    if path is not None:
        with (
            suppress(sqlite3.Error),
            closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as kept,
        ):
            kept.backup(made)
    try:
        _make_table(made)
    except (ForeignIndexError, sqlite3.Error):
        made.close()
        made = _open_database(":memory:")
        _make_table(made)
    return made


def read_entries(index: sqlite3.Connection) -> list[ArchiveEntry]:
    """Return what is in the index, the oldest first. What cannot be an entry is deleted from it."""
    found, wrong = [], []
    for rowid, *row in index.execute(f"SELECT rowid, {', '.join(_COLUMNS)} FROM runs"):  # noqa: S608
        try:
            entry = msgspec.convert(dict(zip(_COLUMNS, row, strict=True)), ArchiveEntry)
        except msgspec.ValidationError:
            wrong.append((rowid,))
            continue
        if is_sound_entry(entry):
            found.append(entry)
        else:
            wrong.append((rowid,))
    index.executemany("DELETE FROM runs WHERE rowid = ?", wrong)
    return sorted(found, key=lambda entry: (entry.started, entry.file))


def put_entry(index: sqlite3.Connection, entry: ArchiveEntry) -> None:
    """Add the entry of a file, or replace the one it had."""
    marks = ", ".join("?" * len(_COLUMNS))
    index.execute(f"INSERT OR REPLACE INTO runs VALUES ({marks})", astuple(entry))  # noqa: S608


def delete_entry(index: sqlite3.Connection, file: str) -> None:
    """Delete the entry of a file."""
    index.execute("DELETE FROM runs WHERE file = ?", (file,))


def is_sound_entry(entry: ArchiveEntry) -> bool:
    """Whether the numbers of an entry are such as a run can have, and its facts can be read."""
    try:
        facts = json.loads(entry.facts)
    except (ValueError, RecursionError):
        return False
    measured = [value for value in (entry.rate, entry.p99) if value is not None]
    return (
        isinstance(facts, dict)
        and 0 <= entry.started < _LATEST_MOMENT
        and 0 <= entry.users < 2**63
        and all(0 <= value < math.inf for value in measured)
        and "/" not in entry.file
    )


def _open_database(database: str) -> sqlite3.Connection:
    index = sqlite3.connect(database, timeout=_TIMEOUT_SECONDS, isolation_level=None)
    index.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_ROW_BYTES)
    index.execute("PRAGMA trusted_schema = OFF")
    looks = iter(range(_MAX_LOOKS))
    index.set_progress_handler(lambda: next(looks, None) is None, _STEPS_BETWEEN_LOOKS)
    return index


def _make_table(index: sqlite3.Connection) -> None:
    """Make the table, unless it is there in today's form; raises NotOursError."""
    if _is_current(index):
        return
    index.execute("BEGIN IMMEDIATE")
    if not _is_current(index):  # or another program has made it meanwhile
        index.execute("DROP TABLE IF EXISTS runs")
        index.execute(_CREATE_STATEMENT)
        index.execute(f"PRAGMA user_version = {INDEX_VERSION}")
    index.execute("COMMIT")


def _is_current(index: sqlite3.Connection) -> bool:
    """Whether there is our table and nothing else; raises NotOursError where there is something else."""
    there = index.execute("SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT 3").fetchall()
    others = [row for row in there if row[:2] != ("table", "runs") and row[2:] != ("runs", None)]
    columns = {name for _, name, *_ in index.execute("PRAGMA table_info(runs)")}
    if others or (there and not columns >= _PERMANENT_COLUMNS):
        raise ForeignIndexError("is the database of something else")
    tables = [sql for kind, _, _, sql in there if kind == "table"]
    return tables == [_CREATE_STATEMENT] and index.execute("PRAGMA user_version").fetchone() == (
        INDEX_VERSION,
    )
