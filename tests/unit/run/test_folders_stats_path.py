"""Where a run's stat file goes, and what must not be there already."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest
from golden_words import GoldenWords
from known_results import write_known
from old_formats import msgpack_file, success

from ssbench.base.errors import StatFileError
from ssbench.run.folders import (
    check_labels_unused,
    default_stats_name,
    label_stats_path,
    rename_earlier_file,
    reserve_stats_path,
)
from ssbench.scenario.scenario_reading import read_scenario

SCENARIO = read_scenario("very_small")
NOW = 1e9


def test_a_name_is_kept_for_the_run_and_given_back_unused(tmp_path: Path, golden_words: GoldenWords) -> None:
    given = tmp_path / "new" / "run.stat"
    with reserve_stats_path(given, SCENARIO, NOW) as path:
        assert path == tmp_path / "new" / "run.stat.gz"
        with (
            golden_words.raises(StatFileError),
            reserve_stats_path(given, SCENARIO, NOW),
        ):
            pass
        assert path.exists()
    assert not path.exists()
    with reserve_stats_path(given, SCENARIO, NOW) as path:
        path.write_bytes(b"results")
    assert path.read_bytes() == b"results"


def test_an_earlier_stat_file_is_kept_under_another_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A nightly job of ssbench 0.x gives the same name each time: it failed from the second night on."""
    caplog.set_level(logging.INFO)
    path = tmp_path / "run.stat.gz"
    nights = [write_known(tmp_path / "known.stat.gz").read_bytes(), msgpack_file([[success()]]), b"new"]
    for night in nights:
        with reserve_stats_path(tmp_path / "run.stat", SCENARIO, NOW) as reserved:
            assert reserved == path
            path.write_bytes(night)
    files = [tmp_path / "run.1.stat.gz", tmp_path / "run.2.stat.gz", path]
    assert [file.read_bytes() for file in files] == nights
    assert caplog.messages == [f"Kept the earlier {path} as {file}" for file in files[:2]]


def test_the_empty_file_of_a_run_that_was_killed_is_in_nobodys_way(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    path.touch()
    with reserve_stats_path(path, SCENARIO, NOW):
        path.write_bytes(b"results")
    assert path.read_bytes() == b"results"


def test_a_link_to_a_stat_file_stays(tmp_path: Path, golden_words: GoldenWords) -> None:
    path = tmp_path / "run.stat.gz"
    path.symlink_to(write_known(tmp_path / "known.stat.gz"))
    with (
        golden_words.raises(StatFileError),
        reserve_stats_path(path, SCENARIO, NOW),
    ):
        pass
    assert path.is_symlink()


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("out", "out.1"),
        ("x.report", "x.1.report"),
        ("a.b.stat.gz", "a.b.1.stat.gz"),
        (".hidden", ".hidden.1"),
    ],
)
def test_an_earlier_file_gets_a_number_that_no_file_has(tmp_path: Path, name: str, kept: str) -> None:
    path = tmp_path / name
    path.write_text("earlier")
    assert rename_earlier_file(path) == tmp_path / kept
    path.write_text("later")
    assert rename_earlier_file(path).name == kept.replace("1", "2")
    assert (tmp_path / kept).read_text() == "earlier"
    assert not path.exists()


def test_what_is_no_stat_file_is_overwritten_only_with_force(
    tmp_path: Path, golden_words: GoldenWords
) -> None:
    path = tmp_path / "run.stat.gz"
    path.write_bytes(b"results")
    with (
        golden_words.raises(StatFileError),
        reserve_stats_path(path, SCENARIO, NOW),
    ):
        pass
    with reserve_stats_path(path, SCENARIO, NOW, force=True):
        pass
    assert path.read_bytes() == b"results"  # the run never came to write


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        "/dev/null",
        "FOLDER/pipe.gz",
        "FOLDER",
        "FOLDER/" + "x" * 300,
        "FOLDER/\ud800",
        "/proc/nowhere/file",
    ],
)
def test_what_can_be_no_stat_file(tmp_path: Path, name: str, force: bool, golden_words: GoldenWords) -> None:
    os.mkfifo(tmp_path / "pipe.gz")
    given = Path(name.replace("FOLDER", str(tmp_path)))
    with golden_words.raises(StatFileError), reserve_stats_path(given, SCENARIO, NOW, force=force):
        pass


def test_runs_of_the_same_second_have_files_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with reserve_stats_path(None, SCENARIO, NOW) as first, reserve_stats_path(None, SCENARIO, NOW) as second:
        assert first != second
        assert first.parent == second.parent == tmp_path / "ssbench"


def test_a_default_name_can_be_encoded() -> None:
    os.fsencode(default_stats_name(replace(SCENARIO, name="\ud83d" + "é" * 300), NOW))


@pytest.mark.parametrize("name", ["sweep", "sweep.stat", "sweep.stat.gz", "sweep.gz"])
def test_several_runs_have_labels_in_their_names(
    tmp_path: Path, name: str, golden_words: GoldenWords
) -> None:
    path = label_stats_path(tmp_path / name, SCENARIO, "users-4", NOW)
    assert path == tmp_path / "sweep.users-4.stat.gz"
    check_labels_unused(tmp_path / name, "users-")
    path.touch()
    check_labels_unused(tmp_path / name, "run-")
    with golden_words.raises(StatFileError):
        check_labels_unused(tmp_path / name, "users-")


def test_several_runs_without_a_name_have_the_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = label_stats_path(None, SCENARIO, "run-1", NOW)
    usual = default_stats_name(SCENARIO, NOW).removesuffix(".stat.gz")
    assert path == tmp_path / "ssbench" / f"{usual}.run-1.stat.gz"


@pytest.mark.parametrize(
    "name",
    [
        "FOLDER",
        "FOLDER/" + "x" * 300,
        "FOLDER/a\0b",
    ],
)
def test_what_several_stat_files_cannot_be_named(
    tmp_path: Path, name: str, golden_words: GoldenWords
) -> None:
    with golden_words.raises(StatFileError):
        label_stats_path(Path(name.replace("FOLDER", str(tmp_path))), SCENARIO, "users-4", NOW)
