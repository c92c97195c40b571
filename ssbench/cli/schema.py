"""``ssbench-master schema``: the JSON Schema of what other sub-commands write."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from ssbench.base.errors import ExitCode
from ssbench.cli.asked import Asked
from ssbench.cli.output_file import open_standard_output
from ssbench.reports.products import JSON_KINDS

EXAMPLE = "ssbench-master schema report > report-schema.json"

DESCRIPTION = (
    "Print the JSON Schema (draft 2020-12) of what --json of a sub-command writes, with the unit of each"
    " field. Without a name: list the kinds of JSON."
)


@dataclass(frozen=True, kw_only=True)
class SchemaAsked(Asked):
    """What the command is asked."""

    kind: str | None


ASKED = SchemaAsked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument(
        "kind", nargs="?", choices=tuple(JSON_KINDS), metavar="KIND", help=", ".join(JSON_KINDS)
    )


def run(asked: SchemaAsked) -> ExitCode:
    """Print it."""
    from ssbench.base.record import format_json_schema
    from ssbench.reports.products import find_record_class

    if asked.kind is None:
        width = max(map(len, JSON_KINDS))
        text = "".join(f"{name:<{width}}  {options}\n" for name, (options, _) in JSON_KINDS.items())
    else:
        text = format_json_schema(find_record_class(asked.kind))
    with open_standard_output() as out:
        out.write(text)
    return ExitCode.OK
