"""Which objects exist, and which of them each operation is for.

Each size class has a queue of its objects, oldest first. An operation takes the oldest object:

* a read puts it at the end of the queue at once, so reads of one object may overlap;
* an update puts it at the end when the update has ended, and a delete takes it out: no other operation is
  handed out for an object that is being written or deleted; a change of its metadata counts as an update;
* a create adds its object at the end when it has succeeded;
* a copy reads the oldest object in the same way, and makes one that joins no queue;
* an operation that needs no object takes none.

An update or a delete takes an object that is not being read: an object that is being read goes to the end of
the queue, and the next one is tried. If all that were tried are being read, the operation reserves one (which
leaves the queue) and waits until its readers have ended. If the queue is empty because every object is being
updated, the operation waits until one comes back. Operations that wait keep their order within their size
class; others are sent meanwhile, until as many wait as the scenario has users. Some operation in flight
always ends, so this cannot deadlock.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol, cast

from ssbench.scenario.draws import Draw, Target, Workload
from ssbench.scenario.model import Scenario
from ssbench.scenario.operations import EXISTS_CAUSE, HEAD, Effect

#: Numbers in an array, about.
_CHUNK_NUMBERS = 65536

#: An object that never expires.
_NEVER_EXPIRES = 2**32 - 1

#: Most seconds by which an object counts as expired too early.
_MAX_MARGIN_SECONDS = 5.0


class ObjectTable:
    """Containers and sizes by size class and object number, whether or not the object exists.

    There is no number 0. The run creates objects from the numbers ``first_created`` of each class on.

    An object takes 2 or 4 bytes for its container, and 4 for its size, or 8 in a class with objects beyond 4
    GiB.
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

    A queue is a series of arrays of object numbers, oldest first. An iterator consumes the first; objects
    that join are appended to the last. That keeps the order, and costs two calls into C for each operation
    and a little over 4 bytes for each object.
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
    ``copies``. ``silent`` are those of the scenario that leave the object as it is, and do not return it or
    tell its size; ``sized`` those that read an object before they change or delete it.
    """

    def __init__(self, scenario: Scenario) -> None:
        operations = scenario.operation_table
        effects = {operation.code: operation.effect for operation in operations.drawn}
        self.same_data = {code for code, effect in effects.items() if effect is Effect.CHANGES}
        self.copies = {code for code, effect in effects.items() if effect is Effect.COPIES}
        seen = (
            effects | dict.fromkeys(self.same_data, Effect.REWRITES) | dict.fromkeys(self.copies, Effect.NONE)
        )
        self.by_code = [seen.get(code) for code in range(operations.length_by_code)]
        self.silent = {
            row.code
            for row in operations.drawn
            if row.effect is Effect.READS
            and not row.returns_object
            and row is not HEAD
            and any(each.weights.get(row.name) for each in scenario.size_classes)
        }
        self.sized = {
            row.code
            for row in operations.drawn
            if row.effect in {Effect.CHANGES, Effect.REMOVES}
            and row.returns_object
            and any(each.weights.get(row.name) for each in scenario.size_classes)
        }


def expiry_margin(delete_after: int) -> float:
    """Return how many seconds before Swift deletes an object it is no longer asked for."""
    return min(_MAX_MARGIN_SECONDS, delete_after / 2)


class ExpiryTimes:
    """The time at which each object expires, in 4 bytes an object.

    The clock is passed in. An object counts as expired :func:`expiry_margin` seconds early, so that a request
    for it reaches Swift in time. Its lifetime is counted from when its write was sent, because Swift counts
    from the arrival, which is later. Whether a write that failed was carried out is not known: the earlier of
    the two times is used.

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


# -- The population --------------------------------------------------------------------------------


#: The numbers of operations that need no object begin anew after so many.
_NUMBER_MASK = 2**30 - 1

#: How many objects are tried before an update or a delete waits for the readers of one.
_MAX_TRIES = 16

_ADDS, _READS, _REWRITES, _REMOVES = Effect.ADDS, Effect.READS, Effect.REWRITES, Effect.REMOVES
_NONE = Effect.NONE


class OperationResult(Protocol):
    """How an operation ended; ``cause`` is None for a success."""

    @property
    def cause(self) -> str | None:
        """Why it failed."""


class Population:
    """The objects of a run, from its initial objects to those that are left at the end.

    ``drawn`` counts the operations taken from the workload. Each was returned by :meth:`next_jobs`, or is
    one of ``waiting``, or is counted in ``not_sendable``, by (operation code, size-class index), because no
    object existed for it. ``waits`` counts the operations that had to wait for an object, ``expired`` the
    objects that are no longer used because their ``delete_after`` had passed.
    """

    def __init__(self, scenario: Scenario, workload: Workload) -> None:
        #: Whether the initial objects belong to this run alone, and go with it.
        self.owns_initial = False
        self.drawn = 0
        self.waiting = 0
        self.waits = 0
        self.expired = 0
        self.not_sendable: Counter[tuple[int, int]] = Counter()
        self.operations = scenario.operation_table
        effects = EffectTable(scenario)
        self._effects, self._same_data, self._copies = effects.by_code, effects.same_data, effects.copies
        self._silent, self._sized = effects.silent, effects.sized
        #: What each copy in flight is made of, by size class and number.
        self._sources: dict[tuple[int, int], int] = {}
        #: How many operations needed no object.
        self._objectless = 0
        self._most_waiting = scenario.user_count
        self._draws = workload.draws()
        objects = self._objects = ObjectTable(scenario, workload)
        self._containers, self._sizes = objects.containers, objects.sizes
        self._expiry = (
            ExpiryTimes(scenario.delete_after, objects.first_created)
            if scenario.delete_after is not None
            else None
        )
        #: (size class, number) of objects whose update failed, which may still be carried out at any time.
        self._uncertain: set[tuple[int, int]] = set()
        classes = range(len(scenario.size_classes))
        self._queues = ObjectQueues(len(classes))
        self._oldest, self._join, self._turn = self._queues.oldest, self._queues.join, self._queues.turn
        #: Lets an object be chosen again, or for the first time.
        self._append: Callable[[int, int], None] = self._queues.append
        self._readers = ReadsInFlight(len(classes))
        self._reading = self._readers.reading
        #: The size that an object being updated had before, by size class and number.
        self._sizes_before: dict[tuple[int, int], int] = {}
        #: How many objects are out of the queue for an update.
        self._updating = [0 for _ in classes]
        #: Operations that wait for any object of their class.
        self._without_object: list[deque[Draw]] = [deque() for _ in classes]

    @property
    def expires(self) -> bool:
        """Whether objects expire, so that :meth:`next_jobs` needs the time."""
        return self._expiry is not None

    def counts(self) -> dict[str, float]:
        """Return what is counted of how objects are chosen."""
        return {}

    def add_initial(self, size_class: int, number: int, size: int) -> None:
        """Add an initial object of ``size`` bytes, which was uploaded or existed already."""
        self._sizes[size_class][number] = size
        self._append(size_class, number)

    def place_initial(self, size_class: int, containers: Iterable[int]) -> None:
        """Let the initial objects of a class be in these containers, that of object number 1 first."""
        self._objects.place_initial(size_class, containers)

    def next_jobs(self, count: int, now: float = 0.0, most_draws: int | None = None) -> list[Target]:
        """Return at most ``count`` operations, each with its object.

        Operations that waited come first; then at most ``most_draws`` are drawn. Fewer than ``count`` are
        returned if some had no object (``not_sendable``) or have to wait, so an empty list does not mean
        that there are no more. ``now`` is in seconds of a clock that never goes back.
        """
        jobs: list[Target] = []
        if self.waiting:
            self._resume(jobs, count, now)
        missing = count - len(jobs)
        left = missing + self._most_waiting if most_draws is None else most_draws
        while missing > 0:
            waiting = self.waiting
            draws = self._most_waiting - waiting
            draws = draws if draws < missing else missing  # min() costs a tenth of a draw
            draws = draws if draws < left else left
            if draws <= 0:
                break
            self._draw(jobs, draws, now)
            missing -= draws
            if self.waiting != waiting:
                began_to_wait = self.waiting - waiting
                self.waits += began_to_wait
                missing += began_to_wait
            left -= draws
        if self._silent:
            jobs = [(*job[:4], 0) if job[0] in self._silent else job for job in jobs]
        if self._sized:
            sizes = self._sizes
            jobs = [(*job[:4], sizes[job[1]][job[3]]) if job[0] in self._sized else job for job in jobs]
        return jobs

    def _draw(self, jobs: list[Target], count: int, now: float) -> None:
        containers, sizes, expiry = self._containers, self._sizes, self._expiry
        oldest, join, reading = self._oldest, self._join, self._reading
        effects, adds, reads, without = self._effects, _ADDS, _READS, _NONE
        add_job = jobs.append
        for code, index, container, size in islice(self._draws, count):
            effect = effects[code]
            if effect is adds:
                known = containers[index]
                number = len(known)
                known.append(container)
                sizes[index].append(size)
                if expiry is not None:
                    expiry.handed_out(index, number, now)
                add_job((code, index, container, number, size))
                continue
            if effect is without:
                self._draw_without(jobs, (code, index, container, size), now)
                continue
            number = next(oldest[index], 0) or self._turn(index)
            if expiry is not None:
                number = self._not_expired(index, number, now)
            readers = reading[index]
            if effect is reads and number:
                if number in readers:
                    readers[number] += 1
                else:
                    readers[number] = 1
                join[index](number)
                add_job((code, index, containers[index][number], number, sizes[index][number]))
            elif number and number not in readers:
                if effect is _REWRITES:
                    self._begin_update(code, index, number, size, now)
                add_job((code, index, containers[index][number], number, size))
            elif (job := self._assign(code, index, container, size, number, now)) is not None:
                add_job(job)
        self.drawn += count

    def _draw_without(self, jobs: list[Target], draw: Draw, now: float) -> None:
        """Append to ``jobs`` an operation that needs no object, or a copy where there is an object for it."""
        code, index, container, size = draw
        if code in self._copies:
            if (job := self._assign(*draw, self._take(index, now), now)) is not None:
                jobs.append(job)
            return
        # The names of what it makes follow from its number.
        self._objectless = number = self._objectless + 1 & _NUMBER_MASK
        jobs.append((code, index, container, number, size))

    def _resume(self, jobs: list[Target], count: int, now: float) -> None:
        """Append to ``jobs`` operations that waited for an object and have one now."""
        expiry = self._expiry
        released = self._readers.released
        while released and len(jobs) < count:
            job: Target | None = released.popleft()
            self.waiting -= 1
            code, index, container, number, size = cast(Target, job)
            rewrites = self._effects[code] is _REWRITES
            self._updating[index] -= rewrites
            if expiry is not None and expiry.passed(index, number, now):
                self._expire(index, number)
                job = self._assign(code, index, container, size, self._take(index, now), now)
            elif rewrites:
                self._begin_update(code, index, number, size, now)
            if job is not None:
                jobs.append(job)
        for index, draws in enumerate(self._without_object):
            while draws and len(jobs) < count:
                number = self._take(index, now)
                if not number and self._updating[index]:
                    break
                self.waiting -= 1
                job = self._assign(*draws.popleft(), number, now)
                if job is not None:
                    jobs.append(job)

    def _assign(
        self, code: int, index: int, container: int, size: int, number: int, now: float
    ) -> Target | None:
        """Give an operation the object that was taken from the queue for it (0: there was none).

        Return None if it has to wait or cannot be sent.
        """
        if not number:
            self._wait_for_object((code, index, container, size))
            return None
        if code in self._copies or self._effects[code] is _READS:
            self._join[index](number)
            return self._begin_read(code, index, number, now)
        if number in self._reading[index]:
            number = self._find_unread(index, number, now)
        return self._begin_change((code, index, self._containers[index][number], number, size), now)

    def _begin_read(self, code: int, index: int, number: int, now: float) -> Target:
        """Return a read of an object, or a copy."""
        readers = self._reading[index]
        readers[number] = readers.get(number, 0) + 1
        if code in self._copies:
            return self._begin_copy(code, index, number, now)
        return code, index, self._containers[index][number], number, self._sizes[index][number]

    def _begin_change(self, job: Target, now: float) -> Target | None:
        """Return an update or a delete of an object; None where it waits for those that read it."""
        code, index, _, number, size = job
        rewrites = self._effects[code] is _REWRITES
        if number in self._reading[index]:
            self._updating[index] += rewrites
            self._readers.reserve(index, number, job)
            self.waiting += 1
            return None
        if rewrites:
            self._begin_update(code, index, number, size, now)
        return job

    def _wait_for_object(self, draw: Draw) -> None:
        """Let an operation wait for an object of its class; where none can come, it cannot be sent."""
        code, index, *_ = draw
        if self._updating[index]:
            self._without_object[index].append(draw)
            self.waiting += 1
        else:
            self.not_sendable[code, index] += 1

    def _expire(self, index: int, number: int) -> None:
        """Drop an object that was reserved for an operation, and has expired meanwhile."""
        self.expired += 1

    def _begin_copy(self, code: int, index: int, source: int, now: float) -> Target:
        """Add an object that is a copy of one, in the same container."""
        number, place = len(self._containers[index]), self._containers[index][source]
        self._containers[index].append(place)
        self._sizes[index].append(self._sizes[index][source])
        if self._expiry is not None:
            self._expiry.handed_out(index, number, now)
        self._sources[index, number] = source
        return code, index, place, number, source

    def _finished_without(self, operation: int, index: int, number: int, ok: bool) -> None:
        if operation in self._copies:
            self._readers.end(index, self._sources.pop((index, number)))
            if self._expiry is not None:
                self._expiry.written(index, number, ok)

    def _find_unread(self, index: int, number: int, now: float) -> int:
        """Return an object that is not being read; one that is, if none is found soon."""
        first, readers = number, self._reading[index]
        for _ in range(_MAX_TRIES):
            self._join[index](number)
            number = self._take(index, now)
            if number == first or number not in readers:
                break
        return number

    def _begin_update(self, code: int, index: int, number: int, size: int, now: float) -> None:
        self._updating[index] += 1
        self._sizes_before.setdefault((index, number), self._sizes[index][number])
        if code not in self._same_data:
            self._sizes[index][number] = size
        if self._expiry is not None:
            self._expiry.handed_out(index, number, now)

    def finished(self, operation: int, size_class: int, container: int, number: int, ok: bool) -> None:
        """Note that an operation of :meth:`next_jobs` has ended. Call this once for each.

        No operation gets an object whose create or delete failed, but it may exist. So may a deleted
        object with an earlier update that failed, because Swift may still carry that out.
        """
        effect = self._effects[operation]
        if effect is _NONE:
            self._finished_without(operation, size_class, number, ok)
            return
        if effect is _READS:
            self._readers.end(size_class, number)
        elif effect is _REMOVES:
            if ok and (size_class, number) not in self._uncertain:
                self._objects.gone(size_class, number)
        else:
            if self._expiry is not None:
                self._expiry.written(size_class, number, ok)
            if effect is _REWRITES:
                self._updating[size_class] -= 1
                del self._sizes_before[size_class, number]
                if not ok and operation not in self._same_data:
                    self._uncertain.add((size_class, number))
                if self._uncertain and (size_class, number) in self._uncertain:
                    self._sizes[size_class][number] = 0
                self._append(size_class, number)
            elif ok:
                self._append(size_class, number)

    def ended(self, ended: Iterable[tuple[Target, OperationResult]]) -> None:
        """Note that operations of :meth:`next_jobs` have ended; the same as :meth:`finished` for each."""
        effects, reads, reading, finished = self._effects, _READS, self._reading, self.finished
        one_of_several = self._readers.end_one_of_several
        for (operation, size_class, container, number, _), result in ended:
            if effects[operation] is reads:
                readers = reading[size_class].pop(number, 0)
                if readers != 1:
                    one_of_several(size_class, number, readers)
            else:
                finished(operation, size_class, container, number, result.cause is None)
                if result.cause == EXISTS_CAUSE and effects[operation] is _ADDS:
                    self._objects.gone(size_class, number)  # it is not this run's to delete

    def take_back(
        self, operation: int, size_class: int, container: int, number: int, *, in_doubt: bool = False
    ) -> None:
        """Undo an operation of :meth:`next_jobs` that will not be carried out, in place of :meth:`finished`.

        It is not among those drawn any more. Its object is at the end of the queue; one that it would have
        created does not exist, or only may exist where that is ``in_doubt``.
        """
        self.drawn -= 1
        effect = self._effects[operation]
        if operation in self._copies:
            self._readers.end(size_class, self._sources.pop((size_class, number)))
            effect = _ADDS
        if effect is _READS or effect is _NONE:
            self.finished(operation, size_class, container, number, ok=True)
            return
        if self._expiry is not None and effect is not _REMOVES:
            self._expiry.not_written(size_class, number)
        if effect is _REWRITES:
            self._updating[size_class] -= 1
            self._sizes[size_class][number] = self._sizes_before.pop((size_class, number))
        if effect is not _ADDS:
            self._append(size_class, number)
        elif not in_doubt:
            self._objects.gone(size_class, number)

    def _take(self, index: int, now: float) -> int:
        """Take the oldest object out of its queue; 0 if there is none."""
        number = next(self._oldest[index], 0) or self._turn(index)
        return self._not_expired(index, number, now) if self._expiry is not None else number

    def _not_expired(self, index: int, number: int, now: float) -> int:
        """Drop this object and those behind it that have expired; return the first other one, or 0."""
        expiry = self._expiry
        while number and expiry is not None and expiry.passed(index, number, now):
            self.expired += 1
            number = next(self._oldest[index], 0) or self._turn(index)
        return number

    def in_containers(self) -> Counter[int]:
        """Return how many objects each container has that may exist."""
        return self._objects.in_containers()

    def leftovers(self) -> Iterator[tuple[int, int, int]]:
        """Return the objects that the run created and that may still exist.

        Each is (size-class index, container, number). Initial objects are among them where the run owns them.
        """
        return self._objects.known(created_only=not self.owns_initial)
