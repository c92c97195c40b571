"""Who is named where a ring puts devices together: tests of times that are made up, without logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from ssbench.cluster import suspect_search
from ssbench.cluster.rank_tests import Pairs, Units
from ssbench.cluster.suspect_search import CandidateLevel, Family, Suspect, find_suspects

COUNT = 600
SLOWER = 0.05
SETS = np.arange(COUNT) % 4


def family(part_in: Sequence[np.ndarray], slow: np.ndarray, *, own: bool = False) -> Family:
    """Requests of which the ``slow`` ones take longer; ``part_in`` says of each device which are its own."""
    seconds = np.random.default_rng(1).lognormal(np.log(0.1), 0.1, COUNT) + SLOWER * slow
    unit = np.concatenate([np.flatnonzero(each) for each in part_in])
    candidate = np.repeat(np.arange(len(part_in)), [int(each.sum()) for each in part_in])
    units = Units(seconds, np.zeros(COUNT, np.int32), np.zeros(1, np.int32))
    who = Pairs(unit, candidate.astype(np.int32), len(part_in))
    part = "own" if own else "total"
    return Family(
        part, units, np.arange(COUNT), [CandidateLevel("device", who)], ("writes",), own=own, request=0.1
    )


def in_sets(*numbers: int) -> list[np.ndarray]:
    """Return for each device the requests of the set that a ring has put it in."""
    return [each == SETS for each in numbers]


def tie(known: Mapping[int, float]) -> suspect_search.LastReplicaDeviates:
    return lambda among: {place: known[place] for place in among if place in known}


def test_a_device_of_its_own_is_named_alone() -> None:
    (found,) = find_suspects([family(in_sets(0, 1, 2, 3), SETS == 2)], tie({})).suspects
    assert (found.candidate, found.rivals, found.ties) == (2, (), ())
    assert found.difference.median == pytest.approx(SLOWER, rel=0.2)
    assert (found.with_, found.without) == (COUNT // 4, 3 * COUNT // 4)


def test_nothing_decides_between_devices_of_one_set() -> None:
    (found,) = find_suspects([family(in_sets(0, 1, 1, 1, 2, 3), SETS == 1)], tie({})).suspects
    assert {found.candidate, *found.rivals} == {1, 2, 3}
    assert len(found.rivals) == 2
    assert found.ties == ()


@pytest.mark.parametrize("slow", [1, 2, 3])
def test_the_replica_that_ends_last_decides_between_devices_of_one_set(slow: int) -> None:
    total = family(in_sets(0, 1, 1, 1, 2, 3), SETS == 1)
    (found,) = find_suspects([total], tie({slow: 4.0, 0: 9.0})).suspects
    assert found.candidate == slow
    assert sorted(found.ties) == sorted({1, 2, 3} - {slow})
    assert found.rivals == ()


@pytest.mark.parametrize(("z", "decides"), [(2.6, False), (2.8, True)])
def test_it_decides_at_the_level_of_one_among_so_many(z: float, decides: bool) -> None:
    """The probability of chance is taken three times, as there are three devices: 0.014 and 0.008."""
    (found,) = find_suspects([family(in_sets(0, 1, 1, 1, 2, 3), SETS == 1)], tie({2: z})).suspects
    assert (found.ties != ()) is decides
    assert (found.rivals == ()) is decides


def test_of_those_that_explain_another_the_strongest_is_named() -> None:
    """The first took part in some of the slow requests, the second in most, and the third in all of them."""
    slow = SETS == 1
    some, most = slow & (np.arange(COUNT) % 8 == 1), slow & (np.arange(COUNT) % 100 != 1)
    total = family([some, most, slow], slow)
    (tests,) = suspect_search.find_suspects([total], tie({})).tests
    weak = Suspect(total, total.levels[0], 0, 0, 5.0, 0.0, total.difference(total.levels[0], 0, 0), 1, 1)
    found = suspect_search._decide_among_rivals([total], [tests], weak, tie({}))
    assert found.candidate == 2
    assert found.difference == total.difference(total.levels[0], 2, 0)
