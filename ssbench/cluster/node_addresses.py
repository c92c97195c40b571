"""Which node of the logs an address is: proxies' errors and recon know servers by IP and port, logs by host.

An address is known by ``--hosts NODE=ADDRESS``, by the ring, by what object servers tell container servers,
by a node that is called by its address, by the devices that recon lists of a server, and by a device's name
where no two nodes have devices of one name (:class:`NodeAddresses`). What precedes statsd's names is the
node's name as a rule, with or without its domain, or an address of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ssbench.cluster.joined_run import OBJECT, Device, JoinedRun
from ssbench.cluster.ring import RingKind, RingReplica
from ssbench.results.cluster_observation import Observation

#: An address and a device have to be in so many operations; of more, so many are looked at.
_MIN_OPERATIONS, MAX_SENDER_OPERATIONS = 5, 100
#: A device with a line in this share of the operations may be the one that is named; with less than the other
#: share it cannot be.
_LIKELY_SHARE, _UNLIKELY_SHARE = 0.9, 0.05

#: An IP and the name of a device.
Sender = tuple[str, str]


class UpdateAddresses(NamedTuple):
    """``hosts`` are nodes by IP, ``unlogged`` the IPs of object servers without a log."""

    hosts: dict[str, str]
    unlogged: list[str]


def device_of_referer(referer: bytes) -> bytes | None:
    """Return the device of a request to an object server, ``PUT http://PROXY/DEVICE/...``."""
    words = referer.split(b"/", 4)
    return words[3] if len(words) == 5 and words[0][-1:] == b":" else None


def match_update_addresses(joined: JoinedRun) -> UpdateAddresses:
    """Tell which addresses are those of nodes with a log, and which have none.

    An object server tells a container server of an object. The line of such an update begins with the IP of
    the object server that sent it, and its referer names the device. (The address in the referer is what the
    client called the proxy.) That server has a line of the same operation. Names of devices repeat on every
    node, and a ring may put devices of one name together in every partition; so an IP is taken for a node's
    only where no other one may be, and for one without a log only where none of its lines can be there. An IP
    of several nodes is no evidence.
    """
    shares = _measure_sender_shares(joined)
    known: dict[Sender, int] = {}
    hosts: dict[str, str] = {}
    while new := _select_certain_senders(joined, shares, known, hosts):
        known |= new
        hosts = _match_single_nodes(joined, known)
    taken = set(known.values())
    logged = {address for address, _ in known}
    unlogged = {
        address
        for (address, _), each in shares.items()
        if address not in logged
        and all(share <= _UNLIKELY_SHARE for place, share in each.items() if place not in taken)
    }
    return UpdateAddresses(hosts, sorted(unlogged))


def _match_single_nodes(joined: JoinedRun, known: dict[Sender, int]) -> dict[str, str]:
    nodes: dict[str, set[str]] = {}
    for (address, _), place in known.items():
        nodes.setdefault(address, set()).add(joined.devices[place].node)
    return {address: next(iter(names)) for address, names in nodes.items() if len(names) == 1}


def _select_certain_senders(
    joined: JoinedRun, shares: dict[Sender, dict[int, float]], known: dict[Sender, int], hosts: dict[str, str]
) -> dict[Sender, int]:
    """Return further senders of which it is certain which device they are.

    That is where one device alone may be it, on the node of the address if that is known. While it is not,
    the device may be no other sender besides.
    """
    taken = set(known.values())
    left: dict[Sender, list[int]] = {}
    for sent, each in shares.items():
        node = hosts.get(sent[0])
        if sent not in known:
            left[sent] = [
                place
                for place, share in each.items()
                if share >= _LIKELY_SHARE
                and place not in taken
                and node in (None, joined.devices[place].node)
            ]
    claims = Counter(places[0] for places in left.values() if len(places) == 1)
    return {
        sent: places[0]
        for sent, places in left.items()
        if len(places) == 1 and (claims[places[0]] == 1 or sent[0] in hosts)
    }


def _measure_sender_shares(joined: JoinedRun) -> dict[Sender, dict[int, float]]:
    """Return in which share of a sender's operations each object server's device of that name has a line."""
    lines, count = joined.lines, max(len(joined.devices), 1)
    senders = {
        sent: np.unique(places) for sent, places in joined.senders.items() if len(places) >= _MIN_OPERATIONS
    }
    if not senders:
        return {}
    wanted = np.unique(np.concatenate([*senders.values()]))
    at = np.flatnonzero((lines.of == OBJECT) & np.isin(lines.operation, wanted))
    did = np.append(np.unique(lines.operation[at].astype(np.int64) * count + lines.device[at]), -1)
    named: dict[str, list[int]] = {}
    for place, device in enumerate(joined.devices):
        if device.server == "object":
            named.setdefault(device.name, []).append(place)
    found = {}
    for (address, name), operations in senders.items():
        places = named.get(name, [])
        codes = operations[:, None] * count + np.array(places, np.int64)
        shares = (did[np.searchsorted(did[:-1], codes)] == codes).mean(axis=0)
        found[address, name] = dict(zip(places, shares.tolist(), strict=True))
    return found


# -- By the ring -----------------------------------------------------------------------------------


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

    Ring and logs both know which device holds a partition. Names of devices repeat on every node, so one line
    does not tell. The address that fits most partitions that a server's lines are of is its own, unless
    another one fits nearly as many: on a fresh ring the devices of a name can be together in every partition.
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


# -- By all that is known --------------------------------------------------------------------------


class NodeAddresses:
    """Names of nodes by address."""

    def __init__(
        self, joined: JoinedRun, hosts: Mapping[str, str], cluster: Observation | None = None
    ) -> None:
        """Take nodes by address, ``IP`` or ``IP:PORT``, by the user or the ring, and what recon said.

        ``unlogged`` are addresses of object servers that have no log here.
        """
        updates = match_update_addresses(joined)
        # An address with a port is looked up before one without.
        self._nodes = updates.hosts | dict(hosts)
        self._of_device: dict[tuple[str, str], str] = {}
        by_name: dict[tuple[str, str], set[str]] = {}
        for device in joined.devices:
            by_name.setdefault((device.server, device.name), set()).add(device.node)
        # Where a name repeats, a node without a log may have it too.
        repeats = {server for (server, _), nodes in by_name.items() if len(nodes) > 1}
        nodes = {device.node for device in joined.devices}
        for (server, name), owners in by_name.items():
            if server not in repeats and len(nodes) > 1:
                self._of_device[(server, name)] = next(iter(owners))
        self._names = nodes
        self._nodes |= {node: node for node in nodes if node not in self._nodes}
        self._logged = {device.name for device in joined.devices if device.server == "object"}
        known = {ip_of_address(address) for address in self._nodes} | self._nodes.keys()
        self.unlogged = [ip for ip in updates.unlogged if ip not in known]
        for each in cluster.servers if cluster else ():
            disks = each.last.disks if each.last and each.last.disks else ()
            owners = {self._of_device.get((each.kind, disk.device), "") for disk in disks} - {""}
            if self.node(each.name) is None and len(owners) == 1:
                self._nodes[each.name] = owners.pop()
            elif (
                each.kind == "object"
                and disks
                and all(self.has_no_log(each.name, disk.device) for disk in disks)
            ):
                self.unlogged.append(each.name)

    def node(self, address: str) -> str | None:
        """Return the node at IP:PORT; None where that is not known."""
        return self._nodes.get(address) or self._nodes.get(ip_of_address(address))

    def has_no_log(self, address: str, device: str) -> bool:
        """Whether an object server surely has no log here: no node is known by its address or has its device.

        Where several nodes have a device of this name, one of them may be it.
        """
        return self.node(address) is None and device not in self._logged

    def of_prefix(self, prefix: str, device: str) -> str | None:
        """Return what the device of an object server is called whose statsd names begin with a prefix."""
        if prefix in self._names:
            node: str | None = prefix
        else:
            short = [
                each
                for each in self._names
                if each.partition(".")[0] == prefix or each.replace(".", "_") == prefix
            ]
            node = (
                short[0]
                if len(short) == 1
                else self._nodes.get(prefix) or self._of_device.get(("object", device))
            )
        return f"{device} on {node}" if node else None

    def name(self, address: str, device: str, server: str) -> str | None:
        """Return what a device of a server is called in the logs; None where that is not known."""
        server = server or "object"
        node = self.node(address) or self._of_device.get((server, device))
        if node is None:
            return None
        kind = "" if server == "object" else f"{server} server's "
        return f"{kind}{device} on {node}" if device else f"{server} server on {node}"


def ip_of_address(address: str) -> str:
    """Return the IP of ``IP:PORT``; that of IPv6 has brackets there."""
    return address.rpartition(":")[0].strip("[]")


def parse_node_addresses(words: Iterable[str]) -> dict[str, str]:
    """Read ``NODE=ADDRESS[,ADDRESS...]``; raises ValueError with what is expected."""
    found = {}
    for word in words:
        node, equals, addresses = word.partition("=")
        if not equals or not node or not all(addresses.split(",")):
            raise ValueError(f"{word!r}: expected NODE=ADDRESS, as in storage1=10.0.0.4:6200,10.0.0.4:6201")
        found.update(dict.fromkeys(addresses.split(","), node))
    return found
