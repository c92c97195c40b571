"""The options of the two sockets between a master and its workers, for the parsers of either side."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.base.errors import UsageError
from ssbench.cli.options import port_number
from ssbench.fleet.addresses import DEFAULT_RESULTS_PORT, DEFAULT_WORK_PORT, BindAddress

if TYPE_CHECKING:
    from ssbench.fleet.key import FleetKey


def add_zmq_arguments(parser: argparse.ArgumentParser, default_ip: str) -> None:
    """Add the options of a master; ``default_ip`` is for the help."""
    group = parser.add_argument_group("sockets")
    group.add_argument(
        "--zmq-bind-ip", metavar="IP", help=f"address that both sockets bind to (default: {default_ip})"
    )
    add_shared_zmq_arguments(group)


def add_shared_zmq_arguments(group: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the options that a master and a worker both have."""
    group.add_argument(
        "--zmq-work-port",
        metavar="PORT",
        type=port_number,
        help=f"port of the master's work socket (default: {DEFAULT_WORK_PORT})",
    )
    group.add_argument(
        "--zmq-results-port",
        metavar="PORT",
        type=port_number,
        help=f"port of the master's results socket (default: {DEFAULT_RESULTS_PORT})",
    )
    group.add_argument(
        "--zmq-key",
        metavar="FILE",
        type=Path,
        help="key file that encrypts all messages and lets no worker without it connect, the same on the"
        " master and on every worker; 'ssbench-master keygen' makes one [SSBENCH_ZMQ_KEY]",
    )


def choose_key_file(arguments: argparse.Namespace) -> Path | None:
    """Return the key file of the options or of the environment."""
    variable = os.environ.get("SSBENCH_ZMQ_KEY")
    return arguments.zmq_key or (Path(variable) if variable else None)


def read_chosen_key(arguments: argparse.Namespace) -> FleetKey | None:
    """Read the key file, where there is one; raises KeyFileError."""
    from ssbench.fleet import key

    path = choose_key_file(arguments)
    return key.read_fleet_key(path) if path else None


def has_zmq_options(arguments: argparse.Namespace) -> bool:
    """Return whether an option of a master was given, so that workers of other hosts may connect."""
    names = ["zmq_bind_ip", "zmq_work_port", "zmq_results_port"]
    if "zmq_key" in arguments.given:  # one that a file or a variable names is there for all runs
        names.append("zmq_key")
    return any(getattr(arguments, name) is not None for name in names)


def choose_ports(arguments: argparse.Namespace) -> tuple[int, int]:
    """Return the ports for work and for results; raises UsageError when they are the same."""
    work_port = arguments.zmq_work_port or DEFAULT_WORK_PORT
    results_port = arguments.zmq_results_port or DEFAULT_RESULTS_PORT
    if work_port == results_port:
        raise UsageError(f"--zmq-work-port and --zmq-results-port are both {work_port}")
    return work_port, results_port


def make_bind_address(arguments: argparse.Namespace, default_ip: str) -> BindAddress:
    """Return where a master listens; raises UsageError."""
    return BindAddress(arguments.zmq_bind_ip or default_ip, *choose_ports(arguments))
