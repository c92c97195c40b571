"""Which object each operation hits, held against a plain model."""

from __future__ import annotations

from collections import Counter, deque
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssbench.operations import CREATE, DELETE, READ, UPDATE
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.workload.draws import Workload
from ssbench.workload.population import RunState


def make(*profiles: tuple[float, ...], initial: int = 3) -> tuple[Workload, RunState]:
    classes = tuple(SizeClass(str(n), 1, 9, initial, profile) for n, profile in enumerate(profiles))
    scenario = Scenario("test", classes, user_count=4, operation_count=10, container_count=5)
    workload = Workload(scenario, 1)
    return workload, RunState(scenario, workload)


def filled(*profiles: tuple[float, ...], initial: int = 3) -> RunState:
    workload, state = make(*profiles, initial=initial)
    for index, _, number, _ in workload.initial_objects():
        state.add_initial(index, number)
    return state


def test_reads_visit_all_in_turn():
    state = filled((0, 1, 0, 0))
    assert state.next_jobs(7) == [
        (READ.code, 0, (number - 1) % 5, number, 0) for number in (1, 2, 3, 1, 2, 3, 1)
    ]


def test_updates_visit_all_in_turn_and_have_a_size():
    jobs = filled((0, 0, 1, 0)).next_jobs(5)
    assert [(job[0], job[3]) for job in jobs] == [(UPDATE.code, number) for number in (1, 2, 3, 1, 2)]
    assert all(1 <= job[4] <= 9 for job in jobs)


def test_deletes_take_the_oldest_until_there_is_none():
    state = filled((0, 0, 0, 1))
    jobs = state.next_jobs(5)
    assert [job[3] for job in jobs] == [1, 2, 3]
    for code, index, container, number, _ in jobs:
        state.finished(code, index, container, number, ok=False)
    assert state.next_jobs(2) == []
    assert state.not_sendable == {(DELETE.code, 0): 4}
    assert state.drawn == 7
    assert list(state.leftovers()) == []  # initial objects are not ours to remove


def test_creates_count_on_from_the_initial_objects_and_join_when_they_have_succeeded():
    state = filled((1, 0, 0, 0), (0, 0, 0, 1))
    created = [job for job in state.next_jobs(40) if job[0] == CREATE.code]
    assert [job[3] for job in created] == list(range(4, 4 + len(created)))
    assert {job[2] for job in created} == set(range(5))
    assert list(state.leftovers()) == [(0, job[2], job[3]) for job in created]


def test_objects_that_were_not_uploaded_are_not_used():
    _, state = make((0, 1, 0, 0))
    state.add_initial(0, 2)
    assert [job[3] for job in state.next_jobs(3)] == [2, 2, 2]


def test_a_failed_create_is_never_used_but_may_have_to_be_removed():
    state = filled((1, 1, 0, 0), initial=1)
    seen = []
    for _ in range(200):
        for code, index, container, number, _ in state.next_jobs(1):
            state.finished(code, index, container, number, ok=code != CREATE.code)
            seen.append((code, number))
    created = [number for code, number in seen if code == CREATE.code]
    assert created
    assert {number for code, number in seen if code == READ.code} == {1}
    assert [number for _, _, number in state.leftovers()] == created


def test_a_deleted_object_is_not_left_over_and_a_failed_delete_is():
    state = filled((1, 0, 0, 1), initial=1)
    open_numbers, failed = set(), set()
    for turn in range(500):
        for code, index, container, number, _ in state.next_jobs(1):
            ok = code == CREATE.code or turn % 2 == 0
            state.finished(code, index, container, number, ok)
            if code == CREATE.code:
                open_numbers.add(number)
            elif ok:
                open_numbers.discard(number)
            else:
                failed.add(number)
    assert {number for _, _, number in state.leftovers()} == open_numbers
    assert failed & open_numbers


@pytest.mark.parametrize("update_first", [True, False])
@pytest.mark.parametrize("update_ok", [True, False])
def test_an_update_that_is_under_way_while_its_object_is_deleted_may_make_it_anew(update_first, update_ok):
    _, state = make((1, 0, 3, 3))
    under_way, overlapped = {}, set()
    for _ in range(2000):
        for code, index, container, number, _ in state.next_jobs(1):
            job = (code, index, container, number)
            if code == CREATE.code:
                state.finished(*job, ok=True)
            elif code == UPDATE.code:
                under_way.setdefault(number, job)
            elif number in under_way:
                overlapped.add(number)
                ends = [(under_way.pop(number), update_ok), (job, True)]
                for ended, ok in ends if update_first else reversed(ends):
                    state.finished(*ended, ok=ok)
            else:
                state.finished(*job, ok=True)
    assert overlapped
    left = {number for _, _, number in state.leftovers()}
    assert overlapped <= left
    assert {container for _, container, _ in state.leftovers()} <= set(range(5))


def test_an_update_that_failed_may_still_be_carried_out_after_the_delete():
    _, state = make((1, 0, 1, 3))
    failed, deleted = set(), set()
    for turn in range(2000):
        for code, index, container, number, _ in state.next_jobs(1):
            ok = code != UPDATE.code or turn % 2 == 0
            state.finished(code, index, container, number, ok)
            if not ok:
                failed.add(number)
            elif code == DELETE.code:
                deleted.add(number)
    assert failed & deleted
    left = {number for _, _, number in state.leftovers()}
    assert failed & deleted <= left
    assert not (deleted - failed) & left


WEIGHTS = st.tuples(*[st.sampled_from([0.0, 1.0, 3.0])] * 4).filter(any)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("draw"), st.integers(0, 30)),
        st.tuples(st.just("finish"), st.integers(0, 1000), st.booleans()),
        st.tuples(st.just("initial"), st.integers(0, 1000)),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=300)
@given(st.lists(WEIGHTS, min_size=1, max_size=3), ACTIONS, st.integers(1, 6))
def test_any_order_of_events(profiles, actions, initial):  # noqa: PLR0912 - a whole model in one piece
    """Against one deque a class: the same objects in the same order, whatever is interleaved."""
    workload, state = make(*profiles, initial=initial)
    expected_draws = workload.draws()
    lines = [deque() for _ in profiles]
    containers = {(index, number): place for index, place, number, _ in workload.initial_objects()}
    waiting = [(index, number) for index, number in containers]
    in_flight, handed_out, possible = [], set(), {}
    not_sendable, drawn = Counter(), 0
    leaving, rewritten = set(), set()
    for action in actions:
        if action[0] == "initial" and waiting:
            index, number = waiting.pop(action[1] % len(waiting))
            state.add_initial(index, number)
            lines[index].append(number)
        elif action[0] == "finish" and in_flight:
            job, ok = in_flight.pop(action[1] % len(in_flight)), action[2]
            state.finished(*job[:4], ok)
            if ok and job[0] == CREATE.code:
                lines[job[1]].append(job[3])
            elif ok and job[0] == DELETE.code and (job[1], job[3]) not in rewritten:
                possible.pop((job[1], job[3]), None)
            elif job[0] == UPDATE.code and (not ok or (job[1], job[3]) in leaving):
                rewritten.add((job[1], job[3]))
                if job[3] > initial:
                    possible[job[1], job[3]] = job[2]
        elif action[0] == "draw":
            expected = []
            for code, index, place, size in islice(expected_draws, action[1]):
                drawn += 1
                if code == CREATE.code:
                    number = max((n for i, n in containers if i == index), default=0) + 1
                    containers[index, number] = place
                    possible[index, number] = place
                elif lines[index]:
                    number = lines[index].popleft()
                    if code == DELETE.code:
                        leaving.add((index, number))
                    else:
                        lines[index].append(number)
                else:
                    not_sendable[code, index] += 1
                    continue
                expected.append((code, index, containers[index, number], number, size))
            jobs = state.next_jobs(action[1])
            assert jobs == expected
            in_flight += jobs
            handed_out.update((job[1], job[3]) for job in jobs if job[0] == CREATE.code)
        assert state.drawn == drawn
        assert state.not_sendable == not_sendable
    assert set(state.leftovers()) == {(index, place, number) for (index, number), place in possible.items()}
    assert len(handed_out) == sum(1 for key in containers if key[1] > initial)


@settings(deadline=None)
@given(st.lists(st.integers(1, 200), min_size=1, max_size=30))
def test_batch_sizes_do_not_change_what_is_drawn(counts):
    """With creates answered only at the end, so that the order of answers plays no part."""
    profiles = ((2.0, 5.0, 2.0, 0.1), (1.0, 1.0, 1.0, 0.0))
    parts, whole = filled(*profiles), filled(*profiles)
    jobs = [job for count in counts for job in parts.next_jobs(count)]
    assert jobs == whole.next_jobs(sum(counts))
    assert parts.drawn == whole.drawn == len(jobs) + parts.not_sendable.total()
