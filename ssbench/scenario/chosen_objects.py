"""A population of which objects are chosen by their popularity, not in turn.

It keeps all promises of :class:`~ssbench.scenario.population.Population`. The objects of a size class are in
slots, of which one is chosen. Each choice takes constant time, whatever the number of objects is, and that
number may change from one choice to the next. The random numbers for it are drawn with numpy, many at a time.

An object that is being written stays in its slot, so that it is as popular afterwards. Reads and updates of
one request share it meanwhile, because a store replaces an object at once: a read gets the old data or the
new. Else hot objects would lose most of their uses, since operations are handed out before they are due. So
that the size of what is read is known nevertheless, an update of an object in use keeps its size; a read has
none to check where the update in flight changes it, and a part that is read is of what both sizes have.

Nothing shares an object that another operation writes or deletes, that expires, is in segments, or of which
the version is verified, or whose size is not known. An operation that draws it draws again, which is counted.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, islice, repeat

import numpy as np
import numpy.typing as npt

from ssbench.base.errors import UsageError
from ssbench.scenario.draws import Draw, Target, Workload
from ssbench.scenario.model import Scenario
from ssbench.scenario.operations import UPDATE, Effect
from ssbench.scenario.population import Population
from ssbench.scenario.structured_values import Popularity, Reuse

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

#: The order of a cycle is held in memory: 4 bytes a use, some 20 while it is made.
MAX_CYCLE_USES = 30_000_000

#: Uses of a cycle that are looked at together while its order is made.
_USES_AT_ONCE = 1 << 17

#: What is within this part of a cycle is not at its beginning by rounding.
_BELOW_ONE = 1 - 1e-9

#: Powers of distances within a bin.
_LEAST_POWER, _MAX_POWER = 1e-6, 4.0

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


class CycledObjects(SlottedObjects):
    """Objects of a cycle: those in the first slots have a rank, and all others wait for one."""

    __slots__ = ("finished", "ranks", "slots", "unused")

    def __init__(self) -> None:
        super().__init__(aged=False)
        #: The rank of each slot, as far as they have one.
        self.ranks = array("i")
        #: The slot of each rank; below 0: it has none.
        self.slots = array("i")
        #: Ranks whose uses are over, the first one first; some have lost their object since.
        self.finished: deque[int] = deque()
        #: How many of those that wait have no use, and have not been deleted.
        self.unused = 0

    def begin_cycle(self, ranks: int, unused: int) -> None:
        """Let no object have a rank; so many will have none."""
        self.ranks = array("i")
        self.slots = array("i", [-1]) * ranks
        self.finished.clear()
        self.unused = unused
        self.next = 0

    def find_waiting(self) -> int:
        """Return the slot of an object that waits, in turn, so that new ones wait as long as old ones."""
        first = len(self.ranks)
        slot = self.next if first <= self.next < len(self.numbers) else first
        self.next = slot + 1
        return slot

    def give(self, rank: int) -> int:
        """Let the object whose turn it is have a rank; return its slot."""
        numbers, turn = self.numbers, self.find_waiting()
        slot = self.slots[rank] = len(self.ranks)
        numbers[slot], numbers[turn] = numbers[turn], numbers[slot]
        self.ranks.append(rank)
        return slot

    def remove(self, slot: int) -> None:
        """Let the object in a slot go."""
        ranks, numbers = self.ranks, self.numbers
        if slot < len(ranks):
            self.slots[ranks[slot]] = -1
            last = ranks.pop()
            if slot < len(ranks):
                ranks[slot], numbers[slot] = last, numbers[len(ranks)]
                self.slots[last] = slot
            slot = len(ranks)
        super().remove(slot)


#: Returns the slot of an object in its line, which has one object or more.
ChooseSlot = Callable[[], int]

ShareArray = npt.NDArray[np.float64]
RankArray = npt.NDArray[np.int64]

#: Uses of a cycle: the moment of each is the real part, a number that belongs to it the imaginary one.
CycleUses = npt.NDArray[np.complex128]


def is_aged(popularity: Popularity) -> bool:
    """Whether the order in which objects came matters."""
    return popularity.kind in {"rotate", "sequential", "latest"}


def make_chooser(
    popularity: Popularity,
    line: SlottedObjects,
    random: np.random.Generator,
    along: Sequence[array[int]] = (),
    reuse: Reuse | None = None,
) -> ChooseSlot:
    """Return what chooses an object of a line, by numbers of a generator.

    ``along`` are arrays in which the chosen objects are looked up by their numbers: see
    :func:`_touch_objects`.
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
        case "counts" if reuse is not None and isinstance(line, CycledObjects):
            found = _choose_in_cycles(popularity, reuse, line, random)
        case "counts":
            found = _choose_by_band(popularity, line, random, along)
        case _:
            found = _choose_in_turn(line)
    return found.__next__


def make_deletion_chooser(
    popularity: Popularity,
    line: SlottedObjects,
    random: np.random.Generator,
    along: Sequence[array[int]] = (),
) -> ChooseSlot:
    """Return what chooses an object to be deleted: the oldest, or any where the order does not matter.

    In a cycle it is one without any use, then the one whose uses have been over for the longest time, else
    one that is not used yet.
    """
    if is_aged(popularity):
        return lambda: line.first
    choose = make_chooser(Popularity("uniform"), line, random, along)
    if not isinstance(line, CycledObjects):
        return choose

    def choose_unneeded() -> int:
        if line.unused > 0 and len(line.ranks) < len(line):
            line.unused -= 1
            return line.find_waiting()
        while line.finished:
            rank = line.finished.popleft()
            if (slot := line.slots[rank]) >= 0:
                line.finished.append(rank)  # as long as it has an object
                return slot
        return line.find_waiting() if len(line.ranks) < len(line) else choose()

    return choose_unneeded


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


def _choose_by_band(
    popularity: Popularity, line: SlottedObjects, random: np.random.Generator, along: Sequence[array[int]]
) -> Iterator[int]:
    """Yield slots by the counts of bands; objects with low numbers are in the band of the highest count."""
    counts, objects = np.array(popularity.bands[::-1]).T
    edges, weights = (np.append(0.0, each.cumsum() / each.sum()) for each in (objects, counts * objects))
    while True:
        places = np.interp(random.random(SHARES_AT_ONCE), weights, edges)
        _touch_objects(line, line.first + (places * len(line)).astype(np.int64), along)
        for place in places.tolist():
            count = len(line)
            yield line.first + min(int(place * count), count - 1)


def _choose_in_cycles(
    popularity: Popularity, reuse: Reuse, line: CycledObjects, random: np.random.Generator
) -> Iterator[int]:
    """Yield slots so that objects are used as often as counts say, and again after the distances of classes.

    The order of a whole cycle is made at once, in 4 bytes a use, and 12 an object. An object begins when its
    turn comes. The order is made anew at the end of a cycle in which all began, and where there are half as
    many objects as at its beginning. A later cycle has as many objects as the first one, or all where that is
    less than half of them.
    """
    objects = _count_cycle_objects(reuse, len(line))
    while True:
        known = len(line)
        objects = objects if known <= 2 * objects else known
        order = draw_cycle(popularity, reuse, objects, known, random)
        uses = np.bincount(np.frombuffer(order, np.uint32), minlength=objects)
        left = array("i", uses.astype(np.int32).tobytes())
        used = int(np.count_nonzero(uses))
        waiting = used if reuse.created else len(order) * known
        line.begin_cycle(objects, objects - used)
        numbers, ranks, slots, is_over = line.numbers, line.ranks, line.slots, line.finished.append
        while waiting > 0:
            for rank in order:
                slot = slots[rank]
                if slot < 0 and len(ranks) < len(numbers):
                    slot = line.give(rank)
                    waiting -= 1
                if slot >= 0:
                    left[rank] -= 1
                    if not left[rank]:
                        is_over(rank)
                    yield slot
                if 2 * len(numbers) < known:
                    waiting = 0
                    break


def _count_cycle_objects(reuse: Reuse, objects: int) -> int:
    """Return how many objects a cycle has, of which some exist at its beginning."""
    return max(round(objects / (1 - reuse.created)), 1)


def draw_cycle(
    popularity: Popularity, reuse: Reuse, objects: int, known: int, random: np.random.Generator
) -> array[int]:
    """Return which of so many objects is used, in the order of a cycle at whose beginning some are known."""
    order = array("I")
    for part in draw_cycle_parts(popularity, reuse, objects, known, random):
        order.frombytes(part.tobytes())
    return order


def draw_cycle_parts(
    popularity: Popularity,
    reuse: Reuse,
    objects: int,
    known: int,
    random: np.random.Generator,
    make_zeros: Callable[[int], CycleUses] = lambda uses: np.zeros(uses, np.complex128),
) -> Iterator[npt.NDArray[np.uint32]]:
    """Yield the same in parts, so that only what ``make_zeros`` returns is as long as the cycle.

    Each object begins at a moment of its own, and is used again by distances of the class of its count. What
    goes beyond the end of the cycle is at its beginning; distances that are longer than a cycle together are
    shortened. But objects that are created are used after that, and those that are deleted before that, which
    is at even moments.
    """
    counts = _draw_counts(popularity, objects, random)
    uses = make_zeros(int(counts.sum()))
    spans, scales = _draw_moments(reuse, counts, uses, random)
    created = min(max(objects - known, 0), len(counts))
    deleted = min(round(reuse.deleted * objects), len(counts) - created)
    starts = _draw_starts(spans, scales, created, deleted, random)
    del spans
    # Sorted as complex numbers: by their moments, those of one moment by their objects.
    moments, numbers = uses.real, uses.imag
    for rows, own in _split_uses(counts):
        moments[rows] = (moments[rows] * scales[own] + starts[own]) % 1.0
        numbers[rows] = own
    uses.sort()
    for first in range(0, len(uses), _USES_AT_ONCE):
        yield numbers[first : first + _USES_AT_ONCE].astype(np.uint32)


def _draw_counts(popularity: Popularity, objects: int, random: np.random.Generator) -> RankArray:
    """Return how often each object is used, of those that are."""
    bands = np.array(popularity.bands)
    shares = bands[:, 1] / bands[:, 1].sum()
    means = bands[:, 0].repeat(
        np.diff(np.rint(np.concatenate([[0.0], shares.cumsum()]) * objects).astype(int))
    )
    # A mean of 5.3 is 5 or 6. Objects with low numbers are used the most, the last ones perhaps never.
    counts = (means[::-1] + random.random(objects)).astype(np.int64)
    counts[0] = max(counts[0], 1)
    return counts[counts > 0]


def _draw_moments(
    reuse: Reuse, counts: RankArray, uses: CycleUses, random: np.random.Generator
) -> tuple[ShareArray, ShareArray]:
    """Let the real parts of uses be how long each is after the first one of its object, in cycles.

    Return how long that is for the last use of each object, and what shortens it where that is too long.
    """
    moments, bins = uses.real, uses.imag
    least = [count for count, _ in reuse.classes]
    of_class = np.maximum(np.searchsorted(least, counts, "right") - 1, 0).astype(np.uint8)
    begins = counts.cumsum() - counts
    for place, (_, weights) in enumerate(reuse.classes):
        some = np.flatnonzero(of_class == place)
        own_counts = counts[some]
        shifts = begins[some] - (own_counts.cumsum() - own_counts)
        chances, powers = _weigh_bins(np.array(weights))
        for rows, own in _split_uses(own_counts):
            at = np.arange(rows.start, rows.stop) + shifts[own]
            bins[at] = np.searchsorted(chances, random.random(len(at)), "right")
        for rows, own in _split_uses(own_counts):
            at = np.arange(rows.start, rows.stop) + shifts[own]
            moments[at] = _draw_distances(bins[at].astype(np.int64), powers, random)
    del of_class
    last = moments[begins]
    moments[begins] = 0.0
    so_far = 0.0
    for first in range(0, len(moments), _USES_AT_ONCE):
        part = moments[first : first + _USES_AT_ONCE]
        part[0] += so_far
        part[:] = part.cumsum()
        so_far = part[-1]
    at_first = moments[begins]
    for rows, own in _split_uses(counts):
        moments[rows] -= at_first[own]
    del at_first
    begins += counts - 1  # the places of last uses from here on
    spans = moments[begins]
    del begins
    # Then the distance from its last use to its first in the next cycle is drawn as all others.
    last += spans
    return spans, np.divide(1.0, last, out=np.ones(len(last)), where=spans >= 1)


def _split_uses(counts: RankArray) -> Iterator[tuple[slice, RankArray]]:
    """Yield the uses of objects, each of which has so many, in blocks, with the object of each use."""
    ends = counts.cumsum()
    whole = int(ends[-1]) if len(ends) else 0
    for first in range(0, whole, _USES_AT_ONCE):
        stop = min(first + _USES_AT_ONCE, whole)
        low, high = ends.searchsorted([first, stop - 1], "right")
        numbers = np.diff(ends[low : high + 1].clip(max=stop), prepend=first)
        yield slice(first, stop), np.arange(low, high + 1).repeat(numbers)


def _draw_starts(
    spans: ShareArray, scales: ShareArray, created: int, deleted: int, random: np.random.Generator
) -> ShareArray:
    """Return when each object is used first; shorten ``scales`` of those that are created or deleted."""
    starts = random.random(len(spans))
    if not created and not deleted:
        return starts
    # Those of short lives, mostly.
    room = (1 - spans * scales) * random.random(len(spans))
    some = random.permutation(np.argsort(room)[::-1][: created + deleted])
    del room
    for chosen, is_created in ((some[:created], True), (some[created:], False)):
        fitting = _fit_lives(1 - (1 - spans[chosen] * scales[chosen]), random)
        for first in range(0, len(chosen), _USES_AT_ONCE):
            own = chosen[fitting[first : first + _USES_AT_ONCE]]
            away = (np.arange(first, first + len(own)) + 0.5) / len(chosen)
            lives = np.minimum(spans[own] * scales[own], (1 - away) * _BELOW_ONE)
            scales[own] = lives / np.maximum(spans[own], 1e-12)
            starts[own] = away if is_created else 1 - away - lives
    return starts


def _fit_lives(lives: ShareArray, random: np.random.Generator) -> npt.NDArray[np.int32]:
    """Return the places of lives so that the n-th of N, from n/N on, ends within 1 as far as possible."""
    # No lists, which take several times as much memory.
    order = array("i", np.argsort(lives)[::-1].astype(np.int32).tobytes())
    found, fitting = array("i"), array("i")
    for number, part in enumerate(random.random(len(lives))):
        while order and (lives[order[-1]] * len(lives) <= number + 0.5 or not fitting):
            fitting.append(order.pop())
        place = int(part * len(fitting))
        fitting[place], fitting[-1] = fitting[-1], fitting[place]
        found.append(fitting.pop())
    return np.array(found, np.int32)[::-1]


def _weigh_bins(weights: ShareArray) -> tuple[ShareArray, ShareArray]:
    """Return the chances of bins of distances, added up, and the power by which each goes on.

    Within a bin distances go on as from the bin before to the one behind.
    """
    chances = weights.cumsum()
    beside = np.concatenate([[0.0], weights, [0.0]])
    far, near = (np.where(each, each, weights) for each in (beside[:-2], beside[2:]))
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.nan_to_num(np.log2(far / near) / 2).clip(-_MAX_POWER, _MAX_POWER)
    # Even in logarithms where both are alike, even where they have twice as much as the next.
    return chances / chances[-1], np.where(np.abs(powers) < _LEAST_POWER, _LEAST_POWER, powers)


def _draw_distances(bins: RankArray, powers: ShareArray, random: np.random.Generator) -> ShareArray:
    """Return distances within such bins, each of which has a power."""
    own = powers[bins]
    return np.asarray((1 + random.random(len(bins)) * (2.0**own - 1)) ** (1 / own) / 2.0 ** (bins + 1))


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


# -- The population --------------------------------------------------------------------------------


_ADDS, _READS, _REWRITES, _REMOVES = Effect.ADDS, Effect.READS, Effect.REWRITES, Effect.REMOVES
_NONE = Effect.NONE

#: How many objects are drawn before the next one that is free is taken.
_MAX_TRIES = 16


def make_population(scenario: Scenario, workload: Workload, *, verify: bool = False) -> Population:
    """Return the objects of a run; raises UsageError where a cycle of uses is too long.

    ``verify``: what is read is compared with what was written last.
    """
    if scenario.popularity in {None, Popularity()} and scenario.reuse is None:
        return Population(scenario, workload)
    if scenario.reuse is not None and scenario.reuse.classes and scenario.popularity is not None:
        _check_cycle_length(scenario, scenario.popularity, scenario.reuse)
    remembers = scenario.reuse is not None and not scenario.reuse.classes
    return (_ReusingPopulation if remembers else ChosenPopulation)(scenario, workload, verify=verify)


def _check_cycle_length(scenario: Scenario, popularity: Popularity, reuse: Reuse) -> None:
    counts, objects = np.array(popularity.bands).T
    mean = float((counts * objects).sum() / objects.sum())
    for each in scenario.size_classes:
        uses = mean * _count_cycle_objects(reuse, each.initial_files)
        if uses > MAX_CYCLE_USES:
            raise UsageError(
                f"popularity, reuse: {each.name} would have {uses:,.0f} uses in a cycle, at most"
                f" {MAX_CYCLE_USES:,} are possible: lower initial_files, counts, or created"
            )


class ChosenPopulation(Population):
    """The objects of a run whose scenario has a ``popularity``, or a ``reuse``.

    ``redrawn`` counts the operations whose first choice was in use, ``shared`` those that share an object
    with an update, ``reused`` the reads of what was read before because of ``reuse``.
    """

    def __init__(self, scenario: Scenario, workload: Workload, *, verify: bool = False) -> None:
        super().__init__(scenario, workload)
        self.redrawn = 0
        self.shared = 0
        self.reused = 0
        self._append = self._come_back
        popularity = scenario.popularity or Popularity()
        *generators, of_reuse = workload.generators()
        self._share = draw_shares(of_reuse).__next__
        classes = scenario.size_classes
        in_cycles = scenario.reuse is not None and scenario.reuse.classes
        self._lines = [
            CycledObjects() if in_cycles else SlottedObjects(aged=is_aged(popularity)) for _ in classes
        ]
        #: What is in their slots.
        self._numbers = [line.numbers for line in self._lines]
        lines = [
            (line, random, (containers, sizes))
            for line, random, containers, sizes in zip(
                self._lines, generators, self._containers, self._sizes, strict=True
            )
        ]
        self._choose = [make_chooser(popularity, *each, scenario.reuse) for each in lines]
        self._choose_to_delete = [make_deletion_chooser(popularity, *each) for each in lines]
        #: Objects that are being written, or are reserved for that, and how many updates are in flight that
        #: others may share them with; 0: nothing may. They are in their lines.
        self._busy: list[dict[int, int]] = [{} for _ in classes]
        kept_apart = verify or self._expiry is not None
        sharing = {
            row.code
            for row in scenario.operation_table.drawn
            if row.code == UPDATE.code or (row.effect is _READS and not row.defined)
        }
        self._partial = {row.code for row in scenario.operation_table.drawn if row.reads_part}
        #: The codes of operations that may share an object.
        self._sharing = [set() if kept_apart or each.segment_size else sharing for each in classes]
        #: Objects whose delete was drawn and has not succeeded.
        self._leaving: list[set[int]] = [set() for _ in classes]
        self._reuse = scenario.reuse if scenario.reuse and not scenario.reuse.classes else None
        #: The objects that were read last, of each class, and the place in them of the next one.
        self._read = [array("I", [0]) * (self._reuse.farthest if self._reuse else 0) for _ in classes]
        self._next_read = [0 for _ in classes]

    def counts(self) -> dict[str, float]:
        """Return what is counted of choices."""
        return {"redrawn": self.redrawn, "shared": self.shared, "reused": self.reused}

    def _draw(self, jobs: list[Target], count: int, now: float) -> None:
        if self._reuse is not None or self._expiry is not None:
            self._draw_carefully(jobs, count, now)
            return
        effects, assign, add_job = self._effects, self._assign, jobs.append
        containers, sizes, reading, busy = self._containers, self._sizes, self._reading, self._busy
        lines, choose, to_delete = self._numbers, self._choose, self._choose_to_delete
        adds, reads, removes, without = _ADDS, _READS, _REMOVES, _NONE
        for code, index, container, size in islice(self._draws, count):
            effect = effects[code]
            if effect is adds:
                number = len(containers[index])
                containers[index].append(container)
                sizes[index].append(size)
                add_job((code, index, container, number, size))
                continue
            numbers = lines[index]
            if effect is without or not numbers:
                self._draw_one(jobs, (code, index, container, size), now)
                continue
            slot = to_delete[index]() if effect is removes else choose[index]()
            number = numbers[slot]
            readers = reading[index]
            if number in busy[index] or (effect is not reads and number in readers):
                if (job := assign(code, index, container, size, slot, now)) is not None:
                    add_job(job)
            elif effect is reads:
                readers[number] = readers[number] + 1 if number in readers else 1
                add_job((code, index, containers[index][number], number, sizes[index][number]))
            else:
                if effect is removes:
                    self._lines[index].remove(slot)
                else:
                    busy[index][number] = code in self._sharing[index]
                    self._begin_update(code, index, number, size, now)
                add_job((code, index, containers[index][number], number, size))
        self.drawn += count

    def _draw_carefully(self, jobs: list[Target], count: int, now: float) -> None:
        """Do the same where objects expire, or are read again."""
        for code, index, container, size in islice(self._draws, count):
            if self._effects[code] is _ADDS:
                number = len(self._containers[index])
                self._containers[index].append(container)
                self._sizes[index].append(size)
                if self._expiry is not None:
                    self._expiry.handed_out(index, number, now)
                jobs.append((code, index, container, number, size))
            else:
                self._draw_one(jobs, (code, index, container, size), now)
        self.drawn += count

    def _draw_one(self, jobs: list[Target], draw: Draw, now: float) -> None:
        """Append to ``jobs`` an operation that creates nothing, unless it has to wait or cannot be sent."""
        code, index, container, size = draw
        if self._effects[code] is _NONE:
            self._draw_without(jobs, draw, now)
        elif (job := self._assign(code, index, container, size, -1, now)) is not None:
            jobs.append(job)

    def _assign(
        self, code: int, index: int, container: int, size: int, number: int, now: float
    ) -> Target | None:
        """Give an operation an object of its choice; ``number`` is its first slot, below 0 without one."""
        effect, readers, busy = self._effects[code], self._reading[index], self._busy[index]
        shares = code in self._sharing[index]
        if effect is _READS or code in self._copies:
            number = self._choose_to_read(index, now, number, shares=shares)
            if not number:
                self._wait_for_object((code, index, container, size))
                return None
            job = self._begin_read(code, index, number, now)
            return self._share_read(job) if number in busy else job
        removes = effect is _REMOVES
        choose = (self._choose_to_delete if removes else self._choose)[index]
        slot = self._pick(index, now, choose, readers.keys(), number, shares=shares)
        if slot < 0:
            self._wait_for_object((code, index, container, size))
            return None
        line = self._lines[index]
        number = line.numbers[slot]
        if removes:
            line.remove(slot)
            if self._reuse is not None:
                self._leaving[index].add(number)
        elif shares and (number in busy or number in readers) and self._may_be_shared(index, number):
            size = self._sizes[index][number]
            busy[number] = busy.get(number, 0) + 1
            self.shared += 1
            self._begin_update(code, index, number, size, now)
            return code, index, self._containers[index][number], number, size
        else:
            busy[number] = shares and number not in readers
        return self._begin_change((code, index, self._containers[index][number], number, size), now)

    def _may_be_shared(self, index: int, number: int) -> bool:
        """Return whether a read or an update of one request may use an object beside those in flight."""
        return self._busy[index].get(number, 1) > 0 and self._sizes[index][number] > 0

    def _share_read(self, job: Target) -> Target:
        """Return a read of an object that is being updated, with no size where it may have one of two.

        A part begins within both.
        """
        self.shared += 1
        code, index, _, number, size = job
        before = self._sizes_before[index, number]
        return job if size == before else (*job[:4], min(size, before) if code in self._partial else 0)

    def _choose_to_read(self, index: int, now: float, slot: int, *, shares: bool) -> int:
        number = 0
        if self._reuse is not None and self._share() < self._reuse.share:
            number = self._read_before(self._reuse, index, now, shares=shares)
        if not number:
            slot = self._pick(index, now, self._choose[index], (), slot, shares=shares)
            number = self._lines[index].numbers[slot] if slot >= 0 else 0
        if self._reuse is not None:
            read, place = self._read[index], self._next_read[index]
            read[place] = number
            self._next_read[index] = (place + 1) % len(read)
        return number

    def _read_before(self, reuse: Reuse, index: int, now: float, *, shares: bool) -> int:
        """Return what was read some reads ago, 0 where that may not be read now."""
        nearest, farthest = reuse.nearest, reuse.farthest
        distance = nearest + int(self._share() * (farthest - nearest + 1))
        number = self._read[index][(self._next_read[index] - distance) % farthest]
        if (
            not number
            or (number in self._busy[index] and not (shares and self._may_be_shared(index, number)))
            or number in self._leaving[index]
            or self._objects.is_gone(index, number)
            or (self._expiry is not None and self._expiry.passed(index, number, now))
        ):
            return 0
        self.reused += 1
        return number

    def _pick(
        self,
        index: int,
        now: float,
        choose: ChooseSlot,
        avoided: Collection[int],
        slot: int,
        *,
        shares: bool,
    ) -> int:
        """Return the slot of an object that is not being written, and not ``avoided`` if possible.

        -1: there is none. ``slot`` is the first choice, below 0 where none was made. An operation that
        ``shares`` objects keeps what it may share.
        """
        line, busy, expiry = self._lines[index], self._busy[index], self._expiry
        tries = _MAX_TRIES
        while len(line.numbers) - line.first > (0 if shares else len(busy)):
            slot = choose() if slot < 0 else slot
            number = line.numbers[slot]
            if number in busy or number in avoided:
                if shares and self._may_be_shared(index, number):
                    return slot
                self.redrawn += tries == _MAX_TRIES
                tries -= 1
                if tries > 0:
                    slot = -1
                    continue
                slot = self._next_free(line, slot, busy, avoided)
                if slot < 0:
                    break
                number = line.numbers[slot]
            if expiry is not None and expiry.passed(index, number, now):
                self.expired += 1
                line.remove(slot)
                slot = -1
                continue
            return slot
        return -1

    @staticmethod
    def _next_free(line: SlottedObjects, slot: int, busy: Collection[int], avoided: Collection[int]) -> int:
        """Return the next slot, from one on, whose object is not being written, nor avoided if possible."""
        free = -1
        for each in range(line.first, len(line.numbers)):
            place = slot + each - line.first
            place -= len(line) if place >= len(line.numbers) else 0
            number = line.numbers[place]
            if number not in busy:
                if number not in avoided:
                    return place
                free = place if free < 0 else free
        return free

    def _come_back(self, index: int, number: int) -> None:
        """Let an object be chosen, again or for the first time."""
        others = self._busy[index].pop(number, None)
        if others is not None:
            if others > 1:
                self._busy[index][number] = others - 1
                self._sizes_before[index, number] = self._sizes[index][number]  # it is written
        else:
            self._leaving[index].discard(number)
            self._lines[index].numbers.append(number)

    def _expire(self, index: int, number: int) -> None:
        if self._busy[index].pop(number, None) is None:  # else it is counted when it is drawn
            super()._expire(index, number)

    def take_back(
        self, operation: int, size_class: int, container: int, number: int, *, in_doubt: bool = False
    ) -> None:
        """Undo an operation of ``next_jobs`` that will not be carried out, in place of :meth:`finished`."""
        busy = self._busy[size_class]
        if self._effects[operation] is _REWRITES and busy[number] > 1:
            busy[number] -= 1  # the others give it the same size
            self._updating[size_class] -= 1
            self.drawn -= 1
            return
        super().take_back(operation, size_class, container, number, in_doubt=in_doubt)

    def _take(self, index: int, now: float) -> int:
        """Return -1, of which an object is chosen, or 0 where there is none to choose."""
        return -(len(self._lines[index]) > len(self._busy[index]))


class _ReusingPopulation(ChosenPopulation):
    """The population of a scenario with a ``reuse``, which has to know which objects are being deleted."""

    def finished(self, operation: int, size_class: int, container: int, number: int, ok: bool) -> None:
        """Note that an operation of ``next_jobs`` has ended. Call this once for each."""
        if ok and self._effects[operation] is _REMOVES:
            self._leaving[size_class].discard(number)
        super().finished(operation, size_class, container, number, ok)
