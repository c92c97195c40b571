"""What people did with ssbench 0.x: their scripts and command lines, word for word."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ssbench.local_swift import LocalSwift

CASES = Path(__file__).parents[1] / "data" / "cases"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with the programs of these tests by their names."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("master", "worker"):
        script = folder / f"ssbench-{name}"
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ssbench.cli.{name} "$@"\n')
        script.chmod(0o755)
    return folder


def call_shell(lines: str, folder: Path, programs: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-ec", lines],
        cwd=folder,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_script_that_reads_the_report_finds_its_figures(
    tmp_path: Path, programs: Path, swift_environment: LocalSwift
) -> None:
    """Its loop went on for ever where the rate was empty."""
    parse = shlex.quote(str(CASES / "02-scripts-of-0.x" / "parse.sh"))
    lines = f"""
ssbench-master run-scenario -f smoke -o 60 --workers 1 -s temp/pcreate.stat | tee temp.run
ssbench-master report-scenario -s temp/pcreate.stat.gz -f temp/pcreate.report
sh {parse} temp.run
sh {parse} temp/pcreate.report
"""
    done = call_shell(lines, tmp_path, programs)
    assert done.returncode == 0, done.stderr
    of_run, of_report = done.stdout.splitlines()[-2:]
    assert of_run == of_report
    assert re.fullmatch(r"total=\d+\.\d lastbyte=\d+\.\d{3} workers=1", of_report)
