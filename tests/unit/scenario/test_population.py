"""Which object each operation hits, compared with a plain model."""

from __future__ import annotations

from collections import Counter, deque
from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ssbench.scenario import population
from ssbench.scenario.draws import Target, Workload
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import COPY, CREATE, DELETE, READ, UPDATE
from ssbench.scenario.population import Population, expiry_margin
from ssbench.store.contract import JobResult

USERS = 4


def make(
    *profiles: tuple[float, ...], initial: int = 3, delete_after: int | None = None, seed: int = 1
) -> tuple[Workload, Population]:
    classes = tuple(SizeClass(str(n), 1, 9, initial, profile) for n, profile in enumerate(profiles))
    scenario = Scenario(
        "test", classes, USERS, operation_count=10, container_count=5, delete_after=delete_after
    )
    workload = Workload(scenario, seed)
    return workload, Population(scenario, workload)


def filled(*profiles: tuple[float, ...], initial: int = 3, delete_after: int | None = None) -> Population:
    workload, state = make(*profiles, initial=initial, delete_after=delete_after)
    for index, _, number, size in workload.initial_objects():
        state.add_initial(index, number, size)
    return state


def end(state: Population, *jobs: Target, ok: bool = True) -> None:
    state.ended((job, JobResult(0, None, 0.1, 1.0, cause=None if ok else "timeout")) for job in jobs)


def brief(jobs: list[Target]) -> list[tuple[int, int]]:
    return [(code, number) for code, _, _, number, _ in jobs]


def test_reads_visit_all_in_turn():
    _, state = make((0, 1, 0, 0))
    for number in (1, 2, 3):
        state.add_initial(0, number, 10 * number)
    assert state.next_jobs(7) == [
        (READ.code, 0, (number - 1) % 5, number, 10 * number) for number in (1, 2, 3, 1, 2, 3, 1)
    ]


def test_updates_visit_all_in_turn_and_have_a_size():
    state = filled((0, 0, 1, 0))
    seen = []
    for _ in range(5):
        jobs = state.next_jobs(1)
        seen += brief(jobs)
        assert 1 <= jobs[0][4] <= 9
        end(state, *jobs)
    assert seen == [(UPDATE.code, number) for number in (1, 2, 3, 1, 2)]


def test_a_read_must_return_what_was_written_last_unless_an_earlier_update_failed():
    state, sizes = filled((1, 4, 2, 0), initial=20), {}
    for turn in range(500):
        for code, index, container, number, size in state.next_jobs(1):
            ok = code == READ.code or turn % 3 > 0
            if code == READ.code:
                assert size == sizes.get(number, size)
            else:
                # A failed update may be carried out at any time, so the size is not known from then on.
                sizes[number] = size if ok and sizes.get(number) != 0 else 0
            state.finished(code, index, container, number, ok)
    assert len(sizes) > 20
    assert 0 in sizes.values()


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
    state.add_initial(0, 2, 5)
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


def test_an_object_that_is_written_gets_no_other_operation():
    state = filled((0, 3, 1, 0))
    for _ in range(50):
        jobs = state.next_jobs(20)
        written = [number for code, number in brief(jobs) if code == UPDATE.code]
        read = {number for code, number in brief(jobs) if code == READ.code}
        assert len(written) == len(set(written))
        assert not read & set(written)
        end(state, *jobs)
    assert state.waits


def test_one_that_is_read_is_passed_over_and_goes_to_the_end():
    state = filled((0, 1, 1, 0), initial=4)
    held: list[Target] = []
    while not held:
        jobs = state.next_jobs(1)
        held += [job for job in jobs if job[0] == READ.code]
        end(state, *(job for job in jobs if job[0] != READ.code))
    taken = Counter()
    for _ in range(100):
        jobs = state.next_jobs(1)
        taken.update(brief(jobs))
        end(state, *jobs)
    slow = held[0][3]
    assert not taken[UPDATE.code, slow]
    assert taken[READ.code, slow] > 5
    assert all(taken[UPDATE.code, number] > 5 for number in {1, 2, 3, 4} - {slow})
    assert not state.waits


def test_a_write_waits_for_the_readers_of_the_only_object_and_reads_behind_it_for_the_write():
    state = filled((0, 9, 1, 0), initial=1)
    reads: list[Target] = []
    while not state.waiting:
        reads += state.next_jobs(1)
    assert {job[0] for job in reads} == {READ.code}
    assert state.next_jobs(100) == []
    assert state.waiting == USERS  # no more are drawn ahead than that
    drawn = state.drawn
    end(state, *reads[:-1])
    assert state.next_jobs(100) == []
    end(state, reads[-1], ok=False)
    (update,) = state.next_jobs(100)
    assert brief([update]) == [(UPDATE.code, 1)]
    end(state, update)
    assert state.next_jobs(100, most_draws=0)
    assert state.drawn >= drawn
    assert state.waits >= USERS


def test_other_classes_go_on_while_one_waits():
    state = filled((0, 0, 1, 0), (1, 0, 0, 0), initial=1)
    jobs = state.next_jobs(1000)
    waiting = state.waiting
    assert waiting == USERS
    assert Counter((job[0], job[1]) for job in jobs)[UPDATE.code, 0] == 1
    assert Counter((job[0], job[1]) for job in jobs)[CREATE.code, 1] == len(jobs) - 1 > 0
    assert state.drawn == len(jobs) + waiting


def test_what_waits_is_counted_as_not_sendable_when_its_object_is_deleted():
    for seed in range(50):
        workload, state = make((0, 0, 1, 1), initial=1, seed=seed)
        if [code for code, *_ in islice(workload.draws(), 2)] == [UPDATE.code, DELETE.code]:
            break
    state.add_initial(0, 1, 1)
    (update,) = state.next_jobs(100)
    assert state.waiting == USERS
    end(state, update)
    (delete,) = state.next_jobs(100, most_draws=0)
    assert brief([delete]) == [(DELETE.code, 1)]
    assert (state.waiting, state.not_sendable.total(), state.drawn) == (0, USERS - 1, USERS + 1)


def test_the_order_holds_over_many_arrays(monkeypatch):
    monkeypatch.setattr(population, "_CHUNK_NUMBERS", 16)
    state = filled((0, 1, 0, 0), initial=1000)
    assert [number for _, number in brief(state.next_jobs(2500))] == [n % 1000 + 1 for n in range(2500)]
    state = filled((3, 5, 1, 1), initial=100)
    alive = set(range(1, 101))
    for _ in range(3000):
        jobs = state.next_jobs(1)
        end(state, *jobs)
        for code, number in brief(jobs):
            assert (number in alive) == (code != CREATE.code)
            alive ^= {number} if code in {CREATE.code, DELETE.code} else set()


def test_what_is_taken_back_leaves_everything_as_it_was():
    workload, state = make((1, 1, 1, 1))
    sizes = {}
    for index, _, number, size in workload.initial_objects():
        state.add_initial(index, number, size)
        sizes[number] = size
    for _ in range(30):
        jobs = state.next_jobs(4)
        for code, index, container, number, size in jobs:
            if code == READ.code:
                assert size == sizes[number]
            state.take_back(code, index, container, number)
    assert state.drawn == state.waiting + state.not_sendable.total()
    assert list(state.leftovers()) == []


def test_what_may_have_been_created_is_left_over():
    state = filled((1, 0, 0, 0))
    first, second = (job for job in state.next_jobs(2) if job[0] == CREATE.code)
    state.take_back(*first[:4], in_doubt=True)
    state.take_back(*second[:4])
    assert state.drawn == 0
    assert list(state.leftovers()) == [first[1:4]]


# -- Expiry ---------------------------------------------------------------------------------------


def test_objects_past_their_delete_after_are_not_asked_for():
    state = filled((1, 1, 0, 0), initial=2, delete_after=60)
    end(state, *state.next_jobs(40, 1000.0))
    created = state.drawn - 2
    reads = {number for code, number in brief(state.next_jobs(200, 1000.0)) if code == READ.code}
    assert len(reads) > 10
    assert state.expired == 0
    late = 1000.0 + 60 - expiry_margin(60)
    reads = {number for code, number in brief(state.next_jobs(200, late)) if code == READ.code}
    assert reads == {1, 2}  # initial objects do not expire
    assert 0 < state.expired <= created
    assert list(state.leftovers())  # they may be there still


def test_an_update_makes_an_object_last_longer_and_an_initial_one_expire():
    state = filled((0, 1, 1, 0), initial=1, delete_after=10)
    now, updated = 0.0, None
    for _ in range(40):
        now += 2.0
        jobs = state.next_jobs(1, now)
        end(state, *jobs)
        updated = now if jobs and jobs[0][0] == UPDATE.code else updated
        if updated is None or now < updated + 10 - expiry_margin(10):
            assert jobs
        else:
            assert not jobs
    assert updated is not None
    while state.next_jobs(1, now + 100):
        pass
    assert state.expired == 1
    assert state.not_sendable.total() > 0


def test_a_failed_update_leaves_the_earlier_time():
    state = filled((0, 0, 1, 0), initial=1, delete_after=10)
    end(state, *state.next_jobs(1, 0.0))
    end(state, *state.next_jobs(1, 3.0), ok=False)
    assert state.next_jobs(1, 5.0) == []
    assert state.expired == 1
    state = filled((0, 0, 1, 0), initial=1, delete_after=10)
    end(state, *state.next_jobs(1, 3.0), ok=False)  # it may have been carried out
    assert state.next_jobs(1, 8.0) == []


# -- Any order of events --------------------------------------------------------------------------

WEIGHTS = st.tuples(*[st.sampled_from([0.0, 1.0, 3.0])] * 4).filter(any)


class AnyOrder(RuleBasedStateMachine):
    """Draws, ends, new initial objects and time in any order.

    Nothing is beside a write on an object, what is handed out exists and has not expired, and every
    operation drawn is handed out or counted.
    """

    @initialize(
        profiles=st.lists(WEIGHTS, min_size=1, max_size=3),
        initial=st.integers(1, 25),
        delete_after=st.none() | st.integers(1, 20),
        seed=st.integers(0, 9),
    )
    def begin(self, profiles, initial, delete_after, seed):
        workload, self.state = make(*profiles, initial=initial, delete_after=delete_after, seed=seed)
        self.delete_after = delete_after
        self.not_uploaded = [(index, number, size) for index, _, number, size in workload.initial_objects()]
        self.containers = {(index, number): place for index, place, number, _ in workload.initial_objects()}
        self.exists: set[tuple[int, int]] = set()
        self.in_flight: list[Target] = []
        self.expires: dict[tuple[int, int], float] = {}
        self.began: dict[tuple[int, int], float] = {}
        self.possible: set[tuple[int, int]] = set()
        self.uncertain: set[tuple[int, int]] = set()
        self.handed_out = 0
        self.now = 0.0

    @rule(place=st.integers(0, 1000))
    def upload(self, place):
        if self.not_uploaded:
            index, number, size = self.not_uploaded.pop(place % len(self.not_uploaded))
            self.state.add_initial(index, number, size)
            self.exists.add((index, number))

    @rule(seconds=st.floats(0, 8))
    def time_passes(self, seconds):
        self.now += seconds

    @rule(count=st.integers(0, 30), most_draws=st.none() | st.integers(0, 30))
    def draw(self, count, most_draws):
        drawn = self.state.drawn
        jobs = self.state.next_jobs(count, self.now, most_draws)
        assert len(jobs) <= count
        if most_draws is not None:
            assert self.state.drawn - drawn <= most_draws
        for job in jobs:
            self.check(job)

    def check(self, job):
        code, index, container, number, _ = job
        key = (index, number)
        others = [other[0] for other in self.in_flight if (other[1], other[3]) == key]
        if code == CREATE.code:
            assert key not in self.containers
            self.containers[key] = container
            self.possible.add(key)
        else:
            assert key in self.exists
            assert self.now < self.expires.get(key, float("inf"))
            assert container == self.containers[key]
            assert not others or (code == READ.code and set(others) == {READ.code})
        if code == DELETE.code:
            self.exists.remove(key)
        self.began[key] = self.now
        self.in_flight.append(job)
        self.handed_out += 1

    @rule(place=st.integers(0, 1000), ok=st.booleans())
    def end_one(self, place, ok):
        if not self.in_flight:
            return
        job = self.in_flight.pop(place % len(self.in_flight))
        end(self.state, job, ok=ok)
        code, index, _, number, _ = job
        key = (index, number)
        if code in {CREATE.code, UPDATE.code} and self.delete_after is not None:
            expires = self.began[key] + self.delete_after
            self.expires[key] = expires if ok else min(expires, self.expires.get(key, expires))
        if code == CREATE.code and ok:
            self.exists.add(key)
        elif code == UPDATE.code and not ok:
            self.uncertain.add(key)
        elif code == DELETE.code and ok and key not in self.uncertain:
            self.possible.discard(key)

    @rule(place=st.integers(0, 1000))
    def take_back_one(self, place):
        if not self.in_flight:
            return
        code, index, container, number, _ = self.in_flight.pop(place % len(self.in_flight))
        self.state.take_back(code, index, container, number)
        self.handed_out -= 1
        if code == CREATE.code:
            self.possible.discard((index, number))
        elif code == DELETE.code:
            self.exists.add((index, number))

    @invariant()
    def every_operation_is_accounted_for(self):
        state = self.state
        assert state.drawn == self.handed_out + state.not_sendable.total() + state.waiting
        assert 0 <= state.waiting <= USERS
        assert state.waits >= state.waiting
        left = {(index, number): container for index, container, number in state.leftovers()}
        assert left == {key: self.containers[key] for key in self.possible}

    def teardown(self):
        """What waits can always go on: no more operations are drawn, and all those in flight end."""
        if not hasattr(self, "state"):
            return
        while self.state.waiting or self.in_flight:
            waiting = self.state.waiting
            self.draw(1000, 0)
            assert self.in_flight or self.state.waiting < waiting
            while self.in_flight:
                self.end_one(0, True)
        self.every_operation_is_accounted_for()


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(stateful_step_count=40)


@given(st.lists(WEIGHTS, min_size=1, max_size=3), st.integers(1, 6), st.lists(st.booleans(), max_size=80))
def test_the_oldest_comes_first_where_all_are_free(profiles, initial, results):
    state = filled(*profiles, initial=initial)
    queues = [deque(range(1, initial + 1)) for _ in profiles]
    for ok in results:
        jobs = state.next_jobs(1)
        for code, index, _, number, _ in jobs:
            if code != CREATE.code:
                assert number == queues[index].popleft()
            if code in {READ.code, UPDATE.code} or (code == CREATE.code and ok):
                queues[index].append(number)
        end(state, *jobs, ok=ok)
        assert jobs or not all(queues)
    assert state.waits == 0


@settings(deadline=None)
@given(st.lists(st.integers(1, 200), min_size=1, max_size=30))
def test_batch_sizes_do_not_change_what_is_drawn(counts):
    """With nothing answered until the end, so that the order of answers plays no part."""
    profiles = ((2.0, 5.0, 0.2, 0.1), (1.0, 1.0, 0.0, 0.2))
    parts, whole = filled(*profiles, initial=900), filled(*profiles, initial=900)
    jobs = [job for count in counts for job in parts.next_jobs(count)]
    assert jobs == whole.next_jobs(sum(counts))
    assert parts.drawn == whole.drawn


def test_a_copy_reads_its_object_and_makes_one_that_nothing_else_uses() -> None:
    drawn = Scenario(
        "s",
        (SizeClass("tiny", 10, 20, 2, {"copy": 1.0, "delete": 1.0}),),
        user_count=100,
        operation_count=1,
        container_count=5,
        delete_after=1000,
    )
    workload = Workload(drawn, 3)
    state = Population(drawn, workload)
    for index, container, number, size in workload.initial_objects():
        state.add_initial(index, number, size)
        assert container == number - 1
    begun: dict[int, tuple[int, int, int, int, int]] = {}
    deleted: set[int] = set()
    for job in state.next_jobs(1, 1.0) + state.next_jobs(8, 1.0):
        code, _, container, number, source = job
        if code == DELETE.code:
            deleted.add(number)
        else:
            assert code == COPY.code
            assert source in {1, 2} - deleted
            assert (number, container) == (3 + len(begun), source - 1)
            begun[number] = job
    assert len(begun) > 1
    # No object is deleted as long as it is being copied.
    assert not deleted & {job[4] for job in begun.values()}
    first, *others = begun.values()
    state.take_back(*first[:4])
    for job in others:
        state.finished(*job[:4], ok=True)
    assert {number for _, _, number in state.leftovers()} == set(begun) - {first[3]}
    rest = {job[3] for job in state.next_jobs(50, 1.0) if job[0] == DELETE.code}
    assert rest <= {1, 2}
