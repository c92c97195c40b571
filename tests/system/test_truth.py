"""Short runs against a store that keeps its own record: what is printed against what it recorded.

Bounds are loose, because a loaded machine adds to both; tests/unit/test_truth.py has the exact ones.
"""

from __future__ import annotations

import itertools
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_server import Reply, Request
from planted import printed
from processes import Fleet
from runs import store, wait_until, write_scenario

from ssbench.errors import ExitCode

SIZE = 20_000
USERS = 4
DELAY = 0.02

#: (seconds since the first read, how many reads came before it) -> what is wrong with the answer.
Fault = Callable[[float, int, Request], Reply | None]


class Record:
    """What the store did: when each read arrived and when it was answered, and with which status."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._lock = threading.Lock()
        self._usual = Reply(200, body=b"x" * SIZE, delay=DELAY)
        self.answers: list[tuple[float, float, int]] = []
        self.resets = 0

    def __call__(self, request: Request) -> Reply | None:
        if request.method != "GET":
            return None
        with self._lock:
            now = time.monotonic()
            since = now - self.answers[0][0] if self.answers else 0.0
            reply = self._fault(since, len(self.answers), request) or self._usual
            if reply.reset:
                self.resets += 1
            else:
                self.answers.append((now, now + reply.delay, reply.status))
            return reply

    def done(self, seconds: float, status: int = 200) -> int:
        """How many reads it answered with a status in the first seconds from the first read on."""
        end = self.answers[0][0] + seconds
        return sum(ended <= end and status == each for _, ended, each in self.answers)

    def longest_gap(self) -> float:
        ends = sorted(ended for _, ended, _ in self.answers)
        return max(after - before for before, after in itertools.pairwise(ends))


def measure(
    fleet: Fleet, folder: Path, fault: Fault, seconds: float, code: ExitCode
) -> tuple[Record, dict[str, float]]:
    """Run reads for some seconds; return what the store recorded and what was printed."""
    record = Record(fault)
    sizes = [{"name": "tiny", "size_min": SIZE, "size_max": SIZE}]
    scenario = write_scenario(folder, sizes=sizes, crud_profile=[0, 1, 0, 0], user_count=USERS)
    with store() as (rule, options):
        rule.fault = record
        fleet.worker(1, "-c", USERS)
        run = fleet.run(scenario, "-r", seconds, "--retries", 0, *options)
        assert run.end() == code, run.err
    return record, printed(run.out)


def test_a_constant_store(fleet: Fleet, tmp_path: Path) -> None:
    record, found = measure(fleet, tmp_path, lambda *_: None, 2, ExitCode.OK)
    assert found["TOTAL count"] == len(record.answers)
    assert found["window"] == pytest.approx(2, rel=0.05)
    rate = record.done(2) / 2
    assert found["ALL ops/s"] == pytest.approx(rate, rel=0.1)
    assert found["TOTAL requests/s"] == pytest.approx(found["ALL ops/s"], abs=0.06)
    assert found["ALL MB/s"] == pytest.approx(found["ALL ops/s"] * SIZE / 1e6, rel=0.01)
    assert found["ALL ops"] + found["drained"] == len(record.answers)
    assert 1000 * DELAY <= found["READ last p50"] <= 1000 * USERS / rate * 1.3
    # By the median, which on a loaded machine is less than the mean that counts.
    assert 0.75 * found["ALL ops/s"] * found["READ last p50"] / USERS / 10 <= found["busy %"] <= 101
    assert "stalls" not in found
    assert found["ALL failed"] == 0


def test_a_stall_of_the_store(fleet: Fleet, tmp_path: Path) -> None:
    def stall(since: float, _before: int, _request: Request) -> Reply | None:
        # Without delay otherwise: the stalled reads have to be less than one in a hundred.
        return Reply(200, body=b"x" * SIZE, delay=2.2 - since if 1.0 <= since < 2.2 else 0.0)

    record, found = measure(fleet, tmp_path, stall, 3, ExitCode.OK)
    gap = record.longest_gap()
    assert gap > 1.0
    longest = max(value for name, value in found.items() if name.startswith("stall ") and name.endswith(" s"))
    assert longest == pytest.approx(gap, abs=0.2)
    assert found["ALL ops/s"] == pytest.approx(record.done(3) / 3, rel=0.1)
    assert found["READ last max"] >= 1000 * (gap - 0.1)
    assert found["ops slowest at"] == 1


def test_a_hung_read_and_resets_of_kept_connections(fleet: Fleet, tmp_path: Path) -> None:
    used: set[int] = set()

    def fault(_since: float, before: int, request: Request) -> Reply | None:
        if before == 30:
            return Reply(200, body=b"x" * SIZE, delay=4.0)
        kept = request.connection in used
        used.add(request.connection)
        return Reply(reset=True) if kept and before % 10 == 9 else None

    record, found = measure(fleet, tmp_path, fault, 2, ExitCode.OK)
    assert record.resets > 5
    assert found["reconnect"] == record.resets
    assert (found["TOTAL retries"], found["TOTAL errors"]) == (0, 0)
    assert found["window"] == pytest.approx(2, rel=0.05)
    assert found["ALL ops/s"] == pytest.approx(record.done(2) / 2, rel=0.1)
    assert found["drain"] > 1
    assert found["READ last max"] >= 4000


def test_reads_of_another_size_than_was_written(fleet: Fleet, tmp_path: Path) -> None:
    wrong = {1: SIZE - 1, 2: SIZE + 1, 3: 0}

    def fault(_since: float, before: int, _request: Request) -> Reply | None:
        size = wrong.get(before % 10)
        return None if size is None else Reply(200, body=b"x" * size, delay=DELAY)

    record, found = measure(fleet, tmp_path, fault, 1, ExitCode.FAILED)
    reads = len(record.answers)
    assert found["wrong size n"] == sum(place % 10 in wrong for place in range(reads))
    assert found["wrong size status"] == 200
    assert found["TOTAL count"] == reads - found["wrong size n"]
    assert found["ALL MB/s"] == pytest.approx(found["ALL ops/s"] * SIZE / 1e6, rel=0.01)


def test_an_outage_at_the_start(fleet: Fleet, tmp_path: Path) -> None:
    def outage(since: float, _before: int, _request: Request) -> Reply | None:
        return Reply(503, delay=0.1) if since < 1.0 else None

    record, found = measure(fleet, tmp_path, outage, 2, ExitCode.FAILED)
    assert found["window"] == pytest.approx(2, rel=0.05)
    assert found["ALL ops/s"] == pytest.approx(record.done(2) / 2, rel=0.1)
    assert found["HTTP 503 n"] == found["ALL failed"] == record.done(2, 503)
    assert found["HTTP 503 status"] == 503
    assert found["HTTP 503 ms"] >= 100
    assert found["ops slowest at"] == 0


def test_a_worker_that_is_stopped_is_not_taken_for_a_slow_store(fleet: Fleet, tmp_path: Path) -> None:
    record = Record(lambda *_: None)
    sizes = [{"name": "tiny", "size_min": SIZE, "size_max": SIZE}]
    scenario = write_scenario(tmp_path, sizes=sizes, crud_profile=[0, 1, 0, 0], user_count=USERS)
    with store() as (rule, options):
        rule.fault = record
        worker = fleet.worker(1, "-c", USERS)
        run = fleet.run(scenario, "-r", 3, "--retries", 0, *options)
        wait_until(lambda: len(record.answers) > 20, "reads")
        worker.process.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        threading.Event().wait(1.0)
        worker.process.send_signal(signal.SIGCONT)
        stood_still = time.monotonic() - stopped
        assert run.end() == ExitCode.OK, run.err
    found = printed(run.out)
    # The kernel may have told when the answers came; else their operations are left out.
    assert found["READ last n"] + found.get("left out", 0) == found["TOTAL count"]
    assert found["READ last max"] < 900 * stood_still
    seconds, *_ = re.findall(
        r"The load generator stood still: worker 1 on \S+ for ([\d.]+) s from", " ".join(run.out.split())
    )
    assert float(seconds) == pytest.approx(stood_still, abs=0.3)
    assert any(found.get(f"stall {number} own", 0.0) > 0.6 * stood_still for number in range(5))
