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
        default=DEFAULT_WORK_PORT,
        help="port of the work socket (%(default)s)",
    )
    group.add_argument(
        "--zmq-results-port",
        metavar="PORT",
        type=port,
        default=DEFAULT_RESULTS_PORT,
        help="port of the results socket (%(default)s)",
    )
    group.add_argument(
        "--zmq-key",
        metavar="FILE",
        type=Path,
        default=os.environ.get("SSBENCH_ZMQ_KEY") or None,
        help="key file of a sealed fleet, the same on every worker; 'keygen' makes one (SSBENCH_ZMQ_KEY)",
    )


def bind(arguments: argparse.Namespace, default_ip: str, folder: str | None = None) -> MasterSockets:
    """Bind both sockets, in a private folder too; one warning when anybody on the network could use them."""
    ip = arguments.zmq_bind_ip or default_ip
    if arguments.zmq_work_port == arguments.zmq_results_port:
        raise UsageError(f"both sockets cannot have port {arguments.zmq_work_port}")
    key = fleet_key.read(arguments.zmq_key) if arguments.zmq_key else None
    address = BindAddress(ip, arguments.zmq_work_port, arguments.zmq_results_port, folder)
    sockets = MasterSockets(address, key)
    if key is None and not is_loopback(ip):
        _log.warning(
            "Anybody who reaches %s can take jobs and the token: seal the fleet with"
            " 'ssbench-master keygen FILE' and --zmq-key FILE on every side",
            ip,
        )
    return sockets
