"""How many names listings have to have at least, by what a part of a run knows of its own objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ssbench.fleet.wire import JobResult
from ssbench.fleet.worker_state import Task
from ssbench.scenario.model import Scenario
from ssbench.scenario.operation import DEFAULT_LISTING_LIMIT, Effect
from ssbench.scenario.operation_table import LIST, LIST_ACCOUNT, OPERATIONS

_ADDING_CODES = frozenset(row.code for row in OPERATIONS if row.effect is Effect.ADDS)
_REMOVING_CODES = frozenset(row.code for row in OPERATIONS if row.effect is Effect.REMOVES)

#: Settings with which a listing is of some of the names only.
_PARTIAL_LISTING_FIELDS = frozenset({"prefix", "delimiter", "marker"})


class ListingMinimums:
    """Counts the objects in each container that exist from before a listing is asked for until it has ended.

    ``objects`` is how many each container has at first, ``containers`` how many each account has. Stores
    may list what others wrote besides, so these numbers are the least that a listing has to have. Listings
    with a prefix, a delimiter or a marker have to have nothing.
    """

    def __init__(self, objects: Mapping[int, int], containers: int, most: Mapping[int, int]) -> None:
        """Take the most names of each listing that is judged, by the code of its operation."""
        self._most = most
        self._containers = containers
        #: Objects that came to exist so far, and those whose deletion was handed out, by container.
        self._made = Counter(objects)
        self._deleted: Counter[int] = Counter()
        #: How many had come to exist when a listing was handed out, by its number, until its end is known.
        self._before: dict[int, int] = {}

    @classmethod
    def of(cls, scenario: Scenario, objects: Mapping[int, int]) -> ListingMinimums | None:
        """Return those of a scenario, which has so many ``objects`` in each container; None without any."""
        most = {}
        for row in (LIST, LIST_ACCOUNT):
            values = next((each.values for each in scenario.operations if each.name == row.name), {})
            if row.name in scenario.operation_names and _PARTIAL_LISTING_FIELDS.isdisjoint(values):
                most[row.code] = values.get("limit", DEFAULT_LISTING_LIMIT) * values.get("pages", 1)
        # When the store deletes an object that expires is not known.
        if not most or scenario.delete_after is not None:
            return None
        return cls(objects, scenario.container_count, most)

    def handed_out(self, tasks: Sequence[Task]) -> None:
        """Note which operations are sent."""
        for code, _, container, number, _ in tasks:
            if code in _REMOVING_CODES:
                self._deleted[container] += 1
            elif code == LIST.code and code in self._most:
                self._before[number] = self._made[container]

    def ended(self, ended: Iterable[tuple[Task, JobResult]]) -> None:
        """Note which operations have ended."""
        for (code, _, container, number, _), result in ended:
            if result.cause is None:
                if code in _ADDING_CODES:
                    self._made[container] += 1
            elif code == LIST.code:
                self._before.pop(number, None)

    def without_result(self, tasks: Iterable[Task]) -> None:
        """Note which operations will have no result: they were taken back, or lost."""
        for code, _, _, number, _ in tasks:
            if code == LIST.code:
                self._before.pop(number, None)

    def least(self, task: Task) -> int:
        """Return how many names a listing that succeeded had to have at least; call this once for each."""
        code, _, container, number, _ = task
        most = self._most.get(code)
        if most is None:
            return 0
        there = self._containers
        if code == LIST.code:
            there = self._before.pop(number, 0) - self._deleted[container]
        return max(0, min(there, most))
