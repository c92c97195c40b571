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

from ssbench.cluster.culprits import Level
from ssbench.cluster.joined import NO_INDEX, OBJECT, OTHER, Joined
from ssbench.cluster.ranks import Pairs, Places, Units, pairs, slices
from ssbench.scenario.operation import MAX_CODE, On
from ssbench.scenario.operation_table import OPERATIONS

#: Sizes are distinguished by this many steps an octave, the most that leaves most kinds enough requests.
_STEPS = (4, 2, 1, 0.5)
_ENOUGH_IN_KIND = 8
#: An object that is read so often within a kind is a kind of its own.
_HOT = 8
#: A number of lines that this share of the writes have is what a complete write has.
_USUAL = 0.05

#: Groups of operations: what slows only writes is diluted by reads.
GROUPS = ("reads", "writes")

#: Whether an operation is for a container server or an account server, by code.
_CONTAINER, _ACCOUNT = (
    np.isin(np.arange(MAX_CODE + 1), [each.code for each in OPERATIONS if each.on is on])
    for on in (On.CONTAINER, On.ACCOUNT)
)
#: Whether an operation only reads, so that any replica may answer; by code.
READS = np.isin(np.arange(MAX_CODE + 1), [each.code for each in OPERATIONS if each.method in ("GET", "HEAD")])


@dataclass(frozen=True, slots=True)
class Completeness:
    """How many object servers' lines each operation has, and should have.

    ``concurrent`` are reads that several servers answered where one does as a rule: they have further
    lines because they were slow, so who took part in them says nothing.
    """

    found: Places
    expected: Places
    concurrent: npt.NDArray[np.bool_]

    @property
    def complete(self) -> npt.NDArray[np.bool_]:
        """Which operations have all their lines."""
        return (self.found >= self.expected) & (self.found > 0)


def completeness(joined: Joined) -> Completeness:
    """Count the devices whose object server did each operation, and tell how many it takes.

    That is what is usual for an operation in a policy: for reads the most frequent number, for writes the
    highest that is not rare.
    """
    count = len(joined.operations.code)
    lines = joined.lines
    answered = _answered(joined)
    did = pairs(lines.operation[answered], lines.device[answered], len(joined.devices))
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
            expected[inside] = int(np.flatnonzero(numbers >= _USUAL * numbers.sum())[-1])
    concurrent = READS[joined.operations.code] & (expected == 1) & (found > 1)
    return Completeness(found, expected, concurrent)


@dataclass(frozen=True, slots=True)
class Compared:
    """Units, where ``unit_of`` is that of each operation; :data:`NO_INDEX` for none.

    ``first`` is the first operation of each unit.
    """

    units: Units
    unit_of: Places
    first: Places

    def pairs(self, operation: Places, candidate: Places, count: int) -> Pairs:
        """Turn who took part in which operation into pairs of units."""
        unit = self.unit_of[operation]
        there = (unit != NO_INDEX) & (candidate != NO_INDEX)
        return pairs(unit[there], candidate[there], count)


def compare(joined: Joined, usable: npt.NDArray[np.bool_], *, by_proxy: bool) -> Compared:
    """Sort the usable operations into kinds; with ``by_proxy`` those of two proxies are of two kinds.

    Without, units are in slices of the run: requests that one proxy serves at the same time wait for each
    other, so that the slower proxy changes by chance during the run.
    """
    operations = joined.operations
    at = np.flatnonzero(usable)
    if not len(at):
        empty = np.zeros(0, np.int64)
        return Compared(Units(np.zeros(0), empty, empty), np.full(len(usable), NO_INDEX, np.int32), empty)
    code = operations.code[at].astype(np.int64)
    proxy = joined.proxy[at] + 1 if by_proxy else np.zeros(len(at), np.int64)
    rough = _number(code, joined.policy[at], proxy, _nodes_used(joined)[at])
    stratum = _by_size(rough, operations.size[at])
    subject = _number(stratum, operations.subject[at])
    reads = READS[code]
    often = np.bincount(subject)[subject] >= _HOT
    stratum = _number(stratum, np.where(reads & often, subject + 1, 0))
    # All writes of an object are one unit, each read is one.
    unit = _number(np.where(reads, np.arange(len(at)), len(at) + subject))
    counts = np.bincount(unit)
    seconds = np.bincount(unit, operations.latency[at]) / counts
    first = np.unique(unit, return_index=True)[1].astype(np.int32)
    group = np.zeros(stratum.max() + 1, np.int64)
    group[stratum] = ~READS[code]
    unit_of = np.full(len(usable), NO_INDEX, np.int32)
    unit_of[at] = unit
    units = Units(seconds, stratum[first], group, None if by_proxy else slices(first))
    return Compared(units, unit_of, at[first].astype(np.int32))


def _nodes_used(joined: Joined) -> Places:
    """Count the nodes whose object servers did each write; 0 for reads.

    In a small cluster two replicas may be on one node, which then has twice the work: that makes the
    request slower and says nothing of the devices.
    """
    nodes = {name: place for place, name in enumerate(node_names(joined))}
    node_of = np.array([nodes[device.node] for device in joined.devices], np.int64)
    mine = _answered(joined)
    used = pairs(joined.lines.operation[mine], node_of[joined.lines.device[mine]], len(nodes))
    nodes_used = np.bincount(used.unit, minlength=len(joined.operations.code))
    return np.where(READS[joined.operations.code], 0, nodes_used)


def _answered(joined: Joined) -> npt.NDArray[np.bool_]:
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


def strata(
    columns: tuple[npt.NDArray[np.generic], ...], size: npt.NDArray[np.int64], subject: Places | None = None
) -> Places:
    """Number the kinds of requests by some columns and by size.

    Whatever is done often with one ``subject`` is of a kind of its own.
    """
    if not len(size):
        return np.zeros(0, np.int64)
    stratum = _by_size(_number(*columns), size)
    if subject is None:
        return stratum
    of_kind = _number(stratum, subject)
    return _number(stratum, np.where(np.bincount(of_kind)[of_kind] >= _HOT, of_kind + 1, 0))


def levels(joined: Joined, compared: Compared) -> list[Level]:
    """Return the candidates: devices, processes of storage servers, nodes."""
    lines = joined.lines
    telling = np.flatnonzero(lines.of != OTHER)
    unit = compared.unit_of[lines.operation[telling]]
    there = unit != NO_INDEX
    return levels_of(joined, unit[there], telling[there])


def levels_of(
    joined: Joined, unit: Places, at: Places, make: Callable[[Places, Places, int], Pairs] = pairs
) -> list[Level]:
    """Return the same, where lines at some places belong to units, of which ``make`` makes pairs."""
    lines = joined.lines
    device, process = lines.device[at], lines.process[at]
    nodes = node_names(joined)
    node_of = np.array([nodes.index(each.node) for each in joined.devices], np.int64)
    of_process: list[list[int]] = [[] for _ in joined.processes]
    seen = pairs(lines.process, lines.device, len(joined.devices))
    for each, place in zip(seen.unit.tolist(), seen.candidate.tolist(), strict=True):
        of_process[each].append(place)
    of_node = [np.flatnonzero(node_of == place).tolist() for place in range(len(nodes))]
    return [
        Level("device", make(unit, device, len(joined.devices))),
        Level("process", make(unit, process, len(joined.processes)), of_process),
        Level("node", make(unit, node_of[device] if len(node_of) else device, len(nodes)), of_node),
    ]


def node_names(joined: Joined) -> list[str]:
    """Return the names of nodes in the order in which :func:`levels` numbers them."""
    return sorted({each.node for each in joined.devices})


def _number(*columns: npt.NDArray[np.generic]) -> Places:
    """Number the rows of some columns so that equal rows have equal numbers, of 32 bits."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, codes = np.unique(column, return_inverse=True)
        numbers = numbers * (int(codes.max(initial=0)) + 1) + codes
        _, numbers = np.unique(numbers, return_inverse=True)
    return numbers.astype(np.int32)


def _by_size(rough: Places, size: npt.NDArray[np.int64]) -> Places:
    """Split kinds by size, as finely as leaves nine of ten requests enough others of their kind."""
    octave = np.log2(np.maximum(size, 1))
    for steps in _STEPS:
        step = np.where(size > 0, np.floor(octave * steps) + 1, 0)
        stratum = _number(rough, step)
        if (np.bincount(stratum)[stratum] >= _ENOUGH_IN_KIND).mean() >= 0.9:
            break
    return stratum
