"""The whole program under faults at random, for twelve seconds; ``bench/soak.py`` goes on for longer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "bench" / "soak.py"


@pytest.mark.timeout(400)
def test_twelve_seconds_of_faults_lose_nothing_and_leak_nothing(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(SOAK), "--seconds=12", "--seed=5", "--json", str(figures)]
    soak = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )
    try:
        said, _ = soak.communicate(timeout=380)
    finally:
        # Its masters and workers are of its group; the servers of its Swift end with it.
        if soak.poll() is None:
            os.killpg(soak.pid, signal.SIGKILL)
        soak.wait()
    assert soak.returncode == 0, said
    assert said.rstrip().endswith("Verdict: all is well")
    found = json.loads(figures.read_text())["figures"]
    assert found["workers killed and started"] > 0
    assert found["workers stopped and continued"] > 0
    assert found["proxy restarted"] > 0
    assert found["work ports blocked"] > 0
    assert found["links dropped for 2 s"] > 0
    assert found["results after the reader left"] > 0
    assert "gave up without Swift after" in found
    assert found["results"] > 10
