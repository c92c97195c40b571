"""The objects of a run: in which container each is, how large it is, and which comes next.

Each object has its container (2 or 4 bytes) and its size (4 bytes, 8 in a class with objects beyond 4 GiB).

A queue is a series of arrays of object numbers, oldest first. An iterator consumes the first; objects that
join are appended to the last. That keeps the order, and costs two calls into C for each operation and a
little over 4 bytes for each object.

Objects may expire; the clock is passed in. One counts as expired :func:`expiry_margin` seconds early, so that a
request for it reaches Swift in time. Its lifetime is counted from when its write was sent, because Swift
counts from the arrival, which is later. Whether a write that failed was carried out is not known: the earlier
of the two times is used.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from ssbench.scenario.draws import Target, Workload
from ssbench.scenario.model import Scenario
from ssbench.scenario.operation import Effect
from ssbench.scenario.operation_table import OPERATIONS

#: Numbers in an array, about.
_CHUNK_NUMBERS = 65536

#: An object that never expires.
_NEVER_EXPIRES = 2**32 - 1

#: Most seconds by which an object counts as expired too early.
_MAX_MARGIN_SECONDS = 5.0


class ObjectTable:
    """Containers and sizes by size class and object number, whether or not the object exists.

    There is no number 0. The run creates objects from the numbers ``first_created`` of each class on.
    """

    def __init__(self, scenario: Scenario, workload: Workload) -> None:
        code = "H" if scenario.container_numbers < 2**16 - 1 else "I"
        classes = range(len(scenario.size_classes))
        self.containers = [
            array(code, [0]) + array(code, workload.initial_containers(index).astype(code).tobytes())
            for index in classes
        ]
        #: In place of the container of a created object that is known to be deleted.
        self._gone = 2 ** (8 * self.containers[0].itemsize) - 1
        self.sizes = [
            array("I" if each.size_max < 2**32 else "Q", [0]) * len(containers)
            for each, containers in zip(scenario.size_classes, self.containers, strict=True)
        ]
        self.first_created = [len(containers) for containers in self.containers]

    def place_initial(self, size_class: int, containers: Iterable[int]) -> None:
        """Let the initial objects of a class be in these containers, that of object number 1 first."""
        known = self.containers[size_class]
        known[1 : self.first_created[size_class]] = array(known.typecode, containers)

    def gone(self, size_class: int, number: int) -> None:
        """Note that an object does not exist, or is not this run's."""
        self.containers[size_class][number] = self._gone

    def is_gone(self, size_class: int, number: int) -> bool:
        """Return whether :meth:`gone` was noted of an object."""
        gone: bool = self.containers[size_class][number] == self._gone
        return gone

    def in_containers(self) -> Counter[int]:
        """Return how many objects each container has that may exist."""
        found: Counter[int] = Counter()
        for containers in self.containers:
            found.update(islice(containers, 1, None))
        del found[self._gone]
        return found

    def known(self, *, created_only: bool) -> Iterator[tuple[int, int, int]]:
        """Yield (size class, container, number) of those that may exist, with the initial ones or without."""
        for index, (containers, created) in enumerate(zip(self.containers, self.first_created, strict=True)):
            first = created if created_only else 1
            for number, container in enumerate(islice(containers, first, None), first):
                if container != self._gone:
                    yield index, container, number


class ObjectQueues:
    """A queue for each size class, by its index.

    ``next(queues.oldest[index], 0) or queues.turn(index)`` takes the oldest object; it is 0 if there is none.
    ``join[index]`` puts an object at the end where as many are taken as join; :meth:`append` always may.
    """

    def __init__(self, classes: int) -> None:
        self._chunks = [deque([array("I")]) for _ in range(classes)]
        self.join: list[Callable[[int], None]] = [chunks[0].append for chunks in self._chunks]
        self.oldest: list[Iterator[int]] = [iter(array("I")) for _ in range(classes)]

    def append(self, index: int, number: int) -> None:
        """Put an object at the end."""
        self.join[index](number)
        if len(self._chunks[index][-1]) >= _CHUNK_NUMBERS:
            self._begin_chunk(index)

    def turn(self, index: int) -> int:
        """Go on to the next array of a queue; return its oldest object, 0 if there is none."""
        chunks = self._chunks[index]
        if not chunks[0]:
            return 0
        self.oldest[index] = iter(chunks.popleft())
        if not chunks or len(chunks[-1]) >= _CHUNK_NUMBERS // 2:
            self._begin_chunk(index)
        return next(self.oldest[index])

    def _begin_chunk(self, index: int) -> None:
        chunk = array("I")
        self._chunks[index].append(chunk)
        self.join[index] = chunk.append


class ReadsInFlight:
    """The reads in flight of each size class, by its index.

    ``reading`` says how many each object has, where nothing waits for it. ``released`` are operations that
    waited for an object and have it now.
    """

    def __init__(self, classes: int) -> None:
        self.reading: list[dict[int, int]] = [{} for _ in range(classes)]
        self.released: deque[Target] = deque()
        #: Updates and deletes that wait for the readers of their object: (readers left, target).
        self._reserved: dict[tuple[int, int], tuple[int, Target]] = {}

    def reserve(self, index: int, number: int, job: Target) -> None:
        """Let an operation wait for the readers of its object; nothing else reads it from now on."""
        self._reserved[index, number] = self.reading[index].pop(number), job

    def end(self, index: int, number: int) -> None:
        """Note that a read of an object has ended."""
        readers = self.reading[index].pop(number, 0)
        if readers != 1:
            self.end_one_of_several(index, number, readers)

    def end_one_of_several(self, index: int, number: int, readers: int) -> None:
        """Note that one of several reads of an object has ended, or (0) a read of a reserved object."""
        if readers:
            self.reading[index][number] = readers - 1
            return
        readers, job = self._reserved.pop((index, number))
        if readers > 1:
            self._reserved[index, number] = readers - 1, job
        else:
            self.released.append(job)


class EffectTable:
    """The effects of operations as a population distinguishes them.

    ``by_code`` is a list, which is faster than a dict. In it a change is a rewrite, with its code in
    ``same_data``; a copy needs no object, so that the usual operations need not look for it, with its code in
    ``copies``. ``silent`` are those of the scenario that leave the object as it is and do not return it.
    """

    def __init__(self, scenario: Scenario) -> None:
        effects = {operation.code: operation.effect for operation in OPERATIONS.drawn}
        self.same_data = {code for code, effect in effects.items() if effect is Effect.CHANGES}
        self.copies = {code for code, effect in effects.items() if effect is Effect.COPIES}
        seen = (
            effects | dict.fromkeys(self.same_data, Effect.REWRITES) | dict.fromkeys(self.copies, Effect.NONE)
        )
        self.by_code = [seen.get(code) for code in range(OPERATIONS.length_by_code)]
        self.silent = {
            row.code
            for row in OPERATIONS.drawn
            if row.effect is Effect.READS
            and not row.returns_object
            and any(each.weights.get(row.name) for each in scenario.size_classes)
        }


def expiry_margin(delete_after: int) -> float:
    """Return how many seconds before Swift deletes an object it is no longer asked for."""
    return min(_MAX_MARGIN_SECONDS, delete_after / 2)


class ExpiryTimes:
    """The time at which each object expires, in 4 bytes an object.

    ``counts`` says for each size class how many object numbers there are at first; those never expire,
    because initial objects are uploaded without ``X-Delete-After``, until an update sets it.
    """

    def __init__(self, delete_after: int, counts: Sequence[int]) -> None:
        self._lifetime = delete_after - expiry_margin(delete_after)
        self._expires = [array("I", [_NEVER_EXPIRES]) * count for count in counts]
        #: (size class, number) of a write in flight, and when its object expires if it succeeds.
        self._in_flight: dict[tuple[int, int], int] = {}
        self._start: float | None = None

    def handed_out(self, size_class: int, number: int, now: float) -> None:
        """Note that a create (with the next number of its class) or an update is sent."""
        expires = self._expires[size_class]
        if number == len(expires):
            expires.append(_NEVER_EXPIRES)
        self._in_flight[size_class, number] = min(int(self._age(now) + self._lifetime), _NEVER_EXPIRES)

    def written(self, size_class: int, number: int, ok: bool) -> None:
        """Note that the create or update has ended."""
        expires, new = self._expires[size_class], self._in_flight.pop((size_class, number))
        expires[number] = new if ok else min(new, expires[number])

    def not_written(self, size_class: int, number: int) -> None:
        """Note that the create or update was not sent after all."""
        del self._in_flight[size_class, number]

    def passed(self, size_class: int, number: int, now: float) -> bool:
        """Return whether an object counts as expired."""
        return self._expires[size_class][number] <= self._age(now)

    def _age(self, now: float) -> float:
        # Times are whole seconds since the first of them, which fit in 4 bytes.
        if self._start is None:
            self._start = now
        return now - self._start
