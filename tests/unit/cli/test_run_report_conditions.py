"""Conditions at the end of a run: exit codes, and what is logged."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from judged_runs import judgment

from ssbench.base.errors import ClusterError, ExitCode, Undecided
from ssbench.cli import run_report
from ssbench.run.benchmark_run import RunOutcome
from ssbench.run.verdict_messages import log_thresholds
from ssbench.statistics.run_verdict import (
    Kind,
    Load,
    Reason,
    RunVerdict,
    find_condition_reasons,
    find_failure_reasons,
)


@pytest.mark.parametrize(
    ("outcome", "judgments", "code"),
    [
        ({}, [], ExitCode.OK),
        ({"errors": 1}, [], ExitCode.FAILED),
        ({}, [judgment("rate < 5", 4)], ExitCode.THRESHOLD),
        ({"errors": 1}, [judgment("rate < 5", 6)], ExitCode.FAILED),
        ({"errors": 1}, [judgment("errors > 1%", 0.001)], ExitCode.OK),
        ({"errors": 1}, [judgment("read.errors > 1%", 0.001)], ExitCode.FAILED),
        ({"errors": 1, "trouble": True}, [judgment("errors > 1%", 0.001)], ExitCode.FAILED),
        ({"interrupted": True}, [judgment("rate < 5", 4)], ExitCode.INTERRUPTED),
        ({"error": ClusterError("gone")}, [judgment("rate < 5", 4)], ExitCode.CLUSTER),
    ],
)
def test_exit_codes(outcome, judgments, code):
    done = RunOutcome(run_id=1, seed=1, **outcome)
    total = SimpleNamespace(count=9, failed=done.errors)
    reasons = [
        *find_condition_reasons(judgments, Undecided.REPORT),
        *find_failure_reasons(
            SimpleNamespace(
                total=total, errors={}, start=1.0, not_sendable=(), current=False, warmed_up_failed=0
            ),
            judgments,
        ),
    ]
    found = RunVerdict(tuple(reasons), tuple(judgments), Load(), Load())
    assert run_report.choose_final_code(found, done) == code
    # A run whose figures are not judged.
    assert run_report.choose_final_code(None, done) == done.exit_code


def test_what_no_report_shows_is_logged(caplog):
    with caplog.at_level(logging.INFO):
        judgments = (judgment("rate < 5", 6), judgment("rate < 5", 4))
        reasons = (Reason(Kind.DELIVERY, "9 never began", ExitCode.NOT_DELIVERED),)
        log_thresholds(RunVerdict(reasons, judgments, Load(), Load()), in_report=False)
    assert caplog.messages == [
        "fail-if rate < 5: ok (6/s)",
        "fail-if rate < 5: FAILED (4/s)",
        "9 never began",
    ]
    assert [each.levelname for each in caplog.records] == ["INFO", "ERROR", "ERROR"]
