"""``ssbench-master config``: which options are set, and where."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Literal

from ssbench.base.errors import ExitCode
from ssbench.base.record import Head, Record
from ssbench.base.suggestions import did_you_mean
from ssbench.cli import json_output, settings
from ssbench.cli.output_file import standard_output
from ssbench.cli.parser import Parser

EXAMPLE = "ssbench-master config run-scenario --all"

_NOTHING = "Nothing is set: every option has its default."

DESCRIPTION = (
    "Show the options that ssbench.toml, pyproject.toml or variables set, and where each is from. The command"
    " line wins over a variable, that over a file, that over the default; see doc/configuration.rst."
)


class Option(Record, frozen=True, kw_only=False):
    """An option of a sub-command: its value, where that is from (null: the default), and its variable."""

    command: str
    name: str
    value: bool | int | float | str | list[Any] | None
    source: str | None
    variable: str


class Report(Head, frozen=True, kw_only=True):
    """The options that are set; with ``--all`` every one."""

    format: Literal["ssbench settings"] = "ssbench settings"
    version: Literal[1] = 1
    options: tuple[Option, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument(
        "command", metavar="SUBCOMMAND", nargs="?", help="one sub-command, or worker (default: all)"
    )
    parser.add_argument(
        "--all", action="store_true", help="show every option, with its default and its variable"
    )
    json_output.add_arguments(parser)


def run(arguments: argparse.Namespace) -> ExitCode:
    """Print them; raises UsageError for a wrong name or value."""
    from ssbench.cli import master

    json_output.check(arguments)
    parsers = master.parsers()
    if arguments.command is not None and arguments.command not in parsers:
        arguments.refuse(
            f"{arguments.command!r} is not one of {', '.join(parsers)}"
            f"{did_you_mean(arguments.command, parsers)}"
        )
    options: list[Option] = []
    for command, parser in parsers.items():
        if arguments.command in {None, command}:
            found = settings.find(command, parser, lambda: parsers, os.environ)
            settings.apply(parser, found)
            options += _options(command, parser, found, every=arguments.all)
    if not json_output.alone(arguments):
        with standard_output() as out:
            out.writelines(f"{line}\n" for line in _lines(options) or [_NOTHING])
    json_output.write(arguments, Report(options=tuple(options)))
    return ExitCode.OK


def _options(
    command: str, parser: Parser, found: Mapping[str, settings.Setting], *, every: bool
) -> Iterator[Option]:
    """Yield the options of a sub-command that are set, or all."""
    for name, action in settings.settable(parser).items():
        variable = settings.variable(name)
        if name in found:
            yield Option(command, name, _plain(found[name].value), found[name].source, variable)
        elif every:
            default = None if action.default in (False, argparse.SUPPRESS) else _plain(action.default)
            yield Option(command, name, default, None, variable)


def _lines(options: Iterable[Option]) -> list[str]:
    """Return a heading for each sub-command, and a line for each option: value, and where that is from."""
    lines: list[str] = []
    for command, own in groupby(options, lambda option: option.command):
        rows = [
            (
                each.name if each.value is None else f"{each.name} = {_spell(each.value)}",
                each.source or f"default; {each.variable}",
            )
            for each in own
        ]
        width = max(len(text) for text, _ in rows)
        lines += [f"[{command}]", *(f"{text:<{width}}  # {source}" for text, source in rows), ""]
    return lines


def _plain(value: object) -> Any:
    """Return a value as JSON and TOML have it; what they do not have is a text."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_plain(each) for each in value]
    return str(value)


def _spell(value: object) -> str:
    """Return a value as TOML has it."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float():
            short = f"{value:g}"
            return short if float(short) == value else repr(value)
        case list() | tuple():
            return f"[{', '.join(map(_spell, value))}]"
    # Escapes of JSON are some of TOML's; DEL is to be escaped there too.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
