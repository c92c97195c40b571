"""What is said of the cluster, in text and on pages: versions, nodes, devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ssbench.cluster import statsd
from ssbench.cluster.judgments import Node, after, before, judge, nodes, sentences
from ssbench.cluster.observation import Interval, Metric, Observation, Statsd
from ssbench.document import Element, Note, Section, Table, columns_of
from ssbench.figures.units import count, number, percent

#: Rows of a table in text; the rest is counted.
_MOST_ROWS = 20


def section(observation: Observation | None) -> Section | None:
    """Return the section of text; None where the cluster was not observed."""
    if observation is None:
        return None
    elements: list[Element] = []
    versions = sorted({version for version in _versions(observation) if version})
    if versions:
        elements.append(Note(f"Swift {', '.join(versions)}; servers asked: {len(observation.servers)}"))
    for proxy in observation.proxies:
        if proxy.policies:
            policies = ", ".join(proxy.policies)
            elements.append(Note(f"{proxy.url}: policies {policies} (the first is the default)"))
    elements += tables(observation)
    elements += map(Note, sentences(judge(observation), warnings=False))
    return Section("Cluster", elements)


def tables(observation: Observation) -> list[Table]:
    """Return what each node was like, the busiest first, and each device, the slowest first."""
    found = [_nodes(observation)]
    if observation.statsd is not None:
        found.append(_devices(observation.statsd))
    return [each for each in found if each.rows]


def _versions(observation: Observation) -> Iterator[str | None]:
    yield from (server.last.version for server in observation.servers if server.last)
    yield from (proxy.version for proxy in observation.proxies)


def _nodes(observation: Observation) -> Table:
    found = sorted(
        ((_highest(node, "load"), node) for node in nodes(observation)), key=lambda row: -(row[0] or 0.0)
    )
    rows = []
    for load, node in found:
        if not (node.states(before) or node.states(after)):
            continue
        disks = (node.disks(after) or node.disks(before)).values()
        mounted = [disk for disk in disks if disk.mounted]
        fullest = max(mounted, key=lambda disk: disk.used_share, default=None)
        pending = [_figure(node.highest(moment, "async_pending"), _whole) for moment in (before, after)]
        rows.append(
            (
                node.name,
                _figure(node.highest(before, "load"), number),
                _figure(load, number),
                _figure(_highest(node, "tcp_in_use"), _whole),
                f"{fullest.device} {percent(fullest.used_share)} %" if fullest else "N/A",
                " to ".join(pending),
            )
        )
    heads = ("Node", "Load before", "highest", "TCP sockets", "Fullest device", "Async pendings")
    return Table(columns_of(*heads), rows, most=_MOST_ROWS)


def _highest(node: Node, field: str) -> float | None:
    states = [state for server in node.servers for state in (server.before, *server.during, server.after)]
    return max(
        (value for state in states if state and (value := getattr(state, field)) is not None), default=None
    )


def _figure(value: float | None, text: Callable[[float], str]) -> str:
    return "N/A" if value is None else text(value)


def _whole(value: float) -> str:
    return count(round(value))


def _devices(received: Statsd) -> Table:
    """Return the devices by what object servers say of their PUTs."""
    found: list[tuple[str, Interval]] = []
    for metric in received.metrics:
        device = device_of(metric)
        if device is not None:
            found.append((device, statsd.merged(metric.intervals)))
    found = sorted((row for row in found if row[1].count), key=lambda row: -row[1].total / row[1].count)
    rows = [
        (
            name,
            _whole(values.count),
            number(values.total / values.count),
            *(number(statsd.percentile(values, rank)) for rank in (50, 99)),
        )
        for name, values in found
    ]
    heads = ("Device (statsd)", "PUTs", "Average ms/kB", "50%", "99%")
    return Table(columns_of(*heads), rows, most=_MOST_ROWS)


def device_of(metric: Metric) -> str | None:
    """Return the device whose PUTs a metric is of, which follows whatever precedes Swift's own name."""
    found = statsd.put_device(metric)
    return found and "".join(found)
