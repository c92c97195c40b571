"""When operations were sent and when they ended: the window of rates, each second, stalls.

``doc/numbers.rst`` defines the figures. Nothing here grows with the number of results: what has to
wait until the window is known is kept by the second, or is as much as there were users.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ssbench.base.measures import Moment, Offset, Seconds
from ssbench.results.block import ResultBlock
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.stalls import GapTracker, Stall
from ssbench.statistics.tally import count_values

#: How many results are waited for before seconds are counted from the first send, because the
#: operation that was sent first may be one of the last to end.
_RESULTS_BEFORE_COUNTING = 1 << 18


@dataclass(frozen=True, slots=True)
class Window:
    """What rates are counted in: from the first send to the last moment of sending, since 1970.

    ``whole`` is whether it reaches to the last completion instead, because no operation ended
    while others were still sent.
    """

    start: Moment
    end: Moment
    seconds: Seconds = field(init=False)
    whole: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", self.end - self.start)

    def per_second(self, count: float) -> float:
        """Return a count as a rate; infinite where no time passed."""
        return count / self.seconds if self.seconds > 0 else math.inf if count else 0.0


@dataclass(frozen=True, slots=True)
class EachSecond:
    """Operations, or bytes, in the whole seconds of the window; ``..._at`` is where a second begins."""

    median: float
    slowest: float
    slowest_at: Offset
    fastest: float
    fastest_at: Offset


class ResultTimeline:
    """Follows the moments of results; those of failures too, where they are known."""

    def __init__(self) -> None:
        self.first_sent = math.inf
        self.last_sent = -math.inf
        self.first_ended = math.inf
        self.last_ended = -math.inf
        self._origin: float | None = None
        self._successes: Counter[int] = Counter()
        self._bytes: Counter[int] = Counter()
        self._waiting: list[tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]] = []
        self._count = 0
        self._gaps = GapTracker()

    def add(self, block: ResultBlock, started: npt.NDArray[np.float64]) -> None:
        """Count the results of a block, which must not be empty, and when they were sent."""
        # In this order min() and max() keep what they have when the other is NaN.
        self.first_sent = min(self.first_sent, float(np.fmin.reduce(started)))
        self.last_sent = max(self.last_sent, float(np.fmax.reduce(started)))
        self.first_ended = min(self.first_ended, float(block.completed.min()))
        self.last_ended = max(self.last_ended, float(block.completed.max()))
        self._gaps.add(block.completed, started)
        ok = ~block.failed if block.failures else slice(None)
        self._waiting.append((block.completed[ok], np.maximum(block.size[ok], 0)))
        self._count += len(block)
        if self._count >= _RESULTS_BEFORE_COUNTING:
            self._count_seconds()

    def window(self, sent_until: float | None = None) -> Window | None:
        """Return the window; None where it is not known of any operation when it was sent.

        ``sent_until`` is when the run stopped handing out operations; it may have sent none for a
        while before that, because no answer came.
        """
        if math.isinf(self.first_sent):
            return None
        end = max(self.last_sent, self.last_sent if sent_until is None else sent_until)
        if self.first_ended > end:
            return Window(self.first_sent, self.last_ended, whole=True)
        return Window(self.first_sent, end)

    def seconds(self) -> Counter[int]:
        """Return the successes in each second that has any; the second from the first send on is 0."""
        self._count_seconds()
        return self._successes

    def each_second(self, window: Window) -> tuple[EachSecond, EachSecond] | None:
        """Return successes and bytes in the whole seconds of a window; None where it has no such."""
        whole = int(window.seconds)
        if not whole:
            return None
        self._count_seconds()
        return _fill_seconds(self._successes, whole), _fill_seconds(self._bytes, whole)

    def stalls(self, window: Window, latencies: Latencies, users: int | None) -> tuple[Stall, ...]:
        """Return the stalls in a window, of a run with these latencies of successes.

        ``users`` is how many there were, None where they are idle at times by intention.
        """
        return self._gaps.stalls(window.start, window.end, latencies, users)

    def _count_seconds(self) -> None:
        if not self._waiting:
            return
        if self._origin is None:
            self._origin = min(self.first_sent, self.first_ended)
        completed = np.concatenate([each for each, _ in self._waiting])
        sizes = np.concatenate([each for _, each in self._waiting])
        self._waiting.clear()
        places = np.floor(completed - self._origin).astype(np.int64)
        count_values(self._successes, places)
        count_values(self._bytes, places, sizes)


def _fill_seconds(counts: Counter[int], whole: int) -> EachSecond:
    """Return the figures of the seconds 0 to ``whole`` - 1, of which those not in ``counts`` have 0."""
    known = {second: count for second, count in counts.items() if 0 <= second < whole}
    empty = whole - len(known)
    ordered = sorted(known.values())
    middle = [ordered[place - empty] if place >= empty else 0 for place in ((whole - 1) // 2, whole // 2)]
    if empty:
        slowest = next(second for second in range(whole) if second not in known)
    else:
        slowest = min(known, key=lambda second: (known[second], second))
    fastest = max(known, key=lambda second: (known[second], -second), default=0)
    return EachSecond(sum(middle) / 2, known.get(slowest, 0), slowest, known.get(fastest, 0), fastest)
