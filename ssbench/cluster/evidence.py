"""The times that are compared: what belongs to one party alone, and the client's total.

``own``, ``updates``, ``lookups``: a server's own time, by its log. ``own`` is that of object servers in
reads and in deletes (and whatever else sends no data). For deletes the time of the container server that was
updated is subtracted; those of writes are coupled, because the proxy waits for all, and are no evidence of
one server (but see :mod:`ssbench.cluster.replicas`). ``updates`` are those of container servers, sent by
object servers; ``lookups`` those of account and container servers that a proxy asked. ``own part`` is a
proxy's time less the slowest server's, ``way`` the client's less the proxy's. ``total`` is the client's, for
devices and for proxies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ssbench.cluster import kinds
from ssbench.cluster.culprits import CandidateLevel, Family
from ssbench.cluster.joined import NO_INDEX, OBJECT, OTHER, UPDATE, JoinedRun
from ssbench.cluster.kinds import GROUPS, READS, ComparedUnits
from ssbench.cluster.parts import OperationParts
from ssbench.cluster.ranks import FloatArray, IntegerArray, Units, divide_in_slices, make_single_pairs
from ssbench.scenario.operation import MAX_OPERATION_CODE
from ssbench.scenario.operation_table import OPERATIONS

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
        _make_total_family(by_device, kinds.make_candidate_levels(joined, by_device), compared),
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
    stratum = kinds.number_strata((operations.code[of], joined.policy[of], window, proxy), size)
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
    stratum = kinds.number_strata((operations.code[of], joined.policy[of], server), size, hot)
    group = np.zeros(int(stratum.max(initial=-1)) + 1, np.int64)
    if part == "own":
        group[stratum] = ~READS[operations.code[of]]
    return Family(
        part,
        Units(seconds[at], stratum, group),
        of,
        kinds.make_levels_of_lines(joined, np.arange(len(at), dtype=np.int32), at, make_single_pairs),
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
    stratum = kinds.number_strata((operations.code[at], joined.policy[at]), operations.size[at])
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
