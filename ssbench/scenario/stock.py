"""Whether the objects of a size class run out, so that operations have none to work on.

Each class is a random walk: a create adds an object, a delete takes one. After so many operations it is below
a number of objects with twice the chance that its last step is there (the reflection principle: Feller,
volume 1, chapter 3), a little less where more are created than deleted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ssbench.operation import Effect
from ssbench.operations import OPERATIONS
from ssbench.scenario.model import Scenario, SizeClass

#: A walk gets as low as this many standard deviations below its mean with a chance of 5 %; less is not worth
#: a warning.
_DEVIATIONS = 1.96


@dataclass(frozen=True, slots=True)
class RunsOut:
    """A size class whose objects run out: for certain, or by chance.

    ``operations`` is after about how many operations of all classes that is; 0 is at any time.
    """

    size_class: str
    certain: bool
    operations: int
    created: float
    deleted: float


def running_out(scenario: Scenario) -> Iterator[RunsOut]:
    """Yield the size classes whose objects run out before the run ends, as far as that is known."""
    everything = sum(each.share for each in scenario.size_classes)
    for each in scenario.size_classes:
        share = each.share / everything
        if share and each.initial_files and (found := _of_class(each, share, scenario)):
            yield found


def _of_class(each: SizeClass, share: float, scenario: Scenario) -> RunsOut | None:
    total = sum(each.weights.values())
    created = _with(each, Effect.ADDS) / total
    deleted = _with(each, Effect.REMOVES) / total
    if not deleted:
        return None
    # What is being created cannot be used yet.
    objects = max(each.initial_files - scenario.user_count * share * created, 0.0)
    drift, reach = deleted - created, _DEVIATIONS * math.sqrt(deleted + created)
    most = math.inf if scenario.operation_count is None else share * scenario.operation_count
    if drift > 1e-9:
        certain, operations = True, objects / drift
    elif drift > -1e-9:
        certain, operations = False, (objects / reach) ** 2
    else:
        # It is lowest after so many operations, if the run has as many.
        lowest = min((reach / 2 / drift) ** 2, most)
        if reach * math.sqrt(lowest) + drift * lowest < objects:
            return None
        certain, operations = False, 0.0
    if operations > most:
        return None
    return RunsOut(each.name, certain, round(operations / share), created, deleted)


def _with(each: SizeClass, effect: Effect) -> float:
    return sum(weight for name, weight in each.weights.items() if OPERATIONS.named(name).effect is effect)
