"""Metrics that are delivered: what servers get by HTTP, and that slow or dead ones change nothing."""

from __future__ import annotations

import pytest
from collector import Taken, taking
from counted_metrics import check_that_silence_holds_nothing_up, hasten, made, run
from prometheus_client.parser import text_string_to_metric_families
from runs import wait_until
from said import SERVER_WAITS

from ssbench.monitoring import courier, prometheus
from ssbench.monitoring.courier import MetricsSender
from ssbench.monitoring.run_metrics import CountingSink

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")


@pytest.fixture
def counting() -> CountingSink:
    return made()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


@pytest.mark.usefixtures("impatient")
def test_a_server_that_does_not_answer_holds_nothing_up(
    counting: CountingSink, caplog: pytest.LogCaptureFixture
) -> None:
    check_that_silence_holds_nothing_up(prometheus.make_push_sender, counting, caplog)


def test_a_server_that_refuses_is_named_with_its_reason(
    counting: CountingSink, caplog: pytest.LogCaptureFixture
) -> None:
    with taking(400) as gateway, prometheus.make_push_sender(counting, gateway.url):
        run(counting)
    assert caplog.messages[-1] == (
        f"--metrics: 1 of 1 deliveries to {gateway.url} were not made (HTTP 400 no room here);"
        f" the last one too, {SERVER_WAITS}"
    )


def test_a_pushgateway_gets_all_metrics_at_the_end(counting: CountingSink) -> None:
    with taking() as gateway, prometheus.make_push_sender(counting, gateway.url):
        run(counting)
    ((method, path, _, body),) = gateway.requests
    assert method == "PUT"
    assert path.startswith("/metrics/job/ssbench/")
    assert "/label/new%20disks" in path or "label@base64" in path
    found = {
        (sample.name, sample.labels.get("operation")): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }
    assert found["ssbench_operations_total", "read"] == 10
    assert found["ssbench_run_end_timestamp_seconds", None] == 1234.5


def test_deliveries_that_wait_are_replaced_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courier, "_MERGE_SECONDS", 0.0)
    with taking(held=True) as server:
        sent: list[Taken] = []

        def deliver() -> None:
            sent.append(server)
            server.free.wait(60)

        with MetricsSender("--x", server.url, deliver) as made:
            made.send()
            wait_until(lambda: sent, "the first delivery")
            made.send()
            made.send()
            server.free.set()
    assert (made.asked, made.lost, len(sent)) == (3, 1, 2)
