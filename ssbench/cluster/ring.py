"""The servers of a cluster by its ring files."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
from pathlib import Path

from ssbench import children
from ssbench.errors import UsageError

_PATTERNS = ("object*.ring.gz", "container.ring.gz", "account.ring.gz")
_PATIENCE = 60.0


def servers(folder: Path) -> list[str]:
    """Return ``http://IP:PORT`` of each server in the ring files of a folder.

    Swift's own code reads them, in a process of its own. Raises UsageError where the package ``swift`` is not
    installed, and where there is no ring file or one cannot be read.
    """
    for package in ("swift", "eventlet"):
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            raise UsageError(
                f"--recon-ring needs the package {package!r}: pip install swift eventlet; or name the servers"
                " with --recon URL"
            ) from None
    paths = [str(path.resolve()) for pattern in _PATTERNS for path in sorted(folder.glob(pattern))]
    if not paths:
        raise UsageError(f"--recon-ring {folder}: no ring file there (object.ring.gz, ...)")
    try:
        reader = subprocess.run(  # noqa: S603 - our own program
            [*children.command("ssbench.cluster._read_rings"), *paths],
            env=children.environment(),
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"--recon-ring {folder}: not read in {_PATIENCE:.0f} s") from None
    lines = reader.stdout.splitlines()
    if reader.returncode or len(lines) != len(paths):
        reason = (reader.stderr.splitlines() or ["the reader ended"])[-1]
        raise UsageError(f"--recon-ring {folder}: {reason}")
    found: dict[str, None] = {}
    for path, line in zip(paths, lines, strict=True):
        ring = json.loads(line)
        if isinstance(ring, str):
            raise UsageError(f"{path}: not a ring file that this Swift can read: {ring}")
        found.update(
            (f"http://[{ip}]:{port}" if ":" in ip else f"http://{ip}:{port}", None) for ip, port in ring
        )
    return list(found)
