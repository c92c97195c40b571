"""What recon and statsd saw of suspects, beside what the logs say: what may be why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median

from ssbench.cluster import statsd
from ssbench.cluster.addresses import Addresses
from ssbench.cluster.judgments import BUSY, FULL
from ssbench.document.units import count, number, share
from ssbench.results.observation import Observation, Server, State


def of_nodes(cluster: Observation | None, addresses: Addresses) -> dict[str, list[str]]:
    """Return what is remarkable of each node of the logs, in words."""
    found: dict[str, dict[str, None]] = {}
    for server in cluster.servers if cluster else ():
        node = addresses.node(server.name)
        if node is not None:
            found.setdefault(node, {}).update(dict.fromkeys(_of_server(server)))
    return {node: list(words) for node, words in found.items()}


def of_devices(cluster: Observation | None, addresses: Addresses) -> dict[str, str]:
    """Return what statsd says of the PUTs of each device of the logs, in words."""
    averages: dict[str, float] = {}
    for metric in cluster.statsd.metrics if cluster and cluster.statsd else ():
        whose = statsd.put_device(metric)
        values = statsd.merged(metric.intervals)
        name = whose and addresses.of_prefix(whose[0].rstrip("."), whose[1])
        if name and values.count:
            averages[name] = values.total / values.count
    return {name: _beside_others(average, _without(averages, name)) for name, average in averages.items()}


def _without(averages: dict[str, float], name: str) -> Iterable[float]:
    return [average for other, average in averages.items() if other != name]


def _beside_others(average: float, others: Iterable[float]) -> str:
    text = f"its PUTs take {number(average)} ms/kB"
    return f"{text} (other devices {number(median(others))}, median)" if others else text


def _of_server(server: Server) -> Iterator[str]:
    states = [state for state in (server.before, *server.during, server.after) if state is not None]
    loads = [state.load for state in states if state.load is not None]
    if loads and max(loads) > BUSY:
        yield f"load {count(round(max(loads)))}"
    for state in (server.before, server.after):
        for disk in state.disks or () if state else ():
            if not disk.mounted:
                yield f"{disk.device} not mounted"
            elif disk.used_share > FULL:
                yield f"{disk.device} {share(disk.used_share)} full"
    yield from _pending(states)


def _pending(states: list[State]) -> Iterator[str]:
    counted = [state.async_pending for state in states if state.async_pending is not None]
    most = max(counted, default=0)
    if most:
        yield f"{most:,} async pendings"
