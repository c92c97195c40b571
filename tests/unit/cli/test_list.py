"""The sub-command list."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from archive_folders import Folder, arguments, history
from said import NOT_MEASURED

from ssbench.base.errors import ExitCode
from ssbench.cli import archives
from ssbench.cli.list import run as list_runs
from ssbench.document.columns import measure_width


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


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
    assert note == f"{NOT_MEASURED} (p99 needs 1,000), or only a lower bound"
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
    assert archives.resolve_references(None, ["x.stat", "@old", "last"]) == [
        "x.stat",
        str(folder.path / "0.stat.gz"),
        str(folder.path / "2.stat.gz"),
    ]


def test_rows_of_suites_are_named(monkeypatch, capsys):
    entries = [
        replace(each, scenario="objects", row=row)
        for each, row in zip(history([1, 2]), ("put", ""), strict=True)
    ]
    archive = SimpleNamespace(entries=lambda: entries, unreadable=[])
    monkeypatch.setattr(archives, "open_archive", lambda _: archive)
    list_runs(arguments())
    assert [line.split()[3:6] for line in capsys.readouterr().out.splitlines()[1:3]] == [
        ["objects:", "put", "4"],
        ["objects", "4", "2.00"],
    ]
    for wanted, count in (("objects", 2), ("objects: put", 1), ("put", 0)):
        list_runs(arguments(scenario=wanted))
        assert capsys.readouterr().out.count("objects") == count


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


def test_the_trend_is_printed(monkeypatch, folder, capsys):
    folder.write("a.stat.gz", 1)
    monkeypatch.setattr(archives, "open_archive", lambda _: folder.archive)
    assert list_runs(arguments(trend=True)) is ExitCode.OK
    assert "s: 1 run\n" in capsys.readouterr().out
