"""Which node of the logs an address is: proxies' errors and recon know servers by IP and port, logs by host.

An address is known by ``--hosts NODE=ADDRESS``, by the ring, by what object servers tell container servers
(:mod:`~ssbench.cluster.by_update`), by a node that is called by its address, by the devices that recon
lists of a server, and by a device's name where no two nodes have devices of one name.
What precedes statsd's names is the node's name as a rule, with or without its domain, or an address of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ssbench.cluster import by_update
from ssbench.cluster.joined import JoinedRun
from ssbench.results.observation import Observation


class NodeAddresses:
    """Names of nodes by address."""

    def __init__(
        self, joined: JoinedRun, hosts: Mapping[str, str], cluster: Observation | None = None
    ) -> None:
        """Take nodes by address, ``IP`` or ``IP:PORT``, by the user or the ring, and what recon said.

        ``unlogged`` are addresses of object servers that have no log here.
        """
        updates = by_update.match_update_addresses(joined)
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
