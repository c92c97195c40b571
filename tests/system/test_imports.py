"""What the programs load: nothing that a command does not need, because loading it is most of its time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ssbench.cli import master

PROGRAM = """
import sys
from ssbench.cli import master
try:
    code = master.main(sys.argv[1:])
except SystemExit as exit:
    code = exit.code
assert not code
sys.stderr.write("loaded: " + " ".join(sorted(set(sys.modules))))
"""

#: What a run without Swift does without, and what the help of a command does without besides.
FOR_SWIFT = {"swiftclient", "keystoneauth1", "openstack", "requests", "urllib3", "rich", "gevent", "eventlet"}
FOR_RUNS = {"numpy", "yaml", "msgspec", "msgpack", "zmq", "isal", "asyncio", "ssl"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["run-scenario", "-f", "very_small", "--noop", "--workers", "1", "-o", "10"],
        *([command, "--help"] for command in master.COMMANDS),
    ],
    ids=" ".join,
)
def test_only_what_is_needed_is_loaded(tmp_path: Path, arguments: list[str]) -> None:
    if "--noop" in arguments:
        arguments = [*arguments, "-s", str(tmp_path / "x.stat")]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    loaded = set(run.stderr.splitlines()[-1].removeprefix("loaded: ").split())
    assert {"sys", "argparse"} < loaded
    assert not loaded & (FOR_SWIFT if "--noop" in arguments else FOR_SWIFT | FOR_RUNS)
