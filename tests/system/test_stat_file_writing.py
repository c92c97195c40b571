"""Processes that are killed, or find no room, while they write a stat file: what was written can be read."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ssbench.results.reading import open_results
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.scenario.model import Scenario, SizeClass

#: Where a child process finds this module and the helpers.
FOLDERS = (Path(__file__).parent, Path(__file__).parents[1] / "helpers")
RUN = RunDescription(
    Scenario("writing", (SizeClass("tiny", 1, 2, 3, (1, 2, 3, 4)),), user_count=4, operation_count=300_000),
    version="1.0",
    host="box",
    started=1.7e9,
)
SUMMARY = RunSummary(ended=1.7e9 + 2)

START = """
import os, resource, signal, sys, time
from pathlib import Path
import numpy as np
path = Path(sys.argv[1])
sys.path[:0] = sys.argv[2:]
from dataclasses import replace
from isal import isal_zlib
from result_rows import CLUSTER, many
from test_stat_file_writing import RUN, SUMMARY
from ssbench.results import current
from ssbench.results.writer import RunResultsWriter
from ssbench.results.current import MAX_BLOCK_ROWS as MAX_ROWS

def wait(writer):
    while writer._waiting:
        time.sleep(0.01)

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
"""

KILLED = """
writer = RunResultsWriter(path, RUN)
writer.add(many(range(70_000)))
wait(writer)
writer.add(many(range(70_000, 70_010)))
os.kill(os.getpid(), signal.SIGKILL)
"""

NO_ROOM = """
for room in (None, 5):
    writer = RunResultsWriter(path, RUN)
    for first in range(2):
        writer.add(many(range(first * MAX_ROWS, (first + 1) * MAX_ROWS)))
        wait(writer)
    if room is None:
        most = path.stat().st_size + 5
    writer.end(SUMMARY)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
print(writer.results_lost, MAX_ROWS, writer.failure.strerror)
"""

NO_ROOM_FOR_CLUSTER = """
writer = RunResultsWriter(path, RUN)
writer.add(many(range(1)))
wait(writer)
room = len(isal_zlib.compress(current.encode_cluster(CLUSTER), 1, 31)) + 5
most = path.stat().st_size + (1000 if NONE else room)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
writer.end(replace(SUMMARY, cluster=CLUSTER))
"""

FULL = """
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
writer = RunResultsWriter(path, RUN)
for first in range(0, 300_000, 1000):
    numbers = range(first, first + 1000)
    writer.add(many(numbers, last_byte=np.array(numbers) ** 2 % 999983 / 1e6))
writer.end(SUMMARY)
print(writer.results_lost, writer.failure.strerror)
"""


def carry_out(program: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", START + program, str(path), *map(str, FOLDERS)]
    return subprocess.run(command, check=False, timeout=60, capture_output=True, text=True)


def read(path: Path) -> tuple[list[int], list[str]]:
    """The numbers of the objects, and the warnings."""
    results = open_results(path)
    found = [number for block in results.blocks() for number in block.object.tolist()]
    return found, results.warnings


def test_a_killed_writer_leaves_its_whole_blocks(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    process = carry_out(KILLED, path)
    assert process.returncode == -signal.SIGKILL, process.stderr
    numbers, warnings = read(path)
    assert numbers in (list(range(70_000)), list(range(70_010)))
    assert len(warnings) == 1


def test_a_disk_with_no_room_for_the_summary_loses_the_last_block_and_says_so(tmp_path: Path) -> None:
    """Which is what a full disk came to whenever the last block that found room left next to none."""
    path = tmp_path / "run.stat.gz"
    process = carry_out(NO_ROOM, path)
    assert process.stderr == ""
    lost, block, reason = process.stdout.strip().split(maxsplit=2)
    assert reason == "File too large"
    assert lost == block
    numbers, warnings = read(path)
    assert numbers == list(range(int(block)))
    assert any(f"could not be written to the stat file: {int(lost):,}" in warning for warning in warnings)


@pytest.mark.parametrize("none", [True, False], ids=["none", "but not for the summary too"])
def test_a_disk_with_no_room_for_what_was_seen_of_the_cluster(none: bool, tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    process = carry_out(f"NONE = {none}\n{NO_ROOM_FOR_CLUSTER}", path)
    assert process.returncode == 0, process.stderr
    results = open_results(path)
    assert [block.object.tolist() for block in results.blocks()] == [[0]]  # no result makes room for it
    assert results.summary is not None
    assert results.summary.cluster is None
    assert "what was seen of the cluster could not be written to the stat file" in results.warnings


def test_a_full_disk_ends_no_run_and_the_file_is_readable_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    process = carry_out(FULL, path)
    assert process.stderr == ""
    lost, reason = process.stdout.strip().split(maxsplit=1)
    assert reason == "File too large"
    numbers, warnings = read(path)
    assert numbers == list(range(300_000 - int(lost)))
    assert int(lost) > 0
    assert any(f"could not be written to the stat file: {int(lost):,}" in warning for warning in warnings)
