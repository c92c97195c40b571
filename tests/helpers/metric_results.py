"""Results that metrics are made of, and what is scraped of them: for tests of each way to export them."""

from __future__ import annotations

import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from result_rows import block, row

from ssbench.monitoring.prometheus import PrometheusExporter
from ssbench.monitoring.run_metrics import RunMonitor
from ssbench.results.block import Failure, ResultBlock
from ssbench.results.result_fields import NOT_MEASURED, UNKNOWN_NUMBER
from ssbench.results.run_description import MasterFacts, RunSummary, WorkerFacts
from ssbench.scenario.model import Scenario, SizeClass

WEIGHTS = (1.0, 1.0, 1.0, 1.0)
CLASSES = (SizeClass('the "tiny"', 1, 1, 1, WEIGHTS), SizeClass("big", 9, 9, 1, WEIGHTS))
SCENARIO = Scenario("metrics", CLASSES, user_count=64, run_seconds=60.0)
READ, CREATE = 1, 0

MASTER = MasterFacts(0.25, 0.125)
WORKERS = (WorkerFacts(1, "a", cpu_share=0.5, lag_p99=0.002), WorkerFacts(2, "b"))
SO_FAR = RunSummary(ended=0.0, workers=WORKERS, master=MASTER)
SOURCE = RunMonitor(lambda: (3, 4), lambda: (Path("/results/night.stat.gz"), SO_FAR))

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def results() -> ResultBlock:
    """100 reads of 1 to 100 ms, a create of a big object, a read that failed, one without an answer."""
    rows = [
        row(operation=READ, size=1000, first_byte=0.0005 * n, last_byte=0.001 * n, completed=1e9, status=200)
        for n in range(1, 101)
    ]
    rows.append(row(operation=CREATE, size_class=1, size=5000, last_byte=70.0, completed=1e9, status=201))
    failed = {"operation": READ, "size": 0, "first_byte": NOT_MEASURED, "last_byte": NOT_MEASURED}
    rows.append(row(**failed, completed=1e9, status=503, retries=2))
    rows.append(row(**failed, completed=1e9, status=UNKNOWN_NUMBER))
    started = {"started": {101: 1e9 - 0.25, 102: 1e9 - 0.5}}
    failures = {101: Failure("HTTP 503", "", {}), 102: Failure("connect timeout", "", {})}
    return block(rows, failures=failures, rare=started)


def scrape(exporter: PrometheusExporter) -> Samples:
    with urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
