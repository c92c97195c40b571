"""Where a master listens and its workers connect. Imports no ZeroMQ, so that ``--help`` does without it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

DEFAULT_WORK_PORT = 13579
DEFAULT_RESULTS_PORT = 13580


@dataclass(frozen=True, slots=True)
class BindAddress:
    """Where a master listens.

    Each of the two sockets has a TCP port, a Unix socket in a folder, or both. Through the Unix socket a
    message of a local worker costs the master an eighth less CPU.
    """

    ip: str | None  # where the two TCP ports are; None: there are none
    #: 0: any free port; the sockets know its number.
    work_port: int = DEFAULT_WORK_PORT
    results_port: int = DEFAULT_RESULTS_PORT  # as above
    #: Folder for the Unix sockets, whose names are the numbers of the ports; None: there are none. No other
    #: user may have access to it.
    folder: str | None = None


def format_endpoint(host: str, port: int) -> str:
    """Return ``tcp://host:port``, with brackets around an IPv6 address; or a Unix socket of a folder."""
    if host.startswith("/"):
        return f"ipc://{host}/{port}"
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether other hosts cannot reach a socket that is bound to this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
