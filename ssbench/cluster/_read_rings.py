"""Prints what is in Swift's ring files: ``python -m ssbench.cluster._read_rings FILE...``.

A process of its own, because Swift brings eventlet. For each file it prints a line of JSON: an object with
``servers``, a list of [IP, port], or the reason why there is none. Its standard input is a list of JSON with
the partitions that are asked for of each file, or empty; of these ``placed`` has [IP, port, device] of each
replica.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Sequence
from typing import Any

from ssbench.base.untrusted import limit_this_process

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
