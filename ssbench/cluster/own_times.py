"""The times that are compared: what belongs to one party alone, and the client's total.

``own``, ``updates``, ``lookups``: a server's own time, by its log. ``own`` is that of object servers in reads
and in deletes (and whatever else sends no data). For deletes the time of the container server that was
updated is subtracted; those of writes are coupled, because the proxy waits for all, and are no evidence of
one server (but see below). ``updates`` are those of container servers, sent by object servers; ``lookups``
those of account and container servers that a proxy asked. ``own part`` is a proxy's time less the slowest
server's, ``way`` the client's less the proxy's. ``total`` is the client's, for devices and for proxies.

A write lasts as long as the last of its replicas (:class:`WriteReplicas`). A device that is slow after the
data has arrived, where it puts the object in its place, shows this in its own log, beside others that did the
same write at the same time. That finds it with far fewer requests than the client's time does. Three things
make it safe:

- A delay *before* a server's clock starts makes the times of all other replicas of the write longer, since
  they wait. One of two healthy devices beside a slow one is then last in half of the writes. So a device is
  compared with the *slowest* of the others, and has to be later than that as a rule.
- With two such devices the third is last in every write of these three. So it has to hold in writes without
  any one of the other devices as well, where the ring has such. Such a delay lengthens reads too: the devices
  that are suspects for them are known by then, and writes with those are not used.
- Replicas that the proxy did not wait for are not used. What the container server took is subtracted.

Container servers tell account servers of a run's containers (:func:`find_slow_account_servers`). These are
requests of a run besides its results, so there is no client's time beside them; each update has one account
server, whose time it is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from ssbench.cluster import operation_times
from ssbench.cluster.attribution_records import LogFinding
from ssbench.cluster.joined_run import NO_INDEX, OBJECT, OTHER, UPDATE, JoinedRun
from ssbench.cluster.operation_times import GROUPS, LATE_REPLICA_SECONDS, READS, ComparedUnits, OperationParts
from ssbench.cluster.rank_tests import (
    MIN_TEST_REQUESTS,
    FloatArray,
    IntegerArray,
    PeerDifference,
    Shown,
    Units,
    adjust_by_holm,
    divide_in_slices,
    interval_of_median,
    is_evident,
    make_pairs,
    make_single_pairs,
    measure_deviates,
    measure_median_interval,
    measure_peer_difference,
    upper_tail,
)
from ssbench.cluster.suspect_search import (
    ALPHA,
    DELAY_STEPS,
    MIN_DELAY_SHARE,
    POWER_DEVIATE,
    CandidateLevel,
    Family,
)
from ssbench.scenario.operations import MAX_OPERATION_CODE, OPERATIONS

#: Whether an operation writes without sending data, by code.
_SENDS_NO_DATA = np.isin(
    np.arange(MAX_OPERATION_CODE + 1), [each.code for each in OPERATIONS if each.method in ("DELETE", "POST")]
)
#: The groups of ``own``.
OWN_GROUPS = ("reads", "deletes")
#: The run is looked at in so many windows.
_WINDOW_COUNT = 4


@dataclass(frozen=True, slots=True)
class UsableOperations:
    """Which operations may be used: ``first_try`` for what is one party's, ``compared`` for totals.

    Both are successes that needed one attempt; the latter have all their lines, and no more.
    """

    first_try: npt.NDArray[np.bool_]
    compared: npt.NDArray[np.bool_]


def make_test_families(
    joined: JoinedRun,
    parts: OperationParts,
    usable: UsableOperations,
    by_device: ComparedUnits,
    by_proxy: ComparedUnits,
    seconds: FloatArray,
) -> list[Family]:
    """Return all that can be tested; the totals are the last two: by device, and by proxy.

    ``seconds`` are those of lines (:func:`subtract_update_times`).
    """
    lines, code = joined.lines, joined.operations.code
    fine = (lines.status < 300) & usable.first_try[lines.operation]
    found = [
        _make_line_family("own", joined, np.flatnonzero(is_own_time(joined, usable)), seconds),
        _make_line_family("updates", joined, np.flatnonzero(fine & (lines.of == UPDATE)), seconds),
        _make_line_family("lookups", joined, np.flatnonzero(fine & (lines.of == OTHER)), seconds),
        _make_proxy_family("own part", joined, parts.proxy, usable.compared),
        _make_proxy_family("way", joined, parts.client, usable.first_try),
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
        _make_total_family(by_device, operation_times.make_candidate_levels(joined, by_device), compared),
        _make_total_family(by_proxy, proxies, served),
    ]
    windows = [_split_in_windows(joined, each) for each in (found[0], found[1], found[-2])]
    tails = [replace(each, tail=True) for each in found[:2]]
    return [family for family in (*windows, *tails, *found[:-2]) if len(family.units)] + found[-2:]


def is_own_time(joined: JoinedRun, usable: UsableOperations) -> npt.NDArray[np.bool_]:
    """Return which lines are of an object server's reads and deletes, whose time is its own."""
    lines, code = joined.lines, joined.operations.code
    fine = (lines.status < 300) & usable.first_try[lines.operation]
    # Of several servers that were asked because the first was slow, those who came later say nothing.
    alone = (usable.compared | ~READS[code])[lines.operation]
    own = (READS[code] | _SENDS_NO_DATA[code])[lines.operation]
    found: npt.NDArray[np.bool_] = fine & alone & (lines.of == OBJECT) & own
    return found


def _split_in_windows(joined: JoinedRun, family: Family) -> Family:
    """Compare the same times in each quarter of the run, by device: what is slow in a part of it."""
    operations = joined.operations
    units, of = family.units, family.operation
    window = divide_in_slices(of, _WINDOW_COUNT)
    size = np.where(READS[operations.code[of]], operations.size[of], 0) if family.own else operations.size[of]
    proxy = joined.proxy[of] if not family.own else np.zeros(len(of), np.int64)
    stratum = operation_times.number_strata((operations.code[of], joined.policy[of], window, proxy), size)
    group = np.zeros(int(stratum.max(initial=-1)) + 1, np.int64)
    group[stratum] = window
    names = tuple(map(str, range(_WINDOW_COUNT)))
    return replace(
        family,
        units=Units(units.seconds, stratum, group),
        groups=names,
        windows=True,
    )


def _make_total_family(compared: ComparedUnits, levels: list[CandidateLevel], request: float) -> Family:
    return Family("total", compared.units, compared.first, levels, GROUPS, own=False, request=request)


def subtract_update_times(joined: JoinedRun) -> FloatArray:
    """Return the seconds of lines; those of object servers less what the container server took.

    Which updated which is not known: the longest is subtracted from the longest, and so on.
    """
    lines = joined.lines
    seconds = lines.seconds.copy()
    updates = np.flatnonzero(lines.of == UPDATE)
    if not len(updates):
        return seconds
    count = len(joined.operations.code)
    has = np.zeros(count, np.bool_)
    has[lines.operation[updates]] = True
    written = np.flatnonzero((lines.of == OBJECT) & has[lines.operation])
    objects, place = _order_by_rank(joined, written)
    sent, sent_place = _order_by_rank(joined, updates)
    key = lines.operation[objects].astype(np.int64) << 8 | np.minimum(place, 255)
    other = lines.operation[sent].astype(np.int64) << 8 | np.minimum(sent_place, 255)
    # Both are in the order of operations, and of ranks within one.
    at = np.minimum(np.searchsorted(other, key), len(other) - 1)
    less = np.where(other[at] == key, lines.seconds[sent[at]], 0.0)
    seconds[objects] = np.maximum(seconds[objects] - less, 0.0)
    return seconds


def _order_by_rank(joined: JoinedRun, at: IntegerArray) -> tuple[IntegerArray, IntegerArray]:
    """Return lines in the order of operations, the longest of each first, and their ranks from 0."""
    lines = joined.lines
    order = at[np.lexsort((-lines.seconds[at], lines.operation[at]))]
    operation = lines.operation[order]
    starts = np.flatnonzero(np.append(True, operation[1:] != operation[:-1]))
    place = np.arange(len(order))
    return order, place - np.repeat(starts, np.diff(np.append(starts, len(order))))


def _make_line_family(part: str, joined: JoinedRun, at: IntegerArray, seconds: FloatArray) -> Family:
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
    return Family(
        part,
        Units(seconds[at], stratum, group),
        of,
        operation_times.make_levels_of_lines(
            joined, np.arange(len(at), dtype=np.int32), at, make_single_pairs
        ),
        OWN_GROUPS if part == "own" else (part,),
        own=True,
        request=_median_seconds(operations.latency[of]),
    )


def _make_proxy_family(
    part: str, joined: JoinedRun, seconds: FloatArray, usable: npt.NDArray[np.bool_]
) -> Family:
    """Compare a time of each operation by proxy, in slices of the run."""
    operations = joined.operations
    at = np.flatnonzero(usable & (joined.proxy != NO_INDEX) & ~np.isnan(seconds)).astype(np.int32)
    stratum = operation_times.number_strata((operations.code[at], joined.policy[at]), operations.size[at])
    group = np.zeros(int(stratum.max(initial=-1)) + 1, np.int64)
    worker = joined.proxy_worker[at]
    known = np.flatnonzero(worker != NO_INDEX).astype(np.int32)
    every = np.arange(len(at), dtype=np.int32)
    return Family(
        part,
        Units(seconds[at], stratum, group, divide_in_slices(at)),
        at,
        [
            CandidateLevel("proxy", make_single_pairs(every, joined.proxy[at], len(joined.proxies))),
            CandidateLevel(
                "proxy process", make_single_pairs(known, worker[known], len(joined.proxy_workers))
            ),
        ],
        (part,),
        own=True,
        request=_median_seconds(operations.latency[at]),
    )


def _median_seconds(seconds: FloatArray) -> float:
    known = seconds[~np.isnan(seconds)]
    return float(np.median(known)) if len(known) else float("nan")


# -- Whose replica of a write ends last ------------------------------------------------------------


#: In writes without any one other device a deviate is at least this one, of p = 0.1.
_MIN_DEVIATE_WITHOUT = 1.28


@dataclass(frozen=True, slots=True)
class LastReplica:
    """A device whose replica ends last."""

    device: int
    probability: float
    difference: PeerDifference  # to the mean of the others of the same write
    operation: IntegerArray  # places of its writes
    beyond: FloatArray  # the difference of each of them


@dataclass(frozen=True, slots=True)
class _ReplicaColumns:
    """Replicas of writes as columns, in the order of devices.

    Seconds are those beyond the slowest and beyond the mean of the others of a write.
    """

    operation: IntegerArray
    device: IntegerArray
    subject: IntegerArray
    beyond_slowest: FloatArray
    beyond_mean: FloatArray

    def where(self, which: npt.NDArray[np.bool_] | IntegerArray | slice) -> _ReplicaColumns:
        """Return some of them: of a mask, at places, or a part."""
        return _ReplicaColumns(
            self.operation[which],
            self.device[which],
            self.subject[which],
            self.beyond_slowest[which],
            self.beyond_mean[which],
        )

    def by_device(self, count: int) -> list[_ReplicaColumns]:
        """Return those of each device, which take no memory of their own."""
        ends = np.searchsorted(self.device, np.arange(count + 1))
        return [self.where(slice(*pair)) for pair in pairwise(ends)]

    def without(self, devices: Collection[int]) -> _ReplicaColumns:
        """Return the replicas of writes in which none of the devices took part."""
        left = np.unique(self.operation[np.isin(self.device, list(devices))])
        return self.where(~np.isin(self.operation, left))


class WriteReplicas:
    """The servers' own times within each usable write; ``seconds`` are those of all lines."""

    def __init__(self, joined: JoinedRun, usable: npt.NDArray[np.bool_], seconds: FloatArray) -> None:
        self._joined = joined
        self._all = _collect_replicas(joined, usable, seconds)
        self._by_device = self._all.by_device(len(joined.devices))

    def last(self, suspects: Collection[int]) -> list[LastReplica]:
        """Name the devices that writes wait for, the latest first, beside those that are suspects already."""
        return _find_last(self._joined, self._all.without(suspects))

    def latest(self, devices: Sequence[int]) -> dict[int, float]:
        """Return for some devices the deviate of ending last; none for those that end last by too little."""
        found = {}
        for device in devices:
            own = self._by_device[device]
            if _is_late(self._joined, own):
                found[device] = _score_signed_ranks(own)
        return found

    def beyond_quorum(self, operation: IntegerArray) -> float:
        """Return how long proxies waited, as a rule, after most replicas of some writes had ended (s).

        NaN without any.
        """
        lines = self._joined.lines
        at = np.flatnonzero((lines.of == OBJECT) & (lines.status < 300) & np.isin(lines.operation, operation))
        at = at[np.lexsort((lines.seconds[at], lines.operation[at]))]
        of, first, counts = np.unique(lines.operation[at], return_index=True, return_counts=True)
        quorum = lines.seconds[at[first + counts // 2]]
        waited = self._joined.proxy_seconds[of] - quorum
        known = waited[(counts > 1) & ~np.isnan(waited) & ~READS[self._joined.operations.code[of]]]
        return float(np.median(known)) if len(known) else math.nan

    def times(self) -> tuple[IntegerArray, IntegerArray, FloatArray]:
        """Return the device and the operation of each replica, and its seconds beyond the slowest other."""
        return self._all.device, self._all.operation, self._all.beyond_slowest

    def detectable(self) -> float | None:
        """Return the least delay at the end of any device's writes, in seconds, that would have been found.

        That is in 9 of 10 runs, for the device with fewest of them, of those that can be tested. None where
        no delay would have been, or nothing could be tested.
        """
        counts = [len(each.operation) for each in self._by_device]
        device = min(
            (place for place, count in enumerate(counts) if count >= MIN_TEST_REQUESTS),
            key=counts.__getitem__,
            default=None,
        )
        if device is None:
            return None
        own = self._by_device[device]
        typical = float(np.median(self._joined.operations.latency[own.operation]))
        least = NormalDist().inv_cdf(1 - ALPHA / len(self._by_device)) + POWER_DEVIATE
        low, _ = interval_of_median(own.beyond_slowest)
        for delay in DELAY_STEPS * typical:
            # One that is as long as the least share measures less than it in half of the runs.
            if not low + delay >= 1.5 * MIN_DELAY_SHARE * typical:
                continue
            later = replace(
                own, beyond_slowest=own.beyond_slowest + delay, beyond_mean=own.beyond_mean + delay
            )
            if _score_signed_ranks(later) >= least and _is_last_without_any(
                self._all, later, device, _MIN_DEVIATE_WITHOUT + POWER_DEVIATE
            ):
                return float(delay)
        return None

    def beside(self, device: int) -> Shown | None:
        """Return how much longer a device's replicas take than the others; None for too few."""
        own = self._by_device[device]
        if len(own.operation) < MIN_TEST_REQUESTS:
            return None
        found = _measure_difference(self._joined, own)
        return Shown(found.median, found.mean, found.base, is_evident(_score_signed_ranks(own)), math.nan)


def _find_last(joined: JoinedRun, replicas: _ReplicaColumns) -> list[LastReplica]:
    devices = replicas.by_device(len(joined.devices))
    deviates = np.array([_score_signed_ranks(each) for each in devices])
    adjusted = adjust_by_holm(np.array([upper_tail(z) for z in deviates]))
    found = []
    for place in np.argsort(-deviates, kind="stable"):
        own = devices[place]
        if not adjusted[place] < ALPHA or not _is_last_without_any(replicas, own, int(place)):
            continue
        if _is_late(joined, own):
            measured = _measure_difference(joined, own)
            found.append(
                LastReplica(int(place), float(adjusted[place]), measured, own.operation, own.beyond_mean)
            )
    return found


def _is_late(joined: JoinedRun, own: _ReplicaColumns) -> bool:
    """Whether a device ends later than the slowest of the others by what matters to a request."""
    if len(own.operation) < MIN_TEST_REQUESTS:
        return False
    later = min(float(np.median(own.beyond_slowest)), _measure_difference(joined, own).median)
    return later >= MIN_DELAY_SHARE * float(np.median(joined.operations.latency[own.operation]))


def _measure_difference(joined: JoinedRun, own: _ReplicaColumns) -> PeerDifference:
    median, mean = float(np.median(own.beyond_mean)), float(np.mean(own.beyond_mean))
    return PeerDifference(median, mean, float(np.median(joined.operations.latency[own.operation])) - mean)


def _collect_replicas(joined: JoinedRun, usable: npt.NDArray[np.bool_], own: FloatArray) -> _ReplicaColumns:
    lines, code = joined.lines, joined.operations.code
    waited = lines.seconds <= joined.proxy_seconds[lines.operation] + LATE_REPLICA_SECONDS
    fine = (lines.of == OBJECT) & (lines.status < 300) & waited
    count = len(code)
    every = np.bincount(lines.operation[lines.of == OBJECT], minlength=count)
    replicas = np.bincount(lines.operation[fine], minlength=count)
    whole = usable & ~READS[code] & (replicas == every) & (replicas > 1)
    chosen = np.flatnonzero(fine & whole[lines.operation])
    order = chosen[np.lexsort((own[chosen], lines.operation[chosen]))]
    operation, seconds = lines.operation[order], own[order].astype(np.float64)
    number = replicas[operation]
    end = np.cumsum(np.unique(operation, return_counts=True)[1])[_number_values(operation)] - 1
    place = np.arange(len(order))
    slowest = np.where(place == end, seconds[end - 1], seconds[end]) if len(order) else seconds
    total = np.bincount(operation, seconds, count)[operation]
    found = _ReplicaColumns(
        operation,
        lines.device[order],
        joined.operations.subject[operation].astype(np.int64),
        seconds - slowest,
        seconds - (total - seconds) / np.maximum(number - 1, 1),
    )
    return found.where(np.argsort(found.device, kind="stable"))


def _score_signed_ranks(own: _ReplicaColumns) -> float:
    """Return the deviate of Wilcoxon's signed ranks; NaN for too few. Writes of one object are one."""
    subject = _number_values(own.subject)
    beyond = np.bincount(subject, own.beyond_slowest) / np.maximum(np.bincount(subject), 1)
    if len(beyond) < MIN_TEST_REQUESTS:
        return float("nan")
    ranks = np.empty(len(beyond))
    ranks[np.argsort(np.abs(beyond), kind="stable")] = np.arange(1, len(beyond) + 1)
    return float((ranks * np.sign(beyond)).sum() / np.sqrt((ranks**2).sum()))


def _is_last_without_any(
    replicas: _ReplicaColumns, own: _ReplicaColumns, device: int, least: float = _MIN_DEVIATE_WITHOUT
) -> bool:
    """Whether the device is last also in those of its writes in which any one other took no part.

    A fresh ring may leave no such writes: then this cannot be asked of that other one.
    """
    beside = replicas.where(np.isin(replicas.operation, own.operation) & (replicas.device != device))
    for other in np.unique(beside.device):
        left = own.where(~np.isin(own.operation, beside.operation[beside.device == other]))
        if len(left.operation) and not _score_signed_ranks(left) >= least:
            return False
    return True


def _number_values(values: IntegerArray) -> IntegerArray:
    numbers: IntegerArray = np.unique(values, return_inverse=True)[1]
    return numbers


# -- Account servers -------------------------------------------------------------------------------


#: What they are called among the times that are one party's.
ACCOUNT_UPDATES_PART = "account updates"


def find_slow_account_servers(joined: JoinedRun, request: float) -> list[LogFinding]:
    """Return the account servers' devices whose updates take longer than the others' do, one after another.

    As for all other times this is said at p < 0.01, adjusted for the devices, and from 5 % of a ``request``
    (seconds).
    """
    device, seconds = joined.account_updates
    found: list[LogFinding] = []
    kept = np.ones(len(device), np.bool_)
    while kept.any():
        finding, place = _find_slowest_device(joined, device[kept], seconds[kept], request)
        if finding is None:
            break
        found.append(finding)
        kept &= device != place
    return found


def _find_slowest_device(
    joined: JoinedRun, device: IntegerArray, seconds: FloatArray, request: float
) -> tuple[LogFinding | None, int]:
    count = len(device)
    units = Units(seconds, np.zeros(count, np.int64), np.zeros(1, np.int64))
    tested = measure_deviates(units, make_pairs(np.arange(count), device, len(joined.devices)), 1).z[-1]
    if np.isnan(tested).all():
        return None, 0
    place = int(np.nanargmax(tested))
    probability = upper_tail(float(tested[place])) * int((~np.isnan(tested)).sum())
    mine = device == place
    measured = measure_peer_difference(units, mine)
    if not probability < ALPHA or not max(measured.median, measured.mean) >= MIN_DELAY_SHARE * request:
        return None, 0
    finding = LogFinding(
        "slow",
        "device",
        str(joined.devices[place]),
        requests=int(mine.sum()),
        share=float(mine.mean()),
        part=ACCOUNT_UPDATES_PART,
        difference=measured,
        interval=measure_median_interval(units, mine),
        request=request,
        probability=min(probability, 1.0),
    )
    return finding, place
