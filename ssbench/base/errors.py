"""The exceptions of ssbench, in one tree, each with the exit code it leads to.

::

    SsbenchError                 1  the run ended, but something in it failed
    ├── UsageError               2  the command line is wrong
    │   ├── ScenarioError        2  a scenario file is wrong
    │   ├── StatFileError        2  a stat file cannot be read or written
    │   └── KeyFileError         2  a key file of the fleet cannot be used
    ├── ClusterError             3  Swift was unreachable, or refused a request
    │   └── AuthenticationError  3  no token could be obtained
    ├── WorkerError              4  no worker connected, or all of them were lost
    ├── TooManyErrorsError       5  a run failed more operations than it may
    └── WireError                1  a message could not be read
        └── ProtocolError        1  a peer uses another version of the protocol

Mistakes of the user and ordinary failures of a cluster are raised as one of these. The command line prints
the text as one line and exits with the code. A traceback is always a bug. A failed request of the benchmark
is not an exception but data (see :mod:`ssbench.results`).
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
    THRESHOLD = 5
    UNDECIDED = 6
    NOT_DELIVERED = 7
    INTERRUPTED = 130


class SsbenchError(Exception):
    """Base class of all errors; the text is one line for the user."""

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
    """Swift was unreachable, or refused a request that the run needs."""

    exit_code = ExitCode.CLUSTER


class AuthenticationError(ClusterError):
    """The authentication service was unreachable, or refused the request."""


class WorkerError(SsbenchError):
    """No worker connected in time, or all workers were lost."""

    exit_code = ExitCode.WORKERS


class TooManyErrorsError(SsbenchError):
    """More operations failed than a run may (``--max-errors``)."""

    exit_code = ExitCode.THRESHOLD


class WireError(SsbenchError):
    """A message on one of the two sockets is not what :mod:`ssbench.fleet.wire` describes."""


class ProtocolError(WireError):
    """The peer uses another version of the protocol; ``worker`` is its (id, instance) where known."""

    def __init__(self, protocol: int, worker: tuple[int, int] | None = None) -> None:
        super().__init__(f"unknown protocol version {protocol}")
        self.protocol = protocol
        self.worker = worker
