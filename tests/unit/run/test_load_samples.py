"""How busy the load generator is over time: samples of what workers and master do, never too many of them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from ssbench.fleet.wire import LAG_BUCKETS
from ssbench.fleet.worker_state import WorkerLoad
from ssbench.run.load_samples import MAX_SAMPLES, LoadSampler, MasterLoad

IDLE = [0] * LAG_BUCKETS


def worker(*, used: bool = True) -> Any:
    made = SimpleNamespace(load=WorkerLoad(), presence=SimpleNamespace(used=used))
    made.load.observe(0.0, 0.0, IDLE)
    return made


def test_a_sample_has_the_busiest_worker_and_the_latest_loop() -> None:
    busy, late, foreign = worker(), worker(), worker(used=False)
    own = MasterLoad()
    own.begin(0.0, 0.0)
    course = LoadSampler(lambda: [busy, late, foreign], own)
    course.tick(0.0)
    busy.load.observe(1.0, 0.75, IDLE, 0.001)
    late.load.observe(1.0, 0.25, IDLE, 0.5)
    foreign.load.observe(1.0, 1.0, IDLE, 9.0)
    own.turn(0.5, 0.75)
    course.tick(0.9)
    course.tick(1.0)
    # Now each is idle, and what was before does not count again.
    for each in (busy, late):
        each.load.observe(2.0, 0.75, IDLE)
    course.tick(2.0)
    first, second = course.samples(1e9)
    assert (first.until, first.seconds) == (1e9 + 1, 1.0)
    assert (first.worker_cpu, first.worker_lag, first.master_lag) == (0.75, 0.5, 0.25)
    assert first.master_cpu is not None
    assert 0 <= first.master_cpu < math.inf
    assert (second.worker_cpu, second.worker_lag, second.master_lag) == (0.5, 0.0, 0.0)


def test_a_worker_that_is_not_heard_is_no_worker_without_load() -> None:
    course = LoadSampler(lambda: [worker()], MasterLoad())
    course.tick(0.0)
    course.tick(1.0)
    (sample,) = course.samples(0.0)
    assert (sample.worker_cpu, sample.worker_lag) == (None, None)


def test_a_long_run_has_wider_samples() -> None:
    one, own = worker(), MasterLoad()
    course = LoadSampler(lambda: [one], own)
    own.begin(0.0, 0.0)
    for second in range(4 * MAX_SAMPLES):
        one.load.observe(second + 1.0, 0.5 * second, IDLE, 0.25 if second == 99 else 0.0)
        course.tick(float(second))
    found = course.samples(0.0)
    assert MAX_SAMPLES / 2 <= len(found) <= MAX_SAMPLES
    assert found[-1].until - found[0].until + found[0].seconds == sum(each.seconds for each in found)
    assert [each.worker_cpu for each in found[1:]] == pytest.approx([0.5] * (len(found) - 1))
    assert [each.worker_lag for each in found].count(0.25) == 1
