"""The times that are compared: what belongs to one party alone, and the client's total.

``own``, ``updates``, ``lookups``: a server's own time, by its log. ``own`` is that of object servers in reads
and in deletes (and whatever else sends no data). For deletes the time of the container server that was
updated is subtracted; those of writes are coupled, because the proxy waits for all, and are no evidence of
one server (but see :class:`ReplicaEnds`). ``updates`` are those of container servers, sent by object servers;
``lookups`` those of account and container servers that a proxy asked. ``account updates`` are what container
servers tell account servers of the run's containers, which are requests besides its results. ``own part`` is
a proxy's time less the slowest server's, ``way`` the client's less the proxy's. ``total`` is the client's,
for devices and for proxies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from ssbench.cluster import operation_times, suspect_search
from ssbench.cluster.joined_run import NO_INDEX, OBJECT, OTHER, UPDATE, JoinedRun
from ssbench.cluster.operation_times import GROUPS, LATE_REPLICA_SECONDS, READS, ComparedUnits, OperationParts
from ssbench.cluster.rank_tests import (
    MIN_TEST_REQUESTS,
    Deviates,
    FloatArray,
    IntegerArray,
    Pairs,
    PeerDifference,
    Units,
    divide_in_slices,
    interval_of_median,
    make_pairs,
    make_single_pairs,
    measure_excess,
    sort_distinct,
)
from ssbench.cluster.suspect_search import (
    MIN_DELAY_SHARE,
    POWER_DEVIATE,
    CandidateLevel,
    Measure,
    SearchStage,
    Suspect,
)
from ssbench.scenario.operations import MAX_OPERATION_CODE, OPERATIONS

#: Whether an operation writes without sending data, by code.
_SENDS_NO_DATA = np.isin(
    np.arange(MAX_OPERATION_CODE + 1), [each.code for each in OPERATIONS if each.method in ("DELETE", "POST")]
)
_NO_NUMBERS = np.zeros(0, np.int64)

#: The groups of ``own``.
OWN_GROUPS = ("reads", "deletes")
#: The run is looked at in so many windows.
_WINDOW_COUNT = 4
#: A request is compared with so many that came to the same device before it, and after.
_NEIGHBOURS = 3
#: Large objects are this share of the requests, or up to the next where many have the same size.
_LARGE_SHARE, _MAX_LARGE_SHARE = 0.25, 0.5


@dataclass(frozen=True, slots=True)
class UsableOperations:
    """Which operations may be used: ``first_try`` for what is one party's, ``compared`` for totals.

    Both are successes that needed one attempt; the latter have all their lines, and no more.
    """

    first_try: npt.NDArray[np.bool_]
    compared: npt.NDArray[np.bool_]


def make_measures(
    joined: JoinedRun,
    parts: OperationParts,
    usable: UsableOperations,
    by_device: ComparedUnits,
    by_proxy: ComparedUnits,
    seconds: FloatArray,
    is_blind: bool,
) -> list[Measure]:
    """Return all that can be tested; the totals are the last two: by device, and by proxy.

    ``seconds`` are those of lines (:func:`subtract_update_times`); ``is_blind`` is where a server without a
    log may have taken part in every write.
    """
    lines, code = joined.lines, joined.operations.code
    fine = (lines.status < 300) & usable.first_try[lines.operation]
    load = operation_times.count_load(joined)
    found = [
        _measure_lines("own", joined, np.flatnonzero(is_own_time(joined, usable)), seconds, load),
        _measure_lines("updates", joined, np.flatnonzero(fine & (lines.of == UPDATE)), seconds, load),
        _measure_lines("lookups", joined, np.flatnonzero(fine & (lines.of == OTHER)), seconds, load),
        _measure_proxies("own part", joined, parts.proxy, usable.compared),
        _measure_proxies("way", joined, parts.client, usable.first_try),
        _measure_account_updates(joined, _median_seconds(joined.operations.latency[usable.compared])),
        measure_replica_ends(joined, usable.compared, seconds),
    ]
    every = np.arange(len(code))
    proxies = [
        CandidateLevel("proxy", by_proxy.pairs(every, joined.proxy, len(joined.proxies))),
        CandidateLevel(
            "proxy process", by_proxy.pairs(every, joined.proxy_worker, len(joined.proxy_workers))
        ),
    ]
    compared = _median_seconds(joined.operations.latency[usable.compared])
    served = _median_seconds(joined.operations.latency[usable.first_try])
    found += [
        replace(
            _measure_total(by_device, operation_times.make_candidate_levels(joined, by_device), compared),
            is_blind=is_blind,
            load=_find_largest(load, lines.operation, len(code))[by_device.first],
        ),
        _measure_total(by_proxy, proxies, served),
    ]
    is_queued = suspect_search.has_queues(found)
    # Queues come and go: a quarter of the run says who has them.
    windows = [] if is_queued else [_split_in_windows(joined, found[0])]
    of_devices = [
        replace(each, levels=[level for level in each.levels if level.members is None])
        for each in (found[0], found[-2])
    ]
    if is_queued:
        of_devices[0] = _subtract_queues(joined, of_devices[0])
    by_size = [made for each in of_devices if (made := _split_by_size(joined, each))]
    tails = [replace(each, tail=True) for each in of_devices]
    return [each for each in (*windows, *by_size, *tails, *found[:-2]) if len(each.units)] + found[-2:]


def is_own_time(joined: JoinedRun, usable: UsableOperations) -> npt.NDArray[np.bool_]:
    """Return which lines are of an object server's reads and deletes, whose time is its own."""
    lines, code = joined.lines, joined.operations.code
    fine = (lines.status < 300) & usable.first_try[lines.operation]
    # Of several servers that were asked because the first was slow, those who came later say nothing.
    alone = (usable.compared | ~READS[code])[lines.operation]
    own = (READS[code] | _SENDS_NO_DATA[code])[lines.operation]
    found: npt.NDArray[np.bool_] = fine & alone & (lines.of == OBJECT) & own
    return found


def _split_in_windows(joined: JoinedRun, measure: Measure) -> Measure:
    """Compare the same times of servers in each quarter of the run, to find temporary slowness."""
    operations, of = joined.operations, measure.operation
    window = divide_in_slices(of, _WINDOW_COUNT, 1)
    size = np.where(READS[operations.code[of]], operations.size[of], 0)
    stratum = operation_times.number_strata((operations.code[of], joined.policy[of], window), size)
    group = np.zeros(int(stratum.max(initial=-1)) + 1, np.int64)
    group[stratum] = window
    names = tuple(map(str, range(_WINDOW_COUNT)))
    units = replace(measure.units, stratum=stratum, group=group)
    return replace(measure, units=units, groups=names, divided="time")


def _split_by_size(joined: JoinedRun, measure: Measure) -> Measure | None:
    """Compare the same times with the largest quarter of the objects; None where these are most of them."""
    operations, units, of = joined.operations, measure.units, measure.operation
    size = np.where(READS[operations.code[of]] | (not measure.own), operations.size[of], 0)
    if not len(size):
        return None
    least = int(np.quantile(size, 1 - _LARGE_SHARE))
    # A kind covers sizes within a ratio and is named by its median size.
    order = np.lexsort((size, units.stratum))
    counts = np.bincount(units.stratum, minlength=len(units.group))
    middle = size[order[np.cumsum(counts) - counts + counts // 2]]
    group = (middle >= least).astype(np.int64)
    if counts[group == 1].sum() > _MAX_LARGE_SHARE * len(size):
        return None
    units, names = replace(units, group=group), ("", f"{least:,} bytes and more")
    return replace(measure, units=units, groups=names, divided="size")


def _subtract_queues(joined: JoinedRun, measure: Measure) -> Measure:
    """Return the times of devices, less what the requests that came just before and after them took longer.

    These met the same queue at the same device: the rest tells who is slow in some requests, not who in all.
    """
    units, who = measure.units, measure.levels[0].who
    operations = joined.operations
    began = operations.ended[measure.operation] - operations.latency[measure.operation]
    excess = measure_excess(units, np.zeros(len(units), np.bool_))
    queue = np.zeros(len(units))
    order = np.lexsort((began[who.unit], who.candidate))
    for mine in np.split(who.unit[order], np.flatnonzero(np.diff(who.candidate[order])) + 1):
        if len(mine) <= 2 * _NEIGHBOURS:
            continue
        padded = np.pad(excess[mine], _NEIGHBOURS, mode="reflect")
        near = np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEIGHBOURS + 1)
        queue[mine] = np.median(np.delete(near, _NEIGHBOURS, axis=1), axis=1)
    return replace(measure, units=replace(units, seconds=units.seconds - queue), is_without_queue=True)


def _measure_total(compared: ComparedUnits, levels: list[CandidateLevel], request: float) -> Measure:
    return Measure("total", compared.units, compared.first, levels, GROUPS, SearchStage.TOTAL, request)


def _find_largest(numbers: IntegerArray, of: IntegerArray, count: int) -> IntegerArray:
    """Return the largest number of each of so many operations; 0 where there is none."""
    found = np.zeros(count, np.int64)
    np.maximum.at(found, of, numbers)
    return found


def subtract_update_times(joined: JoinedRun) -> FloatArray:
    """Return the seconds of lines; those of object servers less what the container server took.

    Where it is not known of all of an operation which updated which, the longest is subtracted from the
    longest, and so on.
    """
    lines = joined.lines
    seconds = lines.seconds.copy()
    updates = np.flatnonzero(lines.of == UPDATE)
    if not len(updates):
        return seconds
    count = len(joined.operations.code)
    unknown = np.zeros(count, np.bool_)
    unknown[lines.operation[updates[lines.sender[updates] == NO_INDEX]]] = True
    told = find_told_servers(joined)
    has = np.zeros(count, np.bool_)
    has[lines.operation[updates]] = True
    known = np.flatnonzero((told != NO_INDEX) & ~unknown[lines.operation])
    seconds[known] -= lines.seconds[told[known]]
    guessed = updates[unknown[lines.operation[updates]]]
    written = np.flatnonzero((lines.of == OBJECT) & (has & unknown)[lines.operation])
    objects, place = _order_by_rank(joined, written)
    sent, sent_place = _order_by_rank(joined, guessed)
    if len(sent):
        key = lines.operation[objects].astype(np.int64) << 8 | np.minimum(place, 255)
        other = lines.operation[sent].astype(np.int64) << 8 | np.minimum(sent_place, 255)
        # Both are in the order of operations, and of ranks within one.
        at = np.minimum(np.searchsorted(other, key), len(other) - 1)
        seconds[objects] -= np.where(other[at] == key, lines.seconds[sent[at]], 0.0)
    return np.where(lines.of == OBJECT, np.maximum(seconds, 0.0), seconds)


def find_told_servers(joined: JoinedRun) -> IntegerArray:
    """Return for each line of an object server the line of the update that it sent, or :data:`NO_INDEX`."""
    lines, devices = joined.lines, max(len(joined.devices), 1)
    told = np.full(len(lines), NO_INDEX, np.int64)
    updates = np.flatnonzero((lines.of == UPDATE) & (lines.sender != NO_INDEX))
    objects = np.flatnonzero(lines.of == OBJECT)
    if not len(updates) or not len(objects):
        return told
    key = lines.operation[updates].astype(np.int64) * devices + lines.sender[updates]
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    own = lines.operation[objects].astype(np.int64) * devices + lines.device[objects]
    at = np.minimum(np.searchsorted(ordered, own), len(ordered) - 1)
    there = ordered[at] == own
    told[objects[there]] = updates[order[at[there]]]
    return told


def _order_by_rank(joined: JoinedRun, at: IntegerArray) -> tuple[IntegerArray, IntegerArray]:
    """Return lines in the order of operations, the longest of each first, and their ranks from 0."""
    lines = joined.lines
    order = at[np.lexsort((-lines.seconds[at], lines.operation[at]))]
    operation = lines.operation[order]
    starts = np.flatnonzero(np.append(True, operation[1:] != operation[:-1]))
    place = np.arange(len(order))
    return order, place - np.repeat(starts, np.diff(np.append(starts, len(order))))


def _measure_lines(
    part: str, joined: JoinedRun, at: IntegerArray, seconds: FloatArray, load: IntegerArray
) -> Measure:
    """Compare the lines at some places by device, process and node; one line is one unit."""
    lines, operations = joined.lines, joined.operations
    of = lines.operation[at]
    size = np.where(READS[operations.code[of]], operations.size[of], 0)
    server = lines.of[at].astype(np.int64)
    if part == "lookups":
        account = np.array([each.server == "account" for each in joined.devices], np.int64)
        server = server + account[lines.device[at]] if len(account) else server
    hot = operations.subject[of] if part == "own" else None
    stratum = operation_times.number_strata((operations.code[of], joined.policy[of], server), size, hot)
    group = np.zeros(int(stratum.max(initial=-1)) + 1, np.int64)
    if part == "own":
        group[stratum] = ~READS[operations.code[of]]
    every = np.arange(len(at), dtype=np.int32)
    levels = operation_times.make_levels_of_lines(joined, every, at, make_single_pairs)
    if part == "updates":
        known = np.flatnonzero(operations.container[of] != NO_INDEX).astype(np.int32)
        who = make_single_pairs(known, operations.container[of[known]], len(joined.containers))
        levels += operation_times.make_container_level(joined, who)
    return Measure(
        part,
        Units(seconds[at], stratum, group, divide_in_slices(of)),
        of,
        levels,
        OWN_GROUPS if part == "own" else (part,),
        SearchStage.OWN,
        request=_median_seconds(operations.latency[of]),
        load=load[at],
    )


def _measure_proxies(
    part: str, joined: JoinedRun, seconds: FloatArray, usable: npt.NDArray[np.bool_]
) -> Measure:
    """Compare a time of each operation by proxy, in slices of the run."""
    operations = joined.operations
    at = np.flatnonzero(usable & (joined.proxy != NO_INDEX) & ~np.isnan(seconds)).astype(np.int32)
    stratum = operation_times.number_strata((operations.code[at], joined.policy[at]), operations.size[at])
    group = np.zeros(int(stratum.max(initial=-1)) + 1, np.int64)
    worker = joined.proxy_worker[at]
    known = np.flatnonzero(worker != NO_INDEX).astype(np.int32)
    every = np.arange(len(at), dtype=np.int32)
    return Measure(
        part,
        Units(seconds[at], stratum, group, divide_in_slices(at), is_dispersed=True),
        at,
        [
            CandidateLevel("proxy", make_single_pairs(every, joined.proxy[at], len(joined.proxies))),
            CandidateLevel(
                "proxy process", make_single_pairs(known, worker[known], len(joined.proxy_workers))
            ),
        ],
        (part,),
        SearchStage.OWN,
        request=_median_seconds(operations.latency[at]),
    )


def _median_seconds(seconds: FloatArray) -> float:
    known = seconds[~np.isnan(seconds)]
    return float(np.median(known)) if len(known) else float("nan")


def _measure_account_updates(joined: JoinedRun, request: float) -> Measure:
    """Compare what container servers told account servers of the containers that the run made."""
    device, seconds = joined.account_updates
    count = len(device)
    units = Units(seconds, np.zeros(count, np.int64), np.zeros(1, np.int64))
    who = make_pairs(np.arange(count), device, len(joined.devices))
    level = CandidateLevel("device", who)
    return Measure(
        ACCOUNT_UPDATES_PART, units, _NO_NUMBERS, [level], (ACCOUNT_UPDATES_PART,), SearchStage.OWN, request
    )


#: What they are called among the times that are one party's.
ACCOUNT_UPDATES_PART = "account updates"


# -- Whose replica of a write ends last ------------------------------------------------------------


#: In writes without any one other device a deviate is at least this one, of p = 0.1.
_MIN_DEVIATE_WITHOUT = 1.28
#: Of writes with two replicas each so many devices may be slow before their clocks, and nobody else is named.
_MAX_DOUBTED = 2


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReplicaEnds(Measure):
    """Replicas of writes: seconds beyond the slowest other of the same write.

    A candidate is the device of the replica, or that of the container server which it was told to. Each is
    tested by Wilcoxon's signed ranks, with the writes of one object as one.

    A write lasts as long as the last of its replicas, ``last``. A device that is slow after the data has
    arrived, where it puts the object in its place, shows this in its own log, beside others that did the same
    write at the same time. That finds it with far fewer requests than the client's time does. So does a
    container server that is slow before its clock starts, in the logs of the object servers that told it of
    an object: what its own log says of that is subtracted. Four things make it safe:

    - A delay *before* a server's clock starts makes the times of all other replicas of the write longer,
      since they wait. One of two healthy devices beside a slow one is then last in half of the writes. So a
      device is compared with the *slowest* of the others, and has to be later than that as a rule.
    - With two such devices the third is last in every write of these three. So it has to hold in writes
      without any one of the other devices as well, where the ring has such. Such a delay lengthens reads too:
      the devices that are suspects for them are known by then, and writes with those are not used.
    - Of a write with two replicas there is one other: a device is last beside each partner that is slow
      before its clock starts. So it has to hold beside more than two partners; with fewer, they may be the
      slow ones.
    - Of a device, replicas of writes are not used of which the proxy did not wait for all. (Object servers
      wait for a container server up to ``container_update_timeout``, so that one that is slow may have no
      others.)
    """

    beyond_mean: FloatArray  # seconds beyond the mean of the others of the same write
    latency: FloatArray  # what the client waited for each
    subject: IntegerArray  # the object of each
    partner: IntegerArray  # the device of the only other replica; :data:`NO_INDEX`: there are more

    @property
    def _level(self) -> CandidateLevel:
        return self.levels[0]

    def test(self) -> list[Deviates]:
        """Test every candidate."""
        who = self._level.who
        z = np.full((2, who.count), np.nan)
        counts = np.bincount(who.candidate, minlength=who.count)
        _, write, replicas = np.unique(self.operation, return_inverse=True, return_counts=True)
        for place in np.flatnonzero(counts >= MIN_TEST_REQUESTS).tolist():
            mine = who.unit[who.candidate == place]
            if replicas[sort_distinct(write[mine])].sum() > len(mine):  # else there are no others
                z[0, place] = self._score(mine)
        with_ = np.vstack((counts, counts))
        return [Deviates(z, with_, len(self.units) - with_)]

    def hold(self, suspect: Suspect) -> Measure:
        """Return the same without the writes that a suspect, or one who may be it, took part in."""
        level = suspect.level
        if level.name == "device":
            places = {suspect.candidate, *suspect.rivals}
        else:
            places = set((level.members or [[]] * (suspect.candidate + 1))[suspect.candidate])
        who = self._level.who
        left = np.unique(self.operation[who.unit[np.isin(who.candidate, list(places))]])
        return self._where(~np.isin(self.operation, left)) if len(left) else self

    def _where(self, kept: npt.NDArray[np.bool_]) -> Self:
        at, who = np.flatnonzero(kept), self._level.who
        place = np.cumsum(kept) - 1
        mine = kept[who.unit]
        pairs = Pairs(place[who.unit[mine]].astype(np.int32), who.candidate[mine], who.count)
        return replace(
            self,
            units=self.units.at(at),
            operation=self.operation[at],
            levels=[replace(self._level, who=pairs)],
            beyond_mean=self.beyond_mean[at],
            latency=self.latency[at],
            subject=self.subject[at],
            partner=self.partner[at],
        )

    def deviate(self, level: CandidateLevel, group: int, candidate: int, *fixed: int) -> float:
        """Return the deviate of a candidate, of replicas that have none of some others."""
        mask = self.mask(level, candidate)
        for other in fixed:
            mask &= ~self.mask(level, other)
        return self._score(mask)

    def accepts(self, level: CandidateLevel, candidate: int, group: int, measured: PeerDifference) -> bool:
        """Whether it is late by what matters to a request, and so without any one other device."""
        mask = self.mask(level, candidate)
        later = min(float(np.median(self.units.seconds[mask])), measured.median)
        enough = later >= MIN_DELAY_SHARE * float(np.median(self.latency[mask]))
        return enough and self.can_break_tie(candidate, or_partners=True)

    def can_break_tie(self, candidate: int, *, or_partners: bool = False) -> bool:
        """Whether it is late without any one other device, and beside more than two partners.

        With ``or_partners`` those may be as well to blame, if it has no others.
        """
        mask = self.mask(self._level, candidate)
        return self._is_last_without_any(candidate, mask, _MIN_DEVIATE_WITHOUT, or_partners=or_partners)

    def find_rivals(self, level: CandidateLevel, z: FloatArray, group: int, candidate: int) -> list[int]:
        """Return who explains what a candidate does, partners among them if it has no others."""
        mask = self.mask(level, candidate)
        worst = self._find_worst_partners(mask)
        beside = [] if (mask & ~np.isin(self.partner, worst)).any() else worst.tolist()
        return sorted({*Measure.find_rivals(self, level, z, group, candidate), *beside})

    def difference(self, level: CandidateLevel, candidate: int, group: int) -> PeerDifference:
        """Measure by how much it ends later than the mean of the others."""
        mask = self.mask(level, candidate)
        if not mask.any():
            return PeerDifference(np.nan, np.nan, np.nan)
        median, mean = float(np.median(self.beyond_mean[mask])), float(np.mean(self.beyond_mean[mask]))
        return PeerDifference(median, mean, float(np.median(self.latency[mask])) - mean)

    def interval(self, level: CandidateLevel, candidate: int, group: int) -> tuple[float, float]:
        """Return a 95 % interval of the median difference."""
        return interval_of_median(self.excess(level, candidate, group))

    def excess(self, level: CandidateLevel, candidate: int, group: int) -> FloatArray:
        """Return by how much each of its replicas ends later than the mean of the others."""
        return self.beyond_mean[self.mask(level, candidate)]

    def shift(self, candidate: int, seconds: float) -> Self:
        """Return the same with one whose replicas end later by so much."""
        more = seconds * self.mask(self._level, candidate)
        units = replace(self.units, seconds=self.units.seconds + more)
        return replace(self, units=units, beyond_mean=self.beyond_mean + more)

    def is_found(self, candidate: int, least: float, thinned: int) -> bool:
        """Whether one has at least a deviate, and with as much certainty without any one other device."""
        mask = self.mask(self._level, candidate)
        low, _ = interval_of_median(self.units.seconds[mask])
        return (
            self._score(mask) >= least
            and low >= MIN_DELAY_SHARE * float(np.median(self.latency[mask]))
            and self._is_last_without_any(
                candidate, mask, _MIN_DEVIATE_WITHOUT + POWER_DEVIATE, or_partners=True
            )
        )

    def thin(self, step: int) -> Measure:
        """Return the same: signed ranks take little time."""
        return self

    def _score(self, units: npt.NDArray[np.bool_] | IntegerArray) -> float:
        """Return the deviate of signed ranks of some units; NaN for too few. Writes of one object are one."""
        _, subject = np.unique(self.subject[units], return_inverse=True)
        beyond = np.bincount(subject, self.units.seconds[units]) / np.maximum(np.bincount(subject), 1)
        if len(beyond) < MIN_TEST_REQUESTS:
            return float("nan")
        return float(_sign_ranks(beyond).sum() / np.sqrt((np.arange(1.0, len(beyond) + 1) ** 2).sum()))

    def _find_worst_partners(self, mask: npt.NDArray[np.bool_]) -> IntegerArray:
        """Return the partners beside which replicas are last most of all, :data:`_MAX_DOUBTED` at most."""
        partner, ranks = self.partner[mask], _sign_ranks(self.units.seconds[mask])
        there = partner != NO_INDEX
        sums = np.bincount(partner[there], ranks[there])
        worst = np.argsort(-sums, kind="stable")[:_MAX_DOUBTED]
        return worst[sums[worst] > 0]

    def _is_last_without_any(
        self, candidate: int, mask: npt.NDArray[np.bool_], least: float, *, or_partners: bool
    ) -> bool:
        """Whether it is last also in those of its writes in which any one other took no part.

        A fresh ring may leave no such writes: then this cannot be asked of that other one. But of two
        replicas one is also last where the other is slow before its clock starts. So it has to be last
        without the partners that are the most suspect; ``or_partners`` says whether it need not where there
        are no others.
        """
        who = self._level.who
        alone = mask & ~np.isin(self.partner, self._find_worst_partners(mask))
        if not (self._score(alone) >= least if alone.any() else or_partners):
            return False
        write, mine = self.operation[who.unit], np.flatnonzero(mask)
        beside = np.flatnonzero(np.isin(write, self.operation[mine]) & (who.candidate != candidate))
        others = who.candidate[beside]
        for other in np.unique(others).tolist():
            left = mine[~np.isin(self.operation[mine], write[beside[others == other]])]
            if len(left) and not self._score(left) >= least:
                return False
        return True


def _sign_ranks(values: FloatArray) -> FloatArray:
    """Return the ranks by absolute value, with the signs of the values."""
    ranks = np.empty(len(values))
    ranks[np.argsort(np.abs(values), kind="stable")] = np.arange(1, len(values) + 1)
    return ranks * np.sign(values)


def measure_replica_ends(joined: JoinedRun, usable: npt.NDArray[np.bool_], own: FloatArray) -> ReplicaEnds:
    """Compare the replicas within each usable write; ``own`` are the seconds of all lines."""
    lines, code = joined.lines, joined.operations.code
    is_late = lines.seconds > joined.proxy_seconds[lines.operation] + LATE_REPLICA_SECONDS
    fine = (lines.of == OBJECT) & (lines.status < 300)
    count = len(code)
    every = np.bincount(lines.operation[lines.of == OBJECT], minlength=count)
    replicas = np.bincount(lines.operation[fine], minlength=count)
    whole = usable & ~READS[code] & (replicas == every) & (replicas > 1)
    chosen = np.flatnonzero(fine & whole[lines.operation])
    order = chosen[np.lexsort((own[chosen], lines.operation[chosen]))]
    operation, seconds = lines.operation[order], own[order].astype(np.float64)
    _, write, number = np.unique(operation, return_inverse=True, return_counts=True)
    end = np.cumsum(number)[write] - 1
    place = np.arange(len(order))
    slowest = np.where(place == end, end - 1, end)  # of the others
    others = (np.bincount(write, seconds)[write] - seconds) / np.maximum(number[write] - 1, 1)
    waited_for = np.flatnonzero(np.bincount(write, is_late[order])[write] == 0)
    told = find_told_servers(joined)[order]
    has = np.flatnonzero(told != NO_INDEX)
    unit = np.concatenate((waited_for, has))
    candidate = np.concatenate((lines.device[order[waited_for]], lines.device[told[has]]))
    zeros = np.zeros(len(order), np.int64)
    return ReplicaEnds(
        "last",
        Units(seconds - seconds[slowest], zeros, np.zeros(1, np.int64)),
        operation,
        [CandidateLevel("device", make_pairs(unit, candidate, len(joined.devices)))],
        ("writes",),
        SearchStage.ENDS,
        _median_seconds(joined.operations.latency[operation]),
        beyond_mean=seconds - others,
        latency=joined.operations.latency[operation],
        subject=joined.operations.subject[operation].astype(np.int64),
        partner=np.where(number[write] == 2, lines.device[order[slowest]], NO_INDEX),
    )
