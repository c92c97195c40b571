"""Which own times are ranked, against what plain arithmetic makes of the same times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np
import pytest

from ssbench.cluster.rank_tests import MIN_TEST_REQUESTS, Units, make_pairs, upper_tail
from ssbench.cluster.server_times import (
    MAX_STANDINGS,
    OwnTimes,
    list_own_times,
    measure_evidence,
    rank_standings,
)
from ssbench.cluster.suspect_search import CandidateLevel, Measure, SearchStage, SuspectVerdict

#: Moments at which operations ended; each time is of the operation of the same number from the end.
ENDED = 1000.0 + np.arange(2000.0)


def measure(part: str, who: Sequence[int], seconds: Sequence[float], **others: bool) -> Measure:
    """Times of one party each, in reads and writes by turns: two kinds, each a group of its own."""
    count = len(who)
    units = Units(np.array(seconds), np.arange(count) % 2, np.array([0, 1]))
    pairs = make_pairs(np.arange(count), np.array(who), max(who) + 1)
    level = CandidateLevel("proxy" if part in ("own part", "way") else "device", pairs)
    return Measure(
        part, units, 1999 - np.arange(count), [level], ("reads", "writes"), SearchStage.OWN, 0.1, **others
    )


def verdict(measures: Sequence[Measure]) -> SuspectVerdict:
    return SuspectVerdict([], [each.test() for each in measures], {})


def name(level: str, place: int) -> str:
    return f"{level} {place}"


def random_times(parties: int, each: int, seed: int = 1) -> tuple[list[int], list[float]]:
    random = np.random.default_rng(seed)
    who = np.tile(np.arange(parties), each)
    return who.tolist(), (random.lognormal(0, 0.3, len(who)) + 0.05 * who).tolist()


def beyond_others(measured: Measure, party: int) -> list[float]:
    """Return what a party's times are beyond the median of the others' of the same kind."""
    who, seconds = measured.levels[0].who.candidate.tolist(), measured.units.seconds.tolist()
    others = [
        median(each for at, each in enumerate(seconds) if at % 2 == kind and who[at] != party)
        for kind in (0, 1)
    ]
    return [each - others[at % 2] for at, each in enumerate(seconds) if who[at] == party]


def test_standings_have_the_difference_to_others_of_the_kind_and_the_strongest_test_of_each() -> None:
    measures = [measure("own", *random_times(5, 31)), measure("own part", *random_times(3, 21, seed=2))]
    found = rank_standings(measures, verdict(measures), name)
    assert len(found) == 5 + 3
    assert {(each.name, each.part) for each in found} == {
        *((f"device {place}", "own") for place in range(5)),
        *((f"proxy {place}", "own part") for place in range(3)),
    }
    assert [each.probability for each in found] == sorted(each.probability for each in found)
    for each in found:
        measured = measures[each.part == "own part"]
        party = int(each.name.split()[1])
        expected = beyond_others(measured, party)
        assert each.requests == len(expected)
        assert each.difference.median == pytest.approx(median(expected))
        low, high = each.interval
        assert sum(low <= one <= high for one in expected) < len(expected)
        assert low < median(expected) < high
        deviates = [measured.deviate(measured.levels[0], group, party) for group in (0, 1, -1)]
        assert each.probability == pytest.approx(upper_tail(max(deviates)))


def test_only_own_times_of_the_whole_run_stand_and_only_where_a_test_can_tell() -> None:
    times = random_times(3, 20)
    others = [
        measure("way", *times),
        measure("lookups", *times),
        measure("own", *times, divided="time"),
        measure("own", *times, tail=True),
    ]
    assert rank_standings(others, verdict(others), name) == []
    for few, stand in ((MIN_TEST_REQUESTS - 1, {0, 1}), (MIN_TEST_REQUESTS, {0, 1, 2})):
        who = [0, 0, 1, 1] * 15 + [2] * few
        some = [*others, measure("updates", who, [*range(len(who))])]
        found = rank_standings(some, verdict(some), name)
        assert {each.name for each in found} == {f"device {place}" for place in stand}


def test_no_more_stand_than_are_shown_and_those_with_most_evidence() -> None:
    parties = MAX_STANDINGS + 5
    who, seconds = random_times(parties, 20)
    slow = [each + 10.0 * (place < MAX_STANDINGS) for place, each in zip(who, seconds, strict=True)]
    measures = [measure("own", who, slow)]
    found = rank_standings(measures, verdict(measures), name)
    assert {each.name for each in found} == {f"device {place}" for place in range(MAX_STANDINGS)}


def test_the_evidence_of_a_node_is_at_least_that_of_each_of_its_devices() -> None:
    who, seconds = random_times(4, 40)
    own = measure("own", who, [each + 2.0 * (place == 1) for place, each in zip(who, seconds, strict=True)])
    nodes = CandidateLevel("node", make_pairs(np.arange(160), np.array(who) // 2, 2), [[0, 1], [2, 3]])
    total = replace(
        measure("total", who, seconds),
        levels=[own.levels[0], nodes],
        stage=SearchStage.TOTAL,
        groups=("reads", "writes"),
    )
    by_proxy = measure("way", *random_times(2, 40))
    measures = [own, total, by_proxy]
    tests = verdict(measures)
    z = {
        (place, level.name): test.z
        for place, (each, of) in enumerate(zip(measures, tests.tests, strict=True))
        for level, test in zip(each.levels, of, strict=True)
    }
    devices = np.fmax.reduce([*z[0, "device"], *z[1, "device"]])
    assert measure_evidence(measures, tests, "device") == pytest.approx(devices)
    of_nodes = np.fmax.reduce(z[1, "node"])
    found = measure_evidence(measures, tests, "node")
    assert found == pytest.approx([max(of_nodes[0], devices[0], devices[1]), max(of_nodes[1], *devices[2:])])
    assert found[0] == devices[1]


def test_own_times_are_beyond_the_median_of_their_kind_at_the_moments_of_their_operations() -> None:
    who, seconds = random_times(3, 4)
    own, last = measure("own", who, seconds), measure("last", who, seconds)
    measures = [
        own,
        replace(own, divided="time"),
        replace(own, tail=True),
        measure("way", who, seconds),
        last,
    ]
    found = [*list_own_times(measures, ENDED)]
    assert [each.part for each in found] == ["own", "last"]
    kinds = [median(seconds[kind::2]) for kind in (0, 1)]
    assert found[0].beyond == pytest.approx([each - kinds[at % 2] for at, each in enumerate(seconds)])
    assert found[1].beyond.tolist() == seconds  # these are beyond others already
    for each in found:
        assert each.who.tolist() == who
        assert each.moment.tolist() == ENDED[1999 - np.arange(12)].tolist()
    chosen = OwnTimes("own", np.arange(3), np.arange(3.0), np.array([1.0, math.nan, 3.0])).where(
        np.array([True, False, True])
    )
    assert (chosen.who.tolist(), chosen.moment.tolist(), chosen.beyond.tolist()) == ([0, 2], [0, 2], [1, 3])
