"""An archive: a folder of stat files, with an index of their runs in SQLite.

An :class:`Archive` keeps the index up to date; an :class:`ArchiveEntry` is what it knows of a run. Earlier
runs that are equal to others, but for what each run draws, give the noise floor of comparisons
(:func:`find_equal_run_floors`).

The database is opened only where it is ours, and what is in it is checked. The folder may be shared, and the
file may have been put there, or damaged, by others: a link would lead to another program's database, a view
or a trigger would be run, and any column of SQLite may hold any type.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

import msgspec

from ssbench.base.errors import StatFileError, UsageError, did_you_mean
from ssbench.base.text_values import LAST_PATTERN
from ssbench.comparison.noise_floor import EarlierRun, NoiseFloors, is_ratio
from ssbench.comparison.paired_sides import compare_sides, measure_side_differences
from ssbench.comparison.run_comparison import Comparison
from ssbench.comparison.run_figures import SWIFT_VERSION_FACT, collect_run_facts, make_run_figures
from ssbench.document.columns import format_plural
from ssbench.document.figures import COMPARED_FIGURES, count_needed_results
from ssbench.results.reading import RunResults, open_results
from ssbench.scenario.value_rules import Precision
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import verdict_of
from ssbench.statistics.summary import summarize


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """A run in the index."""

    file: str  # name of its stat file in the folder
    size: int  # of the stat file; tells with ``changed`` whether that is still the same
    changed: int  # nanoseconds
    started: float  # seconds since 1970
    scenario: str
    label: str | None
    users: int
    rate: float | None  # operations per second
    p99: float | None  # seconds; None where it is only a lower bound too
    verdict: str
    facts: str = "{}"  # JSON: what it should have in common with runs that it is compared with, by name
    figures: str = "{}"  # JSON that :func:`make_earlier_run` reads: operation, size class, figure, logarithm
    row: str = ""  # that of a suite, or the phase; its runs are a series of their own

    @property
    def title(self) -> str:
        """The scenario of the run, with its row of a suite or its phase."""
        return f"{self.scenario}: {self.row}" if self.row else self.scenario


#: What - means in the column of p99; no-op runs have no latencies.
NO_P99_NOTE = (
    f"-: not measured, too few operations (p99 needs {count_needed_results(99):,}), or only a lower bound"
)


#: The last second of the year 5000; a file may claim what no clock shows.
_LATEST_SECOND = 95_649_119_999.0


def make_entry(statistics: RunStatistics, file: str, size: int, changed: int) -> ArchiveEntry:
    """Return the entry of a run."""
    run, total = statistics.run, statistics.total
    label = run.options.get("label")
    rate, latency = total.requests_per_second, total.lines[0].latency
    p99 = latency.supported_percentile(99)
    return ArchiveEntry(
        file=file,
        size=size,
        changed=changed,
        started=min(max(run.started or statistics.start or 0.0, 0.0), _LATEST_SECOND),
        scenario=run.scenario.name,
        label=label if isinstance(label, str) else None,
        users=min(run.scenario.user_count, 2**63 - 1),
        rate=rate if math.isfinite(rate) else None,
        p99=None if p99 is None or latency.most(99) > p99 else p99,
        # A run in progress is incomplete too, which is no verdict yet.
        verdict=verdict_of(statistics).outcome.value if statistics.complete else "incomplete",
        facts=json.dumps(collect_run_facts(statistics)),
        figures=json.dumps(_figures(statistics)),
        row=row if isinstance(row := run.options.get("row", run.options.get("plan_phase")), str) else "",
    )


def _figures(statistics: RunStatistics) -> dict[str, list[tuple[str, str | None, str, float]]]:
    """Return the logarithms of figures, and of the ratios of both sides, with their places."""
    found = {
        "runs": [
            (*key, name, math.log(sample.value))
            for key, row in make_run_figures(statistics, "").rows.items()
            for name, sample in row.items()
            if is_ratio((key, name)) and sample.value > 0
        ]
    }
    if statistics.until:
        found["until"] = [
            (each.figure, None, f"{each.asked:g}", each.seconds) for each in statistics.until if each.reached
        ]
    if statistics.sides:
        found["sides"] = [
            (*key, name, each.middle)
            for (key, name), each in measure_side_differences(statistics).items()
            if is_ratio((key, name)) and each.middle is not None
        ]
    return found


@dataclass(frozen=True, slots=True)
class UntilRun:
    """A run that is to be made, or a way to make some, which ``--until`` is to end."""

    title: str  # as that of an entry
    facts: tuple[tuple[str, str], ...]  # of the run, as far as they are known before it
    goals: tuple[Precision, ...]  # what it waits for

    @property
    def words(self) -> str:
        """Its title and its users."""
        return f"{self.title} with {dict(self.facts)['users']} users"


def list_until_seconds(entries: Iterable[ArchiveEntry], wanted: UntilRun) -> list[tuple[float, str]]:
    """Return how long earlier runs took that ``--until`` ended, and where they went, sorted by the time.

    They had all facts in common with the one that is wanted that are known before it begins.
    """
    goals = {(goal.subject, f"{goal.share:g}") for goal in wanted.goals}
    essence = _early_facts(dict(wanted.facts))
    found = []
    for entry in entries:
        reached = _decode_figures(entry).get("until", ())
        if entry.title != wanted.title or {(figure, asked) for figure, _, asked, _ in reached} != goals:
            continue
        facts = json.loads(entry.facts)
        if isinstance(facts, dict) and _early_facts(facts) == essence:
            where = f"{facts.get('storage URL', '')} {facts.get(SWIFT_VERSION_FACT, '')}".strip()
            found.append((max(seconds for *_, seconds in reached), where))
    return sorted(found)


def _decode_figures(entry: ArchiveEntry) -> dict[str, list[tuple[str, str | None, str, float]]]:
    """Return what is kept of the figures of an entry; nothing of a damaged one."""
    try:
        return _figures_decoder.decode(entry.figures)
    except msgspec.MsgspecError:
        return {}


def make_earlier_run(entry: ArchiveEntry) -> EarlierRun:
    """Return what an entry says of the figures of its run; nothing where it has none."""
    found = _decode_figures(entry)
    figures, sides = (
        {
            ((operation, size_class), name): value
            for operation, size_class, name, value in found.get(kind, ())
            if abs(value) < _MAX_LOGARITHM and name in COMPARED_FIGURES
        }
        for kind in ("runs", "sides")
    )
    return EarlierRun(entry.started, figures, sides)


#: No figure has a logarithm that is further from 0; others are damage.
_MAX_LOGARITHM = 1000.0
_figures_decoder = msgspec.json.Decoder(dict[str, list[tuple[str, str | None, str, float]]])


# -- The database ----------------------------------------------------------------------------------


#: Goes up when an entry changes; an index of another version is made again.
INDEX_VERSION = 10

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


# -- The noise floor of equal runs -----------------------------------------------------------------


#: What equal runs need not have in common; a local Swift listens elsewhere each time.
_FREE_FACTS = ("seed",)
_FREE_FACTS_IF_LOCAL = ("storage URL",)

#: Verdicts of runs that did not end as they should.
EXCLUDED_VERDICTS = ("interrupted", "incomplete")


def find_equal_run_floors(
    entries: Iterable[ArchiveEntry], configurations: Sequence[Mapping[str, str]], compared: Iterable[str]
) -> NoiseFloors:
    """Return what runs of some configurations say, which are facts of runs, without those that are compared.

    ``compared`` are the names of their files.
    """
    wanted = [_essential_facts(facts) for facts in configurations]
    found: list[list[EarlierRun]] = [[] for _ in wanted]
    left_out = {Path(name).name for name in compared}
    for entry in entries:
        if Path(entry.file).name in left_out or entry.verdict in EXCLUDED_VERDICTS:
            continue
        facts = json.loads(entry.facts)
        essence = _essential_facts(facts) if isinstance(facts, dict) else None
        if essence in wanted:
            found[wanted.index(essence)].append(make_earlier_run(entry))
    return NoiseFloors(found)


#: What is not known before a run begins, or does not matter there: how long it takes at most, and the
#: names of containers.
_LATER_FACTS = {
    *("seed", "master", "workers", "local workers", "storage URL", SWIFT_VERSION_FACT),
    *("marks of transactions", "object tag", "existing", "length", "container base"),
}


def _early_facts(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in _essential_facts(facts).items() if name not in _LATER_FACTS}


def _essential_facts(facts: Mapping[str, str]) -> dict[str, str]:
    free = _FREE_FACTS + (_FREE_FACTS_IF_LOCAL if facts.get("local swift") else ())
    return {name: value for name, value in facts.items() if name not in free and value}


# -- The archive -----------------------------------------------------------------------------------


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
                return self._read_all(open_index(path), [])
            except ForeignIndexError as error:
                note = f"{path}: {error}, and left alone; what was read is not kept"
                return self._read_all(copy_index(None), [note])
            except sqlite3.Error as error:
                kind = error.sqlite_errorcode & 0xFF
                if kind in _DAMAGED_CODES:
                    with suppress(OSError):
                        path.unlink()
                        note = f"{path}: the index was damaged and is made again"
                        return self._read_all(open_index(path), [note])
                elif kind not in _NOT_WRITABLE_CODES:
                    raise
                note = f"{path}: the index cannot be written; what was read is not kept"
                return self._read_all(copy_index(path), [note])
        except sqlite3.Error as error:
            raise UsageError(
                f"{path}: the index cannot be used ({error}); it may be deleted, and is then made again"
            ) from None

    def _read_all(self, opened: sqlite3.Connection, notes: list[str]) -> list[ArchiveEntry]:
        self.unreadable = notes
        with closing(opened) as index:
            self._update(index)
            return read_entries(index)

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
                    f"{self.folder}: there is no {reference}, only {format_plural(len(entries), 'run')}"
                )
        return [self.folder / entry.file for entry in found]

    def _update(self, index: sqlite3.Connection) -> None:
        """Read the files that the index does not have as they are, and forget those that are gone.

        Each is committed by itself: no process waits for another one's reading, and Ctrl-C loses one file.
        """
        known = {entry.file: (entry.size, entry.changed) for entry in read_entries(index)}
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
            put_entry(index, entry)


def _not_utf8(path: Path) -> str | None:
    """Return a path as it may be shown, where its name is not UTF-8; else None."""
    try:
        path.name.encode()
    except UnicodeEncodeError:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    return None


# -- Earlier runs of a folder ----------------------------------------------------------------------


#: Opens a stat file.
OpenStatFile = Callable[[Path], AbstractContextManager[RunResults]]


def read_entry(path: Path, reading: OpenStatFile = lambda path: closing(open_results(path))) -> ArchiveEntry:
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
