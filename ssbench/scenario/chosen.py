"""A population of which objects are chosen by their popularity, not in turn.

It keeps all promises of :class:`Population`. An object that is being written stays in its slot, so that it is
as popular afterwards. An operation that draws it meanwhile draws again, which is counted.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection
from itertools import islice

from ssbench.scenario.choice import (
    ChooseSlot,
    SlottedObjects,
    draw_shares,
    is_aged,
    make_chooser,
    make_deletion_chooser,
)
from ssbench.scenario.draws import Draw, Target, Workload
from ssbench.scenario.model import Scenario
from ssbench.scenario.operation import Effect
from ssbench.scenario.popularity import Popularity, Reuse
from ssbench.scenario.population import Population

_ADDS, _READS, _REMOVES, _NONE = Effect.ADDS, Effect.READS, Effect.REMOVES, Effect.NONE

#: How many objects are drawn before the next one that is free is taken.
_MAX_TRIES = 16


def make_population(scenario: Scenario, workload: Workload) -> Population:
    """Return the objects of a run."""
    if scenario.popularity in {None, Popularity()} and scenario.reuse is None:
        return Population(scenario, workload)
    return (ChosenPopulation if scenario.reuse is None else _ReusingPopulation)(scenario, workload)


class ChosenPopulation(Population):
    """The objects of a run whose scenario has a ``popularity``, or a ``reuse``.

    ``redrawn`` counts the operations whose first choice was in use, ``reused`` the reads of what was read
    before because of ``reuse``.
    """

    def __init__(self, scenario: Scenario, workload: Workload) -> None:
        super().__init__(scenario, workload)
        self.redrawn = 0
        self.reused = 0
        self._append = self._come_back
        popularity = scenario.popularity or Popularity()
        *generators, of_reuse = workload.generators()
        self._share = draw_shares(of_reuse).__next__
        classes = scenario.size_classes
        self._lines = [SlottedObjects(aged=is_aged(popularity)) for _ in classes]
        #: What is in their slots.
        self._numbers = [line.numbers for line in self._lines]
        lines = [
            (line, random, (containers, sizes))
            for line, random, containers, sizes in zip(
                self._lines, generators, self._containers, self._sizes, strict=True
            )
        ]
        self._choose = [make_chooser(popularity, *each) for each in lines]
        self._choose_to_delete = [make_deletion_chooser(popularity, *each) for each in lines]
        #: Objects that are being written, or are reserved for that; they are in their lines.
        self._busy: list[set[int]] = [set() for _ in classes]
        #: Objects whose delete was drawn and has not succeeded.
        self._leaving: list[set[int]] = [set() for _ in classes]
        self._reuse = scenario.reuse
        #: The objects that were read last, of each class, and the place in them of the next one.
        self._read = [array("I", [0]) * (self._reuse.farthest if self._reuse else 0) for _ in classes]
        self._next_read = [0 for _ in classes]

    def counts(self) -> dict[str, float]:
        """Return what is counted of choices."""
        return {"redrawn": self.redrawn, "reused": self.reused}

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
                    busy[index].add(number)
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
        effect, readers = self._effects[code], self._reading[index]
        if effect is _READS or code in self._copies:
            number = self._choose_to_read(index, now, number)
            if not number:
                self._wait_for_object((code, index, container, size))
                return None
            return self._begin_read(code, index, number, now)
        removes = effect is _REMOVES
        slot = self._pick(
            index, now, (self._choose_to_delete if removes else self._choose)[index], readers.keys(), number
        )
        if slot < 0:
            self._wait_for_object((code, index, container, size))
            return None
        line = self._lines[index]
        number = line.numbers[slot]
        if removes:
            line.remove(slot)
            if self._reuse is not None:
                self._leaving[index].add(number)
        else:
            self._busy[index].add(number)
        return self._begin_change((code, index, self._containers[index][number], number, size), now)

    def _choose_to_read(self, index: int, now: float, slot: int) -> int:
        number = 0
        if self._reuse is not None and self._share() < self._reuse.share:
            number = self._read_before(self._reuse, index, now)
        if not number:
            slot = self._pick(index, now, self._choose[index], (), slot)
            number = self._lines[index].numbers[slot] if slot >= 0 else 0
        if self._reuse is not None:
            read, place = self._read[index], self._next_read[index]
            read[place] = number
            self._next_read[index] = (place + 1) % len(read)
        return number

    def _read_before(self, reuse: Reuse, index: int, now: float) -> int:
        """Return what was read some reads ago, 0 where that may not be read now."""
        nearest, farthest = reuse.nearest, reuse.farthest
        distance = nearest + int(self._share() * (farthest - nearest + 1))
        number = self._read[index][(self._next_read[index] - distance) % farthest]
        if (
            not number
            or number in self._busy[index]
            or number in self._leaving[index]
            or self._objects.is_gone(index, number)
            or (self._expiry is not None and self._expiry.passed(index, number, now))
        ):
            return 0
        self.reused += 1
        return number

    def _pick(self, index: int, now: float, choose: ChooseSlot, avoided: Collection[int], slot: int) -> int:
        """Return the slot of an object that is not being written, and not ``avoided`` if possible.

        -1: there is none. ``slot`` is the first choice, below 0 where none was made.
        """
        line, busy, expiry = self._lines[index], self._busy[index], self._expiry
        tries = _MAX_TRIES
        while len(line.numbers) - line.first > len(busy):
            slot = choose() if slot < 0 else slot
            number = line.numbers[slot]
            if number in busy or number in avoided:
                self.redrawn += tries == _MAX_TRIES
                tries -= 1
                if tries > 0:
                    slot = -1
                    continue
                slot = self._next_free(line, slot, busy, avoided)
                number = line.numbers[slot]
            if expiry is not None and expiry.passed(index, number, now):
                self.expired += 1
                line.remove(slot)
                slot = -1
                continue
            return slot
        return -1

    @staticmethod
    def _next_free(line: SlottedObjects, slot: int, busy: set[int], avoided: Collection[int]) -> int:
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
        if number in self._busy[index]:
            self._busy[index].discard(number)
        else:
            self._leaving[index].discard(number)
            self._lines[index].numbers.append(number)

    def _expire(self, index: int, number: int) -> None:
        if number in self._busy[index]:
            self._busy[index].discard(number)  # it is counted when it is drawn
        else:
            super()._expire(index, number)

    def _take(self, index: int, now: float) -> int:
        """Return -1, of which an object is chosen, or 0 where there is none to choose."""
        return -(len(self._lines[index]) > len(self._busy[index]))


class _ReusingPopulation(ChosenPopulation):
    """That of a scenario with a ``reuse``, which has to know which objects are being deleted."""

    def finished(self, operation: int, size_class: int, container: int, number: int, ok: bool) -> None:
        """Note that an operation of :meth:`next_jobs` has ended. Call this once for each."""
        if ok and self._effects[operation] is _REMOVES:
            self._leaving[size_class].discard(number)
        super().finished(operation, size_class, container, number, ok)
