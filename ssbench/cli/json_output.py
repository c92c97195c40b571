"""``--json FILE`` of the sub-commands that print a list or log lines: the same as one record."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.base import printable
from ssbench.cli import output_file
from ssbench.cli.options import add_force_option

if TYPE_CHECKING:
    from ssbench.base.record import JsonHead

_log = logging.getLogger(__name__)


def add_json_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the option, and ``--force``."""
    add_json_option(parser)
    add_force_option(parser)


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add the option to a sub-command that has ``--force``."""
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="file for the same as JSON; - is standard output, without other output there (default: none)",
    )


def check_json_output(arguments: argparse.Namespace) -> None:
    """Raise UsageError for a file that cannot be written; to be called before anything is done."""
    if arguments.json is not None:
        output_file.check_output(arguments.json, force=arguments.force)


def is_json_alone(arguments: argparse.Namespace) -> bool:
    """Whether standard output is for JSON, and for nothing else."""
    return arguments.json is not None and output_file.is_standard_output_name(arguments.json)


def write_json_output(arguments: argparse.Namespace, made: JsonHead | Iterable[str]) -> None:
    """Write a record, or its text in parts, into the file that was asked for, if any; raises UsageError."""
    if arguments.json is None:
        return
    from ssbench.base.record import JsonHead, iterate_json

    file, done = arguments.json, output_file.log_written
    with output_file.open_output(
        file, force=arguments.force, clean=printable.escape_in_json, done=done
    ) as out:
        out.writelines(iterate_json(made) if isinstance(made, JsonHead) else made)
