"""How late a loop is, and what becomes of results while it stands still."""

from __future__ import annotations

import time
from collections.abc import Iterator

import gevent
import pytest

from ssbench.fleet.wire import LAG_BUCKETS, LAG_UNIT, MAX_GAPS, lag_bucket, lag_limit
from ssbench.store.contract import BriefResult, JobResult, RareFields
from ssbench.worker import lag_meter
from ssbench.worker.lag_meter import LagMeter


@pytest.fixture(params=["kernel", "loop"])
def meter(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[LagMeter]:
    if request.param == "loop":
        monkeypatch.setattr(lag_meter, "_make_kernel_timer", lambda _seconds: None)
    made = LagMeter(gevent.get_hub().loop)
    made.start()
    yield made
    made.stop()


def wait_for_ticks(meter: LagMeter, count: int) -> None:
    with gevent.Timeout(60):
        while sum(meter._counts) < count:
            gevent.sleep(lag_meter.LAG_TICK_SECONDS)


def test_buckets_are_half_octaves() -> None:
    assert [lag_bucket(seconds) for seconds in (0, LAG_UNIT, 1.01 * LAG_UNIT, 2 * LAG_UNIT, 1e9)] == [
        0,
        0,
        1,
        2,
        LAG_BUCKETS - 1,
    ]
    assert all(lag_bucket(lag_limit(place) * 0.999) == place for place in range(1, LAG_BUCKETS))


def test_a_loop_that_stands_still_is_seen_and_its_results_are_marked(meter: LagMeter) -> None:
    wait_for_ticks(meter, 1)
    began = time.monotonic()
    time.sleep(0.25)
    ended = time.monotonic()
    # Before the loop has called the meter back, as where a result comes first.
    told = JobResult(4, 0.1, 0.1, began + 0.1)  # whose answer came in the middle, as the kernel knows
    held, as_it_was = meter.mark([JobResult(2, 0.2, ended - began, ended, rare=RareFields(0.125)), told])
    assert as_it_was is told
    assert isinstance(held, JobResult)
    assert held.rare is not None
    assert held.rare.connecting == 0.125
    assert 0.25 - lag_meter.LAG_TICK_SECONDS - 0.01 <= held.rare.held <= ended - began
    wait_for_ticks(meter, 3)
    _, longest, gaps = meter.take()
    assert longest >= 0.2
    assert any(end - begin >= 0.2 and begin <= began + lag_meter.LAG_TICK_SECONDS for begin, end in gaps)
    assert len({begin for begin, _ in gaps}) == len(gaps)
    (brief,) = meter.mark([BriefResult(1, 0.0, 0.0, ended)])
    assert type(brief) is BriefResult
    before = JobResult(1, 0.01, 0.01, began - 100.0)
    later = JobResult(3, None, None, gaps[-1][1] + 9.0, cause="HTTP 503", spent=1.0)
    assert meter.mark([before, later]) == [before, later]


def test_a_gap_is_told_before_the_loop_calls_for_the_tick_that_is_late(meter: LagMeter) -> None:
    wait_for_ticks(meter, 1)
    meter.take()
    time.sleep(0.25)
    ((began, ended),) = meter.take()[2]
    assert ended - began >= 0.25 - lag_meter.LAG_TICK_SECONDS - 0.01
    wait_for_ticks(meter, 1)
    # It went on for a little: it is told again, and its beginning says that it is the same.
    assert {begin for begin, _ in meter.take()[2] if begin < ended} <= {began}


def test_what_was_taken_is_told_once_and_gaps_are_bounded() -> None:
    meter = LagMeter(gevent.get_hub().loop)
    meter.start()
    meter.stop()
    for number in range(2 * MAX_GAPS):
        meter._due = number
        meter._note_gap(number + 0.5)
    assert len(meter.take()[2]) == MAX_GAPS
    assert meter.take() == ([0] * LAG_BUCKETS, 0.0, [])
    meter.start()
    meter.start()
    meter.stop()
    meter.stop()


def test_what_could_not_be_told_is_told_later() -> None:
    meter = LagMeter(gevent.get_hub().loop)
    meter._due = 1.0
    meter._note_gap(1.5)
    meter._counts[3], meter._longest = 2, 0.5
    meter.put_back(meter.take())
    meter._note_gap(2.0)
    meter._counts[3] += 1
    counts, longest, gaps = meter.take()
    assert (counts[3], longest, gaps) == (3, 0.5, [(1.0, 2.0)])
