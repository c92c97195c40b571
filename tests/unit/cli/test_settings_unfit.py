"""Options that do not fit the others: refused, or ignored where only a file or a variable sets them."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

import pytest

from ssbench.base.errors import UsageError
from ssbench.cli import settings

FILE = "/etc/ssbench.toml"


def arguments(
    set_elsewhere: dict[str, tuple[object, str]] | None = None, **values: Any
) -> argparse.Namespace:
    """Return what a parser and the settings made; ``set_elsewhere`` has defaults by field, and where."""
    made = argparse.Namespace(**values)
    if set_elsewhere is not None:
        made.set_elsewhere = set_elsewhere
    return made


@pytest.mark.parametrize("value", [Path("x"), "x", 0, 0.0, "", True, ["x"]])
def test_what_the_command_line_has_is_refused(value: object) -> None:
    """A number that is 0 was given too."""
    given = arguments(fail_if=value)
    with pytest.raises(UsageError, match=r"^a table is no comparison: leave out --fail-if$"):
        settings.refuse_options(given, "a table is no comparison", "--fail-if")
    assert given.fail_if == value


@pytest.mark.parametrize("value", [None, False, []])
def test_what_was_not_given_is_not_refused(value: object) -> None:
    settings.refuse_options(arguments(html=value, fail_if=value), "why", "--html", "--fail-if")


def test_the_first_that_was_given_is_named() -> None:
    with pytest.raises(UsageError, match=r"leave out --fail-if$"):
        settings.refuse_options(
            arguments(html=None, fail_if=["x"], web=1), "why", "--html", "--fail-if", "--web"
        )


def test_what_is_set_elsewhere_is_ignored_and_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    given = arguments(
        {"html": (None, FILE), "fail_if": ([], "SSBENCH_FAIL_IF")}, html=Path("x"), fail_if=["y"]
    )
    settings.refuse_options(given, "a table is no comparison", "--html", "--fail-if")
    assert (given.html, given.fail_if) == (None, [])
    assert caplog.messages == [
        f"{FILE}: --html is ignored: a table is no comparison",
        "SSBENCH_FAIL_IF: --fail-if is ignored: a table is no comparison",
    ]


def test_what_a_file_sets_to_its_default_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    given = arguments({"web_open": (False, FILE)}, web_open=False)
    settings.ignore_options(given, "why", "--web-open")
    assert not given.web_open
    assert not caplog.messages


def test_what_the_command_line_sets_is_not_ignored(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    given = arguments({"rate": (None, FILE)}, format="text")
    settings.ignore_options(given, "why", "--format")
    assert given.format == "text"
    assert not caplog.messages


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("--run-seconds: expected less than 1 h", "run-seconds"),
        ("leave out --run-seconds", "run-seconds"),
        ("run_seconds: expected a number", "run-seconds"),
        ("--run_seconds is wrong", "run-seconds"),
        ("--run-seconds-each is wrong", None),
        ("the value of run_seconds: wrong", None),
        ("--rate=5 is wrong", "rate"),
        ("--rates is wrong", None),
        ("nothing of them", None),
    ],
)
def test_an_error_tells_where_its_option_is_set(message: str, named: str | None) -> None:
    given = arguments({"run_seconds": (None, FILE), "rate": (None, "SSBENCH_RATE")})
    text = settings.describe_option_sources(given, message)
    if named is None:
        assert not text
    else:
        where = {"run-seconds": FILE, "rate": "SSBENCH_RATE"}[named]
        assert text.startswith(f" (--{named} is set by {where}; the command line")


def test_an_error_may_be_of_two_options() -> None:
    given = arguments({"ab": (None, FILE), "web": (None, "SSBENCH_WEB")})
    text = settings.describe_option_sources(given, "--web does not fit --ab")
    assert f"--ab is set by {FILE}; --web is set by SSBENCH_WEB; " in text


def test_where_nothing_is_set_elsewhere_there_is_nothing_to_say() -> None:
    assert not settings.describe_option_sources(arguments(), "--web is wrong")
    settings.ignore_options(arguments(web=1), "why", "--web")
