"""What the servers of a local Swift use while a run measures: samples with the operations that ended."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ssbench.base import host
from ssbench.run.benchmark_run import BenchmarkRun
from ssbench.run.cpu_sampler import ServerCpuSampler


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> dict[int, float]:
    """CPU seconds by process, as the kernel has them."""
    seconds = {1: 5.0, 2: 7.0, 3: 1.0}
    monkeypatch.setattr(
        host,
        "read_cpu_times",
        lambda pids: [(pid, seconds[pid]) for pid in pids if pid in seconds],
    )
    return seconds


def results(completed: float, *operations: int, group: tuple[int, ...] = ()) -> Any:
    """Return a block of results that ended at one moment, by the codes of their operations."""
    moments = np.full(len(operations), completed)
    return SimpleNamespace(completed=moments, operation=np.array(operations), group=np.array(group))


def test_a_sample_has_what_was_used_and_what_ended_since_the_last_one(used: dict[int, float]) -> None:
    sampler = ServerCpuSampler({1: "proxy", 2: "object", 3: "object"}, epoch=1e9)
    ten = [0] * 6 + [2] * 4
    sampler.add(results(1e9 + 99.5, *ten))  # before the first look
    sampler.tick(100.0)
    sampler.add(results(1e9 + 99.9, *ten))
    sampler.add(results(1e9 + 100.1, *ten))
    used.update({1: 5.5, 2: 7.25, 3: 1.25})
    sampler.tick(100.9)
    sampler.tick(101.0)
    sampler.add(results(1e9 + 100.8, *ten))  # it comes late
    sampler.add(results(1e9 + 101.1, *ten))
    used[1] = 5.75
    sampler.stop(101.5)
    sampler.tick(103.0)  # it is over
    first, second = sampler.samples()
    assert (first.until, first.seconds, first.operations) == (1e9 + 101.0, 1.0, 20)
    assert first.cpu == {"proxy": 0.5, "object": 0.5}
    assert first.by_operation == {0: 12, 2: 8}
    assert (second.until, second.seconds, second.operations) == (1e9 + 101.5, 0.5, 10)
    assert second.cpu == {"proxy": 0.25, "object": 0.0}


def test_a_server_that_is_started_again_is_counted_from_then_on(used: dict[int, float]) -> None:
    sampler = ServerCpuSampler({1: "proxy", 2: "object"})
    sampler.tick(0.0)
    del used[2]
    used[1] = 6.0
    sampler.tick(1.0)
    used[2] = 300.0
    sampler.tick(2.0)
    used[2] = 301.0
    sampler.tick(3.0)
    assert [each.cpu["object"] for each in sampler.samples()] == [0.0, 0.0, 1.0]
    assert [each.cpu["proxy"] for each in sampler.samples()] == [1.0, 0.0, 0.0]


def test_a_long_run_has_longer_samples(used: dict[int, float]) -> None:
    sampler = ServerCpuSampler({1: "proxy"})
    for second in range(2001):
        sampler.tick(float(second))
        sampler.add(results(second + 0.5, 1, 1, 3))
        used[1] += 0.25
    found = sampler.samples()
    assert len(found) <= 240
    assert found[0].seconds == 16.0
    assert sum(each.operations for each in found) == pytest.approx(6000, abs=60)
    assert all(each.cpu["proxy"] == each.seconds / 4 for each in found)
    assert found[1].by_operation == {1: 32, 3: 16}


def test_those_of_a_side_count_its_own_results(used: dict[int, float]) -> None:
    sides = [ServerCpuSampler({1: "proxy"}, 0), ServerCpuSampler({2: "proxy"}, 1)]
    for each in sides:
        each.tick(0.0)
        block = results(0.5, 0, 1, 2, 1, 2, group=(0, 1, 1, 0, 1))
        each.add(block)
    used.update({1: 5.5, 2: 7.75})
    for each in sides:
        each.tick(1.0)
    assert [[(s.side, s.operations, s.cpu["proxy"]) for s in each.samples()] for each in sides] == [
        [(0, 2, 0.5)],
        [(1, 3, 0.75)],
    ]
    assert [each.samples()[0].by_operation for each in sides] == [{0: 1, 1: 1}, {1: 1, 2: 2}]


def test_the_last_samples_of_both_sides_are_of_one_time(used: dict[int, float]) -> None:
    sides = [ServerCpuSampler({1: "proxy"}, 0), ServerCpuSampler({2: "proxy"}, 1)]
    for each in sides:
        each.tick(0.0)
        block = results(0.2, 0, 0, group=(0, 1))
        each.add(block)
    later = count(0.5, 0.25)
    run: Any = SimpleNamespace(
        _benchmarks=SimpleNamespace(end=lambda: None, early_end=None),
        _loop=SimpleNamespace(clock=lambda: next(later)),
        _server_cpu=sides,
        _error=None,
    )
    BenchmarkRun._end_benchmarks(run)
    assert [[sample.until for sample in each.samples()] for each in sides] == [[0.5], [0.5]]


def test_without_a_local_swift_there_is_nothing(used: dict[int, float]) -> None:
    sampler = ServerCpuSampler({})
    sampler.tick(0.0)
    sampler.tick(2.0)
    sampler.stop(3.0)
    assert sampler.samples() == ()
