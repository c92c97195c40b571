"""The exit codes of ssbench, and what leads to them: exceptions, in one tree, and gates.

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

from collections.abc import Iterable
from enum import Enum, IntEnum
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


#: Exit codes from the least to the worst: of several that apply, the worst is returned to the shell.
SEVERITY = (
    ExitCode.OK,
    ExitCode.UNDECIDED,
    ExitCode.NOT_DELIVERED,
    ExitCode.FAILED,
    ExitCode.THRESHOLD,
    ExitCode.INTERRUPTED,
    ExitCode.WORKERS,
    ExitCode.CLUSTER,
    ExitCode.USAGE,
)


def choose_worst_code(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the worst exit code, ``OK`` without any."""
    return max(codes, key=SEVERITY.index, default=ExitCode.OK)


class SsbenchError(Exception):
    """Base class of all errors; the text is one line for the user."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED


class UsageError(SsbenchError):
    """The command line, or a file that it names, is wrong."""

    exit_code = ExitCode.USAGE


class ScenarioError(UsageError):
    """A scenario file is wrong; the text names the file, the key and what was expected."""


class LackingStoreError(UsageError):
    """A store does not support an operation of the scenario."""


class StatFileError(UsageError):
    """A stat file cannot be read, or cannot be written."""


class KeyFileError(UsageError):
    """A key file of the sealed fleet is missing, unsafe or malformed."""


class ClusterError(SsbenchError):
    """Swift was unreachable, or refused a request that the run needs."""

    exit_code = ExitCode.CLUSTER


class ContainersError(ClusterError):
    """The containers of a run could not be made, so that it has no objects either."""


class AuthenticationError(ClusterError):
    """The authentication service was unreachable, or refused the request."""


class AuthenticationBusyError(AuthenticationError):
    """There were too many requests; ``seconds`` is when to ask again, None where the answer does not say."""

    def __init__(self, text: str, seconds: float | None) -> None:
        super().__init__(text)
        self.seconds = seconds


class WorkerError(SsbenchError):
    """No worker connected in time, or all workers were lost."""

    exit_code = ExitCode.WORKERS


class TooManyErrorsError(SsbenchError):
    """More operations failed than a run may (``--give-up-after``)."""

    exit_code = ExitCode.THRESHOLD


class WireError(SsbenchError):
    """A message on one of the two sockets is not what :mod:`ssbench.fleet.wire` describes."""


class ProtocolError(WireError):
    """The peer uses another version of the protocol; ``worker`` is its (id, instance) where known."""

    def __init__(self, protocol: int, worker: tuple[int, int] | None = None) -> None:
        super().__init__(f"unknown protocol version {protocol}")
        self.protocol = protocol
        self.worker = worker


# -- gates ---------------------------------------------------------------------------------------


class GateResult(Enum):
    """How a gate ended, a condition such as ``--fail-if``; the value is the word that reports use."""

    PASSED = "ok"
    FAILED = "FAILED"
    UNDECIDED = "undecided"


class Undecided(Enum):
    """What an undecided gate counts as (``--undecided``); the value is how the option spells it."""

    REPORT = "report"
    AS_FAILED = "fail"
    AS_PASSED = "pass"


def combine_gate_results(results: Iterable[GateResult]) -> GateResult:
    """Return what several gates are together: one that failed decides, then one that is undecided."""
    found = set(results)
    return next(
        (each for each in (GateResult.FAILED, GateResult.UNDECIDED) if each in found), GateResult.PASSED
    )


def choose_exit_code(results: Iterable[GateResult], undecided: Undecided = Undecided.REPORT) -> ExitCode:
    """Return the exit code of some gates: of the worst, ``OK`` without any."""
    results = set(results)
    as_failed = undecided is Undecided.AS_FAILED and GateResult.UNDECIDED in results
    if GateResult.FAILED in results or as_failed:
        return ExitCode.THRESHOLD
    if GateResult.UNDECIDED in results and undecided is Undecided.REPORT:
        return ExitCode.UNDECIDED
    return ExitCode.OK


# -- suggestions ---------------------------------------------------------------------------------


#: Maximum number of names to offer; the least likeness, and how much less than the best one a name may have.
_MAX_SUGGESTIONS = 3
_MIN_LIKENESS = 0.6
_MAX_LIKENESS_GAP = 0.12


def find_similar(wrong: str, known: Iterable[str], least: float = _MIN_LIKENESS) -> list[str]:
    """Return the known names most like a wrong one, the likeliest first; none where none is like it.

    ``least`` is the least likeness, from 0 to 1.
    """
    import difflib  # noqa: PLC0415 - few calls need it

    names = {name.lower(): name for name in known}
    wanted = wrong.lower()
    likeness = {name: difflib.SequenceMatcher(None, name, wanted).ratio() for name in names}
    least = max(least, max(likeness.values(), default=0.0) - _MAX_LIKENESS_GAP)
    found = sorted((name for name in names if likeness[name] >= least), key=lambda name: -likeness[name])
    if len(wanted) > 1:  # "run" is less like "run-scenario" than "kill-workers" is like "kill"
        found += [name for name in names if name.startswith(wanted) and name not in found]
    return [names[name] for name in found[:_MAX_SUGGESTIONS]]


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return ``; did you mean A or B?`` to append to a message, nothing where no name is like it."""
    names = find_similar(wrong, known)
    return f"; did you mean {' or '.join(names)}?" if names else ""
