"""Which addresses a connection tries, in which order, and what a storage URL may be."""

from __future__ import annotations

import socket
from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssbench.base.errors import UsageError
from ssbench.store.http import pool as pool_module
from ssbench.store.http.connection import SharedState
from ssbench.store.http.dialect import ServerEndpoint, parse_storage_url
from ssbench.store.http.pool import Address, ConnectionPool, TimeoutSweeper


def made(*given_: str, host: str = "h") -> ConnectionPool:
    return ConnectionPool(ServerEndpoint("http", host, 8080), cast("SharedState", None), 4, 1.0, None, given_)


def address(number: int, family: socket.AddressFamily = socket.AF_INET) -> Address:
    return family, (f"10.0.0.{number}", 8080)


SIX = socket.AF_INET6


@pytest.mark.parametrize(
    ("url", "endpoint", "host", "path"),
    [
        ("http://h/v1/AUTH_a", ServerEndpoint("http", "h", 80), "h", "/v1/AUTH_a"),
        ("https://H:8443/v1/AUTH_a/", ServerEndpoint("https", "h", 8443), "H:8443", "/v1/AUTH_a"),
        ("https://h", ServerEndpoint("https", "h", 443), "h", ""),
        ("http://[::1]:80/v1", ServerEndpoint("http", "::1", 80), "[::1]:80", "/v1"),
    ],
)
def test_parts_of_a_storage_url(url: str, endpoint: ServerEndpoint, host: str, path: str) -> None:
    assert parse_storage_url(url) == (endpoint, host, path)


@pytest.mark.parametrize(
    "url", ["", "h/v1", "ftp://h/v1", "http:///v1", "http://h/v1?x=1", "http://h/v1#a", "http://é/v1"]
)
def test_another_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="expected http://HOST"):
        parse_storage_url(url)


def test_a_password_in_it_is_refused_and_not_shown() -> None:
    with pytest.raises(UsageError) as error:
        parse_storage_url("http://me:secret@h/v1")
    assert "secret" not in str(error.value)


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 3))
def test_connections_are_spread_evenly_over_addresses(count: int, rounds: int, others: int) -> None:
    pool = made()
    preferred = [address(number) for number in range(count)]
    every = [*preferred, *(address(number, SIX) for number in range(others))]
    orders = [pool._in_turn(every) for _ in range(count * rounds)]
    assert Counter(order[0] for order in orders) == dict.fromkeys(preferred, rounds)
    # Each is tried, those of the other family after all of the preferred one.
    assert all(sorted(order) == sorted(every) for order in orders)
    assert all(order[count:] == every[count:] for order in orders)


def test_an_address_that_failed_is_tried_last_for_a_while() -> None:
    pool = made()
    every = [address(0), address(1), address(2), address(0, SIX)]
    pool._failed = {address(1): float("inf")}
    assert {pool._in_turn(every)[-1] for _ in range(6)} == {address(1)}
    pool._failed = {address(1): 0.0}
    assert {pool._in_turn(every)[0] for _ in range(3)} == {address(0), address(1), address(2)}
    assert pool._failed == {}


def test_there_may_be_no_address() -> None:
    assert made()._in_turn([]) == []


def test_addresses_need_no_lookup() -> None:
    assert made(host="10.0.0.7")._resolve() == [address(7)]
    assert made("10.0.0.8", "10.0.0.9")._resolve() == [address(8), address(9)]
    ((family, place),) = made(host="::1")._resolve()
    assert (family, place[:2]) == (SIX, ("::1", 8080))


def test_what_a_name_means_is_used_again_for_a_moment() -> None:
    pool = made(host="name.invalid")
    pool._addresses, pool._found_at = [address(1)], float("inf")
    assert pool._resolve() == [address(1)]


@pytest.mark.parametrize(
    ("ticks", "now", "since", "ran"),
    [
        ([], 0.4, 0.0, 0.4),
        ([0.5, 1.0, 1.5], 1.7, 0.2, 1.5),
        ([0.5, 3.0, 3.5], 3.6, 0.2, 0.9),  # 0.3 before the stall, 0.6 after it
        ([0.5, 3.0, 3.5], 3.6, 1.0, 0.6),  # it began within the stall
        ([0.5, 3.0, 3.5], 3.6, 3.1, 0.5),
        ([0.5], 4.0, 0.2, 0.3),  # the stall's tick is still to come
        ([each * 0.7 for each in range(50)], 34.4, 0.0, 0.1),
        ([0.5 + each * 0.5 for each in range(20)] + [11 + each for each in range(40)], 50.0, 0.0, 0.0),
    ],
)
def test_time_in_which_the_loop_stalled_is_none_in_which_it_ran(
    monkeypatch: pytest.MonkeyPatch, ticks: list[float], now: float, since: float, ran: float
) -> None:
    clock, calls = [0.0], []
    timer = SimpleNamespace(start=calls.append)
    loop = SimpleNamespace(timer=lambda *_, **__: timer)
    shared: Any = SimpleNamespace(hub=SimpleNamespace(loop=loop), connections=set())
    monkeypatch.setattr(pool_module, "monotonic", lambda: clock[0])
    sweeper = TimeoutSweeper(shared, 0.5)
    for clock[0] in ticks:
        calls[0]()
    clock[0] = now
    assert sweeper.ran_since(since) == pytest.approx(ran)
