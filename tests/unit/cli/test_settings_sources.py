"""Where an option is set that an error is about."""

from __future__ import annotations

import pytest

from ssbench.cli import settings
from ssbench.cli.parser import Origin, ValueSource

FILE = "/etc/ssbench.toml"
OF_FILE = ValueSource(Origin.FILE, FILE)


def of(variable: str) -> ValueSource:
    return ValueSource(Origin.VARIABLE, variable)


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
    text = settings.describe_option_sources({"run_seconds": OF_FILE, "rate": of("SSBENCH_RATE")}, message)
    if named is None:
        assert not text
    else:
        where = {"run-seconds": FILE, "rate": "SSBENCH_RATE"}[named]
        assert text.startswith(f" (--{named} is set by {where}; the command line")


def test_an_error_may_be_of_two_options() -> None:
    sources = {"ab": OF_FILE, "web": of("SSBENCH_WEB")}
    text = settings.describe_option_sources(sources, "--web does not fit --ab")
    assert f"--ab is set by {FILE}; --web is set by SSBENCH_WEB; " in text


def test_where_nothing_is_set_elsewhere_there_is_nothing_to_say() -> None:
    assert not settings.describe_option_sources({"web": ValueSource(Origin.LINE)}, "--web is wrong")
