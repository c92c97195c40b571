"""How late a loop is, and what becomes of results while it stands still."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

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
    read_after = JobResult(2, ended - began, ended - began, ended, rare=RareFields(0.125))
    held, as_it_was = meter.mark([read_after, told])
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


@pytest.fixture
def gaps() -> LagMeter:
    """Return a meter that is not started and knows two gaps: from 10 to 10.5 and from 20 to 20.3."""
    meter = LagMeter(gevent.get_hub().loop)
    for begin, end in ((10.0, 10.5), (20.0, 20.3)):
        meter._due = begin
        meter._note_gap(end)
    return meter


def next_expiry(meter: LagMeter) -> tuple[float, float]:
    """Return two moments between which the timer of a meter expires next, as the kernel says."""
    with gevent.Timeout(60):
        while True:
            before = time.monotonic()
            lines = Path(f"/proc/self/fdinfo/{meter._timer}").read_text().splitlines()
            after = time.monotonic()
            (said,) = (line.partition(":")[2] for line in lines if line.startswith("it_value"))
            seconds, nanoseconds = map(int, said.strip(" ()").split(","))
            if left := seconds + nanoseconds * 1e-9:
                return before + left, after + left
            gevent.sleep(0)  # it has expired, and is to be read first


@pytest.mark.parametrize("seconds", [0.0, 0.013, 0.15])
def test_ticks_are_due_when_the_timer_expires_however_long_it_took_to_make(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    make = lag_meter._make_kernel_timer

    def make_slowly(interval: float) -> object:
        time.sleep(seconds)  # the process has no CPU
        made = make(interval)
        time.sleep(seconds)
        return made

    monkeypatch.setattr(lag_meter, "_make_kernel_timer", make_slowly)
    meter = LagMeter(gevent.get_hub().loop)
    for _ in range(3):  # as a worker does that serves several runs
        began = time.monotonic()
        meter.start()
        wait_for_ticks(meter, 5)
        least, most = next_expiry(meter)
        between = round((least - meter._due) / lag_meter.LAG_TICK_SECONDS)
        meter.stop()
        due = meter._due + between * lag_meter.LAG_TICK_SECONDS
        assert least - 1e-6 <= due <= most + 1e-6
        gaps = meter.take()[2]
        assert sum(end - begin for begin, end in gaps) <= time.monotonic() - began
        assert all(end <= begin for (_, end), (begin, _) in pairwise(gaps))


def test_gaps_that_overlap_are_one(gaps: LagMeter) -> None:
    for begin in (20.02, 20.04, 20.3):
        gaps._due = begin
        gaps._note_gap(begin + 0.3)
    (marked,) = gaps.mark([JobResult(1, 10.6, 10.6, 20.6)])
    assert isinstance(marked, JobResult)
    assert marked.rare is not None
    assert marked.rare.held == pytest.approx(0.6)
    ((_, first), second) = gaps.take_gaps()
    assert (first, second) == (10.5, (20.0, pytest.approx(20.6)))


def held(meter: LagMeter, result: JobResult) -> float:
    (marked,) = meter.mark([result])
    assert isinstance(marked, JobResult)
    return 0.0 if marked.rare is None else marked.rare.held


def test_only_the_part_of_a_gap_counts_that_hid_something(gaps: LagMeter) -> None:
    def read(first: float, last: float, began: float = 9.0, sending: float = 0.0) -> float:
        """Return what is held of a read whose answer began and ended at these moments."""
        rare = RareFields(sending=sending) if sending else None
        return held(gaps, JobResult(1, first - began, last - began, last, rare=rare))

    # The store was still working when the worker went on.
    assert read(11.0, 11.0) == 0
    assert read(11.0, 19.0) == 0
    # It was read right after the gap, so that nobody knows when it came; or the kernel knows.
    assert read(10.5, 10.5) == pytest.approx(0.5)
    assert read(10.5, 10.6) == pytest.approx(0.5)
    assert read(10.2, 10.2) == 0
    # Its beginning waited in the kernel while more might have come.
    assert read(10.2, 11.0) == pytest.approx(0.3)
    assert read(9.5, 11.0) == pytest.approx(0.5)
    assert read(9.5, 21.0) == pytest.approx(0.8)
    # It began in the gap, and was sent in it, or only later, as on a new connection or after a retry.
    assert read(10.5, 10.5, began=10.3) == pytest.approx(0.2)
    assert read(12.0, 12.0, sending=1.2) == pytest.approx(0.2)
    assert read(12.0, 12.0, sending=2.0) == pytest.approx(0.5)
    assert read(20.3, 20.3, sending=2.0) == pytest.approx(0.8)
    # Never more than the operation, and of an upload all that was not sent.
    assert read(10.5, 10.5, began=10.49, sending=0.005) <= 0.010000001
    assert held(gaps, JobResult(1, None, 3.0, 12.0)) == 0
    assert held(gaps, JobResult(1, None, 1.5, 10.5)) == pytest.approx(0.5)
    assert held(gaps, JobResult(1, None, 3.0, 12.0, rare=RareFields(sending=1.4))) == pytest.approx(0.4)
