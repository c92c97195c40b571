"""Uploads of 64 kB to 100 MB to a store that is faster than any client: throughput and CPU, next to wrk.

    python bench/uploads.py [--rounds N] [--seconds S] [--only MB ...] [--users N ...] [--against FOLDER]
        [--json FILE]

The store is a process that lets the kernel drop what comes, so that it needs a fraction of a client's CPU;
its own is shown as well. Each round runs the real program (one local worker, master, stat file and all) and
wrk with as many connections, every other round the other way about. ``--against`` names another checkout,
whose program takes its turn too. "MB/s" is what ours reports and what wrk does, "worker" and "wrk" are CPU
milliseconds a megabyte, "master" is CPU microseconds an operation; medians and ranges of rounds. The bytes of
wrk are those that the store took, because wrk does not count uploads that its end cuts off, though they cost.
"""

from __future__ import annotations

import argparse
import os
import re
import select
import socket
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from program import run
from saving import save
from served import served
from spread import spread
from whole_worker import Case, scenario
from yardsticks import require, wrk

HERE = Path(__file__).parents[1]
MEGABYTES = (0.064, 1, 100)
USERS = (1, 4, 16)

_LENGTH = re.compile(rb"\ncontent-length: *(\d+)", re.IGNORECASE)
_ANSWERS = {
    b"GET": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]",
    b"PUT": b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
}
_OTHER = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"
_PIECE = 1 << 22


class _Upload:
    """A connection: what is left of the body that comes, and how its request will be answered."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.head = b""
        self.left = 0
        self.answer = b""

    def take(self, dropped: memoryview, taken: list[int]) -> bool:
        """Take what is there, and count it in ``taken``; False at the end of the connection."""
        if self.left:
            received = self.connection.recv_into(dropped, min(self.left, _PIECE), socket.MSG_TRUNC)
            self.left -= received
            taken[0] += received
        else:
            data = self.connection.recv(1 << 14)
            received = len(data)
            self.head += data
            head, end, body = self.head.partition(b"\r\n\r\n")
            if not end:
                return bool(received)
            length = _LENGTH.search(head)
            self.left = (int(length[1]) if length else 0) - len(body)
            taken[0] += len(body)
            self.answer = _ANSWERS.get(head.split(b" ", 1)[0], _OTHER)
            if head.startswith(b"GET /used "):
                said = b"%f %d" % (time.process_time(), taken[0])
                self.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(said), said)
            self.head = b""
        if not self.left and received:
            self.connection.sendall(self.answer)
        return bool(received)


def swallow(port: int) -> None:
    """Be the store; GET of ``/used`` says how many CPU seconds and bytes of bodies it took so far."""
    taken = [0]
    dropped = memoryview(bytearray(_PIECE))
    listener = socket.create_server(("127.0.0.1", port), backlog=256)
    uploads: dict[int, _Upload] = {}
    with select.epoll() as poller:
        poller.register(listener.fileno(), select.EPOLLIN)
        while True:
            for descriptor, _ in poller.poll():
                upload = uploads.get(descriptor)
                if upload is None:
                    connection, _ = listener.accept()
                    uploads[connection.fileno()] = _Upload(connection)
                    poller.register(connection.fileno(), select.EPOLLIN)
                    continue
                try:
                    stays = upload.take(dropped, taken)
                except OSError:
                    stays = False
                if not stays:
                    poller.unregister(descriptor)
                    uploads.pop(descriptor).connection.close()


class Uploaded(NamedTuple):
    """MB/s; CPU milliseconds a MB, of client and store; CPU microseconds of the master an upload."""

    throughput: float
    client: float
    store: float
    master: float = 0.0


def ours(program: Path, case: Case, seconds: float) -> Uploaded:
    os.environ["PYTHONPATH"] = str(program)
    with served(swallow) as url:
        arguments = [f"--storage-url={url}/v1/a", "--token=t", "--workers=1", f"--run-seconds={seconds:g}"]
        # No object is written twice at once: of few objects fewer jobs can be ahead of the users.
        objects = max(4 * case.users, min(1000, 2_000_000_000 // case.size))
        ran = run(arguments, scenario(case, objects))
        store, taken = _used(url)
    megabytes = case.size / 1e6
    return Uploaded(
        ran.rate * megabytes, ran.worker_cpu * 1e3 / megabytes, store / taken * 1e9, ran.master_cpu * 1e6
    )


def of_wrk(case: Case, seconds: float) -> Uploaded:
    with served(swallow) as url:
        one = wrk(f"{url}/v1/a/c/o", "PUT", case.size, case.users, seconds)
        store, taken = _used(url)
    return Uploaded(taken / one.seconds / 1e6, one.cpu / taken * 1e9, store / taken * 1e9)


def _used(url: str) -> tuple[float, int]:
    with urllib.request.urlopen(f"{url}/used") as answer:
        cpu, taken = answer.read().split()
    return float(cpu), int(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", type=float, nargs="*", default=MEGABYTES, metavar="MB")
    parser.add_argument("--users", type=int, nargs="*", default=USERS, metavar="N")
    parser.add_argument("--against", type=Path)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "uploads.json")
    options = parser.parse_args()
    require("wrk")
    programs = [HERE] + ([options.against] if options.against else [])
    results = {}
    cases = [Case("PUT", round(size * 1e6), users) for size in options.only for users in options.users]
    for case in cases:
        found: dict[str, list[Uploaded]] = {each: [] for each in ("wrk", *map(str, programs))}
        for number in range(options.rounds):
            for each in list(found)[:: -1 if number % 2 else 1]:
                uploaded = (
                    of_wrk(case, options.seconds)
                    if each == "wrk"
                    else ours(Path(each), case, options.seconds)
                )
                found[each].append(uploaded)
        results[case.name] = found
        others = found["wrk"]
        print(f"{case.name} wrk {_told(others)}", flush=True)
        for program in map(str, programs):
            own = found[program]
            rate = [one.throughput / other.throughput for one, other in zip(own, others, strict=True)]
            cpu = [one.client / other.client for one, other in zip(own, others, strict=True)]
            print(
                f"{case.name} {program} {_told(own)}, master {spread([one.master for one in own])} us;"
                f" by wrk's: throughput {spread(rate)}, CPU {spread(cpu)}",
                flush=True,
            )
    save(options.json, results=results)


def _told(rounds: Sequence[Uploaded]) -> str:
    return (
        f"{spread([one.throughput for one in rounds])} MB/s,"
        f" client {spread([one.client for one in rounds])} ms/MB,"
        f" store {spread([one.store for one in rounds])}"
    )


if __name__ == "__main__":
    main()
