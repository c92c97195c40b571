"""What the time of successful operations went into besides their last attempt.

Few operations have any of it, so blocks that say nothing of it cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.measures import Count, Seconds
from ssbench.results import ResultBlock

_NOT_FOUND = 404


class Part(msgspec.Struct, frozen=True, rename={"longest": "max"}):
    """A part of the time of operations: how many had it, their seconds of it, the most of one."""

    count: Count = 0
    seconds: Seconds = 0.0
    longest: Seconds = 0.0

    def __add__(self, other: Part) -> Part:
        """Return both together."""
        return Part(self.count + other.count, self.seconds + other.seconds, max(self.longest, other.longest))


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the time of some successes: new connections, and our own pauses between attempts.

    ``vanished`` counts the successes that found nothing: deletes that may have been done before, by an
    earlier attempt that had got no answer or by a worker that was lost.
    """

    connecting: Part = field(default_factory=Part)
    pausing: Part = field(default_factory=Part)
    vanished: int = 0

    def __add__(self, other: Parts) -> Parts:
        """Return both together."""
        return Parts(
            self.connecting + other.connecting, self.pausing + other.pausing, self.vanished + other.vanished
        )


def vanished(block: ResultBlock, rows: npt.NDArray[np.intp]) -> Parts:
    """Return how many of some successes of a block found nothing."""
    found = int(np.count_nonzero(block.status[rows] == _NOT_FOUND)) if "status" in block.given else 0
    return Parts(vanished=found) if found else NONE


def parts_of(block: ResultBlock, rows: npt.NDArray[np.intp]) -> Parts:
    """Return the parts of the time of some successes of a block, of those whose latencies count."""
    given = block.given
    connecting = _part(block.connecting[rows]) if "connecting" in given else _NO_PART
    pausing = _part(block.pausing[rows]) if "pausing" in given else _NO_PART
    return NONE if connecting is pausing is _NO_PART else Parts(connecting, pausing)


def sum_of(parts: Iterable[Parts]) -> Parts:
    """Return several together."""
    return sum((each for each in parts if each is not NONE), NONE)


def _part(seconds: npt.NDArray[np.float64]) -> Part:
    some = seconds[seconds > 0]
    return Part(len(some), float(some.sum()), float(some.max())) if len(some) else _NO_PART


_NO_PART = Part()

#: What is shared by all that has none of it.
NONE = Parts()
