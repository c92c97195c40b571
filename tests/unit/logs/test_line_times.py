"""When a line was written."""

from __future__ import annotations

import pytest

from ssbench.logs.line_times import LineTime, parse_access_time, parse_line_time

PREFIX = b"2026-11-21T22:44:33.000206+00:00 stor1 "


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (PREFIX, LineTime(1795301073.000206, zoned=True)),
        (b"<142>1 2026-11-22T00:44:33+02:00 stor1 x", LineTime(1795301073.0, zoned=True)),
        (b"<142>1 2026-11-22T04:14:33+05:30 stor1 x", LineTime(1795301073.0, zoned=True)),
        (b"2026-11-21 17:44:33.5-0500 stor1", LineTime(1795301073.5, zoned=True)),
        (b"2026-11-21 22:44:33,250 INFO x", LineTime(1795301073.25, zoned=False)),
        (b"Nov 21 22:44:33 stor1 x", LineTime(1795301073.0, zoned=False)),
        (b"Jan  1 00:00:01 stor1 x", LineTime(1798761601.0, zoned=False)),
        (b'{"log":"x","@timestamp":"2026-11-21T22:44:33Z"}', LineTime(1795301073.0, zoned=True)),
        (b'{"__REALTIME_TIMESTAMP":"1795301073500000","MESSAGE":"x"}', LineTime(1795301073.5, zoned=True)),
        (b"a line that says much and without any time, until Nov 21 22:44:33 is in it", None),
        # A date in the message is not when it was written, and need not be one.
        (b"Nov 21 22:44:33 stor1 x: 2019-01-05T10:20:30Z", LineTime(1795301073.0, zoned=False)),
        (b"object-expirer: Exception while deleting object a/c/backup-0000-00-00T00:00:00", None),
        (b"2026-13-21 22:44:33 x", None),
        (b"", None),
    ],
)
def test_the_time_of_a_line(line: bytes, expected: LineTime | None) -> None:
    assert parse_line_time(line, 1795301000.0) == (expected and pytest.approx(expected, rel=0, abs=1e-6))


@pytest.mark.parametrize(
    ("near", "line", "seconds"),
    [
        (1798761600.0, b"Dec 31 23:59:59 stor1 x", 1798761599.0),  # one second into 2027
        (1798761599.0, b"Jan  1 00:00:01 stor1 x", 1798761601.0),
        (1798761600.0, b"Mar  1 00:00:00 stor1 x", 1803859200.0),
        (1803859200.0, b"Dec 31 23:59:59 stor1 x", 1798761599.0),
    ],
)
def test_a_line_without_a_year_is_of_the_year_in_which_it_is_nearest(
    near: float, line: bytes, seconds: float
) -> None:
    assert parse_line_time(line, near) == LineTime(seconds, zoned=False)


def test_the_time_of_an_access_line_is_in_it() -> None:
    line = b'Nov 21 23:44:33 o1: 10.0.0.1 - - [21/Nov/2026:22:44:33 +0000] "GET /d1/4/a" 200'
    assert parse_access_time(line) == 1795301073
    assert parse_access_time(line.replace(b"Nov/2026", b"Xyz/2026")) is None
    assert parse_access_time(line.replace(b"Nov/2026", b"Nov/0000")) is None
    assert parse_access_time(b"none") is None


@pytest.mark.parametrize(("fraction", "more"), [(b"", 0.0), (b".000", 0.0), (b".25", 0.25), (b",5", 0.5)])
def test_the_fraction_of_a_second_may_be_left_out(fraction: bytes, more: float) -> None:
    found = parse_line_time(b"2026-11-21T22:44:33" + fraction + b"+00:00 stor1 object-server: x", 0.0)
    assert found == LineTime(1_795_301_073 + more, zoned=True)
