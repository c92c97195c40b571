"""What --verify costs a worker: its CPU an operation of 4 kB with and without, by turns.

    python bench/verify.py [--rounds N] [--seconds S] [--only WORD ...] [--against FOLDER] [--json FILE]

In "GET md5" and "PUT md5" the store is a process of some lines, with MD5s as ETags as Swift has; in "GET
nginx" and "PUT nginx" they are not. There are ``--objects``, 500 by default. ``--against`` names another
checkout, whose program takes its turn too. The cost is the difference within a round.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import re
from functools import partial
from pathlib import Path

import spread as spreads
from program import run
from saving import save
from served import served
from whole_worker import Case, scenario
from yardsticks import Nginx, require

HERE = Path(__file__).parents[1]
CASES = ("GET md5", "PUT md5", "GET nginx", "PUT nginx")

_find_length = re.compile(rb"(?i)\ncontent-length: *(\d+)").search
_ANSWER = (
    b"HTTP/1.1 %d OK\r\nContent-Type: application/octet-stream\r\nEtag: %b\r\nX-Timestamp: 1764430127.1\r\n"
    b"X-Trans-Id: tx0123456789abcdef01234-0123456789\r\nContent-Length: %d\r\n\r\n%b"
)

spread = partial(spreads.spread, middle="5.1f", ends=".1f")


class Keeping(asyncio.Protocol):
    """A connection to a store that keeps what is uploaded, with its MD5."""

    objects: dict[bytes, tuple[bytes, bytes]] = {}  # noqa: RUF012 - of the whole process

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, end, body = self.received.partition(b"\r\n\r\n")
        length = _find_length(head)
        if not end or len(body) < (int(length[1]) if length else 0):
            return
        self.received = b""
        method, path, _ = head.split(b" ", 2)
        if method == b"PUT":
            etag = hashlib.md5(body).hexdigest().encode()
            if path.count(b"/") > 3:
                self.objects[path] = etag, body
            self.reply(201, etag, b"")
        elif method == b"GET":
            self.reply(200, *self.objects.get(path, (b"none", b"[]")))
        else:
            self.reply(204, b"none", b"")

    def reply(self, status: int, etag: bytes, body: bytes) -> None:
        self.transport.write(_ANSWER % (status, etag, len(body), body))


def keep(port: int) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Keeping, "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(main())


def cost(program: Path, url: str, case: Case, objects: int, seconds: float, *more: str) -> float:
    """Return microseconds of the worker's CPU an operation, with the program of a checkout."""
    os.environ["PYTHONPATH"] = str(program)
    arguments = [f"--storage-url={url}/v1/a", "--token=AUTH_tk0123456789abcdef", "--workers=1", *more]
    return run([*arguments, f"--run-seconds={seconds:g}"], scenario(case, objects)).worker_cpu * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--objects", type=int, default=500)
    parser.add_argument("--only", nargs="*", default=[""], metavar="WORD")
    parser.add_argument("--against", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    require("nginx")
    programs = [HERE] + ([options.against] if options.against else [])
    results = []
    print(f"{'':9} {'without':>18} {'with':>20} {'cost: median (range)':>24}")
    with Nginx() as nginx, served(keep) as keeping:
        for name in (each for each in CASES if any(word in each for word in options.only)):
            method, _, store = name.partition(" ")
            url = nginx.url() if store == "nginx" else keeping
            rounds = [
                {
                    str(program): [
                        cost(program, url, Case(method, 4096, 16), options.objects, options.seconds, *more)
                        for more in ((), ("--verify",))
                    ]
                    for program in programs[:: -1 if turn % 2 else 1]
                }
                for turn in range(options.rounds)
            ]
            results.append({"case": name, "rounds": rounds})
            for program in map(str, programs):
                plain, verified = zip(*(each[program] for each in rounds), strict=True)
                more = [two - one for one, two in zip(plain, verified, strict=True)]
                print(f"{name:9} {spread(plain)} {spread(verified)} {spread(more)}  {program}", flush=True)
    if options.json:
        save(options.json, results=results)


if __name__ == "__main__":
    main()
