"""Arguments of the command line for options (:mod:`ssbench.base.option`), and records from their values."""

from __future__ import annotations

import argparse
from collections.abc import Container
from typing import Any

from ssbench.base.option import Group, Row, Unit, table
from ssbench.cli import options
from ssbench.cli.parser import completes
from ssbench.run.options import RunOptions
from ssbench.store.request_options import RequestOptions

_METAVARS = {Unit.SECONDS: "SECONDS", Unit.BYTES: "BYTES", Unit.NUMBER: "N", Unit.LABEL: "LABEL"}


def add(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup, record: type, which: Group | Container[str]
) -> None:
    """Add the options of a record that are in a group, or those of some names, in the order of its fields."""
    for name, row in table(record).items():
        if row.option.group is which if isinstance(which, Group) else name in which:
            _add(parser, row)


def _add(parser: argparse.ArgumentParser | argparse._ArgumentGroup, row: Row) -> None:
    option = row.option
    spellings = [*([option.letter] if option.letter else []), row.flag]
    if option.unit is Unit.FLAG:
        action = "store_false" if row.turns_off else "store_true"
        parser.add_argument(*spellings, dest=row.name, action=action, help=option.help)
        return
    argument = parser.add_argument(
        *spellings,
        dest=row.name,
        metavar=option.metavar or _METAVARS[option.unit],
        type=_type(row),
        default=row.default,
        help=option.help + _default(row),
    )
    if option.unit is Unit.LABEL:
        completes(argument, "labels")


def _type(row: Row) -> Any:
    """Return what argparse calls to read a value."""
    if row.option.parse is not None:
        return options.parsed(row.option.parse)
    match row.option.unit:
        case Unit.SECONDS:
            return options.seconds if row.above is not None else options.seconds_or_0
        case Unit.BYTES:
            return options.size
        case Unit.LABEL:
            return options.label
    return options.positive_int if row.least else options.non_negative_int


def _default(row: Row) -> str:
    """Return the end of the help."""
    if row.option.default is not None:
        return f" (default: {row.option.default})"
    return "" if row.default is None else f" (default: {row.default:g})"


def values(record: type, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the values of all options of a record, by the names of their fields."""
    return {name: getattr(arguments, name) for name in table(record)}


def table_of(record: type, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the values of those options of a record that the command has."""
    return {name: getattr(arguments, name) for name in table(record) if hasattr(arguments, name)}


def add_request_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``run-scenario`` for requests: timeouts, retries, checks, how many may fail."""
    group = parser.add_argument_group("requests")
    for record in (RequestOptions, RunOptions):
        add(group, record, Group.REQUESTS)
