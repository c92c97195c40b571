"""Which servers served the requests that failed: a device that came back with old objects, a broken process.

A failure that has nothing to do with servers falls on one with the probability that any request of its
operation does. An object that is lost fails as often as it is asked for, at the same devices each time: it
counts once there. The server that has more of them than chance gives (binomial, adjusted for all servers),
the least probable first, is named; its requests are then left out. A server is one that the proxy asked for
the object, whatever it answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ssbench.cluster import operation_times
from ssbench.cluster.joined_run import NO_INDEX, OBJECT, JoinedRun
from ssbench.cluster.rank_tests import IntegerArray, binomial_tail, make_pairs

#: No server is named with fewer failures, or less than so many times those that chance gives it.
_MIN_FAILURES, _MIN_RATIO = 3, 1.5


@dataclass(frozen=True, slots=True)
class FailingServer:
    """A server with more failures than chance gives it."""

    level: str  # ``device``, ``process``, ``node`` or ``proxy``
    place: int  # among those of its level
    requests: IntegerArray  # places of the operations that it served
    failures: IntegerArray  # those of them that failed
    every: int  # failures of all servers, those of servers that were found before too
    probability: float  # of so many, adjusted for the number of servers


def find_failing_servers(joined: JoinedRun, alpha: float) -> list[FailingServer]:
    """Return those with a probability below ``alpha``, the least probable first."""
    served = [*_list_served(joined)]
    left = np.ones(len(joined.operations.code), np.bool_)
    found: list[FailingServer] = []
    while True:
        each = [server for server in _measure_servers(joined, served, left) if server.probability < alpha]
        if not each:
            return found
        worst = min(each, key=lambda server: server.probability)
        # Later ones are found among what is left.
        found.append(replace(worst, every=found[0].every) if found else worst)
        left[worst.requests] = False


def _list_served(joined: JoinedRun) -> Iterator[tuple[str, int, IntegerArray]]:
    """Yield for each server of each level the operations that it served."""
    lines = joined.lines
    at = np.flatnonzero(lines.of == OBJECT)
    nodes = operation_times.list_node_names(joined)
    node_of = np.array([nodes.index(each.node) for each in joined.devices], np.int64)
    proxied = np.flatnonzero(joined.proxy != NO_INDEX)
    device = lines.device[at]
    for level, operation, who, count in (
        ("device", lines.operation[at], device, len(joined.devices)),
        ("process", lines.operation[at], lines.process[at], len(joined.processes)),
        ("node", lines.operation[at], node_of[device] if len(node_of) else device, len(nodes)),
        ("proxy", proxied, joined.proxy[proxied], len(joined.proxies)),
    ):
        pairs = make_pairs(operation, who, count)
        for place in range(count):
            yield level, place, pairs.unit[pairs.candidate == place]


def _measure_servers(
    joined: JoinedRun, served: list[tuple[str, int, IntegerArray]], left: np.ndarray
) -> Iterator[FailingServer]:
    operations = joined.operations
    failed = operations.failed & left
    code = operations.code.astype(np.int64)
    # Only what some server answered: what never came there says nothing of one.
    known = np.zeros(len(code), np.bool_)
    for _, _, mine in served:
        known[mine] = True
    failed &= known
    requests = np.bincount(code[known & left])
    every_failed = int(failed.sum())
    if every_failed < _MIN_FAILURES:
        return
    at_proxies, elsewhere = (
        (counted, np.bincount(code[counted], minlength=len(requests)))
        for counted in (failed, _count_objects_once(joined, failed))
    )
    for level, place, mine in served:
        counted, failures = at_proxies if level == "proxy" else elsewhere
        every = int(failures.sum())
        mine = mine[left[mine]]  # noqa: PLW2901 - the others are not used
        number = int(counted[mine].sum())
        share = np.bincount(code[mine], minlength=len(requests)) / np.maximum(requests, 1)
        chance = float((failures * share).sum()) / every
        if number >= max(_MIN_FAILURES, _MIN_RATIO * chance * every):
            tail = binomial_tail(every, chance, number) * len(served)
            its = mine[failed[mine]]
            yield FailingServer(level, place, mine, its, every_failed, min(tail, 1.0))


def _count_objects_once(joined: JoinedRun, failed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the failures without further ones of the same object."""
    places = np.flatnonzero(failed)
    on_objects = np.isin(places, joined.lines.operation[joined.lines.of == OBJECT])
    objects = places[on_objects]
    _, first = np.unique(joined.operations.subject[objects], return_index=True)
    once = failed.copy()
    once[objects] = False
    once[objects[first]] = True
    return once
