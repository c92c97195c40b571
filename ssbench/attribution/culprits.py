"""Who made requests slow: the decision, from who took part in each request.

The time of the client decides, over all requests, by the test of :mod:`ssbench.attribution.ranks`; not
who was slowest in the slowest requests. A proxy waits for all replicas of a write, so their servers' own
times are coupled, and the slowest of them is often a healthy one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ssbench.attribution.ranks import (
    Deviates,
    Difference,
    Floats,
    Pairs,
    Score,
    Units,
    deviates,
    difference,
    holm,
    upper_tail,
    wilcoxon,
)

#: No unit is named as slow above this probability, adjusted by Holm's method for all tests.
ALPHA = 0.01
#: Nor of less than this share of a median.
LEAST_SHARE = 0.10
#: A group is named in place of its worst member only if it stands out without that one: z of p = 0.01.
_BESIDE_MEMBER = 2.33
_MOST = 50

#: Of all groups together.
POOLED = -1


@dataclass(frozen=True, slots=True)
class Level:
    """Candidates of one kind. ``members`` are places in the first level of those that are part of one."""

    name: str
    who: Pairs
    members: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class Accused:
    """A server, device or node that makes requests slow.

    ``group`` is the group of kinds that shows it best, :data:`POOLED` for all together; the
    difference is over those. ``same`` are the places of others who took part in exactly the same.
    """

    level: int
    candidate: int
    group: int
    z: float
    probability: float
    difference: Difference
    with_: int
    without: int
    same: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The accused, the worst first; and for each level which candidates could not be tested at all."""

    accused: list[Accused]
    untold: list[list[int]]


def judge(
    units: Units,
    levels: Sequence[Level],
    groups: int,
    *,
    score: Score = wilcoxon,
) -> Verdict:
    """Name the strongest, hold its taking part fixed, and test again, until none stands out.

    Holding it fixed compares requests with the accused only with each other, and so those without.
    """
    accused: list[Accused] = []
    untold: list[list[int]] = []
    while len(accused) < _MOST:
        tests = [deviates(units, level.who, groups, score) for level in levels]
        if not accused:
            untold = [_untold(test) for test in tests]
        found = _strongest(units, levels, tests, groups, score)
        if found is None:
            break
        accused.append(found)
        units = units.split(levels[found.level].who.of(found.candidate, len(units)))
    return Verdict(accused, untold)


def _untold(test: Deviates) -> list[int]:
    return [int(place) for place in np.flatnonzero(np.isnan(test.z).all(axis=0))]


def _strongest(
    units: Units, levels: Sequence[Level], tests: Sequence[Deviates], groups: int, score: Score
) -> Accused | None:
    candidates: list[tuple[float, int, int, int, float]] = []
    for index, (test, adjusted) in enumerate(zip(tests, _adjusted(tests), strict=True)):
        for group, candidate in zip(*np.nonzero(adjusted < ALPHA), strict=True):
            candidates.append(
                (
                    float(test.z[group, candidate]),
                    -index,
                    int(group),
                    int(candidate),
                    float(adjusted[group, candidate]),
                )
            )
    for z, negative, group, candidate, probability in sorted(candidates, reverse=True):
        index = -negative
        level = levels[index]
        part = _of_group(units, group, groups)
        mask = level.who.of(candidate, len(units))
        measured = difference(part.units, mask[part.at])
        if not measured.share >= LEAST_SHARE:
            continue
        if level.members and not _beside_member(units, levels[0], tests[0], level, candidate, groups, score):
            continue
        test = tests[index]
        return Accused(
            index,
            candidate,
            POOLED if group == groups else group,
            z,
            probability,
            measured,
            int(test.with_[group, candidate]),
            int(test.without[group, candidate]),
            _same(level.who, candidate),
        )
    return None


def _adjusted(tests: Sequence[Deviates]) -> list[Floats]:
    """Return the probabilities of all tests, adjusted for how many they are together."""
    deviations = np.concatenate([test.z.ravel() for test in tests])
    adjusted = holm(np.array([upper_tail(z) for z in deviations]))
    ends = np.cumsum([test.z.size for test in tests])
    return [
        part.reshape(test.z.shape) for part, test in zip(np.split(adjusted, ends[:-1]), tests, strict=True)
    ]


def _beside_member(
    units: Units, below: Level, test: Deviates, level: Level, candidate: int, groups: int, score: Score
) -> bool:
    """Whether a group stands out even where the taking part of its worst member is held fixed."""
    members = (level.members or ())[candidate]
    if len(members) < 2:
        return False
    worst = max(members, key=lambda member: float(np.nan_to_num(test.z[:, member], nan=-np.inf).max()))
    rest = deviates(units.split(below.who.of(worst, len(units))), level.who, groups, score)
    return bool(np.nan_to_num(rest.z[:, candidate]).max() >= _BESIDE_MEMBER)


@dataclass(frozen=True, slots=True)
class _Part:
    units: Units
    at: npt.NDArray[np.int64]


def _of_group(units: Units, group: int, groups: int) -> _Part:
    if group == groups:
        return _Part(units, np.arange(len(units)))
    at = np.flatnonzero(units.group[units.stratum] == group)
    return _Part(Units(units.seconds[at], units.stratum[at], units.group), at)


def _same(who: Pairs, candidate: int) -> tuple[int, ...]:
    """Return who else took part in exactly the same units."""
    own = who.unit[who.candidate == candidate]
    inside = np.zeros(int(who.unit.max(initial=0)) + 1, np.bool_)
    inside[own] = True
    totals = np.bincount(who.candidate, minlength=who.count)
    shared = np.bincount(who.candidate, inside[who.unit], who.count)
    alike = (totals == len(own)) & (shared == len(own))
    return tuple(int(place) for place in np.flatnonzero(alike) if place != candidate)
