"""How many descriptors are free: with the real ones of this process, under a limit of its own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ssbench.base.errors import ExitCode
from ssbench.fleet.descriptors import MIN_DESCRIPTORS, Descriptors, reserved_descriptors

OPEN = Path("/proc/self/fd")


@pytest.fixture
def descriptors() -> Iterator[Descriptors]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    made = Descriptors()
    # Only the soft limit: the hard one could not be raised again.
    used = max(int(each.name) for each in OPEN.iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 200, before[1]))
    try:
        yield made
    finally:
        made.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("program", [["ssbench.cli.worker", "1"], ["ssbench.cli.master", "kill-workers"]])
@pytest.mark.parametrize("limit", [20, 32, MIN_DESCRIPTORS - 1])
def test_too_few_are_said_in_one_line(program: list[str], limit: int) -> None:
    command = 'ulimit -n "$0" && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", command, str(limit), sys.executable, "-m", *program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == ExitCode.USAGE
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith(
        f"ERROR:this process may have no more than {limit} files and connections open, and"
        f" needs {MIN_DESCRIPTORS} at"
        " least: raise the limit (ulimit -n)\n"
    )


@pytest.mark.parametrize(
    ("limit", "waiting"), [(64, 0), (1024, 52), (9000, 1113), (16_384, 3828), (20_000, 4096), (1 << 20, 4096)]
)
def test_as_many_connections_may_wait_as_a_whole_fleet_leaves_room_for(limit: int, waiting: int) -> None:
    assert max(0, (reserved_descriptors(limit) - 24) // 2) == waiting
    assert reserved_descriptors(limit) < limit / 2
    if limit >= 16_384:
        assert limit - reserved_descriptors(limit) > 2 * 4096


def use_all() -> list[int]:
    taken = []
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return taken


def test_what_is_reserved_is_there_when_all_others_are_used(descriptors: Descriptors) -> None:
    assert not descriptors.scarce()
    open_before = len(list(OPEN.iterdir()))
    assert not descriptors.scarce()
    assert len(list(OPEN.iterdir())) == open_before
    taken = use_all()
    try:
        assert descriptors.scarce()
        descriptors.release()
        assert not descriptors.scarce()
        # Others have to be free, besides the reserved ones, before those are held again.
        assert not descriptors.hold()
        for _ in range(20):
            os.close(taken.pop())
        assert descriptors.hold()
    finally:
        for each in taken:
            os.close(each)
    assert not descriptors.scarce()
