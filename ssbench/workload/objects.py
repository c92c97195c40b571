"""The objects of a run: in which container each is, and how large it is.

Each object has its container (2 or 4 bytes) and its size (4 bytes, 8 in a class with objects beyond 4 GiB).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import islice

from ssbench.scenario.model import Scenario
from ssbench.workload.draws import Workload


class Objects:
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

    def known(self, *, created_only: bool) -> Iterator[tuple[int, int, int]]:
        """Yield (size class, container, number) of those that may exist, with the initial ones or without."""
        for index, (containers, created) in enumerate(zip(self.containers, self.first_created, strict=True)):
            first = created if created_only else 1
            for number, container in enumerate(islice(containers, first, None), first):
                if container != self._gone:
                    yield index, container, number
