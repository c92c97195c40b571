"""What was seen of the cluster beside a run, on the time line of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ssbench.cluster.judgments import Node, judge, nodes, sentences
from ssbench.cluster.observation import Observation, State
from ssbench.document import Chart, Curve, Element, Item, Items, Table, columns_of
from ssbench.document.colours import GREY
from ssbench.figures.units import count
from ssbench.reports.cluster import device_of, tables
from ssbench.reports.curves import DASHES
from ssbench.statistics import RunStatistics

#: Curves and points of a chart, beyond which nodes and devices are left out and samples thinned out.
_MOST_CURVES = 12
_MOST_POINTS = 300


def elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield sentences and tables; none where the cluster was not observed."""
    observation = statistics.cluster
    if observation is None or statistics.start is None:
        return
    words = sentences(judge(observation), warnings=True) + sentences(judge(observation), warnings=False)
    yield Items([Item(each) for each in words])
    yield from tables(observation)
    yield _versions(observation)


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
            _devices(observation, shift),
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


def _devices(observation: Observation, shift: float) -> list[Curve]:
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


def _versions(observation: Observation) -> Table:
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
