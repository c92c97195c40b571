"""Which object an operation has: as often as asked, the same for each seed, and never one of two at once."""

from __future__ import annotations

from collections import Counter, deque
from itertools import count
from random import Random

import numpy as np
import pytest
from chi_square import misfit
from hypothesis import given
from hypothesis import strategies as st

from ssbench.base.errors import UsageError
from ssbench.scenario import chosen_objects as scenario_chosen
from ssbench.scenario.chosen_objects import (
    ChosenPopulation,
    CycledObjects,
    SlottedObjects,
    draw_cycle,
    make_chooser,
    make_deletion_chooser,
    make_population,
    make_rank_function,
)
from ssbench.scenario.draws import Workload
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import OPERATIONS, Effect
from ssbench.scenario.population import Population
from ssbench.scenario.structured_values import POPULARITY_RULE, Popularity, Reuse

DRAWS = 20_000
KINDS = (
    "uniform",
    "sequential",
    "latest",
    {"zipf": 0.99},
    {"zipf": 1.0},
    {"latest": 1.5},
    {"hotspot": {"objects": 0.2, "requests": 0.8}},
    {"counts": [[1, 60], [3, 30], [50.5, 10]]},
)


def popularity(value: object) -> Popularity:
    found = POPULARITY_RULE.read(value)
    assert isinstance(found, Popularity)
    return found


def scenario(
    weights: dict[str, float], objects: int, kind: object = "uniform", reuse: Reuse | None = None, **more
) -> Scenario:
    size_class = SizeClass("one", 1, 1000, objects, weights)
    return Scenario("s", (size_class,), 8, popularity=popularity(kind), reuse=reuse, **more)


def populated(made: Scenario, seed: int = 1) -> Population:
    workload = Workload(made, seed)
    found = make_population(made, workload)
    for index, _, number, size in workload.initial_objects():
        found.add_initial(index, number, size)
    return found


def read(made: Population, times: int) -> list[int]:
    numbers = []
    for _ in range(times):
        (job,) = made.next_jobs(1)
        made.finished(*job[:4], ok=True)
        numbers.append(job[3])
    return numbers


def weights_of(kind: object, objects: int) -> list[float]:
    """Return the share of each object, that of number 1 first, as the documentation has it."""
    ranks = np.arange(1, objects + 1, dtype=float)
    match kind:
        case {"zipf": exponent}:
            weights = ranks**-exponent
        case {"latest": exponent}:
            weights = ranks[::-1] ** -exponent
        case "latest":
            weights = ranks[::-1] ** -0.99
        case {"hotspot": _}:
            hot = objects // 5
            weights = np.where(ranks <= hot, 0.8 / hot, 0.2 / (objects - hot))
        case {"counts": bands}:
            counts, shares = np.array(bands[::-1]).T
            edges, sums = (np.append(0.0, each.cumsum() / each.sum()) for each in (shares, counts * shares))
            weights = np.diff(np.interp(np.arange(objects + 1) / objects, edges, sums))
        case _:
            weights = np.ones(objects)
    return list(weights / weights.sum())


@pytest.mark.parametrize("objects", [40, 5000])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_objects_are_chosen_as_often_as_asked(kind: object, objects: int) -> None:
    counts = Counter(read(populated(scenario({"read": 1}, objects, kind)), DRAWS))
    shares, found = weights_of(kind, objects), [counts[number] for number in range(1, objects + 1)]
    # Neighbours share a bin until 20 draws are expected in it.
    bins: list[list[float]] = [[0.0, 0.0]]
    for share, times in zip(shares, found, strict=True):
        if bins[-1][0] * DRAWS >= 20:
            bins.append([0.0, 0.0])
        bins[-1][0] += share
        bins[-1][1] += times
    if bins[-1][0] * DRAWS < 20:
        share, times = bins.pop()
        bins[-1][0] += share
        bins[-1][1] += times
    assert misfit([int(times) for _, times in bins], [share for share, _ in bins]) < 1


@pytest.mark.parametrize("exponent", [0.5, 0.99, 1.0, 2.0])
@pytest.mark.parametrize("objects", [1, 3, 1024, 1025, 100_000])
def test_ranks_are_the_inverse_of_the_sum_of_weights(exponent: float, objects: int) -> None:
    """Of a share of the sum of all weights, the rank is the first one up to which the sum is larger."""
    sums = (np.arange(1, objects + 1, dtype=float) ** -exponent).cumsum()
    shares = np.array([0.0, *((np.arange(500) + 0.5) / 500), 1 - 2.0**-53])
    expected = np.minimum(np.searchsorted(sums, shares * sums[-1], side="right"), objects - 1)
    found = make_rank_function(exponent)(objects, shares)
    assert (abs(found - expected) <= (expected > 1000)).all()


@pytest.mark.parametrize("kind", [each for each in KINDS if each != "sequential"], ids=str)
def test_objects_that_come_and_go_are_chosen_as_often_as_the_others(kind: object) -> None:
    """Each choice is for the number of objects at its time, though many are drawn at once."""
    popularity = POPULARITY_RULE.read(kind)
    assert isinstance(popularity, Popularity)
    line = SlottedObjects(aged=popularity.kind == "latest")
    line.numbers.extend(range(1, 41))
    choose = make_chooser(popularity, line, np.random.Generator(np.random.PCG64(7)))
    found: dict[int, Counter[int]] = {count: Counter() for count in range(20, 81)}
    step, count = 1, 40
    for number in range(41, DRAWS):
        slot = choose()
        assert line.first <= slot < len(line.numbers)
        rank = slot - line.first
        found[len(line)][len(line) - 1 - rank if popularity.kind == "latest" else rank] += 1
        if number % 8:
            continue
        step = -step if count in {20, 80} else step
        count += step
        if step > 0:
            line.numbers.append(number)
        else:
            line.remove(line.first)
    assert all(found.values())
    # The first rank was chosen as often as the weights for each number of objects have it.
    expected = 0.0
    for size, counts in found.items():
        if popularity.kind == "hotspot":
            share = popularity.requests / round(size * popularity.objects)
        else:
            share = max(weights_of(kind, size))
        expected += share * counts.total()
    assert sum(counts[0] for counts in found.values()) == pytest.approx(expected, abs=4 * expected**0.5)


def test_what_is_read_ahead_changes_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = {"read": 3, "create": 2, "update": 1, "delete": 2}

    def chosen() -> list[list[int]]:
        return [read(populated(scenario(weights, 50, kind)), 3000) for kind in KINDS]

    usual = chosen()
    monkeypatch.setattr(scenario_chosen, "_MANY_OBJECTS", 1)
    assert chosen() == usual


def test_the_order_is_kept_where_it_matters() -> None:
    made = populated(scenario({"read": 1}, 7, "sequential"))
    assert read(made, 10) == [1, 2, 3, 4, 5, 6, 7, 1, 2, 3]
    for kind in ("sequential", "latest"):
        assert read(populated(scenario({"delete": 1}, 7, kind)), 5) == [1, 2, 3, 4, 5]


def test_old_scenarios_have_the_population_that_they_had() -> None:
    made = scenario({"read": 1}, 3, "rotate")
    assert type(make_population(made, Workload(made, 1))) is Population
    assert len(read(populated(made), 5)) == 5


def test_reads_of_what_was_read_before() -> None:
    """Of all reads of a large population, which by itself repeats none, the share is reused."""
    made = populated(scenario({"read": 1}, 100_000, "sequential", Reuse(0.4, 5, 20)))
    numbers = read(made, DRAWS)
    again = 0
    for place in range(20, DRAWS):
        if numbers[place] in numbers[:place][-20:-4]:
            again += 1
    assert isinstance(made, ChosenPopulation)
    assert made.counts()["reused"] == made.reused
    assert abs(again / DRAWS - 0.4) < 4 * (0.24 / DRAWS) ** 0.5
    assert abs(made.reused - again) <= 20


def test_the_same_seed_chooses_the_same_objects() -> None:
    for kind in KINDS:
        made = scenario({"read": 3, "create": 1, "update": 1, "delete": 1}, 50, kind, Reuse(0.3, 1, 9))
        assert read(populated(made, 4), 300) == read(populated(made, 4), 300)


class Ended:
    def __init__(self, cause: str | None) -> None:
        self.cause = cause


class Contents:
    """What a store may have of each object: the sizes of its last write, and of those in flight or failed."""

    def __init__(self, state: Population) -> None:
        self._state = state
        self._written: dict[int, set[int]] = {}
        self._failed: dict[int, set[int]] = {}
        self._in_flight: list[tuple[tuple[int, ...], set[int]]] = []  # and sizes that were written meanwhile

    def begin(self, job: tuple[int, int, int, int, int]) -> None:
        """Check that a read has the one size that its object may have, and keeps it until it has ended."""
        code, _, _, number, size = job
        name, mine = OPERATIONS[code].name, [each for each in self._in_flight if each[0][3] == number]
        writes = [each for each in mine if OPERATIONS[each[0][0]].name == "update"]
        before = self._written.setdefault(
            number, {self._state._sizes[0][number]} if name != "update" else set()
        )
        if not before:
            before.add(self._state._sizes_before[0, number])
        possible = before | self._failed.get(number, set()) | {each[0][4] for each in writes}
        if name in {"read", "head"} and size:
            assert possible == {size}
        if name == "update":
            for other, _ in mine:
                assert OPERATIONS[other[0]].name not in {"read", "head"} or other[4] in {0, size}
        self._in_flight.append((job, set()))

    def end(self, job: tuple[int, int, int, int, int], how: str) -> None:
        """Note that a job has ended: ``done``, ``failed`` or ``taken back``."""
        code, _, _, number, size = job
        place = next(place for place, (each, _) in enumerate(self._in_flight) if each == job)
        _, meanwhile = self._in_flight.pop(place)
        if OPERATIONS[code].name != "update" or how == "taken back":
            return
        if how == "failed":
            self._failed.setdefault(number, set()).add(size)
        else:
            self._written[number] = {size} | meanwhile
        for other, sizes in self._in_flight:
            if other[3] == number:
                sizes.add(size)


@given(st.data())
def test_no_operation_meets_another_on_its_object(data: st.DataObject) -> None:
    """What is in flight never conflicts, every draw is accounted for, nothing that is gone is asked for.

    Only what reads, and updates of objects that stay, may meet; then reads have the size of what they get.
    """
    names = ["create", "read", "update", "delete", "head", "post", "copy"]
    weights = {name: float(data.draw(st.integers(0, 3), name)) for name in names}
    weights["read"] += 1
    made = scenario(
        weights,
        data.draw(st.integers(1, 6), "objects"),
        data.draw(st.sampled_from(("rotate", *KINDS)), "kind"),
        data.draw(st.sampled_from((None, Reuse(0.5, 1, 4))), "reuse"),
        delete_after=data.draw(st.sampled_from((None, 4)), "delete_after"),
    )
    state, random = populated(made), Random(data.draw(st.integers(0, 2**32), "seed"))
    contents, meeting = Contents(state), {"read", "head", "update"} if made.delete_after is None else set()
    in_flight: list[tuple[int, int, int, int, int]] = []
    handed_out, gone = 0, set()
    for now in count():
        for job in state.next_jobs(random.randint(0, 4), float(now), None if now < 60 else 0):
            handed_out += 1
            effect = OPERATIONS[job[0]].effect
            assert effect is Effect.ADDS or effect is Effect.COPIES or job[3] not in gone
            others = {OPERATIONS[each[0]].name for each in in_flight if each[3] == job[3]}
            reads = {"read", "head"} if effect is Effect.READS else set()
            assert others <= (meeting if OPERATIONS[job[0]].name in meeting else reads)
            contents.begin(job)
            if effect is Effect.COPIES:
                sources = {OPERATIONS[each[0]].effect for each in in_flight if each[3] == job[4]}
                assert sources <= {Effect.READS}
            in_flight.append(job)
        random.shuffle(in_flight)
        for _ in range(random.randint(0, len(in_flight))):
            job = in_flight.pop()
            way = random.random()
            contents.end(job, "taken back" if way < 0.1 else "failed" if way > 0.9 else "done")
            if way < 0.1:
                state.take_back(*job[:4])
                handed_out -= 1
                continue
            failed = way > 0.9
            state.ended([(job, Ended("failed" if failed else None))])
            if OPERATIONS[job[0]].effect is Effect.REMOVES:
                gone.add(job[3])
        if now > 60 and not in_flight:
            break
        assert now < 500
    assert handed_out + sum(state.not_sendable.values()) + state.waiting == state.drawn


def use(made: Population, times: int, ahead: int) -> list[int]:
    """Return the numbers of the objects that operations use, of which so many are in flight."""
    in_flight: deque[tuple[int, int, int, int, int]] = deque()
    numbers = []
    while len(numbers) < times:
        in_flight += made.next_jobs(1)
        numbers.append(in_flight[-1][3])
        if len(in_flight) > ahead:
            made.finished(*in_flight.popleft()[:4], ok=True)
    return numbers


def hit_ratio(numbers: list[int], room: int) -> float:
    """Return the share of uses that a cache has, which drops what was unused for the longest time."""
    cached: dict[int, None] = {}
    hits = 0
    for number in numbers:
        hits += number in cached
        cached.pop(number, None)
        cached[number] = None
        if len(cached) > room:
            del cached[next(iter(cached))]
    return hits / len(numbers)


COUNTS = {"counts": [[1, 60], [4, 30], [50, 10]]}
#: Objects that are used four times, soon again; those of 50 uses are used evenly.
CLASSES = Reuse(0.0, 1, 1, ((1.0, (1.0,)), (4.0, (0.0,) * 9 + (1.0,)), (50.0, (0.0,) * 5 + (1.0,))))


@pytest.mark.parametrize(
    ("kind", "reuse"), [(COUNTS, CLASSES), ({"zipf": 1.0}, None), ("uniform", Reuse(0.5, 1, 20))], ids=str
)
def test_hot_objects_that_are_updated_are_used_as_often_and_as_soon_again(
    kind: object, reuse: Reuse | None
) -> None:
    """200 operations a second, half of them updates, that are handed out 0.3 s before they are due."""
    made = scenario({"read": 1, "update": 1}, 300, kind, reuse)
    populations = [populated(made), populated(made)]
    alone, together = (use(each, 10_000, ahead) for each, ahead in zip(populations, (0, 60), strict=True))
    assert hit_ratio(together, 60) == pytest.approx(hit_ratio(alone, 60), abs=0.01)
    counts = populations[1].counts()
    assert counts["redrawn"] == 0
    assert counts["shared"] > 1000


@pytest.mark.parametrize(
    ("verify", "more", "segment_size"), [(True, {}, 0), (False, {"delete_after": 3600}, 0), (False, {}, 500)]
)
def test_objects_are_not_shared_where_it_matters_who_wrote_them_last(
    verify: bool, more: dict[str, int], segment_size: int
) -> None:
    size_class = SizeClass("one", 1, 1000, 300, {"read": 1, "update": 1}, segment_size=segment_size)
    made = Scenario("s", (size_class,), 8, popularity=popularity({"zipf": 1.0}), **more)
    workload = Workload(made, 1)
    population = make_population(made, workload, verify=verify)
    for index, _, number, size in workload.initial_objects():
        population.add_initial(index, number, size)
    use(population, 2000, 60)
    assert population.counts()["shared"] == 0
    assert population.counts()["redrawn"] > 100


def test_counts_are_the_shares_of_requests() -> None:
    population = populated(scenario({"read": 1}, 1000, COUNTS), seed=3)
    jobs = population.next_jobs(DRAWS, 0.0)
    numbers = Counter(number for *_, number, _ in jobs)
    total = 60 + 4 * 30 + 50 * 10
    hot, warm, cold = (
        sum(numbers[number] for number in range(first, last)) / DRAWS
        for first, last in ((1, 101), (101, 401), (401, 1001))
    )
    assert hot == pytest.approx(500 / total, abs=0.01)
    assert warm == pytest.approx(120 / total, abs=0.01)
    assert cold == pytest.approx(60 / total, abs=0.01)


def test_in_a_cycle_each_object_is_used_as_often_as_its_count_says_and_as_soon_again() -> None:
    order = draw_cycle(popularity(COUNTS), CLASSES, 1000, 1000, np.random.default_rng(5))
    uses = Counter(order)
    assert [uses[rank] for rank in (0, 99, 100, 399, 400, 999)] == [50, 50, 4, 4, 1, 1]
    assert len(order) == 6800
    places = {rank: [at for at, each in enumerate(order) if each == rank] for rank in (150, 250)}
    for own in places.values():
        gaps = [(second - first) % len(order) for first, second in zip(own, own[1:] + own[:1], strict=True)]
        assert sorted(gaps)[2] < 4 * len(order) / 2**9  # the last is what is left of the cycle


@pytest.mark.parametrize(("known", "deleted"), [(300, 0.0), (200, 0.2)])
def test_the_order_of_a_cycle_does_not_depend_on_how_many_uses_are_looked_at_together(
    known: int, deleted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By their counts, objects of two classes take turns, and one has more uses than are looked at together.
    counts = popularity({"counts": [[1.5, 200], [3.5, 99], [100, 1]]})
    reuse = Reuse(
        0.0, 1, 1, ((1.0, (1.0, 2.0)), (2.0, (0.0, 0.0, 3.0, 1.0)), (4.0, (0.0, 1.0))), 0.0, deleted
    )
    orders = []
    for together in (scenario_chosen._USES_AT_ONCE, 7):
        monkeypatch.setattr(scenario_chosen, "_USES_AT_ONCE", together)
        orders.append(draw_cycle(counts, reuse, 300, known, np.random.default_rng(5)))
    assert len(orders[0]) > 700
    assert orders[0] == orders[1]


def test_objects_that_are_used_less_than_once_are_used_or_not() -> None:
    counts = popularity({"counts": [[0.5, 100], [2, 10]]})
    for seed in range(20):
        uses = Counter(draw_cycle(counts, CLASSES, 110, 110, np.random.default_rng(seed)))
        assert [*range(len(uses))] == sorted(uses)
        assert sorted(Counter(uses.values())) == [1, 2]
        assert len(uses) - 10 == pytest.approx(50, abs=20)


def test_the_order_of_a_cycle_is_what_operations_use_while_objects_come_and_go() -> None:
    made = scenario({"read": 8, "create": 1, "delete": 1}, 400, COUNTS, CLASSES)
    population = populated(made, seed=3)
    read = next(row.code for row in OPERATIONS if row.name == "read")
    codes = Counter[int]()
    for _ in range(200):
        for code, index, container, number, _ in population.next_jobs(50, 0.0):
            codes[code] += 1
            population.finished(code, index, container, number, ok=True)
    assert sum(codes.values()) == 10_000
    assert codes[read] == pytest.approx(8000, abs=200)


def test_a_cycle_is_made_anew_when_there_are_half_as_many_objects() -> None:
    line = CycledObjects()
    line.numbers.extend(range(40))
    choose = make_chooser(popularity(COUNTS), line, np.random.default_rng(1), (), CLASSES)
    assert {choose() for _ in range(2000)} == set(range(40))
    for _ in range(37):
        line.remove(3)
    assert {choose() for _ in range(200)} == set(range(3))


def test_objects_beyond_those_of_a_cycle_are_not_used() -> None:
    line = CycledObjects()
    line.numbers.extend(range(8))
    choose = make_chooser(popularity(COUNTS), line, np.random.default_rng(1), (), CLASSES)
    choose()
    line.numbers.extend(range(8, 40))
    assert {choose() for _ in range(2000)} == set(range(8))


def test_in_a_cycle_what_is_deleted_is_not_used_again() -> None:
    line = CycledObjects()
    line.numbers.extend(range(1000))
    counts, reuse = popularity({"counts": [[0, 200], [4, 800]]}), Reuse(0.0, 1, 1, CLASSES.classes, 0, 0.5)
    choose = make_chooser(counts, line, np.random.default_rng(1), (), reuse)
    delete = make_deletion_chooser(counts, line, np.random.default_rng(2))
    uses, gone = Counter[int](), Counter[int]()
    for place in range(3200):
        uses[line.numbers[choose()]] += 1
        if place % 8 == 7:
            slot = delete()
            gone[line.numbers[slot]] = uses[line.numbers[slot]]
            line.remove(slot)
    assert len(gone) == 400
    assert [*gone.values()] == [0] * 200 + [4] * 200  # what has no use goes first
    assert all(uses[number] == times for number, times in gone.items())
    assert set(uses.values()) == {4}


def test_in_a_cycle_unused_objects_go_before_newer_ones() -> None:
    reuse = Reuse(0.0, 1, 1, CLASSES.classes)
    made = populated(scenario({"create": 1, "delete": 1}, 200, {"counts": [[0, 100], [1, 100]]}, reuse))
    gone = []
    for _ in range(300):
        (job,) = made.next_jobs(1)
        made.finished(*job[:4], ok=True)
        gone += [job[3]] if OPERATIONS[job[0]].name == "delete" else []
    assert len(gone) > 100
    assert max(gone) <= 200


def test_created_objects_of_a_cycle_begin_after_those_that_were_there() -> None:
    line = CycledObjects()
    line.numbers.extend(range(60))
    reuse = Reuse(0.0, 1, 1, CLASSES.classes, 0.4)  # 100 objects in all
    choose = make_chooser(popularity(COUNTS), line, np.random.default_rng(1), (), reuse)
    chosen = []
    for created in range(60, 100):
        line.numbers.append(created)
        chosen += [choose() for _ in range(17)]  # 680 uses are a cycle
    first = list(dict.fromkeys(chosen))
    assert first == sorted(first)
    assert len(first) >= 95


def test_a_population_that_grows_from_one_object_keeps_its_counts() -> None:
    line = CycledObjects()
    line.numbers.append(0)
    reuse = Reuse(0.0, 1, 1, CLASSES.classes, 0.99)  # 100 objects in all
    choose = make_chooser(popularity(COUNTS), line, np.random.default_rng(1), (), reuse)
    late = Counter[int]()
    for created in range(1, 400):
        line.numbers.append(created)
        uses = [choose() for _ in range(20)]
        if created > 210:  # twice as many as there were to be
            late.update(uses)
    hottest = sum(times for _, times in late.most_common(25)) / late.total()
    assert hottest > 0.6  # 25 of some 250 objects have 500 of 680 uses


def test_a_cycle_that_is_too_long_is_refused() -> None:
    made = scenario({"read": 1}, 1000, {"counts": [[1, 1], [1e9, 1]]}, CLASSES)
    with pytest.raises(UsageError, match=r"one would have 500,000,000,500 uses in a cycle, at most"):
        make_population(made, Workload(made, 1))
