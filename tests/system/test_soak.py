"""The whole program under faults at random, for some seconds; ``bench/soak.py`` goes on for longer.

The seed is that of the faults: ``python bench/soak.py --seed 5 --seconds 12`` has them again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SOAK = Path(__file__).parents[2] / "bench" / "soak.py"


def soak(folder: Path, *options: str) -> dict[str, Any]:
    """Run it to its end, and return its figures."""
    figures = folder / "figures.json"
    process = subprocess.Popen(
        [sys.executable, str(SOAK), *options, "--json", str(figures)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )
    try:
        said, _ = process.communicate(timeout=380)
    finally:
        # Its masters and workers are of its group; the servers of its Swift end with it.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == 0, said
    assert said.rstrip().endswith("Verdict: all is well")
    found: dict[str, Any] = json.loads(figures.read_text())["figures"]
    return found


@pytest.mark.timeout(400)
def test_twelve_seconds_of_faults_lose_nothing_and_leak_nothing(tmp_path: Path) -> None:
    found = soak(tmp_path, "--seconds=12", "--seed=5")
    assert found["workers killed and started"] > 0
    assert found["workers stopped and continued"] > 0
    assert found["proxy restarted"] > 0
    assert found["work ports blocked"] > 0
    assert found["links dropped for 2 s"] > 0
    assert found["results after the reader left"] > 0
    assert "gave up without Swift after" in found
    # How many there are depends on how busy the machine is: it is seconds under faults.
    assert found["results"] > 0


@pytest.mark.timeout(400)
def test_what_a_store_did_under_faults_is_what_the_run_says_of_it(tmp_path: Path) -> None:
    """Workers are killed, stopped and cut off, links in one direction too, and the store fails at times."""
    found = soak(tmp_path, "--planted", "--seconds=14", "--seed=1")
    assert found["workers killed and started"] > 0
    assert found["workers stopped and continued"] > 0
    assert found["links cut in one direction"] > 0
    assert found["requests in the log of the store"] > 100
