"""Who joins a fleet: workers that cannot be reached, ids in use, links that fail, and what each side says."""

from __future__ import annotations

import re
import signal
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
import zmq
from msgspec import structs
from processes import Fleet, free_ports
from relay import DOWN, Relay
from runs import ENDED, INITIAL, TOKEN, outcome, store, wait_for_results_of, write_scenario
from said import BACK_AGAIN, ID_TAKEN, NO_WORKER_READY, NOT_HEARD_OF, UNHEARING

from ssbench.base.errors import ExitCode
from ssbench.fleet import wire


def test_a_worker_whose_work_port_is_blocked_is_named_and_gets_no_job(fleet: Fleet, tmp_path: Path) -> None:
    with store() as (rule, options), Relay(fleet.work_port) as relay:
        relay.block(DOWN)
        worker = fleet.worker(7, "--zmq-work-port", relay.port)
        worker.wait_for("waiting for a master")
        run = fleet.run(write_scenario(tmp_path), "--expect-workers", "1@13", *options)
        reason = rf"Worker 7 on \S+ \(pid {worker.process.pid}\) {UNHEARING}"
        reason += rf" reached on the work port \({fleet.work_port}\)"
        run.wait_for(f"WARNING:{reason}")
        assert run.end() == ExitCode.WORKERS
        assert re.search(f"INFO:Waiting for workers: 0 of 1 .*{reason}", run.err)
        assert re.search(f"ERROR:{NO_WORKER_READY} 13 s.*{reason}", run.err)
        assert "joined" not in run.err
        assert not rule.counts
        worker.wait_for(
            rf"WARNING:Not connected to tcp://127.0.0.1:{relay.port} \(work; the results port is connected\)"
        )


def test_beside_a_healthy_worker_a_blocked_one_has_no_share_until_it_can_be_reached(
    fleet: Fleet, tmp_path: Path
) -> None:
    with store(0.05) as (_, options), Relay(fleet.work_port) as relay:
        relay.block(DOWN)
        fleet.worker(1, "-c", 8)
        fleet.worker(2, "-c", 8, "--zmq-work-port", relay.port)
        run = fleet.run(write_scenario(tmp_path), "-r", 600, *options)
        run.wait_for("Starting the benchmark")
        run.wait_for(f"WARNING:Worker 2 .* {UNHEARING} reached on the work port")
        relay.unblock()
        run.wait_for(r"INFO:Worker 2 \S+ .*joined")
        wait_for_results_of(2, 0, fleet.stats)
        relay.block(DOWN)
        run.wait_for(r"WARNING:Worker 2 .* cannot be reached on the work port .* counts as lost, with")
        assert NOT_HEARD_OF not in run.err
        relay.unblock()
        run.wait_for(f"INFO:Worker 2 .* {BACK_AGAIN}")
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    found = outcome(fleet.stats)
    assert set(found.causes) <= {None, "lost worker", "not finished"}
    assert 1 <= found.causes["lost worker"] <= 4  # its share of the users
    assert sum("cannot be reached on the work port" in warning for warning in found.summary.warnings) == 2


def test_a_link_that_fails_for_two_seconds_loses_nothing(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.05) as (_, options), ExitStack() as stack:
        work, results = (
            stack.enter_context(Relay(port, delay=0.02)) for port in (fleet.work_port, fleet.results_port)
        )
        fleet.worker(1, "-c", 8, "--zmq-work-port", work.port, "--zmq-results-port", results.port)
        run = fleet.run(write_scenario(tmp_path, crud_profile=[1, 0, 0, 0]), "-r", 6, *options)
        run.wait_for(r"[._]{40}")
        began = time.monotonic()
        for relay in (work, results):
            relay.block()
        threading.Event().wait(2.0)
        for relay in (work, results):
            relay.unblock()
        seconds = time.monotonic() - began
        code = run.end()
    # Of a failure that a busy machine made longer nothing is promised.
    if seconds < wire.LOST_AFTER - 1.5:
        assert code == ExitCode.OK, run.err
        assert "WARNING" not in run.err
        assert set(outcome(fleet.stats).causes) == {None}


def test_a_connection_that_breaks_names_its_worker_and_what_it_cost(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.3) as (_, options), ExitStack() as stack:
        relay = stack.enter_context(Relay(fleet.work_port))
        fleet.worker(1, "-c", 8, "--zmq-work-port", relay.port)
        run = fleet.run(write_scenario(tmp_path), "-r", 600, *options)
        run.wait_for(ENDED + "{16}")
        relay.cut()
        run.wait_for(r"WARNING:Worker 1 on .* (no longer has|has not confirmed) \d+ jobs?")
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    causes = set(outcome(fleet.stats).causes)
    # What is under way at the interrupt may not be finished: the connection has just broken.
    assert {None, "lost worker"} <= causes <= {None, "lost worker", "not finished"}


def test_a_second_worker_with_an_id_in_use_sees_no_token(fleet: Fleet, tmp_path: Path) -> None:
    with (
        store(0.02) as (_, options),
        zmq.Context() as context,
        context.socket(zmq.DEALER) as work,
        context.socket(zmq.PUSH) as results,
    ):
        fleet.worker(1, "-c", 8)
        run = fleet.run(write_scenario(tmp_path), "-r", 600, *options)
        run.wait_for("Starting the benchmark")
        work.routing_id = wire.work_address(4711)
        for end, port in ((work, fleet.work_port), (results, fleet.results_port)):
            end.linger = 0
            end.connect(f"tcp://127.0.0.1:{port}")
        hello = wire.Heartbeat(wire.PROTOCOL, 1, 4711, 0, 1.0, 8, [], 0.0, [0] * 8, "here", 99, "1")
        results.send(wire.pack_message(hello))
        refusal = None
        while refusal is None:
            assert work.poll(60_000)
            message = work.recv()
            assert TOKEN.encode() not in message
            match wire.unpack_notice(message):
                case wire.Ping(master, sent):
                    results.send(wire.pack_message(structs.replace(hello, master=master, ping=sent)))
                case wire.Refusal() as refused:
                    refusal = refused
                    assert ID_TAKEN in refusal.reason
                case other:
                    pytest.fail(f"a worker that is not ready got {other or message!r}")
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
        while work.poll(0):
            assert isinstance(wire.unpack_notice(work.recv()), wire.Refusal)
    assert f"WARNING:Worker 1 on here (pid 99) is refused: it {ID_TAKEN}" in run.err
    assert {worker.host for worker in outcome(fleet.stats).summary.workers} == {socket.gethostname()}


def test_a_worker_that_is_killed_and_started_again_at_once_is_welcome(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.05) as (rule, options):
        rule.hold(INITIAL + 100)
        victim = fleet.worker(1, "-c", 8)
        run = fleet.run(write_scenario(tmp_path), "-r", 600, *options)
        rule.wait_for_held(8)
        victim.process.kill()
        rule.release()
        again = fleet.worker(1, "-c", 8)
        run.wait_for(rf"Worker 1 on \S+ \(pid {again.process.pid}\) joined")
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    assert "is refused" not in run.err
    assert outcome(fleet.stats).causes["lost worker"] >= 8


def test_a_name_that_does_not_resolve_is_said(fleet: Fleet) -> None:
    worker = fleet.worker(1, "--zmq-host", "no-such-host.invalid")
    worker.wait_for(
        rf"WARNING:Not connected to tcp://no-such-host.invalid:{fleet.work_port} \(work\) and"
        r" \S+ \(results\): the name no-such-host.invalid does not resolve"
    )
    assert worker.err.count("check --zmq-host") == 1


def test_ports_that_do_not_answer_are_said_again_and_again(fleet: Fleet) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as stack:
        port = full.getsockname()[1]
        for _ in range(4):  # until the kernel answers no more, as if a firewall dropped all packets
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        worker = fleet.worker(1, "--zmq-work-port", port)
        said = (
            rf"WARNING:Not connected to \S+:{port} \(work\): no answer; check .* firewall\S*.*\n"
            rf".*WARNING:Not connected to \S+:{fleet.results_port} \(results\): no process listens there"
        )
        worker.wait_for(said)
        worker.wait_for(rf"{said}(.*\n)+.*{said}")


def test_a_host_in_brackets_is_an_ipv6_address(tmp_path: Path) -> None:
    try:
        free_ports(1, "::1")
    except (OSError, RuntimeError):
        pytest.skip("no IPv6 here")
    with Fleet(tmp_path, "::1") as fleet:
        fleet.worker(1, "--zmq-host", "[::1]")
        run = fleet.run(write_scenario(tmp_path), "--noop")
        assert run.end() == ExitCode.OK, run.err


def test_local_workers_that_are_starting_are_waited_for_as_such(fleet: Fleet, tmp_path: Path) -> None:
    said = tmp_path / "said"
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys, time\n"
        f"while '--exit-with-stdin' in sys.argv and not os.path.exists({str(said)!r}): time.sleep(0.05)\n"
    )
    run = fleet.run(
        write_scenario(tmp_path), "--noop", "--workers", 2,
        environment={"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"},
    )  # fmt: skip
    run.wait_for("0 of 2 there.* Local workers are starting")
    said.touch()
    assert run.end() == ExitCode.OK, run.err
    assert "Start some" not in run.err


def test_the_command_that_is_advised_has_the_key_in_use(fleet: Fleet, tmp_path: Path) -> None:
    key = tmp_path / "a key"
    assert fleet.master("keygen", key).end() == ExitCode.OK
    run = fleet.run(write_scenario(tmp_path), "--noop", "--expect-workers", "1@2", "--zmq-key", key)
    assert run.end() == ExitCode.WORKERS
    assert f"--zmq-results-port {fleet.results_port} --zmq-key '{key}'" in run.err
