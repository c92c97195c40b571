"""The order of objects over many arrays."""

from __future__ import annotations

import pytest

from ssbench.scenario import population
from ssbench.scenario.population import ObjectQueues


def taken(found: ObjectQueues, index: int) -> int:
    return next(found.oldest[index], 0) or found.turn(index)


def test_each_class_has_its_own_order_over_many_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(population, "_CHUNK_NUMBERS", 4)
    found = ObjectQueues(2)
    for number in range(1, 50):
        found.append(0, number)
    found.append(1, 99)
    assert [taken(found, 0) for _ in range(30)] == [*range(1, 31)]
    for number in range(1, 31):
        found.append(0, number)
    assert [taken(found, 0) for _ in range(50)] == [*range(31, 50), *range(1, 31), 0]
    assert [taken(found, 1), taken(found, 1)] == [99, 0]
    found.append(0, 5)
    assert taken(found, 0) == 5
