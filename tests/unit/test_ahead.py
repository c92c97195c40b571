"""How many jobs a worker holds ahead of its users."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ssbench.fleet.ahead import MOST_AHEAD, MOST_AHEAD_OF_ALL, Ahead, scale


def after(ended: int, seconds: float, held: float, times: int = 100) -> Ahead:
    ahead = Ahead()
    for _ in range(times):
        ahead.observe(ended, seconds, held)
    return ahead


def test_at_first_and_for_slow_operations_next_to_nothing_is_ahead() -> None:
    assert (Ahead().low, Ahead().high) == (1, 2)
    # One operation ended in the 20 s since the batch was sent, of which its way took 2 ms.
    assert after(1, 20.0, 19.998).high <= 4


def test_what_ends_in_one_turn_is_covered_with_a_reserve() -> None:
    # 400 operations a second, a turn of 100 ms.
    ahead = after(44, 0.11, 0.01)
    assert 40 * 1.25 < ahead.low < 40 * 2
    assert ahead.high == 2 * ahead.low


def test_a_longer_turn_is_heeded_at_once_and_a_shorter_one_by_and_by() -> None:
    ahead = after(4, 0.01, 0.0)
    low = ahead.low
    assert ahead.observe(400, 1.0, 0.0)
    grown = ahead.low
    assert grown > 10 * low
    ahead.observe(4, 0.01, 0.0)
    assert 0.8 * grown < ahead.low < grown
    for _ in range(100):
        ahead.observe(4, 0.01, 0.0)
    assert ahead.low <= low + 1


def test_what_is_ahead_has_a_bound() -> None:
    assert after(10**6, 1.0, 0.0).high == MOST_AHEAD


def test_thousands_of_workers_send_fewer_messages_and_hold_no_more_together() -> None:
    assert scale(1) == scale(16)
    assert [round(scale(workers).gathering, 3) for workers in (100, 1000, 100_000)] == [0.015, 0.15, 0.5]
    ahead = Ahead()
    for _ in range(100):
        ahead.observe(30, 0.6, 0.59, scale(3000))  # 50 a second
    # A message a third of a second, or less often.
    assert ahead.high - ahead.low > 50 / 3
    for _ in range(100):
        ahead.observe(10**6, 1.0, 0.0, scale(3000))
    assert ahead.high * 3000 <= MOST_AHEAD_OF_ALL


@given(st.integers(0, 10**9), st.floats(-1.0, 1e6), st.floats(0.0, 1e9))
def test_whatever_a_worker_says_leaves_something_ahead(ended: int, seconds: float, held: float) -> None:
    ahead = after(ended, seconds, held, 3)
    assert 1 <= ahead.low < ahead.high <= MOST_AHEAD
