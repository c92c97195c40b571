"""When a run is to begin, and how far the clock here is from the store's."""

from __future__ import annotations

import re
import time
from datetime import datetime
from email.utils import formatdate

import pytest
from fault_server import FaultServer, Reply
from golden_words import GoldenWords

from ssbench.base.errors import UsageError
from ssbench.cli import master
from ssbench.run import bench_options
from ssbench.store.credentials import Session
from ssbench.store.stores import STORE
from ssbench.store.swift import containers

NOON = datetime(2026, 1, 31, 12, 0, 0).timestamp()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("12:00:30", NOON + 30),
        ("13:15", NOON + 75 * 60),
        ("11:59", NOON - 60),
        ("00:00:00", NOON - 12 * 3600),
        (f"@{NOON:.0f}", NOON),
        ("@1800000000.25", 1800000000.25),
        ("2026-01-31T12:00:00", NOON),
        ("2027-01-15T08:00:00Z", 1800000000.0),
        ("2027-01-15T09:00:00+01:00", 1800000000.0),
    ],
)
def test_a_moment_is_read(text: str, seconds: float) -> None:
    assert bench_options.parse_start_moment(text, lambda: NOON) == seconds


def test_a_time_of_day_that_is_over_long_ago_is_that_of_tomorrow() -> None:
    late = datetime(2026, 1, 31, 23, 59, 30).timestamp()
    assert bench_options.parse_start_moment("00:01", lambda: late) == late + 90


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "25:00", "12:61", "@", "@x", "2026-13-01", "12", "-5", "@1e9"),
        *("@999999999999", "9999-12-31T23:59:59-12:00", "20270115", "²:00"),
    ],
)
def test_what_is_no_moment(text: str, golden_words: GoldenWords) -> None:
    with golden_words.raises(ValueError):
        bench_options.parse_start_moment(text)


def test_a_moment_that_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match=r"--part @2026-01-31 12:00:00.*: that was 35 s ago"):
        bench_options.refuse_past_moment(NOON, NOON + 35)
    bench_options.refuse_past_moment(NOON, NOON - 1)
    run = ["run-scenario", "-f", "small", "--noop", "--workers", "1", "--part", "1/1@@1000000000"]
    assert master.main(run) == 2
    assert re.search(r": that was \d+ h( \d+ min)? ago\n", capsys.readouterr().err)
    assert master.main([*run[:-1], "1/1@@2000000000", "--repeat", "2"]) == 2
    assert "are several runs of one master: leave out --part" in capsys.readouterr().err


def test_samples_narrow_the_difference() -> None:
    # The store is 0.25 s ahead; an answer takes 10 ms.
    sent = [100.0 + number * 0.09 for number in range(12)]
    samples = [(each, each + 0.01, float(int(each + 0.255))) for each in sent]
    found = containers.bound_clock(samples)
    assert found is not None
    assert found[0] <= 0.25 <= found[1]
    assert found[1] - found[0] < 0.15
    assert containers.bound_clock([]) is None
    assert containers.bound_clock([*samples, (102.0, 102.1, 90.0)]) is None  # of another server


@pytest.mark.parametrize("ahead", [0.0, 7.0, -3.0])
def test_the_clock_of_a_store(ahead: float) -> None:
    def answer(_request: object) -> Reply:
        return Reply(200, headers=(("Date", formatdate(time.time() + ahead, usegmt=True)),))

    widths = []
    with FaultServer(rule=answer) as server:
        # A pause of this process, when the next second of the store begins, makes it wider.
        while not widths or (widths[-1] >= 0.5 and len(widths) < 8):
            found = STORE.clock(Session((server.url,), "token"))
            assert found is not None
            assert found[0] - 0.01 <= ahead <= found[1] + 0.01
            widths.append(found[1] - found[0])
    assert widths[-1] < 0.5


def test_a_store_that_does_not_tell() -> None:
    with FaultServer(rule=lambda _: Reply(200, headers=(("Date", "yesterday"),))) as server:
        assert STORE.clock(Session((server.url,), "token")) is None
    assert STORE.clock(Session(("http://127.0.0.1:9/v1/x",), "token")) is None
