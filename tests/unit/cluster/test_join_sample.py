"""The random sample of a run's results that is joined with logs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from counted import Memory, row
from result_rows import block

from ssbench.cluster.join import LogJoin, ResultSample
from ssbench.cluster.joined_run import MAX_SLOWEST_OPERATIONS as SLOWEST
from ssbench.cluster.joined_run import TakenResults, find_slowest_operations
from ssbench.logs.log_files import LogFile

MOST, RESULTS, BLOCK = 1000, 30_000, 700
ID = "tx{:021x}-006b021d00"
ERROR_LINE = "h proxy-server: ERROR Insufficient Storage 10.0.0.2:6200/d1 (txn: {})\n"


def sampled(latency: np.ndarray, most: int | None) -> list[np.ndarray]:
    sample = ResultSample(most)
    for begin in range(0, len(latency), BLOCK):
        part = latency[begin : begin + BLOCK]
        sample.add(part, [np.arange(begin, begin + len(part))])
    return sample.columns()


def test_all_results_are_taken_where_there_are_few_or_all_are_asked_for() -> None:
    latency = np.random.default_rng(1).random(MOST)
    for most in (MOST, None):
        rows, found, others = sampled(latency, most)
        assert rows.tolist() == others.tolist() == list(range(MOST))
        assert found.tolist() == latency.tolist()


def test_it_begins_where_there_are_more_than_asked_for_and_the_slowest() -> None:
    for count, whole in ((MOST + SLOWEST, True), (MOST + SLOWEST + 1, False)):
        rows, _, _ = sampled(np.random.default_rng(1).random(count), MOST)
        assert (len(rows) == count) == whole


@pytest.mark.parametrize("same", [False, True], ids=["different", "equal latencies"])
def test_a_sample_is_of_the_whole_run_and_no_larger_than_asked(same: bool) -> None:
    latency = np.full(RESULTS, 0.01) if same else np.random.default_rng(2).random(RESULTS)
    latency[::10] = np.nan
    rows, found, others = sampled(latency, MOST)
    assert MOST / 2 - 100 < len(rows) <= MOST + SLOWEST
    assert rows.tolist() == others.tolist()
    np.testing.assert_array_equal(found, latency[rows])
    # 500 to 1,000 rows over ten parts of the run: each has its share within five standard deviations.
    parts = np.bincount(rows * 10 // RESULTS, minlength=10)
    assert abs(parts - len(rows) / 10).max() < 5 * np.sqrt(len(rows) / 10)
    assert abs(np.isnan(found).mean() - 0.1) < 0.06


def test_the_slowest_results_are_always_in_it() -> None:
    latency = np.random.default_rng(3).random(RESULTS)
    rows, _, _ = sampled(latency, 10)
    assert set(np.argsort(-latency)[:SLOWEST]) <= set(rows.tolist())


def test_lines_and_errors_of_results_outside_the_sample_are_counted(tmp_path: Path) -> None:
    count = 4000
    trans_ids = [ID.format(place) for place in range(count)]
    results = [row(last=0.001 * (place * 7919 % count + 1)) for place in range(count)]
    parts = (slice(begin, begin + 1000) for begin in range(0, count, 1000))
    blocks = (block(results[part], trans_ids[part]) for part in parts)
    join = LogJoin(Memory(*blocks), most=100)
    path = tmp_path / "proxy.log"
    path.write_text("".join(ERROR_LINE.format(each) for each in [*trans_ids, ID.format(count)]))
    join.read([LogFile(path, "node")])
    joined = join.joined()
    assert len(joined.operations.code) <= 100 + SLOWEST
    assert joined.taken.results == join.identified == count
    # Those that took longest are in it, and their ids are known.
    shown = [joined.trans_ids[place] for place in find_slowest_operations(joined.operations.latency).tolist()]
    by_latency = sorted(range(count), key=lambda place: -(place * 7919 % count))
    assert shown == [trans_ids[place] for place in by_latency[:SLOWEST]]
    assert joined.files[0].of_run == joined.errors.total() == count


@pytest.mark.parametrize(
    "files", [((5, 30), (10, 20)), ((10, 20), (5, 30)), ((5, 20), (10, 30)), ((10, 30), (5, 20))]
)
def test_the_first_and_the_last_result_with_an_error_are_those_of_all_files(
    tmp_path: Path, files: tuple[tuple[int, int], ...]
) -> None:
    trans_ids = [ID.format(place) for place in range(40)]
    join = LogJoin(Memory(block([row(last=0.001) for _ in trans_ids], trans_ids)))
    logs = []
    for number, places in enumerate(files):
        path = tmp_path / f"{number}.log"
        path.write_text("".join(ERROR_LINE.format(trans_ids[place]) for place in places))
        logs.append(LogFile(path, f"node {number}"))
    join.read(logs)
    joined = join.joined()
    ((key, places),) = joined.error_places.items()
    assert (places, joined.errors[key]) == ((5, 30), 4)


def test_a_run_without_results_has_nothing_to_join() -> None:
    joined = LogJoin(Memory()).joined()
    assert (joined.taken, len(joined.operations.code)) == (TakenResults(0, 0), 0)


def test_the_limit_is_the_latency_above_which_a_result_is_among_the_slowest() -> None:
    sample = ResultSample(10)
    sample.add(np.arange(1.0, SLOWEST + 1), [])
    assert sample.limit == -1.0  # all of them are
    sample.add(np.array([np.nan, 0.5]), [])
    assert sample.limit == 0.5
    random = np.random.default_rng(1)
    for count in (1, 7, 100):
        sample.add(random.permutation(np.arange(1000.0, 1000.0 + count)), [])
    of_all = np.sort(
        [*range(1, SLOWEST + 1), 0.5, *(1000.0 + at for count in (1, 7, 100) for at in range(count))]
    )
    assert sample.limit == of_all[-SLOWEST - 1]
