"""How many operations are in flight at the server, of as many as there are users.

    python bench/in_flight.py [--rounds N] [--seconds S] [--users N] [--against FOLDER] [--only WORD ...]

Real masters and two workers over a server of some lines, which answers each request after a fixed time and
adds up how many it has. "link" puts a relay that delays all that passes by 25 ms each way (a turn takes
50 ms) between the master and each worker. "one user" is a single user and a server that answers at once.
"server" is what the server has in flight, "worker" the share of the time in which users have an operation
under way by the workers' clocks, "rate" operations a second, by those of wrk in the same round, and "wrk"
what the server has in flight of wrk with as many connections, by turns.
``--against`` names another checkout, whose program is run by turns with this one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import spread as spreads
from saving import save
from served import reads, served
from yardsticks import free_port, require, wrk

from ssbench.results.reading import open_results

sys.path.append(str(Path(__file__).parents[1] / "tests" / "helpers"))
from relay import Relay

HERE = Path(__file__).parents[1]

spread = partial(spreads.spread, middle=".3f", ends=".3f")


class Found(NamedTuple):
    """What was in flight by the number of users, at the server and by the workers' clocks, and the rate."""

    server: float
    worker: float
    rate: float


class Case(NamedTuple):
    """``delay`` and ``service`` are milliseconds: one way between master and worker, and of a request."""

    name: str
    users: int
    service: float
    delay: float = 0.0


class Counting(asyncio.Protocol):
    """A connection; ``area`` is how many were in flight times for how long, of all connections."""

    count = 0
    area = 0.0
    changed = 0.0
    service = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport
        self.received = b""

    @classmethod
    def add(cls, change: int) -> None:
        now = time.monotonic()
        cls.area += cls.count * (now - cls.changed)
        cls.count += change
        cls.changed = now

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, end, body = self.received.partition(b"\r\n\r\n")
        if not end:
            return
        method = head.split(b" ", 1)[0]
        if method != b"GET":
            if method == b"PUT" and len(body) < int(
                head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
            ):
                return
            self.reply(b"")
        elif b"/area" in head.split(b"\r\n", 1)[0]:
            self.add(0)
            self.reply(f"{self.changed} {self.area}".encode())
        else:
            self.add(1)
            if self.service:
                asyncio.get_running_loop().call_later(self.service, self.end)
            else:
                self.end()
        self.received = b""

    def end(self) -> None:
        self.add(-1)
        self.reply(b"x" * 100)

    def reply(self, body: bytes) -> None:
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def serve_after(port: int, service: float) -> None:
    async def main() -> None:
        Counting.service = service
        server = await asyncio.get_running_loop().create_server(Counting, "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(main())


def area(url: str) -> tuple[float, float]:
    with urllib.request.urlopen(f"{url}/area") as answer:
        when, total = answer.read().split()
    return float(when), float(total)


def in_flight(url: str, seconds: float, users: int) -> float:
    """Return how many are in flight at the server in a run that has just begun, by the number of users."""
    time.sleep(seconds / 6)  # what is ahead has settled
    before = area(url)
    time.sleep(seconds * 2 / 3)
    after = area(url)
    return (after[1] - before[1]) / (after[0] - before[0]) / users


def of_wrk(case: Case, seconds: float) -> Found:
    """Return the same of wrk with as many connections: what can be had of this server on this machine."""
    with served(serve_after, case.service / 1000) as url, ThreadPoolExecutor() as pool:
        running = pool.submit(wrk, f"{url}/v1/AUTH_x/c/o", "GET", 0, case.users, seconds)
        found = in_flight(url, seconds, case.users)
        measured = running.result()
    return Found(found, float("nan"), measured.operations / measured.seconds)


def ran(program: Path, case: Case, seconds: float) -> Found:
    """Run a case with the program of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(program)}
    python = [sys.executable, "-P", "-m"]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(served(serve_after, case.service / 1000))
        ports = [free_port(), free_port()]
        (folder / "scenario.json").write_text(json.dumps(reads("In flight", seconds, case.users, 1000)))
        stats = folder / "stat.gz"
        workers = min(2, case.users)
        command = [*python, "ssbench.cli.master", "run-scenario", "-f", folder / "scenario.json", "-s", stats]
        command += ["-S", f"{url}/v1/AUTH_x", "-T", "token", "--expect-workers", workers]
        command += [
            f"--zmq-work-port={ports[0]}",
            f"--zmq-results-port={ports[1]}",
            "--zmq-bind-ip=127.0.0.1",
        ]
        with (folder / "said").open("wb") as said:
            master = subprocess.Popen(
                [str(each) for each in command], env=environment, stdout=subprocess.DEVNULL, stderr=said
            )
        stack.callback(master.wait)
        stack.callback(master.kill)
        if case.delay:
            ports = [stack.enter_context(Relay(port, case.delay / 1000)).port for port in ports]
        for number in range(workers):
            own = [*python, "ssbench.cli.worker", f"--zmq-work-port={ports[0]}"]
            own += [f"--zmq-results-port={ports[1]}", str(number)]
            worker = subprocess.Popen(own, env=environment, stderr=subprocess.DEVNULL)
            stack.callback(worker.wait)
            stack.callback(worker.terminate)
        deadline = time.monotonic() + 120
        while b"Starting the benchmark" not in (folder / "said").read_bytes():
            if time.monotonic() > deadline or master.poll() is not None:
                sys.exit((folder / "said").read_text())
            time.sleep(0.05)
        at_server = in_flight(url, seconds, case.users)
        if master.wait(60):
            sys.exit((folder / "said").read_text())
        blocks = list(open_results(stats).blocks())
        busy = sum(float(np.nansum(block.last_byte)) for block in blocks)
        completed = np.concatenate([block.completed for block in blocks])
        lasted = float(completed.max() - completed.min())
        return Found(at_server, busy / lasted / case.users, len(completed) / lasted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--users", type=int, default=8)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", nargs="*", default=[""], metavar="WORD")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "in_flight.json")
    options = parser.parse_args()
    require("wrk")
    cases = [
        Case("5 ms", options.users, 5.0),
        Case("5 ms, link", options.users, 5.0, 25.0),
        Case("one user", 1, 0.0),
    ]
    programs = [HERE] + ([options.against] if options.against else [])
    results = {}
    for case in cases:
        if not any(word in case.name for word in options.only):
            continue
        found: dict[str, list[Found]] = {str(program): [] for program in programs}
        best = []
        for _ in range(options.rounds):
            best.append(of_wrk(case, options.seconds))
            for program in programs:
                found[str(program)].append(ran(program, case, options.seconds))
        results[case.name] = {**found, "wrk": best}
        print(
            f"{case.name:12}  server {spread([one.server for one in best])}"
            f"  {statistics.median(one.rate for one in best):.0f}/s  wrk",
            flush=True,
        )
        for program, each in found.items():
            rates = [one.rate / of_best.rate for one, of_best in zip(each, best, strict=True)]
            server, worker = [one.server for one in each], [one.worker for one in each]
            print(
                f"{case.name:12}  server {spread(server)}  worker {spread(worker)}"
                f"  rate {spread(rates)}  {program}",
                flush=True,
            )
    save(options.json, results=results)


if __name__ == "__main__":
    main()
