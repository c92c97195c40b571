"""What a short run counts for metrics, and servers that take them: for tests of each way to deliver them."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from collector import taking
from result_rows import block, row

from ssbench.monitoring import courier
from ssbench.monitoring.courier import MetricsSender
from ssbench.monitoring.run_metrics import CountingSink, RunMonitor
from ssbench.results.block import Failure
from ssbench.results.run_description import MasterFacts, RunSummary, WorkerFacts
from ssbench.scenario.model import Scenario, SizeClass

SCENARIO = Scenario("night", (SizeClass("small", 1, 1, 1, (1, 1, 0, 0)),), user_count=4, run_seconds=9.0)
SUMMARY = RunSummary(
    ended=1234.5, workers=(WorkerFacts(3, "a", cpu_share=0.5),), master=MasterFacts(0.25, 0.125)
)


def made() -> CountingSink:
    """Return what counts a run that has not begun."""
    return CountingSink(SCENARIO, RunMonitor(lambda: (1, 1)), "new disks")


def hasten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let deliveries give up soon."""
    for name in ("_SAY_AFTER_SECONDS", "_LAST_SECONDS"):
        monkeypatch.setattr(courier, name, 0.2)


def run(counting: CountingSink) -> None:
    """Ten reads of 20 ms, and one that failed."""
    counting.tick(0.0)
    rows = [row(operation=1, size=10, last_byte=0.02, completed=1e9, status=200) for _ in range(11)]
    counting.add(block(rows, failures={10: Failure("HTTP 503", "", {})}))
    counting.end(SUMMARY)


def check_that_silence_holds_nothing_up(
    make: Callable[[CountingSink, str], MetricsSender],
    counting: CountingSink,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Deliver to a server that does not answer; call :func:`hasten` first."""
    with taking(held=True) as server:
        began = time.monotonic()
        with make(counting, server.url):
            run(counting)
            assert time.monotonic() - began < 5
        assert time.monotonic() - began < 10
    assert caplog.messages[-1].endswith(
        "(no answer in time); the last one too, so the server does not know how the run ended"
    )
