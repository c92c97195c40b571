"""What the machines of the load generator did during a benchmark, besides the benchmark."""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Iterable, Iterator
from time import monotonic

from ssbench.base import host
from ssbench.base.host import HostCounters
from ssbench.fleet.worker_state import WorkerState
from ssbench.results.description import HostFacts

#: Readings nearer to each other (seconds) say little.
_MIN_SPAN_SECONDS = 0.5

#: How far apart two readings of a process were, and both of them.
ReadingSpan = tuple[float, HostCounters, HostCounters]


class HostUsage:
    """Reads this machine now and, with :meth:`facts`, at the end; workers do so with each heartbeat."""

    def __init__(self) -> None:
        self._name = socket.gethostname()[:255]
        self._began = monotonic()
        self._first = host.read_host_counters()
        self._children = dict(host.read_child_cpu_times())

    def facts(self, workers: Iterable[WorkerState]) -> Iterator[HostFacts]:
        """Yield what is known of each machine, this one first."""
        spans: dict[str, list[ReadingSpan]] = defaultdict(list)
        spans[self._name].append((monotonic() - self._began, self._first, host.read_host_counters()))
        children = dict(host.read_child_cpu_times())
        # A local Swift is one of them, and local workers, which are not counted twice.
        own = {self._name: sum(used - self._children.get(pid, 0.0) for pid, used in children.items())}
        for worker in workers:
            span = worker.load.host if worker.presence.used else None
            if span is not None and span[0] >= _MIN_SPAN_SECONDS:
                spans[worker.host].append(span)
                if worker.host == self._name and worker.pid in children:
                    own[self._name] -= span[2].own - span[1].own
        for name, each in spans.items():
            if (found := _host_facts(name, each, own.get(name, 0.0))) is not None:
                yield found


def _host_facts(name: str, spans: list[ReadingSpan], more: float) -> HostFacts | None:
    """Return what is known of a machine, by processes of the run there; ``more`` CPU seconds are its too."""
    seconds, first, last = max(spans, key=lambda span: span[0])
    if seconds < _MIN_SPAN_SECONDS:
        return None
    spans = [each for each in spans if each[0] >= _MIN_SPAN_SECONDS]
    used = sum((last.own - first.own) / each for each, first, last in spans)
    own = max(0.0, used + more / seconds) / last.cores
    busy = _share_of(first.busy, last.busy, seconds * last.cores)
    waited, denied = max(map(_waited_shares, spans), key=lambda each: each[0] or 0.0)
    return HostFacts(
        host=name,
        cores=last.cores,
        load_begin=first.load,
        load_end=last.load,
        own_cpu=own,
        other_cpu=None if busy is None else max(0.0, busy - own),
        stolen=_share_of(first.stolen, last.stolen, seconds * last.cores),
        pressed=_share_of(first.pressed, last.pressed, seconds),
        waited=waited,
        denied=denied,
        processes=len(spans),
    )


def _waited_shares(span: ReadingSpan) -> tuple[float | None, float | None]:
    """Return for which share of the time a process waited for a CPU, and of that in which it wanted one."""
    seconds, first, last = span
    waited = _share_of(first.waited, last.waited, seconds)
    if waited is None:
        return None, None
    wanted = waited + (last.own - first.own) / seconds
    return waited, waited / wanted if wanted > 0 else 0.0


def _share_of(first: float | None, last: float | None, of: float) -> float | None:
    """Return what was added as a share; None where it is not known."""
    return None if first is None or last is None else max(0.0, last - first) / of
