"""The section of the text report about the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from ssbench.cluster import statsd
from ssbench.cluster.judgments import Node, after, before, judge, nodes, sentences
from ssbench.cluster.observation import Interval, Observation, Statsd

#: Rows of a table; the rest is counted.
_MOST_ROWS = 20


def section(observation: Observation | None) -> Iterator[str]:
    """Yield the lines of the section, none where nobody looked at the cluster."""
    if observation is None:
        return
    yield from ("", "Cluster")
    versions = sorted({version for version in _versions(observation) if version})
    if versions:
        yield f"       Swift {', '.join(versions)}; servers asked: {len(observation.servers)}"
    for proxy in observation.proxies:
        if proxy.policies:
            yield f"       {proxy.url}: policies {', '.join(proxy.policies)} (the first is the default)"
    yield from _nodes(observation)
    if observation.statsd is not None:
        yield from _devices(observation.statsd)
    changes = sentences(judge(observation), warnings=False)
    yield from (f"       {change}" for change in changes)


def _versions(observation: Observation) -> Iterator[str | None]:
    yield from (server.last.version for server in observation.servers if server.last)
    yield from (proxy.version for proxy in observation.proxies)


def _nodes(observation: Observation) -> Iterator[str]:
    """What each node was like, the busiest first."""
    rows = sorted(
        ((_highest(node, "load") or 0.0, node) for node in nodes(observation)), key=lambda row: -row[0]
    )
    rows = [(load, node) for load, node in rows if node.states(before) or node.states(after)]
    if not rows:
        return
    width = max(len("Node"), *(len(node.name) for _, node in rows[:_MOST_ROWS]))
    yield f"       {'Node':<{width}}  Load before  highest  TCP sockets  Fullest device  Async pendings"
    for load, node in rows[:_MOST_ROWS]:
        disks = (node.disks(after) or node.disks(before)).values()
        mounted = [disk for disk in disks if disk.mounted]
        fullest = max(mounted, key=lambda disk: disk.used_share, default=None)
        device = f"{fullest.device} {fullest.used_share:4.0%}" if fullest else "N/A"
        yield (
            f"       {node.name:<{width}}  {_figure(node.highest(before, 'load'), '.2f'):>11}  {load:7.2f}"
            f"  {_figure(_highest(node, 'tcp_in_use'), ',.0f'):>11}  {device:>14}"
            f"  {_figure(node.highest(before, 'async_pending'), ',.0f'):>5} to"
            f" {_figure(node.highest(after, 'async_pending'), ',.0f')}"
        )
    if len(rows) > _MOST_ROWS:
        yield f"       ... and {len(rows) - _MOST_ROWS:,} more nodes"


def _highest(node: Node, field: str) -> float | None:
    states = [state for server in node.servers for state in (server.before, *server.during, server.after)]
    return max(
        (value for state in states if state and (value := getattr(state, field)) is not None), default=None
    )


def _figure(value: float | None, form: str) -> str:
    return "N/A" if value is None else format(value, form)


def _devices(received: Statsd) -> Iterator[str]:
    """The devices by what object servers say of their PUTs, the slowest first."""
    rows: list[tuple[str, Interval]] = []
    for metric in received.metrics:
        source, found, device = metric.name.partition("object-server.PUT.")
        if found and metric.timer and device.endswith(".timing") and device != "errors.timing":
            rows.append((source + device.removesuffix(".timing"), statsd.merged(metric.intervals)))
    rows = sorted((row for row in rows if row[1].count), key=lambda row: -row[1].total / row[1].count)
    if not rows:
        return
    width = max(len("Device (statsd)"), *(len(name) for name, _ in rows[:_MOST_ROWS]))
    yield f"       {'Device (statsd)':<{width}}     PUTs  Average ms/kB     50%     99%"
    for name, values in rows[:_MOST_ROWS]:
        yield (
            f"       {name:<{width}}  {values.count:7.0f}  {values.total / values.count:13.4f}"
            f"  {statsd.percentile(values, 50):6.4f}  {statsd.percentile(values, 99):6.4f}"
        )
    if len(rows) > _MOST_ROWS:
        yield f"       ... and {len(rows) - _MOST_ROWS:,} more devices"
