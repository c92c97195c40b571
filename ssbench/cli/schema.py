"""``ssbench-master schema``: the JSON Schema of what other sub-commands write."""

from __future__ import annotations

import argparse

from ssbench.base.errors import ExitCode
from ssbench.cli.output_file import standard_output
from ssbench.reports.schemas import KINDS

EXAMPLE = "ssbench-master schema report > report-schema.json"

DESCRIPTION = (
    "Print the JSON Schema (draft 2020-12) of what --json of a sub-command writes, with the unit of each"
    " field. Without a name: list the kinds of JSON."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("kind", nargs="?", choices=tuple(KINDS), metavar="KIND", help=", ".join(KINDS))


def run(arguments: argparse.Namespace) -> ExitCode:
    """Print it."""
    from ssbench.base.record import schema_text
    from ssbench.reports.schemas import find

    if arguments.kind is None:
        width = max(map(len, KINDS))
        text = "".join(f"{name:<{width}}  {options}\n" for name, (options, _) in KINDS.items())
    else:
        text = schema_text(find(arguments.kind))
    with standard_output() as out:
        out.write(text)
    return ExitCode.OK
