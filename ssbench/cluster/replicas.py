"""Whose replica of a write ends last: the servers' own times within each write.

A write lasts as long as the last of its replicas. A device that is slow after the data has arrived, where
it puts the object in its place, shows this in its own log, beside others that did the same write at the
same time. That finds it with far fewer requests than the client's time does. Three things make it safe:

- A delay *before* a server's clock starts makes the times of all other replicas of the write longer, since
  they wait. One of two healthy devices beside a slow one is then last in half of the writes. So a device is
  compared with the *slowest* of the others, and has to be later than that as a rule.
- With two such devices the third is last in every write of these three. So it has to hold in writes
  without any one of the other devices as well, where the ring has such. Such a delay lengthens reads too: the
  devices that are suspects for them are known by then, and writes with those are not used.
- Replicas that the proxy did not wait for are not used. What the container server took is subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from ssbench.cluster.culprits import ALPHA, MIN_DELAY_SHARE
from ssbench.cluster.detectable import DELAY_STEPS, POWER_DEVIATE
from ssbench.cluster.joined import OBJECT, JoinedRun
from ssbench.cluster.kinds import READS
from ssbench.cluster.parts import LATE_REPLICA_SECONDS
from ssbench.cluster.ranks import (
    MIN_TEST_REQUESTS,
    FloatArray,
    IntegerArray,
    PeerDifference,
    Shown,
    adjust_by_holm,
    interval_of_median,
    is_evident,
    upper_tail,
)

#: In writes without any one other device a deviate is at least this one, of p = 0.1.
_MIN_DEVIATE_WITHOUT = 1.28


@dataclass(frozen=True, slots=True)
class LastReplica:
    """A device whose replica ends last; the difference is to the mean of the others of the same write.

    ``beyond`` has it for each of its writes, of which ``operation`` are the places.
    """

    device: int
    probability: float
    difference: PeerDifference
    operation: IntegerArray
    beyond: FloatArray


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
