"""``--json FILE`` of the sub-commands that print a list or log lines: the same as one record."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.base import printable
from ssbench.cli import output_file
from ssbench.cli.options import add_force

if TYPE_CHECKING:
    from ssbench.base.record import Head

_log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the option, and ``--force``."""
    add_option(parser)
    add_force(parser)


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add the option to a sub-command that has ``--force``."""
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="file for the same as JSON; - is standard output, without other output there (default: none)",
    )


def check(arguments: argparse.Namespace) -> None:
    """Raise UsageError for a file that cannot be written; to be called before anything is done."""
    if arguments.json is not None:
        output_file.check(arguments.json, force=arguments.force)


def alone(arguments: argparse.Namespace) -> bool:
    """Whether standard output is for JSON, and for nothing else."""
    return arguments.json is not None and output_file.is_standard_output(arguments.json)


def write(arguments: argparse.Namespace, made: Head | Iterable[str]) -> None:
    """Write a record, or its text in parts, into the file that was asked for, if any; raises UsageError."""
    if arguments.json is None:
        return
    from ssbench.base.record import Head, parts

    file, done = arguments.json, output_file.say_written
    with output_file.writing(file, force=arguments.force, clean=printable.in_json, done=done) as out:
        out.writelines(parts(made) if isinstance(made, Head) else made)
