"""How near a worker is to the least that Python takes: CPU an operation beside a bare loop, against nginx.

    python bench/limit.py [--rounds N] [--seconds S] [--users N] [--json FILE] [--only WORD ...]

"bare" is a loop of gevent that has nothing but requests of 4 kB on kept connections, the kernel's arrival
times and the checks that a worker makes (head, size, MD5 of uploads). "lean" has still less, of reads: a
greenlet a connection, the kernel's arrival time, status and length, a tuple a result. "engine" is the
worker's engine without master and messages, "worker" the worker's process in a real run, "master" its
master. All take turns within a minute on the same nginx (from the system's packages: ``sudo apt-get install
nginx-extras``), so that the ratios mean something on a busy machine. "calls" are the calls of Python and C
functions an operation, which no load changes.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gevent
import spread as spreads
from program import run
from saving import save
from whole_worker import Case, scenario
from yardsticks import Nginx, require

from ssbench.fleet.wire import JobBatch, RunParameters
from ssbench.scenario.model import SentScenario
from ssbench.scenario.operations import READ, UPDATE
from ssbench.store.contract import BriefResult, JobResult
from ssbench.store.http.bodies import BodySource
from ssbench.store.http.connection import ANCILLARY_BYTES, arrival_time, ask_for_arrivals
from ssbench.store.http.http_response import parse_head
from ssbench.worker.engine import GreenletEngine

SIZE = 4096
TOKEN = "AUTH_tk0123456789abcdef"
OBJECTS = 500


_unpack_timespec = struct.Struct("@qq").unpack

spread = partial(spreads.spread, middle="6.2f", ends=".2f")


class Bare:
    """Requests, and nothing else."""

    def __init__(self, url: str, method: str, users: int) -> None:
        self._host = url.removeprefix("http://")
        self._users = users
        self._sends = method == "PUT"
        fields = f"{method} /v1/a/bench{SIZE}_000000/o_%06d HTTP/1.1\r\nHost: {self._host}\r\n"
        fields += f"User-Agent: bare\r\nX-Auth-Token: {TOKEN}\r\n"
        fields += "Content-Length: %d\r\n\r\n%b" if self._sends else "\r\n"
        self._template = fields.encode()
        self._payload = BodySource()
        self._buffer = bytearray(65536)
        self._latencies: list[tuple[float, int]] = []
        self._end = 0.0

    def _user(self, number: int) -> None:
        hub = gevent.get_hub()
        host, _, port = self._host.partition(":")
        sock = socket.create_connection((host, int(port)))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        ask_for_arrivals(sock)
        watcher = hub.loop.io(sock.fileno(), 1)
        watcher.start(gevent.getcurrent().switch, 1)
        try:
            self._ask(number, sock, hub)
        finally:
            watcher.close()
            sock.close()

    def _ask(self, number: int, sock: socket.socket, hub: Any) -> None:
        template, payload, buffer, latencies = self._template, self._payload, self._buffer, self._latencies
        buffers = (buffer,)
        digest = None
        while time.monotonic() < self._end:
            if self._sends:
                body, _, digest = payload.begin(SIZE)
                message = template % (number, SIZE, body)
            else:
                message = template % number
            sent_at = time.monotonic()
            offset = time.time() - sent_at
            sock.send(message)
            hub.switch()
            received, told, _, _ = sock.recvmsg_into(buffers, ANCILLARY_BYTES)
            now = time.monotonic()
            arrived = arrival_time(told[0][2], now, sent_at, offset, 0.0) if told else now
            raw = bytes(buffer[: buffer.find(b"\r\n\r\n", 0, received) + 2])
            head = parse_head(raw, False)
            if head is None or head.status // 100 != 2 or received != head.start + head.length:
                sys.exit(f"unusual: {raw!r}")
            if digest is not None and digest.hexdigest().encode() not in raw and b"\netag:" in raw.lower():
                sys.exit("a wrong ETag")
            latencies.append((arrived - sent_at, head.status))

    def work(self, seconds: float) -> int:
        self._latencies.clear()
        self._end = time.monotonic() + seconds
        gevent.joinall([gevent.spawn(self._user, number) for number in range(self._users)], raise_error=True)
        return len(self._latencies)


class Lean(Bare):
    """Reads, of which no more is looked at than the status and the length."""

    def _ask(self, number: int, sock: socket.socket, hub: Any) -> None:
        buffer, latencies, message = self._buffer, self._latencies, self._template % number
        buffers = (buffer,)
        offset = time.time() - time.monotonic()
        while (sent_at := time.monotonic()) < self._end:
            sock.send(message)
            hub.switch()
            received, told, _, _ = sock.recvmsg_into(buffers, ANCILLARY_BYTES)
            if told:
                seconds, nanoseconds = _unpack_timespec(told[0][2])
                arrived = seconds + nanoseconds * 1e-9 - offset
            else:  # the kernel begins with stamps some time after it is asked to
                arrived = time.monotonic()
            place = buffer.find(b"\r\nContent-Length: ") + 18
            length = int(buffer[place : buffer.find(b"\r", place)])
            end = buffer.find(b"\r\n\r\n", place) + 4
            if not buffer.startswith(b"HTTP/1.1 200 ") or received != end + length:
                sys.exit(f"unusual: {buffer[:received]!r}")
            latencies.append((arrived - sent_at, length))


class Ours:
    """The engine, with jobs ahead."""

    def __init__(self, url: str, method: str, users: int) -> None:
        self._code = (READ if method == "GET" else UPDATE).code
        self._users = users
        self._done, self._next = 0, 1
        self._end = 0.0
        parameters = RunParameters(
            1,
            0,
            TOKEN,
            [f"{url}/v1/a"],
            scenario=SentScenario(container_base=f"bench{SIZE}"),
            size_classes=["o"],
        )
        self._engine = GreenletEngine(parameters, users, self._ended)

    def _ended(self, _batch: int, results: Sequence[BriefResult], _refused: int | None = None) -> None:
        for result in results:
            if isinstance(result, JobResult) and result.cause:
                sys.exit(f"{result.cause}: {result.detail}")
        self._done += len(results)
        if time.monotonic() < self._end:
            self._submit(len(results))

    def _submit(self, count: int) -> None:
        first, self._next = self._next, self._next + count
        jobs = [(number, self._code, 0, 0, number % OBJECTS, SIZE) for number in range(first, self._next)]
        self._engine.submit(JobBatch(first, jobs, users=self._users))

    def work(self, seconds: float) -> int:
        self._done = 0
        self._end = time.monotonic() + seconds
        gevent.get_hub().loop.run_callback(self._submit, 4 * self._users)
        gevent.sleep(seconds)
        while self._engine.busy or self._engine.waiting:
            gevent.sleep(0.01)
        return self._done


def measure(what: str, url: str, method: str, users: int, seconds: float) -> dict[str, float]:
    """In a process of its own: CPU microseconds and calls an operation."""
    work = {"bare": Bare, "lean": Lean, "engine": Ours}[what](url, method, users).work
    work(0.3)
    gc.collect()
    gc.freeze()  # as the worker does
    before = resource.getrusage(resource.RUSAGE_SELF)
    count = work(seconds)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    calls = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(note)
    counted = work(0.2)
    sys.setprofile(None)
    return {"cpu_us": cpu / count * 1e6, "calls": calls / counted, "rate": count / seconds}


def in_process(*arguments: object) -> dict[str, Any]:
    output = subprocess.run(
        [sys.executable, __file__, "--in-process", json.dumps(arguments)], check=True, stdout=subprocess.PIPE
    ).stdout
    found: dict[str, Any] = json.loads(output)
    return found


def whole(url: str, method: str, users: int, seconds: float) -> dict[str, float]:
    ran = run(
        [
            f"--storage-url={url}/v1/a",
            f"--token={TOKEN}",
            "--workers=1",
            f"--run-seconds={max(2, round(seconds))}",
        ],
        scenario(Case(method, SIZE, users), OBJECTS),
    )
    return {"worker": ran.worker_cpu * 1e6, "master": ran.master_cpu * 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--users", type=int, default=32)
    parser.add_argument("--only", nargs="*", default=["GET", "PUT"], choices=["GET", "PUT"])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--in-process", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_process:
        print(json.dumps(measure(*json.loads(options.in_process))))
        return
    require("nginx")
    results = {}
    for method in options.only:
        found: dict[str, list[float]] = {}
        with Nginx() as nginx:
            url = nginx.url()
            (nginx.data / "v1/a").mkdir(parents=True)
            for number in range(OBJECTS):
                nginx.store(f"v1/a/bench{SIZE}_000000/o_{number:06d}", SIZE)
            for path in (nginx.data / "v1", nginx.data / "v1/a"):
                path.chmod(0o777)
            for _ in range(options.rounds):
                for what in ("bare", "engine") if method == "PUT" else ("bare", "lean", "engine"):
                    one = in_process(what, url, method, options.users, options.seconds)
                    found.setdefault(what, []).append(one["cpu_us"])
                    found.setdefault(f"{what} calls", []).append(one["calls"])
                for what, cost in whole(url, method, options.users, options.seconds).items():
                    found.setdefault(what, []).append(cost)
        results[method] = found
        for least in ("bare", "lean"):
            for what in ("engine", "worker", "master") if least in found else ():
                ratios = [ours / other for ours, other in zip(found[what], found[least], strict=True)]
                print(
                    f"{method} {least} {spread(found[least])} us/op; {what:6} {spread(found[what])} us/op,"
                    f" ratio {spread(ratios)}",
                    flush=True,
                )
        calls = {what: statistics.median(found[f"{what} calls"]) for what in ("bare", "engine")}
        print(f"{method} calls an operation: bare {calls['bare']:.1f}, engine {calls['engine']:.1f}")
    if options.json:
        save(options.json, results=results)


if __name__ == "__main__":
    main()
