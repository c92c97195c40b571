"""What commands are asked: a record of each, and what is left out of it."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from asked_commands import ask

from ssbench.base.errors import UsageError
from ssbench.cli import master, worker_options
from ssbench.cli.asked import (
    Asked,
    LeftOut,
    UnfitOptions,
    _find_path,
    fit_options,
    get_value,
    make_asked,
    replace_value,
)
from ssbench.cli.parser import Origin, ValueSource

FILE = ValueSource(Origin.FILE, "/etc/ssbench.toml")
LINE = ValueSource(Origin.LINE)


@dataclass(frozen=True, kw_only=True)
class Inner:
    web: int | None = None


@dataclass(frozen=True, kw_only=True)
class Example(Asked):
    html: Path | None = None
    fail_if: Sequence[Any] | Any = ()
    inner: Inner = field(default_factory=Inner)


def fit(asked: Example, *flags: str, **changes: Any) -> Example:
    row: UnfitOptions[Example, None] = UnfitOptions(flags, "a table", lambda _, __: True, **changes)
    return fit_options(asked, [row], None)


@pytest.mark.parametrize("value", [Path("x"), "x", 0, 0.0, "", True, ["x"]])
def test_what_the_command_line_has_is_refused(value: object) -> None:
    """A number that is 0 was given too."""
    with pytest.raises(UsageError, match=r"^a table: leave out --fail-if$"):
        fit(Example(fail_if=value, sources={"fail_if": LINE}), "--html", "--fail-if")
    with pytest.raises(UsageError, match=r"^no$"):
        fit(Example(fail_if=value, sources={"fail_if": LINE}), "--fail-if", refusal="no")
    asked = Example(fail_if=value, sources={"fail_if": LINE})
    assert fit(asked, "--fail-if", is_refused=False) is asked


@pytest.mark.parametrize("value", [None, False, []])
def test_what_was_not_given_is_not_refused(value: object) -> None:
    asked = Example(fail_if=value, sources={"fail_if": LINE})
    assert fit(asked, "--fail-if", "--html") is asked


def test_what_is_set_elsewhere_is_left_out_of_a_new_record(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    sources = {"web": FILE._replace(default=7), "html": ValueSource(Origin.VARIABLE, "SSBENCH_HTML")}
    asked = Example(html=Path("x"), inner=Inner(web=1), sources=sources)
    found = fit(asked, "--html", "--web")
    assert (found.html, found.inner.web) == (None, 7)
    assert (asked.html, asked.inner.web) == (Path("x"), 1)
    assert found.left_out == (
        LeftOut("SSBENCH_HTML", "--html", "a table"),
        LeftOut("/etc/ssbench.toml", "--web", "a table"),
    )
    assert caplog.messages == [
        "SSBENCH_HTML: --html is ignored: a table",
        "/etc/ssbench.toml: --web is ignored: a table",
    ]
    assert found.find_source("web") == ValueSource()
    assert fit(asked, "--html", is_ignored=False) is asked
    # What was said of one way to run is not said of the other one again.
    caplog.clear()
    fit(dataclasses.replace(asked, left_out=found.left_out), "--html")
    assert not caplog.messages


def test_what_a_file_sets_to_its_default_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    asked = Example(sources={"html": FILE})
    assert fit(asked, "--html") is asked
    assert not caplog.messages


def test_what_does_not_fit_the_scenario_is_of_the_scenario() -> None:
    row: UnfitOptions[Example, str] = UnfitOptions(
        ("--html",), "why", lambda _, subject: subject == "s", origin=Origin.SCENARIO
    )
    asked = Example(html=Path("x"), sources={"html": FILE})
    assert fit_options(asked, [row], "other") is asked
    assert fit_options(asked, [row], "s").find_source("html").origin is Origin.SCENARIO


def test_values_are_found_by_the_names_of_options() -> None:
    asked = Example(inner=Inner(web=3))
    assert (get_value(asked, "web"), get_value(asked, "none")) == (3, None)
    assert replace_value(asked, "web", 4) == Example(inner=Inner(web=4))


#: What the parser needs for itself.
OF_THE_PARSER = {"help", "help_all", "module", "refuse", "refuse_unknown", "version"}

#: What scripts of ssbench 0.x give a worker, without effect.
IGNORED = {"worker": {"batch_size"}}


def list_commands() -> Mapping[str, set[str]]:
    parsers = master.find_sub_parsers(master.parser(list(master.COMMANDS)))
    options = {name: {each.dest for each in parser._actions} for name, parser in parsers.items()}
    return options | {"worker": {each.dest for each in worker_options.parser()._actions}}


@pytest.mark.parametrize("command", [*master.COMMANDS, "worker"])
def test_each_option_of_a_command_is_in_its_record(command: str) -> None:
    """An option that is in no record would be parsed and have no effect."""
    needed = {
        "attribute": ["--swift-logs", "x"],
        "compare": ["x"],
        "keygen": ["x"],
        "merge": ["x", "-o", "y"],
        "traffic": ["x"],
    }.get(command, [])
    if command == "worker":
        made: Any = make_asked(worker_options.WorkerAsked, vars(worker_options.parser().parse_args([])))
    else:
        made = ask(command, *needed)
    auth = {f"auth_option_{name}" for name in getattr(made, "auth_values", ())}
    names = list_commands()[command] - OF_THE_PARSER - IGNORED.get(command, set()) - auth
    assert [name for name in names if not _find_path(made, name)] == []


@pytest.mark.parametrize("command", ["run-scenario", "suite", "noise", "prepare"])
def test_nobody_can_write_to_what_was_asked(command: str) -> None:
    asked = ask(command)
    with pytest.raises(dataclasses.FrozenInstanceError):
        asked.workers = 2
    assert asked.find_source("workers").origin is Origin.DEFAULT
    assert ask(command, "--workers", "2").find_source("workers").origin is Origin.LINE
