"""The process that watches a cluster: ``python -m ssbench.cluster._watch``, started by :mod:`.observer`.

It reads a :class:`Task` as one line of JSON from its standard input. It writes an
:class:`~ssbench.results.cluster_observation.Observation` in the same way when it has seen the cluster before
the run, and after the next line a second one, of the whole run. It ends with its input, and so with its
parent.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from ssbench.base.interruption import call_concurrently
from ssbench.cluster.recon import MAX_THREADS, Sampler, ask_info, make_pool
from ssbench.cluster.statsd import MAX_DATAGRAM, Aggregator
from ssbench.results.cluster_observation import Observation, ObservationRecord, Proxy

#: Seconds that servers have to answer before and after the run; who takes longer is left out.
BEFORE_SECONDS = 4.0
AFTER_SECONDS = 7.0

#: Datagrams that a run before this one has left in the socket, at most.
_MAX_LEFT_OVER_DATAGRAMS = 100_000


class Task(ObservationRecord, frozen=True):
    """What to watch. ``statsd`` is the descriptor of the socket, ``statsd_port`` its port."""

    recon: tuple[str, ...] = ()
    interval: float = 5.0
    proxies: tuple[str, ...] = ()
    insecure: bool = False
    ca_certificates: str | None = None
    statsd: int | None = None
    statsd_port: int = 0


class Watch:
    """A cluster that is watched, from :meth:`begin` to :meth:`end`."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._began = time.time()
        self._start = time.monotonic()
        self._sampler = Sampler(task.recon, task.interval, self._start)
        self._proxies: dict[str, Proxy] = {}
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._aggregator = Aggregator(task.interval)
        if task.statsd is not None:
            self._socket = socket.socket(fileno=task.statsd)
            self._empty(self._socket)
            self._dropped_before = count_dropped_datagrams(self._socket)
            threading.Thread(target=self._receive, args=(self._socket,), daemon=True).start()

    def begin(self) -> Observation:
        """See what there is before the run."""
        asking = threading.Thread(target=self._ask_proxies, daemon=True)
        asking.start()
        self._sampler.before(BEFORE_SECONDS)
        asking.join(BEFORE_SECONDS)
        return self._observation()

    def end(self) -> Observation:
        """See what there is after it, and return everything."""
        self._sampler.after(AFTER_SECONDS)
        return self._observation()

    def _observation(self) -> Observation:
        statsd = None
        with self._lock:
            if self._socket is not None:
                lost = count_dropped_datagrams(self._socket) - self._dropped_before
                statsd = self._aggregator.result(self._task.statsd_port, lost)
        answered = self._proxies.copy()  # those that are late still come
        return Observation(
            began=self._began,
            interval=self._sampler.interval,
            ended=time.monotonic() - self._start,
            servers=self._sampler.servers(),
            proxies=tuple(
                answered.get(url) or Proxy(url, failure=f"no answer in {BEFORE_SECONDS:g} s")
                for url in self._task.proxies
            ),
            statsd=statsd,
        )

    def _ask_proxies(self) -> None:
        pool = make_pool(insecure=self._task.insecure, ca_certificates=self._task.ca_certificates)

        def ask(url: str) -> None:
            self._proxies[url] = ask_info(pool, url)

        # Each at the same time as the others, so that one that is silent does not use up their time.
        call_concurrently(ask, self._task.proxies, MAX_THREADS, "info")

    def _empty(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        with suppress(BlockingIOError):
            for _ in range(_MAX_LEFT_OVER_DATAGRAMS):
                listener.recv(1)
        listener.setblocking(True)

    def _receive(self, listener: socket.socket) -> None:
        while True:
            data = listener.recv(MAX_DATAGRAM)
            with self._lock:
                self._aggregator.datagram(data, time.monotonic() - self._start)


def count_dropped_datagrams(listener: socket.socket) -> int:
    """Return how many datagrams the kernel had no room for; 0 where it does not tell."""
    inode = str(os.fstat(listener.fileno()).st_ino)
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        with suppress(OSError, ValueError, IndexError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[9] == inode:
                    return int(fields[-1])
    return 0


def main() -> None:
    """Run as the module's program."""
    task = msgspec.json.decode(sys.stdin.buffer.readline(), type=Task)
    watch = Watch(task)
    for observe in (watch.begin, watch.end):
        sys.stdout.buffer.write(msgspec.json.encode(observe()) + b"\n")
        sys.stdout.buffer.flush()
        if not sys.stdin.buffer.readline():
            break
    os._exit(0)  # threads may still wait for a server


if __name__ == "__main__":
    main()
