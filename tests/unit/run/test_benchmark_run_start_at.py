"""Several masters begin at one moment: how one waits for it, and what it says of clocks."""

from __future__ import annotations

import logging
import threading
import time
from types import SimpleNamespace
from typing import cast

import pytest
from golden_words import GoldenWords

from ssbench.run import benchmark_run as run_run
from ssbench.run.loop import MasterLoop
from ssbench.store.contract import ClockBounds

#: What is said of what --part says of the clock.
CLOCK_OF_HOST = "The clock of this host"


class Run:
    """What is used of the loop of a run. Its clock, which is no time of day, moves as results are awaited."""

    def __init__(self, step: float = 0.0) -> None:
        self.interrupted = threading.Event()
        self.now = 1000.0
        self.ticks: list[float] = []
        self.warnings: list[str] = []
        self.interrupt_at = float("inf")
        self._step = step
        self.fleet = SimpleNamespace(receive=self._receive)
        self.news = SimpleNamespace(warn=self.warnings.append)

    def clock(self) -> float:
        return self.now

    def tick(self, now: float) -> None:
        self.ticks.append(now)

    def _receive(self, seconds: float) -> None:
        assert 0 < seconds <= 0.1, "it looks after workers meanwhile"
        self.now += seconds + self._step
        if self.now >= self.interrupt_at:
            self.interrupted.set()


def loop(run: Run) -> MasterLoop:
    return cast(MasterLoop, run)


@pytest.fixture
def noon(monkeypatch: pytest.MonkeyPatch) -> float:
    """The time of day, which stands still."""
    moment = 1.8e9
    monkeypatch.setattr(run_run, "time", SimpleNamespace(time=lambda: moment))
    return moment


def test_it_waits_until_the_moment_and_no_longer(noon: float) -> None:
    run = Run()
    run_run.wait_for_moment(loop(run), noon + 7.25)
    assert run.now == pytest.approx(1007.25)
    assert len(run.ticks) == 73
    assert not run.warnings


def test_a_step_of_the_time_of_day_does_not_stretch_it(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run()
    begun = time.time()
    # Whenever it looks again it is an hour earlier.
    times = iter([begun, begun, *(begun - 3600 * number for number in range(1, 1000))])
    monkeypatch.setattr(run_run, "time", SimpleNamespace(time=lambda: next(times)))
    run_run.wait_for_moment(loop(run), begun + 2)
    assert run.now == pytest.approx(1002)


def test_an_interruption_ends_it(noon: float) -> None:
    run = Run()
    run.interrupt_at = 1003.0
    run_run.wait_for_moment(loop(run), noon + 3600)
    assert run.now == pytest.approx(1003, abs=0.2)


def test_now_and_then_it_says_what_it_waits_for(
    noon: float, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    caplog.set_level(logging.INFO)
    run_run.wait_for_moment(loop(Run()), noon + 25)
    said = [each.partition(", at ")[0] for each in caplog.messages]
    assert len(said) == 3
    golden_words(said[0])


@pytest.mark.parametrize(("ago", "warned"), [(0.0, False), (0.09, False), (0.2, True), (90.0, True)])
def test_a_moment_that_is_over_is_warned_of(noon: float, ago: float, warned: bool) -> None:
    run = Run()
    run_run.wait_for_moment(loop(run), noon - ago)
    assert run.now == 1000.0
    assert [each.partition(" after ")[0] for each in run.warnings] == (
        [f"The benchmark begins {'0.2' if ago == 0.2 else '90'} s"] if warned else []
    )


@pytest.mark.parametrize(
    ("found", "warning"),
    [
        (None, f"{CLOCK_OF_HOST} was not checked"),
        ((0.6, 1.5), f"{CLOCK_OF_HOST} is at least 0.6 s behind the store's"),
        ((-7.5, -7.0), f"{CLOCK_OF_HOST} is at least 7 s ahead of the store's"),
        ((0.4, 1.5), None),
        ((-1.5, -0.4), None),
        ((-1.0, 1.0), None),
    ],
)
def test_clocks_that_differ_beyond_doubt_are_warned_of(
    found: ClockBounds | None, warning: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run = Run()
    run_run.warn_of_store_clock(found, loop(run))
    if warning is None:
        assert not run.warnings
        assert caplog.messages[0].startswith(f"{CLOCK_OF_HOST} is from ")
    else:
        assert [each[: len(warning)] for each in run.warnings] == [warning]
        assert not caplog.messages
