"""What is said while a run waits for its workers."""

from __future__ import annotations

import pytest

from ssbench.run.bench import Bench
from ssbench.run.options import BenchOptions, RunOptions


@pytest.mark.parametrize(
    ("workers", "advice"),
    [
        (1, "The local worker is starting; its log says what keeps it"),
        (2, "The 2 local workers are starting; their logs say what keeps them"),
    ],
)
def test_local_workers_are_waited_for_in_their_number(workers: int, advice: str) -> None:
    assert Bench(BenchOptions(workers=workers))._advice(RunOptions()) == advice
