"""The records of a run and of a bench, and what follows from them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ssbench.errors import ClusterError, ExitCode, SsbenchError, UsageError, WorkerError
from ssbench.fleet.wire import LAG_BUCKETS
from ssbench.fleet.worker_state import WorkerState
from ssbench.run.limits import generator_limits
from ssbench.run.options import BenchOptions, RunOptions, recorded
from ssbench.run.outcome import RunOutcome
from ssbench.swift.credentials import Credentials


def test_the_stat_file_keeps_what_changes_results_and_nothing_secret() -> None:
    secret = "very-secret"
    bench = BenchOptions(
        workers=2, credentials=Credentials(version="1.0", key=secret, token=secret), key_file=Path(secret)
    )
    kept = recorded(bench, RunOptions(seed=1), "mark")
    assert secret not in repr(kept)
    assert kept["sealed"] is True
    assert kept["trans_id_extra"] == "mark"
    elsewhere = {
        *("seed", "expect_workers", "worker_timeout", "stats_file", "force", "profile"),
        "mark_transactions",  # is kept as trans_id_extra
        "find_warmup",  # is kept as warmup
    }
    assert {field.name for field in dataclasses.fields(RunOptions)} - elsewhere <= set(kept)


@pytest.mark.parametrize(
    "wrong", [{"batch_size": 0}, {"seed": -1}, {"connect_timeout": 0.0}, {"give_up_after": float("nan")}]
)
def test_numbers_out_of_range_are_refused_by_name(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=f"^{next(iter(wrong))}: expected "):
        RunOptions(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "interrupted", "errors", "trouble", "code", "why"),
    [
        (None, False, 0, False, ExitCode.OK, None),
        (None, False, 1, False, ExitCode.FAILED, None),
        (None, False, 0, True, ExitCode.FAILED, None),
        (None, True, 1, True, ExitCode.INTERRUPTED, "interrupted"),
        (ClusterError("gone"), True, 1, True, ExitCode.CLUSTER, "gone"),
        (WorkerError("lost"), False, 0, False, ExitCode.WORKERS, "lost"),
    ],
)
def test_the_exit_code_and_why_a_run_ended(
    error: SsbenchError | None, interrupted: bool, errors: int, trouble: bool, code: ExitCode, why: str | None
) -> None:
    done = RunOutcome(run_id=1, seed=1, error=error, interrupted=interrupted, errors=errors, trouble=trouble)
    assert done.exit_code is code
    assert done.ended_early == why


def worker(cpu: float, late: int) -> WorkerState:
    """A worker that used so much of its core in ten seconds, and was late with so many of 1000 ticks."""
    made = WorkerState(7, 1, "host", 1, "1", 1, 0.0)
    made.load.observe(0.0, 0.0, [0] * LAG_BUCKETS)
    made.load.observe(10.0, 10 * cpu, [1000 - late, 0, 0, late, *[0] * (LAG_BUCKETS - 4)])
    return made


def test_a_worker_is_the_limit_when_it_is_busy_and_adds_to_latencies_when_it_is_late() -> None:
    assert generator_limits([worker(0.9, 10), WorkerState(8, 2, "host", 2, "1", 1, 0.0)]) == []
    assert [text.split(":")[0] for text in generator_limits([worker(0.2, 20)])] == [
        "The load generator added to latencies"
    ]
    assert generator_limits([worker(0.95, 20)]) == [
        "The load generator was the limit: worker 7 on host used 95% of its core",
        "The load generator added to latencies: the event loop of worker 7 on host was over 1 ms late in 2.0%"
        " of the cases, up to 8 ms in 99%",
    ]
