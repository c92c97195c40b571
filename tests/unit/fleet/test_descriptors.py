"""How many descriptors there must be, and who may have them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ssbench.base.errors import ExitCode
from ssbench.fleet.descriptors import MIN_DESCRIPTORS, count_descriptors, share_descriptors


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
    ("limit", "workers"), [(64, 5), (128, 24), (1024, 220), (4096, 892), (16_384, 3580), (1 << 20, 4352)]
)
def test_connections_of_workers_leave_room_for_all_else(limit: int, workers: int) -> None:
    used = 32
    limits = share_descriptors(limit, used)
    assert (limits.descriptors, limits.relayed) == (limit, workers)
    # Of the process that relays, with two for a connection; and of the master, with one.
    assert 2 * 2 * limits.relayed + limit // 8 <= limits.ends == limit - 16
    assert 2 * limits.relayed + used + min(128, limit // 3) <= limit


def test_descriptors_are_counted() -> None:
    before = count_descriptors()
    with Path("/dev/null").open():
        assert count_descriptors() == before + 1
