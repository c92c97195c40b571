"""Renew constraints.txt and pylock.toml: ``tox -e lock``, with ``-- --upgrade`` for newer versions.

Both have every dependency, its own ones included, for every supported Python.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# What every dependency was when the tests last passed; pip install -c constraints.txt\n"
COMPILE = ["uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "pyproject.toml"]


def main() -> None:
    """Renew both files; without ``--upgrade`` a version changes only where it must."""
    more = sys.argv[1:]
    tested = ["--all-extras", "--group", "test", "--group", "lint", "-"]
    run([*COMPILE, *tested, "--no-annotate", "--no-header", "-o", "constraints.txt", *more], "tox\n")
    constraints = ROOT / "constraints.txt"
    constraints.write_text(HEADER + constraints.read_text())
    installed = ["--extra", "html", "--extra", "parquet", "--extra", "openstack", "-c", "constraints.txt"]
    run(
        [
            *COMPILE,
            *installed,
            "--format",
            "pylock.toml",
            "--custom-compile-command",
            "tox -e lock",
            "-o",
            "pylock.toml",
        ]
    )


def run(command: list[str], text: str = "") -> None:
    """Run ``command`` at the top of the repository; its fault ends this program."""
    if subprocess.run(command, cwd=ROOT, input=text, text=True, check=False).returncode:
        raise SystemExit(f"failed: {' '.join(command)}")


if __name__ == "__main__":
    main()
