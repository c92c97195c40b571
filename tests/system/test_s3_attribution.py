"""Runs over the S3 API joined with Swift's logs: every operation is found, and who was slow is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from processes import Fleet
from runs import wait_until
from s3_runs import Ran, variables

from ssbench.local_swift import Layout, LocalSwift

#: Before s3api: each request of the S3 API waits for as many seconds as a file says.
_FILTER = """
import eventlet, pathlib

def make_filter(conf, path, **_):
    def wrap(app):
        def wait(environ, start_response):
            if environ.get("HTTP_AUTHORIZATION", "").startswith("AWS4"):
                eventlet.sleep(float(pathlib.Path(path).read_text()))
            return app(environ, start_response)
        return wait
    return wrap
"""

OPERATIONS = 64
DELAY = 0.3


@pytest.mark.long
def test_a_slow_filter_before_s3api_is_the_proxys(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "waiting.py").write_text(_FILTER)
    (delay := tmp_path / "delay").write_text("0")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    waiting = {"paste.filter_factory": "waiting:make_filter", "path": str(delay)}
    profile = {"create": 1, "read": 2, "delete": 1}
    with LocalSwift(filters={"waiting": waiting}, layout=Layout(access_logs=True)) as swift:
        url = f"s3+{swift.address}"
        stats = []
        for seconds in (0, DELAY):
            delay.write_text(str(seconds))
            keys = {"crud_profile": profile, "operation_count": OPERATIONS, "user_count": 4}
            ran = Ran(fleet, tmp_path, variables(swift), "-S", url, **keys, container_base="s3-")
            assert (ran.code, len(ran.rows)) == (0, OPERATIONS), ran.program.err
            stats.append(fleet.stats)

        def attribute(*options: object) -> dict[str, Any]:
            logs = "--swift-logs", swift.log_directory
            program = fleet.master("attribute", "-s", stats[1], *logs, "--json", "-", *options)
            assert program.end() == 0, program.err
            found: dict[str, Any] = json.loads(program.out)
            return found

        # A server writes its line when it has answered: the last ones may come after the run's end.
        wait_until(lambda: attribute()["coverage"]["complete"] == OPERATIONS, "the last lines of the logs")
        single, changed = attribute(), attribute("--compare", stats[0])
    assert single["coverage"]["with_proxy"] == OPERATIONS
    # s3api looks at an object before it deletes it, which is no second replica.
    assert single["coverage"]["reasons"] == []
    changes = [each for each in changed["changes"] if each["level"] != "operation"]
    most = max(changes, key=lambda each: each["difference"]["seconds"])
    assert (most["level"], most["part"], most["verdict"]) == ("proxy", "own part", "longer"), changed[
        "answer"
    ]
    assert most["difference"]["seconds"] > DELAY / 2
