"""The programs of doc/api.rst, against a real Swift."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "python"


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "XDG_STATE_HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=220,  # of pytest it has 240
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_store_can_be_tested_with_pytest(tmp_path: Path) -> None:
    said = run(
        tmp_path,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        f"{EXAMPLES}/test_store.py",
    )
    assert "1 passed" in said


def test_several_runs_share_what_they_need(tmp_path: Path) -> None:
    *steps, conclusion = run(tmp_path, str(EXAMPLES / "sweep.py")).splitlines()
    assert [re.sub(r"\d+/s|[\d.]+ ms", "N", line) for line in steps] == [
        f"{n} users: N p50 N" for n in (2, 8)
    ]
    assert "users" in conclusion


def test_results_can_be_followed(tmp_path: Path) -> None:
    *blocks, last = run(tmp_path, str(EXAMPLES / "follow.py")).splitlines()
    assert sum(int(line.split()[0]) for line in blocks) == 200
    assert all(line.endswith("operations, 0 errors") for line in blocks)
    assert re.match(r"slowest [\d.]+ s; \w+: .*\.stat\.gz$", last), last
