"""The pace of stages and of an open loop, as a function of time and counts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssbench.fleet.phase import CHUNK_SECONDS, LEAD_SECONDS, StagedPace
from ssbench.scenario.draws import Arrivals, count_due_by_stage
from ssbench.scenario.model import Stage

START = 1000.0


def pace(*plan: Stage, kind: str = "even") -> StagedPace:
    return StagedPace(plan, Arrivals(plan, kind, 1), START)


def test_users_follow_the_stages_and_change_evenly_in_a_ramp() -> None:
    staged = pace(Stage(10, (4, 4)), Stage(10, (4, 24)), Stage(5, (2, 2)))
    found = [staged.users(START + each) for each in (-1, 0, 9.99, 10, 15, 19.999, 20, 24, 26)]
    assert found == [4, 4, 4, 4, 14, 24, 2, 2, 2]
    assert staged.rate(START + 26) is None
    assert staged.in_hand(START + 26) is None


def test_a_closed_stage_has_room_for_its_users() -> None:
    staged = pace(Stage(10, (4, 4)), Stage(10, (8, 8)))
    assert staged.room(START, 0, 1, 100) == 3
    assert staged.room(START + 1, 0, 1, 2) == 1
    assert staged.wait(START, 0) == 10
    assert staged.dues(0, 3) == []
    assert staged.room(START + 10, 0, 4, 100) == 4


def test_an_open_loop_hands_out_what_is_due_within_its_lead() -> None:
    staged = pace(Stage(10, (100, 100), (500, 500)))
    in_flight = -200  # the loop leaves out what workers may hold ahead
    ahead = staged.room(START, 0, in_flight, 1000)
    assert 500 * LEAD_SECONDS < ahead <= 500 * (LEAD_SECONDS + CHUNK_SECONDS) + 1
    dues = staged.dues(0, ahead)
    assert dues == pytest.approx([START + each / 500 for each in range(ahead)])
    assert staged.room(START, ahead, in_flight, 1000) == 0
    wait = staged.wait(START, ahead)
    assert 0 < wait <= CHUNK_SECONDS
    assert staged.room(START + wait + 1e-6, ahead, in_flight, 1000) == pytest.approx(
        500 * CHUNK_SECONDS, abs=1
    )
    assert staged.rate(START) == 500
    assert staged.in_hand(START) == 100 + 500 * 2 * (LEAD_SECONDS + CHUNK_SECONDS) + 1


def test_users_that_are_busy_leave_no_room_and_what_is_late_is_handed_out_later() -> None:
    staged = pace(Stage(10, (100, 100), (500, 500)))
    assert staged.room(START + 5, 0, 100, 1000) == 0
    assert staged.wait(START + 5, 0) == math.inf
    assert staged.room(START + 5, 0, 60, 80) == 20
    assert staged.dues(0, 2) == [START, START + 0.002]


def test_what_could_not_begin_in_a_stage_with_a_rate_begins_in_the_next_one() -> None:
    plan = (Stage(1, (10, 10), (100, 100)), Stage(1, (10, 10), (10, 10)))
    arrivals = Arrivals(plan, "even", 1)
    staged = StagedPace(plan, arrivals, START)
    assert staged.room(START + 1.5, 0, 0, 10) == 10
    assert staged.dues(0, 1) == [START]
    assert arrivals.skipped == 0


def test_it_is_skipped_where_the_next_stage_has_none() -> None:
    plan = (Stage(1, (10, 10), (100, 100)), Stage(1, (10, 10)), Stage(1, (10, 10), (10, 10)))
    arrivals = Arrivals(plan, "even", 1)
    staged = StagedPace(plan, arrivals, START)
    staged.room(START, 0, 0, 100)
    staged.dues(0, 10)
    assert staged.room(START + 1, 0, 3, 100) == 7
    assert staged.dues(10, 7) == []
    assert (arrivals.taken, arrivals.skipped) == (10, 90)
    assert staged.room(START + 2, 0, 0, 100) == 4  # of those that are due in the third stage, none earlier
    assert staged.dues(17, 4) == pytest.approx([START + each for each in (2, 2.1, 2.2, 2.3)])


def test_a_rate_that_grows() -> None:
    staged = pace(Stage(10, (10, 10), (0, 100)))
    assert [staged.rate(START + each) for each in (0, 5, 10, 11)] == pytest.approx([0, 50, 100, 100])


@given(
    st.lists(
        st.builds(
            Stage,
            st.floats(0.05, 2),
            st.tuples(st.integers(1, 50), st.integers(1, 50)),
            st.none() | st.tuples(st.floats(1, 300), st.floats(1, 300)),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["even", "poisson"]),
    st.integers(1, 60),
)
def test_every_operation_is_handed_out_once_in_order_and_not_too_early(
    plan: list[Stage], kind: str, capacity: int
) -> None:
    arrivals = Arrivals(plan, kind, 7)
    staged = StagedPace(plan, arrivals, START)
    now, last, handed_out = START - LEAD_SECONDS, -math.inf, 0
    end = START + sum(stage.seconds for stage in plan)
    while now < end:
        room = staged.room(now, handed_out, 0, capacity)
        if room > 0:
            dues = staged.dues(handed_out, room)
            assert len(dues) in (0, room)
            assert all(last <= due <= now + LEAD_SECONDS + CHUNK_SECONDS for due in dues)
            last = max([last, *dues])
            handed_out += len(dues)
        if staged.rate(now) is None:
            now += CHUNK_SECONDS
        else:
            now += min(max(staged.wait(now, handed_out), 1e-4), CHUNK_SECONDS)
    due = sum(count_due_by_stage(plan, kind, 7, math.inf, None))
    left = arrivals.until(math.inf)
    assert arrivals.taken == handed_out
    assert arrivals.taken + arrivals.skipped + left == due
