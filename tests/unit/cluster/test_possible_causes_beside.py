"""What statsd says of each device, by the names of the logs."""

from __future__ import annotations

from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster.judgments import BUSY_LOAD
from ssbench.cluster.node_addresses import NodeAddresses
from ssbench.cluster.possible_causes import describe_observed_devices, describe_observed_nodes
from ssbench.results.cluster_observation import (
    Disk,
    Metric,
    MetricInterval,
    Observation,
    Server,
    State,
    Statsd,
)

JOINED = simulate(1, Cause(), Shape(devices=4, nodes=3, requests=50))


def metric(prefix: str, device: str, *intervals: MetricInterval) -> Metric:
    return Metric(f"{prefix}.object-server.PUT.{device}.timing", True, intervals)


def test_averages_are_of_all_intervals_of_devices_that_the_logs_know() -> None:
    metrics = (
        metric("n0", "d0", MetricInterval(0.0, 10.0, 10.0), MetricInterval(5.0, 50.0, 10.0)),
        metric("n1", "d1", MetricInterval(0.0, 40.0, 10.0)),
        metric("n2", "d2"),  # nothing came of it
        metric("elsewhere", "d9", MetricInterval(0.0, 90.0, 1.0)),
        Metric("n0.object-server.GET.timing", True, (MetricInterval(0.0, 90.0, 1.0),)),
    )
    addresses = NodeAddresses(JOINED, {})
    assert describe_observed_devices(Observation(statsd=Statsd(metrics=metrics)), addresses) == {
        "d0 on n0": "its PUTs take 3.00 ms/kB (other devices 4.00, median)",
        "d1 on n1": "its PUTs take 4.00 ms/kB (other devices 3.00, median)",
    }
    assert describe_observed_devices(Observation(statsd=Statsd(metrics=metrics[:1])), addresses) == {
        "d0 on n0": "its PUTs take 3.00 ms/kB"
    }
    assert (
        describe_observed_devices(None, addresses)
        == describe_observed_devices(Observation(), addresses)
        == {}
    )


def test_nodes_of_which_nothing_is_remarkable_have_no_words() -> None:
    states = [State(load=0.5), State(load=0.4, async_pending=0), State(async_pending=0)]
    server = Server("http://10.0.0.2:6200", "object", before=states[0], during=(states[1],), after=states[2])
    addresses = NodeAddresses(JOINED, {"10.0.0.2": "n1"})
    assert describe_observed_nodes(Observation(servers=(server,)), addresses) == {"n1": []}
    assert describe_observed_nodes(Observation(servers=(server,)), NodeAddresses(JOINED, {})) == {}
    assert describe_observed_nodes(None, addresses) == {}


def described(before: State | None, *during: State, after: State | None = None) -> list[str]:
    server = Server("http://10.0.0.2:6200", "object", before=before, during=during, after=after)
    addresses = NodeAddresses(JOINED, {"10.0.0.2": "n1"})
    return describe_observed_nodes(Observation(servers=(server,)), addresses)["n1"]


def test_the_most_of_all_moments_is_said() -> None:
    quiet = State(load=0.5, async_pending=3)
    assert described(quiet, State(load=4 * BUSY_LOAD, async_pending=1200), after=quiet) == [
        f"load {round(4 * BUSY_LOAD)}",
        "1,200 async pendings",
    ]
    assert described(quiet, after=State(async_pending=0)) == ["3 async pendings"]
    assert described(None, State(load=BUSY_LOAD)) == []


def test_disks_are_said_that_are_not_mounted_or_full_and_each_once() -> None:
    disks = (Disk("d1", mounted=False), Disk("d2", size=1000, used=990), Disk("d3", size=1000, used=100))
    state = State(disks=disks)
    assert described(state, after=state) == ["d1 not mounted", "d2 99.0 % full"]
    assert described(None, state) == []  # disks are asked for before and after the run
    assert described(None, after=state) == ["d1 not mounted", "d2 99.0 % full"]
