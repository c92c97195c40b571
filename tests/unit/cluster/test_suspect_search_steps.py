"""The steps of the search for suspects, each by itself: what is tested, who is accepted, and what decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ssbench.cluster.rank_tests import (
    Deviates,
    Units,
    adjust_by_holm,
    make_pairs,
    measure_deviates,
    measure_peer_difference,
    upper_tail,
)
from ssbench.cluster.suspect_search import (
    ALPHA,
    MIN_DELAY_SHARE,
    MIN_DEVIATE_BESIDE,
    POOLED,
    CandidateLevel,
    Measure,
    SearchStage,
    Suspect,
    _find_best,
    _leave_out_explained,
    adjust_all_tests,
    find_suspects,
    has_queues,
)

COUNT = 400
TURN = np.arange(COUNT) % 4


def measure(
    part_in: Sequence[np.ndarray],
    slow: np.ndarray,
    *,
    stage: SearchStage = SearchStage.OWN,
    part: str = "own",
    groups: tuple[str, ...] = ("reads",),
    stratum: np.ndarray | None = None,
    members: Sequence[tuple[np.ndarray, Sequence[int]]] = (),
) -> Measure:
    """Requests of 100 ms, which take longer by so many seconds; of whom each is, and groups of them."""
    seconds = np.random.default_rng(1).lognormal(np.log(0.1), 0.1, COUNT) + slow
    kinds = np.zeros(COUNT, np.int64) if stratum is None else stratum
    units = Units(seconds, kinds, np.arange(int(kinds.max()) + 1) % len(groups))
    levels = [level("device", part_in)]
    if members:
        node = level("node", [each for each, _ in members])
        levels.append(replace(node, members=[own for _, own in members]))
    return Measure(part, units, np.arange(COUNT), levels, groups, stage, 0.1)


def level(name: str, part_in: Sequence[np.ndarray]) -> CandidateLevel:
    unit = np.concatenate([np.flatnonzero(each) for each in part_in])
    who = np.repeat(np.arange(len(part_in)), [int(each.sum()) for each in part_in])
    return CandidateLevel(name, make_pairs(unit, who, len(part_in)))


DEVICES = [each == TURN for each in range(4)]


def test_neither_a_group_of_one_member_is_tested_nor_all_together_where_that_is_one_group() -> None:
    two = np.arange(COUNT) // 4 % 2
    made = measure(
        [*DEVICES, DEVICES[1], (TURN == 2) & (two == 0)],
        np.zeros(COUNT),
        groups=("reads", "writes"),
        stratum=two,
        members=[(TURN < 2, [0, 1]), (TURN == 3, [3])],
    )
    devices, nodes = made.test()
    plain = measure_deviates(made.units, made.levels[0].who, 2)
    assert devices.z[:, :5] == pytest.approx(plain.z[:, :5])  # of one level all are, if they are the same
    # One that took part in reads alone is tested in these.
    assert devices.z[0, 5] == pytest.approx(plain.z[0, 5])
    assert np.isnan(devices.z[1:, 5]).all()
    assert np.isfinite(nodes.z[:, 0]).all()
    assert np.isnan(nodes.z[:, 1]).all()  # its only device was tested
    windows = replace(made, divided="time").test()[0]
    assert windows.z[:2, :4] == pytest.approx(plain.z[:2, :4])
    assert np.isnan(windows.z[2]).all()
    total = replace(made, stage=SearchStage.TOTAL).test()
    assert np.isfinite(total[0].z[:, 0]).all()
    assert np.isfinite(total[1].z[:, 0]).tolist() == [True, False, False]  # of nodes reads tell
    blind = replace(made, stage=SearchStage.TOTAL, is_blind=True).test()[0]
    assert np.isfinite(blind.z[:, 0]).tolist() == [True, False, False]


@pytest.mark.parametrize(("share", "is_accepted"), [(0.9, False), (1.1, True)])
def test_a_difference_matters_by_its_median_or_its_mean(share: float, is_accepted: bool) -> None:
    made = measure(DEVICES, np.zeros(COUNT))
    measured = measure_peer_difference(made.units, DEVICES[0])
    least = share * MIN_DELAY_SHARE * made.request
    for median, mean in ((least, -1.0), (-1.0, least)):
        found = replace(measured, median=median, mean=mean)
        assert made.accepts(made.levels[0], 0, 0, found) is is_accepted


@pytest.mark.parametrize(("delay", "is_slow"), [(0.0, False), (0.2, True)])
@pytest.mark.parametrize("is_queued", [False, True])
def test_who_has_more_requests_at_once_is_slow_only_beside_others_with_as_many(
    delay: float, is_slow: bool, is_queued: bool
) -> None:
    random = np.random.default_rng(1)
    load = random.integers(0, 3, COUNT) + random.integers(0, 2, COUNT) * DEVICES[0]
    # Each waits for all that were there before it.
    seconds = random.lognormal(np.log(0.1), 0.1, COUNT) * (1 + load) + delay * DEVICES[0]
    made = measure(DEVICES, np.zeros(COUNT))
    slices = np.arange(COUNT) * 20 // COUNT
    made = replace(made, units=replace(made.units, seconds=seconds, slices=slices), load=load)
    (test,) = made.test()
    assert test.z[0, 0] > MIN_DEVIATE_BESIDE
    assert made.is_slow_for_load(made.levels[0], 0, 0, is_queued=is_queued) is is_slow


@pytest.mark.parametrize("is_queued", [False, True])
def test_one_so_slow_that_only_its_own_requests_meet_is_slow_where_no_request_waits(is_queued: bool) -> None:
    """The few others with as many at once took long themselves: where requests wait, that leaves it open."""
    random = np.random.default_rng(1)
    load = random.integers(1, 3, COUNT) * DEVICES[0]
    load[long := np.flatnonzero(DEVICES[1])[:12]] = 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2
    seconds = random.lognormal(np.log(0.01), 0.1, COUNT) + 0.05 * DEVICES[0]
    seconds[long] += 0.1
    made = measure(DEVICES, np.zeros(COUNT))
    made = replace(made, units=replace(made.units, seconds=seconds), load=load)
    assert made.is_slow_for_load(made.levels[0], 0, 0, is_queued=is_queued) is not is_queued


@pytest.mark.parametrize(("delay", "is_slow"), [(0.1, True), (0.004, False)])
def test_one_is_slow_that_takes_longer_than_if_each_waited_for_all_that_were_there(
    delay: float, is_slow: bool
) -> None:
    """A fixed delay lets requests meet; few slices tell of it in so short a run."""
    random = np.random.default_rng(1)
    load = random.integers(1, 4, COUNT) + 4 * DEVICES[0]
    seconds = random.lognormal(np.log(0.001), 0.5, COUNT) + delay * DEVICES[0]
    made = measure(DEVICES, np.zeros(COUNT))
    slices = np.arange(COUNT) * 6 // COUNT
    made = replace(made, units=replace(made.units, seconds=seconds, slices=slices), load=load, request=0.01)
    assert has_queues([made])
    assert made.is_slow_for_load(made.levels[0], 0, 0, is_queued=True) is is_slow


def test_who_is_not_the_first_where_requests_wait_has_to_be_more_evident() -> None:
    """What the first holds back loads others in its turn."""
    random = np.random.default_rng(1)
    load = random.integers(2, 6, COUNT)
    slices = np.arange(COUNT) * 20 // COUNT
    noise = random.lognormal(np.log(0.1), 0.4, COUNT)
    answers = []
    for delay in (0.02, 0.04, 0.08):
        made = measure(DEVICES, np.zeros(COUNT))
        units = replace(made.units, seconds=(noise + delay * DEVICES[0]) * (1 + load), slices=slices)
        made = replace(made, units=units, load=load)
        answers.append(
            [
                made.is_slow_for_load(made.levels[0], 0, 0, is_queued=True, is_first=is_first)
                for is_first in (True, False)
            ]
        )
    assert answers == [[False, False], [True, False], [True, True]]


def test_few_slow_requests_take_much_longer_than_the_slowest_of_others() -> None:
    few = DEVICES[0] & (np.arange(COUNT) % 40 == 0)
    random = np.random.default_rng(1)
    made = replace(measure(DEVICES, np.zeros(COUNT)), tail=True)
    for longest, is_accepted in ((0.1, True), (0.4, False)):
        seconds = random.uniform(0.1, 0.1 + longest, COUNT)
        seconds[few] = 0.7
        one = replace(made, units=replace(made.units, seconds=seconds))
        measured = one.difference(one.levels[0], 0, POOLED)
        assert one.accepts(one.levels[0], 0, POOLED, measured) is is_accepted


def test_where_requests_wait_a_little_of_few_requests_does_not_tell_of_a_device() -> None:
    """Some requests wait for several others, and the longer the more there are."""
    few = DEVICES[0] & (np.arange(COUNT) % 40 == 0)
    for delay, times_as_busy, when_queued in (
        (0.15, 1, False),
        (0.4, 1, True),
        (0.4, 3, False),
        (0.7, 3, True),
    ):
        made = replace(measure(DEVICES, delay * few), tail=True, load=np.where(TURN, 2, 2 * times_as_busy))
        assert made.is_slow_for_load(made.levels[0], 0, POOLED, is_queued=False)
        assert made.is_slow_for_load(made.levels[0], 0, POOLED, is_queued=True) is when_queued


def test_some_requests_of_devices_have_half_of_their_share_of_the_error() -> None:
    """Few tests tell of them, and hundreds of others say nothing of these."""
    plain = measure(DEVICES, np.zeros(COUNT))
    large = replace(measure(DEVICES, 0.02 * DEVICES[1]), divided="size")
    tests = [plain.test(), large.test()]
    assert (plain.kind, large.kind) == ("devices", "some requests")
    found = {place: adjusted for place, _, _, adjusted in adjust_all_tests([plain, large], tests)}
    for place, ((test,), adjusted) in enumerate(zip(tests, found.values(), strict=True)):
        alone = adjust_by_holm(np.array([upper_tail(each) for each in test.z.ravel()]))
        expected = np.minimum(2 * alone, 1.0)
        assert found[place].ravel() == pytest.approx(expected, nan_ok=True), adjusted


def test_what_is_of_some_requests_knows_a_node_by_its_devices() -> None:
    node = measure(DEVICES, 0.1 * (TURN < 2), members=[(TURN < 2, [0, 1]), (TURN > 1, [2, 3])])
    suspect = Suspect(node, node.levels[1], 0, 0, 0.0, node.difference(node.levels[1], 0, 0), 200, 200)
    tail = replace(measure(DEVICES, 0.1 * (TURN < 2)), tail=True)
    assert len(tail.hold(suspect).units) == COUNT // 2
    held = replace(tail, tail=False, divided="size").hold(suspect)
    assert not (held.test()[0].z[0] >= MIN_DEVIATE_BESIDE).any()


@pytest.mark.parametrize("others", [0, 4])
def test_what_clients_waited_is_compared_by_load_only_where_requests_find_others_as_a_rule(
    others: int,
) -> None:
    """One that is slow has more requests at once for that reason alone."""
    load: np.ndarray = others + 8 * DEVICES[0]
    made = replace(measure(DEVICES, 0.1 * DEVICES[0], stage=SearchStage.TOTAL), load=load.astype(np.int64))
    assert made.is_slow_for_load(made.levels[0], 0, 0, is_queued=False) is (others == 0)


def test_requests_wait_where_half_find_others_and_take_longer_the_more_these_are() -> None:
    load = np.random.default_rng(1).integers(0, 8, COUNT)
    made = measure(DEVICES, np.zeros(COUNT))
    waiting = replace(made.units, seconds=made.units.seconds * (1 + load))
    assert has_queues([replace(made, units=waiting, load=load)])
    assert not has_queues([replace(made, load=load)])
    assert not has_queues([replace(made, units=waiting, load=load // 6)])
    assert not has_queues([replace(made, units=waiting, load=load, request=30 * made.request * 8)])
    assert not has_queues([made])


@pytest.mark.parametrize(("every", "is_accepted"), [(40, True), (4, False)])
def test_who_is_slow_in_most_of_its_requests_is_not_named_for_few(every: int, is_accepted: bool) -> None:
    made = replace(measure(DEVICES, 0.5 * (np.arange(COUNT) % every == 0)), tail=True)
    measured = made.difference(made.levels[0], 0, POOLED)
    assert measured.median > 0.4
    assert made.accepts(made.levels[0], 0, POOLED, measured) is is_accepted


def test_few_slow_requests_are_those_of_whom_they_are_left_to_without_the_other() -> None:
    """One who took part in some of them explains nothing of the rest, however fast all others are."""
    few = DEVICES[0] & (np.arange(COUNT) % 20 == 0)
    beside = DEVICES[0] & (np.arange(COUNT) % 8 == 0)
    made = replace(measure([*DEVICES, beside], 2.0 * few - 0.03 * (DEVICES[0] & ~few)), tail=True)
    where = made.levels[0], POOLED
    assert made.deviate(*where, 0, 4) >= MIN_DEVIATE_BESIDE
    assert not made.deviate(*where, 4, 0) >= MIN_DEVIATE_BESIDE
    assert made.find_rivals(made.levels[0], made.test()[0].z[POOLED], POOLED, 0) == []


def test_those_who_are_only_busier_do_not_hide_few_slow_requests_of_another() -> None:
    random = np.random.default_rng(1)
    load = random.integers(2, 6, COUNT) + random.integers(0, 3, COUNT) * (TURN % 2 == 0)
    few = DEVICES[1] & (np.arange(COUNT) // 4 % 12 == 0)
    plain = measure(DEVICES, np.zeros(COUNT))
    seconds = random.lognormal(np.log(0.01), 0.1, COUNT) * (1 + load) + 2.0 * few
    plain = replace(plain, units=replace(plain.units, seconds=seconds), load=load)
    verdict = find_suspects([replace(plain, tail=True), plain])
    found = sorted((each.candidate, each.measure.tail, each.is_busy) for each in verdict.suspects)
    assert found == [(0, False, True), (1, True, False), (2, False, True)]


def test_those_of_a_group_that_may_be_slow_are_the_most_evident_first_and_none_beside_a_fast_one() -> None:
    turn = np.arange(COUNT) % 8
    node, devices = turn < 3, [turn == each for each in range(8)]
    for delays, members, are_all in (
        ((0.05, 0.05, 0.05), None, True),
        ((0.0, 0.0, 0.0), None, False),
        ((0.0, 0.2, 0.2), [], False),  # evidently faster than the others of its group
    ):
        slow = np.select([each == TURN for each in range(3)], delays, 0.0)
        made = measure(devices, slow, members=[(node, [0, 1, 2])])
        found, every = made.find_slow_members(made.levels[1], 0, POOLED)
        assert every is are_all
        if members is not None:
            assert found == members
        deviates = [made.deviate(made.levels[0], POOLED, each) for each in found]
        assert deviates == sorted(deviates, reverse=True)
        assert all(each >= 0 for each in deviates)
        if are_all:
            assert set(found) == {0, 1, 2}
            assert min(deviates) >= MIN_DEVIATE_BESIDE
    absent = measure([*devices, np.zeros(COUNT, np.bool_)], 0.05 * node, members=[(node, [0, 1, 2, 8])])
    assert set(absent.find_slow_members(absent.levels[1], 0, POOLED)[0]) == {0, 1, 2}


def test_probabilities_are_adjusted_within_a_kind_and_for_the_number_of_kinds() -> None:
    """Kinds of which nothing could be tested do not count."""
    made = [
        measure(DEVICES, 0.01 * (TURN == 1)),
        measure(DEVICES, 0.01 * (TURN == 2), part="account updates"),
    ]
    idle = measure([np.zeros(COUNT, np.bool_)] * 2, np.zeros(COUNT), part="own part")
    also = measure(DEVICES, 0.005 * (TURN == 0), part="total", stage=SearchStage.TOTAL)
    measures = [*made, idle, also]
    tests = [each.test() for each in measures]
    found = {place: adjusted for place, index, test, adjusted in adjust_all_tests(measures, tests)}
    assert [each.kind for each in measures] == ["devices", "accounts", "proxies", "devices"]
    of_devices = np.concatenate([tests[0][0].z.ravel(), tests[3][0].z.ravel()])
    together = 2 * adjust_by_holm(np.array([upper_tail(each) for each in of_devices]))
    expected = np.minimum(together, 1.0)
    assert found[0].ravel() == pytest.approx(expected[: tests[0][0].z.size], nan_ok=True)
    assert found[3].ravel() == pytest.approx(expected[tests[0][0].z.size :], nan_ok=True)
    alone = 2 * adjust_by_holm(np.array([upper_tail(each) for each in tests[1][0].z.ravel()]))
    assert found[1].ravel() == pytest.approx(np.minimum(alone, 1.0), nan_ok=True)
    assert np.isnan(found[2]).all()


def known(z: Sequence[float]) -> list[Deviates]:
    return [
        Deviates(np.array([z, [np.nan] * len(z)]), np.zeros((2, len(z)), int), np.zeros((2, len(z)), int))
    ]


@pytest.mark.parametrize(
    ("own", "ends", "best"),
    [
        ([1.0, 3.0, 9.0, 2.0], [0.0, 0.0, 0.0, 0.0], 1),  # the third is not asked about
        ([1.0, 2.6, 0.0, 0.0], [0.0, 0.0, 0.0, 2.7], 3),
        ([0.0, 2.7, 0.0, 2.7], [0.0, 0.0, 0.0, 0.0], 1),  # of equal ones the first
        ([0.0, 2.5, 0.0, 2.4], [0.0, 0.0, 0.0, 0.0], None),
    ],
)
def test_the_largest_other_deviate_decides_where_it_is_large_for_as_many(
    own: list[float], ends: list[float], best: int | None
) -> None:
    """Of three candidates in two measures six deviates are looked at: 2.94 is that of 1 % of six."""
    total = measure(DEVICES, np.zeros(COUNT), stage=SearchStage.TOTAL, part="total")
    measures = [measure(DEVICES, np.zeros(COUNT)), replace(total, part="last", stage=SearchStage.ENDS), total]
    found = Suspect(total, total.levels[0], 1, 0, 0.0, total.difference(total.levels[0], 1, 0), 1, 1)
    scale = 2.94 / 2.65
    tests = [known([scale * each for each in own]), known([scale * each for each in ends]), known([9.0] * 4)]
    assert upper_tail(2.94) * 6 == pytest.approx(ALPHA, rel=0.02)
    assert _find_best(measures, tests, [1, 0, 3], found) == best


def test_who_is_beside_two_that_may_be_slow_is_left_out_or_may_be_one_of_them() -> None:
    first, second = TURN == 0, TURN == 1
    beside = (first | second) & (np.arange(COUNT) % 3 > 0)
    slow = 0.05 * (first | second)
    for rival, expected in ((None, []), (second, [(2, (0, 1))])):
        made = measure([first, second, beside], slow, stage=SearchStage.TOTAL, part="total")

        def suspect(candidate: int, *rivals: int, of: Measure = made) -> Suspect:
            where = of.levels[0], candidate, 0
            return Suspect(of, of.levels[0], candidate, 0, 0.0, of.difference(*where), 1, 1, rivals)

        named = [suspect(2), suspect(0), suspect(1)] if rival is None else [suspect(2), suspect(0, 1)]
        left = _leave_out_explained([made], named)
        assert [(each.candidate, each.rivals) for each in left if each.candidate == 2] == expected
        assert [each.candidate for each in left if each.candidate != 2] == ([0, 1] if rival is None else [0])
    own = replace(made, stage=SearchStage.OWN)
    kept = [suspect(2, of=own), suspect(0, of=own), suspect(1, of=own)]
    assert _leave_out_explained([own], kept) == kept  # what is its own is explained by nobody


def test_taking_part_of_a_suspect_is_held_fixed_with_that_of_all_who_may_be_it() -> None:
    made = measure(DEVICES, np.zeros(COUNT), members=[(TURN < 2, [0, 1])])
    other = measure([np.ones(COUNT, np.bool_)], np.zeros(COUNT))
    difference = made.difference(made.levels[0], 1, 0)
    suspect = Suspect(made, made.levels[0], 1, 0, 0.0, difference, 1, 1, (3,))
    held = made.hold(suspect)
    assert [len(set(held.units.stratum[each == TURN].tolist())) for each in range(4)] == [1] * 4
    strata = [int(held.units.stratum[each == TURN][0]) for each in range(4)]
    assert strata[0] == strata[2]
    assert len(set(strata)) == 3
    assert np.isnan(held.test()[0].z[:, [1, 3]]).all()
    node = replace(suspect, level=made.levels[1], candidate=0, rivals=())
    assert other.hold(node) is other
    assert len(set(made.hold(node).units.stratum.tolist())) == 2
