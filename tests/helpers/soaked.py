"""Runs ``bench/soak.py`` to its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

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
