"""The requests of a log, made on a real Swift."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from logged_traffic import BEGAN, swift_line
from processes import Fleet
from s3_runs import variables

from ssbench.base.errors import ExitCode
from ssbench.local_swift import LocalSwift

#: Method, what follows the account, status, bytes: all that a replay makes.
REQUESTS = [
    ("GET", "c/read", 200, 700),
    ("HEAD", "c/read", 200, 0),
    ("GET", "d/missing", 404, 70),
    ("HEAD", "d/missing", 404, 0),
    ("PUT", "d/new", 201, 300),
    ("GET", "d/new", 200, 300),
    ("PUT", "d/new", 201, 5000),
    ("GET", "d/new", 206, 100),
    ("POST", "d/new", 202, 0),
    ("COPY", "c/read", 201, 0),
    ("DELETE", "d/new", 204, 0),
    ("DELETE", "d/new", 404, 0),
    ("GET", "d/new", 404, 70),
    ("GET", "c/cached", 304, 0),
    ("GET", "c", 200, 50),
    ("HEAD", "d", 204, 0),
    ("GET", "nowhere", 404, 70),
    ("HEAD", "nowhere", 404, 0),
    ("GET", "", 200, 50),
    ("HEAD", "", 204, 0),
    ("PUT", "e", 201, 0),
]


def write_log(path: Path, rounds: int) -> Path:
    """Write a log of all requests, of each round in another account, two a second."""
    lines = []
    for number in range(rounds * len(REQUESTS)):
        method, place, status, moved = REQUESTS[number % len(REQUESTS)]
        account = f"AUTH_{number // len(REQUESTS)}"
        bodies = {"received": moved} if method == "PUT" else {"sent": moved}
        name = f"/v1/{account}/{place}".rstrip("/")
        lines.append(swift_line(BEGAN + number / 2, method, name, status, **bodies))
    path.write_text("".join(lines))
    return path


#: The same for S3, with the bytes of the object.
S3_REQUESTS = [
    ("REST.GET.OBJECT", "read", 200, 700, 700),
    ("REST.HEAD.OBJECT", "read", 200, 0, 700),
    ("REST.PUT.OBJECT", "new", 200, 0, 300),
    ("REST.GET.OBJECT", "new", 206, 100, 300),
    ("REST.PUT.OBJECT", "new", 200, 0, 5000),
    ("REST.DELETE.OBJECT", "new", 204, 0, 5000),
    ("REST.GET.OBJECT", "new", 404, 300, None),
    ("REST.GET.BUCKET", "-", 200, 500, None),
]


def test_a_log_of_s3_is_replayed_over_s3(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, container_base: str
) -> None:
    log, out = tmp_path / "access.log", tmp_path / "run.json"
    lines = []
    for second, (how, key, status, sent, size) in enumerate(S3_REQUESTS * 2):
        when = f"21/Nov/2026:22:37:{second:02d} +0000"
        numbers = f'{status} - {sent or "-"} {"-" if size is None else size} 12 10 "-" "c" -'
        lines.append(f'owner bkt [{when}] 10.0.0.1 owner 3E57 {how} {key} "GET /bkt/x HTTP/1.1" {numbers}\n')
    log.write_text("".join(lines))
    run = fleet.master(
        *("run-scenario", "--replay", f"{log} format s3 speed 10", "--workers", 1),
        *("-S", f"s3+{swift.address}", "--set", f"container_base={container_base}-"),
        *("-s", fleet.stats, "--json", out, "--report", "summary"),
        environment=variables(swift),
    )
    code = run.end()
    assert out.exists(), run.err
    replay = json.loads(out.read_text())["replay"]
    assert code == ExitCode.OK or replay["early_requests"], run.err + run.out
    assert (replay["source"]["requests"], replay["source"]["prepared"]) == (len(S3_REQUESTS) * 2, 1)
    assert {each["operation"]: each["count"] for each in replay["source"]["operations"]} == {
        **{"create": 2, "update": 2, "read": 2, "range": 2, "head": 2, "delete": 2, "list": 2},
        "get_missing": 2,
    }
    differ = sum(each["count"] for each in replay["statuses"] if each["logged"] != each["status"])
    assert differ <= replay["early_requests"], run.out
    assert "known to a second only" in run.out
    # Percentiles of two requests are not shown, of the log neither.
    assert re.search(r"^READ +log +2 +- +- +- +12\.0$", run.out, re.MULTILINE), run.out


@pytest.mark.parametrize("accounts", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_log_ends_as_it_did_there(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, container_base: str, accounts: int
) -> None:
    log, out = write_log(tmp_path / "proxy.log", 2), tmp_path / "run.json"
    environment = {"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key}
    settings = ("--set", f"container_base={container_base}")
    if accounts > 1:
        environment |= {"ST_USER": swift.admin, "ST_KEY": swift.admin_key}
        settings += ("--set", f"accounts={accounts}", "--set", f"account_base={container_base}")
    run = fleet.master(
        *("run-scenario", "--replay", f"{log} speed 4", "--workers", 1, *settings),
        *("-s", fleet.stats, "--json", out, "--report", "summary"),
        environment=environment,
    )
    code = run.end()
    found = json.loads(out.read_text())
    replay = found["replay"]
    assert code == ExitCode.OK or replay["early_requests"], run.err + run.out
    assert replay["source"]["requests"] == 2 * len(REQUESTS) - 2
    assert replay["source"]["left_out"] == 2
    assert (replay["source"]["accounts"], replay["source"]["prepared"]) == (2, 4)
    assert sum(each["count"] for each in replay["statuses"]) == 2 * len(REQUESTS) - 2
    # Swift answers to listings of nothing with 204, too. What was due before a slow write had ended may fail.
    different = [each for each in replay["statuses"] if each["logged"] != each["status"]]
    differ = sum(each["count"] for each in different if {each["logged"], each["status"]} != {200, 204})
    assert differ <= replay["early_requests"], run.out
    assert f"Statuses that differ from the log's: {differ} of 40" in run.out
    asked = found["verdict"]["asked"]["ops_per_second"]
    assert asked == pytest.approx(4 * 40 / replay["source"]["seconds"])
