"""What is said while a run waits for its workers."""

from __future__ import annotations

import pytest
from golden_words import GoldenWords

from ssbench.base.errors import UsageError
from ssbench.run.bench import Bench
from ssbench.run.bench_options import BenchOptions, RunOptions


@pytest.mark.parametrize(
    "workers",
    [
        1,
        2,
    ],
)
def test_local_workers_are_waited_for(workers: int, golden_words: GoldenWords) -> None:
    golden_words(Bench(BenchOptions(workers=workers))._advice(RunOptions()))


def test_more_local_workers_than_a_machine_has_room_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as the number of users: they would take all its memory."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    BenchOptions(workers=128)
    message = (
        "^workers: expected 128 or fewer on 2 cores, each of which one worker keeps busy, not 10,000; -u "
    )
    with pytest.raises(UsageError, match=message):
        BenchOptions(workers=10_000)
