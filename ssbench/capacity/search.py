"""The search for the highest load at which an objective holds: what to try next, given what came so far.

It doubles until a trial fails (or halves until one passes), bisects between the highest that passed and the
lowest that failed, repeats what was not decided twice as long, twice at most, and has the answer confirmed by
a trial that is longer still. An answer that is not confirmed counts as failed, and the search goes on below.

A trial can also fail because something else loads the store for a moment, which says nothing about the limit.
So the lowest value that failed is tried again before the search settles below it. If it passes then, the
failures above it are doubted too, and the search goes on upwards. A second failure is final.

Where a value and its half are both not decided the search ends: the trials have too few operations, and still
lower values have fewer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

#: How near the answer is to the lowest that failed, as a share of the answer, by default.
TOLERANCE = 0.05

#: How often a trial that was not decided is repeated, and how much longer each time.
REPEATS = 2
LONGER = 2.0

#: More trials than this are never made.
MOST_TRIALS = 100


class Verdict(Enum):
    """What a trial says of the objective."""

    PASSED = "holds"
    FAILED = "does not hold"
    UNDECIDED = "not decided"


@dataclass(frozen=True, slots=True)
class Trial:
    """What to try: a value, for how many seconds.

    ``confirms``: to confirm the answer; ``again``: because it failed before.
    """

    value: int
    seconds: float
    confirms: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The highest value at which the objective held; None where it held at none.

    ``at_least``: no higher one was tried. ``failed`` is the lowest at which it did not hold, or was not
    decided. ``undecided`` are the values of which even the longest trial said nothing.
    """

    value: int | None
    at_least: bool = False
    undecided: tuple[int, ...] = ()
    failed: int | None = None


class Search:
    """Ask :meth:`next`, try it, tell :meth:`record`; until there is no next one."""

    def __init__(self, start: int, seconds: float, *, most: int, tolerance: float = TOLERANCE) -> None:
        self._tolerance = tolerance
        self._start = min(start, most)
        self._seconds = seconds
        self._most = most
        #: How long the longest trial of each value took that passed.
        self._passed: dict[int, float] = {}
        #: What to try again of each value that failed; None where that failure is final.
        self._failed: dict[int, Trial | None] = {}
        self._failed_before: set[int] = set()
        self._undecided: list[int] = []
        self._confirmed: int | None = None
        self._limited = False
        self._repeats = 0
        self._trials = 0
        self._current: Trial | None = None

    def next(self) -> Trial | None:
        """Return what to try next; None when the search has ended."""
        if self._trials >= MOST_TRIALS:
            return None
        if self._repeats and self._current is not None:
            return self._current
        self._current = self._choose()
        return self._current

    def record(self, verdict: Verdict, *, no_higher: bool = False) -> None:
        """Take what came of the trial; with ``no_higher`` none above the highest that passed is tried."""
        trial = self._current
        if trial is None:
            raise ValueError("nothing was to be tried")
        self._trials += 1
        self._limited |= no_higher
        if verdict is Verdict.UNDECIDED and self._repeats < REPEATS:
            self._repeats += 1
            self._current = replace(trial, seconds=trial.seconds * LONGER)
            return
        self._repeats = 0
        if verdict is Verdict.PASSED:
            self._note_passed(trial)
        else:
            self._note_failed(trial, believed=verdict is Verdict.UNDECIDED)

    def _note_passed(self, trial: Trial) -> None:
        self._passed[trial.value] = max(trial.seconds, self._passed.get(trial.value, 0.0))
        if trial.confirms:
            self._confirmed = trial.value
        if trial.again:
            self._failed = {value: again for value, again in self._failed.items() if again is None}

    def _note_failed(self, trial: Trial, *, believed: bool) -> None:
        if believed:
            self._undecided.append(trial.value)
        self._passed = {value: seconds for value, seconds in self._passed.items() if value < trial.value}
        believed |= trial.value in self._failed_before
        self._failed_before.add(trial.value)
        self._failed[trial.value] = None if believed else replace(trial, again=True)

    def answer(self) -> Answer:
        """Return what is known now."""
        at_least = self._confirmed is not None and not self._failed
        undecided = tuple(sorted(set(self._undecided)))
        return Answer(self._confirmed, at_least, undecided, min(self._failed, default=None))

    @property
    def passed(self) -> int | None:
        """The highest value at which the objective held so far, confirmed or not."""
        return max(self._passed, default=None)

    def _choose(self) -> Trial | None:
        low = self.passed
        high = min(self._failed, default=None)
        again = None if high is None else self._failed[high]
        if low is None:
            return self._choose_lower(high, again)
        if high is None and low < self._most and not self._limited:
            return Trial(min(2 * low, self._most), self._seconds)
        if high is not None and high - low > max(1.0, self._tolerance * low):
            return Trial((low + high) // 2, self._seconds)
        if again is not None:
            return again
        if self._confirmed == low:
            return None
        return Trial(low, self._passed[low] * LONGER, confirms=True)

    def _choose_lower(self, high: int | None, again: Trial | None) -> Trial | None:
        """Return what to try while none has passed."""
        if len(self._failed) > 1 and set(sorted(self._failed)[:2]) <= set(self._undecided):
            return None
        value = self._start if high is None else high // 2
        return Trial(value, self._seconds) if value else again
