"""What stands beside the logs of a run: errors under the nodes' names, recon, an overloaded generator."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from golden_words import GoldenWords
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster import attribution_report, finding_sentences
from ssbench.cluster.attribution_records import AttributionFacts
from ssbench.cluster.findings import make_attribution
from ssbench.cluster.joined_run import Device
from ssbench.cluster.node_addresses import NodeAddresses, parse_node_addresses
from ssbench.results.cluster_observation import (
    Disk,
    Metric,
    MetricInterval,
    Observation,
    Server,
    State,
    Statsd,
)

SMALL = Shape(devices=4, nodes=3, requests=400)
ERRORS = Counter(
    {
        ("timeout", "object", "10.0.0.2:6200", "d1"): 3,
        ("limited", "", "10.0.0.2:6200", "d1"): 1,
    }
)


def test_errors_are_the_first_line_under_the_names_of_the_logs(golden_words: GoldenWords) -> None:
    found = make_attribution(replace(simulate(1, Cause(), SMALL), errors=ERRORS))
    first, *others = finding_sentences.describe_attribution(found)
    golden_words(first)
    assert others == []
    assert ("timeout", "d1 on n1 (object 10.0.0.2:6200/d1)", 3) in found.errors


def test_errors_of_all_devices_of_a_server_are_one_finding() -> None:
    joined = simulate(1, Cause(), SMALL)
    errors = Counter(
        {
            ("connection", "container", "10.0.0.2:6201", "c1"): 3,
            ("connection", "container", "10.0.0.2:6201", "c8"): 2,
            ("connection", "container", "10.0.0.2:6201", "c9"): 4,
            ("limited", "", "10.0.0.2:6201", "c9"): 1,
            ("connection", "object", "10.0.0.9:6200", "x1"): 1,
        }
    )
    first, second = finding_sentences.describe_attribution(make_attribution(replace(joined, errors=errors)))
    assert first.startswith(
        "container server on n1 (c1, c8 and c9): no connection 9 times, error limited once by "
    )
    assert second.startswith("object server 10.0.0.9:6200/x1: no connection once by ")
    # Where one of them is full, each is one by itself.
    errors["507", "container", "10.0.0.2:6201", "c8"] = 5
    names = {each.name for each in make_attribution(replace(joined, errors=errors)).findings}
    assert names >= {"container server's c1 on n1", "container server 10.0.0.2:6201/c8"}


def test_a_time_in_which_nothing_ended_is_no_all_clear(golden_words: GoldenWords) -> None:
    joined = simulate(1, Cause(), SMALL)
    operations = joined.operations
    ended, latency = operations.ended.copy(), operations.latency.copy()
    # Two users wait for the same, from 4 s on.
    ended[200:] += 6.0
    latency[200:202] += 6.0
    stopped = replace(joined, operations=replace(operations, ended=ended, latency=latency))
    (first, *_) = finding_sentences.describe_attribution(make_attribution(stopped))
    golden_words(first)
    said = attribution_report.make_attribution_verdict(make_attribution(stopped))
    golden_words(said.title)
    assert said.facts[0] == "6 s"
    golden_words(finding_sentences.describe_attribution(make_attribution(joined))[0])


def test_when_errors_and_handoffs_were(golden_words: GoldenWords) -> None:
    # 400 results in 8 s.
    places = {key: (50, 99) if key[0] == "timeout" else (75, 200) for key in ERRORS}
    handoffs = np.zeros(400, np.int64)
    handoffs[[100, 102, 150]] = 1
    joined = replace(simulate(1, Cause(), SMALL), errors=ERRORS, error_places=places, handoffs=handoffs)
    found = make_attribution(joined)
    first, second = finding_sentences.describe_attribution(found)
    golden_words(first)
    golden_words(second)
    golden_words(second)
    # So few of them alone do not take the place of an all-clear.
    clear, *others = finding_sentences.describe_attribution(
        make_attribution(replace(joined, errors=Counter()))
    )
    golden_words(clear)
    assert second in others
    many = replace(joined, errors=Counter(), handoffs=(np.arange(400) % 40 == 0).astype(np.int64))
    first, *_ = finding_sentences.describe_attribution(make_attribution(many))
    golden_words(first)


def test_a_device_that_answers_507_is_named_once() -> None:
    joined = simulate(1, Cause(), SMALL)
    status = joined.lines.status.copy()
    status[(joined.lines.device == 1).nonzero()[0][:7]] = 507
    found = make_attribution(
        replace(joined, lines=replace(joined.lines, status=status), errors=ERRORS),
        AttributionFacts(cluster=_observed(State(disks=(Disk("d1", mounted=False),), load=21.0))),
    )
    first = finding_sentences.describe_attribution(found)[0]
    assert re.match(
        r"d1 on n1 answered 507 to 7 requests \(\d\.\d\d % of all\), from [\d.]+ s to [\d.]+ s of 8 s: not"
        " mounted, full or broken; handoffs took",
        first,
    ), first
    assert "(proxies' logs: timeout 3 times, error limited once)." in first
    assert "Recon saw on its node: load 21, d1 not mounted." in first
    assert [each.kind for each in found.findings].count("error") == 0


def _observed(state: State) -> Observation:
    return Observation(servers=(Server("http://10.0.0.2:6200", "object", before=state, after=state),))


def test_what_recon_saw_stands_beside_a_suspect() -> None:
    state = State(load=21.4, async_pending=12, disks=(Disk("d1", size=100, used=95),))
    found = make_attribution(
        simulate(1, Cause(devices=(1,)), SMALL), AttributionFacts(cluster=_observed(state))
    )
    assert found.findings[0].beside == ["load 21", "d1 95.0 % full", "12 async pendings"]
    assert (
        "Recon saw on its node: load 21, d1 95.0 % full, 12 async pendings. Next: "
        in finding_sentences.describe_attribution(found)[0]
    )


def test_what_statsd_says_of_a_suspect_stands_beside_it() -> None:
    joined = simulate(1, Cause(devices=(1,)), SMALL)
    metrics = tuple(
        Metric(
            f"{prefix}.object-server.PUT.{device}.timing",
            True,
            (MetricInterval(0.0, total, 10.0, {1: 10.0}),),
        )
        for prefix, device, total in (
            ("n0", "d0", 1.0),
            ("10_0_0_2", "d1", 50.0),  # by the device's name
            ("n2.example.org", "d2", 3.0),
            ("elsewhere", "d9", 99.0),
        )
    )
    observed = Observation(statsd=Statsd(lines=3, metrics=metrics))
    found = make_attribution(joined, AttributionFacts(cluster=observed))
    assert found.findings[0].statsd == "its PUTs take 5.00 ms/kB (other devices 0.200, median)"
    assert (
        " By statsd its PUTs take 5.00 ms/kB (other devices 0.200, median). Next: "
        in finding_sentences.describe_attribution(found)[0]
    )
    # Names of nodes with their domain, or with what statsd allows in a name.
    named = replace(
        joined, devices=[Device(f"{each.node}.a.org", each.server, "sda") for each in joined.devices]
    )
    known = NodeAddresses(named, {"10.0.0.1": "n0.a.org"})
    assert known.of_prefix("n0", "sda") == known.of_prefix("n0_a_org", "sda") == "sda on n0.a.org"
    assert known.of_prefix("10.0.0.1", "sda") == "sda on n0.a.org"
    assert known.of_prefix("n7", "sda") is None


def test_where_names_of_devices_repeat_only_addresses_tell() -> None:
    joined = simulate(1, Cause(), SMALL)
    repeated = [Device(each.node, each.server, "sda") for each in joined.devices]
    joined = replace(joined, devices=repeated)
    assert NodeAddresses(joined, {}).name("10.0.0.2:6200", "sda", "object") is None
    hosts = parse_node_addresses(["n1=10.0.0.2", "n2=10.0.0.3:6200,10.0.0.3:6201"])
    known = NodeAddresses(joined, hosts)
    assert known.name("10.0.0.2:6200", "sda", "object") == "sda on n1"
    assert known.name("10.0.0.3:6201", "sda", "container") == "container server's sda on n2"
    assert known.name("10.0.0.3:6209", "sda", "object") is None
    # IPv6, and a node that is called by its address.
    assert NodeAddresses(joined, {"fe80::1": "n0"}).name("[fe80::1]:6200", "sda", "") == "sda on n0"


@pytest.mark.parametrize("word", ["n1", "=10.0.0.1", "n1=", "n1=a,,b"])
def test_wrong_hosts(word: str) -> None:
    with pytest.raises(ValueError, match="expected NODE=ADDRESS"):
        parse_node_addresses([word])


def test_servers_without_a_log_are_named() -> None:
    joined = simulate(1, Cause(), SMALL)
    errors = Counter({("timeout", "object", "10.0.0.9:6200", "d9"): 1})
    observed = Observation(
        servers=(Server("http://10.0.0.8:6200", "object", after=State(disks=(Disk("d8"),))),)
    )
    found = make_attribution(replace(joined, errors=errors), AttributionFacts(cluster=observed))
    assert found.unlogged == ["10.0.0.8:6200", "10.0.0.9:6200"]
    # Where each node has a device of this name, it may be one that has a log.
    alike = replace(joined, devices=[Device(each.node, each.server, "sda") for each in joined.devices])
    of_one = Counter({("timeout", "object", "10.0.0.9:6200", "sda"): 1})
    disks = Observation(
        servers=(Server("http://10.0.0.8:6200", "object", after=State(disks=(Disk("sda"),))),)
    )
    assert make_attribution(replace(alike, errors=of_one), AttributionFacts(cluster=disks)).unlogged == []
    # The ring knows them too; not those that the user names.
    facts = AttributionFacts({"10.0.0.2": "n1"}, unlogged=("10.0.0.2:6200", "10.0.0.7:6200"))
    assert make_attribution(alike, facts).unlogged == ["10.0.0.7:6200"]


def test_an_overloaded_generator_is_said_where_nobody_is_slow(golden_words: GoldenWords) -> None:
    words = "Load generator overloaded: worker 0 on vm was 12.80 ms late"
    facts = AttributionFacts(overload=(words,))
    found = make_attribution(simulate(1, Cause(), SMALL), facts)
    first, second = finding_sentences.describe_attribution(found)
    verdict = attribution_report.make_attribution_verdict(found)
    golden_words(verdict.title)
    assert verdict.facts == ["400 of 400 operations compared"]
    golden_words(first)
    assert second == f"{words}."
