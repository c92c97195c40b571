"""Jobs that wait until they are due."""

from __future__ import annotations

import math
import os
import sys
import time

import pytest
from gevent.event import Event

from ssbench.worker import engine
from ssbench.worker.engine import GreenletAlarm


class Rung:
    """An alarm, and when it rang."""

    def __init__(self) -> None:
        self.alarm = GreenletAlarm(self._ring)
        self._rang = Event()
        self._when = math.nan

    def _ring(self) -> None:
        self._when = time.monotonic()
        self._rang.set()

    def at(self, moment: float) -> float:
        """Return how late it rings, in seconds."""
        self._rang.clear()
        self.alarm.set(moment)
        assert self._rang.wait(30)
        return self._when - moment


def test_an_alarm_never_rings_before_its_moment() -> None:
    rung = Rung()
    try:
        late = [rung.at(time.monotonic() + 0.002) for _ in range(100)]
    finally:
        rung.alarm.close()
    assert min(late) >= 0


@pytest.mark.skipif(sys.platform != "linux", reason="there is no timerfd")
def test_the_timer_is_set_earlier_by_what_waking_up_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_STEP_SECONDS", 1e-3)
    monkeypatch.setattr(engine, "_MAX_EARLY_SECONDS", 10e-3)
    rung = Rung()
    try:
        assert rung.at(time.monotonic() + 0.02) > 0
        assert rung.at(time.monotonic() + 0.02) >= 0
        # The timer that was set for 1 ms before was waited out, unless waking up took longer than that.
        assert rung.alarm._early in (pytest.approx(2e-3 / 3), pytest.approx(2e-3))
    finally:
        rung.alarm.close()


def test_a_moment_that_has_passed_rings_at_once_and_tells_nothing() -> None:
    rung = Rung()
    try:
        assert rung.at(time.monotonic() - 1) >= 1
        assert rung.alarm._early == 0
    finally:
        rung.alarm.close()


@pytest.mark.skipif(sys.platform != "linux", reason="there is no timerfd")
def test_an_alarm_that_is_set_anew_rings_once() -> None:
    rung = Rung()
    try:
        rung.alarm.set(time.monotonic() + 0.001)
        time.sleep(0.005)  # it has rung, and the loop did not come round to it
        assert rung.at(time.monotonic() + 0.02) >= 0
        with pytest.raises(BlockingIOError):
            os.read(rung.alarm._descriptor, 8)
        # What was set stays set where the loop comes round to a ring of before.
        moment = time.monotonic() + 1000
        rung.alarm.set(moment)
        rung.alarm._ring()
        assert rung.alarm._at == moment
        assert rung.at(time.monotonic() + 0.02) >= 0
    finally:
        rung.alarm.close()
