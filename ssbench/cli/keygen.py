"""``ssbench-master keygen``: make a key file: only workers that have it can connect."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from ssbench.errors import ExitCode

_log = logging.getLogger(__name__)

EXAMPLE = "ssbench-master keygen fleet.key"

DESCRIPTION = (
    "Write a new key file, readable by its owner only; an existing file is never overwritten. Copy it to"
    " every host of the fleet and pass it to ssbench-master and ssbench-worker with --zmq-key FILE or in"
    " SSBENCH_ZMQ_KEY. What they send is then encrypted, and without the file a worker gets no jobs"
    " and cannot submit results: the fleet is sealed."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("file", metavar="FILE", type=Path, help="file to write")


def run(arguments: argparse.Namespace) -> ExitCode:
    """Write the file; raises KeyFileError when it exists or cannot be written."""
    from ssbench.fleet import key

    key.write_new(arguments.file)
    _log.info("Wrote %s; copy it to every host of the fleet, readable by its user only", arguments.file)
    return ExitCode.OK
