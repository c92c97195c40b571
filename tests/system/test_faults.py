"""What goes wrong in the middle of a run: workers, the master, the network, Swift, and strangers."""

from __future__ import annotations

import itertools
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
import zmq
from fault_server import FaultServer, Reply, Request
from processes import ANEW, FULL, Fleet, Program
from runs import (
    ENDED,
    INITIAL,
    TOKEN,
    Store,
    alive,
    children,
    is_object,
    listens,
    outcome,
    results_so_far,
    store,
    wait_for_results_of,
    wait_until,
    write_scenario,
)
from said import BACK_AGAIN, NOT_HEARD_OF, WORKER_DISTRIBUTION

from ssbench.base.errors import ExitCode
from ssbench.fleet import wire
from ssbench.fleet.keys import FleetKey
from ssbench.fleet.keys import read_fleet_key as read_key
from ssbench.local_swift import LocalSwift
from ssbench.results.block import UNFINISHED_CAUSE
from ssbench.results.reading import open_results
from ssbench.store.contract import JobResult

HELPERS = Path(__file__).parents[1] / "helpers"
LOST = "lost worker"


def wait_for_all_users(rule: Store, fleet: Fleet, operations: int) -> None:
    """Wait until each user is held by the store, and what ended before is in the stat file.

    Then each of two workers has four operations under way, no more and no less.
    """
    rule.wait_for_held(8)
    wait_until(lambda: results_so_far(fleet.stats) >= operations, "the results before those")


def counted(fleet: Fleet, operations: int) -> dict[str | None, int]:
    """The causes of a run's results, which together are the operations asked for."""
    found = outcome(fleet.stats)
    assert found.count + sum(count for *_, count in found.summary.not_sendable) == operations
    assert found.summary.lost_jobs == found.causes[LOST]
    return dict(found.causes)


def test_a_killed_worker_is_named_and_its_operations_are_lost(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.05) as (rule, options):
        rule.hold(INITIAL + 200)
        fleet.worker(1, "-c", 4)
        victim = fleet.worker(2, "-c", 4)
        run = fleet.run(write_scenario(tmp_path, operation_count=400), "--expect-workers", 2, *options)
        wait_for_all_users(rule, fleet, 200)
        victim.process.kill()
        victim.end()
        rule.release()
        run.wait_for(rf"WARNING:Worker 2 on \S+ \(pid {victim.process.pid}\) {NOT_HEARD_OF}")
        assert run.end() == ExitCode.FAILED, run.err
    causes = counted(fleet, 400)
    assert set(causes) == {None, LOST}
    assert causes[LOST] == 4  # its share of the users
    found = outcome(fleet.stats)
    assert any(detail.startswith("with worker 2 on ") for detail in found.details)
    assert re.search(r"lost", run.out, re.IGNORECASE)


def test_initial_uploads_of_a_killed_worker_are_done_by_others(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.1) as (rule, options):
        rule.hold(60)
        fleet.worker(1, "-c", 4)
        victim = fleet.worker(2, "-c", 4)
        scenario = write_scenario(
            tmp_path, initial_files={"tiny": 150}, operation_count=20, crud_profile=[0, 1, 0, 0]
        )
        run = fleet.run(scenario, "--expect-workers", 2, *options)
        wait_until(lambda: len(rule.objects()) > 10, "initial objects")
        victim.process.kill()
        victim.end()
        rule.release()
        run.wait_for("Starting the benchmark")
        assert len(rule.objects()) == 150
        assert run.end() == ExitCode.OK, run.err
    assert counted(fleet, 20) == {None: 20}


def test_a_stopped_worker_is_lost_and_used_again_when_it_wakes(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.05) as (rule, options):
        rule.hold(INITIAL + 100)
        fleet.worker(1, "-c", 4)
        sleeper = fleet.worker(2, "-c", 4)
        run = fleet.run(write_scenario(tmp_path), "-r", 600, "--expect-workers", 2, *options)
        wait_for_all_users(rule, fleet, 100)
        sleeper.signal(signal.SIGSTOP)
        run.wait_for(f"WARNING:Worker 2 .* {NOT_HEARD_OF}")
        rule.release()
        sleeper.signal(signal.SIGCONT)
        run.wait_for(f"INFO:Worker 2 .* {BACK_AGAIN}")
        wait_for_results_of(2, outcome(fleet.stats).workers[2] + 40, fleet.stats)
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    found = outcome(fleet.stats)
    assert found.settled() == {None, LOST}
    assert found.causes[LOST] == 4  # its share of the users
    assert found.summary.lost_jobs == found.causes[LOST]
    assert any(NOT_HEARD_OF in warning for warning in found.summary.warnings)


def test_a_worker_that_is_held_up_shortly_loses_nothing(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.05) as (_, options):
        fleet.worker(1, "-c", 4)
        sleeper = fleet.worker(2, "-c", 4)
        run = fleet.run(
            write_scenario(tmp_path, crud_profile=[1, 0, 0, 0]), "-r", 600, "--expect-workers", 2, *options
        )
        run.wait_for(r"[._]{40}")
        # By a shell, which is quick to wake it however busy this process is.
        pid = sleeper.process.pid
        began = time.monotonic()
        subprocess.run(["sh", "-c", f"kill -STOP {pid}; sleep 2.6; kill -CONT {pid}"], check=True)
        seconds = time.monotonic() - began
        wait_for_results_of(2, outcome(fleet.stats).workers[2] + 40, fleet.stats)
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    # Of a stop that a busy machine made longer nothing is promised.
    assert outcome(fleet.stats).settled() == {None} or seconds > wire.LOST_AFTER - 1.5


def test_all_workers_gone_ends_the_run_with_a_report(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.05) as (_, options):
        workers = [fleet.worker(number, "-c", 4) for number in (1, 2)]
        run = fleet.run(write_scenario(tmp_path), "-r", 600, "--expect-workers", 2, *options)
        run.wait_for(r"[._]{40}")
        for worker in workers:
            worker.process.kill()
        assert run.end() == ExitCode.WORKERS
    assert "all workers are gone" in run.err
    assert WORKER_DISTRIBUTION in run.out
    found = outcome(fleet.stats)
    assert found.causes[None] >= 40
    assert found.causes[LOST] <= 8
    assert set(found.causes) <= {None, LOST}


def test_local_workers_that_are_killed_end_the_run_at_once(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.05) as (_, options):
        run = fleet.run(write_scenario(tmp_path), "-r", 600, "--workers", 1, *options)
        pid = int(run.wait_for(r"Worker 0 on \S+ \(pid (\d+)\) joined")[1])
        run.wait_for(r"[._]{20}")
        os.kill(pid, signal.SIGKILL)
        assert run.end() == ExitCode.WORKERS
    assert "Local worker 0 ended" in run.err
    assert set(outcome(fleet.stats).causes) <= {None, LOST}


def test_a_killed_master_leaves_a_file_that_can_be_read_and_no_local_workers(
    fleet: Fleet, tmp_path: Path
) -> None:
    with store(0.02) as (_, options):
        run = fleet.run(write_scenario(tmp_path), "-r", 600, "--workers", 2, *options, environment=ANEW)
        run.wait_for("Starting the benchmark")
        wait_until(lambda: results_so_far(fleet.stats) > 100, "results in the stat file")
        workers = children(run.process.pid)
        shown = len(re.findall(r"[._oO|]", run.err.partition("last byte\n")[2].rpartition("last byte")[2]))
        wait_until(lambda: results_so_far(fleet.stats) >= shown, "what was shown in the stat file")
        run.process.kill()
        run.end()
        wait_until(lambda: not any(alive(pid) for pid in workers), "the end of local workers")
    report = fleet.master("report-scenario", "-s", fleet.stats, *FULL)
    assert report.end() == ExitCode.FAILED, report.err
    assert WORKER_DISTRIBUTION in report.out
    found = outcome(fleet.stats)
    assert found.count >= shown
    assert found.summary is None
    assert "WARNING" in report.err


def test_a_fleet_outlives_a_killed_master_and_serves_the_next(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.3) as (_, options):
        workers = [fleet.worker(number, "-c", 4) for number in (1, 2)]
        scenario = write_scenario(
            tmp_path, initial_files={"tiny": 8}, operation_count=40, crud_profile=[1, 0, 0, 0]
        )
        run = fleet.run(scenario, "-r", 600, "--expect-workers", 2, *options)
        run.wait_for(ENDED + "{8}")
        run.process.kill()
        run.end()
        # At once, while the workers are still at work for the old one.
        again = fleet.run(scenario, "--expect-workers", 2, *options)
        assert again.end() == ExitCode.OK, again.err
    assert counted(fleet, 40) == {None: 40}
    assert all(worker.process.poll() is None for worker in workers)


def test_a_stopped_master_blames_nobody(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.05) as (_, options):
        fleet.worker(1, "-c", 8)
        run = fleet.run(write_scenario(tmp_path), "-r", 600, *options)
        run.wait_for(r"[._]{40}")
        run.signal(signal.SIGSTOP)
        threading.Event().wait(wire.LOST_AFTER + 0.5)
        run.signal(signal.SIGCONT)
        wait_for_results_of(1, outcome(fleet.stats).workers[1] + 40, fleet.stats)
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    assert NOT_HEARD_OF not in run.err
    causes = outcome(fleet.stats).causes
    # A connection may break meanwhile. What was in it is lost after 5 s, or not finished when the run ends.
    assert set(causes) <= {None, LOST, UNFINISHED_CAUSE}
    assert causes[LOST] + causes[UNFINISHED_CAUSE] <= 8


def test_a_machine_that_stood_still_loses_nothing(fleet: Fleet, tmp_path: Path) -> None:
    """Master and worker are stopped together for longer than counts as lost, as where a host is suspended."""
    with store(0.05) as (rule, options):
        rule.hold(INITIAL + 100)
        worker = fleet.worker(1, "-c", 8)
        run = fleet.run(write_scenario(tmp_path, crud_profile=[1, 0, 0, 0]), "-r", 600, *options)
        wait_for_all_users(rule, fleet, 100)
        programs = (run, worker)
        for program in programs:
            program.signal(signal.SIGSTOP)
        threading.Event().wait(wire.LOST_AFTER + 1)
        for program in programs:
            program.signal(signal.SIGCONT)
        rule.release()
        wait_for_results_of(1, 100 + 40, fleet.stats)
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    assert outcome(fleet.stats).settled() == {None}, run.err + worker.err
    assert NOT_HEARD_OF not in run.err


STARVED = """
import pathlib, signal, sys, time
fed = pathlib.Path(__file__).with_name("fed")
def starve(*_):
    while not fed.exists():
        time.sleep(0.02)
signal.signal(signal.SIGUSR1, starve)
from ssbench.cli.worker import main
sys.exit(main())
"""


def test_a_starved_worker_is_lost_and_comes_back(fleet: Fleet, tmp_path: Path) -> None:
    # Its event loop does not turn for longer than counts as lost, while the threads of its sockets answer.
    (tmp_path / "starved.py").write_text(STARVED)
    with store(0.05) as (rule, options):
        rule.hold(INITIAL + 100)
        fleet.worker(1, "-c", 4)
        starved = fleet._stack.enter_context(
            Program(
                "starved",
                ["--zmq-host", fleet.ip, *fleet._ports(), "-c", 4, 2],
                {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"},
            )
        )
        run = fleet.run(write_scenario(tmp_path), "-r", 600, "--expect-workers", 2, *options)
        wait_for_all_users(rule, fleet, 100)
        starved.signal(signal.SIGUSR1)
        run.wait_for(f"WARNING:Worker 2 .* {NOT_HEARD_OF}")
        (tmp_path / "fed").touch()
        # Whether it notices its silence first, or sends a heartbeat, is chance; results would end it, too.
        starved.wait_for("The master has counted this worker as lost, so it drops its jobs")
        rule.release()
        run.wait_for(f"INFO:Worker 2 .* {BACK_AGAIN}")
        wait_for_results_of(2, outcome(fleet.stats).workers[2] + 40, fleet.stats)
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    assert outcome(fleet.stats).settled() == {None, LOST}


def hostile_frames(seed: int, count: int) -> Iterator[list[bytes]]:
    """Random bytes, damaged messages, lists without measure, other versions, many frames, lies."""
    numbers = random.Random(seed)
    number = lambda: numbers.choice([0, 1, 2, numbers.randrange(2**31), numbers.randrange(2**62)])  # noqa: E731
    result = JobResult(1, 0.1, 0.1, 1.0)
    for _ in range(count):
        match numbers.randrange(8):
            case 0:
                yield [numbers.randbytes(numbers.randrange(300))]
            case 1:
                frame = bytearray(wire.pack_message(wire.Goodbye(number(), number(), "bye")))
                frame[numbers.randrange(len(frame))] = numbers.randrange(256)
                yield [bytes(frame)]
            case 2:
                results = [JobResult(job, 0.1, 0.1, 1.0) for job in range(numbers.randrange(1, 2000))]
                yield [wire.pack_message(wire.JobResults(number(), number(), number(), 1.0, 0, results))]
            case 3:
                yield [wire.pack_message(wire.Handback(number(), number(), number(), 9, list(range(5000))))]
            case 4:
                yield [
                    msgspec.msgpack.encode(
                        [1, wire.PROTOCOL + numbers.randrange(1, 99), numbers.randrange(9), number()]
                    )
                ]
            case 5:
                yield [wire.pack_message(result)] * numbers.randrange(2, 9)
            case 6:
                yield [b"\x91" * numbers.randrange(1, 60_000)]
            case 7:
                yield [b"\xdd\xff\xff\xff\xff" + numbers.randbytes(50)]


def throw(
    port: int, kind: int, frames: Iterator[list[bytes]], key: FleetKey | None = None, patience: float = 20
) -> int:
    """Send it all to a port, as a peer of that kind; returns how many went out.

    It gives up when none has gone out for ``patience`` seconds.
    """
    thrown = 0
    with zmq.Context() as context, context.socket(kind) as thrower:
        thrower.linger = 2000
        thrower.sndtimeo = round(patience * 1000)
        if key is not None:
            thrower.curve_serverkey = key.server_public
            thrower.curve_publickey = key.client_public
            thrower.curve_secretkey = key.client_secret
        thrower.connect(f"tcp://127.0.0.1:{port}")
        for each in frames:
            try:
                thrower.send_multipart(each)
            except zmq.Again:
                break
            thrown += 1
    return thrown


@pytest.mark.parametrize("sealed", [False, True], ids=["open", "sealed"])
def test_hostile_messages_do_no_harm(fleet: Fleet, tmp_path: Path, sealed: bool) -> None:
    key, insider = [], None
    if sealed:
        key = ["--zmq-key", tmp_path / "key"]
        assert fleet.master("keygen", tmp_path / "key").end() == ExitCode.OK
        insider = read_key(tmp_path / "key")
    with store(0.02) as (_, options):
        fleet.worker(1, "-c", 8, *key)
        run = fleet.run(write_scenario(tmp_path), "-r", 300, *key, *options)
        run.wait_for(r"[._]{40}")
        # Whoever has the key is heard. Of one who has none nothing leaves: libzmq gives the connection up.
        assert throw(fleet.results_port, zmq.PUSH, hostile_frames(1, 1_500), insider) == 1_500
        for who in {insider, None}:
            throw(fleet.work_port, zmq.DEALER, iter([[b"x"]] * 1000), who, 0.5)
            throw(fleet.work_port, zmq.DEALER, hostile_frames(3, 400), who, 0.5)
            throw(fleet.results_port, zmq.PUSH, iter([[bytes(17 * 2**20)]]), who, 0.5)
        numbers = random.Random(2)
        for port in (fleet.work_port, fleet.results_port):
            for _ in range(200):  # no ZMTP at all, or the beginning of it
                with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
                    raw.sendall(
                        numbers.choice([b"", b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0"]) + numbers.randbytes(80)
                    )
        assert run.process.poll() is None, run.err
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    assert "Traceback" not in run.err
    found = outcome(fleet.stats)
    assert found.settled() == {None}
    not_sendable = sum(count for *_, count in found.summary.not_sendable)
    counters = found.summary.counters
    assert found.count + not_sendable + counters["not_begun"] == counters["drawn"]
    assert set(found.workers) == {1}


def test_floods_that_break_off_do_no_harm(fleet: Fleet, tmp_path: Path) -> None:
    # More than is taken in meanwhile: libzmq stops to read them, and then they break.
    with store(0.02) as (_, options):
        fleet.worker(1, "-c", 8)
        run = fleet.run(write_scenario(tmp_path), "-r", 600, *options)
        run.wait_for(r"[._]{40}")
        floods = [(fleet.work_port, zmq.DEALER), (fleet.results_port, zmq.PUSH)]
        for (port, kind), size in itertools.product(floods, (0, 1000)):
            with zmq.Context() as context, context.socket(kind) as flood:
                flood.linger = 300
                flood.sndhwm = 0
                flood.connect(f"tcp://127.0.0.1:{port}")
                for _ in range(60_000):
                    flood.send(bytes(size))
        assert run.process.poll() is None, run.err
        wait_for_results_of(1, outcome(fleet.stats).workers[1] + 40, fleet.stats)
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    assert outcome(fleet.stats).settled() <= {None, "HTTP 404"}


def test_a_lie_in_the_name_of_nobody_settles_nothing(fleet: Fleet, tmp_path: Path) -> None:
    # Right run ids are not to be had, so the master is the only one that could tell them; this is
    # about results for jobs that are in flight, under each number that they may have.
    with store(0.05) as (rule, options):
        rule.hold(16 + 20)
        fleet.worker(1, "-c", 8)
        run = fleet.run(write_scenario(tmp_path, initial_files={"tiny": 16}, operation_count=60), *options)
        wait_until(lambda: results_so_far(fleet.stats) >= 10, "results")
        lies = [
            [wire.pack_message(wire.JobResults(0, 1, instance, 1.0, 0, [JobResult(job, 9.0, 9.0, 1.0)]))]
            for job in range(1, 200)
            for instance in (0, 1)
        ]
        assert throw(fleet.results_port, zmq.PUSH, iter(lies)) == len(lies)
        rule.release()
        assert run.end() == ExitCode.OK, run.err
    assert counted(fleet, 60).keys() == {None}
    found = outcome(fleet.stats)
    assert rule.counts["GET"] == found.operations["read"]


@contextmanager
def namespace() -> Iterator[tuple[str, str, str]]:
    """A network namespace with a wire to it: (its name, our address, our end of the wire)."""
    name = f"ssbench{os.getpid()}"
    outer, inner = f"sb{os.getpid()}", f"sc{os.getpid()}"
    net = f"10.{os.getpid() // 250 % 250}.{os.getpid() % 250}"

    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    ip("netns", "add", name)
    try:
        ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", name)
        ip("addr", "add", f"{net}.1/24", "dev", outer)
        ip("link", "set", outer, "up")
        ip("-n", name, "addr", "add", f"{net}.2/24", "dev", inner)
        ip("-n", name, "link", "set", inner, "up")
        ip("-n", name, "link", "set", "lo", "up")
        yield name, f"{net}.1", outer
    finally:
        subprocess.run(["ip", "link", "del", outer], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@pytest.mark.privileged("network namespaces need root")
@pytest.mark.skipif(not shutil.which("ip"), reason="network namespaces need iproute2")
def test_a_worker_that_is_cut_off_is_lost_and_comes_back(tmp_path: Path) -> None:
    with (
        namespace() as (name, address, link),
        Fleet(tmp_path, address) as fleet,
        FaultServer(host=address, rule=Store(0.05)) as server,
    ):
        options = ["-S", server.url, "-T", TOKEN]
        fleet.worker(1, "-c", 4)
        far = fleet._stack.enter_context(
            Program("netns_worker", [name, "--zmq-host", address, *fleet._ports(), "-c", 4, 2],
                    {"PYTHONPATH": f"{HELPERS}:{Path(__file__).parents[2]}"})
        )  # fmt: skip
        run = fleet.run(write_scenario(tmp_path), "-r", 600, "--expect-workers", 2, *options)
        run.wait_for(r"[._]{40}")
        subprocess.run(["ip", "link", "set", link, "down"], check=True)
        run.wait_for(f"WARNING:Worker 2 .* {NOT_HEARD_OF}")
        far.wait_for("The connection to the master has ended")
        subprocess.run(["ip", "link", "set", link, "up"], check=True)
        run.wait_for(f"INFO:Worker 2 .* {BACK_AGAIN}")
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    found = outcome(fleet.stats)
    assert found.settled() <= {None, LOST}
    assert found.causes[LOST] <= 8


# -- Swift ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_swift() -> Iterator[LocalSwift]:
    """A Swift whose servers these tests may stop."""
    with LocalSwift() as running:
        yield running


def credentials(swift: LocalSwift) -> list[object]:
    return ["-A", swift.auth_url, "-U", swift.user, "-K", swift.key]


def test_an_unreachable_cluster_is_told_in_time(tmp_path: Path, own_swift: LocalSwift) -> None:
    own_swift.proxy.kill()
    (tmp_path / "told").mkdir()
    try:
        with Fleet(tmp_path) as fleet, Fleet(tmp_path / "told") as other:
            run = fleet.run(write_scenario(tmp_path), "--workers", 1, *credentials(own_swift))
            # With a token there is no authentication to fail: the containers tell.
            told = other.run(write_scenario(tmp_path), "--workers", 1, "-S", own_swift.storage_url, "-T", "x")
            assert run.end() == ExitCode.CLUSTER
            assert len(re.findall("ERROR:.*", run.err)) == 1
            assert "Traceback" not in run.err
            assert told.end() == ExitCode.CLUSTER
            assert "Traceback" not in told.err
    finally:
        own_swift.proxy.start()


@pytest.mark.long
def test_a_proxy_that_goes_and_comes_again_takes_all_tokens_with_it(
    fleet: Fleet, tmp_path: Path, own_swift: LocalSwift, container_base: str
) -> None:
    # A few users: what counts is that it goes on, not how much Swift can do.
    scenario = write_scenario(tmp_path, container_base=container_base, user_count=3)
    run = fleet.run(scenario, "-r", 600, "--workers", 2, *credentials(own_swift))
    run.wait_for(r"[._]{40}")
    own_swift.proxy.restart()
    run.wait_for("authenticating again")
    done = results_so_far(fleet.stats)
    wait_until(lambda: results_so_far(fleet.stats) > done + 100, "results with a new token")
    run.signal(signal.SIGINT)
    assert run.end() == ExitCode.INTERRUPTED, run.err
    found = outcome(fleet.stats)
    assert "Traceback" not in run.err
    assert found.retried["HTTP 401"] > 0
    assert found.settled(3) <= {None, "connect refused", "reset", "HTTP 404", "HTTP 503", "closed"}
    assert found.causes[None] > 0.8 * found.count
    assert found.summary.lost_jobs == 0


@pytest.mark.long
def test_tokens_that_expire_all_the_time(fleet: Fleet, tmp_path: Path, container_base: str) -> None:
    scenario = write_scenario(tmp_path, container_base=container_base, user_count=16)
    with LocalSwift(token_life=2) as swift:
        began = time.monotonic()
        run = fleet.run(scenario, "-r", 5, "--rate", 25, "--workers", 2, *credentials(swift))
        # Whether the rate is kept is up to the machine.
        assert run.end() in {ExitCode.OK, ExitCode.NOT_DELIVERED}, run.err
        seconds = time.monotonic() - began
    found = outcome(fleet.stats)
    assert set(found.causes) == {None}
    assert found.retried["HTTP 401"] > 0
    # None is renewed sooner than a second after the one before.
    assert run.err.count("authenticating again") <= seconds + 1


def test_a_token_is_renewed_where_nothing_is_to_be_retried(fleet: Fleet, tmp_path: Path) -> None:
    tokens = itertools.count(1)
    uses: Counter[str] = Counter()
    with store() as (rule, (_, url, *_)):

        def fault(request: Request) -> Reply | None:
            if request.target == "/auth/v1.0":
                headers = ("X-Storage-Url", url), ("X-Auth-Token", f"token{next(tokens)}")
                return Reply(headers=headers)
            token = request.headers["x-auth-token"]
            uses[token] += 1
            return Reply(401) if uses[token] > 150 else None

        rule.fault = fault
        scenario = write_scenario(tmp_path, operation_count=150)
        auth = ("-A", f"{url.partition('/v1')[0]}/auth/v1.0", "-U", "u", "-K", "k")
        run = fleet.run(scenario, "--workers", 1, "--retries", 0, *auth)
        assert run.end() == ExitCode.OK, run.err
    assert counted(fleet, 150).keys() == {None}
    assert outcome(fleet.stats).retried["HTTP 401"] > 0


def test_latency_with_a_renewed_token_is_what_the_store_saw(fleet: Fleet, tmp_path: Path) -> None:
    tokens = itertools.count(1)
    seen: dict[str, list[float]] = {}
    held: list[threading.Timer] = []
    lock = threading.Lock()
    with store() as (rule, (_, url, *_)):

        def fault(request: Request) -> Reply | None:
            if request.target == "/auth/v1.0":
                headers = ("X-Storage-Url", url), ("X-Auth-Token", f"token{next(tokens)}")
                return Reply(headers=headers, delay=0.1)
            if request.method != "PUT" or not is_object(request):
                return None
            with lock:
                seen.setdefault(request.target.rpartition("_")[2], []).append(time.time())
                refused = len(seen) > 40 and request.headers["x-auth-token"] == "token1"
                if refused and not held:
                    # The message about it waits for the master.
                    run.process.send_signal(signal.SIGSTOP)
                    held.append(threading.Timer(0.3, run.process.send_signal, (signal.SIGCONT,)))
                    held[0].start()
            return Reply(401 if refused else 201, delay=0.05)

        rule.fault = fault
        scenario = write_scenario(
            tmp_path, crud_profile=[1, 0, 0, 0], initial_files={"tiny": 1}, operation_count=80, user_count=4
        )
        auth = ("-A", f"{url.partition('/v1')[0]}/auth/v1.0", "-U", "u", "-K", "k")
        fleet.worker(1, "-c", 4)
        run = fleet.run(scenario, *auth)
        assert run.end() == ExitCode.OK, run.err
    again = 0
    for block in open_results(fleet.stats).blocks():
        for row in range(len(block)):
            failure = block.failures.get(row)
            if failure is None or "HTTP 401" not in failure.retried:
                continue
            again += 1
            first, *_, last = seen[f"{int(block.object[row]):06d}"]
            latency = float(block.last_byte[row])
            assert latency >= last - first
            # Long before the last attempt. The worker's clock is known to the least time of a message.
            assert float(block.completed[row]) - latency < (first + last) / 2
            assert 0 < float(block.pausing[row]) < latency - float(block.last_attempt[row])
    assert again


def test_an_object_server_that_is_down_is_counted_errors(
    fleet: Fleet, tmp_path: Path, own_swift: LocalSwift, container_base: str
) -> None:
    scenario = write_scenario(tmp_path, container_base=container_base, user_count=3)
    fleet.worker(1, "-c", 8)
    run = fleet.run(scenario, "-r", 600, "--retries", 1, *credentials(own_swift))
    run.wait_for(r"[._]{40}")
    own_swift.object_servers[0].kill()
    try:
        wait_until(lambda: outcome(fleet.stats).causes["HTTP 503"] > 3, "failures")
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    finally:
        own_swift.object_servers[0].start()
    found = outcome(fleet.stats)
    assert found.causes["HTTP 503"] > 0
    assert found.settled(3) <= {None, "HTTP 503", "HTTP 404"}
    assert "HTTP 503" in run.out
    assert "Traceback" not in run.err + run.out


def test_a_token_that_nobody_takes_any_more_ends_in_errors(fleet: Fleet, tmp_path: Path) -> None:
    with store() as (rule, options):
        fleet.worker(1, "-c", 8)

        def fault(request: Request) -> Reply | None:
            uploaded = len(rule.objects()) >= INITIAL
            return Reply(401) if uploaded and is_object(request) else None

        rule.fault = fault
        run = fleet.run(write_scenario(tmp_path, operation_count=300), *options)
        assert run.end() == ExitCode.FAILED, run.err
    assert counted(fleet, 300) == {"HTTP 401": 300}


def test_a_storm_of_503_is_retried_and_counted(fleet: Fleet, tmp_path: Path) -> None:
    with store() as (rule, options):
        fleet.worker(1, "-c", 8)

        def fault(request: Request) -> Reply | None:
            faulty = is_object(request) and request.method != "HEAD" and random.random() < 0.3
            return Reply(503) if faulty else None

        rule.fault = fault
        run = fleet.run(write_scenario(tmp_path, operation_count=300), "--retries", 3, *options)
        assert run.end() in {ExitCode.OK, ExitCode.FAILED}, run.err
    counted(fleet, 300)
    found = outcome(fleet.stats)
    assert found.retried["HTTP 503"] > 20
    assert "Traceback" not in run.err


def test_ports_are_free_again_after_each_end(fleet: Fleet, tmp_path: Path) -> None:
    for _ in range(2):
        assert fleet.run(write_scenario(tmp_path), "--noop", "--workers", 1).end() == ExitCode.OK
    assert not listens(fleet.work_port)
    assert not listens(fleet.results_port)
