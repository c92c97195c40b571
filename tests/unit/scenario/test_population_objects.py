"""Where the objects of a run are, and which of them may exist."""

from __future__ import annotations

from ssbench.scenario.draws import Workload
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import CONDITIONAL
from ssbench.scenario.population import EffectTable, ObjectTable


def scenario(**weights: float) -> Scenario:
    classes = (SizeClass("small", 1, 10, 2, weights), SizeClass("huge", 1, 2**33, 1, weights))
    return Scenario("s", classes, container_count=3, user_count=2)


def test_those_that_may_exist_with_the_initial_ones_or_without() -> None:
    objects = ObjectTable(scenario(read=1), Workload(scenario(read=1), 1))
    objects.containers[0].append(1)
    objects.sizes[0].append(5)
    objects.place_initial(0, [2, 0])
    objects.place_initial(1, [1])
    assert [*objects.known(created_only=True)] == [(0, 1, 3)]
    assert [*objects.known(created_only=False)] == [(0, 2, 1), (0, 0, 2), (0, 1, 3), (1, 1, 1)]
    objects.gone(0, 2)
    assert objects.is_gone(0, 2)
    assert [*objects.known(created_only=False)] == [(0, 2, 1), (0, 1, 3), (1, 1, 1)]


def test_sizes_take_as_many_bytes_as_their_class_needs() -> None:
    objects = ObjectTable(scenario(read=1), Workload(scenario(read=1), 1))
    assert [each.itemsize for each in objects.sizes] == [4, 8]


def test_operations_that_leave_the_object_and_tell_nothing_of_its_size_are_silent() -> None:
    found = EffectTable(scenario(read=1, head=1, conditional=1, create=1))
    assert found.silent == {CONDITIONAL.code}
