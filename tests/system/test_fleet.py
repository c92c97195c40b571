"""Masters and workers as real processes: who is used, who is refused, and what is counted."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import zmq
from fault_server import Reply, Request
from json_records import valid
from processes import ANEW, CHARACTERS, Fleet
from runs import (
    INITIAL,
    TOKEN,
    alive,
    children,
    listens,
    outcome,
    store,
    wait_for_results_of,
    wait_until,
    write_scenario,
)
from said import (
    NO_MORE_SENT,
    NO_WORKER_READY,
    REFUSED_WORKER,
    SAME_KEY,
    STILL_THERE,
    WORKER_DISTRIBUTION,
)
from sent_scenarios import make_sent
from stand_in_workers import StandInWorkers

from ssbench.base.errors import ExitCode
from ssbench.fleet import wire
from ssbench.fleet.prefetch import MAX_PREFETCHED
from ssbench.scenario.operations import REMOVE


def next_message(results: zmq.Socket[bytes]) -> wire.FromWorker:
    """Wait for the next message of a worker."""
    assert results.poll(60_000)
    return wire.unpack_from_worker(results.recv())


def address_of_next(work: zmq.Socket[bytes], results: zmq.Socket[bytes]) -> bytes:
    """Where to send work for the worker that says hello next, once it can be reached there.

    Its hello may come before its connection for work is made. A ping, which it answers, tells.
    """
    hello = next_message(results)
    assert isinstance(hello, wire.Heartbeat)
    address = wire.work_address(hello.instance)

    def pinged() -> bool:
        with contextlib.suppress(zmq.ZMQError):
            work.send_multipart([address, wire.pack_notice(wire.Ping(1, 0.0))])
            return True
        return False

    wait_until(pinged, "the worker's connection for work")
    return address


@contextlib.contextmanager
def stand_in_master(fleet: Fleet) -> Iterator[tuple[zmq.Socket[bytes], zmq.Socket[bytes]]]:
    """A master's two sockets, work and results, in the hands of the test."""
    with zmq.Context() as context, context.socket(zmq.ROUTER) as work, context.socket(zmq.PULL) as results:
        for socket, port in ((results, fleet.results_port), (work, fleet.work_port)):
            socket.linger = 0
            socket.bind(f"tcp://127.0.0.1:{port}")
        work.router_mandatory = True  # sending to one that is not connected fails
        yield work, results


def results_of(results: zmq.Socket[bytes], count: int) -> dict[int, int]:
    """Wait for the results of so many jobs; the generation that each job's message names."""
    found: dict[int, int] = {}
    while len(found) < count:
        message = next_message(results)
        if isinstance(message, wire.JobResults):
            for result in message.results:
                assert result.job_id not in found
                found[result.job_id] = message.generation
    return found


def joined(worker_id: int) -> str:
    return rf"Worker {worker_id} on \S+ \(pid \d+\) joined"


def test_no_worker_is_said_every_few_seconds_with_what_to_do(fleet: Fleet, tmp_path: Path) -> None:
    run = fleet.run(write_scenario(tmp_path), "--noop", "--expect-workers", "1@600")
    said = (
        r"INFO:Waiting for workers: 0 of 1 .*ssbench-worker --zmq-host 127\.0\.0\.1"
        rf" --zmq-work-port {fleet.work_port}.*\n"
    )
    run.wait_for(rf"{said}(.*\n)*{said}")
    run.signal(signal.SIGINT)
    assert run.end() == ExitCode.INTERRUPTED
    assert "Traceback" not in run.err


def test_no_worker_in_time_ends_a_run(fleet: Fleet, tmp_path: Path) -> None:
    run = fleet.run(write_scenario(tmp_path), "--noop", "--expect-workers", "1@1")
    assert run.end() == ExitCode.WORKERS
    assert re.search(rf"ERROR:.*{NO_WORKER_READY} 1 s", run.err)
    assert "Traceback" not in run.err
    assert not fleet.stats.exists()


def test_one_fleet_serves_one_master_after_another(fleet: Fleet, tmp_path: Path) -> None:
    workers = [fleet.worker(number, "-c", 4) for number in (3, 8)]
    scenario = write_scenario(tmp_path, operation_count=3001)
    for _ in range(2):
        run = fleet.run(scenario, "--noop", "--expect-workers", 2)
        assert run.end() == ExitCode.OK, run.err
        found = outcome(fleet.stats)
        assert found.count + sum(count for *_, count in found.summary.not_sendable) == 3001
        assert set(found.causes) == {None}
        assert set(found.workers) == {3, 8}
    assert all(worker.process.poll() is None for worker in workers)
    killer = fleet.kill_workers()
    assert killer.end() == ExitCode.OK
    assert len(re.findall(r"INFO:Worker [38]\b.* has exited", killer.err)) == 2
    assert "2 workers exited" in killer.err
    assert "WARNING" not in killer.err
    for worker in workers:
        assert worker.end() == ExitCode.OK
        assert "the master told this worker to" in worker.err


def test_workers_need_no_number(fleet: Fleet, tmp_path: Path) -> None:
    """Beside one that has one; each ends by itself when there is no work, and one after the run.

    Where they are is in the report.
    """
    once = fleet.worker(7, "--runs", 1, "--site", "there", environment={"SLURM_PROCID": "4"})
    report = tmp_path / "report.json"
    arguments = ("--noop", "--expect-workers", 3, "--json", report, "--verbose")
    run = fleet.run(write_scenario(tmp_path, operation_count=3000), *arguments)
    run.wait_for(r"Worker 7 \S+ .*joined")
    # When all others are there: these do not wait long.
    idle = [fleet.worker(None, "--idle-exit", "8s", "--site", "here") for _ in range(2)]
    assert run.end() == ExitCode.OK, run.err
    found = outcome(fleet.stats)
    assert set(found.workers) == {7, 1_000_001, 1_000_002}
    assert re.search(r"INFO:Worker 7 on \S+, task 4 \(pid \d+\) joined", run.err)
    here, there = json.loads(report.read_text())["sites"]
    assert [(each["site"], each["workers"]) for each in (here, there)] == [("here", 2), ("there", 1)]
    assert here["figures"]["count"] + there["figures"]["count"] == found.count
    # Where a worker stands still with creates, others may have deleted all objects that there are.
    assert found.count + sum(count for *_, count in found.summary.not_sendable) == 3000
    assert re.search(r"^site +workers .*\n(.*\n)*here +2 .*\n(.*\n)*there +1 ", run.out, re.MULTILINE)
    for worker in idle:
        assert worker.end() == ExitCode.OK
        assert "there was no work for 8 s (--idle-exit)" in worker.err
    assert once.end() == ExitCode.OK
    assert "it has served 1 run (--runs)" in once.err


def test_a_worker_ends_with_what_started_it(fleet: Fleet) -> None:
    """Its standard input is closed, as by the end of an ssh connection; what comes there is dropped."""
    ports = ["--zmq-work-port", str(fleet.work_port), "--zmq-results-port", str(fleet.results_port)]
    command = [sys.executable, "-m", "ssbench.cli.worker", *ports, "--end-with-stdin"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stdin is not None
        assert worker.stderr is not None
        assert "waiting for a master" in worker.stderr.readline()
        worker.stdin.write("hello\n")
        worker.stdin.close()
        assert worker.wait(60) == ExitCode.OK
        assert "its standard input is closed (--end-with-stdin)" in worker.stderr.read()


def test_300_workers_lose_nothing_and_exit_when_told_to(fleet: Fleet, tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path, operation_count=20_000, user_count=300, crud_profile=[1, 0, 0, 0])
    with StandInWorkers(300, fleet.work_port, fleet.results_port) as workers:
        run = fleet.run(scenario, "--noop", "--expect-workers", 300)
        assert run.end() == ExitCode.OK, run.err
        found = outcome(fleet.stats)
        assert found.causes == {None: 20_000}
        assert len(found.workers) == 300
        killer = fleet.kill_workers()
        assert killer.end() == ExitCode.OK, killer.err
        assert workers.exited == set(range(1, 301))
    assert "300 workers exited" in killer.err
    # So many are not named one by one.
    assert len(killer.err.splitlines()) < 30


def test_kill_workers_names_those_that_do_not_exit(fleet: Fleet) -> None:
    with StandInWorkers(3, fleet.work_port, fleet.results_port, deaf=[2]) as workers:
        killer = fleet.kill_workers("--json", "-")
        assert killer.end() == ExitCode.FAILED
        assert workers.exited == {1, 3}
    report = valid(killer.out, "workers")
    assert report["exit_code"] == 1
    assert [name.split(" (")[0] for name in sorted(report["exited"])] == [
        f"Worker {number} on stand-in" for number in (1, 3)
    ]
    assert (len(report["remaining"]), report["unnamed"]) == (1, 0)
    assert re.search(r"WARNING:Worker 2 on stand-in \(pid 1\) did not exit", killer.err)
    assert "2 workers exited" in killer.err


def test_kill_workers_says_so_when_nobody_is_there(fleet: Fleet) -> None:
    killer = fleet.kill_workers()
    assert killer.end() == ExitCode.OK
    assert "No worker connected" in killer.err


@pytest.mark.parametrize(("workers", "users", "batch_size"), [(1, 1, 1), (5, 3, 3)])
def test_any_number_of_workers_counts_up_exactly(
    fleet: Fleet, tmp_path: Path, workers: int, users: int, batch_size: int
) -> None:
    scenario = write_scenario(tmp_path, operation_count=503, crud_profile=[1, 0, 0, 0])
    run = fleet.run(scenario, "--noop", "--workers", workers, "-u", users, "--batch-size", batch_size)
    assert run.end() == ExitCode.OK, run.err
    found = outcome(fleet.stats)
    assert found.causes == {None: 503}
    assert set(found.workers) <= set(range(workers))
    assert found.summary.lost_jobs == 0


def test_each_operation_is_one_request(fleet: Fleet, tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path, operation_count=301)
    with store() as (rule, options):
        run = fleet.run(scenario, "--workers", 2, "-u", 7, "--batch-size", 3, *options)
        assert run.end() == ExitCode.OK, run.err
    found = outcome(fleet.stats)
    operations = found.operations
    # With nobody retrying there is a request for each result, each initial object and each deletion;
    # what is left of the initial objects stays for the next run.
    initial = {f"tiny_{number:06d}" for number in range(1, INITIAL + 1)}
    kept = {name.rpartition("/")[2] for name in rule.objects()}
    assert kept <= initial
    created_and_left = operations["create"] - (operations["delete"] - len(initial - kept))
    assert rule.counts["PUT"] == 2 + INITIAL + operations["create"] + operations["update"]
    assert rule.counts["GET"] == operations["read"]
    assert rule.counts["DELETE"] == operations["delete"] + created_and_left
    assert found.count + sum(count for *_, count in found.summary.not_sendable) == 301


def test_a_worker_that_joins_in_the_middle_is_used(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.02) as (_, options):
        fleet.worker(1, "-c", 4)
        run = fleet.run(write_scenario(tmp_path), "-r", 600, *options)
        run.wait_for("Starting the benchmark")
        fleet.worker(2, "-c", 4)
        run.wait_for(joined(2))
        wait_for_results_of(2, 20, fleet.stats)
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    found = outcome(fleet.stats)
    assert found.settled() == {None}
    assert {worker.worker_id for worker in found.summary.workers} == {1, 2}


def test_of_two_workers_with_one_id_the_second_is_refused(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.02) as (_, options):
        first = fleet.worker(1, "-c", 4)
        run = fleet.run(write_scenario(tmp_path), "-r", 600, *options)
        run.wait_for("Starting the benchmark")
        second = fleet.worker(1, "-c", 4)
        run.wait_for(
            rf"WARNING:Worker 1 .*pid {second.process.pid}\) is refused: it has the id of"
            rf" .*pid {first.process.pid}\)"
        )
        assert second.end() == ExitCode.USAGE
        assert f"{REFUSED_WORKER}: it has the id of" in second.err
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    assert first.process.poll() is None
    found = outcome(fleet.stats)
    assert found.settled() == {None}
    assert any("has the id of" in warning for warning in found.summary.warnings)


def test_a_worker_of_another_version_is_refused_by_the_master(fleet: Fleet, tmp_path: Path) -> None:
    with zmq.Context() as context, context.socket(zmq.PUSH) as results, context.socket(zmq.DEALER) as work:
        work.routing_id = wire.work_address(4711)
        for socket, port in ((results, fleet.results_port), (work, fleet.work_port)):
            socket.linger = 0
            socket.connect(f"tcp://127.0.0.1:{port}")
        run = fleet.run(write_scenario(tmp_path), "--noop")
        results.send(msgspec.msgpack.encode([1, wire.PROTOCOL + 1, 7, 4711, {"more": "fields"}]))
        run.wait_for(
            rf"WARNING:Worker 7 .* is refused: it speaks protocol {wire.PROTOCOL + 1},"
            rf" this master {wire.PROTOCOL}"
        )
        # What it is told, it can read: the first element is the version in every version.
        assert work.poll(60_000)
        assert msgspec.msgpack.decode(work.recv())[0] == wire.PROTOCOL
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED


# Version 1 had the jobs in a second frame.
@pytest.mark.parametrize(("version", "rest"), [(wire.PROTOCOL + 1, []), (1, [b"anything"])])
def test_a_worker_ends_when_the_master_is_of_another_version(
    fleet: Fleet, version: int, rest: list[bytes]
) -> None:
    with stand_in_master(fleet) as (work, results):
        worker = fleet.worker(5)
        address = address_of_next(work, results)
        work.send_multipart([address, msgspec.msgpack.encode([version, "anything"]), *rest])
        assert worker.end() == ExitCode.USAGE
        assert f"the master speaks protocol {version}" in worker.err
        message = None
        while not isinstance(message, wire.Goodbye):  # its last message, after some heartbeats perhaps
            message = next_message(results)


def test_a_worker_drops_messages_that_it_cannot_read(fleet: Fleet) -> None:
    with stand_in_master(fleet) as (work, results):
        worker = fleet.worker(5)
        address = address_of_next(work, results)
        header = wire.pack_parameters(wire.RunParameters(1, noop=True))
        for frames in ([b""], [b"\xff"], [b"x", b"y"], [header], [header + b"\xc1"], [header, header[:9]]):
            work.send_multipart([address, *frames])
        work.send_multipart([address, header + wire.pack_message(wire.JobBatch(1, [(1, 0, 0, 0, 0, 0)]))])
        assert list(results_of(results, 1)) == [1]
        assert worker.process.poll() is None
        wait_until(lambda: worker.err.count("ERROR:Dropped an invalid message") == 8, "the log's lines")
        assert "Traceback" not in worker.err


def test_a_batch_that_comes_twice_is_dropped_and_harms_no_slot(fleet: Fleet) -> None:
    with store(0.2) as (_, options), stand_in_master(fleet) as (work, results):
        worker = fleet.worker(5, "-c", 4)
        address = address_of_next(work, results)
        parameters = wire.RunParameters(1, storage_urls=[options[1]], size_classes=["tiny"])
        header = wire.pack_parameters(parameters)

        def send(first: int, count: int) -> None:
            jobs = [(first + place, REMOVE.code, 0, 0, 1, 0) for place in range(count)]
            work.send_multipart([address, header + wire.pack_message(wire.JobBatch(first, jobs))])

        for _ in range(5):
            send(1, 1)
        assert list(results_of(results, 1)) == [1]
        send(11, 4)
        assert sorted(results_of(results, 4)) == [11, 12, 13, 14]
        wait_until(lambda: worker.err.count("batch 1 came twice") == 4, "the log's lines")
        assert "Traceback" not in worker.err


def test_slots_of_an_abandoned_run_are_free_for_the_next_at_once(fleet: Fleet) -> None:
    with store() as (rule, options), stand_in_master(fleet) as (work, results):
        asked = itertools.count(1)
        rule.fault = lambda _: Reply(429, retry_after="10") if next(asked) <= 8 else None
        fleet.worker(5, "-c", 4)
        address = address_of_next(work, results)
        for run_id in (1, 2, 3):
            parameters = wire.RunParameters(run_id, storage_urls=[options[1]], size_classes=["tiny"])
            jobs = [(10 * run_id + place, REMOVE.code, 0, 0, 1, 0) for place in range(4)]
            batch = wire.JobBatch(run_id, jobs)
            work.send_multipart([address, wire.pack_parameters(parameters) + wire.pack_message(batch)])
            wait_until(lambda run_id=run_id: rule.counts["DELETE"] == 4 * run_id, "the requests")
        handed_back = []
        ended = 0
        while ended < 4:
            message = next_message(results)
            handed_back += [message] if isinstance(message, wire.Handback) else []
            ended += len(message.results) if isinstance(message, wire.JobResults) else 0
    assert (ended, handed_back) == (4, [])


def test_what_there_is_no_room_for_is_handed_back_with_how_much_there_is(fleet: Fleet) -> None:
    with store() as (rule, options), stand_in_master(fleet) as (work, results):
        asked, stall = threading.Event(), threading.Event()

        def fault(_request: Request) -> Reply:
            asked.set()
            stall.wait(60)
            return Reply(204)

        rule.fault = fault
        fleet.worker(5, "-c", 4)
        address = address_of_next(work, results)
        header = wire.pack_parameters(wire.RunParameters(7, storage_urls=[options[1]], size_classes=["tiny"]))
        most = 4 + MAX_PREFETCHED
        jobs = [(number, REMOVE.code, 0, 0, 1, 0) for number in range(1, most + 3)]
        try:
            work.send_multipart([address, header + wire.pack_message(wire.JobBatch(1, jobs))])
            while not isinstance(message := next_message(results), wire.Handback):
                pass
            assert (message.job_ids, message.capacity) == ([most + 1, most + 2], 4)
            assert asked.wait(60)
            # A ping is answered at once, with what is held.
            work.send_multipart([address, wire.pack_notice(wire.Ping(77, 1.5))])
            while (message := next_message(results)).master != 77:
                pass
            assert (message.ping, message.held, message.capacity) == (1.5, [1], 4)
        finally:
            stall.set()


def test_a_worker_that_fails_ends_although_work_waits(fleet: Fleet, tmp_path: Path) -> None:
    failing = tmp_path / "failing"
    # An error that gevent gives to the main greenlet, once the first job has ended and more has come.
    program = f"""
import pathlib, time
from ssbench.fleet.sockets import WorkerSockets
from ssbench.worker.engine import make_engine
from ssbench.worker.worker_process import Worker, WorkerOptions
def fail():
    pathlib.Path({str(failing)!r}).touch()
    time.sleep(1)
    raise SystemError("on purpose")
sockets = WorkerSockets("tcp://127.0.0.1:{fleet.work_port}", "tcp://127.0.0.1:{fleet.results_port}")
Worker(WorkerOptions(5, 4), sockets, make_engine, (1, fail)).run()
"""
    with (
        store() as (_, options),
        stand_in_master(fleet) as (work, results),
        subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) as worker,
    ):
        try:
            address = address_of_next(work, results)
            parameters = wire.RunParameters(1, storage_urls=[options[1]], size_classes=["tiny"])
            for number in (1, 2):
                batch = wire.JobBatch(number, [(number, REMOVE.code, 0, 0, 1, 0)])
                work.send_multipart([address, wire.pack_parameters(parameters) + wire.pack_message(batch)])
                wait_until(failing.exists, "the failure")
            _, said = worker.communicate(timeout=60)
        finally:
            worker.kill()
    assert worker.returncode == 1
    assert b"SystemError: on purpose" in said


def test_a_refused_token_is_the_one_that_the_job_began_with(fleet: Fleet) -> None:
    with store() as (rule, options), stand_in_master(fleet) as (work, results):
        renewed = threading.Event()

        def fault(request: Request) -> Reply | None:
            if request.headers["x-auth-token"] != "old":
                return None
            renewed.wait(60)
            return Reply(401)

        rule.fault = fault
        fleet.worker(5, "-c", 4)
        address = address_of_next(work, results)
        for generation, token in enumerate(("old", "new")):
            parameters = wire.RunParameters(
                1,
                generation,
                token,
                [options[1]],
                size_classes=["tiny"],
                scenario=make_sent(container_base="base"),
            )
            job = (1 + generation, REMOVE.code, 0, 0, 1, 0)
            header = wire.pack_parameters(parameters)
            work.send_multipart([address, header + wire.pack_message(wire.JobBatch(job[0], [job]))])
            wait_until(lambda begun=job[0]: rule.counts["DELETE"] == begun, "the request")
        # The master, which has a new token by now, sends job 1 again and does not ask for another token.
        assert results_of(results, 1) == {2: 1}
        renewed.set()
        assert results_of(results, 1) == {1: 0}


def test_a_local_worker_that_dies_at_start_is_told_with_the_end_of_its_log(
    fleet: Fleet, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    assert fleet.master("keygen", key).end() == ExitCode.OK
    # gevent refuses to start with a loop of that name: a fault that only workers have.
    run = fleet.run(
        write_scenario(tmp_path), "--noop", "--workers", 2, environment={"GEVENT_LOOP": "no-such-loop"}
    )
    assert run.end() == ExitCode.WORKERS
    assert (
        len(re.findall(r"ERROR:Local worker [01] ended with exit code \d+; the end of its log", run.err)) == 2
    )
    assert "no-such-loop" in run.err
    assert "ERROR:all local workers have ended" in run.err


def test_one_interrupt_ends_a_run_early_with_a_report(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.02) as (rule, options):
        run = fleet.run(write_scenario(tmp_path), "-r", 600, "--workers", 2, *options, environment=ANEW)
        run.wait_for(r"[._]{20}")
        workers = children(run.process.pid)
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED
        assert len(rule.objects()) <= INITIAL  # the initial ones
    assert "Traceback" not in run.err
    assert WORKER_DISTRIBUTION in run.out
    found = outcome(fleet.stats)
    assert found.summary.interrupted
    assert found.causes[None] >= 20
    assert len(workers) >= 2
    assert not any(alive(pid) for pid in workers)


def test_sigterm_does_what_ctrl_c_does(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.02) as (_, options):
        run = fleet.run(write_scenario(tmp_path), "-r", 600, "--workers", 1, "-k", *options)
        run.wait_for(r"[._]{20}")
        run.signal(signal.SIGTERM)
        assert run.end() == ExitCode.INTERRUPTED
    assert outcome(fleet.stats).summary.interrupted


def test_a_second_interrupt_ends_it_at_once(fleet: Fleet, tmp_path: Path) -> None:
    with store() as (rule, options):
        stalls, creates = re.compile(r"/tiny_(?!000001)"), threading.Event()

        def fault(request: Request) -> Reply | None:
            if not stalls.search(request.target):
                return None
            if request.method == "PUT":
                creates.set()
            return Reply(delay=100)

        rule.fault = fault
        # Nobody answers: the first interrupt waits for what is in flight, for so long that the second comes
        # meanwhile on a busy machine too; the second does not.
        (tmp_path / "sitecustomize.py").write_text(
            "from ssbench.run import phases\nphases._STOPPED_DRAIN_SECONDS = 60.0\n"
        )
        scenario = write_scenario(tmp_path, initial_files={"tiny": 1})
        run = fleet.run(
            scenario,
            *("-r", 600, "--network-timeout", 200, "--workers", 2, *options),
            environment={"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        )
        wait_until(creates.is_set, "a create")
        workers = children(run.process.pid)
        run.signal(signal.SIGINT)
        run.wait_for(f"WARNING:Interrupted: {NO_MORE_SENT}; .* leaves them there")
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED
    # One, where only one upload has begun; "some" where they change at this moment.
    still_there = rf"([\d,]+|some) {STILL_THERE}|1 object that the run created is still there"
    assert re.search(f"WARNING:({still_there})", run.err), run.err
    assert "Traceback" not in run.err
    wait_until(lambda: not any(alive(pid) for pid in workers), "the end of local workers")
    assert f"WARNING:Results so far saved to {fleet.stats}\n" in run.err
    outcome_found = outcome(fleet.stats)
    assert outcome_found.summary is not None


def test_a_second_interrupt_at_the_worst_moment_loses_no_result(fleet: Fleet, tmp_path: Path) -> None:
    # Both signals come while a result that has left the book is on its way to the stat file.
    (tmp_path / "sitecustomize.py").write_text(
        """
import itertools, signal
from ssbench.scenario.population import Population
finished, calls = Population.finished, itertools.count()

def interrupted(*arguments, **named):
    if next(calls) == 5_000:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    finished(*arguments, **named)

Population.finished = interrupted
"""
    )
    run = fleet.run(
        write_scenario(tmp_path, operation_count=1_000_000),
        *("--noop", "--workers", 2, "-u", 64, "--batch-size", 8),
        environment={"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
    )
    assert run.end() == ExitCode.INTERRUPTED
    found = outcome(fleet.stats)
    counters, not_sendable = found.summary.counters, sum(count for *_, count in found.summary.not_sendable)
    assert found.count + not_sendable + counters["not_begun"] == counters["drawn"]


def test_an_interrupt_while_it_waits_for_workers(fleet: Fleet, tmp_path: Path) -> None:
    run = fleet.run(write_scenario(tmp_path), "--noop")
    run.wait_for("Waiting for workers")
    run.signal(signal.SIGINT)
    assert run.end() == ExitCode.INTERRUPTED
    assert "Traceback" not in run.err


def test_a_sealed_fleet_works_for_those_who_have_the_key_only(fleet: Fleet, tmp_path: Path) -> None:
    keys = [tmp_path / "key", tmp_path / "other-key"]
    for key in keys:
        assert fleet.master("keygen", key).end() == ExitCode.OK
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    with store(0.01) as (_, options):
        strangers = [fleet.worker(11), fleet.worker(12, "--zmq-key", keys[1])]
        insider = fleet.worker(13, "-c", 8, environment={"SSBENCH_ZMQ_KEY": str(keys[0])})
        run = fleet.run(write_scenario(tmp_path), "-r", 600, "--zmq-key", keys[0], *options)
        run.wait_for(r"[._]{40}")
        for stranger in strangers:
            stranger.wait_for(SAME_KEY)
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    found = outcome(fleet.stats)
    assert set(found.workers) == {13}
    assert found.settled() == {None}
    assert [worker.worker_id for worker in found.summary.workers] == [13]
    assert insider.process.poll() is None
    assert "Anyone who can connect to" not in run.err


def test_a_sealed_run_with_local_workers(fleet: Fleet, tmp_path: Path) -> None:
    key = tmp_path / "key"
    assert fleet.master("keygen", key).end() == ExitCode.OK
    run = fleet.run(write_scenario(tmp_path), "--noop", "--workers", 2, "--zmq-key", key)
    assert run.end() == ExitCode.OK, run.err


def test_the_token_is_seen_nowhere(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.01) as (_, options):
        worker = fleet.worker(1, "-v")
        run = fleet.master(
            "-v", "run-scenario", "-f", write_scenario(tmp_path), "--zmq-bind-ip", fleet.ip, *fleet._ports(),
            "-s", tmp_path / "run.stat.gz", "-r", "600", "--workers", "1", *CHARACTERS, *options,
            environment=ANEW,
        )  # fmt: skip
        run.wait_for("[._]{20}")
        pids = children(run.process.pid)
        assert pids
        for pid in (run.process.pid, *pids):
            for name in ("cmdline", "environ"):
                assert TOKEN.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
        log = re.search(r"Local worker 0: .* log (\S+)", run.err)[1]
    for text in (run.err, run.out, worker.err, Path(log).read_text()):
        assert TOKEN not in text
    assert TOKEN.encode() not in gzip.decompress((tmp_path / "run.stat.gz").read_bytes())


def test_open_to_the_network_without_a_key_is_one_warning(fleet: Fleet, tmp_path: Path) -> None:
    ports = fleet._ports()
    run = fleet.master(
        "run-scenario", "-f", write_scenario(tmp_path), "--noop", "--expect-workers", "1@1", *ports
    )
    assert run.end() == ExitCode.WORKERS
    warnings = re.findall("WARNING:.*", run.err)
    assert len(warnings) == 1
    assert "keygen" in warnings[0]


def test_a_port_in_use_is_one_line(fleet: Fleet, tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path)
    first = fleet.run(scenario, "--noop")
    wait_until(lambda: listens(fleet.work_port), "the first master's port")
    second = fleet.run(scenario, "--noop")
    assert second.end() == ExitCode.USAGE
    assert re.search(
        rf"ERROR:cannot bind tcp://127.0.0.1:{fleet.work_port}: Address already in use", second.err
    )
    assert "Traceback" not in second.err
    assert first.process.poll() is None


@pytest.mark.parametrize("long", [False, True], ids=["unix sockets", "a name too long for those"])
def test_local_workers_have_sockets_of_their_own(fleet: Fleet, tmp_path: Path, long: bool) -> None:
    folder = tmp_path / ("x" * 100 if long else "x")
    folder.mkdir()
    # Short itself: what pytest gives is long enough to be a name too long.
    with tempfile.TemporaryDirectory(prefix="t", dir=None if long else "/tmp") as short:
        place = str(folder) if long else short
        run = fleet.run(write_scenario(tmp_path), "--noop", "--workers", 2, environment={"TMPDIR": place})
        assert run.end() == ExitCode.OK, run.err
        logs = [Path(place, f"ssbench-worker-local-{number}.log") for number in range(2)]
        for log in logs:
            host = log.read_text().partition("waiting for a master at ")[2].splitlines()[0]
            assert host == fleet.ip if long else Path(host).parent == Path(place)
        assert sorted(Path(place).iterdir()) == logs
