"""How many jobs a worker holds ahead of its users, so that no user waits for a turn through the master.

Pure. While a message goes to a worker and its results come back, the worker ends so many jobs: its rate
times its turn-round time. If more than that wait in its queue when the master hears that the queue is
short, the next ones are there before it is empty. Both figures are measured together: when a worker
acknowledges a batch, the master knows how many jobs of that worker ended since it sent the batch, and what
part of that time the worker already had it. The time for which the answer waited, beyond what messages of
that worker take at least, does not count: where the master itself is the limit, more jobs ahead would
only make that time longer, and more jobs would then be needed again.

So slow operations have next to nothing ahead of them, and fast ones, or those of workers behind a slow
link, have as much as they need. A few milliseconds are added to each turn-round time: that makes messages of
fast operations large, and is no job at all where operations are slow.
"""

from __future__ import annotations

import math

#: What a worker may hold ahead at most. More makes nothing cheaper, and a worker at 30,000 operations a
#: second behind a link of 100 ms needs about as much.
MOST_AHEAD = 8192

#: What is held in reserve over the jobs that end in one turn-round time: for a time that varies, a share;
#: for numbers that vary by chance, twice their root (as of independent events).
_SHARE = 1.25
_ROOTS = 2.0

#: A shorter turn is no measurement (seconds).
_SHORTEST = 1e-6

#: Added to the turn-round time (seconds), as long as no more jobs than that end in it: larger messages are
#: no cheaper, and jobs that wait take memory, which costs time.
_MORE = 0.006
_MOST_MORE = 256

#: What a new measurement counts for: a larger one all, because users would be idle, a smaller one little.
_UP, _DOWN = 1.0, 0.1


class Ahead:
    """What one worker is to hold beyond its share of the users.

    It is sent jobs when no more than ``low`` wait there, until ``high`` do: messages hold several.
    """

    __slots__ = ("_ended", "high", "low")

    def __init__(self) -> None:
        self._ended = 0.0
        self._follow()

    def observe(self, ended: int, seconds: float, held: float) -> bool:
        """Take note that a batch was acknowledged; return whether ``high`` has changed.

        It was sent ``seconds`` ago. For ``held`` of them the worker had it, or its answer waited, and
        ``ended`` of its jobs ended in that time.
        """
        if seconds < _SHORTEST:
            return False
        rate = ended / seconds
        ended_on_the_way = rate * max(0.0, seconds - held) + min(rate * _MORE, _MOST_MORE)
        difference = ended_on_the_way - self._ended
        self._ended += difference * (_UP if difference > 0 else _DOWN)
        before = self.high
        self._follow()
        return self.high != before

    def _follow(self) -> None:
        reserve = _SHARE * self._ended + _ROOTS * math.sqrt(self._ended)
        self.low = min(1 + math.ceil(reserve), MOST_AHEAD // 2)
        self.high = 2 * self.low
