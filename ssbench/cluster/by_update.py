"""Which node of the logs has which address, by what object servers tell container servers of a run's objects.

The line of such an update begins with the IP of the object server that sent it, and its referer names the
device. (The address in the referer is what the client called the proxy.) That server has a line of the same
operation. Names of devices repeat on every node, and a ring may put devices of one name together in every
partition; so an IP is taken for a node's only where no other one may be, and for one without a log only where
none of its lines can be there. An IP of several nodes is no evidence.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from ssbench.cluster.joined import OBJECT, JoinedRun

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
    """Tell which addresses are those of nodes with a log, and which have none."""
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
