"""The exceptions of ssbench, in one tree, each with the exit code it leads to.

::

    SsbenchError                 1  the run ended, but something in it failed
    ├── UsageError               2  the command line is wrong
    │   ├── ScenarioError        2  a scenario file is wrong
    │   ├── StatFileError        2  a stat file cannot be read or written
    │   └── KeyFileError         2  a key file of the fleet cannot be used
    ├── ClusterError             3  Swift could not be reached or refused
    │   └── AuthenticationError  3  no token could be had
    ├── WorkerError              4  no worker came, or all of them were lost
    └── WireError                1  a message could not be read
        └── ProtocolError        1  a peer speaks another version of the wire

What a user does wrong, or what a cluster does in normal life, ends as one of these; the command
line prints its text as one line and exits with its code. A traceback is always a bug.
A failed request of the benchmark is no exception: it is data (see :mod:`ssbench.results`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What the programs return to the shell; the README documents them."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CLUSTER = 3
    WORKERS = 4
    INTERRUPTED = 130


class SsbenchError(Exception):
    """Root of the tree; its text is one line for the user."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED


class UsageError(SsbenchError):
    """The command line, or a file that it names, is wrong."""

    exit_code = ExitCode.USAGE


class ScenarioError(UsageError):
    """A scenario file is wrong; the text names the file, the key and what was expected."""


class StatFileError(UsageError):
    """A stat file cannot be read, or cannot be written."""


class KeyFileError(UsageError):
    """A key file of the sealed fleet is missing, unsafe or malformed."""


class ClusterError(SsbenchError):
    """Swift could not be reached, or refused what a run cannot do without."""

    exit_code = ExitCode.CLUSTER


class AuthenticationError(ClusterError):
    """The authentication service refused, or could not be reached."""


class WorkerError(SsbenchError):
    """No worker turned up in time, or all workers were lost."""

    exit_code = ExitCode.WORKERS


class WireError(SsbenchError):
    """A message on one of the two sockets is not what :mod:`ssbench.fleet.wire` describes."""


class ProtocolError(WireError):
    """The peer speaks another version of the protocol; ``worker`` is (id, instance) where it said."""

    def __init__(self, protocol: int, worker: tuple[int, int] | None = None) -> None:
        super().__init__(f"protocol version {protocol} is not ours")
        self.protocol = protocol
        self.worker = worker
