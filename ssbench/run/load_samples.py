"""How busy the load generator is during a benchmark: the master, the workers over time, the machines.

:class:`MasterLoad` measures the master's own loop. :class:`LoadSampler` takes samples of the master and all
workers, no more of them than a page shows. :class:`HostUsage` says how much of a machine the run used, and
how much everything else.
"""

from __future__ import annotations

import importlib
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from ssbench.base import host
from ssbench.base.host import HostCounters
from ssbench.fleet.worker_state import WorkerState
from ssbench.results.block import ResultBlock
from ssbench.results.run_description import HostFacts, LoadSample, RunSummary

#: Seconds of a sample at first. With more samples than :data:`MAX_SAMPLES` each two become one.
_FIRST_SAMPLE_SECONDS = 1.0
MAX_SAMPLES = 240

#: The loop stalled when a turn began so much later than it was to (seconds).
MASTER_GAP_SECONDS = 0.1

#: Most gaps that are kept.
_MAX_GAPS = 1000


class LoadSampler:
    """A :class:`~ssbench.results.block.Sink` that takes no results, but a sample at each second.

    ``workers`` returns those of the run, ``own`` is what the master's loop itself uses.
    """

    def __init__(self, workers: Callable[[], Iterable[WorkerState]], own: MasterLoad) -> None:
        self._workers = workers
        self._own = own
        self._samples: list[LoadSample] = []
        self._every = _FIRST_SAMPLE_SECONDS
        self._last: float | None = None

    def add(self, block: ResultBlock) -> None:
        """Do nothing: this is not about results."""

    def tick(self, now: float) -> None:
        """Take a sample when it is time for one."""
        if self._last is None:
            self._last = now
        elif now - self._last >= self._every:
            self._samples.append(self._sample(now, now - self._last))
            self._last = now
            if len(self._samples) > MAX_SAMPLES:
                self._samples, self._every = _halve_samples(self._samples), 2 * self._every

    def end(self, summary: RunSummary) -> None:
        """Do nothing: the summary has the samples."""

    def samples(self, epoch: float) -> tuple[LoadSample, ...]:
        """Return the samples; ``epoch`` turns the master's monotonic clock into seconds since 1970."""
        return tuple(replace(each, until=each.until + epoch) for each in self._samples)

    def _sample(self, now: float, seconds: float) -> LoadSample:
        used = [
            recent
            for worker in self._workers()
            if worker.presence.used and (recent := worker.load.take_recent()) is not None
        ]
        master = self._own.take_recent(now)
        return LoadSample(
            now,
            seconds,
            max((cpu for cpu, _ in used), default=None),
            max((lag for _, lag in used), default=None),
            *(master or (None, None)),
        )


def _halve_samples(samples: list[LoadSample]) -> list[LoadSample]:
    """Return samples, each two as one; the last may stay alone."""
    pairs = zip(samples[::2], samples[1::2], strict=False)
    return [_merge_samples(*pair) for pair in pairs] + samples[len(samples) // 2 * 2 :]


def _merge_samples(first: LoadSample, second: LoadSample) -> LoadSample:
    """Return two samples as one: shares of time are averaged, of the lags the longer one stays."""
    seconds = first.seconds + second.seconds

    def mean(one: float | None, other: float | None) -> float | None:
        if one is None or other is None:
            return other if one is None else one
        return (one * first.seconds + other * second.seconds) / seconds

    return LoadSample(
        second.until,
        seconds,
        mean(first.worker_cpu, second.worker_cpu),
        _largest_known(first.worker_lag, second.worker_lag),
        mean(first.master_cpu, second.master_cpu),
        _largest_known(first.master_lag, second.master_lag),
    )


def _largest_known(*values: float | None) -> float | None:
    """Return the largest of those that are known."""
    return max((value for value in values if value is not None), default=None)


@dataclass(frozen=True, slots=True)
class MasterUsage:
    """What was used since :meth:`MasterLoad.begin`: CPU as a share of one core, seconds of unread output."""

    cpu_share: float | None
    unread: float


class MasterLoad:
    """Follows the turns of a loop. Moments are of the loop's clock.

    ``longest`` is how late a turn began at most, in seconds, ``gaps`` are the times, (begin, end), in which
    the loop stalled for :data:`MASTER_GAP_SECONDS` or longer; ``gaps_dropped`` more were not kept.
    """

    def __init__(self) -> None:
        self.begin(0.0, 0.0)

    def begin(self, now: float, unread: float) -> None:
        """Count from now on; ``unread`` is how long standard error has waited for its reader so far."""
        self.longest = 0.0
        self.gaps: list[tuple[float, float]] = []
        self.gaps_dropped = 0
        self._began = self._taken = now
        self._cpu = self._cpu_taken = time.process_time()
        self._lag_since = 0.0
        self._unread = unread

    def turn(self, due: float, now: float) -> None:
        """Take note of a turn that was to begin by ``due``."""
        if now <= due:
            return
        self.longest = max(self.longest, now - due)
        self._lag_since = max(self._lag_since, now - due)
        if now - due >= MASTER_GAP_SECONDS:
            if len(self.gaps) < _MAX_GAPS:
                self.gaps.append((due, now))
            else:
                self.gaps_dropped += 1

    def take_recent(self, now: float) -> tuple[float, float] | None:
        """Return the share of one core since the last call, and how late a turn began at most (seconds)."""
        seconds, cpu = now - self._taken, time.process_time()
        if seconds <= 0:
            return None
        found = (cpu - self._cpu_taken) / seconds, self._lag_since
        self._taken, self._cpu_taken, self._lag_since = now, cpu, 0.0
        return found

    def used(self, now: float, unread: float) -> MasterUsage:
        """Return what was used until now."""
        seconds = now - self._began
        share = (time.process_time() - self._cpu) / seconds if seconds > 0 else None
        return MasterUsage(share, unread - self._unread)


# -- The machines of the load generator ------------------------------------------------------------


#: A local Swift is found by its name: a run does without what most people do not need.
_LOCAL_SWIFT_MODULE = "ssbench.local_swift"


def import_local_swift() -> Any:
    """Return the package of the local Swift, which takes its time to import."""
    return importlib.import_module(_LOCAL_SWIFT_MODULE)


def find_local_swift(urls: Sequence[str]) -> dict[int, str]:
    """Return the processes of a local Swift that serve some URLs: this program's, or of another terminal.

    Each has its kind: ``proxy``, ``listings`` or ``object``.
    """
    # Without one on this machine nothing has to be imported.
    hosts = {urlsplit(url).hostname or "" for url in urls}
    if not any(name == "localhost" or host.is_own_address(name) for name in hosts):
        return {}
    found: dict[int, str] = import_local_swift().find_server_kinds(urls)
    return found


#: Readings nearer to each other (seconds) say little.
_MIN_SPAN_SECONDS = 0.5

#: How far apart two readings of a process were, and both of them.
ReadingSpan = tuple[float, HostCounters, HostCounters]


class HostUsage:
    """Reads this machine now and, with :meth:`facts`, at the end; workers do so with each heartbeat.

    ``swift`` are the processes of the local Swift that the run talks to, whoever started it.
    """

    def __init__(self, swift: Iterable[int] = ()) -> None:
        self._name = socket.gethostname()[:255]
        self._began = monotonic()
        self._first = host.read_host_counters()
        self._children = dict(host.read_child_cpu_times())
        self._swift = dict(host.read_cpu_times(swift))

    def facts(self, workers: Iterable[WorkerState]) -> Iterator[HostFacts]:
        """Yield what is known of each machine, this one first."""
        spans: dict[str, list[ReadingSpan]] = defaultdict(list)
        spans[self._name].append((monotonic() - self._began, self._first, host.read_host_counters()))
        children = dict(host.read_child_cpu_times())
        # A local Swift may be one of them, and local workers, which are not counted twice.
        swift = {pid: used - self._swift[pid] for pid, used in host.read_cpu_times(self._swift)}
        more = {pid: used - self._children.get(pid, 0.0) for pid, used in children.items()} | swift
        own = {self._name: sum(more.values())}
        for worker in workers:
            span = worker.load.host if worker.presence.used else None
            if span is not None and span[0] >= _MIN_SPAN_SECONDS:
                spans[worker.host].append(span)
                if worker.host == self._name and worker.pid in children:
                    own[self._name] -= span[2].own - span[1].own
        for name, each in spans.items():
            served = sum(swift.values()) if swift and name == self._name else None
            if (found := _host_facts(name, each, own.get(name, 0.0), served)) is not None:
                yield found


def _host_facts(name: str, spans: list[ReadingSpan], more: float, swift: float | None) -> HostFacts | None:
    """Return what is known of a machine, by processes of the run there.

    ``more`` CPU seconds are its too, ``swift`` of them those of a local Swift.
    """
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
        swift_cpu=None if swift is None else swift / seconds / last.cores,
        network=_find_network_share(seconds, first, last),
    )


def _find_network_share(seconds: float, first: HostCounters, last: HostCounters) -> float | None:
    """Return how much of what it can move the busiest network card did; None without one of a known speed."""
    before = {each.name: each for each in first.cards}
    moved = [
        max(each.received - before[each.name].received, each.sent - before[each.name].sent, 0.0) / each.speed
        for each in last.cards
        if each.name in before
    ]
    return max(moved) / seconds if moved else None


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
