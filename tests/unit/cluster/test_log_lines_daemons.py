"""Lines of background daemons, as Swift 2.38 writes them, and the time of a line."""

from __future__ import annotations

import pytest

from ssbench.cluster import log_lines
from ssbench.cluster.log_lines import DaemonRecord, LineTime, parse_access_time, parse_line_time

PREFIX = b"2026-11-21T22:44:33.000206+00:00 stor1 "
SINCE = b"Since Sat Nov 21 22:44:35 2026: Locally: 10 passed, 0 quarantined, 0 errors, files/sec: 2.00, "


@pytest.mark.parametrize(
    ("program", "message", "device", "seconds", "begins"),
    [
        (b"object-updater", b"Begin object update sweep of all devices", b"", None, True),
        (b"object-updater", b"Object update sweep starting on /srv/node/d1 (pid: 7323)", b"d1", None, True),
        (
            b"object-updater",
            b"Object update sweep completed on /srv/node/d1 in 0.03s seconds:, 1 successes, 0 failures",
            b"d1",
            0.03,
            False,
        ),
        (b"object-updater", b"Object update sweep of d1 completed: 0.03s, 1 successes", b"d1", 0.03, False),
        (b"object-updater", b"Object update sweep of all devices completed: 0.40s", b"", 0.4, False),
        (b"object-updater", b"Object update sweep progress on d4: 12.50s, 1 successes", b"d4", 12.5, False),
        (b"object-auditor ALL", b'Begin object audit "forever" mode (ALL)', b"", None, True),
        (
            b"object-auditor ALL",
            b'Begin object audit "forever" mode (ALL - parallel, d3)',
            b"d3",
            None,
            True,
        ),
        (b"object-auditor ZBF", b'Begin object audit "forever" mode (ZBF - d3,d4)', b"", None, True),
        (
            b"object-auditor ALL",
            b"Object audit (ALL). " + SINCE + b"Total time: 12.25, Auditing time: 3.20, Rate: 0.10",
            b"",
            12.25,
            False,
        ),
        (b"object-auditor ZBF", b'Object audit (ZBF) "forever" mode completed: 0.03s. Tot', b"", 0.03, False),
        (b"object-replicator", b"Starting object replication pass.", b"", None, True),
        (b"object-replicator", b"Object replication complete. (0.50 minutes)", b"", 30.0, False),
        (b"object-replicator", b"Object replication complete (once). (1.50 minutes)", b"", 90.0, False),
        (b"object-replicator", b"5/10 (50.00%) partitions replicated in 12.03s (2.00/sec", b"", 12.03, False),
        (
            b"object-replicator",
            b"Successful rsync of /srv/node/d1/objects/12/... to [10.0.0.1]::object/d3/objects/12 (0.123)",
            b"d1",
            0.123,
            False,
        ),
        (b"object-replicator", b"Removing partition: /srv/node/d1/objects-1/12", b"d1", None, False),
        (b"object-replicator", b"Starting object replicator in daemon mode.", b"", None, False),
        (b"object-reconstructor", b"Object reconstruction complete. (0.10 minutes)", b"", 6.0, False),
        (b"container-replicator", b"Beginning replication run", b"", None, True),
        (
            b"container-replicator",
            b"Attempted to replicate 4 dbs in 0.12345 seconds (32.40227/s)",
            b"",
            0.12345,
            False,
        ),
        (b"container-updater", b"Begin container update single threaded sweep", b"", None, True),
        (b"container-auditor", b"Container audit pass completed: 0.05s", b"", 0.05, False),
        (b"account-reaper", b"Devices pass completed: 1.25s", b"", 1.25, False),
        (b"container-sharder", b"Container sharder cycle completed: 3.05s", b"", 3.05, False),
        (b"object-expirer", b"Pass completed in 3s; 10 objects expired", b"", 3.0, False),
    ],
)
def test_lines_of_daemons(
    program: bytes, message: bytes, device: bytes, seconds: float | None, begins: bool
) -> None:
    found = log_lines.parse_daemon_line(PREFIX + program.partition(b" ")[0] + b": " + message)
    assert found == DaemonRecord(b"stor1", program, device, pytest.approx(seconds), begins)


@pytest.mark.parametrize(
    "line",
    [
        b"object-server: started",
        b"proxy-server: 10.0.0.1 10.0.0.1 21/Nov/2026/22/37/46 GET /v1/a/c/object-auditor HTTP/1.0 200",
        b"object-expirer-ic: 10.0.0.1 - 21/Nov/2026/22/37/46 DELETE /v1/a/c/o HTTP/1.0 204",
    ],
)
def test_lines_of_others_are_none(line: bytes) -> None:
    assert log_lines.parse_daemon_line(PREFIX + line) is None


def test_hosts_of_daemons_are_found_in_other_shapes() -> None:
    said = b"Object update sweep of d1 completed: 0.03s"
    for line in (
        b"<142>1 2026-11-21T22:37:46.659092+00:00 stor1 object-updater - - -  " + said,
        b"Nov 21 22:37:46 stor1 object-updater[12]: " + said,
        b'{"MESSAGE":"' + said + b'","SYSLOG_IDENTIFIER":"object-updater","_HOSTNAME":"stor1"}',
    ):
        found = log_lines.parse_daemon_line(line)
        assert (found and (found.host, found.device, found.seconds)) == (b"stor1", b"d1", 0.03)


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
