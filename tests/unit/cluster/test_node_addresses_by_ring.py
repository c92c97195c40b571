"""Which node has which address, by the ring, where names of devices repeat on every node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from rings import ring
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster import node_addresses as cluster_addresses
from ssbench.cluster.joined_run import OBJECT, Device, JoinedLines, JoinedRun
from ssbench.cluster.node_addresses import NodeAddresses
from ssbench.cluster.ring import RingKind, RingReplica

#: Devices of each node are called alike.
NODES, DEVICES = 4, 12
#: The partition of each object is drawn, so that its index is no partition of the ring.
SHAPE = Shape(devices=DEVICES, nodes=NODES, requests=1500)


def cluster(kind: str) -> JoinedRun:
    """A run whose lines have the partitions of the ring, on nodes n0 to n3 with sda to sdc."""
    joined = simulate(1, Cause(), replace(SHAPE, ring=kind))
    table = ring(DEVICES, NODES, 3, kind)
    lines = joined.lines
    # One of the partitions that has the devices of the request.
    of: dict[frozenset[int], int] = {frozenset(row): place for place, row in enumerate(table.tolist())}
    partition = lines.partition.copy()
    objects = (lines.of == OBJECT).nonzero()[0]
    did: dict[int, set[int]] = {}
    for at in objects.tolist():
        did.setdefault(int(lines.operation[at]), set()).add(int(lines.device[at]))
    for at in objects.tolist():
        whole = next((each for each in of if each >= did[int(lines.operation[at])]), None)
        partition[at] = of[whole] if whole else 0
    devices = [
        Device(each.node, each.server, f"sd{'abc'[int(each.name[1:]) // NODES]}")
        if each.server == "object"
        else each
        for each in joined.devices
    ]
    return replace(joined, devices=devices, lines=replace(lines, partition=partition))


def look_up(kind: str, ports: bool = False, one_host: bool = False) -> cluster_addresses.ReplicaLookUp:
    def placed(wanted: Mapping[RingKind, Sequence[int]]) -> dict[RingKind, dict[int, list[RingReplica]]]:
        table = ring(DEVICES, NODES, 3, kind)
        return {
            RingKind("object", 0): {
                number: [
                    RingReplica(
                        "127.0.0.1" if one_host else f"10.0.0.{device % NODES + 1}",
                        6200 + (device if ports else device % NODES if one_host else 0),
                        f"sd{'abc'[device // NODES]}",
                    )
                    for device in table[number].tolist()
                ]
                for number in wanted[RingKind("object", 0)]
            }
        }

    return placed


def test_nodes_are_found_by_the_partitions_that_they_served() -> None:
    found = cluster_addresses.match_ring_addresses(cluster("grown"), look_up("grown")).hosts
    assert found == {
        **{f"10.0.0.{number + 1}": f"n{number}" for number in range(NODES)},
        **{f"10.0.0.{number + 1}:6200": f"n{number}" for number in range(NODES)},
    }


def test_servers_of_one_host_are_told_by_their_ports() -> None:
    found = cluster_addresses.match_ring_addresses(cluster("grown"), look_up("grown", one_host=True)).hosts
    assert found == {f"127.0.0.1:{6200 + number}": f"n{number}" for number in range(NODES)}
    known = NodeAddresses(cluster("grown"), found)
    assert known.name("127.0.0.1:6201", "sda", "object") == "sda on n1"


def test_where_each_device_has_a_port_the_address_of_the_node_is_found() -> None:
    found = cluster_addresses.match_ring_addresses(cluster("grown"), look_up("grown", ports=True))
    assert found.hosts == {f"10.0.0.{number + 1}": f"n{number}" for number in range(NODES)}
    assert found.unlogged == []


@pytest.mark.parametrize("kind", ["fresh", "grown"])
def test_nobody_is_called_by_a_wrong_name(kind: str) -> None:
    right = {f"10.0.0.{number + 1}": f"n{number}" for number in range(NODES)}
    found = cluster_addresses.match_ring_addresses(cluster(kind), look_up(kind)).hosts
    assert all(right[address.partition(":")[0]] == node for address, node in found.items())
    # By the ring of another cluster: what it tells is not certain.
    other = cluster_addresses.match_ring_addresses(
        cluster(kind), look_up("fresh" if kind == "grown" else "grown")
    ).hosts
    assert all(right[address.partition(":")[0]] == node for address, node in other.items())


def test_without_a_ring_of_its_kind_nothing_is_known() -> None:
    assert (
        cluster_addresses.match_ring_addresses(cluster("grown"), lambda _: {RingKind("account", 0): {}}).hosts
        == {}
    )


def test_object_servers_of_the_ring_without_a_log_are_known() -> None:
    whole = cluster("grown")
    assert cluster_addresses.match_ring_addresses(whole, look_up("grown")).unlogged == []
    lost = np.array([each.node == "n1" for each in whole.devices])
    kept = ~lost[whole.lines.device]
    lines = JoinedLines(**{name: getattr(whole.lines, name)[kept] for name in JoinedLines.__slots__})
    devices = [replace(each, node="n0") if each.node == "n1" else each for each in whole.devices]
    found = cluster_addresses.match_ring_addresses(
        replace(whole, lines=lines, devices=devices), look_up("grown")
    )
    assert found.unlogged == ["10.0.0.2:6200"]
    # While it is not known which address each node has, any may be one of them.
    assert (
        cluster_addresses.match_ring_addresses(
            replace(whole, lines=lines), lambda _: {RingKind("object", 0): {}}
        ).unlogged
        == []
    )


def addresses(owner: str, *counts: tuple[str, int], sets: int = 10) -> dict[tuple[str, str], list[set[str]]]:
    """The addresses that fit so many of the sets of one owner."""
    return {(owner, ""): [{name for name, count in counts if place < count} for place in range(sets)]}


def test_an_address_is_of_whom_it_fits_in_half_of_the_cases_and_best_by_far() -> None:
    assert cluster_addresses._select_certain_owners(addresses("n0", ("a", 5), ("b", 4))) == {"a": "n0"}
    assert cluster_addresses._select_certain_owners(addresses("n0", ("a", 4))) == {}
    assert cluster_addresses._select_certain_owners(addresses("n0", ("a", 10), ("b", 9))) == {"a": "n0"}
    assert cluster_addresses._select_certain_owners(addresses("n0", ("a", 9), ("b", 9))) == {}
    assert (
        cluster_addresses._select_certain_owners(addresses("n0", sets=0))
        == cluster_addresses._select_certain_owners(addresses("n0"))
        == {}
    )
    # One that fits two as well is nobody's.
    both = addresses("n0", ("a", 9)) | addresses("n1", ("a", 9)) | addresses("n2", ("b", 9))
    assert cluster_addresses._select_certain_owners(both) == {"b": "n2"}
