"""The queues of a run's objects, oldest first; and which of them are being read.

A queue is a series of arrays of object numbers. An iterator consumes the first; objects that join are
appended to the last. That keeps the order, and costs two calls into C for each operation and a little over
4 bytes for each object.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator

from ssbench.workload.draws import Target

#: Numbers in an array, about.
_CHUNK = 65536


class Queues:
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
        if len(self._chunks[index][-1]) >= _CHUNK:
            self._begin_chunk(index)

    def turn(self, index: int) -> int:
        """Go on to the next array of a queue; return its oldest object, 0 if there is none."""
        chunks = self._chunks[index]
        if not chunks[0]:
            return 0
        self.oldest[index] = iter(chunks.popleft())
        if not chunks or len(chunks[-1]) >= _CHUNK // 2:
            self._begin_chunk(index)
        return next(self.oldest[index])

    def _begin_chunk(self, index: int) -> None:
        chunk = array("I")
        self._chunks[index].append(chunk)
        self.join[index] = chunk.append


class Readers:
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
