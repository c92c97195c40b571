"""Notices that nothing succeeds any more, and when waiting longer is useless.

Pure: it is given the time. A phase is abandoned when nothing has succeeded for ``give_up_after`` seconds
and the failures since then explain it: every job that was in flight at the first of them has failed
too, and none has been in flight for longer than failing takes. So an upload of several minutes is
waited for, however much else fails; that each job ends some time is the business of
:mod:`ssbench.fleet.dispatch`.
"""

from __future__ import annotations

from collections import Counter


class StallDetector:
    """What happened since the last success of a phase. Times are of the master's monotonic clock, in seconds.

    ``give_up_after`` 0 means never.
    """

    def __init__(self, give_up_after: float, now: float) -> None:
        self.give_up_after = give_up_after
        #: When the last job succeeded, and when the last one ended; the start of the phase before that.
        self.succeeded_at = self.ended_at = now
        #: The longest time without a success in which something failed.
        self.longest = 0.0
        self._clear()

    def _clear(self) -> None:
        self._causes: Counter[str] = Counter()
        self._detail = ""
        self._first_failure = float("inf")
        self._longest_failure = 0.0

    def succeeded(self, now: float) -> None:
        """Take note that a job succeeded."""
        if self._causes:
            self.longest = self.silence(now)
            self._clear()
        self.succeeded_at = self.ended_at = now

    def failed(self, cause: str, detail: str, seconds: float, now: float) -> None:
        """Take note that a job failed that had been in flight for this many seconds."""
        self.ended_at = now
        self._causes[cause] += 1
        self._detail = detail or self._detail
        self._first_failure = min(self._first_failure, now)
        self._longest_failure = max(self._longest_failure, seconds)

    def silence(self, now: float) -> float:
        """Return the longest time without a success in which something failed, up to now."""
        return max(self.longest, now - self.succeeded_at) if self._causes else self.longest

    @property
    def failures(self) -> str:
        """The failures since the last success: causes with their counts, the last detail; or empty."""
        causes = ", ".join(f"{count} x {cause}" for cause, count in self._causes.most_common(3))
        return f"{causes} (the last: {self._detail})" if self._detail else causes

    @property
    def main_cause(self) -> str | None:
        """The most frequent cause since the last success."""
        return self._causes.most_common(1)[0][0] if self._causes else None

    def hopeless(self, now: float, oldest_begun: float | None) -> bool:
        """Return whether to abandon the phase; ``oldest_begun`` is when the oldest job under way began."""
        if not self.give_up_after or not self._causes or now - self.succeeded_at < self.give_up_after:
            return False
        return oldest_begun is None or (
            oldest_begun >= self._first_failure and now - oldest_begun <= self._longest_failure
        )
