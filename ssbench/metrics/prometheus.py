"""Counters, histograms and gauges of a run for Prometheus, served over HTTP.

The loop counts with numpy twice a second and leaves the sums where the threads of the HTTP server find them:
an answer copies them, so that neither waits for the other.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from ssbench import __version__
from ssbench.errors import UsageError
from ssbench.metrics.gathering import Gathering, groups, operation_name
from ssbench.metrics.server import MetricsServer
from ssbench.results import ResultBlock, RunSummary
from ssbench.scenario.model import Scenario

#: Upper ends of the buckets of latencies, in seconds.
BUCKETS = (
    *(0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075),
    *(0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 20.0, 30.0, 60.0),
)
_BOUNDS = np.array(BUCKETS)

_BY = ("operation", "size_class")

Key = tuple[str, ...]


@dataclass(slots=True)
class _Histogram:
    """Counts of buckets, the last of which has no upper end, and the sum of all values."""

    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(BUCKETS) + 1, np.int64))
    total: float = 0.0

    def add(self, values: npt.NDArray[np.float64]) -> None:
        """Count values; those that were not measured are left out."""
        values = values[~np.isnan(values)]
        places = np.searchsorted(_BOUNDS, values)  # a value on a bound belongs to the bucket that it ends
        self.counts = self.counts + np.bincount(places, minlength=len(self.counts))
        self.total += float(values.sum())

    def buckets(self) -> list[tuple[str, float]]:
        """Return the cumulative counts by the upper end, as Prometheus has them."""
        names = [*map(repr, BUCKETS), "+Inf"]
        return list(zip(names, np.cumsum(self.counts).tolist(), strict=True))


@dataclass(slots=True)
class _Sums:
    """All that was counted, by operation and size class, and by cause too."""

    operations: Counter[Key] = field(default_factory=Counter)
    errors: Counter[Key] = field(default_factory=Counter)
    retries: Counter[Key] = field(default_factory=Counter)
    moved: Counter[Key] = field(default_factory=Counter)
    last_byte: dict[Key, _Histogram] = field(default_factory=dict)
    first_byte: dict[Key, _Histogram] = field(default_factory=dict)
    users: int = 0
    workers: tuple[int, int] = (0, 0)
    started: float | None = None
    ended: float | None = None

    def copied(self) -> _Sums:
        """Return a copy that what is counted later does not change."""
        made = copy(self)
        for name in ("operations", "errors", "retries", "moved"):
            setattr(made, name, Counter(getattr(self, name)))
        for name in ("last_byte", "first_byte"):
            setattr(made, name, {key: copy(histogram) for key, histogram in getattr(self, name).items()})
        return made


class PrometheusExporter(Gathering):
    """A sink that serves what it has counted; a context manager, which ends the server.

    Raises UsageError where it cannot listen at ``address`` and ``port`` (0: any that is free).
    """

    def __init__(
        self, scenario: Scenario, workers: Callable[[], tuple[int, int]], address: str, port: int
    ) -> None:
        super().__init__(scenario, workers)
        self._sums = _Sums(users=scenario.user_count)
        #: What the HTTP server sees: never changed, only replaced.
        self.shown = self._sums.copied()
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Families(self))
        try:
            self._server = MetricsServer(registry, address, port)
        except OSError as error:
            raise UsageError(f"--metrics-port: cannot listen at {address}:{port}: {error.strerror}") from None
        self.port = self._server.server_port

    def __enter__(self) -> PrometheusExporter:
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.end()

    def begun(self) -> None:
        """The benchmark has begun; what runs before it counted stays."""
        self._sums.started, self._sums.ended = time.time(), None

    def ended(self, summary: RunSummary) -> None:
        """The benchmark has ended; what was counted is served until the program ends."""
        self._sums.ended = summary.ended
        self.shown = self._sums.copied()

    def take(self, block: ResultBlock | None) -> None:
        """Count the results of half a second."""
        sums = self._sums
        sums.workers = self.workers()
        if block is not None:
            self._count(block, sums)
            self._count_failures(block, sums)
        self.shown = sums.copied()

    def _count(self, block: ResultBlock, sums: _Sums) -> None:
        failed = block.failed
        for operation, size_class, rows in groups(block, *_BY):
            key = (operation_name(operation), self.size_class(size_class))
            sums.retries[key] += int(block.retries[rows].sum())
            succeeded = rows[~failed[rows]]
            if not len(succeeded):
                continue
            sums.operations[key] += len(succeeded)
            sums.moved[key] += int(np.maximum(block.size[succeeded], 0).sum())
            sums.last_byte.setdefault(key, _Histogram()).add(block.last_byte[succeeded])
            first_byte = block.first_byte[succeeded]
            if not np.isnan(first_byte).all():
                sums.first_byte.setdefault(key, _Histogram()).add(first_byte)

    def _count_failures(self, block: ResultBlock, sums: _Sums) -> None:
        for row, failure in block.failures.items():
            if failure.cause is not None:
                key = (operation_name(int(block.operation[row])), self.size_class(int(block.size_class[row])))
                sums.errors[*key, self.cause(failure.cause)] += 1


class _Families(Collector):
    """Turns what is shown into what Prometheus reads."""

    def __init__(self, exporter: PrometheusExporter) -> None:
        self._exporter = exporter

    def collect(self) -> Iterator[Metric]:
        """Yield every metric; called by the threads of the HTTP server."""
        sums, scenario = self._exporter.shown, self._exporter.scenario
        facts = {"version": __version__, "scenario": scenario.name}
        yield InfoMetricFamily("ssbench", "The program and its scenario.", value=facts)
        yield _counter("ssbench_operations", "Successful operations.", _BY, sums.operations)
        yield _counter("ssbench_errors", "Failed operations.", (*_BY, "cause"), sums.errors)
        yield _counter("ssbench_retries", "Attempts after the first one.", _BY, sums.retries)
        yield _counter("ssbench_moved_bytes", "Bytes of body that successes moved.", _BY, sums.moved)
        yield _histogram("ssbench_latency_seconds", "Latency to the last byte.", sums.last_byte)
        yield _histogram("ssbench_first_byte_latency_seconds", "Latency to the first byte.", sums.first_byte)
        there, expected = sums.workers
        for name, text, value in (
            ("ssbench_users", "Operations in flight at most.", sums.users),
            ("ssbench_workers", "Workers that can get jobs.", there),
            ("ssbench_workers_expected", "Workers that were asked for.", expected),
            ("ssbench_run_start_timestamp_seconds", "When the benchmark began.", sums.started),
            ("ssbench_run_end_timestamp_seconds", "When the benchmark ended.", sums.ended),
        ):
            if value is not None:
                yield GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, labels: Sequence[str], counts: Counter[Key]) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for key, count in counts.items():
        family.add_metric(key, count)
    return family


def _histogram(name: str, text: str, histograms: dict[Key, _Histogram]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=_BY)
    for key, histogram in histograms.items():
        family.add_metric(key, histogram.buckets(), histogram.total)
    return family
