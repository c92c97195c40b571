"""How much CPU the servers of a Swift on this machine use while a run measures them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ssbench.base import host
from ssbench.results.block import ResultBlock
from ssbench.results.run_description import RunSummary, ServerCpuSample

#: Seconds of a sample at first. With more samples than so many each two become one.
_FIRST_SAMPLE_SECONDS = 1.0
_MAX_SAMPLES = 240


class ServerCpuSampler:
    """A :class:`~ssbench.results.block.Sink` that counts results and reads the CPU of some processes.

    ``servers`` are the kinds of servers by process ids; those of a ``side`` count its results alone.
    """

    def __init__(self, servers: Mapping[int, str], side: int | None = None) -> None:
        self._servers = servers
        self._side = side
        self._ended: Counter[int] = Counter()  # operations by their codes
        self._samples: list[ServerCpuSample] = []
        self._every = _FIRST_SAMPLE_SECONDS
        self._last: tuple[float, dict[int, float]] | None = None

    def add(self, block: ResultBlock) -> None:
        """Count results."""
        codes = block.operation if self._side is None else block.operation[block.group == self._side]
        for code, count in enumerate(np.bincount(codes).tolist()):
            self._ended[code] += count

    def tick(self, now: float) -> None:
        """Take a sample when it is time for one."""
        if not self._servers:
            return
        if self._last is None:
            self._last, self._ended = (now, dict(host.read_cpu_times(self._servers))), Counter()
        elif now - self._last[0] >= self._every:
            self._take(now)
            if len(self._samples) > _MAX_SAMPLES:
                self._samples, self._every = _halve_samples(self._samples), 2 * self._every

    def stop(self, now: float) -> None:
        """Take the last sample, of what is left since the one before."""
        if self._last is not None and self._ended.total() and now > self._last[0]:
            self._take(now)
        self._last = None
        self._servers = {}

    def end(self, summary: RunSummary) -> None:
        """Do nothing: the summary has the samples."""

    def samples(self, epoch: float) -> tuple[ServerCpuSample, ...]:
        """Return the samples; ``epoch`` turns the master's monotonic clock into seconds since 1970."""
        return tuple(replace(each, until=each.until + epoch) for each in self._samples)

    def _take(self, now: float) -> None:
        if self._last is None:
            return
        began, before = self._last
        used = dict(host.read_cpu_times(self._servers))
        cpu = dict.fromkeys(self._servers.values(), 0.0)
        for pid, seconds in used.items():
            # One that was started meanwhile is counted from the next sample on.
            cpu[self._servers[pid]] += max(0.0, seconds - before.get(pid, seconds))
        self._samples.append(
            ServerCpuSample(now, now - began, self._ended.total(), cpu, self._side, dict(+self._ended))
        )
        self._last, self._ended = (now, used), Counter()


def _halve_samples(samples: list[ServerCpuSample]) -> list[ServerCpuSample]:
    """Return samples, each two as one; the last may stay alone."""
    pairs = zip(samples[::2], samples[1::2], strict=False)
    return [_merge_samples(*pair) for pair in pairs] + samples[len(samples) // 2 * 2 :]


def _merge_samples(first: ServerCpuSample, second: ServerCpuSample) -> ServerCpuSample:
    return ServerCpuSample(
        second.until,
        first.seconds + second.seconds,
        first.operations + second.operations,
        {kind: first.cpu[kind] + second.cpu[kind] for kind in first.cpu},
        first.side,
        dict(Counter(first.by_operation) + Counter(second.by_operation)),
    )
