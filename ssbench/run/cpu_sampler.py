"""How much CPU the servers of a Swift on this machine use while a run measures them."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ssbench.base import host
from ssbench.results.block import ResultBlock
from ssbench.results.run_description import RunSummary, ServerCpuSample

_Kept = TypeVar("_Kept")

#: Seconds of a sample at first. With more samples than so many each two become one.
_FIRST_SAMPLE_SECONDS = 1.0
_MAX_SAMPLES = 240


class ServerCpuSampler:
    """A :class:`~ssbench.results.block.Sink` that counts results and reads the CPU of some processes.

    ``servers`` are the kinds of servers by process ids; those of a ``side`` count its results alone.
    ``epoch`` turns the master's monotonic clock into seconds since 1970.

    A result counts where it ended: on a busy machine it comes later, which made the CPU for an operation in a
    second four times as uncertain.
    """

    def __init__(self, servers: Mapping[int, str], side: int | None = None, *, epoch: float = 0.0) -> None:
        self._servers = servers
        self._side = side
        self._epoch = epoch
        self._samples: list[ServerCpuSample] = []
        #: Operations by their codes, of each sample and of the one that has begun.
        self._ended: list[Counter[int]] = [Counter()]
        self._every = _FIRST_SAMPLE_SECONDS
        self._began = math.inf  # the first look, in seconds since 1970
        self._last: tuple[float, dict[int, float]] | None = None

    def add(self, block: ResultBlock) -> None:
        """Count results."""
        if self._began == math.inf:  # nothing is measured, and blocks may be small
            return
        counts = block.completed > self._began
        if self._side is not None:
            counts &= block.group == self._side
        codes = block.operation[counts]
        places = np.searchsorted([each.until for each in self._samples], block.completed[counts])
        for place in np.unique(places).tolist():
            self._ended[place].update(codes[places == place].tolist())

    def tick(self, now: float) -> None:
        """Take a sample when it is time for one."""
        if not self._servers:
            return
        if self._last is None:
            self._began, self._last = now + self._epoch, (now, dict(host.read_cpu_times(self._servers)))
        elif now - self._last[0] >= self._every:
            self._take(now)
            if len(self._samples) > _MAX_SAMPLES:
                self._samples = [*_merge_pairs(self._samples, _merge_samples)]
                self._ended = [*_merge_pairs(self._ended[:-1], operator.add), self._ended[-1]]
                self._every *= 2

    def stop(self, now: float) -> None:
        """Take the last sample, of what is left since the one before."""
        if self._last is not None and self._ended[-1] and now > self._last[0]:
            self._take(now)
        self._last = None
        self._servers = {}

    def end(self, summary: RunSummary) -> None:
        """Do nothing: the summary has the samples."""

    def samples(self) -> tuple[ServerCpuSample, ...]:
        """Return the samples."""
        return tuple(
            replace(each, operations=ended.total(), by_operation=dict(ended))
            for each, ended in zip(self._samples, self._ended, strict=False)
        )

    def _take(self, now: float) -> None:
        if self._last is None:
            return
        began, before = self._last
        used = dict(host.read_cpu_times(self._servers))
        cpu = dict.fromkeys(self._servers.values(), 0.0)
        for pid, seconds in used.items():
            # One that was started meanwhile is counted from the next sample on.
            cpu[self._servers[pid]] += max(0.0, seconds - before.get(pid, seconds))
        self._samples.append(ServerCpuSample(now + self._epoch, now - began, 0, cpu, self._side))
        self._ended.append(Counter())
        self._last = now, used


def _merge_pairs(found: list[_Kept], merge: Callable[[_Kept, _Kept], _Kept]) -> Iterator[_Kept]:
    """Yield each two as one; the last may stay alone."""
    yield from map(merge, found[:-1:2], found[1::2])
    yield from found[len(found) // 2 * 2 :]


def _merge_samples(first: ServerCpuSample, second: ServerCpuSample) -> ServerCpuSample:
    cpu = {kind: first.cpu[kind] + second.cpu[kind] for kind in first.cpu}
    return replace(second, seconds=first.seconds + second.seconds, cpu=cpu)
