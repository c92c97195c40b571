"""When a run has gone on for long enough: its rate's interval is as narrow as was asked for.

Who looks each second and stops at the first narrow interval stops by luck. So it is looked at 30 s, and
then at times that are each 1.25 times longer; and it has to be narrow twice in a row.
"""

from __future__ import annotations

import math

from ssbench.statistics.confidence import Interval, Series, mean_interval

FIRST_LOOK = 30.0
LOOK_GROWTH = 1.25
LOOKS_IN_A_ROW = 2


class Narrowing:
    """Judges a growing series of whole seconds. ``target`` is the half width as a share of the mean.

    ``reached`` tells that it was narrow enough; ``width`` is the half width at the last look.
    """

    def __init__(self, target: float) -> None:
        self.target = target
        self.reached = False
        self.width = math.inf
        self.interval: Interval | None = None
        self.next_look = FIRST_LOOK
        self._in_a_row = 0

    def look(self, series: Series) -> bool:
        """Look at the series, if it is time; return whether the run may end.

        Each look sees the seconds up to its time, however late it comes.
        """
        while not self.reached and len(series) >= self.next_look:
            seen = series[: int(self.next_look)]
            self.interval, mean = mean_interval(seen), float(seen.mean())
            self.width = self.interval.half_width / mean if self.interval and mean else math.inf
            self._in_a_row = self._in_a_row + 1 if self.width <= self.target else 0
            self.reached = self._in_a_row >= LOOKS_IN_A_ROW
            self.next_look *= LOOK_GROWTH
        return self.reached
