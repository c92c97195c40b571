"""When operations were sent and when they ended: the window of rates, each second, stalls.

``doc/numbers.rst`` defines the figures. Nothing here grows with the number of results. What has to wait until
the window is known is kept by the second, or is as much as there were users: the end of the window is the
last moment of sending, which is known at the end only. So what ended after the latest send so far is kept,
which is never more than was under way at once (:class:`WindowTotalsCollector`). A run of weeks has millions
of seconds (:class:`Successes`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.base.record import Bytes, Count, Moment, Offset, Seconds
from ssbench.results.block import LOST_CAUSE, ResultBlock
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.stalls import GapTracker, Stall
from ssbench.statistics.tally import add_up, count_values, grow_groups

#: How many results are waited for before seconds are counted from the first send, because the
#: operation that was sent first may be one of the last to end.
_RESULTS_BEFORE_COUNTING = 1 << 18


@dataclass(frozen=True, slots=True)
class Window:
    """What rates are counted in."""

    start: Moment  # the first send
    end: Moment  # the last moment of sending
    seconds: Seconds = field(init=False)  # from its start to its end
    #: It reaches to the last completion instead, because no operation ended while others were still sent.
    whole: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", self.end - self.start)

    def per_second(self, count: float) -> float:
        """Return a count as a rate; infinite where no time passed."""
        return count / self.seconds if self.seconds > 0 else math.inf if count else 0.0


@dataclass(frozen=True, slots=True)
class EachSecond:
    """Operations, or bytes, in the whole seconds of the window."""

    median: float  # those of the median second
    slowest: float  # those of the slowest second
    slowest_at: Offset  # when that began
    fastest: float  # those of the fastest second
    fastest_at: Offset  # when that began


def _idle_times(block: ResultBlock) -> npt.NDArray[np.float64]:
    """Return for how long the store had no request of each operation; inf for those lost with a worker."""
    idle = np.array(block.pausing, np.float64)
    idle[[row for row, failure in block.failures.items() if failure.cause == LOST_CAUSE]] = np.inf
    return idle


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
        self._gaps.add(block.completed, started, _idle_times(block))
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

    def stalls(
        self, window: Window, latencies: Latencies, users: int | None, kinds: Iterable[Latencies] = ()
    ) -> tuple[Stall, ...]:
        """Return the stalls in a window, of a run with these latencies of successes, also by kind.

        ``users`` is how many there were, None where they are idle at times by intention.
        """
        return self._gaps.stalls(window.start, window.end, latencies, users, kinds)

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


# -- Successes in each second ----------------------------------------------------------------------


#: Longer stretches without a success do not go in one second at a time.
_MAX_GAP_SECONDS = 86400

#: No second of a file that is not damaged is further away.
_MAX_SECOND = 1 << 60

#: So many are made plain numbers at once.
_SECONDS_AT_ONCE = 10_000


class Successes(Sequence[tuple[int, int]]):
    """(Second, successes in it), in order, in 16 bytes each; seconds are counted from 1."""

    def __init__(self, seconds: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> None:
        self._seconds = seconds
        self._counts = counts

    def __len__(self) -> int:
        return len(self._seconds)

    @overload
    def __getitem__(self, place: int) -> tuple[int, int]: ...

    @overload
    def __getitem__(self, place: slice) -> Successes: ...

    def __getitem__(self, place: int | slice) -> tuple[int, int] | Successes:
        if isinstance(place, slice):
            return Successes(self._seconds[place], self._counts[place])
        return int(self._seconds[place]), int(self._counts[place])

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for start in range(0, len(self), _SECONDS_AT_ONCE):
            part = slice(start, start + _SECONDS_AT_ONCE)
            yield from zip(self._seconds[part].tolist(), self._counts[part].tolist(), strict=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Successes):
            return NotImplemented
        return np.array_equal(self._seconds, other._seconds) and np.array_equal(self._counts, other._counts)

    __hash__ = None  # type: ignore[assignment]


def list_successes(counts: Counter[int], first: int | None = None) -> Successes:
    """Return the successes of each second from the first on, those without any too except in very long gaps.

    ``counts`` is keyed by seconds of any clock. Without ``first`` it begins with the first that has any.
    """
    if not counts:
        return Successes(np.empty(0, np.int64), np.empty(0, np.int64))
    known = sorted(counts)
    places = (
        np.clip(known, -_MAX_SECOND, _MAX_SECOND)
        - min(max(known[0] if first is None else first, -_MAX_SECOND), _MAX_SECOND)
        + 1
    )
    # What lies between the one before and each is filled, unless it is too much.
    before = np.concatenate([[0], places[:-1]])
    begins = np.where(places - before <= _MAX_GAP_SECONDS, np.minimum(before + 1, places), places)
    lengths = places - begins + 1
    ends = np.cumsum(lengths)
    seconds = np.arange(int(ends[-1])) + np.repeat(begins - (ends - lengths), lengths)
    filled = np.zeros(len(seconds), np.int64)
    filled[ends - 1] = [counts[second] for second in known]
    return Successes(seconds, filled)


# -- What ended within the window ------------------------------------------------------------------


class WindowTotals(msgspec.Struct, frozen=True, rename={"moved": "bytes"}):
    """What ended within a window."""

    count: Count = 0  # successes
    failed: Count = 0  # failures, lost operations too
    moved: Bytes = 0  # what successes moved
    busy: Seconds = 0.0  # time that operations were under way within it, without our own pauses
    pausing: Seconds = 0.0  # our own pauses between their attempts


class WindowTotalsCollector:
    """Sums up what ended, by the number of its group; separates what ended after a moment known later."""

    def __init__(self) -> None:
        #: Of each group: successes, failures, bytes that successes moved, seconds at the store and of pauses.
        self._sums = [np.empty(0)] * 5
        #: A row for each operation that may have ended after the moment: its group, its end, successes,
        #: failures and bytes; then which shares of its time it was at the store and paused.
        self._late = np.empty((0, 7))

    def add(
        self,
        groups: npt.NDArray[np.intp],
        completed: npt.NDArray[np.float64],
        moved: npt.NDArray[Any],
        succeeded: npt.NDArray[np.bool_],
        started: npt.NDArray[np.float64],
        last_sent: float,
        pausing: npt.NDArray[np.float64] | None = None,
    ) -> None:
        """Count operations; ``last_sent`` is the moment so far. Of failures ``started`` may be NaN.

        ``pausing`` are the seconds of our own pauses in each, None where none paused.
        """
        seconds = completed - started
        known = ~np.isnan(seconds)
        seconds = np.where(known, seconds, 0.0)
        paused = None if pausing is None else np.clip(pausing, 0.0, np.maximum(seconds, 0.0))
        at_store = seconds if paused is None else seconds - paused
        columns = (succeeded, ~succeeded, moved, at_store)
        self._sums[:4] = [
            add_up(sums, groups, column) for sums, column in zip(self._sums[:4], columns, strict=True)
        ]
        if paused is not None:
            self._sums[4] = add_up(self._sums[4], groups, paused)
        self._late = self._late[self._late[:, 1] > last_sent]
        late = np.flatnonzero(completed > last_sent)
        if len(late):
            # When an operation paused is not recorded: any part of it counts as having paused as much.
            share = np.zeros(len(late))
            if paused is not None:
                np.divide(paused[late], seconds[late], out=share, where=seconds[late] > 0)
            failed, known = ~succeeded, known[late]
            rows = [column[late] for column in (groups, completed, succeeded, failed, moved)]
            self._late = np.concatenate(
                [self._late, np.column_stack([*rows, known * (1 - share), known * share])]
            )

    def finish(self, window: Window, count: int = 1) -> list[WindowTotals]:
        """Return what ended within a window whose end is no earlier than any ``last_sent``.

        They are those of the groups 0 to ``count`` - 1.
        """
        late = self._late[self._late[:, 1] > window.end]
        groups = late[:, 0].astype(np.intp)
        after = late[:, 1] - window.end
        beyond = (late[:, 2], late[:, 3], late[:, 4], late[:, 5] * after, late[:, 6] * after)
        columns = (
            grow_groups(sums, count) - np.bincount(groups, each, max(count, len(sums)))
            for sums, each in zip(self._sums, beyond, strict=True)
        )
        return [
            WindowTotals(round(succeeded), round(failed), round(moved), busy, pausing)
            for succeeded, failed, moved, busy, pausing in zip(
                *(each.tolist() for each in columns), strict=True
            )
        ][:count]


def merge_totals(parts: Iterable[WindowTotals]) -> WindowTotals:
    """Return what ended within the window in several groups together."""
    parts = list(parts)
    return WindowTotals(
        count=sum(part.count for part in parts),
        failed=sum(part.failed for part in parts),
        moved=sum(part.moved for part in parts),
        busy=math.fsum(part.busy for part in parts),
        pausing=math.fsum(part.pausing for part in parts),
    )
