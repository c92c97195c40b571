"""What the master itself did while a phase went on: CPU, times in which its loop stalled, output."""

from __future__ import annotations

import time
from dataclasses import dataclass

#: The loop stalled when a turn began so much later than it was to (seconds).
GAP = 0.1

#: Most gaps that are kept.
_MOST_GAPS = 1000


@dataclass(frozen=True, slots=True)
class Used:
    """What was used since :meth:`OwnPart.begin`: CPU as a share of one core, seconds of unread output."""

    cpu_share: float | None
    unread: float


class OwnPart:
    """Follows the turns of a loop. Moments are of the loop's clock.

    ``longest`` is how late a turn began at most, in seconds, ``gaps`` are the times, (begin, end), in which
    the loop stalled for :data:`GAP` or longer; ``gaps_dropped`` more were not kept.
    """

    def __init__(self) -> None:
        self.begin(0.0, 0.0)

    def begin(self, now: float, unread: float) -> None:
        """Count from now on; ``unread`` is how long standard error has waited for its reader so far."""
        self.longest = 0.0
        self.gaps: list[tuple[float, float]] = []
        self.gaps_dropped = 0
        self._began = self._taken = now
        self._cpu = self._cpu_taken = time.process_time()
        self._lag_since = 0.0
        self._unread = unread

    def turn(self, due: float, now: float) -> None:
        """Take note of a turn that was to begin by ``due``."""
        if now <= due:
            return
        self.longest = max(self.longest, now - due)
        self._lag_since = max(self._lag_since, now - due)
        if now - due >= GAP:
            if len(self.gaps) < _MOST_GAPS:
                self.gaps.append((due, now))
            else:
                self.gaps_dropped += 1

    def take_recent(self, now: float) -> tuple[float, float] | None:
        """Return the share of one core since the last call, and how late a turn began at most (seconds)."""
        seconds, cpu = now - self._taken, time.process_time()
        if seconds <= 0:
            return None
        found = (cpu - self._cpu_taken) / seconds, self._lag_since
        self._taken, self._cpu_taken, self._lag_since = now, cpu, 0.0
        return found

    def used(self, now: float, unread: float) -> Used:
        """Return what was used until now."""
        seconds = now - self._began
        share = (time.process_time() - self._cpu) / seconds if seconds > 0 else None
        return Used(share, unread - self._unread)
