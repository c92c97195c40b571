"""Lines of background daemons, as Swift 2.38 writes them."""

from __future__ import annotations

import pytest

from ssbench.logs import daemon_lines
from ssbench.logs.daemon_lines import DaemonRecord

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
    found = daemon_lines.parse_daemon_line(PREFIX + program.partition(b" ")[0] + b": " + message)
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
    assert daemon_lines.parse_daemon_line(PREFIX + line) is None


def test_hosts_of_daemons_are_found_in_other_shapes() -> None:
    said = b"Object update sweep of d1 completed: 0.03s"
    for line in (
        b"<142>1 2026-11-21T22:37:46.659092+00:00 stor1 object-updater - - -  " + said,
        b"Nov 21 22:37:46 stor1 object-updater[12]: " + said,
        b'{"MESSAGE":"' + said + b'","SYSLOG_IDENTIFIER":"object-updater","_HOSTNAME":"stor1"}',
    ):
        found = daemon_lines.parse_daemon_line(line)
        assert (found and (found.host, found.device, found.seconds)) == (b"stor1", b"d1", 0.03)
