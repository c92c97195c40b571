"""The run of the tests has what a user has."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from privileges import KEEP_VARIABLE, is_privileged

HELPERS = Path(__file__).parents[2] / "helpers"

#: Says what it is, and whether it may write a file that its owner may not, as root may.
ATTEMPTS = """
import os, pathlib, privileges, socket, subprocess, sys
print(privileges.drop_privileges())
print(privileges.is_privileged(), os.geteuid())
grep = ["grep", "CapEff", "/proc/self/status"]
print(subprocess.run(grep, capture_output=True, text=True).stdout.split()[1])
file = pathlib.Path(sys.argv[1])
file.touch()
file.chmod(0o400)
print(os.access(file, os.W_OK))
"""


def attempt(tmp_path: Path, keep: str) -> list[str]:
    ended = subprocess.run(
        [sys.executable, "-c", ATTEMPTS, tmp_path / "file"],
        env={**os.environ, "PYTHONPATH": str(HELPERS), KEEP_VARIABLE: keep},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return ended.stdout.splitlines()


@pytest.mark.skipif(os.environ.get(KEEP_VARIABLE) == "keep", reason="they are kept")
def test_this_run_has_no_privileges(tmp_path: Path) -> None:
    assert not is_privileged()
    file = tmp_path / "file"
    file.touch()
    file.chmod(0o400)
    with pytest.raises(PermissionError):
        file.open("w")
    with socket.socket() as sock, pytest.raises(PermissionError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, 1)


@pytest.mark.privileged("only root can drop them")
def test_root_drops_its_capabilities_for_its_children_too(tmp_path: Path) -> None:
    what, state, of_a_child, writes = attempt(tmp_path, "drop")
    assert what.endswith("without capabilities (begun as root)")
    assert state.startswith("False ")
    assert int(of_a_child, 16) == 0
    assert writes == "False"


@pytest.mark.privileged("only root can keep them")
def test_they_are_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    what, state, of_a_child, writes = attempt(tmp_path, "keep")
    assert what.startswith("kept")
    assert state == "True 0"
    assert int(of_a_child, 16)
    assert writes == "True"


def test_a_user_stays_as_it_is(tmp_path: Path) -> None:
    if is_privileged():
        pytest.skip("this run is root's")
    what, state, *_ = attempt(tmp_path, "drop")
    assert what == f"user {os.geteuid()} without capabilities"
    assert state == f"False {os.geteuid()}"
