"""A store of a few slots with a cache, whose latencies follow from what it is asked, when and in which order.

A request holds one of :data:`SLOTS`, a read for :data:`HIT` seconds (median) where its object was among the
last :data:`CACHED` that were used, else for :data:`MISS`, a write for :data:`WRITE`; those that come while
all are held wait in turn. So what differs in arrivals, reuse or shares of operations shows in the latencies,
and how busy the machine is hardly does. It logs as Swift's proxies do, with the moments at which requests
came.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from urllib.parse import parse_qsl

from served import served

SLOTS = 4
CACHED = 100
#: Hits and misses overlap: a median between two peaks would move by several percent where chance moves the
#: hit ratio by 0.01.
HIT, MISS, WRITE = 0.007, 0.014, 0.012
#: Standard deviation of the logarithm of these.
SPREAD = 0.4
#: What the log says of a read that hit, where Swift's has what middlewares say.
FOUND = "hit"


class _Store:
    def __init__(self, log: Path) -> None:
        self._log = log.open("w", buffering=1)
        self._objects: dict[str, int] = {}
        self._metadata: dict[str, str] = {}  # header lines, by which a run knows whose objects are there
        self._containers: set[str] = set()
        self._cached: OrderedDict[str, None] = OrderedDict()
        self._slots = asyncio.Semaphore(SLOTS)
        self._numbers = count()
        self._random = Random(1)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            began = time.time()
            first, *lines = head.decode("latin1").split("\r\n")
            method, target, _ = first.split(" ")
            fields = {name.lower(): value.strip() for name, _, value in (e.partition(":") for e in lines)}
            path, _, query = target.partition("?")
            body = await reader.readexactly(int(fields.get("content-length") or 0))
            status, answer, length, found = await self._do(method, path, query, body)
            if method == "PUT":
                self._metadata[path] = "".join(
                    f"{name}: {value}\r\n"
                    for name, value in fields.items()
                    if name.startswith("x-object-meta-")
                )
            number = f"tx{next(self._numbers):021x}-{int(began):010x}"
            writer.write(
                f"HTTP/1.1 {status} OK\r\nContent-Length: {length}\r\nX-Trans-Id: {number}\r\n"
                f"{self._metadata.get(path, '')}\r\n".encode()
                + (b"" if method == "HEAD" else answer)
            )
            ended = time.time()
            date = time.strftime("%d/%b/%Y/%H/%M/%S", time.gmtime(ended))
            received = len(body) if method == "PUT" else "-"
            took = ended - began
            self._log.write(
                f"127.0.0.1 127.0.0.1 {date} {method} {target} HTTP/1.1 {status} - ssbench - {received}"
                f" {len(answer) or '-'} - {number} - {took:.4f} - {found} {began:.9f} {ended:.9f} 0 -\n"
            )

    async def _do(self, method: str, path: str, query: str, body: bytes) -> tuple[int, bytes, int, str]:
        """Return the status of a request, the body of its answer, the length that it says, and a word.

        The word is :data:`FOUND` for a read of what is in the cache.
        """
        _, _, _, container, name = (path.split("/", 4) + [""] * 5)[:5]
        if not name:
            return *self._do_container(method, container, query), "-"
        if method not in ("GET", "PUT"):
            size = self._objects.get(path)
            if method == "DELETE":
                self._objects.pop(path, None)
                self._cached.pop(path, None)
            return (404 if size is None else 204 if method == "DELETE" else 200), b"", size or 0, "-"
        async with self._slots:
            is_hit = path in self._cached
            seconds = WRITE if method == "PUT" else HIT if is_hit else MISS
            await asyncio.sleep(seconds * self._random.lognormvariate(0, SPREAD))
            self._cached[path] = None
            self._cached.move_to_end(path)
            if len(self._cached) > CACHED:
                self._cached.popitem(last=False)
        if method == "PUT":
            self._objects[path] = len(body)
            return 201, b"", 0, "-"
        size = self._objects.get(path)
        return (404, b"", 0, "-") if size is None else (200, bytes(size), size, FOUND if is_hit else "-")

    def _do_container(self, method: str, container: str, query: str) -> tuple[int, bytes, int]:
        if not container:
            return 204, b"", 0
        if method == "PUT":
            self._containers.add(container)
            return 201, b"", 0
        if container not in self._containers:
            return 404, b"", 0
        if method != "GET":
            if method == "DELETE":
                self._containers.discard(container)
            return 204, b"", 0
        asked = dict(parse_qsl(query))
        sizes = {
            path.split("/", 4)[4]: size for path, size in self._objects.items() if f"/{container}/" in path
        }
        names = [each for each in sorted(sizes) if each.startswith(asked.get("prefix", ""))]
        names = [each for each in names if each > asked.get("marker", "")][: int(asked.get("limit", 10_000))]
        answer = json.dumps([{"name": each, "bytes": sizes[each]} for each in names]).encode()
        return 200, answer, len(answer)


def _serve(port: int, log: str) -> None:
    async def main() -> None:
        store = _Store(Path(log))

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await store.serve(reader, writer)
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(main())


@contextmanager
def start_cached_store(folder: Path) -> Iterator[str]:
    """Run such a store until the block ends; yields its storage URL. Its log is ``proxy.log`` in a folder."""
    with served(_serve, str(folder / "proxy.log")) as url:
        yield f"{url}/v1/AUTH_test"
