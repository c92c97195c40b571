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
from runs import INITIAL, outcome, results_so_far, store, wait_until, write_scenario

#: The results of the first operations find room on the disk, and are there before the others begin; together
#: they take 13 kB.
OPERATIONS = 1_500
FIRST = 200
READS = {"crud_profile": [0, 1, 0, 0], "operation_count": OPERATIONS, "user_count": 8}
MOST_BYTES = 8 * 1024


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
    """A folder on a file system of its own that 8 kB fill; skips where none can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={MOST_BYTES}", "ssbench-test", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True, timeout=60)


def test_a_disk_that_is_full_in_the_middle_of_a_run(tmp_path: Path, small_disk: Path) -> None:
    with store() as (rule, options), Fleet(small_disk) as fleet:
        rule.hold(INITIAL + FIRST)
        run = fleet.run(write_scenario(tmp_path, **READS), "--workers", 1, *options)
        wait_until(lambda: results_so_far(fleet.stats) >= FIRST, "the first results on the disk")
        rule.release()
        assert_run_to_its_end_and_said(run, fleet.stats, "No space left on device")


def test_a_file_that_may_not_grow_in_the_middle_of_a_run(fleet: Fleet, tmp_path: Path) -> None:
    with store() as (rule, options):
        rule.hold(INITIAL + FIRST)
        run = fleet.run(write_scenario(tmp_path, **READS), *options)
        run.wait_for("Waiting for workers")
        resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))
        fleet.worker(1)
        wait_until(lambda: results_so_far(fleet.stats) >= FIRST, "the first results on the disk")
        rule.release()
        assert_run_to_its_end_and_said(run, fleet.stats, "File too large")


def test_a_disk_that_stands_still_loses_nothing_when_it_goes_on(fleet: Fleet, tmp_path: Path) -> None:
    """The stat file is a pipe that nobody empties until all operations are done.

    A pipe is refused for a stat file, so this one comes in its place when the run has begun.
    """
    operations = 20_000
    # Of sizes at random: of what is always the same, a stat file takes next to nothing.
    sizes = [{"name": "tiny", "size_min": 100, "size_max": 100_000}]
    scenario = write_scenario(
        tmp_path, sizes=sizes, crud_profile=[1, 1, 1, 0], operation_count=operations, user_count=64
    )
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
        drainer.join(60)
        assert not drainer.is_alive()
    finally:
        with suppress(OSError):
            os.close(reader)
    found = outcome(written)
    assert found.count == operations
    assert found.summary is not None
