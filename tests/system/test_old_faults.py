"""Faults of the ssbench of old that only the whole program, or its sockets, can show to be gone.

Most others are tested where they belong: hangs and lost workers in test_fleet and test_faults, what is
counted in test_figures, test_timeline, test_run_statistics and test_population, deleting in test_cleanup.
"""

from __future__ import annotations

import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import zmq
from fault_server import FaultServer, Reply, Request
from msgspec import structs
from processes import ANEW, CHARACTERS, Fleet, Program
from runs import INITIAL, TOKEN, Store, children, outcome, results_so_far, store, wait_until, write_scenario
from said import SAME_KEY

from ssbench.base.errors import ExitCode
from ssbench.fleet import wire
from ssbench.results.reading import open_results
from ssbench.scenario.names import MARK_PREFIX
from ssbench.statistics.summary import summarize
from ssbench.store.conformance_checks import TRIAL_PREFIX
from ssbench.store.http.client import ClientSettings
from ssbench.store.stores import make_store_client

# -- Lost data ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ['new folder/it\'s "$(touch pwned)" & touch pwned; #.stat.gz', "-rf.stat"])
def test_a_stat_file_may_be_called_anything(fleet: Fleet, tmp_path: Path, name: str) -> None:
    scenario = write_scenario(tmp_path, operation_count=20)
    home = tmp_path / "home"
    home.mkdir()
    ports = [f"--zmq-work-port={fleet.work_port}", f"--zmq-results-port={fleet.results_port}"]

    def master(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ssbench.cli.master", *arguments]
        return subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=60, check=False)

    run = master("run-scenario", "-f", str(scenario), "--noop", "--workers=1", *ports, f"--stats-file={name}")
    assert run.returncode == ExitCode.OK, run.stderr
    path = home / (name if name.endswith(".gz") else f"{name}.gz")
    assert path.read_bytes().startswith(b"\x1f\x8b")
    again = master("report-scenario", f"--stats-file={path.relative_to(home)}")
    assert again.returncode == ExitCode.OK, again.stderr
    assert again.stdout == run.stdout
    assert not list(tmp_path.rglob("pwned"))


# -- Hangs ----------------------------------------------------------------------------------------


def test_no_result_waits_for_others(fleet: Fleet, tmp_path: Path) -> None:
    """A batch of two of which one takes its time: the other's result is there before."""
    seen = threading.Event()
    with store() as (rule, options):

        def fault(request: Request) -> None:
            if request.target.endswith("tiny_000002") and request.method == "GET":
                seen.wait(60)

        rule.fault = fault
        fleet.worker(1, "-c", 2)
        scenario = write_scenario(
            tmp_path, initial_files={"tiny": 2}, operation_count=2, crud_profile=[0, 1, 0, 0]
        )
        run = fleet.run(scenario, "-u", 2, "--batch-size", 2, *options)
        run.wait_for("last byte\n.*\n?.*@ >= 10 s  last byte\n\n?[.oO*]")
        wait_until(lambda: rule.counts["GET"] == 2, "both reads")
        assert run.process.poll() is None
        seen.set()
        assert run.end() == ExitCode.OK, run.err
    assert set(outcome(fleet.stats).causes) == {None}


# -- Wrong numbers --------------------------------------------------------------------------------

#: A program whose wall clock is an hour behind while a file is there.
JUMPING = """
import importlib, os, sys, time
wall, jumped = time.time, sys.argv.pop(1)
time.time = lambda: wall() - (3600 if os.path.exists(jumped) else 0)
sys.exit(importlib.import_module(sys.argv.pop(1)).main())
"""


def test_a_wall_clock_that_jumps_moves_no_number(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "jumping.py").write_text(JUMPING)
    environment = {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"}
    ports = [f"--zmq-work-port={fleet.work_port}", f"--zmq-results-port={fleet.results_port}"]
    with store(0.02) as (_, options):
        jumped = tmp_path / "jumped"
        worker = Program("jumping", [jumped, "ssbench.cli.worker", *ports, "-c", 4, 1], environment)
        arguments = ["run-scenario", "-f", write_scenario(tmp_path), "-r", 600, "-s", tmp_path / "x.stat.gz"]
        arguments += ["--zmq-bind-ip", fleet.ip, *ports, *CHARACTERS, *options]
        before = time.time()
        with worker, Program("jumping", [jumped, "ssbench.cli.master", *arguments], environment) as run:
            run.wait_for("[._]{20}")
            jumped.touch()
            run.wait_for("[._]{200}")
            jumped.unlink()
            run.wait_for("[._]{250}")
            run.signal(signal.SIGINT)
            assert run.end() == ExitCode.INTERRUPTED, run.err
        after = time.time()
    statistics = summarize(open_results(tmp_path / "x.stat.gz"))
    assert statistics.start is not None
    assert statistics.end is not None
    assert before < statistics.start < statistics.end < after
    assert 1.2 <= statistics.duration < after - before  # 4 users, 20 ms each
    last_byte = statistics.total.lines[0].last_byte
    assert last_byte.minimum >= 0.0195  # the clocks of an arrival are half a millisecond apart at most
    assert last_byte.maximum < after - before
    assert 200 / (after - before) < statistics.total.requests_per_second < 200


def test_a_small_upload_leaves_in_one_go() -> None:
    """Head and body sent apart, and the kernel's waiting for more, were 40 ms of each upload."""
    spans = []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(10)
            for _ in range(5):
                request = connection.recv(65536)
                began = time.monotonic()
                while len(request.partition(b"\r\n\r\n")[2]) < 4000:
                    request += connection.recv(65536)
                spans.append(time.monotonic() - began)
                connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve)
        server.start()
        client = make_store_client(ClientSettings(max_connections=1))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/a"
        for _ in range(5):
            assert client.request(url, "PUT", "c", "o", size=4000).cause is None
        client.close()
        server.join(10)
    assert min(spans) < 0.02


def test_the_first_byte_is_the_first_one_of_the_head(fault_server: FaultServer) -> None:
    fault_server.default = Reply(body=b"x", headers=(("X-Long", "y" * 100),), pieces=20, pause=0.05)
    client = make_store_client(ClientSettings())
    found = client.request(fault_server.url, "GET", "c", "o")
    client.close()
    assert found.first_byte is not None
    assert found.last_byte is not None
    assert found.last_byte - found.first_byte > 0.2  # more than the head takes in pieces


#: Prints by how many bytes the peak of memory grew with one large object, up and down.
LARGE = """
import resource, sys
from ssbench.store.http.client import ClientSettings
from ssbench.store.stores import make_store_client
client = make_store_client(ClientSettings())
url = sys.argv[1]
assert client.request(url, "GET", "c", "small").cause is None
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for method in ("PUT", "GET"):
    found = client.request(url, method, "c", "large", size=200_000_000 if method == "PUT" else 0)
    assert (found.cause, found.size) == (None, 200_000_000), found
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def test_a_large_object_is_never_in_memory() -> None:
    def serve() -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as stream:
            for size in (0, 0, 200_000_000):
                length = 0
                while (line := stream.readline().strip()) != b"":
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                while length:
                    length -= len(stream.read(min(length, 1 << 16)))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
                for _ in range(size // 50_000):
                    connection.sendall(bytes(50_000))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve)
        server.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/a"
        command = [sys.executable, "-c", LARGE, url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        server.join(10)
    assert int(done.stdout) < 20e6


def test_expiry_and_policy_are_of_creates_and_updates_and_recorded(fleet: Fleet, tmp_path: Path) -> None:
    rule = Store()
    with FaultServer(rule=rule) as server:
        scenario = write_scenario(tmp_path, crud_profile=[1, 0, 1, 0], operation_count=60)
        options = ["--delete-after", 77, "-p", "silver", "-S", server.url, "-T", TOKEN]
        assert fleet.run(scenario, "--workers", 1, *options).end() == ExitCode.OK
        written = [each for each in server.requests if each.method == "PUT" and each.target.count("/") > 3]
    objects = [each for each in written if MARK_PREFIX not in each.target and TRIAL_PREFIX not in each.target]
    initial = {f"tiny_{number:06d}" for number in range(1, INITIAL + 1)}
    updates = [each for each in objects if each.target.rpartition("/")[2] in initial][INITIAL:]
    creates = [each for each in objects if each.target.rpartition("/")[2] not in initial]
    assert updates
    assert creates
    assert {each.headers.get("x-delete-after") for each in updates + creates} == {"77"}
    assert all("_silver/" in each.target for each in objects)
    recorded = summarize(open_results(fleet.stats)).run.scenario
    assert (recorded.policy, recorded.delete_after) == ("silver", 77)


# -- Security -------------------------------------------------------------------------------------

USER, KEY = "acct:u5erN4me", "k3yOfTh3User"


@contextmanager
def guarded_store(delay: float = 0.0) -> Iterator[tuple[Store, list[object]]]:
    """A stand-in store that has to be authenticated with, and fails now and then."""
    rule = Store(delay)

    def fault(request: Request) -> Reply | None:
        if request.target == "/auth/v1.0":
            assert (request.headers["x-auth-user"], request.headers["x-auth-key"]) == (USER, KEY)
            return Reply(200, headers=(("X-Storage-Url", server.url), ("X-Auth-Token", TOKEN)))
        return Reply(500) if request.target.endswith("3") and request.method == "GET" else None

    rule.fault = fault
    with FaultServer(rule=rule) as server:
        yield rule, ["-A", f"http://127.0.0.1:{server.port}/auth/v1.0", "-U", USER, "-K", KEY]


def test_user_and_key_stay_with_the_master(fleet: Fleet, tmp_path: Path) -> None:
    with guarded_store(0.01) as (_, options):
        scenario = write_scenario(tmp_path)
        environment, stats = ANEW | {"TMPDIR": str(tmp_path)}, tmp_path / "run.stat.gz"
        arguments = ["-v", "run-scenario", "-f", scenario, "--zmq-bind-ip", fleet.ip, *fleet._ports()]
        arguments += ["-s", stats, "-r", 600, "--workers", 2, *CHARACTERS, *options]
        run = fleet.master(*arguments, environment=environment)
        wait_until(lambda: results_so_far(stats) and outcome(stats).causes["HTTP 500"], "failures")
        pids = children(run.process.pid)
        assert pids
        for pid in pids:
            for name in ("cmdline", "environ"):
                assert KEY.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    exported = fleet.master("export", "-s", stats)
    assert exported.end() == ExitCode.OK
    logs = [path.read_text() for path in tmp_path.glob("ssbench-worker-local-*.log")]
    assert len(logs) == 2
    for text in (run.out, run.err, exported.out, *logs):
        for secret in (KEY, USER, TOKEN):
            assert secret not in text


def test_no_job_holds_user_or_key(fleet: Fleet, tmp_path: Path) -> None:
    """What a worker is sent, as a worker sees it that does nothing with it."""
    with (
        guarded_store() as (_, options),
        zmq.Context() as context,
        context.socket(zmq.DEALER) as work,
        context.socket(zmq.PUSH) as results,
    ):
        work.routing_id = wire.work_address(4711)
        for end, port in ((work, fleet.work_port), (results, fleet.results_port)):
            end.linger = 0
            end.connect(f"tcp://127.0.0.1:{port}")
        run = fleet.run(write_scenario(tmp_path), *options)
        clock = time.monotonic()
        hello = wire.Heartbeat(wire.PROTOCOL, 1, 4711, 0, clock, 8, [], 0.0, [0] * 8, "here", 1, "1")
        results.send(wire.pack_message(hello))
        while True:
            assert work.poll(60_000)
            message = work.recv()
            ping = wire.unpack_notice(message)
            if ping is None:
                break
            assert TOKEN.encode() not in message
            answer = structs.replace(hello, master=ping.master, ping=ping.sent)
            results.send(wire.pack_message(answer))
        run.process.kill()
    assert TOKEN.encode() in message
    assert KEY.encode() not in message
    assert USER.encode() not in message


def test_a_stranger_cannot_tell_a_sealed_worker_to_exit(fleet: Fleet, tmp_path: Path) -> None:
    key = tmp_path / "key"
    assert fleet.master("keygen", key).end() == ExitCode.OK
    with zmq.Context() as context, context.socket(zmq.ROUTER) as work, context.socket(zmq.PULL) as results:
        for end, port in ((work, fleet.work_port), (results, fleet.results_port)):
            end.linger = 0
            end.bind(f"tcp://127.0.0.1:{port}")
        open_worker = fleet.worker(1)
        sealed = fleet.worker(2, "--zmq-key", key)
        sealed.wait_for(SAME_KEY)
        work.router_mandatory = True
        instances = set()
        while results.poll(60_000 if not instances else 0):
            instances.add(wire.unpack_from_worker(results.recv()).instance)
        assert len(instances) == 1  # the open one, which does what it is told

        def told_to_exit() -> bool:
            with suppress(zmq.ZMQError):  # its work socket is not connected yet
                work.send_multipart([wire.work_address(*instances), wire.pack_notice(wire.Exit())])
                return True
            return False

        wait_until(told_to_exit, "the worker's connection")
        assert open_worker.end() == ExitCode.OK
        assert sealed.process.poll() is None


def test_a_planted_link_for_a_log_is_not_followed(fleet: Fleet, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    planted = tmp_path / "ssbench-worker-local-0.log"
    planted.symlink_to(victim)
    run = fleet.run(write_scenario(tmp_path), "--noop", "--workers", 1, environment={"TMPDIR": str(tmp_path)})
    log = Path(run.wait_for(r"Local worker 0: .* log (\S+)")[1])
    assert run.end() == ExitCode.OK, run.err
    assert victim.read_text() == "mine"
    assert log != planted
    assert log.stat().st_mode & 0o077 == 0


def test_the_hard_limit_of_open_files_is_left_alone(fleet: Fleet) -> None:
    worker = fleet.worker(1)
    worker.wait_for("waiting for a master")
    limits = Path(f"/proc/{worker.process.pid}/limits").read_text()
    soft, hard = re.search(r"Max open files +(\d+) +(\d+)", limits).groups()
    ours = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert int(hard) == ours
    assert int(soft) == ours


# -- Manners --------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["report-scenario", "cleanup-containers", "kill-workers", "export"])
def test_the_help_of_an_error_is_the_sub_commands_own(fleet: Fleet, command: str) -> None:
    program = fleet.master(command, "--no-such-option")
    assert program.end() == ExitCode.USAGE
    assert "unrecognized arguments: --no-such-option" in program.err or "required" in program.err
    assert "run-scenario" not in program.err + program.out
