"""Whole runs whose stat file cannot be written any more, or not now: the run goes on all the same."""

from __future__ import annotations

import fcntl
import os
import re
import resource
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from processes import Fleet, Program
from runs import outcome, results_so_far, wait_until, write_scenario

OPERATIONS = 100_000
READS = {"crud_profile": [0, 1, 0, 0], "operation_count": OPERATIONS, "user_count": 64}


def operations_done(run: Program) -> int:
    """How many results have shown on standard error, where each is a character."""
    return sum(len(line) for line in run.err.splitlines() if not line.strip("._oO*|^@X"))


def assert_run_to_its_end_and_said(run: Program, path: Path, reason: str) -> None:
    assert run.end() == 1, run.err
    assert "Traceback" not in run.err
    said = re.search(rf"WARNING:(\d+) results could not be written to {re.escape(str(path))}: (.+)", run.err)
    assert said, run.err
    lost = int(said[1])
    assert said[2] == reason
    assert operations_done(run) == OPERATIONS
    found = outcome(path)
    assert 0 < lost < OPERATIONS
    assert found.count == OPERATIONS - lost
    assert f"Count: {found.count:5d} " in run.out
    assert f"results that could not be written to the stat file: {lost:,}" in run.out
    assert found.summary is not None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of its own that 64 kB fill; skips where none can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "ssbench-test", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=10)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True, timeout=10)


def test_a_disk_that_is_full_in_the_middle_of_a_run(tmp_path: Path, small_disk: Path) -> None:
    with Fleet(small_disk) as fleet:
        run = fleet.run(write_scenario(tmp_path, **READS), "--noop", "--workers", 1)
        assert_run_to_its_end_and_said(run, fleet.stats, "No space left on device")


def test_a_file_that_may_not_grow_in_the_middle_of_a_run(fleet: Fleet, tmp_path: Path) -> None:
    run = fleet.run(write_scenario(tmp_path, **READS), "--noop", "--workers", 1)
    wait_until(lambda: results_so_far(fleet.stats), "the first results")
    most = fleet.stats.stat().st_size + 2000
    resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, (most, most))
    assert_run_to_its_end_and_said(run, fleet.stats, "File too large")


def test_a_disk_that_stands_still_loses_nothing_when_it_goes_on(fleet: Fleet, tmp_path: Path) -> None:
    """The stat file is a pipe that nobody empties until all operations are done.

    A pipe is refused for a stat file, so this one comes in its place when the run has begun.
    """
    operations = 20_000
    scenario = write_scenario(tmp_path, **READS | {"operation_count": operations})
    run = fleet.run(scenario, "--noop", "--no-default-report")
    run.wait_for("Waiting for workers")
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    path.rename(fleet.stats)
    written = tmp_path / "written.stat.gz"

    def drain() -> None:
        os.set_blocking(reader, True)
        with written.open("wb") as out:
            while data := os.read(reader, 65536):
                out.write(data)

    try:
        fleet.worker(1)
        waiting = int(run.wait_for(r"waiting for the disk: (\d+) results to be written")[1])
        assert waiting > 0
        assert operations_done(run) == operations
        drainer = threading.Thread(target=drain)
        drainer.start()
        assert run.end() == 0, run.err
        drainer.join(10)
        assert not drainer.is_alive()
    finally:
        with suppress(OSError):
            os.close(reader)
    found = outcome(written)
    assert found.count == operations
    assert found.summary is not None
