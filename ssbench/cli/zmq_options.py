"""Options of the two sockets, shared by the sub-commands that talk to workers."""

from __future__ import annotations

import argparse
import logging
import os
from pathlib import Path

from ssbench.cli.options import port
from ssbench.errors import UsageError
from ssbench.fleet import key as fleet_key
from ssbench.fleet.sockets import (
    DEFAULT_RESULTS_PORT,
    DEFAULT_WORK_PORT,
    BindAddress,
    MasterSockets,
    is_loopback,
)

_log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser, default_ip: str) -> None:
    """Add the options; ``default_ip`` is for the help."""
    group = parser.add_argument_group("workers")
    group.add_argument("--zmq-bind-ip", metavar="IP", help=f"where both sockets bind ({default_ip})")
    group.add_argument(
        "--zmq-work-port",
        metavar="PORT",
        type=port,
        help=f"port of the work socket ({DEFAULT_WORK_PORT})",
    )
    group.add_argument(
        "--zmq-results-port",
        metavar="PORT",
        type=port,
        help=f"port of the results socket ({DEFAULT_RESULTS_PORT})",
    )
    group.add_argument(
        "--zmq-key",
        metavar="FILE",
        type=Path,
        help="key file of a sealed fleet, the same on every worker; 'keygen' makes one (SSBENCH_ZMQ_KEY)",
    )


def key_file(arguments: argparse.Namespace) -> Path | None:
    """The key file of the options or of the environment."""
    variable = os.environ.get("SSBENCH_ZMQ_KEY")
    return arguments.zmq_key or (Path(variable) if variable else None)


def any_given(arguments: argparse.Namespace) -> bool:
    """Whether one of the options was given, so that workers from elsewhere may be meant to come."""
    names = ("zmq_bind_ip", "zmq_work_port", "zmq_results_port", "zmq_key")
    return any(getattr(arguments, name) is not None for name in names)


def address(arguments: argparse.Namespace, default_ip: str, folder: str | None = None) -> BindAddress:
    """Where the options say to listen, and in a private folder too; raises UsageError."""
    work_port = arguments.zmq_work_port or DEFAULT_WORK_PORT
    results_port = arguments.zmq_results_port or DEFAULT_RESULTS_PORT
    if work_port == results_port:
        raise UsageError(f"both sockets cannot have port {work_port}")
    return BindAddress(arguments.zmq_bind_ip or default_ip, work_port, results_port, folder)


def bind(arguments: argparse.Namespace, where: BindAddress) -> MasterSockets:
    """Bind both sockets; one warning when anybody on the network could use them."""
    path = key_file(arguments)
    key = fleet_key.read(path) if path else None
    sockets = MasterSockets(where, key)
    if key is None and where.ip is not None and not is_loopback(where.ip):
        _log.warning(
            "Anybody who reaches %s can take jobs and the token: seal the fleet with"
            " 'ssbench-master keygen FILE' and --zmq-key FILE on every side",
            where.ip,
        )
    return sockets
