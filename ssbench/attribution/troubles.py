"""What else went wrong: late replicas, answers of 507, errors of the proxies, requests that left no line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from ssbench.attribution import culprits, kinds, parts
from ssbench.attribution.addresses import Addresses
from ssbench.attribution.evidence import Usable
from ssbench.attribution.joined import Joined
from ssbench.attribution.kinds import Completeness
from ssbench.attribution.ranks import Units, binomial_tail, deviates, difference, interval, pairs, upper_tail
from ssbench.attribution.records import Finding

#: So few late replicas are no habit.
_HABIT = 5


def late(joined: Joined) -> list[Finding]:
    """Return the devices whose replicas of writes are late more often than the others'."""
    counted = parts.late(joined)
    found = []
    for place in np.flatnonzero(counted.counts):
        tail = binomial_tail(
            int(counted.counts.sum()), float(counted.shares[place]), int(counted.counts[place])
        )
        if counted.counts[place] >= _HABIT and tail * len(counted.counts) < culprits.ALPHA:
            found.append(
                Finding(
                    "late",
                    "device",
                    str(joined.devices[place]),
                    requests=int(counted.counts[place]),
                    probability=tail * len(counted.counts),
                    seconds=float(counted.waited[place]),
                )
            )
    return found


def broken(joined: Joined, addresses: Addresses) -> list[Finding]:
    """Return the devices that answered 507, and those of which the proxies logged errors, each once."""
    lines = joined.lines
    counts = np.bincount(lines.device[lines.status == 507], minlength=len(joined.devices))
    answered = {str(joined.devices[place]): int(counts[place]) for place in np.flatnonzero(counts)}
    logged: dict[str, Counter[str]] = {name: Counter() for name in answered}
    for (kind, server, address, device), count in (joined.errors + joined.other_errors).items():
        if address and kind in ("timeout", "connection", "error", "507", "limited"):
            where = f"{address}/{device}" if device else address
            name = addresses.name(address, device, server) or f"{server} server {where}".strip()
            words = {"limited": "error limited", "connection": "no connection"}.get(kind, kind)
            logged.setdefault(name, Counter())[words] += count
    found = [
        Finding(
            "507" if name in answered else "error",
            "device",
            name,
            requests=answered.get(name, each.total()),
            detail=", ".join(f"{words} {_times(count)}" for words, count in each.most_common()),
        )
        for name, each in logged.items()
    ]
    found.sort(key=lambda each: (each.kind, -each.requests))
    asked = int((joined.handoffs > 0).sum())
    return [*found, *([Finding("handoff", "proxy", "", requests=asked)] if asked else [])]


def unlogged(joined: Joined, addresses: Addresses, by_ring: Iterable[str]) -> list[str]:
    """Return the servers without a log that errors of proxies, other servers, recon or the ring name."""
    named = {
        address: None
        for _, server, address, device in joined.errors + joined.other_errors
        if address and device and server in ("object", "") and addresses.has_no_log(address, device)
    }
    placed = (address for address in by_ring if addresses.node(address) is None)
    return list(dict.fromkeys([*addresses.unlogged, *named, *placed]))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def missing(joined: Joined, usable: Usable, complete: Completeness) -> list[Finding]:
    """Tell whether requests of which a server left no line take longer than the others of their kind."""
    operations = joined.operations
    at = np.flatnonzero(usable.first_try & ~complete.concurrent)
    without = ~complete.complete[at]
    if not without.any() or without.all():
        return []
    stratum = kinds.strata((operations.code[at], joined.policy[at]), operations.size[at])
    units = Units(operations.latency[at], stratum, np.zeros(int(stratum.max()) + 1, np.int64))
    mine = np.flatnonzero(without)
    z = float(deviates(units, pairs(mine, np.zeros(len(mine), np.int64), 1), 1).z[-1, 0])
    measured = difference(units, without)
    probability = upper_tail(z)
    if not probability < culprits.ALPHA or not measured.share >= culprits.LEAST_SHARE:
        return []
    return [
        Finding(
            "missing",
            "device",
            "",
            requests=len(mine),
            share=len(mine) / len(at),
            difference=measured,
            interval=interval(units, without),
            request=measured.base,
            probability=probability,
        )
    ]
