"""The objects of a size class in slots, of which one is chosen by its popularity.

Each choice takes constant time and one number from 0 to 1, whatever the number of objects is. That number may
change from one choice to the next.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

from ssbench.scenario.popularity import Popularity

#: Ranks whose weights are added up one by one. From there on the sum of the weights up to a rank is an
#: integral up to half a rank further (the midpoint rule): wrong by 1 part in 10 million for exponents near 1.
_EXACT = 1024

#: Free slots at the beginning are given back from so many on, where they are half of all.
_FREE = 65536


class Line:
    """Objects in slots: those of ``numbers`` from the slot ``first`` on, in 4 bytes each.

    In an ``aged`` line they are in the order in which they came, and an object that goes lets the oldest have
    its slot. In another one the last has it, so that all others keep theirs.
    """

    __slots__ = ("_aged", "first", "next", "numbers")

    def __init__(self, *, aged: bool) -> None:
        self.numbers = array("I")
        self.first = 0
        #: The slot whose turn it is.
        self.next = 0
        self._aged = aged

    def __len__(self) -> int:
        return len(self.numbers) - self.first

    def remove(self, slot: int) -> None:
        """Let the object in a slot go."""
        numbers = self.numbers
        if not self._aged:
            numbers[slot] = numbers[-1]
            numbers.pop()
            return
        numbers[slot] = numbers[self.first]
        self.first += 1
        if self.first >= _FREE and self.first * 2 >= len(numbers):
            del numbers[: self.first]
            self.next = max(self.next - self.first, 0)
            self.first = 0


#: Returns the slot of an object in its line, which has one object or more.
Choose = Callable[[], int]


def is_aged(popularity: Popularity) -> bool:
    """Whether the order in which objects came matters."""
    return popularity.kind in {"rotate", "sequential", "latest"}


def chooser(popularity: Popularity, line: Line, share: Callable[[], float]) -> Choose:
    """Return what chooses an object of a line; ``share`` returns numbers from 0 to 1, 1 excluded."""
    match popularity.kind:
        case "uniform":
            return lambda: line.first + int(share() * (len(line.numbers) - line.first))
        case "zipf":
            rank = _ranks(popularity.exponent, share)
            return lambda: line.first + rank(len(line.numbers) - line.first)
        case "latest":
            rank = _ranks(popularity.exponent, share)
            return lambda: len(line.numbers) - 1 - rank(len(line.numbers) - line.first)
        case "hotspot":
            return _hotspot(popularity, line, share)
    return lambda: _in_turn(line)


def chooser_to_delete(popularity: Popularity, line: Line, share: Callable[[], float]) -> Choose:
    """Return what chooses an object to be deleted: the oldest, or any where the order does not matter."""
    if is_aged(popularity):
        return lambda: line.first
    return chooser(Popularity("uniform"), line, share)


def _in_turn(line: Line) -> int:
    slot = line.next
    if not line.first <= slot < len(line.numbers):
        slot = line.first
    line.next = slot + 1
    return slot


def _hotspot(popularity: Popularity, line: Line, share: Callable[[], float]) -> Choose:
    objects, requests = popularity.objects, popularity.requests

    def choose() -> int:
        count = len(line.numbers) - line.first
        hot = min(max(round(count * objects), 1), count)
        part = share()
        if hot == count:
            return line.first + int(part * count)
        if part < requests:
            return line.first + int(part / requests * hot)
        cold = int((part - requests) / (1 - requests) * (count - hot))
        return line.first + min(hot + cold, count - 1)

    return choose


def _ranks(exponent: float, share: Callable[[], float]) -> Callable[[int], int]:
    """Return a function that draws a rank from 0 to below a count by Zipf's law, of any exponent above 0."""
    sums = list(accumulate(rank**-exponent for rank in range(1, _EXACT + 1)))
    power = 1 - exponent
    log, exp, expm1, log1p = math.log, math.exp, math.expm1, math.log1p

    def integral(rank: float) -> float:
        return expm1(power * log(rank)) / power if power else log(rank)

    start = integral(_EXACT + 0.5)
    known, exact, total = 0, 0, 0.0

    def draw(count: int) -> int:
        nonlocal known, exact, total
        if count != known:
            known, exact = count, min(count, _EXACT)
            total = sums[exact - 1]
            if count > _EXACT:
                total += integral(count + 0.5) - start
        part = share() * total
        if part < sums[exact - 1]:
            return bisect_right(sums, part, 0, exact - 1)
        place = part - sums[-1] + start
        rank = exp(log1p(place * power) / power) if power else exp(place)
        return min(max(int(rank - 0.5), _EXACT), count - 1)

    return draw
