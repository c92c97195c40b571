"""Metrics for an OpenTelemetry collector: OTLP over HTTP, in protobuf, by OpenTelemetry's own exporter.

Its variables (OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE, OTEL_RESOURCE_ATTRIBUTES and so on)
are heeded. What was counted is handed to the exporter as it is: its instruments would cost a call a result.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import time
from collections.abc import Callable
from typing import Any

import requests
import urllib3
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Histogram as HistogramData
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from ssbench.base.version import __version__
from ssbench.monitoring import run_metrics as monitoring_sums
from ssbench.monitoring.courier import DeliveryError, MetricsSender
from ssbench.monitoring.run_metrics import (
    LATENCY_BUCKETS,
    METRICS,
    CountingSink,
    LatencyHistogram,
    MetricKind,
)

#: Seconds between two deliveries.
DELIVERY_SECONDS = 5.0

#: The path of metrics below a collector's address, by the specification of OTLP.
_METRICS_PATH = "/v1/metrics"

#: Variables that say how many seconds a delivery may take.
_TIMEOUT_VARIABLES = ("OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT")

#: Variables that name code of the user's which makes the HTTP session.
_SESSION_VARIABLES = (
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER",
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_METRICS_CREDENTIAL_PROVIDER",
)

#: Bytes of an answer; a collector's has a sentence at most.
_MAX_ANSWER_BYTES = 65_536

#: Counts are those since the beginning.
_CUMULATIVE_COUNTS = AggregationTemporality.CUMULATIVE


def make_otlp_sender(counting: CountingSink, url: str) -> MetricsSender:
    """Return what delivers all metrics to a collector each :data:`DELIVERY_SECONDS` and when a run ends."""
    reasons = _FailureReasons()
    url = url.rstrip("/").removesuffix(_METRICS_PATH) + _METRICS_PATH
    # It tries again by itself until then, and the next delivery has all counts anyway.
    seconds = None if any(name in os.environ for name in _TIMEOUT_VARIABLES) else DELIVERY_SECONDS
    session = None if any(name in os.environ for name in _SESSION_VARIABLES) else _BoundedSession()
    exporter = OTLPMetricExporter(endpoint=url, timeout=seconds, session=session)
    resource = Resource.create(
        {
            "service.name": "ssbench",
            "service.version": __version__,
            "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
            "host.name": socket.gethostname(),
        }
    ).merge(OTELResourceDetector().detect())

    def export() -> None:
        reasons.of_this = ""
        if exporter.export(_make_metrics_data(counting, resource)) is not MetricExportResult.SUCCESS:
            raise DeliveryError(reasons.of_this or "it was not taken")

    made = MetricsSender(
        "--metrics",
        url,
        export,
        give_up=exporter.shutdown,
        trouble=lambda: reasons.of_this,
        every=DELIVERY_SECONDS,
    )
    counting.on_counted.append(made.counted)
    counting.on_ended.append(made.send)
    made.send()  # a wrong address is known before the benchmark begins, and all series are
    return made


class _BoundedSession(requests.Session):
    """Reads no more of an answer than is needed; one that points elsewhere has not taken anything."""

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        answer = super().send(request, **{**options, "stream": True, "allow_redirects": False})
        try:
            content = answer.raw.read(_MAX_ANSWER_BYTES + 1, decode_content=True)
        except urllib3.exceptions.HTTPError as error:
            raise requests.ConnectionError(str(error)) from error
        finally:
            if 300 <= answer.status_code < 400 or answer.raw.tell() > _MAX_ANSWER_BYTES:
                answer.close()
        # What is raised is logged by the exporter, as why it failed, and is not tried again.
        if len(content) > _MAX_ANSWER_BYTES:
            raise requests.RequestException(f"an answer of more than {_MAX_ANSWER_BYTES:,} bytes")
        if 300 <= answer.status_code < 400:
            raise requests.RequestException(f"HTTP {answer.status_code}, which is not followed elsewhere")
        answer.raw.release_conn()
        answer._content = content
        return answer


class _FailureReasons(logging.Handler):
    """Keeps what the exporter logs of a failure, the only place where it says why, and does not show it.

    ``of_this`` is the reason for which the delivery under way, or the last one, failed or is tried again.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.of_this = ""
        logger = logging.getLogger("opentelemetry")
        logger.handlers, logger.propagate = [self], False

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the reason of a message: the innermost error, where there is one."""
        errors = [each for each in record.args or () if isinstance(each, BaseException)]
        text = _innermost_reason(errors[0]) if errors else record.getMessage()
        if "max retries" not in text and "Shutdown" not in text:  # which say less than the line before
            self.of_this = text


def _innermost_reason(error: BaseException) -> str:
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return getattr(error, "strerror", None) or str(error)


def _make_metrics_data(counting: CountingSink, resource: Resource) -> MetricsData:
    """Return all metrics as they are now."""
    sums, span = counting.shown, (int(counting.began * 1e9), time.time_ns())
    info = NumberDataPoint(monitoring_sums.describe_run(counting), *span, 1)
    made = [Metric("ssbench.info", "The program and its run.", "", Gauge([info]))]
    for each in METRICS:
        numbers: list[NumberDataPoint] = []
        histograms: list[HistogramDataPoint] = []
        for key, value in each.samples(sums):
            labels = dict(zip(each.labels, key, strict=True))
            if isinstance(value, LatencyHistogram):
                histograms.append(_make_histogram_point(labels, span, value))
            elif not math.isnan(value):
                numbers.append(NumberDataPoint(labels, *span, value))
        if numbers or histograms:
            data = _DATA_BY_KIND[each.kind](numbers, histograms)
            made.append(Metric(each.dotted, each.text, each.unit.code, data))
    scope = ScopeMetrics(InstrumentationScope("ssbench", __version__), made, "")
    return MetricsData([ResourceMetrics(resource, [scope], resource.schema_url)])


#: What is made of the points of a metric.
_DATA_BY_KIND: dict[
    MetricKind, Callable[[list[NumberDataPoint], list[HistogramDataPoint]], Gauge | Sum | HistogramData]
] = {
    MetricKind.GAUGE: lambda numbers, _: Gauge(numbers),
    MetricKind.COUNTER: lambda numbers, _: Sum(numbers, _CUMULATIVE_COUNTS, is_monotonic=True),
    MetricKind.HISTOGRAM: lambda _, histograms: HistogramData(histograms, _CUMULATIVE_COUNTS),
}


def _make_histogram_point(
    labels: dict[str, str], span: tuple[int, int], value: LatencyHistogram
) -> HistogramDataPoint:
    # The least and the greatest value are optional in OTLP, and not known.
    unknown: Any = None
    return HistogramDataPoint(
        labels,
        *span,
        count=int(value.counts.sum()),
        sum=value.total,
        bucket_counts=value.counts.tolist(),
        explicit_bounds=LATENCY_BUCKETS,
        min=unknown,
        max=unknown,
    )
