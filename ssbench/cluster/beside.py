"""What recon and statsd saw of suspects, beside what the logs say: what may be why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median

from ssbench.cluster import statsd
from ssbench.cluster.addresses import NodeAddresses
from ssbench.cluster.judgments import BUSY_LOAD, FULL_SHARE
from ssbench.document.units import format_count, format_number, format_share
from ssbench.results.observation import Observation, Server, State


def describe_observed_nodes(cluster: Observation | None, addresses: NodeAddresses) -> dict[str, list[str]]:
    """Return what is remarkable of each node of the logs, in words."""
    found: dict[str, dict[str, None]] = {}
    for server in cluster.servers if cluster else ():
        node = addresses.node(server.name)
        if node is not None:
            found.setdefault(node, {}).update(dict.fromkeys(_describe_server(server)))
    return {node: list(words) for node, words in found.items()}


def describe_observed_devices(cluster: Observation | None, addresses: NodeAddresses) -> dict[str, str]:
    """Return what statsd says of the PUTs of each device of the logs, in words."""
    averages: dict[str, float] = {}
    for metric in cluster.statsd.metrics if cluster and cluster.statsd else ():
        whose = statsd.split_put_metric(metric)
        values = statsd.merge_intervals(metric.intervals)
        name = whose and addresses.of_prefix(whose[0].rstrip("."), whose[1])
        if name and values.count:
            averages[name] = values.total / values.count
    return {
        name: _compare_with_others(average, _averages_without(averages, name))
        for name, average in averages.items()
    }


def _averages_without(averages: dict[str, float], name: str) -> Iterable[float]:
    return [average for other, average in averages.items() if other != name]


def _compare_with_others(average: float, others: Iterable[float]) -> str:
    text = f"its PUTs take {format_number(average)} ms/kB"
    return f"{text} (other devices {format_number(median(others))}, median)" if others else text


def _describe_server(server: Server) -> Iterator[str]:
    states = [state for state in (server.before, *server.during, server.after) if state is not None]
    loads = [state.load for state in states if state.load is not None]
    if loads and max(loads) > BUSY_LOAD:
        yield f"load {format_count(round(max(loads)))}"
    for state in (server.before, server.after):
        for disk in state.disks or () if state else ():
            if not disk.mounted:
                yield f"{disk.device} not mounted"
            elif disk.used_share > FULL_SHARE:
                yield f"{disk.device} {format_share(disk.used_share)} full"
    yield from _describe_pending(states)


def _describe_pending(states: list[State]) -> Iterator[str]:
    counted = [state.async_pending for state in states if state.async_pending is not None]
    most = max(counted, default=0)
    if most:
        yield f"{most:,} async pendings"
