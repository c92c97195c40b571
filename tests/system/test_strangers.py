"""Strangers on the ports of a fleet without a key: workers that lie, connections that say nothing."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
import zmq
from processes import Fleet, Program, limited
from runs import children, outcome, store, wait_for_results_of, wait_until, write_scenario
from said import WORKER_DISTRIBUTION
from zmtp_peer import GREETING, PART, FalseMaster, ResettingStrangers, ready, shake_hands

from ssbench.base.errors import ExitCode
from ssbench.fleet import wire
from ssbench.results.reading import open_results
from ssbench.store.contract import JobResult

#: Seconds that the store takes for an answer.
DELAY = 0.02

#: Settles and hands back, with its own results, the jobs of others.
THIEF = """
import sys
from ssbench.cli.worker import main
from ssbench.fleet import wire
from ssbench.store.contract import JobResult
from ssbench.worker.group_service import ResultOutbox
from ssbench.worker.worker_process import Worker
send, take = ResultOutbox.send, Worker._take_batch
own = set()

def remember(self, batch, *more):
    own.update(job[0] for job in batch.jobs)
    take(self, batch, *more)

def steal(self, message):
    if isinstance(message, wire.JobResults):
        first = min(result.job_id for result in message.results)
        others = [job for job in range(max(1, first - 40), first) if job not in own]
        stolen = [JobResult(job, 0.0, 0.0, message.clock) for job in others]
        who = (message.run_id, message.worker_id, message.instance)
        send(self, wire.JobResults(*who, message.clock, message.generation, stolen))
        send(self, wire.Handback(*who, 4, others))
    return send(self, message)

ResultOutbox.send, Worker._take_batch = steal, remember
sys.exit(main())
"""

#: Two of three of its results cannot be.
LIAR = """
import itertools, sys
from msgspec.structs import replace
from ssbench.cli.worker import main
from ssbench.worker.group_service import ResultOutbox
honest = ResultOutbox.ended
lies = itertools.cycle([
    {"last_byte": 1e6}, {"first_byte": 2.0, "last_byte": 1.0}, {"size": 2**40}, {"retries": 2**32 - 1},
    {"completed": 1e9}, {"retried": {"HTTP 503": 2**32 - 1}}, {"last_byte": None, "first_byte": None},
])
numbers = itertools.count()

def lie(self, batch_id, results, refused=None):
    told = [replace(result, **next(lies)) if next(numbers) % 3 else result for result in results]
    honest(self, batch_id, told, refused)

ResultOutbox.ended = lie
sys.exit(main())
"""


#: What strangers say that then say nothing more: nothing, a greeting, a whole handshake.
SILENT = {"silent": b"", "greeting": GREETING, "worker": GREETING}


@contextmanager
def silence(fleet: Fleet, count: int, kind: str = "silent") -> Iterator[None]:
    """So many connections to each port on which nothing more is said."""
    with ExitStack() as stack:
        for port, name in ((fleet.work_port, b"DEALER"), (fleet.results_port, b"PUSH")):
            for _ in range(count):
                connection = stack.enter_context(socket.create_connection((fleet.ip, port), timeout=30))
                connection.sendall(SILENT[kind] + (ready(name) if kind == "worker" else b""))
        yield


def start(fleet: Fleet, folder: Path, program: str, *arguments: object) -> Program:
    """Start a worker that is none of ours."""
    (folder / "stranger.py").write_text(program)
    options = ["--zmq-host", fleet.ip, *fleet._ports(), *arguments]
    environment = {"PYTHONPATH": f"{folder}:{Path(__file__).parents[2]}"}
    return fleet._stack.enter_context(Program("stranger", options, environment))


def latencies(stats: Path) -> list[float]:
    """The seconds to the last byte of all successes."""
    found = []
    for block in open_results(stats).blocks():
        found.extend(block.last_byte[~block.failed].tolist())
    return found


def test_a_worker_settles_no_jobs_of_others(fleet: Fleet, tmp_path: Path) -> None:
    with store(DELAY) as (rule, options):
        fleet.worker(1, "-c", 4)
        start(fleet, tmp_path, THIEF, "-c", 4, 2)
        scenario = write_scenario(tmp_path, operation_count=400, crud_profile=[1, 2, 1, 0])
        run = fleet.run(scenario, "--expect-workers", 2, "--batch-size", 1, *options)
        assert run.end() == ExitCode.OK, run.err
    found = outcome(fleet.stats)
    assert found.causes == {None: 400}
    assert "descriptors" not in run.err
    assert rule.counts["GET"] == found.operations["read"]
    # None of those of the thief, which claims to have needed no time.
    assert min(latencies(fleet.stats)) >= DELAY - 0.0005
    assert set(found.workers) == {1, 2}
    assert found.summary.counters["foreign_results"] > 0
    assert run.err.count("Worker 2 on ") >= 2
    assert run.err.count("sends results of jobs that it does not have") == 1
    warnings = [text for text in found.summary.warnings if "named jobs that other workers had" in text]
    assert len(warnings) == 1
    assert "of worker 2 on" in warnings[0]
    assert warnings[0] in " ".join(run.out.split())


def test_figures_that_cannot_be_are_errors_of_the_worker_that_sent_them(fleet: Fleet, tmp_path: Path) -> None:
    with store(DELAY) as (_, options):
        # However slow the stranger is for a while, most of the jobs are its own.
        fleet.worker(1, "-c", 1)
        start(fleet, tmp_path, LIAR, "-c", 4, 2)
        scenario = write_scenario(tmp_path, operation_count=400, crud_profile=[1, 2, 1, 0])
        run = fleet.run(scenario, "--expect-workers", 2, *options)
        assert run.end() == ExitCode.FAILED, run.err
    found = outcome(fleet.stats)
    assert found.count == 400
    assert set(found.causes) == {None, "invalid result"}
    assert found.causes["invalid result"] > 20
    # The stranger's initial uploads count too.
    assert found.summary.counters["invalid_results"] >= found.causes["invalid result"]
    for part in (
        "and was sent",
        "the last one after",
        "bytes were moved",
        "retries",
        "ended",
        "no last byte",
    ):
        assert any(part in detail for detail in found.details), part
    assert run.err.count("sent an impossible result") == 1
    assert any("had impossible figures" in text for text in found.summary.warnings)
    assert max(latencies(fleet.stats)) < 60


@pytest.mark.parametrize("sealed", [False, True], ids=["open", "sealed"])
@pytest.mark.parametrize("kind", SILENT)
def test_connections_that_say_nothing_more_end_no_run(
    fleet: Fleet, tmp_path: Path, kind: str, sealed: bool
) -> None:
    """More of them than the master may have descriptors; and the objects of the run are deleted."""
    key = ["--zmq-key", tmp_path / "key"] if sealed else []
    if sealed:
        assert fleet.master("keygen", tmp_path / "key").end() == ExitCode.OK
    with store(DELAY) as (rule, options):
        fleet.worker(1, "-c", 4, *key)
        run = fleet.run(
            write_scenario(tmp_path), "-r", 600, *key, *options, environment=limited(tmp_path, 128)
        )
        run.wait_for(r"[._]{20}")
        with silence(fleet, 200, kind):
            if kind == "silent" or sealed:
                # They take nobody's place.
                fleet.worker(2, "-c", 4, *key)
                run.wait_for("Worker 2 on .* joined")
            else:
                run.wait_for(r"WARNING:128 file descriptors.* room for about \d+ workers.*ulimit -n")
            wait_for_results_of(1, 40, fleet.stats)
            run.signal(signal.SIGINT)
            assert run.end() == ExitCode.INTERRUPTED, run.err
    assert "Traceback" not in run.err
    assert WORKER_DISTRIBUTION in run.out
    found = outcome(fleet.stats)
    assert found.settled() == {None}
    if kind == "silent" or sealed:  # the others have places, or wait for one
        assert found.summary.counters["refused_connections"] > 0
    assert rule.counts["DELETE"] > 0
    assert re.search(r"INFO:Deleted ([\d,]+) of \1\n", run.err), run.err


def test_silent_connections_end_no_wait_for_workers(fleet: Fleet, tmp_path: Path) -> None:
    run = fleet.run(
        write_scenario(tmp_path, operation_count=50),
        *("--noop", "--expect-workers", "1@110"),
        environment=limited(tmp_path, 128),
    )
    run.wait_for("Waiting for workers")
    with silence(fleet, 200):
        run.wait_for("WARNING:Closed a connection from .*: it said nothing")
        fleet.worker(1)
        assert run.end() == ExitCode.OK, run.err
    assert run.err.count("it said nothing") == 1
    found = outcome(fleet.stats)
    assert found.causes[None] > 40
    assert found.summary.counters["refused_connections"] > 100
    assert "connections to the master's ports were refused" in " ".join(run.out.split())


def test_large_messages_of_strangers_fill_no_memory(fleet: Fleet, tmp_path: Path) -> None:
    with store(DELAY) as (_, options), zmq.Context() as context, context.socket(zmq.PUSH) as flood:
        fleet.worker(1, "-c", 4)
        run = fleet.run(write_scenario(tmp_path), "-r", 600, *options)
        run.wait_for(r"[._]{20}")
        status = Path(f"/proc/{run.process.pid}/status")

        def memory(name: str) -> int:
            """Kilobytes."""
            return int(status.read_text().partition(name)[2].split()[0])

        before = memory("VmRSS:")
        flood.linger = 0
        flood.sndhwm = 0
        flood.connect(f"tcp://{fleet.ip}:{fleet.results_port}")
        # One list of results as long as it may be, over and over: some 250 MB.
        results = [JobResult(job, 0.0, 0.0, 1.0, trans_id="x" * 40) for job in range(6000)]
        while (
            len(largest := wire.pack_message(wire.JobResults(1, 2, 3, 1.0, 0, results)))
            > wire.MAX_WORKER_MESSAGE_BYTES
        ):
            del results[-500:]
        assert len(largest) > 0.5 * wire.MAX_WORKER_MESSAGE_BYTES
        sent = [flood.send(largest, copy=False, track=True) for _ in range(500)]
        wait_until(lambda: all(each.done for each in sent), "the end of the flood")
        peak = memory("VmHWM:")
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    found = outcome(fleet.stats)
    # On a loaded machine reading the flood may take so long that the worker counts as lost meanwhile.
    assert found.causes.keys() <= {None, "lost worker", "not finished"}
    assert found.summary.counters["late_results"] >= 250 * len(results)
    assert peak - before < 150_000


def peak(program: Program) -> int:
    """The largest resident memory of a program so far, bytes."""
    status = Path(f"/proc/{program.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@pytest.mark.parametrize("sealed", [False, True], ids=["open", "sealed"])
@pytest.mark.parametrize("local", [False, True], ids=["fleet", "one box"])
def test_no_connection_that_is_reset_ends_a_run(
    fleet: Fleet, tmp_path: Path, local: bool, sealed: bool
) -> None:
    """More messages than are taken in, PINGs among them, and a reset: libzmq aborts if it sees that."""
    key = ["--zmq-key", tmp_path / "key"] if sealed else []
    if sealed:
        assert fleet.master("keygen", tmp_path / "key").end() == ExitCode.OK

    with store(DELAY) as (rule, options):
        if not local:
            fleet.worker(1, "-c", 4, *key)
        rule.hold(100)
        workers = ["--workers", 1] if local else []
        run = fleet.run(write_scenario(tmp_path, operation_count=100), *workers, *key, *options)
        run.wait_for(r"[._]{20}")
        before = peak(run)
        with ResettingStrangers(fleet.ip, fleet.work_port, fleet.results_port, 60) as strangers:
            strangers.wait()
        assert peak(run) - before < 100_000_000
        rule.release()
        assert run.end() == ExitCode.OK, run.err
    assert all(sealed or count >= 40 for count in strangers.flooded.values()), strangers.flooded
    assert outcome(fleet.stats).settled() == {None}


def test_a_message_without_end_fills_no_memory(fleet: Fleet, tmp_path: Path) -> None:
    """libzmq takes in all parts of a message, with 64 bytes for each, before it delivers one."""
    with store(DELAY) as (rule, options):
        fleet.worker(1, "-c", 4)
        rule.hold(100)
        run = fleet.run(write_scenario(tmp_path, operation_count=100), *options)
        run.wait_for(r"[._]{20}")
        before = peak(run)
        for port, kind in ((fleet.work_port, b"DEALER"), (fleet.results_port, b"PUSH")):
            with socket.create_connection((fleet.ip, port), timeout=30) as peer, suppress(OSError):
                shake_hands(peer, kind)
                for _ in range(400):
                    peer.sendall(PART * 16_384)
        assert peak(run) - before < 100_000_000
        rule.release()
        assert run.end() == ExitCode.OK, run.err
    assert run.err.count("does not speak the protocol of ssbench-worker") == 1
    found = outcome(fleet.stats)
    assert found.settled() == {None}
    # The master is told every quarter of a second: the run may end before it hears of the second one.
    assert found.summary.counters["refused_connections"] in {1, 2}


def test_the_end_of_the_process_that_relays_is_said(fleet: Fleet, tmp_path: Path) -> None:
    with store(DELAY) as (_, options):
        fleet.worker(1, "-c", 4)
        run = fleet.run(write_scenario(tmp_path), "-r", 600, *options)
        run.wait_for(r"[._]{20}")
        (relay, *_) = [
            pid
            for pid in children(run.process.pid)
            if b"port_relay" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        os.kill(relay, signal.SIGKILL)
        assert run.end() == ExitCode.WORKERS, run.err
    assert run.err.count("process that relays the connections of workers has ended") == 1
    assert "Traceback" not in run.err


def test_a_master_that_is_none_ends_no_worker(fleet: Fleet, tmp_path: Path) -> None:
    with store() as (_, options):
        worker = fleet.worker(1, "-c", 4)
        with FalseMaster(fleet.work_port, fleet.results_port) as false:
            ended = worker.process.poll
            wait_until(lambda: false.came["work"] >= 10 or ended() is not None, "the worker, again and again")
            assert ended() is None, worker.err
        assert peak(worker) < 150_000_000
        run = fleet.run(write_scenario(tmp_path), *options)
        assert run.end() == ExitCode.OK, run.err
    assert worker.err.count("Dropped an invalid message") <= 100
    assert outcome(fleet.stats).causes == {None: 200}
