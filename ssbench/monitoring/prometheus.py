"""The counted sums for Prometheus: served over HTTP, and pushed where no server can scrape this host."""

from __future__ import annotations

import socket
import urllib.error
from collections.abc import Iterator
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, make_wsgi_app, push_to_gateway
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from ssbench.base.errors import UsageError
from ssbench.monitoring.courier import DeliveryError, MetricsSender
from ssbench.monitoring.run_metrics import (
    LATENCY_BUCKETS,
    METRICS,
    CountingSink,
    LatencyHistogram,
    MetricDefinition,
    MetricKind,
    MetricSums,
    describe_run,
)
from ssbench.monitoring.serving import BoundedServer, open_listening_socket

#: The job under which metrics are pushed.
_PUSH_JOB = "ssbench"

#: Seconds that the gateway has for each step of an answer.
_PUSH_SECONDS = 10.0


class PrometheusExporter:
    """A context manager that serves what is counted, until it ends.

    Raises UsageError where it cannot listen at ``address`` and ``port`` (0: any that is free).
    """

    def __init__(self, counting: CountingSink, address: str, port: int) -> None:
        try:
            self._server = MetricsServer(make_registry(counting), address, port)
        except OSError as error:
            raise UsageError(f"--metrics: cannot listen at {address}:{port}: {error.strerror}") from None
        self.port = self._server.server_port

    def __enter__(self) -> PrometheusExporter:
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.end()


def make_registry(counting: CountingSink) -> CollectorRegistry:
    """Return a registry of all metrics, which any thread may read."""
    made = CollectorRegistry(auto_describe=False)
    made.register(_MetricsCollector(counting))
    return made


_FAMILY_CLASSES = {
    MetricKind.COUNTER: CounterMetricFamily,
    MetricKind.GAUGE: GaugeMetricFamily,
    MetricKind.HISTOGRAM: HistogramMetricFamily,
}


class _MetricsCollector(Collector):
    """Turns what is shown into what Prometheus reads."""

    def __init__(self, counting: CountingSink) -> None:
        self._counting = counting

    def collect(self) -> Iterator[Family]:
        """Yield every metric; called by the threads of the HTTP server."""
        sums = self._counting.shown
        yield InfoMetricFamily("ssbench", "The program and its run.", value=describe_run(self._counting))
        for metric in METRICS:
            yield _make_family(metric, sums)


def _make_family(metric: MetricDefinition, sums: MetricSums) -> Family:
    family: Any = _FAMILY_CLASSES[metric.kind](metric.name, metric.text, labels=metric.labels)
    for key, value in metric.samples(sums):
        if isinstance(value, LatencyHistogram):
            family.add_metric(key, _cumulate_buckets(value), value.total)
        else:
            family.add_metric(key, value)
    made: Family = family
    return made


def _cumulate_buckets(histogram: LatencyHistogram) -> list[tuple[str, float]]:
    """Return the cumulative counts by the upper end, as Prometheus has them."""
    names = [*map(repr, LATENCY_BUCKETS), "+Inf"]
    return list(zip(names, np.cumsum(histogram.counts).tolist(), strict=True))


class MetricsServer(BoundedServer):
    """Serves a registry at an address and a port (0: any that is free); raises OSError."""

    def __init__(self, registry: CollectorRegistry, address: str, port: int) -> None:
        super().__init__(make_wsgi_app(registry), open_listening_socket(address, port), "metrics")


def make_push_sender(counting: CountingSink, url: str) -> MetricsSender:
    """Return what pushes all metrics when a run has ended.

    They replace those of the run before with the same host and label: a Pushgateway forgets nothing.
    """
    key = {"instance": socket.gethostname()} | ({"label": counting.label} if counting.label else {})
    metrics = make_registry(counting)

    def push() -> None:
        try:
            push_to_gateway(url, _PUSH_JOB, metrics, key, timeout=_PUSH_SECONDS)
        except urllib.error.HTTPError as error:
            said = error.read(200).decode("utf-8", "replace").strip()
            raise DeliveryError(f"HTTP {error.code} {said or error.reason}") from None
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise DeliveryError(getattr(reason, "strerror", None) or str(reason)) from None

    made = MetricsSender("--metrics", url, push)
    counting.on_ended.append(made.send)
    return made
