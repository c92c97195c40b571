"""The stream of drawn operations."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssbench.scenario.draws import OPERATIONS_AT_ONCE, Workload
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import CREATE, DELETE, READ, UPDATE


def make(*classes: SizeClass, containers: int = 7) -> Scenario:
    return Scenario("test", classes, user_count=4, operation_count=10, container_count=containers)


MIXED = make(
    SizeClass("tiny", 4, 8, 30, (3.0, 4.0, 2.0, 1.0)),
    SizeClass("big", 100, 5 * 10**9, 10, (0.0, 9.0, 0.0, 1.0)),
)


def take(scenario: Scenario, seed: int, count: int) -> list[tuple[int, int, int, int]]:
    return list(islice(Workload(scenario, seed).draws(), count))


def test_same_seed_same_operations():
    assert take(MIXED, 5, 3 * OPERATIONS_AT_ONCE) == take(MIXED, 5, 3 * OPERATIONS_AT_ONCE)
    assert take(MIXED, 5, 1000) != take(MIXED, 6, 1000)
    workload = Workload(MIXED, 5)
    assert list(workload.initial_objects()) == list(workload.initial_objects())
    assert list(islice(workload.draws(), 1000)) == take(MIXED, 5, 1000)


@settings(deadline=None)
@given(st.lists(st.integers(0, 2 * OPERATIONS_AT_ONCE), max_size=8), st.integers(0, 2**64))
def test_how_it_is_consumed_does_not_matter(counts, seed):
    draws = Workload(MIXED, seed).draws()
    taken = [draw for count in counts for draw in islice(draws, count)]
    assert taken == take(MIXED, seed, sum(counts))


def test_plain_whole_numbers_come_out():
    assert {type(value) for draw in take(MIXED, 1, 100) for value in draw} == {int}
    assert {type(value) for each in Workload(MIXED, 1).initial_objects() for value in each} == {int}


def test_shares_of_classes_and_operations():
    """Within five standard deviations of what the scenario says; the seed is fixed, so no flicker."""
    count = 200_000
    drawn = Counter((draw[1], draw[0]) for draw in take(MIXED, 1, count))
    for index, share in enumerate((0.75, 0.25)):
        profile = MIXED.size_classes[index].crud_profile
        for code, weight in enumerate(profile):
            p = share * weight / sum(profile)
            deviation = (count * p * (1 - p)) ** 0.5
            assert abs(drawn[index, code] - count * p) <= 5 * deviation
    assert not drawn[1, CREATE.code]
    assert not drawn[1, UPDATE.code]


def test_sizes_are_uniform_with_both_ends():
    scenario = make(SizeClass("tiny", 4, 8, 1, (1.0, 0.0, 1.0, 0.0)))
    sizes = Counter(draw[3] for draw in take(scenario, 1, 50_000))
    assert set(sizes) == {4, 5, 6, 7, 8}
    assert all(abs(count - 10_000) < 500 for count in sizes.values())
    assert set(Counter(size for *_, size in Workload(MIXED, 1).initial_objects())) >= {4, 8}


@pytest.mark.parametrize(("low", "high"), [(0, 0), (5 * 10**9, 5 * 10**9), (0, 2**63 - 1)])
def test_sizes_at_the_limits(low, high):
    scenario = make(SizeClass("any", low, high, 5, (1.0, 0.0, 0.0, 0.0)))
    sizes = [draw[3] for draw in take(scenario, 1, 2000)]
    sizes += [size for *_, size in Workload(scenario, 1).initial_objects()]
    assert all(low <= size <= high for size in sizes)
    assert max(sizes) >= high * 0.9


def test_no_body_no_size():
    for code, _, _, size in take(MIXED, 1, 5000):
        assert (size == 0) == (code in {READ.code, DELETE.code})


def test_every_container_is_used():
    containers = Counter(draw[2] for draw in take(MIXED, 1, 70_000))
    assert set(containers) == set(range(7))
    assert all(abs(count - 10_000) < 500 for count in containers.values())


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 2**32 - 2),
            st.lists(st.floats(0, 1e299), min_size=4, max_size=4).filter(lambda weights: sum(weights) > 0),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_what_has_no_weight_is_never_drawn(classes):
    scenario = make(*(SizeClass(str(n), 1, 1, count, tuple(w)) for n, (count, w) in enumerate(classes)))
    for code, index, _, _ in take(scenario, 1, 500):
        assert scenario.size_classes[index].crud_profile[code] > 0


def test_initial_objects_go_round_the_containers_over_all_classes():
    scenario = make(SizeClass("a", 1, 1, 4, (1.0,) * 4), SizeClass("b", 2, 2, 3, (1.0,) * 4), containers=3)
    workload = Workload(scenario, 1)
    assert list(workload.initial_objects()) == [
        (0, 0, 1, 1),
        (0, 1, 2, 1),
        (0, 2, 3, 1),
        (0, 0, 4, 1),
        (1, 1, 1, 2),
        (1, 2, 2, 2),
        (1, 0, 3, 2),
    ]
    assert workload.initial_containers(1).tolist() == [1, 2, 0]


def test_many_initial_objects():
    scenario = make(SizeClass("a", 1, 9, 2 * OPERATIONS_AT_ONCE + 5, (1.0,) * 4))
    objects = list(Workload(scenario, 1).initial_objects())
    assert [number for _, _, number, _ in objects] == list(range(1, 2 * OPERATIONS_AT_ONCE + 6))
    assert [container for _, container, _, _ in objects[-3:]] == [
        n % 7 for n in range(2 * OPERATIONS_AT_ONCE + 2, 2 * OPERATIONS_AT_ONCE + 5)
    ]
