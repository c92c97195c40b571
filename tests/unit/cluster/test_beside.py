"""What statsd says of each device, by the names of the logs."""

from __future__ import annotations

from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster.addresses import Addresses
from ssbench.cluster.beside import of_devices, of_nodes
from ssbench.results.observation import Interval, Metric, Observation, Server, State, Statsd

JOINED = simulate(1, Cause(), Shape(devices=4, nodes=3, requests=50))


def metric(prefix: str, device: str, *intervals: Interval) -> Metric:
    return Metric(f"{prefix}.object-server.PUT.{device}.timing", True, intervals)


def test_averages_are_of_all_intervals_of_devices_that_the_logs_know() -> None:
    metrics = (
        metric("n0", "d0", Interval(0.0, 10.0, 10.0), Interval(5.0, 50.0, 10.0)),
        metric("n1", "d1", Interval(0.0, 40.0, 10.0)),
        metric("n2", "d2"),  # nothing came of it
        metric("elsewhere", "d9", Interval(0.0, 90.0, 1.0)),
        Metric("n0.object-server.GET.timing", True, (Interval(0.0, 90.0, 1.0),)),
    )
    addresses = Addresses(JOINED, {})
    assert of_devices(Observation(statsd=Statsd(metrics=metrics)), addresses) == {
        "d0 on n0": "its PUTs take 3.00 ms/kB (other devices 4.00, median)",
        "d1 on n1": "its PUTs take 4.00 ms/kB (other devices 3.00, median)",
    }
    assert of_devices(Observation(statsd=Statsd(metrics=metrics[:1])), addresses) == {
        "d0 on n0": "its PUTs take 3.00 ms/kB"
    }
    assert of_devices(None, addresses) == of_devices(Observation(), addresses) == {}


def test_nodes_of_which_nothing_is_remarkable_have_no_words() -> None:
    states = [State(load=0.5), State(load=0.4, async_pending=0), State(async_pending=0)]
    server = Server("http://10.0.0.2:6200", "object", before=states[0], during=(states[1],), after=states[2])
    addresses = Addresses(JOINED, {"10.0.0.2": "n1"})
    assert of_nodes(Observation(servers=(server,)), addresses) == {"n1": []}
    assert of_nodes(Observation(servers=(server,)), Addresses(JOINED, {})) == {}
    assert of_nodes(None, addresses) == {}
