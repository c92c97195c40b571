"""Releases of Swift, one of each half year, as ``--local-swift=VERSION`` serves them.

Each is installed into the user's cache. ``pytest -rA`` shows the rows of the table in doc/local-swift.rst.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from runs import wait_until

from ssbench.local_swift import Layout, LocalSwift
from ssbench.results.reading import open_results
from ssbench.statistics.summary import summarize

#: The last release of each half year, and the newest one.
RELEASES = (
    *("2.29.2", "2.30.1", "2.31.1", "2.32.1", "2.33.1", "2.34.2", "2.35.5", "2.36.4", "2.37.4"),
    "2.38.3",
)
SIZES = [{"name": "small", "size_min": 1000, "size_max": 20_000}]
OPERATIONS = 60


@pytest.fixture(scope="module", params=RELEASES)
def swift(request: pytest.FixtureRequest) -> Iterator[LocalSwift]:
    layout = Layout(object_servers=3, devices=3, access_logs=True)
    with LocalSwift(release=request.param, policies=["gold", "slim:ec:2+1"], layout=layout) as running:
        assert running.version == request.param
        yield running


def call(*words: object) -> None:
    """Run ssbench as users do, in a process of its own."""
    command = [sys.executable, "-P", "-m", "ssbench.cli.master", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def carry_out(swift: LocalSwift, folder: Path, url: str | None = None, **scenario: Any) -> Path:
    """Run a scenario; return its stat file. Every operation has to succeed."""
    file, stats = folder / "scenario.yaml", folder / "run.stat.gz"
    content = {"name": "release", "sizes": SIZES, "initial_files": {"small": 10}, "user_count": 2}
    content |= {"operation_count": OPERATIONS, "container_count": 2, "crud_profile": [3, 4, 2, 1]}
    file.write_text(yaml.safe_dump({**content, **scenario}))
    words = ["-A", swift.auth_url, "-U", swift.user, "-K", swift.key]
    words += [] if url is None else ["-S", url]
    call("run-scenario", "-f", file, "-s", stats, "--workers", 1, "-R", "--verify", *words)
    statistics = summarize(open_results(stats))
    assert statistics.total.lines[0].count == scenario.get("operation_count", OPERATIONS)
    return stats


def test_objects_are_written_read_and_deleted_and_the_logs_tell_of_each(
    swift: LocalSwift, tmp_path: Path
) -> None:
    stats, found = carry_out(swift, tmp_path, policy="gold"), tmp_path / "found.json"

    def complete() -> bool:
        call("attribute", "-s", stats, "--swift-logs", swift.log_directory, "--json", found, "--force")
        return bool(json.loads(found.read_text())["coverage"]["complete"] == OPERATIONS)

    # A server writes its line when it has answered: the last ones may come after the run's end.
    wait_until(complete, "the last lines of the logs")


def test_objects_have_erasure_coding(swift: LocalSwift, tmp_path: Path) -> None:
    carry_out(swift, tmp_path, policy="slim")


def test_objects_have_segments(swift: LocalSwift, tmp_path: Path) -> None:
    sizes = [{"name": "small", "size_min": 30_000, "size_max": 30_000, "segment_size": 10_000}]
    carry_out(swift, tmp_path, sizes=sizes, operation_count=20)


def test_objects_are_reached_over_s3(swift: LocalSwift, tmp_path: Path) -> None:
    carry_out(swift, tmp_path, f"s3+{swift.address}", container_base="release-")


def test_a_setting_and_a_filter_are_heeded(swift: LocalSwift) -> None:
    """In a Swift of its own."""
    settings = ["swift:swift-constraints:max_file_size=1000"]
    with LocalSwift(release=swift.version, swift_settings=settings, swift_filters=["encryption"]) as other:
        done = subprocess.run(
            [sys.executable, "-c", _PUT, other.auth_url, other.user, other.key],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stdout == "201 413\n", done.stderr
        [file] = other.directory.rglob("*.data")
        assert b"in plain text" not in file.read_bytes()


_PUT = """
import sys, requests
auth, user, key = sys.argv[1:]
found = requests.get(auth, headers={"X-Auth-User": user, "X-Auth-Key": key}).headers
url, headers = found["X-Storage-Url"], {"X-Auth-Token": found["X-Auth-Token"]}
requests.put(f"{url}/c", headers=headers).raise_for_status()
put = lambda body: requests.put(f"{url}/c/o", headers=headers, data=body).status_code
print(put(b"in plain text"), put(b"x" * 1001))
"""
