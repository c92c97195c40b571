"""The search for the highest load at which an objective holds: what to try next, given the trials so far.

It doubles until a trial speaks against a load, or halves until one speaks for it. From then on it tries the
load at which the limit most probably is (:mod:`ssbench.comparison.limit`). It ends when the 95 % interval of
the limit is narrow enough. A trial near the limit never decides by itself, but counts as much as any other.

Where trials near the limit leave the interval too wide, further ones are longer, up to a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssbench.comparison.limit import LimitEstimate, LoadLimit, TrialEvidence

#: Half the width of the 95 % interval of the limit, as a share of the limit, by default.
LIMIT_TOLERANCE = 0.10

#: How much longer a trial is than the first ones at the most.
MAX_TRIAL_FACTOR = 4.0

#: More trials than this are never made.
MAX_TRIALS = 30

#: Trials within this factor of the limit say most of it.
_NEAR_FACTOR = 1.2

#: So much of the time of a trial has to have been spent near the limit before the search ends.
_MIN_NEAR_TRIALS = 3.0

#: Where this many trials in a row left the interval as wide as it was, more of them would not help.
_MAX_IDLE_TRIALS = 4


@dataclass(frozen=True, slots=True)
class Trial:
    """What to try: a value, for how many seconds."""

    value: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The highest value at which the objective holds, None where it holds at none.

    The limit is between ``low`` and ``high`` (95 % interval, in whole values). ``at_least``: no higher value
    was tried. ``narrow``: the interval is as narrow as was asked for.
    """

    value: int | None
    low: int = 0
    high: int = 0
    at_least: bool = False
    narrow: bool = True


class LimitSearch:
    """Ask :meth:`next`, try it, pass the result to :meth:`record`; until there is no next one."""

    def __init__(self, start: int, seconds: float, *, most: int, tolerance: float = LIMIT_TOLERANCE) -> None:
        self._tolerance = tolerance
        self._start = min(start, most)
        self._seconds = seconds
        self._most = most
        self._limit = LoadLimit(most)
        self._tried: list[tuple[Trial, float]] = []  # with the width of the interval after it
        self._current: Trial | None = None
        self._highest: int | None = None  # above this value nothing is tried

    def next(self) -> Trial | None:
        """Return what to try next; None when the search has ended."""
        if self._current is None and not self._ended():
            self._current = self._choose()
        return self._current

    def record(self, evidence: Sequence[TrialEvidence], *, no_higher: bool = False) -> None:
        """Count what a trial said of each condition; with ``no_higher`` no higher value is tried."""
        trial = self._current
        if trial is None:
            raise ValueError("nothing was to be tried")
        self._current = None
        self._limit.add(trial.value, evidence)
        self._tried.append((trial, self._limit.estimate().half_width))
        if no_higher:
            self._highest = min(trial.value, self._highest or trial.value)

    def answer(self) -> SearchAnswer:
        """Return what is known now."""
        if not self._tried:
            return SearchAnswer(None)
        estimate, bound = self._limit.estimate(), self._highest or self._most
        value = min(int(estimate.median), bound)
        at_least = estimate.median >= bound
        low, high = int(estimate.low), int(estimate.high)
        return SearchAnswer(value or None, low, high, at_least, at_least or self._narrow(estimate))

    def _narrow(self, estimate: LimitEstimate) -> bool:
        """Whether the interval is narrow enough; one from a value to the next is, however wide that is."""
        between = int(estimate.high) - int(estimate.low)
        return estimate.half_width <= self._tolerance or between <= (1 if estimate.median > 1 else 0)

    def _ended(self) -> bool:
        if not self._tried:
            return False
        if len(self._tried) >= MAX_TRIALS:
            return True
        estimate, bound = self._limit.estimate(), self._highest or self._most
        if estimate.low >= bound or estimate.high < 1:
            return True
        near = sum(trial.seconds for trial in self._near(estimate))
        if self._narrow(estimate) and near >= _MIN_NEAR_TRIALS * self._seconds:
            return True
        widths = [width for trial, width in self._tried if trial.seconds >= MAX_TRIAL_FACTOR * self._seconds]
        return len(widths) > _MAX_IDLE_TRIALS and widths[-1] > 0.9 * widths[-1 - _MAX_IDLE_TRIALS]

    def _near(self, estimate: LimitEstimate) -> list[Trial]:
        """Return the trials that are near the limit, or next to it."""
        low, high = estimate.median / _NEAR_FACTOR, estimate.median * _NEAR_FACTOR
        return [trial for trial, _ in self._tried if low <= trial.value <= high or abs(trial.value - low) < 1]

    def _choose(self) -> Trial:
        if not self._tried:
            return Trial(self._start, self._seconds)
        estimate = self._limit.estimate()
        values = [trial.value for trial, _ in self._tried]
        near = len(self._near(estimate))
        value = round(estimate.median)
        if value > max(values):
            value = min(value, 2 * max(values))
        elif value < min(values):
            value = max(value, min(values) // 2)
        value = max(1, min(value, self._highest or self._most))
        longer = 1.0
        if near > 1:
            # The width falls with the square root of the time.
            longer = min(MAX_TRIAL_FACTOR, max(1.0, (estimate.half_width / self._tolerance) ** 2))
        return Trial(value, longer * self._seconds)
