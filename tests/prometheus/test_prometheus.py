"""Metrics, the dashboard and doc/metrics.rst against a real Prometheus and a real Pushgateway.

``tox -e prometheus`` runs this; a test whose program is not there is skipped.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deploy_tools import environment, need
from processes import free_ports
from result_rows import block, row
from runs import wait_until

from ssbench.monitoring.prometheus import PrometheusExporter, make_push_sender
from ssbench.monitoring.run_metrics import CountingSink, RunMonitor
from ssbench.results.block import Failure
from ssbench.results.run_description import MasterFacts, RunSummary, WorkerFacts
from ssbench.scenario.model import Scenario, SizeClass

DOC = Path(__file__).parents[2] / "doc"
PACKAGES = (
    "apt-get install prometheus prometheus-pushgateway (both start a service, which these tests do not need)"
)
SCENARIO = Scenario("night", (SizeClass("small", 1, 1, 1, (1, 1, 0, 0)),), user_count=4, run_seconds=9.0)
SO_FAR = RunSummary(
    ended=0.0, workers=(WorkerFacts(3, "a", cpu_share=0.5, lag_p99=0.01),), master=MasterFacts(0.25, 0.125)
)


def get(url: str, **query: str) -> Any:
    with urllib.request.urlopen(f"{url}?{urllib.parse.urlencode(query)}", timeout=30) as answer:
        return json.load(answer)


@contextmanager
def program(*command: object, ready: str) -> Iterator[None]:
    """Run a program until its address answers."""
    process = subprocess.Popen([*map(str, command)], env=environment(), stderr=subprocess.PIPE)

    def answers() -> bool:
        assert process.poll() is None, process.stderr and process.stderr.read().decode()
        try:
            with urllib.request.urlopen(ready, timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    try:
        wait_until(answers, "the server")
        yield
    finally:
        process.kill()
        process.wait()
        if process.stderr:
            process.stderr.close()


@pytest.fixture
def counting() -> CountingSink:
    return CountingSink(
        SCENARIO, RunMonitor(lambda: (1, 2), lambda: (Path("night.stat.gz"), SO_FAR)), "new disks"
    )


def feed(counting: CountingSink, now: float) -> None:
    """Nine reads and a failure; two creates."""
    rows = [row(operation=1, size=10, last_byte=0.02, first_byte=0.01, completed=1e9, status=200)] * 10
    rows += [row(operation=0, size=10, last_byte=0.04, completed=1e9, status=201)] * 2
    counting.add(block(rows, failures={9: Failure("HTTP 503", "", {})}))
    counting.tick(now)


def dashboard() -> list[tuple[str, str]]:
    """Return the queries of the dashboard, as Grafana sends them, with the titles of their panels."""
    found = json.loads((DOC / "grafana-dashboard.json").read_text())
    queries = [(panel["title"], target["expr"]) for panel in found["panels"] for target in panel["targets"]]
    return [
        (title, query.replace("$job", ".*").replace("$__rate_interval", "1m")) for title, query in queries
    ]


def test_what_is_served_is_in_the_format_of_prometheus(counting: CountingSink) -> None:
    need(PACKAGES, "promtool")
    feed(counting, 0.0)
    with PrometheusExporter(counting, "127.0.0.1", 0) as exporter:
        text = urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/metrics", timeout=30).read()
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, env=environment(), capture_output=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, b"")


def test_the_dashboard_shows_something_before_the_first_result_and_figures_after_it(
    counting: CountingSink, tmp_path: Path
) -> None:
    need(PACKAGES, "prometheus", "promtool")
    (documented,) = re.findall(r"(?m)^  scrape_configs:\n(?:   .*\n)+", (DOC / "metrics.rst").read_text())
    config = tmp_path / "prometheus.yml"
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"

    with PrometheusExporter(counting, "127.0.0.1", 0) as exporter:
        text = re.sub("(?m)^  ", "", documented).replace("master-host:9102", f"127.0.0.1:{exporter.port}")
        config.write_text(text.replace("5s", "1s"))
        checked = ["promtool", "check", "config", str(config)]
        assert subprocess.run(checked, env=environment(), capture_output=True, check=False).returncode == 0

        def ask(query: str) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = get(f"{url}/api/v1/query", query=query)["data"]["result"]
            return found

        def scrapes() -> int:
            found = ask("count_over_time(ssbench_users[5m])")
            return int(found[0]["value"][1]) if found else 0

        counting.tick(0.0)
        with program(
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={tmp_path}/data",
            f"--web.listen-address=127.0.0.1:{port}",
            ready=f"{url}/-/ready",
        ):
            wait_until(lambda: scrapes() >= 2, "two scrapes")
            for title, query in dashboard():
                assert ask(query), f"no data: {title}: {query}"
            before = scrapes()
            # From the first results on, the first error included, rates are above 0.
            feed(counting, 1.0)
            wait_until(lambda: scrapes() >= before + 2, "two more scrapes")
            values = {
                (title, tuple(sorted(each["metric"].items()))): float(each["value"][1])
                for title, query in dashboard()
                for each in ask(query)
            }
            (job,) = get(f"{url}/api/v1/label/job/values", **{"match[]": "ssbench_users"})["data"]
    assert job == "ssbench"
    titles = {title for title, _ in values}

    def of(title: str, **labels: str) -> float:
        (found,) = (title_ for title_ in titles if title_.startswith(title))
        (value,) = (
            each
            for (its, metric), each in values.items()
            if its == found and labels.items() <= dict(metric).items() and "__name__" not in dict(metric)
        )
        return value

    assert of("Errors a second by cause", cause="HTTP 503") > 0
    assert of("Errors a second by cause", cause="HTTP 404") == 0
    assert of("Share of errors") == pytest.approx(1 / 12)
    assert of("Mean latency", operation="create") == pytest.approx(0.04)
    assert math.isclose(
        of("Operations a second by size class", operation="read"),
        4.5 * of("Operations a second by size class", operation="create"),
    )


def test_a_real_pushgateway_takes_the_end_of_a_run(counting: CountingSink, tmp_path: Path) -> None:
    need(PACKAGES, "prometheus-pushgateway")
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    command = ("prometheus-pushgateway", f"--web.listen-address=127.0.0.1:{port}")
    with program(*command, ready=f"{url}/-/ready"):
        with make_push_sender(counting, url) as courier:
            feed(counting, 0.0)
            counting.end(RunSummary(ended=1.0))
        assert (courier.asked, courier.lost) == (1, 0)
        text = urllib.request.urlopen(f"{url}/metrics", timeout=30).read().decode()
    (line,) = re.findall(r'(?m)^ssbench_operations_total\{.*operation="read".*$', text)
    assert 'label="new disks"' in line
    assert line.endswith(" 9")
