"""What is said of the cluster, in text and on pages: versions, nodes, devices, and charts beside the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from msgspec.structs import replace

from ssbench.cluster import statsd
from ssbench.cluster.judgments import (
    ObservedNode,
    describe_judgments,
    group_nodes,
    judge_cluster,
    state_after,
    state_before,
)
from ssbench.document.elements import (
    GREY,
    Chart,
    Curve,
    Element,
    Item,
    Items,
    Note,
    Table,
    make_columns,
)
from ssbench.document.units import format_count, format_number, format_percent
from ssbench.reports.run_charts import CURVE_DASHES
from ssbench.results.cluster_observation import Metric, MetricInterval, Observation, State, Statsd
from ssbench.statistics.run_statistics import RunStatistics

#: Rows of a table in text; the rest is counted.
_MAX_ROWS = 20

#: Curves and points of a chart, beyond which nodes and devices are left out and samples thinned out.
_MAX_CURVES = 12

_MAX_POINTS = 300


def make_observation_notes(observation: Observation | None) -> list[Element]:
    """Return what the full report says; nothing where the cluster was not observed."""
    if observation is None:
        return []
    elements: list[Element] = []
    versions = sorted({version for version in _describe_versions(observation) if version})
    if versions:
        elements.append(Note(f"Swift {', '.join(versions)}; servers asked: {len(observation.servers)}"))
    for proxy in observation.proxies:
        if proxy.policies:
            policies = ", ".join(proxy.policies)
            elements.append(Note(f"{proxy.url}: policies {policies} (the first is the default)"))
    elements += make_cluster_tables(observation)
    elements += map(Note, describe_judgments(judge_cluster(observation), warnings=False))
    return elements


def make_cluster_tables(observation: Observation) -> list[Table]:
    """Return what each node was like, the busiest first, and each device, the slowest first."""
    found = [_make_nodes_table(observation)]
    if observation.statsd is not None:
        found.append(_make_devices_table(observation.statsd))
    return [each for each in found if each.rows]


def _describe_versions(observation: Observation) -> Iterator[str | None]:
    yield from (server.last.version for server in observation.servers if server.last)
    yield from (proxy.version for proxy in observation.proxies)


def _make_nodes_table(observation: Observation) -> Table:
    found = sorted(
        ((_highest_value(node, "load"), node) for node in group_nodes(observation)),
        key=lambda row: -(row[0] or 0.0),
    )
    rows = []
    for load, node in found:
        if not (node.states(state_before) or node.states(state_after)):
            continue
        disks = (node.disks(state_after) or node.disks(state_before)).values()
        mounted = [disk for disk in disks if disk.mounted]
        fullest = max(mounted, key=lambda disk: disk.used_share, default=None)
        pending = [
            _format_figure(node.highest(moment, "async_pending"), _format_whole)
            for moment in (state_before, state_after)
        ]
        rows.append(
            (
                node.name,
                _format_figure(node.highest(state_before, "load"), format_number),
                _format_figure(load, format_number),
                _format_figure(_highest_value(node, "tcp_in_use"), _format_whole),
                f"{fullest.device} {format_percent(fullest.used_share)} %" if fullest else "N/A",
                " to ".join(pending),
            )
        )
    heads = ("Node", "Load before", "highest", "TCP sockets", "Fullest device", "Async pendings")
    return Table(make_columns(*heads), rows, most=_MAX_ROWS)


def _highest_value(node: ObservedNode, field: str) -> float | None:
    states = [state for server in node.servers for state in (server.before, *server.during, server.after)]
    return max(
        (value for state in states if state and (value := getattr(state, field)) is not None), default=None
    )


def _format_figure(value: float | None, text: Callable[[float], str]) -> str:
    return "N/A" if value is None else text(value)


def _format_whole(value: float) -> str:
    return format_count(round(value))


def _make_devices_table(received: Statsd) -> Table:
    """Return the devices by what object servers say of their PUTs."""
    found: list[tuple[str, MetricInterval]] = []
    for metric in received.metrics:
        device = device_of_metric(metric)
        if device is not None:
            found.append((device, statsd.merge_intervals(metric.intervals)))
    found = sorted((row for row in found if row[1].count), key=lambda row: -row[1].total / row[1].count)
    rows = [
        (
            name,
            _format_whole(values.count),
            format_number(values.total / values.count),
            *(format_number(statsd.timer_percentile(values, rank)) for rank in (50, 99)),
        )
        for name, values in found
    ]
    heads = ("Device (statsd)", "PUTs", "Average ms/kB", "50%", "99%")
    return Table(make_columns(*heads), rows, most=_MAX_ROWS)


def device_of_metric(metric: Metric) -> str | None:
    """Return the device whose PUTs a metric is of, which follows whatever precedes Swift's own name."""
    found = statsd.split_put_metric(metric)
    return found and "".join(found)


def make_observation_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield sentences and tables; none where the cluster was not observed."""
    observation = statistics.cluster
    if observation is None or statistics.start is None:
        return
    words = describe_judgments(judge_cluster(observation), warnings=True) + describe_judgments(
        judge_cluster(observation), warnings=False
    )
    yield Items([Item(each) for each in words])
    yield from make_cluster_tables(observation)
    yield _make_version_table(observation)


def make_observation_charts(statistics: RunStatistics) -> list[Chart]:
    """Return charts over the time of the run; none where the cluster was not observed."""
    observation, start = statistics.cluster, statistics.start
    if observation is None or start is None:
        return []
    shift = observation.began - start
    found = group_nodes(observation)
    made = [
        Chart(
            "Cluster: load of the last minute",
            "processes",
            _make_node_curves(found, shift, lambda state: state.load),
            digits=2,
        ),
        Chart(
            "Cluster: TCP sockets in use",
            "",
            _make_node_curves(found, shift, lambda state: state.tcp_in_use),
            digits=0,
        ),
        Chart(
            "Cluster: async pendings",
            "",
            _make_node_curves(found, shift, lambda state: state.async_pending),
            digits=0,
        ),
        Chart("Cluster: fullest device", "% used", _make_node_curves(found, shift, _fullest_share), digits=1),
        Chart(
            "Cluster: PUTs of object servers by device (statsd)",
            "ms/kB",
            _make_device_curves(observation, shift),
            digits=3,
        ),
    ]
    # What was seen before the run may be from long before it: while initial objects were uploaded.
    shown = [replace(chart, wider=True) for chart in made if chart.curves]
    if shown:
        shown[0] = replace(shown[0], note="Before the first send and after the run: move the time line.")
    return shown


def _fullest_share(state: State) -> float | None:
    shares = [100 * disk.used_share for disk in state.disks or () if disk.mounted]
    return max(shares, default=None)


def _make_node_curves(
    found: list[ObservedNode], shift: float, value: Callable[[State], float | None]
) -> list[Curve]:
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
    curves = sorted(curves, key=lambda each: -max(each[1].values()))[:_MAX_CURVES]
    # By name, so that a node has the same line in each chart.
    curves.sort(key=lambda each: each[0])
    return [_make_curve(name, points, shift, place) for place, (name, points) in enumerate(curves)]


def _make_device_curves(observation: Observation, shift: float) -> list[Curve]:
    """Return a curve for each device, the slowest ones where they are too many."""
    if observation.statsd is None:
        return []
    found = []
    for metric in observation.statsd.metrics:
        device = device_of_metric(metric)
        points = {each.at: each.total / each.count for each in metric.intervals if each.count}
        if device is not None and points:
            found.append((device, points))
    found.sort(key=lambda each: -sum(each[1].values()) / len(each[1]))
    return [
        _make_curve(name, points, shift, place) for place, (name, points) in enumerate(found[:_MAX_CURVES])
    ]


def _make_curve(name: str, points: dict[float, float], shift: float, place: int) -> Curve:
    moments = sorted(points)
    step = -(-len(moments) // _MAX_POINTS)
    # The highest of those that are put together.
    x = [moments[first] + shift for first in range(0, len(moments), step)]
    y = [
        max(points[moment] for moment in moments[first : first + step])
        for first in range(0, len(moments), step)
    ]
    return Curve(
        name[:60],
        np.array(x),
        np.array(y),
        GREY,
        width=2.2 - place / 8,
        dash=CURVE_DASHES[place % len(CURVE_DASHES)],
    )


def _make_version_table(observation: Observation) -> Table:
    rows = [
        [
            server.url,
            server.kind,
            (server.last.version if server.last else None) or "",
            format_count(server.asked),
            format_count(server.unanswered),
        ]
        for server in observation.servers
    ]
    rows += [[proxy.url, "proxy", proxy.version or "", "", ""] for proxy in observation.proxies]
    return Table(make_columns("server", "kind", "version", "asked", "unanswered", texts=3), rows)
