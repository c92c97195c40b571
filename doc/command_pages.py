"""A page of reStructuredText for each command, from the parser that the command has."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import NamedTuple

from ssbench.cli import master, worker_options
from ssbench.cli.parser import Parser


class Page(NamedTuple):
    """The page of a command: name of its file without an ending, one line on it, and the text."""

    file: str
    summary: str
    text: str


def pages() -> list[Page]:
    """Return the pages of all commands."""
    summaries = {f"ssbench-master {name}": summary for name, summary in master.COMMANDS.items()}
    summaries["ssbench-master"] = "run scenarios, report on them, clean up after them"
    summaries["ssbench-worker"] = "make the requests that a master asks for"
    whole = master.parser(list(master.COMMANDS))
    parsers = [whole, *master.find_sub_parsers(whole).values(), worker_options.parser()]
    return [Page(each.prog.replace(" ", "-"), summaries[each.prog], _text(each)) for each in parsers]


def _text(parser: Parser) -> str:
    usage = parser.format_usage().removeprefix("usage: ").splitlines()
    lines = [parser.prog, "=" * len(parser.prog), "", f".. program:: {parser.prog}", ""]
    lines += [_plain(parser.description), "", "Example::", "", f"  {parser.example}", ""]
    lines += ["Usage::", "", *(f"  {line.strip()}" for line in usage if line.strip()), ""]
    for group in parser._action_groups:
        shown = [each for each in group._group_actions if each.help != argparse.SUPPRESS]
        if shown:
            title = (group.title or "options").capitalize()
            lines += [title, "-" * len(title), "", _plain(group.description), ""]
            lines += [line for each in shown for line in _option(parser, each)]
    return "\n".join([*lines, _plain(parser.epilog), ""])


def _option(parser: Parser, action: argparse.Action) -> Iterator[str]:
    if isinstance(action, argparse._SubParsersAction):
        for each in action._choices_actions:
            yield from (f"**{parser.prog}-{each.dest}**\\ (1)", f"  {_plain(each.help)}", "")
        return
    formatter = parser._get_formatter()
    value = "" if action.nargs == 0 else f" {formatter._format_args(action, action.dest.upper())}"
    if action.option_strings:
        yield f".. option:: {', '.join(flag + value for flag in action.option_strings)}"
    else:
        yield f".. option:: {formatter._format_args(action, action.dest)}"
    yield ""
    yield f"   {_plain(formatter._expand_help(action))}"
    yield ""


def _plain(text: str | None) -> str:
    """Return a text of the help as reStructuredText: no markup but options and commands as literals."""
    escaped = re.sub(r"([\\*`_|])", r"\\\1", " ".join((text or "").split()))
    # Blanks that are escaped are not shown; without them a literal cannot be beside a letter or "=".
    return re.sub(r"(?<![\w-])(--[a-z][\w-]*)", r"\\ ``\1``\\ ", escaped)
