"""What is said of the cluster, in text and on pages: versions, nodes, devices, and charts beside the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from msgspec.structs import replace

from ssbench.cluster import statsd
from ssbench.cluster.judgments import Node, after, before, judge, nodes, sentences
from ssbench.document.colours import GREY
from ssbench.document.elements import Chart, Curve, Element, Item, Items, Note, Section, Table, columns_of
from ssbench.document.units import count, number, percent
from ssbench.reports.curves import DASHES
from ssbench.results.observation import Interval, Metric, Observation, State, Statsd
from ssbench.statistics.run_statistics import RunStatistics

#: Rows of a table in text; the rest is counted.
_MOST_ROWS = 20

#: Curves and points of a chart, beyond which nodes and devices are left out and samples thinned out.
_MOST_CURVES = 12

_MOST_POINTS = 300


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


def elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield sentences and tables; none where the cluster was not observed."""
    observation = statistics.cluster
    if observation is None or statistics.start is None:
        return
    words = sentences(judge(observation), warnings=True) + sentences(judge(observation), warnings=False)
    yield Items([Item(each) for each in words])
    yield from tables(observation)
    yield _version_table(observation)


def charts(statistics: RunStatistics) -> list[Chart]:
    """Return charts over the time of the run; none where the cluster was not observed."""
    observation, start = statistics.cluster, statistics.start
    if observation is None or start is None:
        return []
    shift = observation.began - start
    found = nodes(observation)
    made = [
        Chart(
            "Cluster: load of the last minute",
            "processes",
            _of_nodes(found, shift, lambda state: state.load),
            digits=2,
        ),
        Chart(
            "Cluster: TCP sockets in use",
            "",
            _of_nodes(found, shift, lambda state: state.tcp_in_use),
            digits=0,
        ),
        Chart(
            "Cluster: async pendings",
            "",
            _of_nodes(found, shift, lambda state: state.async_pending),
            digits=0,
        ),
        Chart("Cluster: fullest device", "% used", _of_nodes(found, shift, _fullest), digits=1),
        Chart(
            "Cluster: PUTs of object servers by device (statsd)",
            "ms/kB",
            _device_curves(observation, shift),
            digits=3,
        ),
    ]
    # What was seen before the run may be from long before it: while initial objects were uploaded.
    shown = [replace(chart, wider=True) for chart in made if chart.curves]
    if shown:
        shown[0] = replace(shown[0], note="Before the first send and after the run: move the time line.")
    return shown


def _fullest(state: State) -> float | None:
    shares = [100 * disk.used_share for disk in state.disks or () if disk.mounted]
    return max(shares, default=None)


def _of_nodes(found: list[Node], shift: float, value: Callable[[State], float | None]) -> list[Curve]:
    """Return a curve for each node; where they are too many, for those with the highest values."""
    curves = []
    for node in found:
        points: dict[float, float] = {}
        for server in node.servers:
            for state in (server.before, *server.during, server.after):
                if state is not None and (number := value(state)) is not None:
                    points[state.at] = max(number, points.get(state.at, number))
        if points:
            curves.append((node.name, points))
    curves = sorted(curves, key=lambda each: -max(each[1].values()))[:_MOST_CURVES]
    # By name, so that a node has the same line in each chart.
    curves.sort(key=lambda each: each[0])
    return [_curve(name, points, shift, place) for place, (name, points) in enumerate(curves)]


def _device_curves(observation: Observation, shift: float) -> list[Curve]:
    """Return a curve for each device, the slowest ones where they are too many."""
    if observation.statsd is None:
        return []
    found = []
    for metric in observation.statsd.metrics:
        device = device_of(metric)
        points = {each.at: each.total / each.count for each in metric.intervals if each.count}
        if device is not None and points:
            found.append((device, points))
    found.sort(key=lambda each: -sum(each[1].values()) / len(each[1]))
    return [_curve(name, points, shift, place) for place, (name, points) in enumerate(found[:_MOST_CURVES])]


def _curve(name: str, points: dict[float, float], shift: float, place: int) -> Curve:
    moments = sorted(points)
    step = -(-len(moments) // _MOST_POINTS)
    # The highest of those that are put together.
    x = [moments[first] + shift for first in range(0, len(moments), step)]
    y = [
        max(points[moment] for moment in moments[first : first + step])
        for first in range(0, len(moments), step)
    ]
    return Curve(
        name[:60], np.array(x), np.array(y), GREY, width=2.2 - place / 8, dash=DASHES[place % len(DASHES)]
    )


def _version_table(observation: Observation) -> Table:
    rows = [
        [
            server.url,
            server.kind,
            (server.last.version if server.last else None) or "",
            count(server.asked),
            count(server.unanswered),
        ]
        for server in observation.servers
    ]
    rows += [[proxy.url, "proxy", proxy.version or "", "", ""] for proxy in observation.proxies]
    return Table(columns_of("server", "kind", "version", "asked", "unanswered", texts=3), rows)
