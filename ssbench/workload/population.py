"""Which objects exist now, and so which object each operation hits.

Each size class has a line of its objects, oldest first. A read or an update takes the oldest and
puts it at the end, a delete takes it out, a create joins when its success has come back.

The line is two arrays of object numbers. One is being consumed by an iterator; who joins the line
is appended to the other, which takes the place of the first when that is used up. That keeps the
order, costs two calls into C an operation, and at most 8.5 bytes an object; the container of each
number ever used takes 4 more.

A delete may overtake an update of the same object, which then makes the object anew; an update that
was given up (its worker lost, its answer cut off) may still be carried out at any time. So an object
counts as gone only when no update of it failed, or ended after the delete was handed out.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice

from ssbench.operations import OPERATIONS, Effect
from ssbench.scenario.model import Scenario
from ssbench.workload.draws import Workload

#: In place of the container of a created object that is known to be deleted.
_GONE = 2**32 - 1

#: Added to the container of an object whose delete was handed out.
_LEAVING = 2**31

_ADDS = [operation.effect is Effect.ADDS for operation in OPERATIONS]
_VISITS = [operation.effect is Effect.VISITS for operation in OPERATIONS]
_REMOVES = [operation.effect is Effect.REMOVES for operation in OPERATIONS]
_REWRITES = [operation.effect is Effect.VISITS and operation.sends_body for operation in OPERATIONS]

#: (operation code, size-class index, container number, object number, bytes to send)
Target = tuple[int, int, int, int, int]


class RunState:
    """The objects of a run, from its initial objects to what it leaves behind.

    ``drawn`` counts the operations taken from the workload, ``not_sendable`` those of them that
    had no object to work on, by (operation code, size-class index).
    """

    def __init__(self, scenario: Scenario, workload: Workload) -> None:
        self.drawn = 0
        self.not_sendable: Counter[tuple[int, int]] = Counter()
        self._draws = workload.draws()
        classes = range(len(scenario.size_classes))
        # containers[size class][object number], whether or not the object exists; there is no number 0
        self._containers = [
            array("I", [0]) + array("I", workload.initial_containers(index).tobytes()) for index in classes
        ]
        self._first_created = [len(containers) for containers in self._containers]
        #: (size class, number) of objects that an update may make anew after their delete.
        self._rewritten: set[tuple[int, int]] = set()
        self._joining = [array("I") for _ in classes]
        self._join: list[Callable[[int], None]] = [numbers.append for numbers in self._joining]
        self._oldest: list[Iterator[int]] = [iter(array("I")) for _ in classes]

    def add_initial(self, size_class: int, number: int) -> None:
        """An initial object exists: its upload succeeded, or it was there already."""
        self._join[size_class](number)

    def next_jobs(self, count: int) -> list[Target]:
        """Draw ``count`` operations and say which object each hits.

        Fewer are returned where some had no object: see ``not_sendable``. An empty list thus does
        not mean the end of anything.
        """
        containers, oldest, join = self._containers, self._oldest, self._join
        jobs: list[Target] = []
        add_job = jobs.append
        for code, index, container, size in islice(self._draws, count):
            if _ADDS[code]:
                known = containers[index]
                number = len(known)
                known.append(container)
                add_job((code, index, container, number, size))
                continue
            try:
                number = next(oldest[index])
            except StopIteration:
                if not self._joining[index]:
                    self.not_sendable[code, index] += 1
                    continue
                self._turn(index)
                number = next(oldest[index])
            place = containers[index][number]
            add_job((code, index, place, number, size))
            if _VISITS[code]:
                join[index](number)
            else:
                containers[index][number] = place | _LEAVING
        self.drawn += count
        return jobs

    def _turn(self, index: int) -> None:
        """The line's first array is used up: the second takes its place, and a new one is begun."""
        self._oldest[index] = iter(self._joining[index])
        self._joining[index] = array("I")
        self._join[index] = self._joining[index].append

    def finished(self, operation: int, size_class: int, container: int, number: int, ok: bool) -> None:
        """An operation of :meth:`next_jobs` has ended; to be told once for each.

        An object whose create failed is never handed out, but may exist; one whose delete failed is
        out of the line, but may exist too, as may one that an update wrote meanwhile or may still write.
        """
        if _REWRITES[operation]:
            known = self._containers[size_class]
            if not ok or known[number] >= _LEAVING:
                self._rewritten.add((size_class, number))
                if known[number] == _GONE:
                    known[number] = container | _LEAVING
        elif not ok:
            return
        elif _ADDS[operation]:
            self._join[size_class](number)
        elif _REMOVES[operation] and (size_class, number) not in self._rewritten:
            self._containers[size_class][number] = _GONE

    def leftovers(self) -> Iterator[tuple[int, int, int]]:
        """Objects the run created that may exist still: (size-class index, container, number).

        That is every create handed out, less those known to be gone; initial objects are none.
        """
        for index, (containers, first) in enumerate(zip(self._containers, self._first_created, strict=True)):
            for number, container in enumerate(islice(containers, first, None), first):
                if container != _GONE:
                    yield index, container & ~_LEAVING, number
