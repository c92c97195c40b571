"""The servers of a cluster by its ring files, and the devices of partitions.

Swift's own code, which brings eventlet, reads them in a process of its own with bounded memory and time:
``python -m ssbench.cluster.ring FILE...``. For each file it prints a line of JSON: an object with
``servers``, a list of [IP, port], or the reason why there is none. Its standard input is a list of JSON with
the partitions that are asked for of each file, or empty; of these ``placed`` has [IP, port, device] of each
replica.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ssbench.base import own_processes
from ssbench.base.errors import UsageError
from ssbench.base.untrusted import limit_this_process
from ssbench.base.version import check_swift_installed

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
    option = "--observe"
    check_swift_installed(option, "; or name the servers by their URLs")
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
    check_swift_installed(option)
    kinds = [parse_ring_kind(path) for path in paths]
    asked = [list(partitions.get(one, ())) for one in kinds]
    return {
        one: {int(number): [RingReplica(*each) for each in found] for number, found in ring["placed"].items()}
        for one, ring in zip(kinds, _read_ring_files(option, paths, asked), strict=True)
    }


def _read_ring_files(option: str, paths: Sequence[Path], asked: object = None) -> list[dict[str, Any]]:
    """Have the reader say what is in some files; ``asked`` are partitions of each."""
    where = ", ".join(sorted({str(path.parent) for path in paths}))
    try:
        reader = subprocess.run(  # noqa: S603 - our own program
            [
                *own_processes.make_python_command("ssbench.cluster.ring"),
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


# -- The process that reads them -------------------------------------------------------------------


#: Bytes of addresses and seconds of CPU: the rings of a cluster of thousands of devices take a small part.
_MAX_MEMORY_BYTES = 512 * 1024 * 1024
_MAX_CPU_SECONDS = 30
#: What a ring file begins with. Older ones are pickles, which a reader would run.
_MAGIC = b"R1NG"
_MAX_SERVERS = 10_000
_ADDRESS = re.compile(r"[0-9A-Za-z.:_-]{1,255}", re.ASCII)
_DEVICE = re.compile(r"[!-.0-~]{1,255}", re.ASCII)


def read_ring(path: str, partitions: Sequence[int]) -> dict[str, Any]:
    """Return address and port of each server of a ring, in order, and where some partitions are."""
    # Here, so that the limits hold already.
    from swift.common.ring import RingData  # noqa: PLC0415

    with gzip.open(path) as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("it is not a ring file, or one of a Swift older than 1.8")
    ring = RingData.load(path, metadata_only=not partitions)
    found = sorted({(str(device["ip"]), int(device["port"])) for device in ring.devs if device})
    if len(found) > _MAX_SERVERS:
        raise ValueError(f"more than {_MAX_SERVERS:,} servers")
    for address, port in found:
        if not _ADDRESS.fullmatch(address) or not 0 < port < 65536:
            raise ValueError(f"{address[:80]!r} with port {port} is no address of a server")
    return {"servers": found, "placed": {each: _find_replicas(ring, each) for each in partitions}}


def _find_replicas(ring: Any, partition: int) -> list[tuple[str, int, str]]:
    # The last replica may have fewer partitions.
    numbers = [row[partition] for row in ring._replica2part2dev_id if partition < len(row)]
    devices = [ring.devs[number] for number in numbers]
    for device in devices:
        if not _DEVICE.fullmatch(str(device["device"])):
            raise ValueError(f"{str(device['device'])[:80]!r} is no name of a device")
    return [(str(device["ip"]), int(device["port"]), str(device["device"])) for device in devices]


def main() -> None:
    """Run as the module's program."""
    limit_this_process(_MAX_MEMORY_BYTES, _MAX_CPU_SECONDS)
    paths = sys.argv[1:]
    asked = json.loads(sys.stdin.read() or "null") or [()] * len(paths)
    for path, partitions in zip(paths, asked, strict=True):
        try:
            line: object = read_ring(path, partitions)
        except MemoryError:
            line = f"it takes more than {_MAX_MEMORY_BYTES // 1024**2:,} MiB of memory"
        except Exception as error:  # noqa: BLE001 - a damaged file raises whatever the format's reader meets
            line = f"{type(error).__name__}: {error}"
        print(json.dumps(line))


if __name__ == "__main__":
    main()
