"""Short runs against a store that keeps its own record: what is printed against what it recorded.

A pause of any process is in both: what is compared is true at whatever pace the run went.
tests/unit/helpers/test_truth.py has the exact figures.
"""

from __future__ import annotations

import itertools
import math
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

from ssbench.base.errors import ExitCode
from ssbench.results.reading import open_results
from ssbench.statistics.run_verdict import verdict_of
from ssbench.statistics.summary import summarize

SIZE = 20_000
USERS = 4
DELAY = 0.02

#: (seconds since the first read, how many reads came before it, the read) -> an answer, and the seconds
#: that it takes; None for the usual one.
Fault = Callable[[float, int, Request], tuple[Reply, float] | None]


class Record:
    """What the store did: when each read was answered, by the wall clock, and with which status."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._lock = threading.Lock()
        self._first = 0.0
        self.reads = 0
        self.resets = 0
        self.answers: list[tuple[float, int]] = []

    def __call__(self, request: Request) -> Reply | None:
        if request.method != "GET":
            return None
        with self._lock:
            now = time.monotonic()
            self._first = self._first or now
            usual = Reply(200, body=b"x" * SIZE), DELAY
            reply, delay = self._fault(now - self._first, self.reads, request) or usual
            if reply.reset:
                self.resets += 1
                return reply
            self.reads += 1
        threading.Event().wait(delay)
        with self._lock:
            self.answers.append((time.time(), reply.status))
        return reply

    def moments(self, status: int = 200) -> list[float]:
        """When reads were answered with a status."""
        return sorted(when for when, each in self.answers if each == status)


class Found(dict[str, float]):
    """The figures that a run printed; ``start`` and ``end`` of its window are by the wall clock."""

    def __init__(self, out: str, stats: Path) -> None:
        super().__init__(printed(out))
        start = summarize(open_results(stats)).start
        assert start is not None
        self.start, self.end = start, start + self["window"]

    @property
    def longest(self) -> float:
        """Milliseconds of the longest read; one is left out of other figures where its worker stalled."""
        return max(self["READ last max"], self.get("left out max ms", 0.0))

    def stalls(self, of: str = "s") -> list[float]:
        """The seconds of the stalls, or those of them in which the load generator stalled (``own``)."""
        return [value for name, value in self.items() if re.fullmatch(rf"stall \d+ {of}", name)]


def measure(
    fleet: Fleet,
    folder: Path,
    fault: Fault,
    seconds: float,
    code: ExitCode,
    enough: Callable[[Record, Found], bool] = lambda *_: True,
) -> tuple[Record, Found]:
    """Run reads for some seconds; return what the store recorded and what was printed.

    Where a pause of the machine leaves not ``enough`` to judge, a longer run follows.
    """
    fleet.worker(1, "-c", USERS)
    for times in (1, 3, 10):
        record = Record(fault)
        with store() as (rule, options):
            rule.fault = record
            run = fleet.run(reads(folder), "-r", times * seconds, "--retries", 0, *options)
            assert run.end() == code, run.err
        found = Found(run.out, fleet.stats)
        if enough(record, found):
            break
    return record, found


def reasons(fleet: Fleet) -> list[str]:
    """Return the texts of the reasons for the verdict on the run."""
    return [each.text for each in verdict_of(summarize(open_results(fleet.stats))).reasons]


def reads(folder: Path) -> Path:
    """A scenario of nothing but reads."""
    sizes = [{"name": "tiny", "size_min": SIZE, "size_max": SIZE}]
    return write_scenario(folder, sizes=sizes, crud_profile=[0, 1, 0, 0], user_count=USERS)


def check_rate(record: Record, found: Found) -> None:
    """Reads count that ended in the window. Of what the store has answered, no user lacks more than one."""
    answered = sum(when <= found.end for when in record.moments())
    assert found["ALL ops"] == pytest.approx(answered, rel=0.05, abs=USERS + 1)
    assert found["ALL ops/s"] == pytest.approx(found["ALL ops"] / found["window"], rel=0.01, abs=0.06)
    assert found["ALL MB/s"] == pytest.approx(found["ALL ops/s"] * SIZE / 1e6, rel=0.01, abs=0.006)
    assert found["ALL ops"] + found["drained"] == found["TOTAL count"] == len(record.moments())


def check_slowest(record: Record, found: Found) -> None:
    """In no other second did the store answer less."""
    counts = [
        sum(second <= when - found.start < second + 1 for when in record.moments())
        for second in range(int(found["window"]))
    ]
    # At either end of a second what each user has in flight may be answered, and not yet read.
    assert counts[int(found["ops slowest at"])] <= min(counts) + 2 * USERS


def longest_gap(record: Record, found: Found) -> float:
    """For how long the store answered nothing in the window."""
    within = [when for when, _ in record.answers if found.start < when < found.end]
    return max(
        after - before for before, after in itertools.pairwise([found.start, *sorted(within), found.end])
    )


def test_a_constant_store(fleet: Fleet, tmp_path: Path) -> None:
    record, found = measure(fleet, tmp_path, lambda *_: None, 2, ExitCode.OK)
    check_rate(record, found)
    assert found["TOTAL requests/s"] == pytest.approx(found["ALL ops/s"], abs=0.06)
    # By the median, which on a loaded machine is less than the mean that counts.
    mean = 1000 * USERS / found["ALL ops/s"]
    assert 1000 * DELAY <= found["READ last p50"] <= 1.3 * mean
    assert 0.75 * found["READ last p50"] / mean <= found["busy %"] / 100 <= 1.01
    assert max(found.stalls(), default=0.0) <= longest_gap(record, found) + 0.1
    assert found["ALL failed"] == 0


def test_a_stall_of_the_store(fleet: Fleet, tmp_path: Path) -> None:
    stall = 1.2
    ends: list[float] = []

    def fault(since: float, _before: int, _request: Request) -> tuple[Reply, float]:
        if since >= 1.0 and not ends:
            ends.append(since + stall)
        # Without delay otherwise: the stalled reads have to be less than one in a hundred.
        return Reply(200, body=b"x" * SIZE), max(0.0, ends[0] - since) if ends else 0.0

    # Long enough to have all of it, should something be paused before.
    record, found = measure(fleet, tmp_path, fault, 5, ExitCode.OK)
    gap = longest_gap(record, found)
    assert gap >= 0.95 * stall
    if max(found.stalls("own"), default=0.0) < stall / 2:
        assert any(each.startswith("the store did not answer for") for each in reasons(fleet))
    assert gap - 0.2 <= max(found.stalls()) <= gap + max(found.stalls("own"), default=0.0) + 0.2
    check_rate(record, found)
    check_slowest(record, found)
    assert found.longest >= 1000 * stall - 1


def test_a_hung_read_and_resets_of_kept_connections(fleet: Fleet, tmp_path: Path) -> None:
    used: set[int] = set()

    def fault(_since: float, before: int, request: Request) -> tuple[Reply, float] | None:
        if before == 0:
            used.clear()
        if before == 30:
            return Reply(200, body=b"x" * SIZE), 4.0
        kept = request.connection in used
        used.add(request.connection)
        return (Reply(reset=True), 0.0) if kept and before % 10 == 9 else None

    record, found = measure(fleet, tmp_path, fault, 2, ExitCode.FAILED, lambda record, _: record.resets > 0)
    assert record.resets > 0
    # A connection that was just used has not gone stale; one may have where the machine paused for a second.
    stale = found.get("reconnect", 0)
    assert found["reset n"] == record.resets - stale > stale
    assert (found["TOTAL retries"], found["TOTAL errors"]) == (0, found["reset n"])
    check_rate(record, found)
    assert found["drain"] == pytest.approx(record.moments()[-1] - found.end, abs=0.2)
    assert found.longest >= 4000 - 1


def test_reads_of_another_size_than_was_written(fleet: Fleet, tmp_path: Path) -> None:
    wrong = {1: SIZE - 1, 2: SIZE + 1, 3: 0}

    def fault(_since: float, before: int, _request: Request) -> tuple[Reply, float] | None:
        size = wrong.get(before % 10)
        return None if size is None else (Reply(200, body=b"x" * size), DELAY)

    record, found = measure(fleet, tmp_path, fault, 1, ExitCode.FAILED)
    assert found["wrong size n"] == sum(place % 10 in wrong for place in range(record.reads))
    assert found["wrong size status"] == 200
    assert found["TOTAL count"] == record.reads - found["wrong size n"]
    assert found["ALL MB/s"] == pytest.approx(found["ALL ops/s"] * SIZE / 1e6, rel=0.01, abs=0.006)


def test_an_outage_at_the_start(fleet: Fleet, tmp_path: Path) -> None:
    def outage(since: float, _before: int, _request: Request) -> tuple[Reply, float] | None:
        return (Reply(503), 0.1) if since < 1.0 else None

    def judged(_record: Record, found: Found) -> bool:
        """Whether an error is left that its worker did not delay."""
        return not math.isnan(found["HTTP 503 ms"])

    record, found = measure(fleet, tmp_path, outage, 2, ExitCode.FAILED, judged)
    check_rate(record, found)
    check_slowest(record, found)
    assert found["HTTP 503 n"] == found["ALL failed"] + found["drained failed"] == len(record.moments(503))
    assert found["HTTP 503 status"] == 503
    assert found["HTTP 503 ms"] >= 100


def test_a_worker_that_is_stopped_is_not_taken_for_a_slow_store(fleet: Fleet, tmp_path: Path) -> None:
    record = Record(lambda *_: None)
    with store() as (rule, options):
        rule.fault = record
        worker = fleet.worker(1, "-c", USERS)
        run = fleet.run(reads(tmp_path), "-r", 600, "--retries", 0, *options)
        wait_until(lambda: record.reads > 20, "reads")
        worker.process.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        # For longer than anything else is paused, and for less than lets it count as lost.
        threading.Event().wait(2.5)
        stood_still = time.monotonic() - stopped
        worker.process.send_signal(signal.SIGCONT)
        before = record.reads
        wait_until(lambda: record.reads > before + 20, "reads of the worker that goes on")
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    found = Found(run.out, fleet.stats)
    # The kernel may have told when the answers came; else their operations are left out.
    assert found["READ last n"] + found.get("left out", 0) == found["TOTAL count"]
    assert found["READ last max"] < 900 * stood_still
    seconds = re.findall(r"worker 1 on \S+ for ([\d.]+) s from", " ".join(run.out.split()))
    assert seconds, run.out
    assert stood_still - 0.3 <= max(map(float, seconds)) <= stood_still + 2.0
    assert max(found.stalls("own")) > 0.6 * stood_still
    assert not [each for each in reasons(fleet) if "did not answer" in each]
