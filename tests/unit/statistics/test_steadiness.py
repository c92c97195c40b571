"""Steadiness of a run: its warm-up, and whether its rate changed from one level to another."""

from __future__ import annotations

import re
from types import SimpleNamespace

import noise
import numpy as np
import pytest
from golden_words import GoldenWords
from simulated_steps import rates

from ssbench.results.block import ResultBlock
from ssbench.results.run_description import RunDescription
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics.by_second import LatencyTable
from ssbench.statistics.steadiness import Steadiness, _matters, find_warm_up_end, judge_steadiness
from ssbench.statistics.summary import summarize

SCENARIO = Scenario("s", (SizeClass("small", 1, 1, 1, (0, 1, 0, 0)),), 4, run_seconds=120)


def block(counts, start=1e9):
    """Reads of 10 ms, so many in each second."""
    completed = np.concatenate(
        [start + second + (np.arange(count) + 0.5) / count for second, count in enumerate(counts)]
    )
    latency = np.full(len(completed), 0.01)
    ones = np.ones(len(completed), int)
    columns = {"operation": ones, "completed": completed, "first_byte": latency, "last_byte": latency}
    return ResultBlock(len(completed), columns)


class Results:
    size_classes = ("small",)
    summary = None
    warnings = ()
    current = True

    def __init__(self, counts, options):
        self.run = RunDescription(SCENARIO, options=options)
        self._counts = counts

    def blocks(self):
        yield block(self._counts[:50])
        yield block(self._counts[50:], 1e9 + 50)

    def again(self):
        return SimpleNamespace(blocks=self.blocks, close=lambda: None)


def warming(seconds=120):
    level = 200 * (1 - 0.5 * np.exp(-np.arange(seconds) / 8))
    return (level + noise.correlated(np.random.default_rng(3), 1, seconds, 0.5, 2)[0]).astype(int)


def test_the_warm_up_is_left_out_where_that_was_asked_for():
    counts = warming()
    whole = summarize(Results(counts, {}))
    cut = summarize(Results(counts, {"warmup": "auto"}))
    assert whole.warmed_up == 0
    seconds = cut.start - whole.start
    assert 15 <= seconds <= 50
    assert seconds == pytest.approx(whole.course.steadiness.warm_up, abs=0.02)
    assert cut.warmed_up == pytest.approx(sum(counts[: round(seconds)]), abs=3)
    assert cut.total.requests_per_second == pytest.approx(200, rel=0.02)
    assert not cut.warnings


def test_a_run_without_one_says_so(golden_words: GoldenWords):
    steady = np.full(90, 100)
    found = summarize(Results(steady, {"warmup": "auto"}))
    assert found.warmed_up == 0
    golden_words(found.warnings[0])


def test_nothing_is_found_in_nothing():
    assert find_warm_up_end([]) is None
    assert find_warm_up_end([ResultBlock(0, {"completed": np.empty(0)})]) is None


def test_a_warm_up_that_only_latencies_show_is_found():
    random = np.random.default_rng(4)
    counts = np.round(random.normal(100, 6, 120)).astype(int)
    counts[:10] -= 4
    results = block(counts)
    assert find_warm_up_end([results]) is None  # by the rate alone it would change nothing
    slow = np.where(results.completed < 1e9 + 10, 0.08, 0.01) * random.uniform(0.9, 1.1, len(results))
    columns = {"operation": results.operation, "completed": results.completed}
    found = find_warm_up_end([ResultBlock(len(results), {**columns, "first_byte": slow, "last_byte": slow})])
    assert found == pytest.approx(1e9 + 10, abs=0.1)


def test_where_too_little_is_left_nothing_can_be_said_to_matter() -> None:
    """Of three seconds a percentile has no interval."""
    latencies = LatencyTable.of(1e9 + np.arange(300) / 10, np.linspace(0.01, 0.1, 300))
    assert latencies.since(1e9 + 27).ranks(0.5) is None
    assert not _matters(np.full(30, 10.0), 27, latencies, int(1e9) + 27)


def judged(series: np.ndarray) -> Steadiness:
    return judge_steadiness(series, 0.0, LatencyTable())


@pytest.mark.long
@pytest.mark.parametrize("seconds", [25, 32, 60, 120])
@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
def test_steady_runs_are_called_steady(seconds: int, phi: float) -> None:
    """In 240 runs, 2 of 60 are 8."""
    assert sum(not judged(each).steady for each in rates(2, 240, seconds, phi=phi)) <= 8


def test_a_step_is_said_with_its_moment_and_both_rates(golden_words: GoldenWords) -> None:
    (series,) = rates(3, 1, 60, change=-0.3, spread=0.01)
    warning = judged(series).warning() or ""
    golden_words(warning)
    (series,) = rates(3, 1, 60, change=1.0, at=0.2, spread=0.01)
    assert "--warmup 1" in (judged(series).warning() or "")


def test_a_ramp_is_told_as_a_ramp() -> None:
    (noise,) = rates(4, 1, 60, spread=0.02)
    found = judged(noise * np.linspace(1, 1.6, 60))
    assert found.step is None or found.step.gradual
    assert "rose by" in (found.warning() or "")
    assert "a minute" in (found.warning() or "")


def test_a_start_that_fades_is_told_with_what_to_leave_out() -> None:
    (noise,) = rates(5, 1, 120, spread=0.02)
    found = judged(noise * (1 - 0.5 * np.exp(-np.arange(120) / 15)))
    assert "--warmup" in (found.warning() or "")
    assert found.step is not None
    assert 5 <= found.step.at <= 30


def test_what_fell_for_good_is_told_and_what_rose_or_recovered_is_not() -> None:
    (noise,) = rates(6, 1, 60, spread=0.01)
    falling = [*judged(noise * np.linspace(1.5, 1, 60)).describe_decline()]
    assert len(falling) == 1
    assert re.match(r"rate fell (by \d|from \d)", falling[0])
    (step,) = rates(3, 1, 60, change=-0.3, spread=0.01)
    assert next(judged(step).describe_decline()).startswith("rate fell from ")
    for other in (noise, noise * np.linspace(1, 1.5, 60), rates(3, 1, 60, change=0.3, spread=0.01)[0]):
        assert not [*judged(other).describe_decline()]
    passing = noise.copy()
    passing[20:35] *= 0.6
    assert not [*judged(passing).describe_decline()]


@pytest.mark.parametrize(("end", "count"), [(3.0, 1), (1.0, 0), (0.3, 0)])
def test_latencies_that_rise_all_along_are_told(end: float, count: int) -> None:
    random = np.random.default_rng(8)
    counts = np.full(60, 100)
    completed = block(counts).completed
    slow = 0.01 * np.linspace(1, end, len(completed)) * random.uniform(0.95, 1.05, len(completed))
    found = judge_steadiness(random.normal(100, 2, 60), 1e9, LatencyTable.of(completed, slow))
    said = [*found.describe_decline()]
    assert len(said) == count
    assert all(each.startswith("median latency rose evenly from 1") for each in said)
