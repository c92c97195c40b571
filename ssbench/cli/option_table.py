"""Arguments of the command line for options (:mod:`ssbench.base.option`), and records from their values."""

from __future__ import annotations

import argparse
from collections.abc import Container
from typing import Any

from ssbench.base.option import OptionGroup, OptionRow, OptionUnit, list_options
from ssbench.cli import options
from ssbench.cli.parser import set_completion_kind
from ssbench.run.options import RunOptions
from ssbench.store.request_options import RequestOptions

_METAVARS = {
    OptionUnit.SECONDS: "SECONDS",
    OptionUnit.BYTES: "BYTES",
    OptionUnit.NUMBER: "N",
    OptionUnit.LABEL: "LABEL",
}


def add_option_arguments(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup,
    record: type,
    which: OptionGroup | Container[str],
) -> None:
    """Add the options of a record that are in a group, or those of some names, in the order of its fields."""
    for name, row in list_options(record).items():
        if row.option.group is which if isinstance(which, OptionGroup) else name in which:
            _add_option_argument(parser, row)


def _add_option_argument(parser: argparse.ArgumentParser | argparse._ArgumentGroup, row: OptionRow) -> None:
    option = row.option
    spellings = [*([option.letter] if option.letter else []), row.flag]
    if option.unit is OptionUnit.FLAG:
        action = "store_false" if row.turns_off else "store_true"
        parser.add_argument(*spellings, dest=row.name, action=action, help=option.help)
        return
    argument = parser.add_argument(
        *spellings,
        dest=row.name,
        metavar=option.metavar or _METAVARS[option.unit],
        type=_choose_type(row),
        default=row.default,
        help=option.help + _describe_default(row),
    )
    if option.unit is OptionUnit.LABEL:
        set_completion_kind(argument, "labels")


def _choose_type(row: OptionRow) -> Any:
    """Return what argparse calls to read a value."""
    if row.option.parse is not None:
        return options.make_argument_type(row.option.parse)
    match row.option.unit:
        case OptionUnit.SECONDS:
            return options.positive_seconds if row.above is not None else options.seconds_or_0
        case OptionUnit.BYTES:
            return options.positive_size
        case OptionUnit.LABEL:
            return options.parse_label
    return options.positive_int if row.least else options.non_negative_int


def _describe_default(row: OptionRow) -> str:
    """Return the end of the help."""
    if row.option.default is not None:
        return f" (default: {row.option.default})"
    return "" if row.default is None else f" (default: {row.default:g})"


def read_option_values(record: type, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the values of all options of a record, by the names of their fields."""
    return {name: getattr(arguments, name) for name in list_options(record)}


def read_known_option_values(record: type, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the values of those options of a record that the command has."""
    return {name: getattr(arguments, name) for name in list_options(record) if hasattr(arguments, name)}


def add_request_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``run-scenario`` for requests: timeouts, retries, checks, how many may fail."""
    group = parser.add_argument_group("requests")
    for record in (RequestOptions, RunOptions):
        add_option_arguments(group, record, OptionGroup.REQUESTS)
