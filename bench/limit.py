"""How near a worker is to the least that Python takes: CPU an operation beside a lean loop, and beside wrk.

    python bench/limit.py [--rounds N] [--seconds S] [--users N] [--sizes BYTES ...] [--only WORD ...]
        [--json FILE]

"lean" is the yardstick: a greenlet of gevent a connection, one call that sends head and body, the kernel's
arrival time, status and length, a tuple a result. What the worker does besides (jobs, checks, the MD5 of some
uploads, results) is the distance to it.
"engine" is the worker's engine without master and messages, "worker" the worker's process in a real run,
"master" its master, "wrk" that program. Reads are from nginx (both from the system's packages: ``sudo apt-get
install nginx-extras wrk``), by all of them of the same objects in turn, uploads to the store of
``bench/uploads.py``. All take turns within a minute, every other round the other way about, so that the
ratios mean something on a busy machine. "calls" are the calls of Python and C functions an operation, which
no load changes.
"""

from __future__ import annotations

import argparse
import gc
import json
import mmap
import resource
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import gevent
import spread as spreads
import uploads
from program import run
from saving import save
from served import served
from sizes import count_objects
from whole_worker import Case, scenario
from yardsticks import Nginx, require, wrk

from ssbench.fleet.wire import JobBatch, RunParameters
from ssbench.scenario.model import Scenario, make_sent_scenario
from ssbench.scenario.operations import READ, UPDATE
from ssbench.store.contract import BriefResult, JobResult
from ssbench.store.http.bodies import BodySource
from ssbench.store.http.connection import (
    ANCILLARY_BYTES,
    BUFFER_BYTES,
    ask_for_arrivals,
    discarding_flags,
    open_window,
)
from ssbench.worker.engine import GreenletEngine

TOKEN = "AUTH_tk0123456789abcdef"

#: Of answers with larger bodies the first read takes the head, and the rest is dropped, as a worker does.
_DROPPED_BYTES, _FIRST_BYTES = 48 * 1024, 4096

#: Bodies of uploads begin so much further on in their block, as those of a worker do.
_STRIDE = 7918

_unpack_timespec = struct.Struct("@qq").unpack

spread = partial(spreads.spread, middle="6.2f", ends=".2f")


class Lean:
    """Requests, of whose answers no more is looked at than the status and the length."""

    def __init__(self, url: str, case: Case) -> None:
        self._host = url.removeprefix("http://")
        self._case = case
        self._objects = count_objects(case)
        fields = f"{case.method} /v1/a/bench{case.size}_000000/o_%06d HTTP/1.1\r\nHost: {self._host}\r\n"
        fields += f"User-Agent: lean\r\nX-Auth-Token: {TOKEN}\r\n"
        fields += f"Content-Length: {case.size}\r\n\r\n" if case.method == "PUT" else "\r\n"
        self._template = fields.encode()
        self._payload = BodySource()
        self._buffer = bytearray(BUFFER_BYTES)
        drops = case.method == "GET" and case.size > _DROPPED_BYTES
        self._first = memoryview(self._buffer)[: _FIRST_BYTES if drops else BUFFER_BYTES]
        self._sink = memoryview(mmap.mmap(-1, max(case.size, 1)))
        self._flags = discarding_flags()
        self._numbers = count()
        self._latencies: list[tuple[float, int]] = []
        self._end = 0.0

    def _user(self) -> None:
        hub = gevent.get_hub()
        host, _, port = self._host.partition(":")
        sock = socket.create_connection((host, int(port)))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        ask_for_arrivals(sock)
        open_window(sock)
        watcher = hub.loop.io(sock.fileno(), 1)
        watcher.start(gevent.getcurrent().switch, 1)
        try:
            self._ask(sock, hub)
        finally:
            watcher.close()
            sock.close()

    def _ask(self, sock: socket.socket, hub: Any) -> None:
        buffer, latencies, template, payload = self._buffer, self._latencies, self._template, self._payload
        buffers, size, sends, objects = (
            (self._first,),
            self._case.size,
            self._case.method == "PUT",
            self._objects,
        )
        ahead = time.time() - time.monotonic()
        for number in self._numbers:
            sent_at = time.monotonic()
            if sent_at >= self._end:
                return
            head = template % (number % objects)
            if sends:
                body = payload.piece(number * _STRIDE % payload.block_bytes, size)
                if sock.sendmsg((head, body)) != len(head) + size:
                    sys.exit("unusual: an upload was not taken at once")
            else:
                sock.send(head)
            hub.switch()
            received, told, _, _ = sock.recvmsg_into(buffers, ANCILLARY_BYTES)
            if told:
                seconds, nanoseconds = _unpack_timespec(told[0][2])
                arrived = seconds + nanoseconds * 1e-9 - ahead
            else:  # the kernel begins with stamps some time after it is asked to
                arrived = time.monotonic()
            place = buffer.find(b"\r\nContent-Length: ") + 18
            length = int(buffer[place : buffer.find(b"\r", place)])
            missing = buffer.find(b"\r\n\r\n", place) + 4 + length - received
            if not buffer.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 201 ")):
                sys.exit(f"unusual: {buffer[:received]!r}")
            if missing:
                arrived = self._read_on(sock, hub, missing, received) - ahead
            latencies.append((arrived - sent_at, length))

    def _read_on(self, sock: socket.socket, hub: Any, missing: int, received: int) -> float:
        """Drop the rest of an answer; return when it had arrived, by the wall clock."""
        arrived, waits = 0.0, received != _FIRST_BYTES
        while missing:
            if waits:
                hub.switch()
            waits = True
            try:
                received, told, _, _ = sock.recvmsg_into(
                    (self._sink[: missing + 1],), ANCILLARY_BYTES, self._flags
                )
            except BlockingIOError:
                continue
            if not 0 < received <= missing:
                sys.exit(f"unusual: {received} bytes where {missing} were left")
            missing -= received
            seconds, nanoseconds = _unpack_timespec(told[0][2]) if told else (time.time(), 0)
            arrived = seconds + nanoseconds * 1e-9
        return arrived

    def work(self, seconds: float) -> int:
        self._latencies.clear()
        self._end = time.monotonic() + seconds
        gevent.joinall([gevent.spawn(self._user) for _ in range(self._case.users)], raise_error=True)
        return len(self._latencies)


class Ours:
    """The engine, with jobs ahead."""

    def __init__(self, url: str, case: Case) -> None:
        self._code = (READ if case.method == "GET" else UPDATE).code
        self._users, self._size, self._objects = case.users, case.size, count_objects(case)
        self._done, self._next = 0, 1
        self._end = 0.0
        parameters = RunParameters(
            1,
            0,
            TOKEN,
            [f"{url}/v1/a"],
            scenario=make_sent_scenario(
                Scenario("limit", (), case.users, container_base=f"bench{case.size}")
            ),
            size_classes=["o"],
        )
        self._engine = GreenletEngine(parameters, case.users, self._ended)

    def _ended(self, batch_id: int, results: Sequence[BriefResult], refused: int | None = None) -> None:
        for result in results:
            if isinstance(result, JobResult) and result.cause:
                sys.exit(f"{result.cause}: {result.detail}")
        self._done += len(results)
        if time.monotonic() < self._end:
            self._submit(len(results))

    def _submit(self, count: int) -> None:
        first, self._next = self._next, self._next + count
        numbers = range(first, self._next)
        jobs = [(number, self._code, 0, 0, number % self._objects, self._size) for number in numbers]
        self._engine.submit(JobBatch(first, jobs, users=self._users))

    def work(self, seconds: float) -> int:
        self._done = 0
        self._end = time.monotonic() + seconds
        gevent.get_hub().loop.run_callback(self._submit, 4 * self._users)
        gevent.sleep(seconds)
        while self._engine.busy or self._engine.waiting:
            gevent.sleep(0.01)
        return self._done


def measure(what: str, url: str, case: Case, seconds: float) -> dict[str, float]:
    """In a process of its own: CPU microseconds and calls an operation."""
    client: Lean | Ours = Lean(url, case) if what == "lean" else Ours(url, case)
    client.work(0.3)
    gc.collect()
    gc.freeze()  # as the worker does
    before = resource.getrusage(resource.RUSAGE_SELF)
    count = client.work(seconds)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    calls = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(note)
    counted = client.work(0.2)
    sys.setprofile(None)
    return {"cpu_us": cpu / count * 1e6, "calls": calls / counted, "rate": count / seconds}


def in_process(what: str, url: str, case: Case, seconds: float) -> dict[str, Any]:
    arguments = json.dumps([what, url, case, seconds])
    output = subprocess.run(
        [sys.executable, __file__, "--in-process", arguments], check=True, stdout=subprocess.PIPE
    ).stdout
    found: dict[str, Any] = json.loads(output)
    return found


def whole(url: str, case: Case, seconds: float) -> dict[str, float]:
    ran = run(
        [
            f"--storage-url={url}/v1/a",
            f"--token={TOKEN}",
            "--workers=1",
            f"--run-seconds={max(2, round(seconds))}",
        ],
        # No object is written twice at once: of few objects fewer jobs can be ahead of the users.
        scenario(case, count_objects(case) if case.method == "GET" else 1000),
    )
    return {"worker": ran.worker_cpu * 1e6, "master": ran.master_cpu * 1e6}


def of_wrk(url: str, case: Case, seconds: float) -> float:
    numbers = range(count_objects(case) if case.method == "GET" else 1)
    paths = [f"/v1/a/bench{case.size}_000000/o_{number:06d}" for number in numbers]
    if case.method == "GET":
        return wrk(url, case.method, case.size, case.users, seconds, paths).cpu_us
    return wrk(url + paths[0], case.method, case.size, case.users, seconds).cpu_us


@contextmanager
def store(case: Case) -> Iterator[str]:
    """Run the store of a case; yields its URL."""
    if case.method == "PUT":
        with served(uploads.swallow) as url:
            yield url
        return
    with Nginx() as nginx:
        (nginx.data / "v1/a").mkdir(parents=True)
        for number in range(count_objects(case)):
            nginx.store(f"v1/a/bench{case.size}_000000/o_{number:06d}", case.size)
        for path in (nginx.data / "v1", nginx.data / "v1/a"):
            path.chmod(0o777)
        yield nginx.url()


def turns(case: Case, rounds: int, seconds: float) -> dict[str, list[float]]:
    """Return CPU microseconds an operation of all by their names, and of some calls an operation."""
    found: dict[str, list[float]] = {}
    names = ["wrk", "lean", "engine", "worker"]
    with store(case) as url:
        for turn in range(rounds):
            for what in names[:: -1 if turn % 2 else 1]:
                if what == "wrk":
                    costs = {what: of_wrk(url, case, seconds)}
                elif what == "worker":
                    costs = whole(url, case, seconds)
                else:
                    one = in_process(what, url, case, seconds)
                    costs = {what: one["cpu_us"], f"{what} calls": one["calls"]}
                for name, cost in costs.items():
                    found.setdefault(name, []).append(cost)
    found["both"] = [sum(pair) for pair in zip(found["worker"], found["master"], strict=True)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--users", type=int, default=32)
    parser.add_argument("--sizes", type=int, nargs="*", default=[4096])
    parser.add_argument("--only", nargs="*", default=["GET", "PUT"], choices=["GET", "PUT"])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--in-process", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_process:
        what, url, case, seconds = json.loads(options.in_process)
        print(json.dumps(measure(what, url, Case(*case), seconds)))
        return
    require("nginx", "wrk")
    results = {}
    for case in (Case(method, size, options.users) for method in options.only for size in options.sizes):
        found = results[case.name] = turns(case, options.rounds, options.seconds)
        for what in ("wrk", "lean", "engine", "worker", "master", "both"):
            by = {
                other: [one / two for one, two in zip(found[what], found[other], strict=True)]
                for other in ("wrk", "lean")
                if other != what
            }
            print(
                f"{case.method} {case.size:>6} {what:6} {spread(found[what])} us;"
                + ", ".join(f" by {other} {spread(ratios)}" for other, ratios in by.items()),
                flush=True,
            )
        calls = {what: statistics.median(found[f"{what} calls"]) for what in ("lean", "engine")}
        print(f"{case.method} {case.size:>6} calls an operation:", calls, flush=True)
    if options.json:
        save(options.json, results=results)


if __name__ == "__main__":
    main()
