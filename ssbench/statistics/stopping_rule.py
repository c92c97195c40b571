"""Ends a run when the interval of its rate is narrow enough (``--until 2%``).

Stopping at the first narrow interval is biased. So the interval is looked at after 30 s, and then at times
that are each 1.25 times longer; and it has to be narrow twice in a row. It is the wider one of that of the
seconds and that of the means of ten batches of them (Student's t for 99 %), which have to be nearly
independent of each other: at its first looks a run knows little of how long its noise lasts.
"""

# ruff: noqa: D102 - the methods of a sink are documented in Sink

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from ssbench.document.units import format_change_size, format_count, format_run_length
from ssbench.results.block import ResultBlock
from ssbench.results.result_fields import ResultMark
from ssbench.results.run_description import RunSummary
from ssbench.statistics.confidence import Interval, Series, mean_interval, t_quantile
from ssbench.statistics.tally import count_values

FIRST_LOOK_SECONDS = 30.0
LOOK_GROWTH = 1.25
LOOKS_IN_A_ROW = 2

_BATCHES = 10
_BATCH_SHARE = 0.99

#: Batches that have more in common with the one before are too short to tell.
_MAX_CORRELATION = 0.5


def estimate_interval(series: Series) -> Interval | None:
    """Return the interval of the mean that may end a run; None if unknown.

    It is infinitely wide where batches are not independent.
    """
    found = mean_interval(series)
    if found is None or not float(np.ptp(series)) > 0:
        return found
    length = len(series) // _BATCHES
    means = series[len(series) - length * _BATCHES :].reshape(_BATCHES, length).mean(axis=1)
    off = means - means.mean()
    if float(off[1:] @ off[:-1]) > _MAX_CORRELATION * float(off @ off):
        return Interval(-math.inf, math.inf, found.effective_size)
    quantile = t_quantile((1 + _BATCH_SHARE) / 2, _BATCHES - 1)
    half = max(found.half_width, quantile * float(np.std(means, ddof=1)) / math.sqrt(_BATCHES))
    mean = float(series.mean())
    return Interval(mean - half, mean + half, found.effective_size)


class StoppingRule:
    """Judges a growing series of whole seconds. ``target`` is the half width as a share of the mean.

    ``reached`` is whether it was narrow enough; ``width`` is the half width at the last look.
    """

    def __init__(self, target: float) -> None:
        self.target = target
        self.reached = False
        self.width = math.inf
        self.interval: Interval | None = None
        self.next_look = FIRST_LOOK_SECONDS
        self._in_a_row = 0

    def look(self, series: Series) -> bool:
        """Look at the series, if it is time; return whether the run may end.

        Each look sees the seconds up to its time, however late it comes.
        """
        while not self.reached and len(series) >= self.next_look:
            seen = series[: int(self.next_look)]
            self.interval, mean = estimate_interval(seen), float(seen.mean())
            self.width = self.interval.half_width / mean if self.interval and mean else math.inf
            self._in_a_row = self._in_a_row + 1 if self.width <= self.target else 0
            self.reached = self._in_a_row >= LOOKS_IN_A_ROW
            self.next_look *= LOOK_GROWTH
        return self.reached


#: Results of the last seconds may still be on their way.
_SECONDS_UNDER_WAY = 2


class StoppingSink:
    """A sink that counts the successes of each second and looks at them now and then.

    ``target`` is the half width of the interval as a share of the rate; ``reached`` is whether it was there.
    Seconds count from the first whole one; those of a warm-up do not.
    """

    def __init__(self, target: float) -> None:
        self._rule = StoppingRule(target)
        self._counts: Counter[int] = Counter()
        self._first: int | None = None

    @property
    def width(self) -> float:
        """Half the width of the interval at the last look, as a share of the rate; infinite: not known."""
        return self._rule.width

    def reached(self) -> bool:
        """Whether the run may end."""
        return self._rule.reached

    def add(self, block: ResultBlock) -> None:
        ok = ~block.failed
        if "marks" in block.given:
            ok &= block.marks & ResultMark.WARM_UP == 0
        if not ok.any():
            return
        seconds = np.floor(block.completed[ok]).astype(np.int64)
        if self._first is None:
            self._first = int(seconds.min()) + 1
        count_values(self._counts, seconds)

    def tick(self, now: float) -> None:
        if self._first is None:
            return
        count = max(self._counts) - _SECONDS_UNDER_WAY - self._first
        if count >= self._rule.next_look:
            seconds = range(self._first, self._first + count)
            self._rule.look(np.fromiter((self._counts[each] for each in seconds), np.float64, count))

    def end(self, summary: RunSummary) -> None:
        """Do nothing; :meth:`sentence` returns the result."""

    def sentence(self) -> str:
        """Say how narrow the interval was at the last look."""
        rule, target = self._rule, f"{100 * self._rule.target:g} %"
        if rule.interval is None or math.isinf(rule.width):
            return f"The run was too short to tell whether its rate is known to {target}"
        seconds = rule.next_look / LOOK_GROWTH
        known = (
            f"+-{format_change_size(rule.width)} % after {format_run_length(seconds)} s (as much"
            f" as {format_count(round(rule.interval.effective_size))} independent seconds)"
        )
        if rule.reached:
            return f"The rate is known to {known}"
        return f"The run ended before its rate was known to {target}: {known}"
