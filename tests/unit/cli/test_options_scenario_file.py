"""Which scenario a command line names: FILE, or -f FILE."""

from __future__ import annotations

import argparse

import pytest
from golden_words import GoldenWords

from ssbench.base.errors import UsageError
from ssbench.cli import options
from ssbench.cli.parser import Origin, ValueSource


def chosen(*words: str, given: tuple[str, ...] = (), elsewhere: str | None = None) -> str:
    """Return what is chosen of a command line; ``elsewhere`` is what a file or a variable sets."""
    parser = argparse.ArgumentParser()
    options.add_options(parser, *options.SCENARIO_ARGUMENTS)
    found = {"scenario_file": elsewhere} | {
        name: value for name, value in vars(parser.parse_args(words)).items() if value is not None
    }
    sources = dict.fromkeys(given, ValueSource(Origin.LINE))
    asked = options.ScenarioFileAsked(**{"file": None, "allow": (), **found}, sources=sources)
    return options.choose_scenario_file(asked)


def test_both_ways() -> None:
    assert chosen("a.yaml") == "a.yaml"
    assert chosen("-f", "a.yaml", given=("scenario_file",)) == "a.yaml"
    assert chosen("--scenario-file", "a.yaml", given=("scenario_file",)) == "a.yaml"


def test_what_is_set_elsewhere_counts_where_the_command_line_names_none() -> None:
    assert chosen(elsewhere="own.yaml") == "own.yaml"
    assert chosen("a.yaml", given=("file",), elsewhere="own.yaml") == "a.yaml"


def test_twice_is_once_too_often() -> None:
    with pytest.raises(UsageError, match="given twice"):
        chosen("a.yaml", "-f", "b.yaml", given=("file", "scenario_file"))


def test_none_is_not_enough(golden_words: GoldenWords) -> None:
    with golden_words.raises(UsageError):
        chosen()
