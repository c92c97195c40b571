"""Which objects are being read, and the operations that wait until one no longer is."""

from __future__ import annotations

from collections import deque

from ssbench.workload.draws import Target


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
