"""``ssbench-master keygen``: make a key file: only workers that have it can connect."""

from __future__ import annotations

import argparse
import logging
from dataclasses import dataclass
from pathlib import Path

from ssbench.base.errors import ExitCode
from ssbench.cli.asked import Asked
from ssbench.cli.options import FILE, Argument, ValueKind, add_options, read_by

_log = logging.getLogger(__name__)

EXAMPLE = "ssbench-master keygen fleet.key"

DESCRIPTION = (
    "Write a new key file, readable by its owner only; an existing file is never overwritten. Copy it to"
    " every host of the fleet and pass it to ssbench-master and ssbench-worker with --zmq-key FILE or in"
    " SSBENCH_ZMQ_KEY. What they send is then encrypted, and without the file a worker gets no jobs"
    " and cannot submit results: the fleet is sealed. With --worker each worker gets a file of its own, which"
    " can be revoked, and FILE stays with the master."
)


@dataclass(frozen=True, kw_only=True)
class KeygenAsked(Asked):
    """What the command is asked."""

    file: Path
    worker: str | None
    revoke: str | None


ASKED = KeygenAsked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    add_options(
        parser, Argument("file", FILE, "file to write; with --worker or --revoke, that of the master")
    )
    name = ValueKind("NAME", read_by("fleet.keys", "check_key_name"))
    add_options(
        parser.add_mutually_exclusive_group(),
        Argument(
            "--worker",
            name,
            "write a key of one worker to NAME.key beside FILE, and add it to the list FILE.allowed; once"
            " that exists, the master accepts the keys in it and no others",
        ),
        Argument(
            "--revoke",
            name,
            "remove the key of one worker from the list; SIGHUP lets a running master read it again",
        ),
    )


def run(asked: KeygenAsked) -> ExitCode:
    """Write the file; raises KeyFileError when it exists or cannot be written."""
    from ssbench.fleet import keys

    if asked.worker:
        path = keys.write_worker_key(asked.file, asked.worker)
        _log.info(
            "Wrote %s; move it to the host of that worker. %s has its public half, which a running"
            " master reads on SIGHUP",
            path,
            keys.allowed_list_path(asked.file),
        )
    elif asked.revoke:
        keys.revoke_worker_key(keys.allowed_list_path(asked.file), asked.revoke)
        _log.info("The key of %s is revoked; a running master learns it on SIGHUP", asked.revoke)
    else:
        keys.write_fleet_key(asked.file)
        _log.info("Wrote %s; copy it to every host of the fleet, readable by its user only", asked.file)
    return ExitCode.OK
