"""The cluster beside a run: from answers and lines to records, and what is remarkable about them."""

from __future__ import annotations

import importlib.metadata
import json
import math
import random
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from section_lines import section_lines

from ssbench.base.errors import UsageError
from ssbench.cluster import recon, report, ring, statsd
from ssbench.cluster.judgments import (
    ClusterJudgment,
    JudgmentKind,
    describe_judgments,
    group_nodes,
    judge_cluster,
)
from ssbench.cluster.observer import parse_recon_url
from ssbench.cluster.recon import Sampler
from ssbench.document.elements import Section
from ssbench.results.cluster_observation import (
    Disk,
    Metric,
    MetricInterval,
    Observation,
    Proxy,
    Server,
    State,
    Statsd,
)

DATA = Path(__file__).parents[2] / "data" / "cluster"


def genuine_answers(server: str) -> dict[str, bytes]:
    """What a real Swift 2.38.3 answered, by path."""
    lines = (DATA / "recon.txt").read_text().splitlines()
    found = (re.fullmatch(rf"{server}:\d+ /recon/(\S+) (.*) \[200\]", line) for line in lines)
    return {match[1]: match[2].encode() for match in found if match}


# -- recon -----------------------------------------------------------------------------------------------


def test_genuine_answers():
    state = recon.parse_recon_state(genuine_answers("o1"), 1.5)
    assert state == State(
        at=1.5,
        load=1.28,
        tcp_in_use=40,
        time_wait=344,
        orphans=0,
        tcp_memory=782336,
        disks=(Disk("d1", mounted=False), Disk("d4", mounted=False)),
        version="2.38.3",
        root="/srv/swift/node/o1",
        quarantined=0,
    )
    later = recon.parse_recon_state({**genuine_answers("o3"), "time": b"1795301178.5"}, 2.0)
    assert later.disks == (Disk("d3", mounted=False), Disk("d9", size=4194304))
    assert later.quarantined == 1
    assert later.replication_age == {"object": pytest.approx(1795301178.5 - 1795301078.759399)}
    assert later.replication_seconds == {"object": pytest.approx(0.0358001192410787 * 60)}
    counted = recon.parse_recon_state(genuine_answers("o2"), 0.0)
    assert (counted.async_pending, counted.async_counted) == (2, 1795301203.877286)


def test_an_error_in_place_of_mounted_is_not_mounted():
    disk = {
        "device": "d1",
        "mounted": "[Errno 5] Input/output error: 'd1'",
        "size": "",
        "used": "",
        "avail": "",
    }
    assert recon.parse_recon_state({"diskusage": json.dumps([disk]).encode()}, 0.0).disks == (
        Disk("d1", mounted=False),
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["1m", "swift"]), inner),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from([*recon.EACH_ROUND_PATHS, *recon.BOTH_ENDS_PATHS]),
        st.binary() | JSON.map(lambda value: json.dumps(value).encode()),
    )
)
def test_no_answer_raises_anything(answers: dict[str, bytes]):
    state = recon.parse_recon_state(answers, 0.0)
    assert msgspec.json.decode(msgspec.json.encode(state), type=State) == state
    for answer in answers.values():
        recon.parse_proxy_info("http://p", answer)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("load", {"1m": -1e308}),
        ("async", {"async_pending": -1}),
        ("async", {"async_pending_last": 1e308}),
        ("sockstat", {"tcp_in_use": 2**60}),
        ("sockstat", {"tcp_mem_allocated_bytes": -(2**62)}),
        ("time", -1e308),
        ("quarantined", {"objects": -1}),
        ("replication/object", {"replication_time": 1e308}),
        ("replication/account", {"replication_last": -1e308}),
        ("reconstruction/object", {"object_reconstruction_time": 1e12}),
        ("diskusage", [{"device": "d1", "size": -1}]),
    ],
)
def test_a_number_that_no_server_can_have_is_left_out(path: str, answer: object):
    state = recon.parse_recon_state({**genuine_answers("o3"), path: json.dumps(answer).encode()}, 0.0)
    assert msgspec.json.decode(msgspec.json.encode(state), type=State) == state
    whole = recon.parse_recon_state(genuine_answers("o3"), 0.0)
    assert state.unsound == (path,)
    assert state.version == whole.version
    seen = Observation(servers=(server(4, state), server(5, whole)))
    assert describe_judgments(judge_cluster(seen), warnings=True)[0] == (
        f"Left out, because no server can have such numbers, what recon says of {path} at 10.0.0.4:6200"
    )


def test_info_of_a_proxy():
    info = {
        "swift": {
            "version": "2.38.3",
            "strict_cors_mode": True,
            "max_file_size": 5368709122,
            "policies": [{"name": "silver", "aliases": "silver"}, {"name": "gold", "default": True}],
        },
        "slo": {"max_manifest_segments": 1000},
    }
    assert recon.parse_proxy_info("http://p:8080", json.dumps(info).encode()) == Proxy(
        "http://p:8080", "2.38.3", ("gold", "silver"), {"max_file_size": 5368709122}, ("slo",)
    )
    assert recon.parse_proxy_info("http://p", b'{"swift": 3}').failure == "its /info is not that of a Swift"


# -- statsd ----------------------------------------------------------------------------------------------


def test_every_genuine_line_is_understood():
    lines = (DATA / "statsd.txt").read_bytes().splitlines()
    parsed = [statsd.parse_statsd_line(line) for line in lines]
    assert None not in parsed
    assert {line.timer for line in parsed if line} == {True, False}
    assert statsd.parse_statsd_line(b"o1.object-server.HEAD.timing:0.5|ms|@0.8") == statsd.StatsdValue(
        "o1.object-server.HEAD.timing", True, 0.5, 1.25
    )
    assert statsd.parse_statsd_line(b"p1.proxy-server.object.PUT.201.xfer:4096|c") == statsd.StatsdValue(
        "p1.proxy-server.object.PUT.201.xfer", False, 4096.0, 1.0
    )


@pytest.mark.parametrize(
    "line",
    [
        b"", b"a", b"a:1", b"a:|ms", b"a:1|s", b"a:-1|ms", b"a:nan|ms", b"a:inf|c", b"a:1|ms|@0",
        b"a:1|ms|@2",
        b"a:1|ms|@.", b"a:1e99|c", b"a b:1|c", b"\xff:1|c", b"a:1|c|#k:v", b"a" * 201 + b":1|c", b"a:1|c\n",
    ],
)  # fmt: skip
def test_strange_lines(line: bytes):
    assert statsd.parse_statsd_line(line) is None


@given(st.binary(max_size=200) | st.from_regex(rb"[a-z.]{1,5}:[-0-9.e]{1,8}\|(ms|c)(\|@[0-9.e-]{1,6})?"))
def test_the_parser_raises_nothing(data: bytes):
    line = statsd.parse_statsd_line(data)
    if line is not None:
        assert math.isfinite(line.value)
        assert 1 <= line.weight <= 10_000
        assert not (line.timer and line.value < 0)
    aggregator = statsd.Aggregator(5.0)
    aggregator.datagram(data, 1.0)
    received = aggregator.result(1, 0)
    assert received.lines + received.strange == max(1, len(data.splitlines()))
    assert msgspec.json.decode(msgspec.json.encode(received), type=Statsd) == received


def test_percentiles_are_off_by_three_percent_at_most():
    numbers = np.random.default_rng(1).lognormal(2, 2, 5000)
    aggregator = statsd.Aggregator(5.0)
    for place, number in enumerate(numbers):
        aggregator.datagram(b"x.timing:%.4f|ms" % number, place / 50)
    (metric,) = aggregator.result(1, 0).metrics
    assert len(metric.intervals) == 20
    together = statsd.merge_intervals(metric.intervals)
    assert together.count == 5000
    assert together.total == pytest.approx(numbers.sum(), rel=1e-4)
    for rank in (1, 50, 99, 100):
        exact = np.percentile(numbers, rank, method="inverted_cdf")
        assert statsd.timer_percentile(together, rank) == pytest.approx(exact, rel=0.032)
    assert math.isnan(statsd.timer_percentile(MetricInterval(0.0), 50))


def test_sampled_lines_count_as_often_as_their_rate_says():
    aggregator = statsd.Aggregator(5.0)
    aggregator.datagram(b"t:8|ms|@0.1\nc:2|c|@0.5\nc:-1|c\n", 7.0)
    counter, timer = aggregator.result(1, 0).metrics
    assert counter == Metric("c", False, (MetricInterval(5.0, total=3.0),))
    assert (timer.intervals[0].count, timer.intervals[0].total) == (10.0, 80.0)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(statsd, "MAX_NAMES", 20)
    monkeypatch.setattr(statsd, "MAX_METRIC_NUMBERS", 300)
    aggregator = statsd.Aggregator(1.0)
    draw = random.Random(1)
    for second in range(1000):
        aggregator.datagram(b"t%d:%d|ms" % (draw.randrange(25), draw.choice((1, 1000))), second)
    received = aggregator.result(1, 0)
    assert received.seconds > 16
    assert len(received.metrics) == 20
    assert received.lines + received.nameless == 1000
    assert received.nameless > 100
    kept = [each for metric in received.metrics for each in metric.intervals]
    assert sum(1 + len(each.buckets) for each in kept) <= 300
    assert sum(each.count for each in kept) == received.lines


# -- judgments -------------------------------------------------------------------------------------------


def server(number: int, before: State | None, after: State | None = None, **facts) -> Server:
    url = f"http://10.0.0.{number}:{facts.pop('port', 6200)}"
    return Server(url, facts.pop("kind", "object"), asked=3, before=before, after=after, **facts)


def test_a_machine_under_load_is_not_at_rest():
    busy, quiet = (State(root="/srv/node", load=load) for load in (21.4, 8.0))
    seen = Observation(servers=(server(4, busy), server(5, quiet), server(6, quiet, busy)))
    assert describe_judgments(judge_cluster(seen), warnings=True) == [
        "Busy before the run, with a load above 8: 10.0.0.4 (21)",
    ]


def test_what_was_wrong_before_the_run():
    disks = (Disk("d1", size=1000, used=930), Disk("d2", mounted=False), Disk("d3", size=1000, used=900))
    state = State(root="/srv/node", disks=disks, replication_age={"object": 31 * 3600.0, "container": 60.0})
    account = State(root="/srv/node", disks=disks, replication_age={"object": 31 * 3600.0})
    state = msgspec.structs.replace(state, async_pending=1204)
    seen = Observation(servers=(server(4, account, port=6202, kind="account"), server(4, state)))
    assert [node.name for node in group_nodes(seen)] == ["10.0.0.4"]
    assert judge_cluster(seen) == [  # each once, though two servers tell of it
        ClusterJudgment(JudgmentKind.NOT_MOUNTED, "10.0.0.4", "d2"),
        ClusterJudgment(JudgmentKind.FULL, "10.0.0.4", "d1", 0.93),
        ClusterJudgment(JudgmentKind.LATE, "10.0.0.4", "object", 31 * 3600.0),
        ClusterJudgment(JudgmentKind.PENDING, "10.0.0.4", value=1204),
    ]
    assert describe_judgments(judge_cluster(seen), warnings=True) == [
        "Not mounted before the run: d2 on 10.0.0.4",
        "Over 90 % full before the run: d1 on 10.0.0.4 (93.0 %)",
        "No pass of replication ended in the 24 h before the run: object on 10.0.0.4 (31 h)",
        "Async pendings before the run: 1,204 on 10.0.0.4",
    ]
    assert describe_judgments(judge_cluster(seen), warnings=False) == []


def test_what_the_run_changed():
    old = State(
        root="/srv/node",
        async_pending=3,
        async_counted=100.0,
        quarantined=0,
        disks=(Disk("d1", size=100, used=89), Disk("d2", size=100)),
    )
    new = State(
        root="/srv/node",
        async_pending=1207,
        async_counted=400.0,
        quarantined=2,
        disks=(Disk("d1", size=100, used=92), Disk("d2", mounted=False)),
    )
    seen = Observation(servers=(server(4, old, new), server(5, old, old)))
    found = judge_cluster(seen)
    assert "Async pendings: +1,204 on 10.0.0.4" in describe_judgments(found, warnings=False)
    assert "Quarantined: +2 on 10.0.0.4" in describe_judgments(found, warnings=False)
    assert ClusterJudgment(JudgmentKind.NOT_COUNTED, "10.0.0.5") in found
    assert ClusterJudgment(JudgmentKind.LOST, "10.0.0.4", "d2") in found
    assert ClusterJudgment(JudgmentKind.FILLED, "10.0.0.4", "d1", 0.92) in found


def test_a_cluster_at_rest_is_not_remarkable():
    state = State(root="/srv/node", version="2.35.0", async_pending=0, async_counted=1.0, disks=(Disk("d1"),))
    later = msgspec.structs.replace(state, async_counted=2.0)
    seen = Observation(servers=tuple(server(number, state, later) for number in range(300)))
    assert judge_cluster(seen) == []


def test_hundreds_are_one_line():
    state = State(disks=(Disk("d1", mounted=False),))
    seen = Observation(servers=tuple(server(number, state) for number in range(300)))
    (sentence,) = describe_judgments(judge_cluster(seen), warnings=True)
    assert sentence.endswith("and 295 more")
    assert len(sentence) < 200


def test_who_did_not_answer_and_what_did_not_come():
    seen = Observation(
        servers=(
            server(4, None, unanswered=3, failure="Connection refused"),
            server(5, State(version="2.38.3"), unanswered=1, failure="no answer in 3 s"),
            server(6, State(version="2.35.0")),
        ),
        proxies=(Proxy("http://p", failure="answered 404"),),
        statsd=Statsd(port=8125, strange=2, dropped=5),
    )
    assert describe_judgments(judge_cluster(seen), warnings=True) == [
        "Recon was not answered by 10.0.0.4:6200 (Connection refused), 10.0.0.5:6200 (1 of 3 times: no answer"
        " in 3 s)",
        "/info was not answered by http://p (answered 404)",
        "The servers have different versions of Swift: 2.35.0 (1), 2.38.3 (1)",
        "No statsd line of Swift came to port 8125",
        "Lines at the statsd port that are not Swift's: 2",
        "Datagrams that the statsd port had no room for: 5",
    ]


def test_servers_of_one_host_with_folders_of_their_own_are_nodes_of_their_own():
    seen = Observation(
        servers=(server(4, State(root="/srv/1"), port=6210), server(4, State(root="/srv/2"), port=6220))
    )
    assert [node.name for node in group_nodes(seen)] == ["10.0.0.4:6210", "10.0.0.4:6220"]


# -- asking -----------------------------------------------------------------------------------------------


def test_a_server_that_says_nothing_holds_nobody_up(monkeypatch: pytest.MonkeyPatch):
    """Not even the others in its thread for long; and what it was asked before the run is no answer to it."""
    with socket.create_server(("127.0.0.1", 0)) as silent, closed_port() as refusing:
        urls = [f"http://127.0.0.1:{silent.getsockname()[1]}", f"http://127.0.0.1:{refusing}"]
        # It would have a minute for its answer.
        monkeypatch.setattr(recon, "_READ_SECONDS", 60.0)
        sampler = Sampler(urls, 60.0, time.monotonic())
        wait_for = sampler._changed.wait_for

        def wait_for_the_other_too(answered: Callable[[], bool], patience: float) -> bool:
            assert wait_for(lambda: not sampler._servers[1].busy, 60.0)
            return wait_for(answered, patience)

        begun = time.monotonic()
        with monkeypatch.context() as patch:
            patch.setattr(sampler._changed, "wait_for", wait_for_the_other_too)
            sampler.before(0.3)
        assert time.monotonic() - begun < 30
        said = sampler.servers()
        assert [server.failure for server in said] == ["no whole answer in 0.3 s", "Connection refused"]
        assert [(server.asked, server.unanswered) for server in said] == [(1, 1), (1, 1)]
        sampler.after(0.1)
        assert all(server.before is None and server.after is None for server in sampler.servers())


@contextmanager
def closed_port() -> Iterator[int]:
    """A port that is bound, so that nobody else gets it, and refuses connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def test_rings_without_a_swift_to_read_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(
        UsageError,
        match=r"needs the package 'swift': pip install swift eventlet \(or [^)]*\); or name the",
    ):
        ring.read_ring_servers(tmp_path)
    with pytest.raises(
        UsageError,
        match=r"--ring needs the package 'swift': pip install swift eventlet \(or [^)]*\)$",
    ):
        ring.find_placed_replicas([tmp_path / "object.ring.gz"], {})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("object.ring.gz", ("object", 0)),
        ("object-12.ring.gz", ("object", 12)),
        ("account.ring.gz", ("account", 0)),
        ("object.builder", None),
        ("objects.ring.gz", None),
    ],
)
def test_what_a_ring_is_of_is_in_its_name(name: str, expected: tuple[str, int] | None):
    if expected is None:
        with pytest.raises(ValueError, match=r"expected object\.ring\.gz, "):
            ring.parse_ring_kind(Path(name))
    else:
        assert ring.parse_ring_kind(Path("/etc/swift", name)) == expected


# -- the rest --------------------------------------------------------------------------------------------


def test_the_section_of_the_report():
    disks = (Disk("d0", mounted=False), Disk("d1", size=100, used=50))
    old = State(root="/srv/node", load=1.0, async_pending=0, disks=disks, version="2.38.3", tcp_in_use=1200)
    peak = msgspec.structs.replace(old, load=7.5)
    puts = tuple(
        Metric(
            f"o1.object-server.PUT.{device}.timing", True, (MetricInterval(0.0, value * 10, 10.0, {1: 10.0}),)
        )
        for device, value in (("d1", 0.01), ("d2", 0.5))
    )
    seen = Observation(servers=(server(4, old, old, during=(peak,)),), statsd=Statsd(lines=20, metrics=puts))
    lines = section_lines(Section("Cluster", report.make_observation_notes(seen)))
    assert lines[:3] == ["Cluster", "  Swift 2.38.3; servers asked: 1", ""]
    assert lines[4].split() == ["10.0.0.4", "1.00", "7.50", "1,200", "d1", "50.0", "%", "0", "to", "0"]
    assert [line.split()[:3] for line in lines if "o1." in line] == [
        ["o1.d2", "10", "0.500"],
        ["o1.d1", "10", "0.0100"],
    ]
    # What a server does not say is not known, and no load of nought.
    silent = Observation(servers=(server(4, msgspec.structs.replace(old, load=None)),))
    assert section_lines(Section("Cluster", report.make_observation_notes(silent)))[4].split()[:3] == [
        "10.0.0.4",
        "N/A",
        "N/A",
    ]
    assert report.make_observation_notes(None) == []
    assert report.make_observation_notes(Observation(failure="nothing")) == []


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://10.0.0.4:6200", "http://10.0.0.4:6200"),
        ("http://10.0.0.4:6200/recon/", "http://10.0.0.4:6200"),
        ("http://[::1]:6200/", "http://[::1]:6200"),
    ],
)
def test_recon_urls(text: str, url: str):
    assert parse_recon_url(text) == url


@pytest.mark.parametrize(
    "text", ["http://10.0.0.4", "10.0.0.4:6200", "http://h:6200/v1", "http://u:p@h:6200"]
)
def test_wrong_recon_urls(text: str):
    with pytest.raises(UsageError, match="--recon"):
        parse_recon_url(text)
