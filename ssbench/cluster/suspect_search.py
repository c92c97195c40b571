"""Which party made requests slow: a forward stepwise regression, one suspect at a time.

A :class:`Measure` is one measured time: a part that belongs to one party alone (a server's own time of reads,
a proxy's own part, ...), the client's total, or which replica of a write ends last. Each is a regression of
ranks on who took part (:mod:`ssbench.cluster.rank_tests`); probabilities are adjusted by Holm's method
together with those of the same kind of party, and for the number of kinds. The strongest candidate is named,
its taking part is held fixed in all measures, and the rest is tested again, until none stands out. At the end
whoever is explained by the others together is left out.

What is a party's own decides before the client's total: no other server's time is in it. The total finds what
is in no server's own time. But a write takes all its replicas, and a ring may put the same devices together
in every partition: columns of the regression are then the same, and nothing is left of one where the other is
held fixed. Such are *rivals*. Their own times decide among them, or nothing does.

A node or a process is named where each of its devices stands out, and one process of several of a server
where it is slower than the others with the same devices. Where only all devices together stand out, one of
them is slow. By the total reads alone tell of it, which have one device each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from statistics import NormalDist
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ssbench.cluster.rank_tests import (
    Deviates,
    FloatArray,
    Pairs,
    PeerDifference,
    Regression,
    Units,
    adjust_by_holm,
    measure_deviates,
    measure_excess,
    measure_median_interval,
    measure_peer_difference,
    measure_slow_share,
    measure_tail_deviates,
    upper_tail,
)

#: No party is a suspect above this probability, adjusted by Holm's method for all tests.
ALPHA = 0.01
#: Nor with less than this share of the median of a request.
MIN_DELAY_SHARE = 0.05
#: Nor with a delay of few requests that is less than this share of it.
_MIN_RARE_DELAY = 0.5
#: If more of its requests than this share are slow, those are not few.
_MAX_RARE_SHARE = 0.5
#: Where requests wait as a rule, some wait for several others, and the longer the more there are.
_MIN_RARE_DELAY_IN_QUEUES = 2.0
#: Numbers of requests at a server are of one class up to each of these.
_LOAD_BOUNDS = (1, 2, 3, 4, 6, 8, 10, 12, 14, 17, 20, 23, 26, 30, 34)
#: Coarser are those of the largest number of several servers.
_LARGEST_LOAD_BOUNDS = (1, 2, 3, 5, 9, 17, 33)
#: Few slow requests take so many times as much longer as the slowest hundredth of the others.
_MIN_TIMES_OTHERS = 2.0
#: Requests wait as a rule where half of them find so many others; a deviate is then at least the next.
_MIN_QUEUE, _MIN_DEVIATE_IN_QUEUES = 2, 4.0
#: After the first so many times as large: what an earlier one holds back loads others in its turn.
_STRICTER_FOR_LATER = 1.25
#: Of few slices it is this share of the largest that there can be.
_LARGEST_SHARE = 0.65
#: They wait where their times grow with this power of the number of requests there, or a larger one.
_MIN_SLOWING = 0.15
#: Who takes so many times as long as its peers even if each waited for all that were there is slow.
_SLOW_BEYOND_LOAD = 3.0
#: With so many times as many others there nothing tells whether it is slow, or only busy.
_MAX_LOAD_RATIO = 1.5
#: What another one explains has less than this left where that one is held fixed: z of p = 0.01.
MIN_DEVIATE_BESIDE = 2.33
#: Whose deviate is below this, of p = 0.05, explains nothing.
_MAX_DEVIATE_LEFT = 1.64
#: Of more, nobody is named.
MAX_SUSPECTS = 8
#: Of all groups together.
POOLED = -1

#: Kinds of parties. Those of databases are the container and account servers, by what is their own; the
#: client's total of their requests is tested with that of the others.
DEVICES, DATABASES, PROXIES, ACCOUNTS, REPLICAS = "devices", "databases", "proxies", "accounts", "replicas"
#: Devices by some of their requests only: those of large objects, and the very slowest.
SOME_REQUESTS = "some requests"
_KINDS = {
    "updates": DATABASES,
    "lookups": DATABASES,
    "account updates": ACCOUNTS,
    "last": REPLICAS,
    "own part": PROXIES,
    "way": PROXIES,
}


class SearchStage(IntEnum):
    """When a measure decides."""

    OWN = 0
    TOTAL = 1
    ENDS = 2


@dataclass(frozen=True, slots=True, eq=False)
class CandidateLevel:
    """Candidates of one kind."""

    name: str
    who: Pairs
    members: Sequence[Sequence[int]] | None = None  # Places in the first level of those that are part of one


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """One measured time. Candidates have the same places in all measures."""

    part: str  # Which time: see :mod:`ssbench.cluster.own_times`
    units: Units
    operation: npt.NDArray[np.integer[Any]]  # That of each unit, the first of several; empty: of none
    levels: Sequence[CandidateLevel]
    groups: tuple[str, ...]  # names of the groups of strata
    stage: SearchStage
    #: Median of the client's seconds of the requests concerned; a difference is compared with it.
    request: float
    #: How many other requests the servers of each unit had when it began; None: not known.
    load: npt.NDArray[np.integer[Any]] | None = None
    #: What the groups are: ``time`` where they are parts of the run, ``size`` where the last is of the
    #: largest objects; empty: operations.
    divided: str = ""
    #: Times are beside those of the requests that met the same queue: nothing of it is in them.
    is_without_queue: bool = False
    tail: bool = False  # the very slowest units are counted, which finds a delay of few
    #: A server without a log may have taken part in every write: those tell nothing of the others.
    is_blind: bool = False

    @property
    def own(self) -> bool:
        """Whether the time belongs to one party."""
        return self.stage is SearchStage.OWN

    @property
    def is_of_some(self) -> bool:
        """Whether it tells of some requests of a party only."""
        return self.tail or self.divided == "size"

    @property
    def kind(self) -> str:
        """The kind of party that is tested: a key of :attr:`SuspectVerdict.counts`."""
        if self.is_of_some:
            return SOME_REQUESTS
        return _KINDS.get(self.part, PROXIES if self.levels[0].name == "proxy" else DEVICES)

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

    def places(self, level: CandidateLevel, candidate: int, group: int) -> npt.NDArray[np.int64]:
        """Return the places of a candidate's units of a group."""
        at = self.of_group(group)
        return at[self.mask(level, candidate)[at]]

    def difference(self, level: CandidateLevel, candidate: int, group: int) -> PeerDifference:
        """Measure by how much the units of a group take longer with a candidate."""
        at, mask = self.of_group(group), self.mask(level, candidate)
        if self.tail:
            return measure_slow_share(self.units, mask).difference
        units = self.units if group == POOLED else self.units.at(at)  # its order is kept
        return measure_peer_difference(units, mask[at])

    def interval(self, level: CandidateLevel, candidate: int, group: int) -> tuple[float, float]:
        """Return a 95 % interval of the median difference."""
        at, mask = self.of_group(group), self.mask(level, candidate)
        return measure_median_interval(self.units.at(at), mask[at])

    def excess(self, level: CandidateLevel, candidate: int, group: int) -> FloatArray:
        """Return by how much each of a candidate's units of a group takes longer than others of its kind."""
        excess = measure_excess(self.units, self.mask(level, candidate))
        return excess[self.places(level, candidate, group)]

    def test(self) -> list[Deviates]:
        """Test every candidate once: who has the same units as an earlier one is not tested again."""
        found = []
        regression = None if self.tail else Regression(self.units, len(self.groups))
        marks = np.random.default_rng(0).random(len(self.units))
        seen: set[tuple[int, float]] = set()
        for level in self.levels:
            who = level.who
            test = (
                regression.measure(who)
                if regression
                else measure_tail_deviates(
                    self.units, who, len(self.groups), None if self.is_without_queue else self.operation
                )
            )
            counts = np.bincount(who.candidate, minlength=who.count).tolist()
            sums = np.bincount(who.candidate, marks[who.unit], who.count).round(9).tolist()
            units = list(zip(counts, sums, strict=True))
            test.z[:, [place for place, each in enumerate(units) if each in seen]] = np.nan
            seen.update(units)
            # Windows are tested for themselves, and a group that is all there is once.
            alone = (test.with_[:-1] == test.with_[-1]) & (test.without[:-1] == test.without[-1])
            test.z[-1, alone.any(axis=0) | bool(self.divided)] = np.nan
            if self.divided == "size":
                test.z[:-2] = np.nan
            if self.stage is SearchStage.TOTAL and (level.members or self.is_blind):
                test.z[[place for place, name in enumerate(self.groups) if name != "reads"] + [-1]] = np.nan
            found.append(test)
        return found

    def hold(self, suspect: Suspect) -> Measure:
        """Return the same with the taking part of a suspect, and of all who may be it, held fixed."""
        masks = [mask for each in (suspect.candidate, *suspect.rivals) for mask in self._masks(suspect, each)]
        if not len(self.units) or not masks:
            return self
        if self.tail:
            return self._without(np.logical_or.reduce(masks))
        units = self.units
        for mask in masks:
            units = units.split(mask)
        return replace(self, units=units)

    def _masks(self, suspect: Suspect, candidate: int) -> list[npt.NDArray[np.bool_]]:
        """Return which of the units one of a suspect's level took part in, or else its members."""
        level = self.level(suspect.level.name)
        if level is not None:
            return [self.mask(level, candidate)]
        members = (suspect.level.members or [()] * (candidate + 1))[candidate] if self.is_of_some else ()
        return [self.mask(self.levels[0], each) for each in members]

    def _without(self, left_out: npt.NDArray[np.bool_]) -> Measure:
        """Return the same without some units."""
        kept, levels = np.flatnonzero(~left_out), []
        place = np.cumsum(~left_out) - 1
        for level in self.levels:
            mine = ~left_out[level.who.unit]
            who = Pairs(
                place[level.who.unit[mine]].astype(np.int32), level.who.candidate[mine], level.who.count
            )
            levels.append(replace(level, who=who))
        return replace(
            self,
            units=self.units.at(kept),
            operation=self.operation[kept],
            levels=levels,
            load=None if self.load is None else self.load[kept],
        )

    def deviate(self, level: CandidateLevel, group: int, candidate: int, *fixed: int) -> float:
        """Return the deviate of a candidate in a group while the taking part of others is held fixed."""
        masks = [self.mask(level, other) for other in fixed]
        if self.tail:
            rest = self._without(np.logical_or.reduce(masks)) if masks else self
            (test,) = (
                each for one, each in zip(rest.levels, rest.test(), strict=True) if one.name == level.name
            )
            return float(test.z[POOLED, candidate])
        at = self.of_group(group)
        units = self.units.at(at)
        for mask in masks:
            units = units.split(mask[at])
        return self._deviate_of(units, self.mask(level, candidate)[at])

    def find_rivals(self, level: CandidateLevel, z: FloatArray, group: int, candidate: int) -> list[int]:
        """Return who explains what a candidate does: held fixed, they leave nothing of its difference."""
        return [
            other
            for other in np.flatnonzero(np.nan_to_num(z, nan=-np.inf) >= _MAX_DEVIATE_LEFT).tolist()
            if other != candidate and not self.deviate(level, group, candidate, other) >= MIN_DEVIATE_BESIDE
        ]

    def can_break_tie(self, candidate: int) -> bool:
        """Whether a deviate of a candidate can be no other one's doing."""
        return True

    def _deviate_of(self, units: Units, mask: npt.NDArray[np.bool_]) -> float:
        mine = np.flatnonzero(mask)
        who = Pairs(mine, np.zeros(len(mine), np.int32), 1)
        return float(measure_deviates(units, who, len(self.groups)).z[-1, 0])

    def accepts(self, level: CandidateLevel, candidate: int, group: int, measured: PeerDifference) -> bool:
        """Whether one that stands out does so by what matters; of the very slowest, by few of its units."""
        if self.tail:
            slow = measure_slow_share(self.units, self.mask(level, candidate))
            if slow.share > _MAX_RARE_SHARE or not slow.times_others >= _MIN_TIMES_OTHERS:
                return False
        least = _MIN_RARE_DELAY if self.tail else MIN_DELAY_SHARE
        return max(measured.median, measured.mean) >= least * self.request

    def is_slow_for_load(
        self, level: CandidateLevel, candidate: int, group: int, *, is_queued: bool, is_first: bool = True
    ) -> bool:
        """Whether a candidate is slow beside units that found servers with as many other requests.

        Not so is one that only has more requests than its peers, which wait for each other. Where requests
        wait as a rule (``is_queued``), those near each other in time wait for the same, and who is not the
        first suspect has to be more evident.
        """
        # One that is slow has more requests at once for that reason alone.
        hardly_waits = not self.own and self.load is not None and np.median(self.load) < _MIN_QUEUE
        if self.kind not in (DEVICES, SOME_REQUESTS) or hardly_waits or self.is_without_queue:
            return True
        at = self.of_group(group)
        mask, load = self.mask(level, candidate)[at], None if self.load is None else self.load[at]
        # A client's request waits for the slowest of several: that has no load of its own.
        busier = 1.0
        if self.own and load is not None and not mask.all():
            busier = float(load[mask].mean() / max(load[~mask].mean(), 1.0))
        if self.tail:
            least = _MIN_RARE_DELAY_IN_QUEUES * max(busier, 1.0) * self.request
            return not is_queued or self.difference(level, candidate, group).median >= least
        units = replace(self.units.at(at), is_dispersed=is_queued)
        least = MIN_DEVIATE_BESIDE
        if is_queued and units.slices is not None:
            # No deviate of few slices is large.
            largest = max(2 * (len(np.unique(units.slices)) - 1), 1) ** 0.5
            least = min(_MIN_DEVIATE_IN_QUEUES, max(_LARGEST_SHARE * largest, MIN_DEVIATE_BESIDE))
            least *= _STRICTER_FOR_LATER if self.own and not is_first else 1.0
        if load is None:
            return not self._deviate_of(units, mask) < (least if is_queued else -np.inf)
        # A queue of requests like its peers' is never longer than all of them one after the other.
        longest = units.seconds * np.where(mask, 1 / (1 + load), _SLOW_BEYOND_LOAD)
        alone = replace(units, seconds=longest, is_dispersed=False)
        if self._deviate_of(alone, mask) >= _MIN_DEVIATE_IN_QUEUES:
            return True
        if is_queued and busier >= _MAX_LOAD_RATIO:
            return False
        # As if each waited for all that were there before it.
        compared = [replace(units, seconds=units.seconds / (1 + load))]
        if is_queued:
            alike = units
            bounds = _LOAD_BOUNDS if self.own else _LARGEST_LOAD_BOUNDS
            classes = np.searchsorted(bounds, load, side="right")
            for each in np.unique(classes)[1:].tolist():
                alike = alike.split(classes == each)
            compared.append(alike)
        return not any(self._deviate_of(each, mask) < least for each in compared)

    def find_slow_members(self, level: CandidateLevel, candidate: int, group: int) -> tuple[list[int], bool]:
        """Return the members of a group that may be slow, the most evident first, and whether all are.

        Nobody may be, where one is evidently faster than the others: then it is no matter of the group.
        """
        inside, first = self.places(level, candidate, group), self.levels[0]
        units, members = self.units.at(inside), (level.members or ())[candidate]
        deviates: dict[int, float] = {}
        for member in members:
            mask = self.mask(first, member)[inside]
            if mask.any():
                if upper_tail(-self._deviate_of(units, mask)) * len(members) < ALPHA:
                    return [], False
                deviates[member] = self.deviate(first, group, member)
        perhaps = [member for member, z in deviates.items() if not z < 0.0]
        perhaps.sort(key=lambda member: -float(np.nan_to_num(deviates[member])))
        return perhaps, all(z >= MIN_DEVIATE_BESIDE for z in deviates.values())

    def is_slow_beside(self, level: CandidateLevel, candidate: int, group: int) -> bool:
        """Whether a group is slow beside others that use its members, as one process of several of a server.

        All members are held fixed: then it is compared with the same devices' requests of other processes.
        """
        at, members = self.of_group(group), (level.members or ())[candidate]
        units = self.units.at(at)
        for member in members:
            units = units.split(self.mask(self.levels[0], member)[at])
        return self._deviate_of(units, self.mask(level, candidate)[at]) >= MIN_DEVIATE_BESIDE

    def shift(self, candidate: int, seconds: float) -> Self:
        """Return the same with one of the first level slower by so much."""
        mask = self.mask(self.levels[0], candidate)
        return replace(self, units=replace(self.units, seconds=self.units.seconds + seconds * mask))

    def is_found(self, candidate: int, least: float, thinned: int) -> bool:
        """Whether one of the first level has at least a deviate, where units were thinned by so much."""
        z = self._deviate_of(self.units, self.mask(self.levels[0], candidate))
        return bool(z * thinned**0.5 >= least)

    def thin(self, step: int) -> Measure:
        """Return every so manieth unit, of the first level only."""
        if step < 2:
            return self
        kept, level = np.arange(0, len(self.units), step), self.levels[0]
        mine = level.who.unit % step == 0
        who = Pairs(level.who.unit[mine] // step, level.who.candidate[mine], level.who.count)
        return replace(
            self,
            units=self.units.at(kept),
            operation=self.operation[kept],
            levels=[replace(level, who=who)],
            load=None if self.load is None else self.load[kept],
        )


@dataclass(frozen=True, slots=True)
class Suspect:
    """A server, device, node or proxy that makes requests slow."""

    measure: Measure  # the one that shows it best, with the taking part of earlier suspects held fixed
    level: CandidateLevel
    candidate: int
    group: int  # place of the group there; :data:`POOLED`: all together
    probability: float
    difference: PeerDifference
    with_: int
    without: int
    rivals: tuple[int, ...] = ()  # places of others of the level of which any may be the one
    ties: tuple[int, ...] = ()  # those who were ruled out by their own times
    is_busy: bool = False  # it is slow by no more than its load explains


@dataclass(frozen=True, slots=True)
class SuspectVerdict:
    """The suspects, with all tests as they were at first."""

    suspects: list[Suspect]  # the strongest first
    tests: list[list[Deviates]]
    counts: dict[str, int]  # numbers of tests that could tell, by the kind of party


def has_queues(measures: Sequence[Measure]) -> bool:
    """Whether requests wait for each other at servers as a rule: then a slow one is hard to tell.

    Half of them find others there, they take the longer the more these are, and that is a part of a request
    which matters.
    """
    own = next((each for each in measures if each.part == "own" and not each.divided and not each.tail), None)
    if own is None or own.load is None or not len(own.units) or np.median(own.load) < _MIN_QUEUE:
        return False
    if np.median(own.units.seconds) < MIN_DELAY_SHARE * own.request:
        return False
    stratum = own.units.stratum
    sizes = np.maximum(np.bincount(stratum), 1)

    def centre(values: FloatArray) -> FloatArray:
        centred: FloatArray = values - (np.bincount(stratum, values) / sizes)[stratum]
        return centred

    load, seconds = centre(np.log1p(own.load)), centre(np.log(np.maximum(own.units.seconds, 1e-4)))
    return float(load @ seconds) >= _MIN_SLOWING * float(load @ load)


def find_suspects(measures: Sequence[Measure]) -> SuspectVerdict:
    """Name the strongest, hold its taking part fixed, and test again, until none stands out."""
    suspects: list[Suspect] = []
    is_queued = has_queues(measures)
    now = list(measures)
    first = tests = [measure.test() for measure in now]
    while len(suspects) < MAX_SUSPECTS:
        found = _find_strongest(now, tests)
        if found is None:
            break
        if not found.measure.is_slow_for_load(
            found.level, found.candidate, found.group, is_queued=is_queued, is_first=not suspects
        ):
            found = replace(found, is_busy=True)
        suspects.append(found)
        tests = [*tests]
        for place, measure in enumerate(now):  # one by one: of a million units each is large
            if found.is_busy and measure.tail and not found.measure.tail:
                continue  # who is only busier may be slow in few requests besides, and so may others
            now[place] = measure.hold(found)
            if now[place] is not measure:
                tests[place] = now[place].test()
    counts: dict[str, int] = {}
    for measure, each in zip(measures, first, strict=True):
        number = sum(int((~np.isnan(test.z)).sum()) for test in each)
        counts[measure.kind] = counts.get(measure.kind, 0) + number
    return SuspectVerdict(_leave_out_explained(measures, suspects), first, counts)


def _leave_out_explained(measures: Sequence[Measure], suspects: Sequence[Suspect]) -> list[Suspect]:
    """Leave out those named by the client's total of which all the others leave nothing.

    Two slow devices make a healthy one look slow that was often beside either.
    """
    left = list(suspects)
    for each in suspects:
        others = [one for one in left if one is not each and one.level.name == each.level.name]
        if each.measure.stage is not SearchStage.TOTAL or not others:
            continue
        kind = each.measure.part, each.measure.divided, each.measure.tail
        whole, level = next(
            (one, level)
            for one in measures
            if (one.part, one.divided, one.tail) == kind and (level := one.level(each.level.name))
        )
        named = [one.candidate for one in others]
        perhaps = {place for one in others for place in (one.candidate, *one.rivals)}
        if not whole.deviate(level, each.group, each.candidate, *named) >= MIN_DEVIATE_BESIDE:
            left.remove(each)
        elif len(perhaps) > len(named) and not (
            whole.deviate(level, each.group, each.candidate, *perhaps) >= MIN_DEVIATE_BESIDE
        ):
            rivals = tuple(sorted({*each.rivals, *perhaps} - {each.candidate}))
            left[left.index(each)] = replace(each, rivals=rivals)
    return left


def _count_parts(kind: str, kinds: Collection[str]) -> int:
    """Return into how many parts as that of a kind the probability of an error is divided."""
    of_devices = {DEVICES, SOME_REQUESTS}
    tested = of_devices.intersection(kinds)
    parties = len({DEVICES if each in of_devices else each for each in kinds})
    return max(parties, 1) * (len(tested) if kind in tested else 1)


def adjust_all_tests(
    measures: Sequence[Measure], tests: Sequence[list[Deviates]]
) -> Iterator[tuple[int, int, Deviates, FloatArray]]:
    """Yield the places of all tests' measures and levels, the tests, and the probabilities adjusted for all.

    Each kind of party has the same part of it: hundreds of devices say nothing of four proxies. That of
    devices is halved, for all and for some of their requests.
    """
    kinds = {
        measure.kind
        for measure, each in zip(measures, tests, strict=True)
        if any(np.isfinite(test.z).any() for test in each)
    }
    for kind in dict.fromkeys(measure.kind for measure in measures):
        every = [
            (place, index, test)
            for place, each in enumerate(tests)
            if measures[place].kind == kind
            for index, test in enumerate(each)
        ]
        deviations = np.concatenate([test.z.ravel() for _, _, test in every])
        adjusted = adjust_by_holm(np.array([upper_tail(z) for z in deviations]))
        ends = np.cumsum([test.z.size for _, _, test in every])
        adjusted = np.minimum(adjusted * _count_parts(kind, kinds), 1.0)
        for (place, index, test), part in zip(every, np.split(adjusted, ends[:-1]), strict=True):
            yield place, index, test, part.reshape(test.z.shape)


def _find_strongest(measures: Sequence[Measure], tests: Sequence[list[Deviates]]) -> Suspect | None:
    significant = [
        (
            measures[place].stage,
            -float(test.z[row, candidate]),
            place,
            index,
            row,
            candidate,
            adjusted[row],
        )
        for place, index, test, adjusted in adjust_all_tests(measures, tests)
        for row, candidate in np.argwhere(adjusted < ALPHA).tolist()
    ]
    among_members: Suspect | None = None
    for stage, _, place, index, row, candidate, adjusted in sorted(significant, key=lambda each: each[:6]):
        measure, test = measures[place], tests[place][index]
        level, group = measure.levels[index], POOLED if row == len(measure.groups) else row
        measured = measure.difference(level, candidate, group)
        if not measure.accepts(level, candidate, group, measured):
            continue
        counts = int(test.with_[row, candidate]), int(test.without[row, candidate])
        found = Suspect(measure, level, candidate, group, float(adjusted[candidate]), measured, *counts)
        if level.members and not measure.is_slow_beside(level, candidate, group):
            members, are_all = measure.find_slow_members(level, candidate, group)
            if len(members) < 2:
                continue
            if not are_all:
                among_members = among_members or _choose_members(found, members)
                continue
        return found if stage is SearchStage.OWN else _decide_among_rivals(measures, tests, found, adjusted)
    return among_members


def _choose_members(found: Suspect, members: Sequence[int]) -> Suspect:
    """Return the suspect that is one of the members of a group."""
    first, *others = members
    return replace(found, level=found.measure.levels[0], candidate=first, rivals=tuple(others))


def _decide_among_rivals(
    measures: Sequence[Measure], tests: Sequence[list[Deviates]], found: Suspect, adjusted: FloatArray
) -> Suspect:
    """Decide between equally likely suspects; if nothing decides, name them all.

    ``adjusted`` are the probabilities of all of the level.
    """
    measure, level, group = found.measure, found.level, found.group
    z = tests[measures.index(measure)][measure.levels.index(level)].z[group]
    candidate, seen = found.candidate, {found.candidate}
    while True:
        rivals = measure.find_rivals(level, z, group, candidate)
        better = [
            other
            for other in rivals
            if other not in seen and measure.deviate(level, group, other, candidate) >= MIN_DEVIATE_BESIDE
        ]
        if not better:
            break
        candidate = max(better, key=lambda place: float(z[place]))
        seen.add(candidate)
    # Near the limit it is chance which of two explains the other: those before are rivals, too.
    near = [
        other
        for other in sorted(seen - {candidate})
        if measure.deviate(level, group, other, candidate) >= _MAX_DEVIATE_LEFT
    ]
    among = list(dict.fromkeys([candidate, *near, *rivals]))
    among.sort(key=lambda place: -float(z[place]))
    best = _find_best(measures, tests, among, found) if len(among) > 1 else candidate
    chosen = among[0] if best is None else best
    others = tuple(place for place in among if place != chosen)
    decided = replace(
        found,
        candidate=chosen,
        difference=measure.difference(level, chosen, group),
        probability=float(adjusted[chosen]),
    )
    return replace(decided, rivals=others) if best is None else replace(decided, ties=others)


def _find_best(
    measures: Sequence[Measure], tests: Sequence[list[Deviates]], among: Sequence[int], found: Suspect
) -> int | None:
    """Return which of some candidates stands out by its own times besides; None for none."""
    deviates = dict.fromkeys(among, -np.inf)
    looked_at = 0
    for measure, each in zip(measures, tests, strict=True):
        for one, test in zip(measure.levels, each, strict=True):
            further = measure.stage is not SearchStage.TOTAL and measure is not found.measure
            further &= measure.tail or not found.measure.tail  # of few requests a whole says nothing
            if further and one.name == found.level.name:
                z = test.z[:, list(among)]
                looked_at += int((~np.isnan(z)).sum())
                largest = np.nan_to_num(z, nan=-np.inf).max(axis=0)
                for place, deviate in zip(among, largest.tolist(), strict=True):
                    if deviate > deviates[place] and measure.can_break_tie(place):
                        deviates[place] = deviate
    best = max(among, key=deviates.__getitem__)
    # The largest of so many deviates is large by chance.
    return best if upper_tail(deviates[best]) * max(looked_at, len(among)) < ALPHA else None


# -- What an all-clear is worth --------------------------------------------------------------------


#: The delay is found in 9 of 10 runs: the deviate exceeds the least one by this, of p = 0.1.
POWER_DEVIATE = 1.28
#: A run of more units is thinned to about so many, whose deviates are smaller by the square root.
_MAX_UNITS = 50_000
#: Delays that are tried: from a thousandth of a request to a hundred times it, by steps of a fifth.
DELAY_STEPS = np.geomspace(1e-3, 100, 64)


def find_detectable_delay(measures: Sequence[Measure], part: str, counts: Mapping[str, int]) -> float | None:
    """Return the least delay of a part, in seconds, that would have been found of anybody who has it.

    It is what an all-clear is worth. It is for the one with fewest of them, of those that can be tested;
    ``counts`` are the tests by kind of party. None where no delay would have been, or nothing could be
    tested.
    """
    plain = (each for each in measures if not each.divided and not each.tail)
    measure = next((each for each in plain if each.part == part), None)
    comparisons = counts[measure.kind] if measure else 0
    if measure is None or not comparisons:
        return None
    who = measure.levels[0].who
    taken = np.bincount(who.candidate, minlength=who.count)
    candidates = np.flatnonzero((taken > 0) & (taken < len(measure.units)))
    if not len(candidates):
        return None
    candidate = int(candidates[np.argmin(taken[candidates])])
    step = max(1, len(measure.units) // _MAX_UNITS)
    thinned = measure.thin(step)
    parts = _count_parts(measure.kind, [kind for kind, number in counts.items() if number])
    least = NormalDist().inv_cdf(1 - ALPHA / (comparisons * parts)) + POWER_DEVIATE

    def is_found(share: float) -> bool:
        return thinned.shift(candidate, share * measure.request).is_found(candidate, least, step)

    # One that is as long as the least share measures less than it in half of the runs.
    steps = DELAY_STEPS[DELAY_STEPS >= 1.5 * MIN_DELAY_SHARE].tolist()
    if not is_found(steps[-1]):
        return None
    return float(steps[bisect_left(steps, True, key=is_found)]) * measure.request
