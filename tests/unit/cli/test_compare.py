"""The sub-command compare: which files it takes, and when it fails."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from full_run import RUN, write_full_run
from golden_words import GoldenWords

from ssbench.cli.master import main

KNOWN = Path(__file__).parents[2] / "data" / "version-1-known.stat.gz"


@pytest.mark.parametrize("more", [[], ["--to"], ["whole"]], ids=["two files", "two groups", "a table"])
def test_a_file_that_cannot_be_read_to_its_end_fails(tmp_path, more):
    cut = tmp_path / "cut.stat.gz"
    cut.write_bytes(KNOWN.read_bytes()[:-60])
    words = [str(KNOWN) if each == "whole" else each for each in more]
    assert main(["compare", str(cut), *words, str(KNOWN)]) == 1
    assert main(["compare", str(KNOWN), *words, str(KNOWN)]) == 0


def test_a_file_that_is_given_twice_is_named(capsys):
    assert main(["compare", str(KNOWN), str(KNOWN)]) == 0
    assert f"! {KNOWN.name} was given 2 times\n" in capsys.readouterr().out
    assert main(["compare", *[str(KNOWN)] * 3]) == 0
    assert f"{KNOWN.name} was given 3 times" in capsys.readouterr().err


@pytest.fixture
def two_labels(tmp_path):
    """A folder of four runs of each of two labels."""
    for number in range(8):
        label = "old" if number < 4 else "new"
        run = replace(RUN, started=1e9 + number, options={**RUN.options, "label": label})
        (tmp_path / label).mkdir(exist_ok=True)
        write_full_run(tmp_path / f"{number}.stat.gz", run)
        shutil.copy(tmp_path / f"{number}.stat.gz", tmp_path / label)
    return tmp_path


def test_two_labels_or_folders_are_the_two_sides(capsys, two_labels):
    """Each has several runs: a table of all of them would not say what changed."""
    of_folder = ["--results-dir", str(two_labels)]
    for sides in (
        ["@old", "@new"],
        ["@old", "--to", "@new"],
        [str(two_labels / "old"), str(two_labels / "new")],
        [str(two_labels / "old"), "--to", str(two_labels / "new")],
        ["@old", str(two_labels / "new")],
    ):
        assert main(["compare", *sides, *of_folder]) == 0
        out, err = capsys.readouterr()
        assert "(4 runs)" in out
        assert "The verdict stands on" in out
        assert "--to" not in err


def test_folders_name_their_sides(capsys, tmp_path):
    """So that a CI job that compares with two baselines has two suites, each of the same name every night."""
    for name in ("fixed", "candidate"):
        (tmp_path / name).mkdir()
        write_full_run(tmp_path / name / "2026-05-01.stat.gz", RUN)
    files = [str(tmp_path / name / "2026-05-01.stat.gz") for name in ("fixed", "candidate")]
    for names in (files, [str(tmp_path / "fixed"), str(tmp_path / "candidate")]):
        assert main(["compare", *names, "--format", "junit"]) == 0
        assert (
            f'testsuite name="comparison of {RUN.scenario.name}, fixed and candidate"'.replace(
                "<b>&|", "&lt;b&gt;&amp;|"
            )
            in capsys.readouterr().out
        )


def test_a_table_says_how_to_compare(capsys, two_labels, golden_words: GoldenWords):
    names = [str(each) for each in sorted(two_labels.glob("*.stat.gz"))]
    assert main(["compare", *names]) == 0
    golden_words(capsys.readouterr().err)
    assert main(["compare", "@old", "@new", "last", "--results-dir", str(two_labels)]) == 0
    assert "--to AFTER" in capsys.readouterr().err


def test_a_condition_of_an_envelope_is_not_one_of_changes(capsys, two_labels):
    of_folder = ["--results-dir", str(two_labels)]
    assert main(["compare", "@old", "@new", *of_folder, "--fail-if", "envelope.4kB.read.rate < 5"]) == 2
    said = "rate < 5' is for the command 'envelope' and for two of its JSON files; runs are compared by"
    assert said in capsys.readouterr().err


def test_one_run_without_sides_is_not_enough(capsys, golden_words: GoldenWords):
    assert main(["compare", str(KNOWN)]) == 2
    golden_words(capsys.readouterr().err)
