"""Short real runs in an open loop and in stages.

Bounds are those that a loaded machine cannot break; tests/unit/reports/test_run_facts_load_planted.py has the
exact ones.
"""

from __future__ import annotations

import dataclasses
import json
import re
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from fault_server import Reply, Request
from processes import Fleet
from runs import Store, store, write_scenario

from ssbench.base.errors import ExitCode
from ssbench.cli.master import main
from ssbench.results.block import ResultBlock, join_blocks
from ssbench.results.reading import open_results
from ssbench.results.result_fields import ResultMark
from ssbench.results.run_description import RunSummary
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize


def stalling(rule: Store, begins: float, ends: float, every: float) -> None:
    """Let the store stall for a part of each period from the first read on."""
    lock = threading.Lock()
    first: list[float] = []

    def fault(request: Request) -> Reply | None:
        if request.method != "GET":
            return None
        now = time.monotonic()
        with lock:
            first.append(now)
        within = (now - first[0]) % every
        delay = ends - within if begins <= within < ends else 0.0
        return dataclasses.replace(rule.answer(request), delay=delay)

    rule.fault = fault


def read(path: Path) -> tuple[RunStatistics, ResultBlock, RunSummary]:
    results = open_results(path)
    block = join_blocks(list(results.blocks()))
    assert results.summary is not None
    return summarize(open_results(path)), block, results.summary


def of_delivery(not_begun: int, due: int) -> ExitCode:
    """The exit code of a run in which so many of what was due never began.

    A process that is paused just before the end leaves some.
    """
    return ExitCode.NOT_DELIVERED if not_begun > 0.01 * due else ExitCode.OK


def test_an_open_loop_meets_the_stalls_that_its_users_do_not(fleet: Fleet, tmp_path: Path) -> None:
    """100/s with 10 users, and a stall of 0.5 s each 2: 40 of the 50 that are due in one find no user.

    Their response times are spread evenly up to 0.5 s, so that a tenth of all takes 0.3 s or longer.
    """
    scenario = write_scenario(tmp_path, crud_profile=[0, 1, 0, 0], user_count=10)
    with store() as (rule, options):
        stalling(rule, 0.5, 1.0, 2.0)
        run = fleet.run(scenario, "--workers", 2, "--rate", 100, "-r", 4, *options)
        code = run.end()
    numbers, block, summary = read(fleet.stats)
    assert numbers.due == 400
    assert numbers.not_begun == 400 - len(block)
    assert code == of_delivery(numbers.not_begun, 400), run.err
    assert [stage.due for stage in summary.stages] == [400]
    # Each was due at its moment, whatever the store did, and none began before it.
    assert np.ptp(block.due) == pytest.approx(0.01 * (len(block) - 1), abs=0.3) or numbers.not_begun
    assert (block.started - block.due > -2e-3).all()
    response = numbers.total.due.response
    assert numbers.total.due.since_due.percentile(90) >= 0.25
    assert response.maximum >= 0.4
    assert numbers.total.due.late + numbers.not_begun >= 60
    assert response.percentile(90) >= numbers.total.lines[0].last_byte.percentile(90)
    assert "Open loop: 100 operations a second, evenly, at most 10 in flight; due: 400" in run.out
    assert re.search(r"READ resp\w* +\d", run.out)


def test_a_rate_that_the_store_cannot_take_is_never_green(fleet: Fleet, tmp_path: Path) -> None:
    """3 users and a store that takes 12 ms an operation do at most 250 a second of 2,000."""
    scenario = write_scenario(tmp_path, crud_profile=[0, 1, 0, 0], user_count=3)
    outputs = {name: tmp_path / name for name in ("json", "report.xml", "report.md")}
    options = ["--json", outputs["json"], "--ci", outputs["report.xml"], "--ci", outputs["report.md"]]
    with store(delay=0.012) as (_, where):
        run = fleet.run(scenario, "--workers", 2, "--rate", 2000, "-r", 2, *options, *where)
        assert run.end() == ExitCode.NOT_DELIVERED, run.err
    text = " ".join(run.out.split())
    found = re.search(
        r"NOT DELIVERED: [\d.]+ of 2,000 ops/s; ([\d,]+) of 4,000 operations; up to 3 users", text
    )
    assert found is not None, run.out
    # After the end too, where the master is late to recall what workers have.
    _, block, _ = read(fleet.stats)
    assert int(found[1].replace(",", "")) <= 3 * (1 + np.ptp(block.started) / 0.012)
    assert re.search(r"READ .* >\d", run.out)
    verdict = json.loads(outputs["json"].read_text())["verdict"]
    assert (verdict["outcome"], verdict["exit_code"]) == ("not delivered", 7)
    assert verdict["asked"]["operations"] == 4000
    assert outputs["report.md"].read_text().startswith("### \u274c ")
    assert '<failure type="delivery"' in outputs["report.xml"].read_text()
    # The stat file says the same later; so do thresholds, which are about response times.
    report = ["report-scenario", "-q", "-s", str(fleet.stats), "--report", "summary"]
    assert main(report) == ExitCode.NOT_DELIVERED
    assert main([*report, "--fail-if", "read.p99 > 200ms"]) == ExitCode.THRESHOLD
    assert main([*report, "--fail-if", "undelivered > 99.9%"]) == ExitCode.OK


def test_stages_with_users_and_rates_a_warm_up_and_think_time(fleet: Fleet, tmp_path: Path) -> None:
    stages = [
        {"seconds": 1.2, "users": 2},
        {"seconds": 1, "rate": 50, "users": 4},
        {"seconds": 1, "rate": "0..60"},
    ]
    scenario = write_scenario(
        tmp_path,
        operation_count=None,
        stages=stages,
        crud_profile=[1, 1, 0, 0],
        user_count=8,
        warmup=0.4,
        think_time=0.1,
        arrivals="poisson",
    )
    with store() as (_, options):
        run = fleet.run(scenario, "--workers", 1, "--seed", 3, *options)
        code = run.end()
    numbers, block, summary = read(fleet.stats)
    names = [stage.name for stage in numbers.stages]
    assert names == ["1: 2 users", "2: 50/s", "3: 0..60/s"]
    dues = [stage.due for stage in summary.stages]
    assert dues[0] is None
    counts = np.bincount(block.stage, minlength=3).tolist()
    # Two users that think for 0.1 s send 24 in 1.2 s at most, and each its first.
    assert 2 <= counts[0] <= 26
    assert summary.stages[0].begins <= float(block.started.min()) + 0.1
    not_begun = sum(due or 0 for due in dues) - int((~np.isnan(block.due)).sum())
    assert numbers.not_begun == not_begun
    assert code == of_delivery(not_begun, sum(due or 0 for due in dues)), run.err
    for place in (1, 2):
        of_stage, due = block.stage == place, dues[place]
        assert due is not None
        assert 10 <= due <= 100
        # Without those that users had begun to do in the first stage; clocks are not exact at the borders.
        began = (of_stage & ~np.isnan(block.due)).sum()
        assert due - 2 - not_begun <= began <= due + 2
        assert numbers.stages[place].numbers.total.due.response.count > 0 or not began
    warm = block.marks & ResultMark.WARM_UP != 0
    assert warm.sum() == numbers.warmed_up
    assert (block.started[warm] < summary.stages[0].begins + 0.5).all()
    assert numbers.total.count == len(block) - warm.sum()
    for stage in numbers.stages:
        # A starved machine may begin nothing of a stage but what is warm-up.
        assert f"Stage {stage.name}" in run.out or not stage.numbers.total.count
    assert "Think time: 0.1 s" in run.out
