"""What Prometheus scrapes, against the results that it is made of."""

from __future__ import annotations

import http.client
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from golden_words import GoldenWords
from metric_results import READ, SCENARIO, SO_FAR, SOURCE, results, scrape
from result_rows import block, row

from ssbench.base.errors import UsageError
from ssbench.document.figures import COUNTED_FIGURES
from ssbench.monitoring.prometheus import PrometheusExporter
from ssbench.monitoring.run_metrics import CountingSink
from ssbench.results.block import Failure
from ssbench.results.result_fields import NOT_MEASURED
from ssbench.results.run_description import RunSummary

DASHBOARD = Path(__file__).parents[3] / "doc" / "grafana-dashboard.json"


def labels(operation: str, size_class: str, **more: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({"operation": operation, "size_class": size_class, **more}.items()))


def test_a_scrape_has_what_the_results_had(exporter: PrometheusExporter, counting: CountingSink) -> None:
    counting.tick(0.0)
    for now in (1.0, 2.0):
        counting.add(results())
        counting.tick(now)
    found = scrape(exporter)
    tiny, big = labels("read", 'the "tiny"'), labels("create", "big")
    assert found["ssbench_operations_total", tiny] == 200
    assert found["ssbench_operations_total", big] == 2
    assert found["ssbench_moved_bytes_total", tiny] == 200_000
    assert found["ssbench_retries_total", tiny] == 4
    assert found["ssbench_errors_total", labels("read", 'the "tiny"', cause="HTTP 503")] == 2
    assert found["ssbench_errors_total", labels("read", 'the "tiny"', cause="connect timeout")] == 2
    assert found["ssbench_users", ()] == 64
    assert found["ssbench_workers", ()] == 3
    assert found["ssbench_workers_expected", ()] == 4
    assert found["ssbench_run_start_timestamp_seconds", ()] > 1e9
    assert ("ssbench_run_end_timestamp_seconds", ()) not in found
    for bound, count in (("0.01", 20), ("0.05", 100), ("0.1", 200), ("+Inf", 200)):
        key = labels("read", 'the "tiny"', le=bound)
        assert found["ssbench_latency_seconds_bucket", key] == count
    assert found["ssbench_latency_seconds_bucket", labels("create", "big", le="60.0")] == 0
    assert found["ssbench_latency_seconds_bucket", labels("create", "big", le="+Inf")] == 2
    assert found["ssbench_latency_seconds_sum", tiny] == pytest.approx(2 * 5.05)
    assert found["ssbench_first_byte_latency_seconds_count", tiny] == 200
    assert ("ssbench_first_byte_latency_seconds_count", big) not in found


def test_every_series_exists_before_the_first_result(exporter: PrometheusExporter) -> None:
    found = scrape(exporter)
    for operation in ("create", "read", "update", "delete"):
        for name in ("operations_total", "retries_total", "moved_bytes_total", "latency_seconds_count"):
            assert found[f"ssbench_{name}", labels(operation, "big")] == 0
        for cause in ("HTTP 503", "connect refused"):
            assert found["ssbench_errors_total", labels(operation, "big", cause=cause)] == 0
    assert found["ssbench_first_byte_latency_seconds_count", labels("read", "big")] == 0
    assert ("ssbench_first_byte_latency_seconds_count", labels("create", "big")) not in found
    assert found["ssbench_in_flight", ()] == 0
    assert math.isnan(found["ssbench_master_cpu_ratio", ()])


def test_the_load_generator_and_the_run(exporter: PrometheusExporter, counting: CountingSink) -> None:
    counting.tick(0.0)
    found = scrape(exporter)
    first, second = (tuple({"worker": worker, "host": host}.items()) for worker, host in ("1a", "2b"))
    first, second = tuple(sorted(first)), tuple(sorted(second))
    assert found["ssbench_worker_cpu_ratio", first] == 0.5
    assert found["ssbench_worker_lag_seconds", first] == 0.002
    assert math.isnan(found["ssbench_worker_cpu_ratio", second])
    assert found["ssbench_master_cpu_ratio", ()] == 0.25
    assert found["ssbench_master_lag_seconds", ()] == 0.125
    (info,) = (dict(key) for name, key in found if name == "ssbench_info")
    assert (info["run"], info["label"], info["scenario"]) == ("night", "before upgrade", "metrics")


def test_the_end_of_a_run_is_a_moment_and_counts_the_rest(
    exporter: PrometheusExporter, counting: CountingSink
) -> None:
    counting.tick(0.0)
    counting.add(results())
    counting.tick(0.1)
    assert scrape(exporter)["ssbench_operations_total", labels("create", "big")] == 0
    counting.end(RunSummary(ended=1234.5))
    found = scrape(exporter)
    assert found["ssbench_operations_total", labels("create", "big")] == 1
    assert found["ssbench_run_end_timestamp_seconds", ()] == 1234.5
    began = found["ssbench_run_start_timestamp_seconds", ()]
    counting.tick(100.0)  # another run begins
    counting.add(results())
    counting.tick(200.0)
    found = scrape(exporter)
    assert found["ssbench_run_start_timestamp_seconds", ()] > began
    assert ("ssbench_run_end_timestamp_seconds", ()) not in found
    assert found["ssbench_operations_total", labels("create", "big")] == 2


def test_causes_from_workers_are_no_more_than_a_server_can_take(
    exporter: PrometheusExporter, counting: CountingSink
) -> None:
    rows = [row(operation=READ, completed=1e9, last_byte=NOT_MEASURED) for _ in range(200)]
    counting.add(block(rows, failures={n: Failure(f"cause\n{n}", "", {}) for n in range(200)}))
    counting.tick(0.0)
    causes = [dict(key)["cause"] for name, key in scrape(exporter) if name == "ssbench_errors_total"]
    assert len({cause for cause in causes if cause.startswith("cause")}) == 50
    assert "other" in causes


def test_every_query_of_the_dashboard_asks_for_what_there_is(
    exporter: PrometheusExporter, counting: CountingSink
) -> None:
    counting.tick(0.0)
    counting.add(results())
    counting.end(replace(SO_FAR, ended=1.0))
    exported = {name for name, _ in scrape(exporter)}
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries += [annotation["expr"] for annotation in dashboard["annotations"]["list"]]
    queries += [variable["query"] for variable in dashboard["templating"]["list"][1:]]
    assert len(queries) > 10
    asked = {name for query in queries for name in re.findall(r"ssbench_\w+", query)}
    assert asked <= exported
    # What is exported and not asked for: the moments that clients add, the facts, rare counters.
    unasked = exported - asked - {name for name in exported if name.endswith(("_created", "_info"))}
    unasked -= {f"ssbench_{key}_total" for key in (*COUNTED_FIGURES, "latencies_left_out")}
    assert unasked <= {"ssbench_first_byte_latency_seconds_count", "ssbench_first_byte_latency_seconds_sum"}
    for query in queries:
        assert query.count("(") == query.count(")")
        used = set(re.findall(r"by \(([^)]*)\)", query))
        assert {label for each in used for label in each.split(", ")} <= {
            "operation",
            "size_class",
            "cause",
            "le",
        }


def test_head_is_answered_as_get_without_a_body(exporter: PrometheusExporter) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", exporter.port, timeout=30)
    for method in ("HEAD", "GET"):
        connection.request(method, "/metrics")
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert bool(body) is (method == "GET")
        connection.close()


def test_a_port_that_is_taken_is_one_line(exporter: PrometheusExporter, golden_words: GoldenWords) -> None:
    with golden_words.raises(UsageError):
        PrometheusExporter(CountingSink(SCENARIO, SOURCE), "127.0.0.1", exporter.port)
