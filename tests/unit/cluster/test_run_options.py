"""The records of a run and of a bench, and what follows from them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from golden_words import GoldenWords

from ssbench.base.errors import ClusterError, ExitCode, SsbenchError, UsageError, WorkerError
from ssbench.run.bench_options import BenchOptions, RunOptions, recorded_options
from ssbench.run.benchmark_run import RunOutcome
from ssbench.store.credentials import Credentials
from ssbench.store.request_options import RequestOptions


def test_the_stat_file_keeps_what_changes_results_and_nothing_secret() -> None:
    secret = "very-secret"
    bench = BenchOptions(
        workers=2, credentials=Credentials(version="1.0", key=secret, token=secret), key_file=Path(secret)
    )
    kept = recorded_options(bench, RunOptions(seed=1), "mark")
    assert secret not in repr(kept)
    assert kept["sealed"] is True
    assert kept["trans_id_extra"] == "mark"
    elsewhere = {
        *("seed", "expect_workers", "worker_timeout", "stats_file", "force", "profile", "requests"),
        "find_warmup",  # is kept as warmup
        "suite_place",  # is kept as suite, row and round, where there is one
        "plan_phase",  # is kept where there is one
        "plan_began",  # the same
        "swift",  # is kept as swift_settings, where a run has a local Swift
        "replayed",  # is kept with the scenario that it makes
        *("fill", "filled"),  # are kept as counters
        "until",  # is kept with how precisely each figure was known
        *("events", "allow_events"),  # what was carried out is kept with the results
    }
    assert {field.name for field in dataclasses.fields(RunOptions)} - elsewhere <= set(kept)


@pytest.mark.parametrize(
    "wrong", [{"batch_size": 0}, {"seed": -1}, {"worker_timeout": 0.0}, {"give_up_after": float("nan")}]
)
def test_numbers_out_of_range_are_refused_by_name(wrong: dict[str, float], golden_words: GoldenWords) -> None:
    with pytest.raises(UsageError, match=f"^{next(iter(wrong))}: expected "):
        RunOptions(**wrong)
    with golden_words.raises(UsageError):
        RunOptions(requests=RequestOptions(retries=-1))


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


def test_a_benchmark_of_which_nothing_ended_is_not_good() -> None:
    """As its verdict says, which is not made where no report is printed (-R)."""
    path = Path("s.stat.gz")
    assert RunOutcome(run_id=1, seed=1, path=path).exit_code is ExitCode.FAILED
    assert RunOutcome(run_id=1, seed=1, path=path, count=1).exit_code is ExitCode.OK
