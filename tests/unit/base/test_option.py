"""Options as a table: what follows from a field that is annotated as one."""

from __future__ import annotations

import argparse
import dataclasses
from dataclasses import dataclass
from typing import Annotated

import msgspec
import pytest
from msgspec import Meta, Struct, structs
from said import ABOVE_ZERO

from ssbench.base.errors import UsageError
from ssbench.base.option import (
    Option,
    OptionGroup,
    OptionScope,
    OptionUnit,
    check_option_bounds,
    list_options,
    record_options,
)
from ssbench.cli import master, option_table
from ssbench.fleet.wire import RunParameters
from ssbench.run.bench_options import BenchOptions, RunOptions
from ssbench.run.bench_options import recorded_options as recorded_of_run
from ssbench.run.group_run import make_run_parameters
from ssbench.scenario.scenario_reading import read_scenario
from ssbench.store.http.client import ClientSettings
from ssbench.store.request_options import RequestOptions

Time = Annotated[float, Meta(gt=0, le=100)]


class Limit(str):
    __slots__ = ()


class Example(Struct, frozen=True, array_like=True, kw_only=True):
    """Every kind of option, with a field that is none."""

    other: int = 1
    wait: Annotated[Time, Option(help="time to wait", unit=OptionUnit.SECONDS, letter="-w")] = 2.5
    whole: Annotated[
        Time | None, Option(help="time for all", unit=OptionUnit.SECONDS, default="twice --wait")
    ] = None
    pause: Annotated[
        float,
        Meta(ge=0),
        Option(help="time between", unit=OptionUnit.SECONDS, scope=OptionScope.ONE_RUN),
    ] = 0.0
    block: Annotated[int, Meta(ge=1), Option(help="bytes at once", unit=OptionUnit.BYTES)] = 4096
    again: Annotated[int, Meta(ge=0), Option(help="retries", unit=OptionUnit.NUMBER, kept=False)] = 3
    most: Annotated[int | None, Meta(ge=1), Option(help="at most", unit=OptionUnit.NUMBER)] = None
    limit: Annotated[
        Limit | None, Option(help="a limit", unit=OptionUnit.NUMBER, default="never", parse=Limit)
    ] = None
    check: Annotated[bool, Option(help="check it", unit=OptionUnit.FLAG, letter="-c")] = False
    hidden: Annotated[int, Option(help="of programs", unit=OptionUnit.NUMBER, on_command_line=False)] = 7


def parsed(*words: str) -> Example:
    parser = argparse.ArgumentParser()
    option_table.add_record_options(parser, Example, OptionGroup.REQUESTS)
    return Example(**option_table.read_option_values(Example, vars(parser.parse_args(words))))


def test_arguments_follow_from_the_fields() -> None:
    assert parsed() == Example()
    words = ["-w", "1m", "--whole=200ms", "--pause=0", "--block=4K", "--again=0", "--most=1", "--limit=x"]
    given = parsed(*words, "-c")
    assert structs.astuple(given) == (1, 60.0, 0.2, 0.0, 4096, 0, 1, "x", True, 7)


@pytest.mark.parametrize(
    "wrong", ["--wait=0", "--pause=-1", "--most=0", "--again=-1", "--block=0", "--again=x"]
)
def test_bounds_follow_from_the_fields(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(wrong)
    assert f"argument {wrong.partition('=')[0]}" in capsys.readouterr().err.replace("-w/", "")


def test_the_help_follows_from_the_fields_for_commands_of_their_scope() -> None:
    parser = argparse.ArgumentParser()
    option_table.add_record_options(parser, Example, OptionGroup.REQUESTS, OptionScope.MANY_RUNS)
    # From Python 3.13 on, a value is shown once for both names of an option.
    text = " ".join(parser.format_help().split()).replace("-w SECONDS, ", "-w, ")
    for line in (
        "-w, --wait SECONDS time to wait (default: 2.5)",
        "--whole SECONDS time for all (default: twice --wait)",
        "--most N at most --limit",
        "--limit N a limit (default: never)",
    ):
        assert line in text
    assert "--pause" not in text


def test_each_option_of_a_run_is_on_the_command_line_under_its_heading() -> None:
    """A field without an argument would end each run with an AttributeError."""
    parser = master.parser(["run-scenario"])
    (commands,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    groups = {each.title: each for each in commands.choices["run-scenario"]._action_groups}
    for record in (RequestOptions, RunOptions):
        for row in list_options(record).values():
            shown = [action.dest for action in groups[row.option.group.value]._group_actions]
            assert (row.name in shown) is row.option.on_command_line


def test_a_program_is_told_what_is_out_of_bounds_by_the_name_of_the_field() -> None:
    check_option_bounds(Example())
    for wrong, said in (
        ({"wait": 0.0}, f"wait: {ABOVE_ZERO}, not 0.0"),
        ({"whole": float("nan")}, f"whole: {ABOVE_ZERO}, not nan"),
        ({"most": 0}, "most: expected 1 or more, not 0"),
        ({"wait": 100.5}, "wait: expected 100 or less, not 100.5"),
    ):
        with pytest.raises(UsageError, match=f"^{said}$"):
            check_option_bounds(Example(**wrong))


def test_no_option_of_requests_is_more_than_workers_take() -> None:
    """They would drop every job, for what the master sent."""
    with pytest.raises(UsageError, match=r"^block_size: expected 1073741824 or less, not 1073741825$"):
        RunOptions(requests=RequestOptions(block_size=2**30 + 1))
    RunOptions(requests=RequestOptions(block_size=2**30))


def test_what_the_stat_file_keeps() -> None:
    kept = record_options(Example(limit=Limit("5%"), other=9))
    assert kept.keys() == list_options(Example).keys() - {"again"}
    assert kept["limit"] == "5%"
    assert type(record_options(Example(most=True))["most"]) is bool


def test_a_dataclass_has_options_too() -> None:
    @dataclass
    class Record:
        most: int = 0

    assert list_options(Record) == {}
    assert {"seed", "noop", "label"} <= list_options(RunOptions).keys()
    assert list_options(RunOptions)["worker_timeout"].default == 60.0


def test_an_option_of_requests_is_known_wherever_it_is_needed() -> None:
    """The command line, the wire, the client and the stat file have every field, under one name."""
    names = {field.name for field in structs.fields(RequestOptions)}
    assert names == list_options(RequestOptions).keys()
    different = RequestOptions(
        **{
            row.name: row.default + 7 if row.default is not None else 7.0
            for row in list_options(RequestOptions).values()
        }
        | {"resolve": "swift=10.0.0.1"}
    )
    words = ["run-scenario", "-f", "small"]
    of_line = [row for row in list_options(RequestOptions).values() if row.option.on_command_line]
    values = {row.flag: getattr(different, row.name) for row in of_line}
    words += [f"{flag}={value if isinstance(value, str) else f'{value:g}'}" for flag, value in values.items()]
    arguments = master.parser(words).parse_args(words)
    read = option_table.read_option_values(RequestOptions, vars(arguments))
    assert read == {row.name: getattr(different, row.name) for row in of_line}
    options = RunOptions(requests=different)
    sent = make_run_parameters(1, None, read_scenario("small"), options, ())
    received = msgspec.msgpack.decode(msgspec.msgpack.encode(sent), type=RunParameters)
    settings = ClientSettings(**structs.asdict(received.requests), max_connections=2)
    kept = recorded_of_run(BenchOptions(workers=1), options, None)
    for name in names:
        assert (
            getattr(settings, name)
            == kept[name]
            == getattr(different, name)
            != getattr(RequestOptions(), name)
        )


def test_options_of_the_command_line_have_the_defaults_of_the_record() -> None:
    words = ["run-scenario", "-f", "small"]
    arguments = master.parser(words).parse_args(words)
    options = RunOptions(**option_table.read_option_values(RunOptions, vars(arguments)))
    assert options == RunOptions()
    assert dataclasses.replace(options, noop=True).noop
