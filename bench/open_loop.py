"""Response time against service time of a store that stalls, in an open loop and in a closed one.

    python bench/open_loop.py [--seconds S] [--rate N] [--users N ...] [--closed N ...] [--arrivals KIND]

A real master and two workers over a server of some lines, which answers each request after 1 ms, and stalls
for a second every ten: what comes from 4 s to 5 s after the first read is answered at 5 s, and so on. Printed
are the percentiles of each run beside those that follow from the schedule: of what is due, as large a part
waits as the stalls are of the run, for times that are spread evenly from 0 to 1 s. What a request takes
without a stall, the way there and back included, is measured first with a plain socket.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gevent import socket as green
from gevent.server import StreamServer
from served import reads, served

from ssbench.results.reading import open_results
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize
from ssbench.worker.engine import GreenletAlarm

SERVICE = 0.001
STALL_BEGINS, STALL_ENDS, EVERY = 4.0, 5.0, 10.0

RANKS = (50, 90, 99, 100)


class Store:
    """A store that stalls. It answers at the moment meant, to some tens of microseconds."""

    def __init__(self) -> None:
        self._alarm = GreenletAlarm(self._answer)
        self._waiting: list[tuple[float, int, green.socket]] = []
        self._count = 0
        self._first_read: float | None = None

    def serve(self, connection: green.socket, _address: object) -> None:
        """Read the requests of a connection; each is answered at its moment."""
        received = b""
        while data := connection.recv(65536):
            received += data
            head, end, body = received.partition(b"\r\n\r\n")
            method = head.split(b" ", 1)[0]
            if not end or (method == b"PUT" and len(body) < _length(head)):
                continue
            received = b""
            if method != b"GET":
                connection.sendall(_reply(b""))
                continue
            now = time.monotonic()
            if self._first_read is None:
                self._first_read = now
            within = (now - self._first_read) % EVERY
            left = STALL_ENDS - within if STALL_BEGINS <= within < STALL_ENDS else 0.0
            self._count += 1
            heapq.heappush(self._waiting, (now + left + SERVICE, self._count, connection))
            self._alarm.set(self._waiting[0][0])

    def _answer(self) -> None:
        while self._waiting and self._waiting[0][0] <= time.monotonic():
            connection = heapq.heappop(self._waiting)[2]
            connection.send(_reply(b"x" * 100))
        self._alarm.set(self._waiting[0][0] if self._waiting else math.inf)


def _length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])


def _reply(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def _serve(port: int) -> None:
    StreamServer(("127.0.0.1", port), Store().serve, backlog=2048).serve_forever()


def ran(seconds: float, users: int, *load: object) -> RunStatistics:
    """Return the numbers of a run with new processes, server and all."""
    with tempfile.TemporaryDirectory() as folder, served(_serve) as url:
        path, stats = Path(folder, "scenario.json"), Path(folder, "stat.gz")
        path.write_text(json.dumps(reads("Open loop", seconds, users, 2000)))
        command = [sys.executable, "-m", "ssbench.cli.master", "-q", "run-scenario", "-f", path, "-s", stats]
        command += ["-S", f"{url}/v1/AUTH_x", "-T", "token", "--workers", 2, "-R", "-k", "--seed", 1, *load]
        subprocess.run([str(each) for each in command], check=True, timeout=seconds + 120)
        return summarize(open_results(stats))


def bare_service(rate: float, seconds: float = 3.0) -> float:
    """Return the median time of a request on a plain blocking socket while nothing stalls.

    It is the store's 1 ms and the way there and back on this machine, at ``rate`` requests a second.
    """
    times = []
    with served(_serve) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 10) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            begun = time.monotonic()
            for number in range(round(rate * seconds)):
                time.sleep(max(0.0, begun + number / rate - time.monotonic()))
                sent = time.monotonic()
                connection.sendall(b"GET /v1/AUTH_x/c/o HTTP/1.1\r\nHost: x\r\n\r\n")
                received = b""
                while not received.endswith(b"x" * 100):
                    received += connection.recv(65536)
                times.append(time.monotonic() - sent)
    return statistics.median(times)


def arithmetic(seconds: float, service: float) -> list[float]:
    """Return what the percentiles of response time are by the schedule, where a request takes ``service``."""
    periods, rest = divmod(seconds, EVERY)
    stalls = periods + min(max(rest - STALL_BEGINS, 0.0), STALL_ENDS - STALL_BEGINS)
    share = stalls / seconds
    return [service + max(0.0, 1 - (1 - rank / 100) / share) for rank in RANKS]


def line(name: str, values: list[float], truth: list[float] | None = None) -> None:
    off = [f"{value / true - 1:+.1%}" for value, true in zip(values, truth, strict=True)] if truth else []
    columns = "".join(f"{1000 * value:>10.2f}" for value in values)
    print(f"{name:<44}{columns}   {' '.join(off)}")


def percentiles(latencies: Latencies) -> list[float]:
    return [latencies.percentile(rank) for rank in RANKS]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=26.0)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--users", type=int, nargs="*", default=[600, 100])
    parser.add_argument("--closed", type=int, nargs="*", default=[8])
    parser.add_argument("--arrivals", choices=("even", "poisson"), default="even")
    options = parser.parse_args()
    print(f"{'ms':<44}{'p50':>10}{'p90':>10}{'p99':>10}{'max':>10}   off")
    service = bare_service(options.rate)
    truth = arithmetic(options.seconds, service)
    line(f"schedule, a request takes {1000 * service:.2f} ms", truth)
    for users in options.users:
        numbers = ran(options.seconds, users, "--rate", options.rate, "--set", f"arrivals={options.arrivals}")
        due = numbers.total.due
        line(f"open, {users} users: response", percentiles(due.response), truth)
        line(f"open, {users} users: service", percentiles(numbers.total.lines[0].last_byte))
        line(f"open, {users} users: lateness", percentiles(due.lateness))
        print(
            f"  due {numbers.due}, begun {due.lateness.count}, over 1 ms late {due.late},"
            f" not begun {numbers.not_begun}, failed {numbers.total.failed}"
        )
    for users in options.closed:
        numbers = ran(options.seconds, users)
        line(f"closed, {users} users: service", percentiles(numbers.total.lines[0].last_byte))
        print(f"  {numbers.total.requests_per_second:.0f}/s")


if __name__ == "__main__":
    main()
