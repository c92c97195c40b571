"""Who is named where a ring puts devices together, or where all is slower for a while: made-up times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from ssbench.cluster import suspect_search
from ssbench.cluster.rank_tests import Deviates, Pairs, Units, divide_in_slices
from ssbench.cluster.suspect_search import CandidateLevel, Measure, SearchStage, Suspect, find_suspects

COUNT = 600
SLOWER = 0.05
SETS = np.arange(COUNT) % 4


def measure(
    part_in: Sequence[np.ndarray],
    slow: np.ndarray,
    levels: Sequence[CandidateLevel] = (),
    *,
    group: str = "writes",
    stage: SearchStage = SearchStage.TOTAL,
) -> Measure:
    """Requests of which the ``slow`` ones take longer; ``part_in`` says of each device which are its own."""
    seconds = np.random.default_rng(1).lognormal(np.log(0.1), 0.1, COUNT) + SLOWER * slow
    every = np.arange(COUNT)
    units = Units(seconds, np.zeros(COUNT, np.int32), np.zeros(1, np.int32), divide_in_slices(every))
    device = CandidateLevel("device", pairs(part_in))
    part = "own" if stage is SearchStage.OWN else "total"
    return Measure(part, units, every, [device, *levels], (group,), stage, request=0.1)


def pairs(part_in: Sequence[np.ndarray]) -> Pairs:
    unit = np.concatenate([np.flatnonzero(each) for each in part_in])
    candidate = np.repeat(np.arange(len(part_in)), [int(each.sum()) for each in part_in])
    return Pairs(unit, candidate.astype(np.int32), len(part_in))


def in_sets(*numbers: int) -> list[np.ndarray]:
    """Return for each device the requests of the set that a ring has put it in."""
    return [each == SETS for each in numbers]


class Evidence(Measure):
    """A measure that names nobody by itself, and has these deviates of some devices."""

    __slots__ = ("known",)
    known: dict[int, float]

    def test(self) -> list[Deviates]:
        z = np.full((2, self.levels[0].who.count), np.nan)
        for place, deviate in self.known.items():
            z[0, place] = deviate
        return [Deviates(z, np.zeros(z.shape, np.int64), np.zeros(z.shape, np.int64))]

    def accepts(self, *_: object) -> bool:
        return False

    def hold(self, suspect: Suspect) -> Measure:
        return self


def evidence(known: Mapping[int, float], devices: int) -> Measure:
    plain = measure([SETS >= 0] * devices, SETS < 0)
    found = Evidence("last", plain.units, plain.operation, plain.levels, ("writes",), SearchStage.ENDS, 0.1)
    object.__setattr__(found, "known", known)
    return found


def test_a_device_of_its_own_is_named_alone() -> None:
    (found,) = find_suspects([measure(in_sets(0, 1, 2, 3), SETS == 2)]).suspects
    assert (found.candidate, found.rivals, found.ties) == (2, (), ())
    assert found.difference.median == pytest.approx(SLOWER, rel=0.2)
    assert (found.with_, found.without) == (COUNT // 4, 3 * COUNT // 4)


def test_nothing_decides_between_devices_of_one_set() -> None:
    (found,) = find_suspects([measure(in_sets(0, 1, 1, 1, 2, 3), SETS == 1)]).suspects
    assert {found.candidate, *found.rivals} == {1, 2, 3}
    assert len(found.rivals) == 2
    assert found.ties == ()


@pytest.mark.parametrize("slow", [1, 2, 3])
def test_the_replica_that_ends_last_decides_between_devices_of_one_set(slow: int) -> None:
    total = measure(in_sets(0, 1, 1, 1, 2, 3), SETS == 1)
    (found,) = find_suspects([total, evidence({slow: 4.0, 0: 9.0}, 6)]).suspects
    assert found.candidate == slow
    assert sorted(found.ties) == sorted({1, 2, 3} - {slow})
    assert found.rivals == ()


@pytest.mark.parametrize(("z", "decides"), [(2.6, False), (2.8, True)])
def test_it_decides_at_the_level_of_one_among_so_many(z: float, decides: bool) -> None:
    """The probability of chance is taken three times, as there are three devices: 0.014 and 0.008."""
    total = measure(in_sets(0, 1, 1, 1, 2, 3), SETS == 1)
    (found,) = find_suspects([total, evidence({2: z}, 6)]).suspects
    assert (found.ties != ()) is decides
    assert (found.rivals == ()) is decides


def test_of_those_that_explain_another_the_strongest_is_named() -> None:
    """The first took part in some of the slow requests, the second in most, and the third in all of them."""
    slow = SETS == 1
    some, most = slow & (np.arange(COUNT) % 8 == 1), slow & (np.arange(COUNT) % 100 != 1)
    total = measure([some, most, slow], slow)
    tests = total.test()
    weak = Suspect(total, total.levels[0], 0, 0, 0.0, total.difference(total.levels[0], 0, 0), 1, 1)
    found = suspect_search._decide_among_rivals([total], [tests], weak, np.array([0.0, 0.0, 0.001]))
    assert (found.candidate, found.probability) == (2, 0.001)
    assert found.difference == total.difference(total.levels[0], 2, 0)


def test_one_that_was_beside_either_of_two_is_left_out() -> None:
    """It is the strongest, as it took part in what either of the two slow ones did, and in little else."""
    numbers = np.random.default_rng(3).integers(0, 100, COUNT)
    first, second = numbers < 25, (numbers >= 25) & (numbers < 50)
    slow = first | second
    beside = slow & (np.random.default_rng(4).random(COUNT) < 0.9)
    beside |= ~slow & (numbers < 53)
    found = find_suspects([measure([first, second, beside], slow)]).suspects
    assert sorted(each.candidate for each in found) == [0, 1]


def test_the_total_of_writes_says_nothing_of_nodes() -> None:
    """A node with one device of each of two sets took part in all that was slow."""
    slow = (SETS == 1) | (SETS == 2)
    node = CandidateLevel("node", pairs([slow, ~slow]), [[0, 1], [2, 3]])
    for group, told in (("reads", True), ("writes", False)):
        total = measure(in_sets(1, 2, 0, 3), slow, [node], group=group)
        assert np.isfinite(total.test()[1].z).any() == told
        assert [each.level.name for each in find_suspects([total]).suspects][:1] == [
            "node" if told else "device"
        ]


def test_a_group_is_not_named_for_two_of_its_three_devices() -> None:
    """Each has objects of its own, which are compared with a device elsewhere and not with each other."""
    objects, inside = np.arange(COUNT) % 3, np.arange(COUNT) % 2 == 0
    devices = [(objects == each) & where for where in (inside, ~inside) for each in range(3)]
    process = CandidateLevel("process", pairs([inside, ~inside]), [[0, 1, 2], [3, 4, 5]])
    own = measure(devices, inside & (objects < 2), [process], stage=SearchStage.OWN)
    units = replace(own.units, stratum=objects.astype(np.int32), group=np.zeros(3, np.int32))
    found = find_suspects([replace(own, units=units)]).suspects
    assert [(each.level.name, each.candidate) for each in found] in (
        [("device", 0), ("device", 1)],
        [("device", 1), ("device", 0)],
    )


def test_of_a_group_with_few_requests_of_each_one_is_slow() -> None:
    own = [np.arange(COUNT) % 100 == each for each in range(3)] + [np.arange(COUNT) % 100 == 50]
    process = CandidateLevel("process", pairs([own[0] | own[1] | own[2]]), [[0, 1, 2]])
    slow = own[0] | own[1]
    (found,) = find_suspects([measure(own, slow, [process], stage=SearchStage.OWN)]).suspects
    assert (found.level.name, {found.candidate, *found.rivals}) == ("device", {0, 1, 2})
    assert found.with_ == 18
    assert found.difference.mean == pytest.approx(SLOWER * 2 / 3, rel=0.3)


def test_probabilities_allow_for_all_kinds_of_parties() -> None:
    total = measure(in_sets(0, 1, 2, 3), 0.16 * (SETS == 2))
    further = replace(measure(in_sets(0, 1, 2, 3), SETS < 0), part="updates")
    alone, beside = (find_suspects(each).suspects[0].probability for each in ([total], [total, further]))
    assert alone > 0
    assert beside == pytest.approx(2 * alone, abs=0)


@pytest.mark.parametrize("stage", [SearchStage.OWN, SearchStage.TOTAL])
def test_who_takes_part_while_all_is_slower_is_not_named(stage: SearchStage) -> None:
    late = np.arange(COUNT) >= COUNT // 2
    joined = [(SETS == 0) & late, (SETS == 0) & ~late, SETS == 1, SETS == 2, SETS == 3]
    assert find_suspects([measure(joined, late, stage=stage)]).suspects == []
    # Nor is one hidden that is slow besides.
    (found,) = find_suspects([measure(joined, late + 1.0 * joined[0], stage=stage)]).suspects
    assert found.candidate == 0


def test_who_joins_within_a_slice_as_all_begins_to_take_longer_is_not_named() -> None:
    """Of that slice it has all that is slow, and others have what was before."""
    late = np.arange(COUNT) >= 0.97 * COUNT
    for slow, named in ((late, []), (SETS == 0, [0])):
        joined = [late | (SETS == 0) & (np.arange(COUNT) < 0.5 * COUNT), ~late & (SETS > 0)]
        assert [each.candidate for each in find_suspects([measure(joined, slow)]).suspects] == named
