"""Suites of real runs: one table, and what goes on after the program was killed."""

from __future__ import annotations

import copy
import re
import signal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from fault_server import FaultServer, Reply
from json_records import valid
from processes import PATIENCE, Fleet
from said import CONTAINERS_FAILED

from ssbench.base.errors import ExitCode
from ssbench.local_swift import LocalSwift

SUITE = {
    "name": "tiny",
    "rounds": 2,
    "seconds": 1,
    "scenarios": {
        "o": {
            "sizes": [{"name": "object", "size": "4kB"}],
            "initial_files": {"object": 8},
            "container_count": 1,
            "profile": {"read": 1},
            "user_count": 2,
            # How many operations a second has matters to no test.
            "think_time": "20ms",
        }
    },
    "rows": {
        "small": {"scenario": "o", "vary": {"users": [1, 2]}},
        "large": {"scenario": "o", "set": {"size": "64kB"}, "vary": {"store": ["swift", "s3"]}},
    },
    # On a busy machine a run of a second has few operations: two without an error decide this.
    "fail_if": ["errors > 90%"],
}


def test_a_suite_without_containers_says_nothing_of_objects(
    fleet: Fleet, fault_server: FaultServer, tmp_path: Path
) -> None:
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(SUITE | {"rows": {"a": {"scenario": "o"}}}))
    fault_server.default = Reply(501)
    place = ("-S", fault_server.url, "-T", "token", "--results-dir", tmp_path / "results")
    run = fleet.master("suite", tmp_path / "tiny.yaml", "--workers", 1, "--retries", 0, *place)
    assert run.end() == ExitCode.CLUSTER, run.err
    assert CONTAINERS_FAILED in run.err
    assert "Delete the objects" not in run.err


@pytest.mark.long
def test_a_suite_of_a_real_swift_is_killed_half_way_and_goes_on(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(SUITE, sort_keys=False))
    folder = tmp_path / "results"
    command = ("suite", tmp_path / "tiny.yaml", "--workers", 1, "--local-swift", "--results-dir", folder)
    killed = fleet.master(*command)
    killed.wait_for("Run 5 of 8", PATIENCE)
    killed.signal(signal.SIGKILL)
    assert killed.end(PATIENCE) == -signal.SIGKILL
    there = {path: path.read_bytes() for path in folder.glob("*.stat.gz")}
    assert 4 <= len(there) <= 5
    outputs = ("--json", tmp_path / "found.json", "--html", tmp_path / "found.html")
    run = fleet.master(*command, "--resume", *outputs)
    assert run.end(PATIENCE) == 0, run.err
    assert run.err.count("Done already: ") == 4
    found = valid((tmp_path / "found.json").read_text(), "suite")
    rows = ["small users=1", "small users=2", "large store=swift", "large store=s3"]
    assert [row["name"] for row in found["rows"]] == rows
    assert [row["store"] for row in found["rows"]] == [None, None, "swift", "s3"]
    assert [row["storage_urls"][-1].partition("+")[0] == "s3" for row in found["rows"]] == [
        *[False] * 3,
        True,
    ]
    assert "Delete the objects" not in run.err  # they go with the local Swift
    for row in found["rows"]:
        assert len(row["stat_files"]) == 2
        assert row["figures"]["rate"]["low"] < row["figures"]["rate"]["mean"]
        assert [each["result"] for each in row["conditions"]] == ["ok"]
    assert len([*folder.glob("*.stat.gz")]) == 8
    # Each row leads to the page of one of its runs.
    pages = re.findall(r'<a href="(found-rows/[^"]+)">', (tmp_path / "found.html").read_text())
    assert len(pages) == 4
    assert all("large" in (tmp_path / unquote(page)).read_text() for page in pages if "large" in page)
    # What was complete is as it was.
    kept = [path for path, content in there.items() if path.read_bytes() == content]
    assert len(kept) == 4
    compared = fleet.master("compare", folder, folder)
    assert compared.end(PATIENCE) == 0
    assert "no verdict" in compared.out
    assert "4 rows of 2 runs a side: a verdict needs 3 or more" in " ".join(compared.out.split())


def test_both_apis_see_the_same_objects(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, container_base: str
) -> None:
    """What one API uploads the other finds; rows that it cannot carry out are skipped, and said."""
    suite: dict[str, Any] = copy.deepcopy(SUITE) | {"rounds": 1}
    suite["scenarios"]["o"]["container_base"] = container_base
    suite["rows"] = {"large": suite["rows"]["large"]}
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(suite))
    environment = {"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key}
    command = ("suite", path, "--workers", 1, "--results-dir", tmp_path / "results", "-v")
    run = fleet.master(*command, environment=environment)
    assert run.end(PATIENCE) == 0, run.err
    assert re.findall(r"Initial objects: (.*)", run.err) == [
        "8 uploaded, 0 replaced, 0 reused",
        "0 uploaded, 0 replaced, 8 reused",
    ]
    assert f"cleanup-containers --container-base {container_base}-\n" in run.err
    suite["rows"]["post"] = {"scenario": "o", "set": {"profile": {"post": 1}, "store": "s3"}}
    path.write_text(yaml.safe_dump(suite))
    run = fleet.master(*command, environment=environment)
    assert run.end(PATIENCE) == 0, run.err
    lacking = "not possible over the S3 API: post: the metadata of an object cannot be changed"
    assert "Skipped 1 of 3 (post): " in run.err
    assert f"Skipped: post: s3+{swift.address}: {lacking}" in " ".join(run.out.split())
    assert "3 rows, 2 runs" in run.out
    run = fleet.master(*command, "--rows", "post", environment=environment)
    assert run.end(PATIENCE) == 2
    assert lacking in run.err
    assert "Run 1 of" not in run.err


@pytest.mark.long
def test_features_are_compared_on_swifts_that_the_suite_starts(fleet: Fleet, tmp_path: Path) -> None:
    """Every feature works; no condition of the suite, that nothing fails, holds."""
    report, results = tmp_path / "report.json", tmp_path / "results"
    run = fleet.master(
        *("suite", "features", "-r", 1, "--rounds", 1, "--workers", 1, "--results-dir", results),
        *("--json", report, "--rows", "4kB get*", "--rows", "1MB put*", "--rows", "link*"),
    )
    assert run.end(10 * PATIENCE) == 0, run.err + run.out
    assert run.err.count("Starting a Swift") == 7
    assert "with policies slim:ec:2+1 on this machine" in run.err
    made = {each["name"]: each for each in valid(report.read_text(), "suite")["rows"]}
    assert len(made) == 18
    assert all(each["figures"]["rate"]["mean"] > 0 for each in made.values()), made
