"""``ssbench-master keygen``: makes the key file of a sealed fleet."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from ssbench.errors import ExitCode

_log = logging.getLogger(__name__)

DESCRIPTION = (
    "Writes a new key file (mode 0600, never over an old one). Copy it to every host of the fleet and"
    " give it to ssbench-master and ssbench-worker with --zmq-key FILE or SSBENCH_ZMQ_KEY: who does not have"
    " it gets no job and can put in no result."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("file", metavar="FILE", type=Path, help="the file to write")


def run(arguments: argparse.Namespace) -> ExitCode:
    """Write the file; raises KeyFileError."""
    from ssbench.fleet import key

    key.write_new(arguments.file)
    _log.info("Wrote %s; copy it to every host of the fleet, readable by its user only", arguments.file)
    return ExitCode.OK
