"""Limits on open files and connections, and how many are reserved for workers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ssbench.base.errors import UsageError

#: Most workers that a master keeps; strangers can pretend to be any number.
MAX_WORKERS = 4096

#: Descriptors that are kept for our own files and for connections to Swift: at most so many, and at most this
#: part of all.
_MAX_OWN_DESCRIPTORS, _OWN_DIVISOR = 128, 3

#: Connections of the largest fleet, two a worker, and of some that come again while their old ones stand.
_MAX_FLEET_CONNECTIONS = 2 * MAX_WORKERS + 512

#: Descriptors that a relay needs besides those of connections, and the part of all that is left for
#: connections that wait when all the others are taken.
_RELAY_DESCRIPTORS = 16
_WAITING_DIVISOR = 8


#: Fewer descriptors are too few for a program of ours: libraries end it then in the middle of something.
MIN_DESCRIPTORS = 64


def raise_descriptor_limit() -> int:
    """Let the process open as many files as its hard limit allows; returns that number.

    Raises UsageError where these are fewer than :data:`MIN_DESCRIPTORS`.
    """
    import resource  # noqa: PLC0415 - only POSIX has it

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < MIN_DESCRIPTORS:
        raise UsageError(
            f"this process may have no more than {hard} files and connections open, and needs "
            f"{MIN_DESCRIPTORS} at least: raise the limit (ulimit -n)"
        )
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections the process may relay that the ports of a master belong to."""

    descriptors: int  # of a process: of the master, and of this one
    relayed: int  # of each of two ports at once, with one descriptor of the master and two of the process
    ends: int  # of connections that are relayed, two of each, and of those that wait


def share_descriptors(limit: int, used: int) -> ConnectionLimits:
    """Return how many of the master's file descriptors are left for connections.

    The process that relays has the same limit.
    """
    own = min(_MAX_OWN_DESCRIPTORS, limit // _OWN_DIVISOR)
    free = limit - _RELAY_DESCRIPTORS
    most = min(_MAX_FLEET_CONNECTIONS, limit - own - used, (free - limit // _WAITING_DIVISOR) // 2)
    relayed = max(1, most // 2)
    return ConnectionLimits(limit, relayed, free)


def count_descriptors() -> int:
    """Return how many descriptors this process has."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
