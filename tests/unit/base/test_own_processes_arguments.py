"""Secrets in the command line of a process, as other users of the machine see it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ssbench.base.own_processes import make_child_environment

PROGRAM = """
import sys
from pathlib import Path
from ssbench.base.own_processes import hide_arguments
print(hide_arguments(["s3cr\u00e4t", "s", ""]))
print(*sys.argv[1:])
print(*Path("/proc/self/cmdline").read_text().split("\\0")[3:-1])
"""


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        (["-K", "s3cr\u00e4t"], ["-K", "xxxxxxx"]),
        (["-Ks3cr\u00e4t", "--key=s3cr\u00e4t"], ["-Kxxxxxxx", "--key=xxxxxxx"]),
        (["-vK", "s", "-vKs"], ["-vK", "x", "-vKx"]),
        # Ends that are none of the value.
        (["users", "results/s3cr\u00e4t", "http://hosts"], ["users", "results/s3cr\u00e4t", "http://hosts"]),
    ],
)
def test_a_secret_cannot_be_seen(given: list[str], seen: list[str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *given],
        env={**make_child_environment(), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    hidden, own, others = ran.stdout.splitlines()
    assert hidden == "True"
    assert own.split(" ") == given  # the program itself has it
    assert others.split(" ") == seen
