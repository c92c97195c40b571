"""Which node of the logs has which address, by the ring: both know which device holds a partition.

Names of devices repeat on every node, so one line does not tell. The address that fits most partitions that a
server's lines are of is its own, unless another one fits nearly as many: on a fresh ring the devices of
a name can be together in every partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ssbench.cluster.joined import Device, JoinedRun
from ssbench.cluster.ring import RingKind, RingReplica

#: So many partitions of a device are looked up at most.
_MAX_PARTITIONS = 50
#: An address has to fit so large a share of what is looked up, and any other less than this share of that.
_MIN_FIT_SHARE, _MAX_OTHER_FIT = 0.5, 0.9

#: Where each partition is, by what a ring is of.
PlacedReplicas = Mapping[RingKind, Mapping[int, list[RingReplica]]]
ReplicaLookUp = Callable[[Mapping[RingKind, Sequence[int]]], PlacedReplicas]


class _ServedPartition(NamedTuple):
    """A device's server answered for a partition."""

    device: Device
    kind: RingKind
    partition: int


class RingAddresses(NamedTuple):
    """Nodes by ``IP:PORT`` or ``IP`` in ``hosts``, as ``--hosts`` has them, where they are certain.

    ``unlogged`` are addresses of object servers without a log.
    """

    hosts: dict[str, str]
    unlogged: list[str]


def match_ring_addresses(joined: JoinedRun, look_up: ReplicaLookUp) -> RingAddresses:
    """Tell which address is which node's; ``look_up`` returns the replicas of partitions.

    That is :func:`ssbench.cluster.ring.find_placed_replicas`.
    """
    facts = _collect_partitions(joined)
    wanted: dict[RingKind, set[int]] = {}
    for each in facts:
        wanted.setdefault(each.kind, set()).add(each.partition)
    placed = look_up({kind: sorted(numbers) for kind, numbers in wanted.items()})
    hosts = _match_addresses(facts, placed)
    return RingAddresses(hosts, _find_unlogged(joined, hosts, placed))


def _find_unlogged(joined: JoinedRun, hosts: Mapping[str, str], placed: PlacedReplicas) -> list[str]:
    """Return the object servers of these partitions that have no log.

    Nothing is said while it is not known which address each node with a log has.
    """
    if not {device.node for device in joined.devices if device.server == "object"} <= set(hosts.values()):
        return []
    replicas = {
        (each.ip, each.port)
        for kind, partitions in placed.items()
        if kind.server == "object"
        for found in partitions.values()
        for each in found
    }
    named = {f"{_host_of_ip(ip)}:{port}": ip for ip, port in sorted(replicas)}
    return [address for address, ip in named.items() if address not in hosts and ip not in hosts]


def _collect_partitions(joined: JoinedRun) -> list[_ServedPartition]:
    """Return partitions of each device, by its lines."""
    lines = joined.lines
    found = []
    for place, device in enumerate(joined.devices):
        for number in np.unique(lines.partition[lines.device == place])[:_MAX_PARTITIONS].tolist():
            policy, partition = joined.partitions[number]
            kind = RingKind(device.server, max(policy, 0) if device.server == "object" else 0)
            found.append(_ServedPartition(device, kind, partition))
    return found


def _match_addresses(facts: list[_ServedPartition], placed: PlacedReplicas) -> dict[str, str]:
    fitting = list(_find_fitting_replicas(facts, placed))
    of_server: dict[tuple[str, str], list[set[str]]] = {}
    of_node: dict[tuple[str, str], list[set[str]]] = {}
    for device, replicas in fitting:
        of_server.setdefault((device.node, device.server), []).append(
            {f"{_host_of_ip(each.ip)}:{each.port}" for each in replicas}
        )
        of_node.setdefault((device.node, ""), []).append({each.ip for each in replicas})
    # Servers have a port each; where every device has one, only the address of the node is shared.
    found = _select_certain_owners(of_server)
    return _select_certain_owners(of_node) | found


def _find_fitting_replicas(
    facts: list[_ServedPartition], placed: PlacedReplicas
) -> Iterator[tuple[Device, list[RingReplica]]]:
    """Yield for each partition of a device the replicas that may be it: none for a handoff."""
    for device, kind, partition in facts:
        if kind in placed:
            replicas = placed[kind].get(partition, [])
            yield device, [each for each in replicas if each.device == device.name]


def _select_certain_owners(fitting: Mapping[tuple[str, str], list[set[str]]]) -> dict[str, str]:
    """Return the owner of each address that fits one owner best by far, and no other owner as well."""
    best: dict[str, set[str]] = {}
    for (node, _), sets in fitting.items():
        counted = Counter(address for addresses in sets for address in addresses).most_common(2)
        first = counted[0][1] if counted else 0
        second = counted[1][1] if len(counted) > 1 else 0
        if first >= _MIN_FIT_SHARE * len(sets) and second <= _MAX_OTHER_FIT * first and first:
            best.setdefault(counted[0][0], set()).add(node)
    return {address: nodes.pop() for address, nodes in best.items() if len(nodes) == 1}


def _host_of_ip(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip
