"""The cluster beside a run: a real Swift with recon and statsd, of which a part is out of order."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fault_server import FaultServer, Reply
from processes import Fleet, free_ports
from runs import ENDED, children, store, wait_until, write_scenario
from said import NO_RECON

from ssbench.base.errors import ExitCode, UsageError
from ssbench.cli import master
from ssbench.cluster import ring
from ssbench.cluster.judgments import ClusterJudgment, JudgmentKind, judge_cluster
from ssbench.local_swift import Layout, LocalSwift
from ssbench.results.cluster_observation import Observation
from ssbench.results.reading import open_results

LAYOUT = Layout(replicas=3, devices=4, object_servers=3, access_logs=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalSwift]:
    with LocalSwift(layout=LAYOUT, statsd_port=free_ports(1)[0]) as running:
        yield running


def leave_for_recon(cluster: LocalSwift, server: str, **values: object) -> None:
    """Write what Swift's daemons would leave for the recon middleware."""
    path = cluster.directory / "recon" / server / "object.recon"
    new = path.with_suffix(".new")
    new.write_text(json.dumps(values))
    new.replace(path)


def observed(path: Path) -> tuple[Observation, list[str]]:
    results = open_results(path)
    for _ in results.blocks():
        pass
    assert results.summary is not None
    assert results.summary.cluster is not None
    return results.summary.cluster, results.warnings


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_run_beside_a_cluster_that_is_not_at_rest(
    cluster: LocalSwift, fleet: Fleet, fault_server: FaultServer, tmp_path: Path, container_base: str
):
    fault_server.default = Reply(503)
    initial = {"tiny": 20}
    scenario = write_scenario(tmp_path, container_base=container_base, user_count=4, initial_files=initial)
    environment = {"ST_AUTH": cluster.auth_url, "ST_USER": cluster.user, "ST_KEY": cluster.key}
    cluster.fail("d2")
    old = time.time() - 50 * 3600
    counted = {"async_pending": 7, "async_pending_last": time.time()}
    leave_for_recon(cluster, "object-1", **counted, replication_last=old, replication_time=3.0)
    other = f"127.0.0.1:{fault_server.port}"
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as stranger:
        run = fleet.run(
            scenario,
            "-r", 600,
            "--rate", 15,
            "--workers", 1,
            "--observe", *cluster.recon_urls.values(), f"http://{other}",
            f"statsd:{cluster.statsd_port}",
            environment=environment,
        )  # fmt: skip
        run.wait_for("Starting the benchmark")
        leave_for_recon(cluster, "object-1", async_pending=1211, async_pending_last=time.time())
        stranger.sendto(b"\xff\x00 hello", ("127.0.0.1", cluster.statsd_port))
        run.wait_for(ENDED + "{50}")
        # Four requests a round: eight rounds, in some of which each of the others has its turn, though it may
        # be delayed.
        asked = len(fault_server.requests)
        wait_until(lambda: len(fault_server.requests) >= asked + 32, "samples")
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    cluster.repair("d2")

    seen, warnings = observed(fleet.stats)
    by_kind: dict[JudgmentKind, list[ClusterJudgment]] = {}
    for judgment in judge_cluster(seen):
        by_kind.setdefault(judgment.kind, []).append(judgment)
    names = {name: url.removeprefix("http://") for name, url in cluster.recon_urls.items()}
    assert by_kind[JudgmentKind.NOT_MOUNTED] == [
        ClusterJudgment(JudgmentKind.NOT_MOUNTED, names["object-2"], "d2")
    ]
    assert by_kind[JudgmentKind.PENDING] == [
        ClusterJudgment(JudgmentKind.PENDING, names["object-1"], value=7)
    ]
    assert by_kind[JudgmentKind.MORE_PENDING] == [
        ClusterJudgment(JudgmentKind.MORE_PENDING, names["object-1"], value=1204)
    ]
    assert {each.where for each in by_kind[JudgmentKind.NOT_COUNTED]} == {
        names["object-2"],
        names["object-3"],
    }
    (late,) = by_kind[JudgmentKind.LATE]
    assert (late.where, late.what, round(late.value / 3600)) == (names["object-1"], "object", 50)
    silent = next(each for each in by_kind[JudgmentKind.UNANSWERED] if each.where == other)
    assert silent.reason == f"answered 503: {NO_RECON} pipeline?"
    assert by_kind[JudgmentKind.STRANGE] == [ClusterJudgment(JudgmentKind.STRANGE, value=1)]
    assert JudgmentKind.VERSIONS not in by_kind

    printed = " ".join(run.out.split())
    for warning in (
        f"Not mounted before the run: d2 on {names['object-2']}",
        f"Recon was not answered by {other} ({silent.reason})",
    ):
        assert warning in warnings
        assert run.err.count(warning) == 1  # as soon as it is known, and once
        assert run.err.index(warning) < run.err.index("Starting the benchmark")
        assert f" {warning} " in printed
    assert f" Async pendings: +1,204 on {names['object-1']} " in printed
    assert f" {cluster.address}: policies gold, silver (the first is the default) " in printed

    assert {server.name: server.kind for server in seen.servers} == {
        names[name]: name.rstrip("-123") for name in names
    } | {other: ""}
    alive = [server for server in seen.servers if server.kind]
    assert all(server.during and server.before and server.after for server in alive)
    assert all(state.load is not None for server in alive for state in server.during)
    (proxy,) = seen.proxies
    assert proxy.constraints["max_file_size"] == 5368709122
    assert "slo" in proxy.features

    assert seen.statsd is not None
    metrics = {metric.name: metric for metric in seen.statsd.metrics}
    puts = metrics["proxy.proxy-server.object.PUT.201.timing"]
    # All creates, updates and initial objects; a datagram may be lost even on this host.
    assert sum(each.count for each in puts.intervals) + seen.statsd.dropped >= 60
    on_d1 = metrics["object-1.object-server.PUT.d1.timing"]
    assert sum(sum(each.buckets.values()) for each in on_d1.intervals) == sum(
        each.count for each in on_d1.intervals
    )
    assert "object-1.d1 " in run.out


def test_the_servers_of_ring_files(cluster: LocalSwift, tmp_path: Path):
    assert set(ring.read_ring_servers(cluster.directory / "etc")) == set(cluster.recon_urls.values())
    with pytest.raises(UsageError, match="no ring file there"):
        ring.read_ring_servers(tmp_path)
    objects = ring.RingKind("object", 0)
    (found,) = ring.find_placed_replicas(
        [cluster.directory / "etc" / "object.ring.gz"], {objects: [0, 3, 2**24]}
    ).values()
    owners, urls = cluster.layout.device_owners, cluster.recon_urls
    assert [len(found[each]) for each in (0, 3, 2**24)] == [cluster.layout.replicas] * 2 + [0]
    for each in found[0] + found[3]:
        assert f"http://{each.ip}:{each.port}" == urls[owners[each.device]].removesuffix("/recon")
    # Devices without end, a pickle that would run a command, an address that is none.
    endless = b'{"part_shift": 24, "replica_count": 1, "devs": [' + b"{}," * 10_000_000 + b"{}]}"
    strange = b'{"part_shift": 24, "replica_count": 1, "devs": [{"ip": "a b", "port": 1, "region": 1}]}'
    for content, reason in (
        (b"\x80\x02cposix\nsystem\nX\x04\0\0\0true\x85R.", "it is not a ring file"),
        (_ring(endless), "more than 512 MiB of memory"),
        (_ring(strange), "'a b' with port 1 is no address of a server"),
    ):
        (tmp_path / "object.ring.gz").write_bytes(gzip.compress(content, 1))
        with pytest.raises(UsageError) as caught:
            ring.read_ring_servers(tmp_path)
        assert "object.ring.gz: not a ring file that this Swift can read: " in str(caught.value)
        assert reason in str(caught.value)


def _ring(description: bytes) -> bytes:
    return b"R1NG\0\1" + struct.pack("!I", len(description)) + description


def test_options_that_cannot_be_end_before_anything_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as other:
        other.bind(("", 0))
        taken = other.getsockname()[1]
        for options, message in (
            (["--observe", f"statsd:{taken}"], f"--observe statsd:{taken}: Address already in use"),
            (
                ["--observe", "http://user:secret@10.0.0.4:6200"],
                "a user name or password in a URL is refused",
            ),
            (["--observe", "http://10.0.0.4"], "--observe 'http://10.0.0.4': expected the URL"),
            (["--observe", str(tmp_path)], "no ring file there"),
        ):
            stats = tmp_path / "x.stat.gz"
            command = ["run-scenario", "-f", "very_small", "--noop", "-s", str(stats), *options]
            assert master.main(command) == 2
            said = capsys.readouterr().err
            assert message in said
            assert "secret" not in said
            assert not stats.exists()


def test_a_run_ends_though_its_observer_was_killed(fleet: Fleet, tmp_path: Path):
    with store() as (rule, options):
        rule.hold(100)
        run = fleet.run(write_scenario(tmp_path), "--workers", 1, "--observe", "http://127.0.0.1:1", *options)
        run.wait_for("Starting the benchmark")
        (watcher,) = (
            pid for pid in children(run.process.pid) if b"ssbench.cluster._watch" in command_line(pid)
        )
        os.kill(watcher, signal.SIGKILL)
        rule.release()
        assert run.end() == 0, run.err
    seen, warnings = observed(fleet.stats)
    assert "The cluster was not observed: its process has ended" in warnings
    assert [server.failure for server in seen.servers] == ["Connection refused"]


def command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
