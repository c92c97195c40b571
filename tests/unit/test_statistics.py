"""The numbers of a run, against the rules that say what they mean."""

from __future__ import annotations

import math
import statistics as stdlib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from result_rows import block

from ssbench.results import LOST, NO_WORKER, NOT_MEASURED, UNKNOWN, Failure, ResultRow
from ssbench.run_results import RunDescription, RunResultsWriter, RunSummary, open_results
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics import Latencies, RunStatistics, latencies, summarize

WEIGHTS = (1.0, 1.0, 1.0, 1.0)
SCENARIO = Scenario(
    "s",
    (SizeClass("small", 1, 1, 1, WEIGHTS), SizeClass("big", 9, 9, 1, WEIGHTS)),
    user_count=2,
    operation_count=1,
)


def row(
    operation: int = 1,
    size_class: int = 0,
    last: float = 0.1,
    completed: float = 100.0,
    *,
    first: float = NOT_MEASURED,
    worker: int = 1,
    retries: int = 0,
) -> ResultRow:
    return (operation, size_class, worker, 0, 1, 1, first, last, completed, UNKNOWN, retries)


def count(
    tmp_path: Path,
    rows: Sequence[ResultRow],
    failures: dict[int, Failure] | None = None,
    summary: RunSummary | None = None,
) -> RunStatistics:
    path = tmp_path / "run.stat.gz"
    writer = RunResultsWriter(path, RunDescription(SCENARIO))
    if rows:
        writer.add(block(rows, [f"tx{i}" for i in range(len(rows))], failures))
    writer.end(summary or RunSummary(ended=0.0))
    return summarize(open_results(path))


def percentile_by_the_rule(values: Sequence[float], rank: float) -> float:
    ordered = sorted(values)
    place = len(ordered) * Fraction(str(rank)) / 100
    if place.denominator == 1 and place < len(ordered):
        return (ordered[int(place) - 1] + ordered[int(place)]) / 2
    return ordered[math.ceil(place) - 1]


@pytest.mark.parametrize(
    ("count_", "rank", "expected"),
    [
        (10, 95, 10),
        (10, 50, 5.5),
        (10, 90, 9.5),
        (10, 100, 10),
        (10, 1, 1),
        (1, 50, 1),
        (1000, 99.9, 999.5),
        (7, 50, 4),
    ],
)
def test_percentiles_of_whole_numbers(tmp_path: Path, count_: int, rank: float, expected: float) -> None:
    total = count(tmp_path, [row(last=float(i), completed=1e6) for i in range(1, count_ + 1)]).total
    assert total.lines[0].last_byte.percentile(rank) == expected


NANOSECONDS = st.integers(0, 2**33) | st.integers(0, 40)


@given(
    drawn=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), NANOSECONDS), min_size=1, max_size=60),
    rank=st.sampled_from([1, 10, 25, 50, 75, 90, 95, 99, 99.9, 100]) | st.floats(1, 100),
    part_size=st.sampled_from([1, 3, 1000]),
)
def test_figures_of_any_latencies(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[int, int, int]], rank: float, part_size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latencies, "_PART_SIZE", part_size)
        rows = [row(op, class_, ns / 1e9, 100.0 + place) for place, (op, class_, ns) in enumerate(drawn)]
        numbers = count(tmp_path_factory.getbasetemp(), rows)
    for section in numbers.sections:
        for line in section.lines:
            own = [
                (ns / 1e9, place)
                for place, (op, class_, ns) in enumerate(drawn)
                if section.operation is None or section.operation.code == op
                if line.size_class is None or line.size_class == SCENARIO.size_classes[class_].name
            ]
            values = [latency for latency, _ in own if latency]
            figures = line.last_byte
            assert figures.count == len(values)
            assert line.first_byte.count == 0
            assert figures.slowest is not None
            slowest, place = max(own, key=lambda entry: (entry[0], -entry[1]))
            assert (figures.slowest.latency, figures.slowest.trans_id) == (slowest, f"tx{place}")
            if values:
                assert (figures.minimum, figures.maximum) == (min(values), max(values))
                assert figures.percentile(rank) == percentile_by_the_rule(values, rank)
                assert figures.mean == pytest.approx(stdlib.fmean(values), rel=1e-12)
                assert figures.deviation == pytest.approx(stdlib.pstdev(values), rel=1e-6, abs=1e-12)
            else:
                assert math.isnan(figures.mean)
                assert math.isnan(figures.percentile(rank))


def test_many_latencies_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latencies, "_PART_SIZE", 5000)
    values = np.rint(np.random.default_rng(1).lognormal(-5, 1, 100_000) * 1e9) / 1e9
    figures = count(tmp_path, [row(last=value) for value in values.tolist()]).total.lines[0].last_byte
    for rank in (1, 50, 95, 99.99, 100):
        assert figures.percentile(rank) == percentile_by_the_rule(values.tolist(), rank)
    assert figures.mean == pytest.approx(values.mean(), rel=1e-12)
    assert figures.deviation == pytest.approx(values.std(), rel=1e-12)


def test_requests_a_second_end_with_the_last_completion_failures_included(tmp_path: Path) -> None:
    rows = [
        row(last=1.0, completed=101.0),
        row(last=1.0, completed=103.0),
        row(last=NOT_MEASURED, completed=110.0),
    ]
    numbers = count(tmp_path, rows, {2: Failure("HTTP 503", "", {})})
    assert numbers.total.count == 2
    assert numbers.total.errors == 1
    assert numbers.total.requests_per_second == pytest.approx(2 / 10)
    assert numbers.duration == pytest.approx(10)


def test_no_time_passed(tmp_path: Path) -> None:
    total = count(tmp_path, [row(last=0.0)]).total
    assert total.requests_per_second == math.inf
    assert total.lines[0].last_byte.count == 0


def test_nothing_at_all(tmp_path: Path) -> None:
    numbers = count(tmp_path, [])
    assert (numbers.start, numbers.end, numbers.duration, numbers.worker_count) == (None, None, 0, 0)
    assert (numbers.total.count, numbers.total.requests_per_second, numbers.total.retry_rate) == (0, 0, 0)
    assert isinstance(numbers.total.lines[0].last_byte, Latencies)
    assert numbers.requests_by_second == ()


def test_failures_only(tmp_path: Path) -> None:
    rows = [row(last=NOT_MEASURED, completed=100.0 + i) for i in range(2)]
    numbers = count(tmp_path, rows, dict.fromkeys(range(2), Failure("timeout", "", {})))
    assert (numbers.start, numbers.end) == (100.0, 101.0)
    assert (numbers.total.count, numbers.total.errors, numbers.total.requests_per_second) == (0, 2, 0)
    assert numbers.workers.maximum == 0


def test_a_failure_enters_no_latency_but_its_retries_count(tmp_path: Path) -> None:
    rows = [row(last=1.0), row(last=5.0, retries=3), row(last=2.0, retries=1)]
    total = count(tmp_path, rows, {1: Failure("HTTP 500", "", {})}).total
    assert total.lines[0].last_byte.maximum == 2.0
    assert (total.retries, total.retry_rate) == (4, 200.0)


def test_causes_are_counted_and_lost_operations_are_no_errors(tmp_path: Path) -> None:
    rows = [row(), *(row(last=NOT_MEASURED) for _ in range(4)), row(last=NOT_MEASURED, worker=NO_WORKER)]
    failures = {
        0: Failure(None, "", {"HTTP 401": 1, "HTTP 503": 2}),
        1: Failure("HTTP 503", "", {"HTTP 503": 10}),
        2: Failure("timeout", "", {}),
        3: Failure("HTTP 503", "", {}),
        4: Failure("timeout", "", {}),
        5: Failure(LOST, "", {}),
    }
    summary = RunSummary(ended=0.0, not_sendable=((1, 1, 7), (99, 0, 1)), warnings=("careful",))
    numbers = count(tmp_path, rows, failures, summary)
    assert {name: (cause.count, cause.trans_id) for name, cause in numbers.errors.items()} == {
        "HTTP 503": (2, "tx1"),
        "timeout": (2, "tx2"),
        LOST: (1, "tx5"),
    }
    assert numbers.retries == {"HTTP 503": 12, "HTTP 401": 1}
    assert (numbers.total.count, numbers.total.errors, numbers.total.lost) == (1, 4, 1)
    assert [(op.name, class_, times) for op, class_, times in numbers.not_sendable] == [("read", "big", 7)]
    assert numbers.worker_count == 1
    assert numbers.warnings == ("careful",)


def test_successes_are_spread_over_workers(tmp_path: Path) -> None:
    rows = [row(worker=1), row(worker=1), row(worker=2**40), row(worker=3, last=NOT_MEASURED)]
    numbers = count(tmp_path, rows, {3: Failure("HTTP 500", "", {})})
    assert numbers.worker_count == 3
    spread = numbers.workers
    assert (spread.minimum, spread.maximum, spread.mean) == (0, 2, 1)
    assert spread.deviation == pytest.approx(math.sqrt(2 / 3))


def test_requests_of_each_second_of_the_clock(tmp_path: Path) -> None:
    rows = [row(completed=at) for at in (102.9, 100.999, 103.0, 101.0)]
    assert count(tmp_path, rows).requests_by_second == ((1, 1), (2, 1), (3, 1), (4, 1))
    rows = [row(completed=100.0), row(completed=103.0), row(completed=1e9)]
    by_second = count(tmp_path, rows).requests_by_second
    assert by_second == ((1, 1), (2, 0), (3, 0), (4, 1), (999_999_901, 1))
