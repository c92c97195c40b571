"""Which requests are compared with which: from joined columns to units, strata and who took part.

Requests are of one kind when operation, storage policy, proxy, size (within a ratio) and the number of nodes
that a write went to are the same. An object that is read often is a kind of its own, since its replicas can
be compared with each other; writes of one object always go to the same devices, so all of them together
count once. Otherwise one hot object would speak for its devices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ssbench.cluster.culprits import CandidateLevel
from ssbench.cluster.joined import NO_INDEX, OBJECT, OTHER, JoinedRun
from ssbench.cluster.ranks import IntegerArray, Pairs, Units, divide_in_slices, make_pairs
from ssbench.scenario.operation import MAX_OPERATION_CODE, RequestTarget
from ssbench.scenario.operation_table import OPERATIONS

#: Sizes are distinguished by this many steps an octave, the most that leaves most kinds enough requests.
_STEPS_AN_OCTAVE = (4, 2, 1, 0.5)
_MIN_IN_KIND = 8
#: An object that is read so often within a kind is a kind of its own.
_HOT_READS = 8
#: A number of lines that this share of the writes have is what a complete write has.
_USUAL_SHARE = 0.05

#: Groups of operations: what slows only writes is diluted by reads.
GROUPS = ("reads", "writes")

#: Whether an operation is for a container server or an account server, by code.
_CONTAINER, _ACCOUNT = (
    np.isin(np.arange(MAX_OPERATION_CODE + 1), [each.code for each in OPERATIONS if each.on is on])
    for on in (RequestTarget.CONTAINER, RequestTarget.ACCOUNT)
)
#: Whether an operation only reads, so that any replica may answer; by code.
READS = np.isin(
    np.arange(MAX_OPERATION_CODE + 1), [each.code for each in OPERATIONS if each.method in ("GET", "HEAD")]
)


@dataclass(frozen=True, slots=True)
class Completeness:
    """How many object servers' lines each operation has, and should have.

    ``concurrent`` are reads that several servers answered where one does as a rule: they have further
    lines because they were slow, so who took part in them says nothing.
    """

    found: IntegerArray
    expected: IntegerArray
    concurrent: npt.NDArray[np.bool_]

    @property
    def complete(self) -> npt.NDArray[np.bool_]:
        """Which operations have all their lines."""
        return (self.found >= self.expected) & (self.found > 0)


def count_completeness(joined: JoinedRun) -> Completeness:
    """Count the devices whose object server did each operation, and tell how many it takes.

    That is what is usual for an operation in a policy: for reads the most frequent number, for writes the
    highest that is not rare.
    """
    count = len(joined.operations.code)
    lines = joined.lines
    answered = _is_answered(joined)
    did = make_pairs(lines.operation[answered], lines.device[answered], len(joined.devices))
    found = np.bincount(did.unit, minlength=count).astype(np.int32)
    expected = np.ones(count, np.int32)
    fine = ~joined.operations.failed & (found > 0)
    group = joined.operations.code * np.int64(1000) + joined.policy + 1
    for each in np.unique(group[fine]):
        inside = group == each
        numbers = np.bincount(found[inside & fine])
        if READS[each // 1000]:
            expected[inside] = int(np.argmax(numbers))
        else:
            expected[inside] = int(np.flatnonzero(numbers >= _USUAL_SHARE * numbers.sum())[-1])
    concurrent = READS[joined.operations.code] & (expected == 1) & (found > 1)
    return Completeness(found, expected, concurrent)


@dataclass(frozen=True, slots=True)
class ComparedUnits:
    """Units, where ``unit_of`` is that of each operation; :data:`NO_INDEX` for none.

    ``first`` is the first operation of each unit.
    """

    units: Units
    unit_of: IntegerArray
    first: IntegerArray

    def pairs(self, operation: IntegerArray, candidate: IntegerArray, count: int) -> Pairs:
        """Turn who took part in which operation into pairs of units."""
        unit = self.unit_of[operation]
        there = (unit != NO_INDEX) & (candidate != NO_INDEX)
        return make_pairs(unit[there], candidate[there], count)


def group_by_kind(joined: JoinedRun, usable: npt.NDArray[np.bool_], *, by_proxy: bool) -> ComparedUnits:
    """Sort the usable operations into kinds; with ``by_proxy`` those of two proxies are of two kinds.

    Without, units are in slices of the run: requests that one proxy serves at the same time wait for each
    other, so that the slower proxy changes by chance during the run.
    """
    operations = joined.operations
    at = np.flatnonzero(usable)
    if not len(at):
        empty = np.zeros(0, np.int64)
        return ComparedUnits(
            Units(np.zeros(0), empty, empty), np.full(len(usable), NO_INDEX, np.int32), empty
        )
    code = operations.code[at].astype(np.int64)
    proxy = joined.proxy[at] + 1 if by_proxy else np.zeros(len(at), np.int64)
    rough = _number_rows(code, joined.policy[at], proxy, _count_nodes_used(joined)[at])
    stratum = _split_by_size(rough, operations.size[at])
    subject = _number_rows(stratum, operations.subject[at])
    reads = READS[code]
    often = np.bincount(subject)[subject] >= _HOT_READS
    stratum = _number_rows(stratum, np.where(reads & often, subject + 1, 0))
    # All writes of an object are one unit, each read is one.
    unit = _number_rows(np.where(reads, np.arange(len(at)), len(at) + subject))
    counts = np.bincount(unit)
    seconds = np.bincount(unit, operations.latency[at]) / counts
    first = np.unique(unit, return_index=True)[1].astype(np.int32)
    group = np.zeros(stratum.max() + 1, np.int64)
    group[stratum] = ~READS[code]
    unit_of = np.full(len(usable), NO_INDEX, np.int32)
    unit_of[at] = unit
    units = Units(seconds, stratum[first], group, None if by_proxy else divide_in_slices(first))
    return ComparedUnits(units, unit_of, at[first].astype(np.int32))


def _count_nodes_used(joined: JoinedRun) -> IntegerArray:
    """Count the nodes whose object servers did each write; 0 for reads.

    In a small cluster two replicas may be on one node, which then has twice the work: that makes the
    request slower and says nothing of the devices.
    """
    nodes = {name: place for place, name in enumerate(list_node_names(joined))}
    node_of = np.array([nodes[device.node] for device in joined.devices], np.int64)
    mine = _is_answered(joined)
    used = make_pairs(joined.lines.operation[mine], node_of[joined.lines.device[mine]], len(nodes))
    nodes_used = np.bincount(used.unit, minlength=len(joined.operations.code))
    return np.where(READS[joined.operations.code], 0, nodes_used)


def _is_answered(joined: JoinedRun) -> npt.NDArray[np.bool_]:
    """Return which lines are of servers that did what they were asked: object servers, as a rule.

    Listings and the like are for container and account servers.
    """
    lines = joined.lines
    code = joined.operations.code[lines.operation]
    mine = (lines.of == OBJECT) & ~(_CONTAINER | _ACCOUNT)[code]
    for server, codes in (("container", _CONTAINER), ("account", _ACCOUNT)):
        of_server = np.array([device.server == server for device in joined.devices], np.bool_)
        if of_server.any() and codes[code].any():
            mine |= (lines.of == OTHER) & codes[code] & of_server[lines.device]
    answered: npt.NDArray[np.bool_] = mine & (lines.status < 500) & (lines.status != 499)
    return answered


def number_strata(
    columns: tuple[npt.NDArray[np.generic], ...],
    size: npt.NDArray[np.int64],
    subject: IntegerArray | None = None,
) -> IntegerArray:
    """Number the kinds of requests by some columns and by size.

    Whatever is done often with one ``subject`` is of a kind of its own.
    """
    if not len(size):
        return np.zeros(0, np.int64)
    stratum = _split_by_size(_number_rows(*columns), size)
    if subject is None:
        return stratum
    of_kind = _number_rows(stratum, subject)
    return _number_rows(stratum, np.where(np.bincount(of_kind)[of_kind] >= _HOT_READS, of_kind + 1, 0))


def make_candidate_levels(joined: JoinedRun, compared: ComparedUnits) -> list[CandidateLevel]:
    """Return the candidates: devices, processes of storage servers, nodes."""
    lines = joined.lines
    telling = np.flatnonzero(lines.of != OTHER)
    unit = compared.unit_of[lines.operation[telling]]
    there = unit != NO_INDEX
    return make_levels_of_lines(joined, unit[there], telling[there])


def make_levels_of_lines(
    joined: JoinedRun,
    unit: IntegerArray,
    at: IntegerArray,
    make: Callable[[IntegerArray, IntegerArray, int], Pairs] = make_pairs,
) -> list[CandidateLevel]:
    """Return the same, where lines at some places belong to units, of which ``make`` makes pairs."""
    lines = joined.lines
    device, process = lines.device[at], lines.process[at]
    nodes = list_node_names(joined)
    node_of = np.array([nodes.index(each.node) for each in joined.devices], np.int64)
    of_process: list[list[int]] = [[] for _ in joined.processes]
    seen = make_pairs(lines.process, lines.device, len(joined.devices))
    for each, place in zip(seen.unit.tolist(), seen.candidate.tolist(), strict=True):
        of_process[each].append(place)
    of_node = [np.flatnonzero(node_of == place).tolist() for place in range(len(nodes))]
    return [
        CandidateLevel("device", make(unit, device, len(joined.devices))),
        CandidateLevel("process", make(unit, process, len(joined.processes)), of_process),
        CandidateLevel("node", make(unit, node_of[device] if len(node_of) else device, len(nodes)), of_node),
    ]


def list_node_names(joined: JoinedRun) -> list[str]:
    """Return the names of nodes in the order in which :func:`make_candidate_levels` numbers them."""
    return sorted({each.node for each in joined.devices})


def _number_rows(*columns: npt.NDArray[np.generic]) -> IntegerArray:
    """Number the rows of some columns so that equal rows have equal numbers, of 32 bits."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, codes = np.unique(column, return_inverse=True)
        numbers = numbers * (int(codes.max(initial=0)) + 1) + codes
        _, numbers = np.unique(numbers, return_inverse=True)
    return numbers.astype(np.int32)


def _split_by_size(rough: IntegerArray, size: npt.NDArray[np.int64]) -> IntegerArray:
    """Split kinds by size, as finely as leaves nine of ten requests enough others of their kind."""
    octave = np.log2(np.maximum(size, 1))
    for steps in _STEPS_AN_OCTAVE:
        step = np.where(size > 0, np.floor(octave * steps) + 1, 0)
        stratum = _number_rows(rough, step)
        if (np.bincount(stratum)[stratum] >= _MIN_IN_KIND).mean() >= 0.9:
            break
    return stratum
