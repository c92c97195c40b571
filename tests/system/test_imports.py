"""What the programs load: nothing that a command does not need, because loading it is most of its time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from ssbench.cli import master
try:
    code = master.main(sys.argv[1:])
except SystemExit as exit:
    code = exit.code
assert not code
heavy = {"swiftclient", "keystoneauth1", "openstack", "requests", "urllib3", "rich", "gevent", "eventlet"}
sys.stderr.write("loaded: " + " ".join(sorted(heavy & set(sys.modules))))
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["run-scenario", "--help"],
        ["run-scenario", "-f", "very_small", "--noop", "--workers", "1", "-o", "10"],
        ["cleanup-containers", "--help"],
    ],
    ids=" ".join,
)
def test_only_what_is_needed_is_loaded(tmp_path: Path, arguments: list[str]) -> None:
    if "--noop" in arguments:
        arguments = [*arguments, "-s", str(tmp_path / "x.stat")]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stderr.splitlines()[-1] == "loaded: "
