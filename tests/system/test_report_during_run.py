"""A report of what was counted while its run went on says what one of the stat file says, to the byte."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

import pytest
from fault_server import FaultServer, Reply, Request
from runs import TOKEN, After, Store, outcome, worker_pids, write_scenario

from ssbench.cli import run_report
from ssbench.cli.run_report import StatisticsDuringRun
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.reports.writing import ReportOptions, make_run_report_parts
from ssbench.results.block import LOST_CAUSE, Sink
from ssbench.results.reading import open_results
from ssbench.run.bench import Bench
from ssbench.run.bench_options import BenchOptions, RunOptions, RunSide
from ssbench.run.benchmark_run import RunOutcome
from ssbench.scenario.scenario_reading import read_scenario
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize
from ssbench.store.credentials import Credentials
from ssbench.store.request_options import RequestOptions

BY = (*products.PAGE_GROUPS, "worker", "storage_url")
TIMED = {"operation_count": None, "run_seconds": 1.5}
GROUPS = [
    {"name": "web", "users": 3, "crud_profile": [1, 3, 0, 0], "think_time": 0.005},
    {"name": "backup", "users": 4, "crud_profile": [1, 1, 0, 0], "rate": 100},
]
STAGES = [{"seconds": 0.7, "users": 4}, {"seconds": 0.8, "rate": 200, "users": 4}]

#: Changes of a scenario, and options of the run.
KINDS: Mapping[str, tuple[dict[str, object], dict[str, object]]] = {
    "closed": ({"think_time": 0.001}, {}),
    "a warm-up": ({"think_time": 0.001, "warmup": 0.5}, {}),
    "a rate": ({"rate": 300, "arrivals": "poisson"}, {}),
    "stages": ({"run_seconds": None, "stages": STAGES}, {}),
    "groups": ({"groups": GROUPS, "without": ("user_count", "crud_profile")}, {}),
    "two sides": ({"think_time": 0.001}, {"sides": (RunSide("old", policy="p"), RunSide("new", policy="q"))}),
    "conditions": ({"think_time": 0.001, "fail_if": ["read.p50 > 0 ms"]}, {}),
}


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be time for counting on a machine that is loaded; reading the file again is a failure."""
    monkeypatch.setattr(run_report, "_BUSY_SHARE", 1e9)
    monkeypatch.setattr(run_report, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(
        "ssbench.statistics.summary.summarize", lambda *_, **__: pytest.fail("the file was read whole")
    )


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench(BenchOptions(workers=2)) as made:
        yield made


def texts(statistics: RunStatistics) -> dict[str, str]:
    """Return a run in each format that there is."""
    options = ReportOptions(verbose=True)
    return {
        name: "".join(make_run_report_parts(name, statistics, options))
        for name in products.format_names(Product.RUN)
    }


def check(bench: Bench, scenario: Path, options: RunOptions, *more: Sink) -> RunOutcome:
    counted = StatisticsDuringRun(BY, over_time=True)
    counted.so_far = bench.so_far
    found: list[RunStatistics] = []

    def measured(outcome: RunOutcome) -> None:
        assert outcome.path is not None
        found.append(counted.statistics(outcome.path))

    done = bench.run(read_scenario(str(scenario)), options, sinks=[counted, *more], on_measured=measured)
    assert done.path is not None
    expected = texts(summarize(open_results(done.path), BY, over_time=True))
    for name, text in texts(found[0]).items():
        assert text == expected[name], name
    return done


@pytest.mark.parametrize("kind", KINDS)
def test_the_report_is_that_of_the_file(bench: Bench, tmp_path: Path, kind: str) -> None:
    changes, options = KINDS[kind]
    scenario = write_scenario(tmp_path, **TIMED | {"crud_profile": [1, 3, 0, 0]} | changes)
    done = check(bench, scenario, RunOptions(stats_file=tmp_path / "run", noop=True, **options))
    assert done.count > 50


def test_a_run_that_is_interrupted(bench: Bench, tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path, operation_count=10**9, think_time=0.001, crud_profile=[1, 3, 0, 0])
    done = check(
        bench, scenario, RunOptions(stats_file=tmp_path / "run", noop=True), After(2000, bench.interrupt)
    )
    assert done.interrupted


def test_failures_and_a_worker_that_is_lost(tmp_path: Path) -> None:
    others = worker_pids()

    def kill() -> None:
        os.kill(min(worker_pids() - others), signal.SIGKILL)

    places = count()
    with FaultServer(rule=(store := Store())) as server:
        account = Reply(200, headers=(("X-Storage-Url", server.url), ("X-Auth-Token", TOKEN)))

        def fault(request: Request) -> Reply | None:
            if "auth" in request.target:
                return account
            return Reply(503) if request.method == "GET" and next(places) % 5 == 0 else None

        store.fault = fault
        credentials = Credentials(
            version="1.0", auth_url=server.url.replace("v1/AUTH_test", "auth/v1.0"), user="a:u", key="k"
        )
        with Bench(BenchOptions(workers=2, credentials=credentials)) as bench:
            scenario = write_scenario(
                tmp_path, operation_count=600, think_time=0.005, crud_profile=[1, 3, 0, 0]
            )
            options = RunOptions(stats_file=tmp_path / "run", requests=RequestOptions(retries=0))
            done = check(bench, scenario, options, After(200, kill))
    assert done.errors > 10
    assert done.path is not None
    assert LOST_CAUSE in outcome(done.path).causes
