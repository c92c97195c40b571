"""How many jobs may be sent, as a function of time and counts."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from ssbench.fleet.phase import ClosedLoop, Pace, share_users


def test_a_closed_loop_has_room_for_its_users_at_any_time() -> None:
    pace: Pace = ClosedLoop(24)
    assert pace.users(0.0) == pace.users(1e6) == 24
    assert pace.room(0.0, sent=0, in_flight=0, capacity=100) == 24
    assert pace.room(1e6, sent=10**7, in_flight=20, capacity=100) == 4
    assert pace.room(0.0, sent=0, in_flight=24, capacity=100) == 0


def test_a_closed_loop_sends_no_more_than_the_workers_can_run() -> None:
    pace = ClosedLoop(24)
    assert pace.room(0.0, sent=0, in_flight=3, capacity=8) == 5
    assert pace.room(0.0, sent=0, in_flight=0, capacity=0) == 0
    # A worker with jobs was lost, or says that it has less room than before.
    assert pace.room(0.0, sent=0, in_flight=20, capacity=8) < 0


def test_only_results_make_room_in_a_closed_loop() -> None:
    assert ClosedLoop(24).wait(0.0, sent=24) == math.inf


def test_shares_are_equal_but_for_those_without_room() -> None:
    assert share_users(20, [64, 3, 64]) == [9, 3, 8]
    assert share_users(24, [12, 12]) == [12, 12]
    assert share_users(7, [64, 64, 64]) == [3, 2, 2]
    assert share_users(10, []) == []
    assert share_users(2, [0, 5, 5, 5]) == [0, 1, 1, 0]
    assert share_users(0, [5, 5]) == [0, 0]


@given(st.integers(0, 200), st.lists(st.integers(0, 50), max_size=20))
def test_shares_use_all_there_is_and_no_more(total: int, capacities: list[int]) -> None:
    shares = share_users(total, capacities)
    assert all(0 <= share <= capacity for share, capacity in zip(shares, capacities, strict=True))
    assert sum(shares) == min(total, sum(capacities))
    unbounded = [share for share, capacity in zip(shares, capacities, strict=True) if share < capacity]
    assert not unbounded or max(unbounded) - min(unbounded) <= 1
