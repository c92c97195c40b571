"""The sub-command compare: which files it takes, and when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssbench.cli import compare as compare_command
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


def test_who_forgets_to_between_two_labels_is_told_of_it(capsys, monkeypatch):
    found = {"@old": [str(KNOWN)] * 2, "@new": [str(KNOWN)] * 2}
    monkeypatch.setattr(
        compare_command.archives,
        "resolve_references",
        lambda _, names: [path for name in names for path in found.get(name, [name])],
    )
    assert main(["compare", "@old", "@new"]) == 0
    assert "What changed: ssbench-master compare @old --to @new\n" in capsys.readouterr().err
    assert main(["compare", "@old", "--to", "@new"]) == 0
    assert "What changed" not in capsys.readouterr().err


def test_one_run_without_sides_is_not_enough(capsys):
    assert main(["compare", str(KNOWN)]) == 2
    assert "two stat files, as in 'ssbench-master compare last-1 last'" in capsys.readouterr().err
