"""Which party made requests slow: the decision over all tests, one suspect at a time.

A :class:`Family` has the tests of one measured time: a part that belongs to one party alone (a server's own
time of reads, a proxy's own part, ...), or the client's total. All are rank tests
(:mod:`ssbench.cluster.rank_tests`), adjusted by Holm's method together with those of the same kind of party.

A part of its own decides before the client's total: no other server's time is in it. The total finds what is
in no server's own time. But a write takes all its replicas, and a ring may put the same devices together in
every partition. The total then fits each of them, and their own times decide among them, or nothing does.

:func:`find_detectable_delay` says how slow a device would have had to be to be found: what an all-clear is
worth.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from ssbench.cluster.rank_tests import (
    Deviates,
    FloatArray,
    Pairs,
    PeerDifference,
    Units,
    adjust_by_holm,
    centre_scores,
    divide_in_slices,
    measure_deviates,
    measure_peer_difference,
    measure_tail_deviates,
    score_slowest,
    score_wilcoxon,
    upper_tail,
)

#: No party is a suspect above this probability, adjusted by Holm's method for all tests of its kind.
ALPHA = 0.01
#: Nor with less than this share of the median of a request.
MIN_DELAY_SHARE = 0.05
#: A group is named in place of its worst member only if it stands out without that one: z of p = 0.01.
#: One of two explains what the other does not if it stands out while the other's taking part is held fixed.
_MIN_DEVIATE_BESIDE = 2.33
#: Whose deviate is below this, of p = 0.05, explains nothing.
_MAX_DEVIATE_LEFT = 1.64
#: Of its deviate a suspect has so much left among the requests of the same seconds.
_MIN_SHARE_IN_SLICES = 0.5
_MAX_SUSPECTS = 50
#: Of all groups together.
POOLED = -1

#: Kinds of parties. Those of databases are the container and account servers, by what is their own; the
#: client's total of their requests is tested with that of the others.
DEVICES, DATABASES, PROXIES = "devices", "databases", "proxies"


@dataclass(frozen=True, slots=True, eq=False)
class CandidateLevel:
    """Candidates of one kind."""

    name: str
    who: Pairs
    members: Sequence[Sequence[int]] | None = None  # Places in the first level of those that are part of one


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Tests of one time. Candidates have the same places in all families."""

    part: str  # Which time: see :mod:`ssbench.cluster.own_times`
    units: Units
    operation: npt.NDArray[np.integer[Any]]  # That of each unit, the first of several
    levels: Sequence[CandidateLevel]
    groups: tuple[str, ...]  # names of the groups of strata
    own: bool  # the time belongs to one party
    #: Median of the client's seconds of the requests concerned; a difference is compared with it.
    request: float
    windows: bool = False  # the groups are parts of the run
    tail: bool = False  # the slowest units are counted, which finds a delay of some

    @property
    def kind(self) -> str:
        """The kind of party that is tested: a key of :attr:`SuspectVerdict.counts`."""
        if self.part in ("updates", "lookups"):
            return DATABASES
        return PROXIES if self.levels[0].name == "proxy" else DEVICES

    def level(self, name: str) -> CandidateLevel | None:
        """Return the level of this name; None where it has none."""
        return next((level for level in self.levels if level.name == name), None)

    def mask(self, level: CandidateLevel, candidate: int) -> npt.NDArray[np.bool_]:
        """Return which of the units a candidate took part in."""
        return level.who.of(candidate, len(self.units))

    def of_group(self, group: int) -> npt.NDArray[np.int64]:
        """Return the places of the units of a group."""
        if group == POOLED:
            return np.arange(len(self.units))
        return np.flatnonzero(self.units.group[self.units.stratum] == group)

    def part_of(self, at: npt.NDArray[np.int64]) -> Units:
        """Return the units at some places."""
        return Units(self.units.seconds[at], self.units.stratum[at], self.units.group)

    def difference(self, level: CandidateLevel, candidate: int, group: int) -> PeerDifference:
        """Measure by how much the units of a group take longer with a candidate."""
        mask = self.mask(level, candidate)
        if group == POOLED:  # its order is kept
            return measure_peer_difference(self.units, mask)
        at = self.of_group(group)
        return measure_peer_difference(self.part_of(at), mask[at])


@dataclass(frozen=True, slots=True)
class Suspect:
    """A server, device, node or proxy that makes requests slow."""

    family: Family  # the one that shows it best, with the taking part of earlier suspects held fixed
    level: CandidateLevel
    candidate: int
    group: int  # place of the group there; :data:`POOLED`: all together
    z: float
    probability: float
    difference: PeerDifference
    with_: int
    without: int
    rivals: tuple[int, ...] = ()  # places of others of the level of which any may be the one
    ties: tuple[int, ...] = ()  # those who were ruled out by their own times


@dataclass(frozen=True, slots=True)
class SuspectVerdict:
    """The suspects, with all tests as they were at first."""

    suspects: list[Suspect]  # the strongest first
    tests: list[list[Deviates]]
    counts: dict[str, int]  # numbers of tests that could tell, by the kind of party


#: Returns the deviate of the replica of a write that ends last, for each device.
LastReplicaDeviates = Callable[[Sequence[int]], dict[int, float]]


def find_suspects(families: Sequence[Family], tie: LastReplicaDeviates) -> SuspectVerdict:
    """Name the strongest, hold its taking part fixed, and test again, until none stands out.

    Holding it fixed compares requests with the suspect only with each other, and so those without.
    ``tie`` gives further evidence where a write's total fits several devices.
    """
    suspects: list[Suspect] = []
    now = list(families)
    first = tests = [_rank_candidates(family) for family in now]
    while len(suspects) < _MAX_SUSPECTS:
        found = _find_strongest(now, tests, tie)
        if found is None:
            break
        suspects.append(found)
        for place, family in enumerate(now):
            level = family.level(found.level.name)
            if level is not None and len(family.units):
                held = replace(family, units=family.units.split(family.mask(level, found.candidate)))
                now[place], tests = held, [*tests[:place], _rank_candidates(held), *tests[place + 1 :]]
    counts = dict.fromkeys((DEVICES, DATABASES, PROXIES), 0)
    for family, each in zip(families, first, strict=True):
        counts[family.kind] += sum(int((~np.isnan(test.z)).sum()) for test in each)
    return SuspectVerdict(suspects, first, counts)


def _rank_candidates(family: Family) -> list[Deviates]:
    """Test every candidate once: who has the same units as one of an earlier level is not tested again."""
    found = []
    marks = np.random.default_rng(0).random(len(family.units))
    seen: set[tuple[int, float]] = set()
    for level in family.levels:
        test = (measure_tail_deviates if family.tail else measure_deviates)(
            family.units, level.who, len(family.groups)
        )
        who = level.who
        counts = np.bincount(who.candidate, minlength=who.count).tolist()
        sums = np.bincount(who.candidate, marks[who.unit], who.count).round(9).tolist()
        own = list(zip(counts, sums, strict=True))
        test.z[:, [place for place, each in enumerate(own) if each in seen]] = np.nan
        seen.update(own)
        # Windows are tested for themselves, and a group that is all there is once.
        alone = (test.with_[:-1] == test.with_[-1]) & (test.without[:-1] == test.without[-1])
        test.z[-1, alone.any(axis=0) | family.windows] = np.nan
        found.append(test)
    return found


def _find_strongest(
    families: Sequence[Family], tests: Sequence[list[Deviates]], tie: LastReplicaDeviates
) -> Suspect | None:
    for own in (True, False):
        for z, family, level, group, candidate, probability in sorted(
            _significant_tests(families, tests, own=own), reverse=True
        ):
            found = _make_suspect(families, tests, (family, -level, group, candidate), (z, probability))
            if found is None or not _stands_in_slices(found):
                continue
            if own:
                return found
            if _may_be_others(families, tests, found):
                continue
            return _decide_by_own_times(families, tests, found, tie) or _decide_among_rivals(
                families, tests, found, tie
            )
    return None


def _significant_tests(
    families: Sequence[Family], tests: Sequence[list[Deviates]], *, own: bool
) -> Iterator[tuple[float, int, int, int, int, float]]:
    for place, index, test, adjusted in adjust_all_tests(families, tests):
        if families[place].own is own:
            for group, candidate in zip(*np.nonzero(adjusted < ALPHA), strict=True):
                yield (
                    float(test.z[group, candidate]),
                    place,
                    -index,
                    int(group),
                    int(candidate),
                    float(adjusted[group, candidate]),
                )


def adjust_all_tests(
    families: Sequence[Family], tests: Sequence[list[Deviates]]
) -> Iterator[tuple[int, int, Deviates, FloatArray]]:
    """Yield the places of all tests' families and levels, the tests, and the probabilities adjusted for all.

    That is for all tests of one kind of party: hundreds of devices say nothing of four proxies.
    """
    for kind in dict.fromkeys(family.kind for family in families):
        every = [
            (place, index, test)
            for place, each in enumerate(tests)
            if families[place].kind == kind
            for index, test in enumerate(each)
        ]
        deviations = np.concatenate([test.z.ravel() for _, _, test in every])
        adjusted = adjust_by_holm(np.array([upper_tail(z) for z in deviations]))
        ends = np.cumsum([test.z.size for _, _, test in every])
        for (place, index, test), part in zip(every, np.split(adjusted, ends[:-1]), strict=True):
            yield place, index, test, part.reshape(test.z.shape)


def _make_suspect(
    families: Sequence[Family],
    tests: Sequence[list[Deviates]],
    where: tuple[int, int, int, int],
    strength: tuple[float, float],
) -> Suspect | None:
    """Return who stands out, unless by too little, or as a group that one of its members explains."""
    place, index, row, candidate = where
    family, test = families[place], tests[place][index]
    level, group = family.levels[index], POOLED if row == len(family.groups) else row
    measured = family.difference(level, candidate, group)
    if not max(measured.median, measured.mean) / family.request >= MIN_DELAY_SHARE:
        return None
    if level.members and not (
        _beside_member(family, tests[place][0], level, candidate)
        and _is_uniform(family, level, candidate, group)
    ):
        return None
    z, probability = strength
    with_, without = int(test.with_[row, candidate]), int(test.without[row, candidate])
    return Suspect(family, level, candidate, group, z, probability, measured, with_, without)


def _stands_in_slices(found: Suspect) -> bool:
    """Whether it stands out among the requests of the same seconds as well.

    A healthy device that takes part in a part of the run only looks slow if all is slower then.
    """
    family, level = found.family, found.level
    at = family.of_group(found.group)
    units = family.part_of(at)
    # Scores of all kinds are alike, so that those of one slice can be compared with each other.
    scores, _, _ = centre_scores(units, score_slowest if family.tail else score_wilcoxon)
    groups = len(family.groups)
    slice_of = divide_in_slices(family.operation[at]).astype(np.int64)
    stratum = slice_of * groups + units.group[units.stratum]
    within = Units(scores, stratum, np.arange(int(stratum.max()) + 1) % groups)
    mine = np.flatnonzero(family.mask(level, found.candidate)[at])
    test = measure_deviates(within, Pairs(mine, np.zeros(len(mine), np.int32), 1), groups)
    return float(test.z[-1, 0]) >= max(_MIN_DEVIATE_BESIDE, _MIN_SHARE_IN_SLICES * found.z)


def _beside_member(family: Family, test: Deviates, level: CandidateLevel, candidate: int) -> bool:
    """Whether a group stands out even where the taking part of its worst member is held fixed."""
    members = (level.members or ())[candidate]
    if len(members) < 2:
        return False
    worst = max(members, key=lambda member: float(np.nan_to_num(test.z[:, member], nan=-np.inf).max()))
    units = family.units.split(family.mask(family.levels[0], worst))
    return (
        _largest_deviate(
            measure_deviates(units, _select_pairs(level.who, candidate), len(family.groups)).z[:, 0]
        )
        >= _MIN_DEVIATE_BESIDE
    )


def _is_uniform(family: Family, level: CandidateLevel, candidate: int, group: int) -> bool:
    """Whether no member is evidently faster than the others of its group: it would be suspected with them."""
    members = np.array(sorted((level.members or ())[candidate]))
    at = np.intersect1d(family.of_group(group), np.flatnonzero(family.mask(level, candidate)))
    who, place = family.levels[0].who, np.full(len(family.units), -1)
    place[at] = np.arange(len(at))
    mine = np.flatnonzero((place[who.unit] >= 0) & np.isin(who.candidate, members))
    pairs = Pairs(place[who.unit[mine]], np.searchsorted(members, who.candidate[mine]), len(members))
    z = measure_deviates(family.part_of(at), pairs, len(family.groups)).z[-1]
    return not upper_tail(-float(np.nan_to_num(z).min())) * len(members) < ALPHA


def _select_pairs(who: Pairs, candidate: int) -> Pairs:
    mine = who.unit[who.candidate == candidate]
    return Pairs(mine, np.zeros(len(mine), np.int32), 1)


def _largest_deviate(deviations: FloatArray) -> float:
    return float(np.nan_to_num(deviations, nan=-np.inf).max())


def _decide_by_own_times(
    families: Sequence[Family], tests: Sequence[list[Deviates]], found: Suspect, tie: LastReplicaDeviates
) -> Suspect | None:
    """Return the device that its own times single out where the client's total names a process or node.

    Devices of several sets that a ring keeps together may meet in one healthy node.
    """
    family = found.family
    if family.level("device") is None or found.level.name == "device":
        return None
    test = tests[families.index(family)][0]
    row = len(family.groups) if found.group == POOLED else found.group
    among = np.flatnonzero(np.nan_to_num(test.z[row], nan=-np.inf) >= _MIN_DEVIATE_BESIDE).tolist()
    best = _find_best(families, tests, among, tie, "device")
    if best is None:
        return None
    measured = family.difference(family.levels[0], best, found.group)
    return replace(found, level=family.levels[0], candidate=best, difference=measured)


def _find_best(
    families: Sequence[Family],
    tests: Sequence[list[Deviates]],
    among: Sequence[int],
    tie: LastReplicaDeviates,
    level: str,
) -> int | None:
    """Return which of some candidates stands out by its own times; None for none."""
    own, looked_at = _own_deviates(families, tests, level, among)
    further = tie(among) if level == "device" else {}
    for place, z in further.items():
        own[place] = max(own.get(place, -np.inf), z)
    best = max(among, key=lambda place: own.get(place, -np.inf), default=None)
    # The largest of so many deviates is large by chance.
    looked_at = max(looked_at + len(further), len(among))
    if best is None or not upper_tail(own.get(best, -np.inf)) * looked_at < ALPHA:
        return None
    return best


def _decide_among_rivals(
    families: Sequence[Family], tests: Sequence[list[Deviates]], found: Suspect, tie: LastReplicaDeviates
) -> Suspect:
    """Decide between those whom the client's total fits as well; where nothing decides, say who they are."""
    family = found.family
    level = found.level
    test = tests[families.index(family)][family.levels.index(level)]
    row = len(family.groups) if found.group == POOLED else found.group
    rivals = _find_rivals(family, level, test, found.group, found.candidate)
    better = [
        other
        for other in rivals
        if _deviate_without(family, level, found.group, other, found.candidate) >= _MIN_DEVIATE_BESIDE
    ]
    if better:
        other = max(better, key=lambda place: float(test.z[row, place]))
        return replace(found, candidate=other, difference=family.difference(level, other, found.group))
    if not rivals:
        return found
    among = [found.candidate, *rivals]
    best = _find_best(families, tests, among, tie, level.name)
    if best is not None:
        others = tuple(place for place in among if place != best)
        measured = family.difference(level, best, found.group)
        return replace(found, candidate=best, difference=measured, ties=others)
    return replace(found, rivals=tuple(rivals))


def _find_rivals(
    family: Family, level: CandidateLevel, test: Deviates, group: int, candidate: int
) -> list[int]:
    """Return who explains what a candidate does: held fixed, they leave nothing of its difference."""
    row = len(family.groups) if group == POOLED else group
    return [
        other
        for other in np.flatnonzero(np.nan_to_num(test.z[row], nan=-np.inf) >= _MAX_DEVIATE_LEFT).tolist()
        if other != candidate
        and not _deviate_without(family, level, group, candidate, other) >= _MIN_DEVIATE_BESIDE
    ]


def _may_be_others(families: Sequence[Family], tests: Sequence[list[Deviates]], found: Suspect) -> bool:
    """Whether each device by which a process or node stands out might as well be one elsewhere.

    Slow devices of two sets that a ring keeps together make a healthy node look slow that has one of each.
    """
    if not found.level.members:
        return False
    family = found.family
    test = tests[families.index(family)][0]
    row = len(family.groups) if found.group == POOLED else found.group
    members = found.level.members[found.candidate]
    telling = [
        place for place in members if np.nan_to_num(test.z[row, place], nan=-np.inf) >= _MAX_DEVIATE_LEFT
    ]
    return bool(telling) and all(
        not set(members).issuperset(_find_rivals(family, family.levels[0], test, found.group, place))
        for place in telling
    )


def _deviate_without(family: Family, level: CandidateLevel, group: int, candidate: int, other: int) -> float:
    """Return the deviate of a candidate while the taking part of another one is held fixed."""
    at = family.of_group(group)
    units = family.part_of(at).split(family.mask(level, other)[at])
    mine = np.flatnonzero(family.mask(level, candidate)[at])
    test = measure_deviates(units, Pairs(mine, np.zeros(len(mine), np.int32), 1), len(family.groups))
    return float(test.z[-1, 0])


def _own_deviates(
    families: Sequence[Family], tests: Sequence[list[Deviates]], level: str, among: Sequence[int]
) -> tuple[dict[int, float], int]:
    """Return the largest deviate of each candidate by the times that are its own, and how many there are."""
    found: dict[int, float] = {}
    count = 0
    for family, each in zip(families, tests, strict=True):
        for one, test in zip(family.levels, each, strict=True):
            if family.own and one.name == level:
                count += int((~np.isnan(test.z[:, list(among)])).sum())
                for place in among:
                    found[place] = max(found.get(place, -np.inf), _largest_deviate(test.z[:, place]))
    return found, count


# -- What an all-clear is worth --------------------------------------------------------------------


#: The delay is found in 9 of 10 runs: the deviate exceeds the least one by this, of p = 0.1.
POWER_DEVIATE = 1.28
#: A run of more units is thinned to about so many, whose deviates are smaller by the square root.
_MAX_UNITS = 50_000
#: Delays that are tried: from a thousandth of a request to a hundred times it, by steps of a fifth.
DELAY_STEPS = np.geomspace(1e-3, 100, 64)


def find_detectable_delay(families: Sequence[Family], part: str, counts: Mapping[str, int]) -> float | None:
    """Return the least delay of a part, in seconds, that would have been found of anybody who has it.

    That is for the one with fewest of them, of those that can be tested; ``counts`` are the tests by kind of
    party. None where no delay would have been, or nothing could be tested.
    """
    plain = (each for each in families if not each.windows and not each.tail)
    family = next((each for each in plain if each.part == part), None)
    comparisons = counts[family.kind] if family else 0
    if family is None or not comparisons:
        return None
    level = family.levels[0]
    taken = np.bincount(level.who.candidate, minlength=level.who.count)
    candidates = np.flatnonzero((taken > 0) & (taken < len(family.units)))
    if not len(candidates):
        return None
    mask = family.mask(level, int(candidates[np.argmin(taken[candidates])]))
    units, thinned = family.units, max(1, len(mask) // _MAX_UNITS)
    if thinned > 1:
        kept = np.arange(0, len(mask), thinned)
        parts = None if units.slices is None else units.slices[kept]
        units, mask = Units(units.seconds[kept], units.stratum[kept], units.group, parts), mask[kept]
    who = Pairs(np.flatnonzero(mask), np.zeros(int(mask.sum()), np.int64), 1)
    least = NormalDist().inv_cdf(1 - ALPHA / comparisons) + POWER_DEVIATE

    def is_found(share: float) -> bool:
        slower = replace(units, seconds=units.seconds + share * family.request * mask)
        return bool(measure_deviates(slower, who, len(family.groups)).z[-1, 0] * thinned**0.5 >= least)

    # One that is as long as the least share measures less than it in half of the runs.
    steps = DELAY_STEPS[DELAY_STEPS >= 1.5 * MIN_DELAY_SHARE].tolist()
    if not is_found(steps[-1]):
        return None
    return float(steps[bisect_left(steps, True, key=is_found)]) * family.request
