"""``ssbench-master config``: which options are set, and where."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping

from ssbench.cli import settings
from ssbench.cli.options import Parser
from ssbench.cli.output_file import standard_output
from ssbench.errors import ExitCode
from ssbench.suggestions import did_you_mean

EXAMPLE = "ssbench-master config run-scenario --all"

DESCRIPTION = (
    "Show the options that ssbench.toml, pyproject.toml or variables set, and where each is from. The command"
    " line wins over a variable, that over a file, that over the default; see doc/configuration.rst."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument(
        "command", metavar="SUBCOMMAND", nargs="?", help="one sub-command, or worker (default: all)"
    )
    parser.add_argument(
        "--all", action="store_true", help="show every option, with its default and its variable"
    )


def run(arguments: argparse.Namespace) -> ExitCode:
    """Print them; raises UsageError for a wrong name or value."""
    from ssbench.cli import master

    parsers = master.parsers()
    if arguments.command is not None and arguments.command not in parsers:
        arguments.refuse(
            f"{arguments.command!r} is not one of {', '.join(parsers)}"
            f"{did_you_mean(arguments.command, parsers)}"
        )
    lines: list[str] = []
    for command, parser in parsers.items():
        if arguments.command in {None, command}:
            found = settings.find(command, parser, lambda: parsers, os.environ)
            settings.apply(parser, found)
            lines += _lines(command, parser, found, every=arguments.all)
    with standard_output() as out:
        out.writelines(f"{line}\n" for line in lines or ["Nothing is set: every option has its default."])
    return ExitCode.OK


def _lines(
    command: str, parser: Parser, found: Mapping[str, settings.Setting], *, every: bool
) -> Iterator[str]:
    """Yield a heading and a line for each option: its value, and where that is from."""
    rows = []
    for name, action in settings.settable(parser).items():
        if name in found:
            rows.append((f"{name} = {_spell(found[name].value)}", found[name].source))
        elif every:
            default = "" if action.default in (None, False, argparse.SUPPRESS) else _spell(action.default)
            rows.append((f"{name} = {default}" if default else name, f"default; {settings.variable(name)}"))
    if rows:
        yield f"[{command}]"
        width = max(len(text) for text, _ in rows)
        yield from (f"{text:<{width}}  # {source}" for text, source in rows)
        yield ""


def _spell(value: object) -> str:
    """Return a value as TOML has it."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return f"{value:g}" if isinstance(value, float) else str(value)
        case list() | tuple():
            return f"[{', '.join(map(_spell, value))}]"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
