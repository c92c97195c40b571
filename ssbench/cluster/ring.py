"""The servers of a cluster by its ring files, and the devices of partitions.

Swift's own code reads them, in a process of its own with bounded memory and time.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ssbench.base import own_processes
from ssbench.base.errors import UsageError
from ssbench.base.version import describe_install

_FILE_PATTERNS = ("object*.ring.gz", "container.ring.gz", "account.ring.gz")
_FILE_NAME = re.compile(r"(account|container|object)(?:-(\d{1,9}))?\.ring\.gz")
_PATIENCE_SECONDS = 60.0


class RingKind(NamedTuple):
    """What a ring is of: ``object`` servers with a storage policy (0 for others), and so on."""

    server: str
    policy: int


class RingReplica(NamedTuple):
    """Where the ring has a replica of a partition."""

    ip: str
    port: int
    device: str


def read_ring_servers(folder: Path) -> list[str]:
    """Return ``http://IP:PORT`` of each server in the ring files of a folder.

    Raises UsageError where the package ``swift`` is not installed, and where there is no ring file or one
    cannot be read.
    """
    option = "--recon-ring"
    _check_swift(option, "; or name the servers with --recon URL")
    paths = [path for pattern in _FILE_PATTERNS for path in sorted(folder.glob(pattern))]
    if not paths:
        raise UsageError(f"{option} {folder}: no ring file there (object.ring.gz, ...)")
    found: dict[str, None] = {}
    for ring in _read_ring_files(option, paths):
        found.update(
            (f"http://[{ip}]:{port}" if ":" in ip else f"http://{ip}:{port}", None)
            for ip, port in ring["servers"]
        )
    return list(found)


def parse_ring_kind(path: Path) -> RingKind:
    """Return what a ring file is of, by its name; raises ValueError for other names."""
    match = _FILE_NAME.fullmatch(path.name)
    if match is None:
        raise ValueError(
            f"{path}: expected object.ring.gz, object-1.ring.gz, container.ring.gz or account.ring.gz"
        )
    return RingKind(match[1], int(match[2] or 0))


def find_placed_replicas(
    paths: Sequence[Path], partitions: Mapping[RingKind, Sequence[int]]
) -> dict[RingKind, dict[int, list[RingReplica]]]:
    """Return the replicas of some partitions by the ring files that are given; raises UsageError.

    A partition that a ring does not have has none.
    """
    option = "--ring"
    _check_swift(option, "")
    kinds = [parse_ring_kind(path) for path in paths]
    asked = [list(partitions.get(one, ())) for one in kinds]
    return {
        one: {int(number): [RingReplica(*each) for each in found] for number, found in ring["placed"].items()}
        for one, ring in zip(kinds, _read_ring_files(option, paths, asked), strict=True)
    }


def _check_swift(option: str, instead: str) -> None:
    for package in ("swift", "eventlet"):
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            raise UsageError(
                f"{option} needs the package {package!r}:"
                f" {describe_install('swift eventlet', 'swift')}{instead}"
            ) from None


def _read_ring_files(option: str, paths: Sequence[Path], asked: object = None) -> list[dict[str, Any]]:
    """Have the reader say what is in some files; ``asked`` are partitions of each."""
    where = ", ".join(sorted({str(path.parent) for path in paths}))
    try:
        reader = subprocess.run(  # noqa: S603 - our own program
            [
                *own_processes.make_python_command("ssbench.cluster._read_rings"),
                *(str(path.resolve()) for path in paths),
            ],
            env=own_processes.make_child_environment(),
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"{option} {where}: not read in {_PATIENCE_SECONDS:g} s") from None
    lines = reader.stdout.splitlines()
    if reader.returncode or len(lines) != len(paths):
        reason = (reader.stderr.splitlines() or ["the reader ended"])[-1]
        raise UsageError(f"{option} {where}: {reason}")
    rings = []
    for path, line in zip(paths, lines, strict=True):
        ring = json.loads(line)
        if isinstance(ring, str):
            raise UsageError(f"{path}: not a ring file that this Swift can read: {ring}")
        rings.append(ring)
    return rings
