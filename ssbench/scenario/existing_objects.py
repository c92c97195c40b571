"""Objects that exist already, of which a run only reads: nothing is prepared, and nothing is deleted.

Their names follow from nothing, so they are kept: a byte a character, and 8 bytes an object. Workers get
those of their jobs with them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ssbench.base.errors import UsageError
from ssbench.scenario.draws import Target
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import OPERATIONS, Effect, OperationKind
from ssbench.scenario.population import Population
from ssbench.scenario.value_rules import MAX_NUMBER

#: Methods of requests that change nothing.
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def may_write(operation: OperationKind) -> bool:
    """Whether an operation may change what is in the store."""
    if operation.effect not in {Effect.READS, Effect.NONE} or operation.makes_objects:
        return True
    # The key of signatures is written to the account.
    return operation.method not in _SAFE_METHODS or operation.signed


def refuse_writes(scenario: Scenario) -> None:
    """Raise UsageError where operations of a scenario write, with their names."""
    used = {name for part in scenario.parts for name in part.operation_names}
    operations = scenario.operation_table
    found = [name for name in sorted(used) if may_write(operations.named(name))]
    if found:
        allowed = ", ".join(row.name for row in OPERATIONS.drawn if not may_write(row))
        raise UsageError(
            f"--existing reads only, and operations of the scenario write: {', '.join(found)}"
            f" (what it may have: {allowed}, and operations of your own that GET or HEAD)"
        )


class _ClassObjects:
    """The objects of a size class, in the order in which they were found; they are numbered from 1."""

    def __init__(self) -> None:
        self.sizes = array("Q")
        self.containers = array("I")
        self.smallest: int | None = None
        self.largest: int | None = None
        self._names = bytearray()
        self._ends = array("Q", [0])

    def __len__(self) -> int:
        return len(self.sizes)

    def add(self, container: int, name: bytes, size: int | None) -> None:
        self.containers.append(container)
        self.sizes.append(size or 0)
        self._names += name
        self._ends.append(len(self._names))
        if size is not None:
            self.smallest = size if self.smallest is None else min(size, self.smallest)
            self.largest = size if self.largest is None else max(size, self.largest)

    def name(self, number: int) -> str:
        return self._names[self._ends[number - 1] : self._ends[number]].decode()


class ExistingObjects:
    """The objects for a scenario, each in the first of its size classes whose range has its size.

    A scenario with one class has all objects in that. ``skipped`` counts those that fit none. A size may
    not be known; then there has to be one class.
    """

    def __init__(self, scenario: Scenario) -> None:
        refuse_writes(scenario)
        self.containers: list[str] = []
        self.skipped = 0
        self._scenario = scenario
        self._places: dict[str, int] = {}
        used = [
            any(part.size_classes[place].share for part in scenario.parts)
            for place in range(len(scenario.size_classes))
        ]
        #: The places of the classes that are in use.
        self._used = [place for place, is_used in enumerate(used) if is_used]
        self._classes = [_ClassObjects() for _ in scenario.size_classes]
        #: Of an object without a byte there is no part.
        self._least = [_min_size(scenario, place) for place in range(len(scenario.size_classes))]

    @property
    def only_class(self) -> bool:
        """Whether all objects are of one class, whatever their sizes are."""
        return len(self._used) == 1

    def __len__(self) -> int:
        return sum(map(len, self._classes))

    def add(self, container: str, name: str, size: int | None) -> None:
        """Add an object; raises UsageError for more than there are numbers for."""
        place = self._place(size)
        if place is None:
            self.skipped += 1
            return
        number = self._places.get(container)
        if number is None:
            number = self._places[container] = len(self.containers)
            self.containers.append(container)
        objects = self._classes[place]
        if len(objects) >= MAX_NUMBER:
            raise UsageError(f"--existing: more than {MAX_NUMBER:,} objects")
        objects.add(number, name.encode(), size)

    def _place(self, size: int | None) -> int | None:
        if self.only_class:
            place = self._used[0]
            return place if size is None or size >= self._least[place] else None
        if size is None:
            raise ValueError("a size that is not known, and several size classes")
        for place in self._used:
            each = self._scenario.size_classes[place]
            if max(each.size_min, self._least[place]) <= size <= each.size_max:
                return place
        return None

    def scenario(self) -> Scenario:
        """Return the scenario with these objects in place of its own; the shares of its classes stay."""
        scenario = self._scenario
        return replace(
            scenario,
            size_classes=self._adapted(scenario.size_classes),
            groups=tuple(
                replace(
                    group, size_classes=self._adapted(group.size_classes), container_count=None, policy=None
                )
                for group in scenario.groups
            ),
            container_count=len(self.containers),
            delete_after=None,
            delete_after_most=None,
            policy=None,
        )

    def _adapted(self, classes: Sequence[SizeClass]) -> tuple[SizeClass, ...]:
        return tuple(
            replace(
                each,
                size_min=each.size_min if found.smallest is None else found.smallest,
                size_max=each.size_max if found.largest is None else found.largest,
                initial_files=len(found),
                shape=None,
                weight=float(each.share) if len(found) else 0.0,
            )
            for each, found in zip(classes, self._classes, strict=True)
        )

    def empty_classes(self) -> list[str]:
        """Return the names of size classes in use that no object is of."""
        return [self._scenario.size_classes[place].name for place in self._used if not self._classes[place]]

    def idle_groups(self) -> list[str]:
        """Return the names of groups of users for which there is no object."""
        groups = self.scenario().groups
        return [group.name for group in groups if not any(each.share for each in group.size_classes)]

    def fill(self, state: Population) -> None:
        """Let all objects be the initial objects of a population that was made for :meth:`scenario`."""
        for index, objects in enumerate(self._classes):
            state.place_initial(index, objects.containers)
            for number, size in enumerate(objects.sizes, 1):
                state.add_initial(index, number, size)

    def paths(self, tasks: Sequence[Target]) -> list[str]:
        """Return ``container/object`` for each task, for one that is for no object ``container/``."""
        return [*self._paths(tasks)]

    def _paths(self, tasks: Sequence[Target]) -> Iterator[str]:
        operations = self._scenario.operation_table
        for code, size_class, container, number, _ in tasks:
            name = "" if not operations[code].has_object else self._classes[size_class].name(number)
            yield f"{self.containers[container]}/{name}"


def _min_size(scenario: Scenario, place: int) -> int:
    weights = [part.size_classes[place].weights for part in scenario.parts]
    return int(
        any(
            row.reads_part and each.get(row.name)
            for each in weights
            for row in scenario.operation_table.drawn
        )
    )
