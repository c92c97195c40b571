"""What a request costs the client: CPU, latency and memory, next to wrk, against nginx on memory.

    python bench/objects.py [--rounds N] [--seconds S] [--json FILE] [--only WORD ...]

Cases are named like GET-4096; --only takes those that contain a WORD. Each case runs ours, then wrk,
then ours again, and so on. CPU is that of the client's process alone, so that the server on the same
cores does not count; what tells is the ratio within a round. "memory" shows the highest resident
memory of a process that moves objects of 5 GB on 64 connections both ways. bench/README.rst
says how to read the table.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import resource
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gevent
from saving import save
from yardsticks import Measured, Nginx, require, wrk

from ssbench.store.http.client import ClientSettings
from ssbench.store.stores import make_store_client


class Case(NamedTuple):
    method: str
    size: int
    connections: int
    tls: bool = False

    @property
    def name(self) -> str:
        return f"{'TLS-' if self.tls else ''}{self.method}-{self.size}"

    @property
    def large(self) -> bool:
        return self.size >= 1_000_000


CASES = [
    Case("GET", 4096, 32),
    Case("PUT", 4096, 32),
    Case("GET", 1_000_000, 16),
    Case("PUT", 1_000_000, 16),
    Case("GET", 100_000_000, 4),
    Case("PUT", 100_000_000, 4),
    Case("GET", 4096, 32, tls=True),
    Case("PUT", 4096, 32, tls=True),
    Case("GET", 1_000_000, 16, tls=True),
    Case("PUT", 1_000_000, 16, tls=True),
]

HUGE = 5_000_000_000


def client(
    url: str, method: str, size: int, connections: int, seconds: float, verify_seed: int | None = None
) -> dict[str, float]:
    """In a process of its own: so many greenlets ask again and again; what it cost."""
    settings = ClientSettings(max_connections=connections, insecure=True, retries=0, verify_seed=verify_seed)
    asking = make_store_client(settings)
    if verify_seed is not None:  # what is read is to be what was written
        asking.request(url, "PUT", "c", "o_000000", "AUTH_tk0123456789abcdef", size)
    latencies: list[float] = []
    moved = 0
    end = 0.0

    def ask(number: int) -> None:
        nonlocal moved
        name = f"o_{number + 1 if method == 'PUT' else 0:06d}"
        body = size if method == "PUT" else 0
        while time.monotonic() < end:
            outcome = asking.request(url, method, "c", name, "AUTH_tk0123456789abcdef", body)
            if outcome.cause:
                sys.exit(f"{method} {url}: {outcome.cause}: {outcome.detail}")
            latencies.append(outcome.last_byte or 0.0)
            moved += outcome.size

    def round_of(length: float) -> None:
        nonlocal end
        end = time.monotonic() + length
        gevent.joinall([gevent.spawn(ask, number) for number in range(connections)], raise_error=True)

    round_of(0.3)
    gc.collect()
    gc.freeze()  # as the worker does
    latencies.clear()
    moved = 0
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    round_of(seconds)
    after, ended = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    return {
        "operations": len(latencies),
        "seconds": ended - began,
        "cpu": after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime,
        "median_latency": statistics.median(latencies),
        "transferred": moved,
    }


def ours(url: str, case: Case, seconds: float) -> Measured:
    return Measured(**in_process("client", url, case.method, case.size, case.connections, seconds))


def in_process(*arguments: object) -> dict[str, Any]:
    output = subprocess.run(
        [sys.executable, __file__, "--in-process", json.dumps(arguments)], check=True, capture_output=True
    ).stdout
    found: dict[str, Any] = json.loads(output)
    return found


def compare(nginx: Nginx, case: Case, rounds: int, seconds: float) -> dict[str, Any]:
    url = nginx.url(case.tls)
    nginx.store("c/o_000000", case.size)
    path = f"{url}/c/o_{'000099' if case.method == 'PUT' else '000000'}"
    cost = "cpu_ms_per_mb" if case.large else "cpu_us"
    seconds = max(seconds, case.size / 20_000_000)  # so that each connection ends several
    ours_rounds, wrk_rounds = [], []
    for _ in range(rounds):
        ours_rounds.append(ours(url, case, seconds))
        wrk_rounds.append(wrk(path, case.method, case.size, case.connections, seconds))
    pairs = list(zip(ours_rounds, wrk_rounds, strict=True))
    return {
        "case": case.name,
        "connections": case.connections,
        "unit": "ms/MB" if case.large else "us/op",
        "ours": [getattr(one, cost) for one in ours_rounds],
        "wrk": [getattr(one, cost) for one in wrk_rounds],
        "cpu_ratio": [getattr(a, cost) / getattr(b, cost) for a, b in pairs],
        "latency_ratio": [a.median_latency / b.median_latency for a, b in pairs],
        "ours_rate": [one.operations / one.seconds for one in ours_rounds],
        "wrk_rate": [one.operations / one.seconds for one in wrk_rounds],
    }


def sink() -> socket.socket:
    """A server that counts and drops what is uploaded."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)

    def serve(connection: socket.socket) -> None:
        with connection:
            while head := connection.recv(1 << 16, socket.MSG_PEEK):
                end = head.find(b"\r\n\r\n")
                if end < 0:
                    continue
                length = re.search(rb"content-length: (\d+)", head[:end], re.IGNORECASE)
                left = int(length[1]) if length else 0
                connection.recv(end + 4)
                while left and (dropped := connection.recv(min(left, 1 << 18), socket.MSG_TRUNC)):
                    left -= len(dropped)
                connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener


def memory(url: str, sink_port: int, connections: int, seconds: float) -> dict[str, float]:
    """In a process of its own: one whole object each way, then as many at once as there are connections."""
    asking = make_store_client(ClientSettings(max_connections=connections, retries=0))

    def download() -> int:
        return asking.request(url, "GET", "c", "huge").size

    def upload() -> int:
        return asking.request(f"http://127.0.0.1:{sink_port}", "PUT", "c", "huge", None, HUGE).size

    if (download(), upload()) != (HUGE, HUGE):
        sys.exit("an object of 5 GB did not pass whole")
    many = [gevent.spawn(way) for _ in range(connections // 2) for way in (download, upload)]
    gevent.sleep(seconds)
    gevent.killall(many)
    return {"peak_rss": peak_rss(), "shared_file": payload_file()}


def peak_rss() -> int:
    """Bytes; that of this process alone, which ru_maxrss is not: it begins with the parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def payload_file() -> int:
    """Bytes of the memory file that bodies are sent from."""
    links = [link for link in Path("/proc/self/fd").iterdir() if link.exists()]
    return sum(link.stat().st_size for link in links if "memfd" in str(link.readlink()))


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):8.3g} {min(values):8.3g}-{max(values):<8.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("--in-process", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_process:
        what, *arguments = json.loads(options.in_process)
        parts: dict[str, Callable[..., dict[str, float]]] = {"client": client, "memory": memory}
        print(json.dumps(parts[what](*arguments)))
        return
    require("nginx", "wrk")
    results = []
    print(f"{'':23} {'ours: median, range':>26} {'wrk: median, range':>26}  CPU, latency: ours / wrk's")
    with Nginx() as nginx:
        for case in CASES:
            if any(word in case.name for word in options.only):
                found = compare(nginx, case, options.rounds, options.seconds)
                results.append(found)
                print(
                    f"{found['case']:16} {found['unit']:6} {spread(found['ours'])} {spread(found['wrk'])}"
                    f"  {statistics.median(found['cpu_ratio']):.2f}"
                    f"  {statistics.median(found['latency_ratio']):.2f}",
                    flush=True,
                )
        if any(word in "memory" for word in options.only):
            nginx.store("c/huge", HUGE)
            with sink() as listener:
                found = in_process("memory", nginx.url(), listener.getsockname()[1], 64, 10.0)
            results.append({"case": "memory", **found})
            print(
                f"memory: {found['peak_rss'] / 1e6:.1f} MB resident at most, and a file of"
                f" {found['shared_file'] / 1e6:.1f} MB, with objects of 5 GB on 64 connections"
            )
    if options.json:
        save(options.json, results=results)


if __name__ == "__main__":
    main()
