"""What an OpenTelemetry collector gets, read from OTLP over real HTTP; it may be slow, refuse or be dead."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from collector import taking
from counted_metrics import check_that_silence_holds_nothing_up, hasten, made, run
from golden_words import GoldenWords
from runs import wait_until
from said import SERVER_WAITS

from ssbench.monitoring.run_metrics import LATENCY_BUCKETS, CountingSink

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install '.[otlp]'")

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric

from ssbench.monitoring import otlp


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    logger = logging.getLogger("opentelemetry")
    before = logger.handlers, logger.propagate
    yield
    logger.handlers, logger.propagate = before


@pytest.fixture
def counting() -> CountingSink:
    return made()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


def read(body: bytes) -> tuple[dict[str, str], dict[str, Metric]]:
    """Return the attributes of the resource, and the metrics by name."""
    request = ExportMetricsServiceRequest.FromString(body)
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics
    assert scope.scope.name == "ssbench"
    return labels(resource.resource.attributes), {each.name: each for each in scope.metrics}


def labels(attributes: object) -> dict[str, str]:
    return {each.key: each.value.string_value for each in attributes}  # type: ignore[attr-defined]


def of(points: object, **wanted: str) -> object:
    (point,) = (each for each in points if wanted.items() <= labels(each.attributes).items())  # type: ignore[attr-defined]
    return point


def test_a_collector_gets_every_metric_with_the_counts_of_the_run(counting: CountingSink) -> None:
    with taking() as collector, otlp.make_otlp_sender(counting, collector.url):
        wait_until(lambda: len(collector.requests) == 1, "the first metrics")
        run(counting)
    assert {(method, path) for method, path, *_ in collector.requests} == {("POST", "/v1/metrics")}
    assert collector.requests[0][2]["content-type"] == "application/x-protobuf"
    resource, first = read(collector.requests[0][3])
    assert resource["service.name"] == "ssbench"
    # Before the benchmark each series is there, at 0.
    assert of(first["ssbench.operations"].sum.data_points, operation="create").as_int == 0  # type: ignore[attr-defined]
    _, last = read(collector.requests[-1][3])
    counts = last["ssbench.operations"].sum
    assert counts.is_monotonic
    assert counts.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    point = of(counts.data_points, operation="read", size_class="small")
    assert point.as_int == 10  # type: ignore[attr-defined]
    assert 0 < point.start_time_unix_nano < point.time_unix_nano  # type: ignore[attr-defined]
    assert of(last["ssbench.errors"].sum.data_points, operation="read", cause="HTTP 503").as_int == 1  # type: ignore[attr-defined]
    assert last["ssbench.moved"].unit == "By"
    latency = of(last["ssbench.latency"].histogram.data_points, operation="read")
    assert (latency.count, latency.sum) == (10, pytest.approx(0.2))  # type: ignore[attr-defined]
    assert tuple(latency.explicit_bounds) == LATENCY_BUCKETS  # type: ignore[attr-defined]
    assert latency.bucket_counts[LATENCY_BUCKETS.index(0.02)] == 10  # type: ignore[attr-defined]
    assert not latency.HasField("min")  # type: ignore[attr-defined]
    assert of(last["ssbench.worker.cpu"].gauge.data_points, worker="3", host="a").as_double == 0.5  # type: ignore[attr-defined]
    assert last["ssbench.run_end_timestamp"].gauge.data_points[0].as_double == 1234.5
    (info,) = last["ssbench.info"].gauge.data_points
    assert labels(info.attributes)["label"] == "new disks"


def test_a_path_is_kept_and_a_whole_address_too(counting: CountingSink) -> None:
    for path in ("/otlp/", "/otlp/v1/metrics"):
        with taking() as collector, otlp.make_otlp_sender(counting, collector.url + path):
            pass
        assert collector.requests[0][1] == "/otlp/v1/metrics"


def test_a_failure_is_said_at_once_and_counted_where_the_last_delivery_was_made(
    counting: CountingSink, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    with taking(400) as collector:
        with otlp.make_otlp_sender(counting, collector.url):
            wait_until(lambda: caplog.messages, "a message")
            assert caplog.messages[0].startswith(f"--metrics: {collector.url}/v1/metrics: ")
            golden_words(caplog.messages[0])
            collector.status = 200
            run(counting)
        assert len(caplog.messages) == 2
        assert " deliveries to " in caplog.messages[1]
        assert caplog.messages[1].endswith("the last one was made, and has all counts")


def test_an_answer_without_an_end_costs_little_and_is_no_delivery(
    counting: CountingSink, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    with taking() as collector:
        collector.endless = True
        with otlp.make_otlp_sender(counting, collector.url):
            wait_until(lambda: caplog.messages, "a message")
    golden_words(caplog.messages[0])
    assert collector.read < 50_000_000  # what buffers of sockets hold


def test_an_answer_that_points_elsewhere_is_no_delivery(
    counting: CountingSink, caplog: pytest.LogCaptureFixture
) -> None:
    for status in (301, 302, 304, 307):
        caplog.clear()
        with taking(status) as collector, otlp.make_otlp_sender(counting, collector.url):
            run(counting)
        assert f"HTTP {status}, which is not followed elsewhere" in caplog.messages[0]
        assert SERVER_WAITS in caplog.messages[-1]
        assert all(path == "/v1/metrics" for _, path, *_ in collector.requests)


@pytest.mark.usefixtures("impatient")
def test_a_collector_that_is_dead_is_not_waited_for_while_it_is_tried_again(
    counting: CountingSink, caplog: pytest.LogCaptureFixture
) -> None:
    with taking() as collector:
        pass
    with caplog.at_level(logging.INFO), otlp.make_otlp_sender(counting, collector.url) as made_now:
        run(counting)
        wait_until(lambda: made_now._failing or made_now._trouble(), "the first attempt to fail")
    assert [each for each in caplog.messages if "Waiting" in each] == []
    assert " were not made (Connection refused); the last one too" in caplog.messages[-1]


@pytest.mark.usefixtures("impatient")
def test_a_collector_that_does_not_answer_holds_nothing_up(
    counting: CountingSink, caplog: pytest.LogCaptureFixture
) -> None:
    check_that_silence_holds_nothing_up(otlp.make_otlp_sender, counting, caplog)
