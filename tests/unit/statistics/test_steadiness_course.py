"""How a run went over time, of blocks in memory."""

from __future__ import annotations

import json
import math

import pytest
from counted import Memory, failed, row
from result_rows import block

from ssbench.base import record
from ssbench.results.run_description import RunSummary
from ssbench.statistics.steadiness import Course
from ssbench.statistics.summary import summarize


def course_of(*blocks: object, sent_until: float | None = None) -> Course:
    found = summarize(Memory(*blocks, summary=RunSummary(0.0, sent_until=sent_until))).course
    assert found is not None
    return found


def test_the_drain_is_from_the_end_of_the_window_to_the_last_completion() -> None:
    rows = [row(last=1.0, completed=101.0 + place) for place in range(5)]
    found = course_of(block([*rows, row(last=7.0, completed=109.0)]), sent_until=105.0)
    assert (found.window.start, found.window.end, found.window.seconds) == (100.0, 105.0, 5.0)
    assert found.drain == 4.0


def test_busy_is_the_share_of_the_users_time_in_the_window() -> None:
    # Two users: one is busy for 5 s, the other for 2 s of 5 and 4 s more after the window.
    rows = [row(last=1.0, completed=101.0 + place) for place in range(5)]
    found = course_of(block([*rows, row(last=6.0, completed=109.0)]), sent_until=105.0)
    assert found.busy == pytest.approx((5 + 2) / (2 * 5))


def test_users_pause_for_no_more_than_the_time_that_they_have() -> None:
    # Of two users: five operations waited for a token for 3 s, some of which workers only had ahead.
    rows = [row(last=4.0, completed=105.0) for _ in range(5)]
    made = block(rows, rare={"pausing": dict.fromkeys(range(5), 3.0)})
    found = course_of(made, sent_until=105.0)
    assert found.busy == pytest.approx(5 / (2 * 4))
    assert found.pausing == pytest.approx(1 - found.busy)


def test_failures_take_time_and_end_nothing_in_a_second() -> None:
    rows = [row(last=0.5, completed=100.5 + place) for place in range(4)]
    made = block(rows, failures=failed(1))
    found = course_of(made, sent_until=104.0)
    assert found.operations is not None
    assert (found.operations.slowest, found.operations.slowest_at, found.operations.fastest) == (0, 1, 1)


def test_a_stall_is_told_from_the_first_send() -> None:
    rows = [row(last=0.01, completed=100.01 + place / 100) for place in range(400)]
    rows += [row(last=3.0, completed=107.0)]
    rows += [row(last=0.01, completed=107.01 + place / 100) for place in range(400)]
    found = course_of(block(rows), sent_until=111.0)
    (stall,) = found.stalls
    assert stall.start == pytest.approx(4.0, abs=0.05)
    assert stall.seconds == pytest.approx(3.0, abs=0.05)


def test_its_json_has_the_public_names_and_null_for_what_is_not_defined() -> None:
    found = course_of(block([row(last=1.0, completed=101.0)]))
    plain = json.loads(record.format_json(found))
    assert plain["window"] == {"start": 100.0, "end": 101.0, "seconds": 1.0, "whole": True}
    assert {"bytes", "operations", "steadiness", "stalls", "drain", "busy"} <= plain.keys()
    assert "moved" not in plain
    nothing = Course(
        window=found.window,
        drain=0.0,
        busy=math.nan,
        pausing=math.nan,
        operations=None,
        moved=None,
        stalls=(),
        steadiness=found.steadiness,
    )
    assert json.loads(record.format_json(nothing))["busy"] is None
