"""What tests of the recipes need: programs that are not there are named, with how to get them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"


def need(packages: str, *programs: str) -> None:
    """Skip the test where a program is not there."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin", "/sbin"])
    for program in programs:
        if shutil.which(program, path=path) is None:
            pytest.skip(f"{program} is not installed: {packages}")


def environment(**more: str) -> dict[str, str]:
    """An environment in which the commands of ssbench under test come first."""
    folders = [str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin", "/sbin"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SSBENCH"))}
    return {**kept, "PATH": os.pathsep.join(folders), **more}
