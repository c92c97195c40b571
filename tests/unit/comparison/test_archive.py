"""A folder of stat files and its index."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest
from archive_folders import Folder
from full_run import RUN, write_full_run
from golden_words import GoldenWords
from planted_load import play
from privileges import is_privileged

from ssbench.base.errors import UsageError
from ssbench.base.text_values import is_reference
from ssbench.cli import archives
from ssbench.comparison.archive import INDEX_FILE, Archive, ArchiveEntry, make_entry, read_entry
from ssbench.scenario.model import Stage
from ssbench.statistics.run_verdict import Outcome


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def names(paths):
    return [path.name for path in paths]


def test_runs_are_in_the_order_of_their_beginning_and_read_once(folder):
    folder.write("b.stat.gz", 1)
    folder.write("a.stat", 2)
    folder.write("c.txt", 3)
    (folder.path / "empty.stat.gz").touch()
    assert [entry.file for entry in folder.archive.entries()] == ["b.stat.gz", "a.stat"]
    folder.write("d.stat.gz", 0)
    assert [entry.started for entry in folder.archive.entries()] == [0, 1, 2]
    assert folder.read == ["a.stat", "b.stat.gz", "d.stat.gz"]


def test_what_has_changed_is_read_again_and_what_is_gone_is_forgotten(folder):
    folder.write("a.stat.gz", 1)
    folder.write("b.stat.gz", 2)
    folder.archive.entries()
    folder.write("a.stat.gz", 10)
    (folder.path / "b.stat.gz").unlink()
    assert [(entry.file, entry.started) for entry in folder.archive.entries()] == [("a.stat.gz", 10)]


def test_a_file_that_cannot_be_read_is_named(folder):
    folder.write("a.stat.gz", 1)
    (folder.path / "bad.stat.gz").write_text("?")
    assert len(folder.archive.entries()) == 1
    assert len(folder.archive.unreadable) == 1
    assert "bad.stat.gz: not a stat file" in folder.archive.unreadable[0]


def test_references(folder):
    for number, each in enumerate(["old", "old", "new"]):
        folder.write(f"{number}.stat.gz", number, each)
    assert names(folder.archive.find("last")) == ["2.stat.gz"]
    assert names(folder.archive.find("last-2")) == ["0.stat.gz"]
    assert names(folder.archive.find("@old")) == ["0.stat.gz", "1.stat.gz"]
    with pytest.raises(UsageError, match="there is no last-3, only 3 runs"):
        folder.archive.find("last-3")
    with pytest.raises(UsageError, match="no run has the label 'odl'; did you mean old"):
        folder.archive.find("@odl")


def test_an_index_of_another_version_is_made_again(folder):
    folder.write("a.stat.gz", 1)
    with sqlite3.connect(folder.path / INDEX_FILE) as index:
        index.execute("CREATE TABLE runs (file, size, changed, strange)")
        index.execute("PRAGMA user_version = 99")
    index.close()
    assert len(folder.archive.entries()) == 1


def test_a_damaged_index_is_made_again(folder, golden_words: GoldenWords):
    folder.write("a.stat.gz", 1)
    (folder.path / INDEX_FILE).write_bytes(b"nonsense" * 500)
    assert len(folder.archive.entries()) == 1
    golden_words(folder.archive.unreadable)
    assert len(folder.archive.entries()) == 1
    assert folder.archive.unreadable == []
    assert folder.read == ["a.stat.gz"]


def test_a_missing_folder_is_said(folder):
    with pytest.raises(UsageError, match="is not a folder"):
        Archive(folder.path / "missing", folder._read).entries()


def test_a_folder_that_cannot_be_read_is_said(folder):
    """As one of another user, or a name that is too long."""
    name = "x" * 300
    with pytest.raises(UsageError, match=r"x: (cannot be read: File name too long|is not a folder)"):
        Archive(folder.path / name, folder._read).entries()
    assert archives.find_noise_floors(folder.path / name, [], []) is None
    assert is_reference(f"@{name}")


def test_where_no_index_can_be_written_one_in_memory_will_do(folder, golden_words: GoldenWords):
    folder.write("a.stat.gz", 1)
    (folder.path / INDEX_FILE).mkdir()
    for _ in range(2):
        assert len(folder.archive.entries()) == 1
        golden_words(folder.archive.unreadable)
    assert folder.read == ["a.stat.gz"] * 2


def tables(path):
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()


@pytest.mark.parametrize("name", ["runs", "customers"])
def test_a_database_that_a_link_leads_to_is_left_alone(folder, tmp_path, name, golden_words: GoldenWords):
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as database:
        database.execute(f"CREATE TABLE {name} (precious)")
    content = other.read_bytes()
    (folder.path / INDEX_FILE).symlink_to(other)
    folder.write("a.stat.gz", 1)
    assert len(folder.archive.entries()) == 1
    golden_words(folder.archive.unreadable)
    assert other.read_bytes() == content


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "makes",
    [
        "CREATE TABLE customers (precious)",
        "CREATE TABLE runs (precious)",
        "CREATE TABLE runs (file, size, changed); CREATE TABLE customers (precious)",
        "CREATE VIEW runs AS WITH RECURSIVE n(file) AS (SELECT 1 UNION ALL SELECT file + 1 FROM n)"
        " SELECT file, 1 AS size, 1 AS changed FROM n",
        "CREATE TABLE runs (file, size, changed);"
        " CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
    ],
    ids=["another table", "another's runs", "one more table", "an endless view", "a trigger"],
)
def test_a_database_of_something_else_is_left_alone(folder, makes, golden_words: GoldenWords):
    with closing(sqlite3.connect(folder.path / INDEX_FILE)) as database:
        database.executescript(makes)
    before = tables(folder.path / INDEX_FILE)
    folder.write("a.stat.gz", 1)
    assert len(folder.archive.entries()) == 1
    golden_words(folder.archive.unreadable)
    assert tables(folder.path / INDEX_FILE) == before


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("started", "'yesterday'"),
        ("started", "9e999"),
        ("started", "-1"),
        ("started", "NULL"),
        ("scenario", "7"),
        ("scenario", "x'ff'"),
        ("label", "1.5"),
        ("users", "'many'"),
        ("rate", "-1"),
        ("rate", "9e999"),
        ("p99", "'slow'"),
        ("verdict", "NULL"),
        ("facts", "'{'"),
        ("facts", "'[]'"),
        ("facts", "0"),
        ("size", "'large'"),
        ("file", "NULL"),
        ("file", "'../a.stat.gz'"),
    ],
)
def test_an_entry_that_makes_no_sense_is_made_again(folder, column, value):
    folder.write("a.stat.gz", 1)
    folder.write("b.stat.gz", 2)
    whole = folder.archive.entries()
    with closing(sqlite3.connect(folder.path / INDEX_FILE)) as index, index:
        index.execute(f"UPDATE runs SET {column} = {value} WHERE file = 'a.stat.gz'")
    assert folder.archive.entries() == whole
    assert folder.read == ["a.stat.gz", "b.stat.gz", "a.stat.gz"]


def test_an_index_with_an_endless_text_is_made_again(folder, golden_words: GoldenWords):
    folder.write("a.stat.gz", 1)
    whole = folder.archive.entries()
    with closing(sqlite3.connect(folder.path / INDEX_FILE)) as index, index:
        index.execute("UPDATE runs SET scenario = hex(zeroblob(10000000))")
    assert folder.archive.entries() == whole
    golden_words(folder.archive.unreadable)


@pytest.mark.skipif(is_privileged(), reason="root writes everywhere")
def test_the_index_of_a_read_only_folder_is_used(folder):
    folder.write("a.stat.gz", 1)
    folder.archive.entries()
    folder.write("b.stat.gz", 2)
    folder.path.chmod(0o555)
    try:
        assert len(folder.archive.entries()) == 2
    finally:
        folder.path.chmod(0o755)
    assert folder.read.count("a.stat.gz") == 1


def test_what_was_read_before_ctrl_c_is_kept(folder):
    folder.write("a.stat.gz", 1)
    folder.write("b.stat.gz", 2)

    def interrupted(path):
        if path.name == "b.stat.gz":
            raise KeyboardInterrupt
        return folder._read(path)

    with pytest.raises(KeyboardInterrupt):
        Archive(folder.path, interrupted).entries()
    assert len(folder.archive.entries()) == 2
    assert folder.read == ["a.stat.gz", "b.stat.gz"]


def test_two_may_make_the_index_at_once(folder):
    folder.write("a.stat.gz", 1)
    folder.write("b.stat.gz", 2)
    seen = []

    def read_while_another_reads(path):
        seen.append(len(folder.archive.entries()))
        return folder._read(path)

    assert len(Archive(folder.path, read_while_another_reads).entries()) == 2
    assert seen == [2, 2]


def test_a_name_that_is_not_utf_8_is_left_out(folder, golden_words: GoldenWords):
    folder.write("a.stat.gz", 1)
    try:
        folder.write(os.fsdecode(b"\xff.stat.gz"), 2)
    except OSError:
        pytest.skip("this file system has no such names")
    assert len(folder.archive.entries()) == 1
    golden_words(folder.archive.unreadable)


STATISTICS = SimpleNamespace(
    run=SimpleNamespace(
        options={"label": "l"}, started=5.0, scenario=SimpleNamespace(name="s", user_count=3, fail_if=())
    ),
    start=6.0,
    complete=True,
    interrupted=False,
    outcome=Outcome.GOOD,
    total=SimpleNamespace(
        requests_per_second=float("inf"),
        failed=0,
        lines=[
            SimpleNamespace(
                latency=SimpleNamespace(supported_percentile=lambda rank: 0.02, most=lambda rank: 0.02)
            )
        ],
    ),
)


def found(statistics):
    """A verdict on statistics whose operations are all that is judged."""
    outcome = Outcome.FAILED if statistics.total.failed else statistics.outcome
    return SimpleNamespace(outcome=outcome, judgments=())


def test_an_entry(monkeypatch):
    monkeypatch.setattr("ssbench.comparison.archive.collect_run_facts", lambda statistics: {"seed": "7"})
    monkeypatch.setattr("ssbench.comparison.archive._figures", lambda statistics: {})
    monkeypatch.setattr("ssbench.comparison.archive.verdict_of", found)
    entry = make_entry(STATISTICS, "f", 1, 2)
    assert entry == ArchiveEntry("f", 1, 2, 5.0, "s", "l", 3, None, 0.02, "good", '{"seed": "7"}')
    for outcome in Outcome:
        changed = SimpleNamespace(**{**vars(STATISTICS), "outcome": outcome})
        assert make_entry(changed, "f", 1, 2).verdict == outcome.value
    killed = SimpleNamespace(**{**vars(STATISTICS), "complete": False})
    assert make_entry(killed, "f", 1, 2).verdict == "incomplete"


@pytest.mark.parametrize("option", ["row", "plan_phase"])
def test_an_entry_has_its_row_or_phase(tmp_path, option):
    run = replace(RUN, options={**RUN.options, option: "put"})
    write_full_run(tmp_path / "x.stat.gz", run)
    entry = read_entry(tmp_path / "x.stat.gz")
    assert (entry.row, entry.title) == ("put", f"{entry.scenario}: put")


def test_an_entry_has_no_percentile_that_is_only_a_lower_bound():
    """A list and a trend had it beside those of other runs, without the sign that it has in reports."""
    overloaded = play(lambda sent: sent + 0.0114, [Stage(5.0, (3, 3), (2000.0, 2000.0))])
    entry = make_entry(overloaded, "f", 1, 2)
    assert (entry.verdict, entry.p99) == ("not delivered", None)
    assert entry.rate is not None


def test_runs_in_the_folder_of_earlier_versions_are_still_there(folder, tmp_path, golden_words: GoldenWords):
    earlier = Folder(tmp_path / "earlier")
    earlier.path.mkdir()
    earlier.write("old.stat.gz", 1)
    earlier.write("other.stat.gz", 3, "x")
    (earlier.path / "wrong.stat.gz").write_text("x")
    folder.write("new.stat.gz", 2)
    archive = Archive(folder.path, folder._read, [earlier.path])
    files = [str(earlier.path / "old.stat.gz"), "new.stat.gz", str(earlier.path / "other.stat.gz")]
    assert [entry.file for entry in archive.entries()] == files
    assert archive.find("last") == archive.find("@x") == [earlier.path / "other.stat.gz"]
    assert archive.find("last-1") == [folder.path / "new.stat.gz"]
    golden_words([text.rpartition(": ")[2] for text in archive.unreadable])
