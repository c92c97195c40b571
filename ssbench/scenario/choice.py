"""The objects of a size class in slots, of which one is chosen by its popularity.

Each choice takes constant time, whatever the number of objects is. That number may change from one choice to
the next. What choices are made by is drawn with numpy, many at a time.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat

import numpy as np
import numpy.typing as npt

from ssbench.scenario.popularity import Popularity

#: Numbers that are drawn at once: enough for numpy to be fast, few enough for what they are about to stay in
#: the caches of a processor.
SHARES_AT_ONCE = 512

#: The same where there are few objects, whose number soon is another one.
_SHARES_OF_FEW_OBJECTS = 64

#: So many objects are more than the caches of a processor hold.
_MANY_OBJECTS = 100_000

#: Ranks whose weights are added up one by one. From there on the sum of the weights up to a rank is an
#: integral up to half a rank further (the midpoint rule): wrong by 1 part in 10 million for exponents near 1.
_EXACT_RANKS = 1024

#: Free slots at the beginning are given back from so many on, where they are half of all.
_MIN_FREE_SLOTS = 65536


class SlottedObjects:
    """Objects in slots: those of ``numbers`` from the slot ``first`` on, in 4 bytes each.

    Where there is no object, ``numbers`` is empty.

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
        if self.first == len(numbers) or (self.first >= _MIN_FREE_SLOTS and self.first * 2 >= len(numbers)):
            del numbers[: self.first]
            self.next = max(self.next - self.first, 0)
            self.first = 0


#: Returns the slot of an object in its line, which has one object or more.
ChooseSlot = Callable[[], int]

ShareArray = npt.NDArray[np.float64]
RankArray = npt.NDArray[np.int64]


def is_aged(popularity: Popularity) -> bool:
    """Whether the order in which objects came matters."""
    return popularity.kind in {"rotate", "sequential", "latest"}


def make_chooser(
    popularity: Popularity,
    line: SlottedObjects,
    random: np.random.Generator,
    along: Sequence[array[int]] = (),
) -> ChooseSlot:
    """Return what chooses an object of a line, by numbers of a generator.

    ``along`` are arrays in which the chosen objects are looked up by their numbers: see :func:`_touch_objects`.
    """
    match popularity.kind:
        case "uniform":
            found = _choose_by_rank(line, random, _split_evenly, along)
        case "zipf":
            found = _choose_by_rank(line, random, make_rank_function(popularity.exponent), along)
        case "latest":
            found = _choose_by_rank(line, random, make_rank_function(popularity.exponent), along, newest=True)
        case "hotspot":
            found = _choose_hotspot(popularity, line, random, along)
        case _:
            found = _choose_in_turn(line)
    return found.__next__


def make_deletion_chooser(
    popularity: Popularity,
    line: SlottedObjects,
    random: np.random.Generator,
    along: Sequence[array[int]] = (),
) -> ChooseSlot:
    """Return what chooses an object to be deleted: the oldest, or any where the order does not matter."""
    if is_aged(popularity):
        return lambda: line.first
    return make_chooser(Popularity("uniform"), line, random, along)


def draw_shares(random: np.random.Generator) -> Iterator[float]:
    """Return numbers from 0 to 1, 1 excluded, without end."""
    return chain.from_iterable(random.random(SHARES_AT_ONCE).tolist() for _ in repeat(None))


# Between two numbers that a generator yields the line may change, and often does.


def _choose_in_turn(line: SlottedObjects) -> Iterator[int]:
    while True:
        slot = line.next
        if not line.first <= slot < len(line.numbers):
            slot = line.first
        line.next = slot + 1
        yield slot


def _choose_hotspot(
    popularity: Popularity, line: SlottedObjects, random: np.random.Generator, along: Sequence[array[int]]
) -> Iterator[int]:
    numbers, objects, requests = line.numbers, popularity.objects, popularity.requests
    known = hot = 0
    while True:
        parts = random.random(SHARES_AT_ONCE)
        hots, colds = parts / requests * hot, (parts - requests) / (1 - requests) * (known - hot)
        ranks = np.where(parts < requests, hots, hot + colds).astype(np.int64)
        _touch_objects(line, line.first + ranks, along)
        for part in parts.tolist():
            first = line.first
            count = len(numbers) - first
            if count != known:
                known, hot = count, min(max(round(count * objects), 1), count)
            if hot == count:
                yield first + int(part * count)
            elif part < requests:
                yield first + int(part / requests * hot)
            else:
                cold = int((part - requests) / (1 - requests) * (count - hot))
                yield first + min(hot + cold, count - 1)


def _choose_by_rank(
    line: SlottedObjects,
    random: np.random.Generator,
    draw: Callable[[int, ShareArray], RankArray],
    along: Sequence[array[int]],
    *,
    newest: bool = False,
) -> Iterator[int]:
    """Yield slots by the ranks of objects, of which the first is the oldest, or the ``newest``.

    Ranks are drawn for a few more objects than there are, and those beyond the last object left out. That
    leaves the others as likely as they are for the number of objects that there is.
    """
    numbers = line.numbers
    while True:
        most = len(line) + len(line) // 8 + 1
        ranks = draw(most, random.random(min(max(most, _SHARES_OF_FEW_OBJECTS), SHARES_AT_ONCE)))
        _touch_objects(line, len(numbers) - 1 - ranks if newest else ranks + line.first, along)
        for rank in ranks.tolist():
            first, end = line.first, len(numbers)
            count = end - first
            if rank < count <= most:
                yield end - 1 - rank if newest else first + rank
            elif count > most or 2 * count < most:
                break


def _touch_objects(line: SlottedObjects, slots: RankArray, along: Sequence[array[int]]) -> None:
    """Read what will be asked for soon, all at once.

    Of millions of objects it is in no cache of the processor, and each read by itself waits for the memory.
    """
    if len(line.numbers) < _MANY_OBJECTS:
        return
    found = np.frombuffer(line.numbers, np.uint32)[slots.clip(line.first, len(line.numbers) - 1)]
    for each in along:
        np.frombuffer(each, f"u{each.itemsize}")[found].sum()


def _split_evenly(count: int, parts: ShareArray) -> RankArray:
    return (parts * count).astype(np.int64)


def make_rank_function(exponent: float) -> Callable[[int, ShareArray], RankArray]:
    """Return a function of a count and of numbers from 0 to 1 that returns ranks from 0 to below the count.

    They are by Zipf's law, of any exponent above 0.
    """
    sums = (np.arange(1, _EXACT_RANKS + 1, dtype=np.float64) ** -exponent).cumsum()
    power = 1 - exponent

    def integral(rank: float) -> float:
        return math.expm1(power * math.log(rank)) / power if power else math.log(rank)

    start = integral(_EXACT_RANKS + 0.5)

    def ranks(count: int, parts: ShareArray) -> RankArray:
        exact = min(count, _EXACT_RANKS)
        total = sums[exact - 1] + (integral(count + 0.5) - start if count > _EXACT_RANKS else 0.0)
        weights = parts * total
        found: RankArray = np.minimum(sums[:exact].searchsorted(weights, side="right"), exact - 1)
        if count > _EXACT_RANKS:
            beyond = np.flatnonzero(weights >= sums[-1])
            places = weights[beyond] - sums[-1] + start
            far = np.exp(np.log1p(places * power) / power) if power else np.exp(places)
            found[beyond] = np.clip((far - 0.5).astype(np.int64), _EXACT_RANKS, count - 1)
        return found

    return ranks
