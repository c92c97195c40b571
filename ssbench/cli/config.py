"""``ssbench-master config``: which options are set, and where."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, NoReturn

from ssbench.base.errors import ExitCode, did_you_mean
from ssbench.base.record import JsonHead, JsonRecord
from ssbench.cli import options as cli_options
from ssbench.cli import settings
from ssbench.cli.options import Argument, JsonAsked, ValueKind, add_options
from ssbench.cli.output_file import open_standard_output
from ssbench.cli.parser import Parser

EXAMPLE = "ssbench-master config run-scenario --all"

_NOTHING_SET_TEXT = "Nothing is set: every option has its default."

DESCRIPTION = (
    "Show the options that ssbench.toml, pyproject.toml or variables set, and where each is from. The command"
    " line wins over a variable, a variable over a file, and a file over the default; see"
    " doc/configuration.rst."
)


class ConfiguredOption(JsonRecord, frozen=True, kw_only=False):
    """An option of a sub-command: its value, where that is from (null: the default), and its variable."""

    command: str
    name: str
    value: bool | int | float | str | list[Any] | None
    source: str | None
    variable: str


class ConfigReport(JsonHead, frozen=True, kw_only=True):
    """The options that are set; with ``--all`` every one."""

    format: Literal["ssbench settings"] = "ssbench settings"
    version: Literal[1] = 1
    options: tuple[ConfiguredOption, ...]


@dataclass(frozen=True, kw_only=True)
class ConfigAsked(JsonAsked):
    """What the command is asked."""

    command: str | None
    all: bool
    refuse: Callable[[str], NoReturn]


ASKED = ConfigAsked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    add_options(
        parser,
        Argument(
            "command",
            ValueKind("SUBCOMMAND"),
            "one sub-command, or worker",
            default_text="all",
            settings={"nargs": "?"},
        ),
        Argument("--all", None, "show every option, with its default and its variable"),
        *cli_options.JSON_OPTIONS,
    )


def run(asked: ConfigAsked) -> ExitCode:
    """Print them; raises UsageError for a wrong name or value."""
    from ssbench.cli import master

    cli_options.check_json_output(asked)
    parsers = master.make_command_parsers()
    if asked.command is not None and asked.command not in parsers:
        asked.refuse(
            f"{asked.command!r} is not one of {', '.join(parsers)}{did_you_mean(asked.command, parsers)}"
        )
    options: list[ConfiguredOption] = []
    for command, parser in parsers.items():
        if asked.command in {None, command}:
            found = settings.find_settings(command, parser, lambda: parsers, os.environ)
            settings.apply_settings(parser, found)
            options += _list_options(command, parser, found, every=asked.all)
    if not cli_options.is_json_alone(asked):
        with open_standard_output() as out:
            out.writelines(f"{line}\n" for line in _format_options(options) or [_NOTHING_SET_TEXT])
    cli_options.write_json_output(asked, ConfigReport(options=tuple(options)))
    return ExitCode.OK


def _list_options(
    command: str, parser: Parser, found: Mapping[str, settings.Setting], *, every: bool
) -> Iterator[ConfiguredOption]:
    """Yield the options of a sub-command that are set, or all."""
    for name, action in settings.list_settable_options(parser).items():
        variable = settings.format_variable_name(name)
        if name in found:
            yield ConfiguredOption(
                command, name, _make_plain_value(found[name].value), found[name].source, variable
            )
        elif every:
            default = (
                None if action.default in (False, argparse.SUPPRESS) else _make_plain_value(action.default)
            )
            yield ConfiguredOption(command, name, default, None, variable)


def _format_options(options: Iterable[ConfiguredOption]) -> list[str]:
    """Return a heading for each sub-command, and a line for each option: value, and where that is from."""
    lines: list[str] = []
    for command, own in groupby(options, lambda option: option.command):
        rows = [
            (
                each.name if each.value is None else f"{each.name} = {_format_toml_value(each.value)}",
                each.source or f"default; {each.variable}",
            )
            for each in own
        ]
        width = max(len(text) for text, _ in rows)
        lines += [f"[{command}]", *(f"{text:<{width}}  # {source}" for text, source in rows), ""]
    return lines


def _make_plain_value(value: object) -> Any:
    """Return a value as JSON and TOML have it; what they do not have is a text."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_make_plain_value(each) for each in value]
    return str(value)


def _format_toml_value(value: object) -> str:
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
            return f"[{', '.join(map(_format_toml_value, value))}]"
    # Escapes of JSON are some of TOML's; DEL is to be escaped there too.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
