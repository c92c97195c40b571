"""A population of which objects are chosen by their popularity, not in turn.

It keeps all promises of :class:`Population`. An object that is being written stays in its slot, so that it is
as popular afterwards. An operation that draws it meanwhile draws again, which is counted.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection
from itertools import islice

from ssbench.operation import Effect
from ssbench.scenario.model import Scenario
from ssbench.scenario.popularity import Popularity, Reuse
from ssbench.workload.choice import Choose, Line, chooser, chooser_to_delete, is_aged
from ssbench.workload.draws import Target, Workload
from ssbench.workload.population import Population

#: How many objects are drawn before the next one that is free is taken.
_TRIES = 16


def population_of(scenario: Scenario, workload: Workload) -> Population:
    """Return the objects of a run."""
    if scenario.popularity in {None, Popularity()} and scenario.reuse is None:
        return Population(scenario, workload)
    return ChosenPopulation(scenario, workload)


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
        self._share = share = workload.shares().__next__
        classes = scenario.size_classes
        self._lines = [Line(aged=is_aged(popularity)) for _ in classes]
        self._choose = [chooser(popularity, line, share) for line in self._lines]
        self._choose_to_delete = [chooser_to_delete(popularity, line, share) for line in self._lines]
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

    def finished(self, operation: int, size_class: int, container: int, number: int, ok: bool) -> None:
        """Note that an operation of :meth:`next_jobs` has ended. Call this once for each."""
        if ok and self._effects[operation] is Effect.REMOVES:
            self._leaving[size_class].discard(number)
        super().finished(operation, size_class, container, number, ok)

    def _draw(self, jobs: list[Target], count: int, now: float) -> None:
        effects, assign, add_job = self._effects, self._assign, jobs.append
        adds, without = Effect.ADDS, Effect.NONE
        for code, index, container, size in islice(self._draws, count):
            effect = effects[code]
            if effect is adds:
                number = len(self._containers[index])
                self._containers[index].append(container)
                self._sizes[index].append(size)
                if self._expiry is not None:
                    self._expiry.handed_out(index, number, now)
                add_job((code, index, container, number, size))
            elif effect is without:
                self._draw_without(jobs, (code, index, container, size), now)
            elif (job := assign(code, index, container, size, 1, now)) is not None:
                add_job(job)
        self.drawn += count

    def _assign(
        self, code: int, index: int, container: int, size: int, number: int, now: float
    ) -> Target | None:
        """Give an operation an object of its own choice; ``number`` does not matter."""
        effect, readers = self._effects[code], self._reading[index]
        if effect is Effect.READS or code in self._copies:
            number = self._choose_to_read(index, now)
            if not number:
                self._wait_for_object((code, index, container, size))
                return None
            return self._begin_read(code, index, number, now)
        removes = effect is Effect.REMOVES
        slot = self._pick(
            index, now, (self._choose_to_delete if removes else self._choose)[index], readers.keys()
        )
        if slot < 0:
            self._wait_for_object((code, index, container, size))
            return None
        line = self._lines[index]
        number = line.numbers[slot]
        if removes:
            line.remove(slot)
            self._leaving[index].add(number)
        else:
            self._busy[index].add(number)
        return self._begin_change((code, index, self._containers[index][number], number, size), now)

    def _choose_to_read(self, index: int, now: float) -> int:
        number = 0
        if self._reuse is not None and self._share() < self._reuse.share:
            number = self._read_before(self._reuse, index, now)
        if not number:
            slot = self._pick(index, now, self._choose[index], ())
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

    def _pick(self, index: int, now: float, choose: Choose, avoided: Collection[int]) -> int:
        """Return the slot of an object that is not being written, and not ``avoided`` if possible.

        -1: there is none.
        """
        line, busy, expiry = self._lines[index], self._busy[index], self._expiry
        tries = _TRIES
        while len(line.numbers) - line.first > len(busy):
            slot = choose()
            number = line.numbers[slot]
            if number in busy or number in avoided:
                self.redrawn += tries == _TRIES
                tries -= 1
                if tries > 0:
                    continue
                slot = self._next_free(line, slot, busy, avoided)
                number = line.numbers[slot]
            if expiry is not None and expiry.passed(index, number, now):
                self.expired += 1
                line.remove(slot)
                continue
            return slot
        return -1

    @staticmethod
    def _next_free(line: Line, slot: int, busy: set[int], avoided: Collection[int]) -> int:
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
        """Return whether there is an object to choose."""
        return len(self._lines[index]) > len(self._busy[index])
