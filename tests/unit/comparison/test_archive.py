"""A folder of stat files and its index."""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from planted_load import play

from ssbench.base.errors import ExitCode, StatFileError, UsageError
from ssbench.base.text_values import is_reference
from ssbench.cli import archives
from ssbench.cli.list import run as list_runs
from ssbench.cli.master import main
from ssbench.cli.options import parse_label
from ssbench.comparison.archive import INDEX_FILE, Archive, ArchiveEntry, make_entry
from ssbench.comparison.runs_list import find_level_changes
from ssbench.document.columns import measure_width
from ssbench.document.elements import View
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.scenario.model import Stage
from ssbench.statistics.run_verdict import Outcome


class Folder:
    """A folder of files that are text: when the run began, and its label."""

    def __init__(self, path):
        self.path = path
        self.read = []
        self.archive = Archive(path, self._read)

    def write(self, name, started, label=""):
        (self.path / name).write_text(f"{started},{label}")

    def _read(self, path):
        self.read.append(path.name)
        try:
            started, found = path.read_text().split(",")
        except ValueError:
            raise StatFileError(f"{path}: not a stat file of ssbench") from None
        status = path.stat()
        return ArchiveEntry(
            path.name,
            status.st_size,
            status.st_mtime_ns,
            float(started),
            "s",
            found or None,
            4,
            10.0,
            None,
            "ok",
        )


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


def test_what_is_a_reference(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "@there").touch()
    assert [is_reference(text) for text in ("last", "last-12", "@x")] == [True] * 3
    assert [is_reference(text) for text in ("@there", "lasts", "last-", "a.stat.gz")] == [False] * 4


def test_an_index_of_another_version_is_made_again(folder):
    folder.write("a.stat.gz", 1)
    with sqlite3.connect(folder.path / INDEX_FILE) as index:
        index.execute("CREATE TABLE runs (file, size, changed, strange)")
        index.execute("PRAGMA user_version = 99")
    index.close()
    assert len(folder.archive.entries()) == 1


def test_a_damaged_index_is_made_again(folder):
    folder.write("a.stat.gz", 1)
    (folder.path / INDEX_FILE).write_bytes(b"nonsense" * 500)
    assert len(folder.archive.entries()) == 1
    assert folder.archive.unreadable == [
        f"{folder.path / INDEX_FILE}: the index was damaged and is made again"
    ]
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
    assert archives.find_noise_floors(arguments(results_dir=folder.path / name), [], []) is None
    assert is_reference(f"@{name}")


def test_where_no_index_can_be_written_one_in_memory_will_do(folder):
    folder.write("a.stat.gz", 1)
    (folder.path / INDEX_FILE).mkdir()
    for _ in range(2):
        assert len(folder.archive.entries()) == 1
        assert folder.archive.unreadable == [
            f"{folder.path / INDEX_FILE}: is no plain file, and left alone; what was read is not kept"
        ]
    assert folder.read == ["a.stat.gz"] * 2


def tables(path):
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()


@pytest.mark.parametrize("name", ["runs", "customers"])
def test_a_database_that_a_link_leads_to_is_left_alone(folder, tmp_path, name):
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as database:
        database.execute(f"CREATE TABLE {name} (precious)")
    content = other.read_bytes()
    (folder.path / INDEX_FILE).symlink_to(other)
    folder.write("a.stat.gz", 1)
    assert len(folder.archive.entries()) == 1
    assert folder.archive.unreadable == [
        f"{folder.path / INDEX_FILE}: is a link, and left alone; what was read is not kept"
    ]
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
def test_a_database_of_something_else_is_left_alone(folder, makes):
    with closing(sqlite3.connect(folder.path / INDEX_FILE)) as database:
        database.executescript(makes)
    before = tables(folder.path / INDEX_FILE)
    folder.write("a.stat.gz", 1)
    assert len(folder.archive.entries()) == 1
    assert folder.archive.unreadable == [
        f"{folder.path / INDEX_FILE}: is the database of something else, and left alone;"
        f" what was read is not kept"
    ]
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


def test_an_index_with_an_endless_text_is_made_again(folder):
    folder.write("a.stat.gz", 1)
    whole = folder.archive.entries()
    with closing(sqlite3.connect(folder.path / INDEX_FILE)) as index, index:
        index.execute("UPDATE runs SET scenario = hex(zeroblob(10000000))")
    assert folder.archive.entries() == whole
    assert folder.archive.unreadable == [
        f"{folder.path / INDEX_FILE}: the index was damaged and is made again"
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
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


def test_a_name_that_is_not_utf_8_is_left_out(folder):
    folder.write("a.stat.gz", 1)
    try:
        folder.write(os.fsdecode(b"\xff.stat.gz"), 2)
    except OSError:
        pytest.skip("this file system has no such names")
    assert len(folder.archive.entries()) == 1
    assert folder.archive.unreadable == [
        f"{folder.path}/\\xff.stat.gz: left out, because its name is not UTF-8"
    ]


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


def test_an_entry_has_no_percentile_that_is_only_a_lower_bound():
    """A list and a trend had it beside those of other runs, without the sign that it has in reports."""
    overloaded = play(lambda sent: sent + 0.0114, [Stage(5.0, (3, 3), (2000.0, 2000.0))])
    entry = make_entry(overloaded, "f", 1, 2)
    assert (entry.verdict, entry.p99) == ("not delivered", None)
    assert entry.rate is not None


def arguments(**values):
    return argparse.Namespace(
        json=None,
        force=False,
        **{
            "results_dir": None,
            "file": None,
            "label": None,
            "scenario": None,
            "number": 50,
            "trend": False,
            "verbose": True,
            "format": "text",
            **values,
        },
    )


def test_the_folder_is_named_by_the_option_or_the_variable(monkeypatch, tmp_path):
    monkeypatch.delenv(archives.RESULTS_DIR_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    # Where runs leave their files that are told nothing.
    assert archives.open_archive(arguments()).folder == tmp_path / "ssbench"
    monkeypatch.setenv(archives.RESULTS_DIR_VARIABLE, str(tmp_path / "x"))
    assert archives.open_archive(arguments()).folder == tmp_path / "x"
    assert archives.open_archive(arguments(results_dir=tmp_path)).folder == tmp_path
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="file: is not a folder"):
        archives.choose_folder(arguments(results_dir=file))


def test_runs_in_the_folder_of_earlier_versions_are_still_there(folder, tmp_path):
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
    assert [text.rpartition(": ")[2] for text in archive.unreadable] == ["not a stat file of ssbench"]


def test_only_the_usual_folder_has_earlier_ones(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(archives, "_read_entry", lambda path: Folder(path.parent)._read(path))
    earlier = Folder(tmp_path / "ssbench-results")
    earlier.path.mkdir()
    earlier.write("old.stat.gz", 1)
    assert archives.open_archive(arguments()).find("last") == [earlier.path / "old.stat.gz"]
    assert archives.open_archive(arguments(results_dir=tmp_path / "state")).entries() == []
    # What others may write to is not read.
    earlier.path.chmod(0o777)
    assert archives.open_archive(arguments()).entries() == []


def test_the_list(monkeypatch, folder, capsys):
    for number, each in enumerate(["old", "new", ""]):
        folder.write(f"{number}.stat.gz", number, each)
    monkeypatch.setattr(archives, "open_archive", lambda _: folder.archive)
    assert list_runs(arguments()) is ExitCode.OK
    head, *lines, empty, note = capsys.readouterr().out.splitlines()
    assert head.startswith("run     begun (UTC) ")
    assert [line.split()[0] for line in lines] == ["last-2", "last-1", "last"]
    assert not empty
    assert [line.split()[-1] for line in lines] == [f"{number}.stat.gz" for number in range(3)]
    assert note == "-: not measured, too few operations (p99 needs 1,000), or only a lower bound"
    list_runs(arguments(verbose=False))
    narrow = capsys.readouterr().out
    assert ".stat.gz" not in narrow
    assert [line.split()[-1] for line in narrow.splitlines()[1:-2]] == ["ok"] * 3
    monkeypatch.setattr("ssbench.cli.output_file.measure_terminal", lambda _: 160)
    folder.write("3.stat.gz", 3, 12 * "long ")
    list_runs(arguments(verbose=False))
    assert 12 * "long " in capsys.readouterr().out
    (folder.path / "3.stat.gz").unlink()
    list_runs(arguments(label="old"))
    assert capsys.readouterr().out.splitlines()[1].endswith("0.stat.gz")  # and is still last-2
    list_runs(arguments(number=1))
    assert len(capsys.readouterr().out.splitlines()) == 4
    list_runs(arguments(scenario="other"))
    assert capsys.readouterr().out == "no runs\n"
    assert archives.resolve_references(arguments(), ["x.stat", "@old", "last"]) == [
        "x.stat",
        str(folder.path / "0.stat.gz"),
        str(folder.path / "2.stat.gz"),
    ]


def test_a_report_of_the_last_run(monkeypatch, folder, capsys):
    for number, each in enumerate(["old", "new", "new"]):
        folder.write(f"{number}.stat.gz", number, each)
    monkeypatch.setattr(archives, "open_archive", lambda _: folder.archive)
    assert archives.choose_stat_file(arguments(stats_file=Path("last-1"))) == folder.path / "1.stat.gz"
    assert (
        archives.choose_stat_file(arguments(file=Path("last-1"), stats_file=None))
        == folder.path / "1.stat.gz"
    )
    with pytest.raises(UsageError, match="given twice"):
        archives.choose_stat_file(arguments(file=Path("last"), stats_file=Path("last"), given={"stats_file"}))
    with pytest.raises(UsageError, match="a stat file is expected: FILE, last, last-1 or @LABEL"):
        archives.choose_stat_file(arguments(stats_file=None))
    assert archives.choose_stat_file(arguments(stats_file=Path("x/y.stat"))) == Path("x/y.stat")
    with pytest.raises(
        UsageError, match=r"@new: 2 runs have this label; one is expected: name its file, such as .*gz$"
    ):
        archives.choose_stat_file(arguments(stats_file=Path("@new")))
    with pytest.raises(UsageError, match="old: there is no such file; did you mean @old"):
        archives.resolve_references(arguments(), ["old"])
    for command in ("report-scenario", "export", "attribute"):
        logs = ["--swift-logs", str(folder.path)] if command == "attribute" else []
        assert main([command, "-s", "last-9", *logs]) == 2
        assert "there is no last-9, only 3 runs" in capsys.readouterr().err


def test_a_list_fits_a_terminal_and_is_whole_in_a_pipe(monkeypatch, capsys):
    (entry,) = history([123456.7])
    entries = [
        replace(entry, scenario="s" * 60, label="l" * 60, verdict="not delivered"),
        replace(entry, scenario="\u4e2d" * 40),
    ]
    fake = SimpleNamespace(entries=lambda: entries)
    monkeypatch.setattr(archives, "open_archive", lambda _: fake)
    monkeypatch.setattr(archives, "warn_of_unreadable", lambda _: None)
    list_runs(arguments(verbose=False))
    piped = capsys.readouterr().out
    assert ("s" * 60 in piped, "l" * 60 in piped, "\u4e2d" * 40 in piped) == (True, True, True)
    monkeypatch.setattr("ssbench.cli.output_file.measure_terminal", lambda _: 80)
    list_runs(arguments(verbose=False))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(measure_width, lines)) == 80
    assert "sss~  " in lines[1]
    assert "lll~  " in lines[1]
    list_runs(arguments(verbose=False, scenario="\u4e2d" * 40))
    assert "label" not in capsys.readouterr().out
    list_runs(arguments())
    assert "s" * 60 in capsys.readouterr().out


def test_labels():
    assert parse_label("before upgrade") == "before upgrade"
    for wrong in ("", "@x", " x", "a\nb", "x" * 101):
        with pytest.raises(argparse.ArgumentTypeError, match="is not a label"):
            parse_label(wrong)


# -- the trend ----------------------------------------------------------------------------------------


def trends(entries, encoding="utf-8"):
    return products.find_writer(Product.TREND, "text")(entries, View(encoding=encoding))


def history(rates, **facts):
    """An entry for each rate; ``facts`` are lists of what each run had."""
    return [
        ArchiveEntry(
            f"{number}.stat.gz",
            1,
            1,
            1e9 + 86400 * number,
            "s",
            None,
            4,
            rate,
            None if rate is None else 10 / rate,
            "ok",
            json.dumps({name: values[number] for name, values in facts.items()}),
        )
        for number, rate in enumerate(rates)
    ]


def noisy(count, changes_at, by, seed):
    random = np.random.default_rng(seed)
    return np.exp(0.02 * random.standard_normal(count) + by * (np.arange(count) >= changes_at)).tolist()


def test_levels_are_found_and_not_invented():
    assert sum(bool(find_level_changes(noisy(20, 0, 0.0, seed))) for seed in range(20)) <= 1
    found = [find_level_changes(noisy(20, 12, 0.08, seed)) for seed in range(10)]
    assert sum(len(each) == 1 and abs(each[0] - 12) <= 1 for each in found) >= 9
    assert find_level_changes([1.0] * 4 + [2.0] * 5) == []  # too few runs
    assert find_level_changes([5.0] * 30) == []


def test_a_trend_tells_what_changed_where():
    rates = [100.0] * 5 + [101.0] * 3 + [50.0] * 6
    text = trends(
        history(rates, ssbench=["1.0"] * 8 + ["1.1"] * 6, seed=list(map(str, range(14))), master=["h"] * 14)
    )
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0] == "s: 14 runs"
    assert lines[1].split() == ["begun", "(UTC)", "ops/s", "p99", "ms", "verdict"]
    assert lines[10:13] == [
        "! ssbench: 1.0 -> 1.1",
        "* ops/s 50.2 % lower from here on",
        "* p99 100.7 % higher from here on",
    ]
    assert [lines[place].split()[3] for place in (3, 8, 14)] == ["████████████▉", "█████████████", "██████▍"]
    assert "differs from run to run: seed." in " ".join(lines)
    assert "master" not in text
    assert max(map(len, lines)) <= 80


def test_a_level_is_not_compared_with_runs_that_are_not_looked_at(monkeypatch):
    monkeypatch.setattr("ssbench.comparison.runs_list.MAX_TREND_RUNS", 30)
    found = trends(history([1000.0] * 20 + [100.0] * 18 + [50.0] * 12))
    lines = [line.strip() for line in found.splitlines()]
    assert [line for line in lines if line.startswith("* ops/s")] == ["* ops/s 50.0 % lower from here on"]


def test_a_trend_of_few_runs_has_no_levels_and_leaves_out_what_was_cut_short():
    entries = [
        replace(entry, label=label) for entry, label in zip(history([9.0, 1.0, None]), "aab", strict=True)
    ]
    entries[1] = replace(entries[1], verdict="interrupted")
    text = trends([*entries, *(replace(entry, scenario="other\x1b") for entry in entries)], "ascii")
    assert text.startswith("s: 2 runs (1 left out: interrupted or incomplete)\n")
    assert "! label: a -> b" in text
    assert "   9.00  #############    1111  #############  ok\n" in text
    assert "      -                      - " in text
    assert "needs 10 runs)." in " ".join(text.split())
    assert "other?: 2 runs" in text
    assert "-: not measured, too few operations (p99 needs 1,000), or only a lower bound." in " ".join(
        text.split()
    )
    assert "differs from run to run" not in text
    assert trends([]) == "no runs\n"


def test_a_label_that_few_runs_have_is_marked():
    entries = [
        replace(entry, label=label)
        for entry, label in zip(history([9.0] * 5), (None, "a", None, "b", None), strict=True)
    ]
    text = trends(entries)
    assert [line.strip() for line in text.splitlines() if line.startswith("  ! label")] == [
        *("! label: none -> a", "! label: a -> none", "! label: none -> b", "! label: b -> none")
    ]
    assert "differs from run to run" not in text


def test_the_trend_is_printed(monkeypatch, folder, capsys):
    folder.write("a.stat.gz", 1)
    monkeypatch.setattr(archives, "open_archive", lambda _: folder.archive)
    assert list_runs(arguments(trend=True)) is ExitCode.OK
    assert "s: 1 run\n" in capsys.readouterr().out
