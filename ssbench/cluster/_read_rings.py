"""Prints the servers of Swift's ring files: ``python -m ssbench.cluster._read_rings FILE...``.

A process of its own, because Swift brings eventlet. For each file it prints a line of JSON: a list of
[IP, port], or the reason why there is none.
"""

from __future__ import annotations

import json
import sys

from swift.common.ring import RingData


def servers(path: str) -> list[tuple[str, int]]:
    """Return address and port of each server of a ring, in order."""
    devices = RingData.load(path, metadata_only=True).devs
    return sorted({(device["ip"], device["port"]) for device in devices if device})


def main() -> None:
    """Run as the module's program."""
    for path in sys.argv[1:]:
        try:
            line: object = servers(path)
        except Exception as error:  # noqa: BLE001 - a damaged file raises whatever the format's reader meets
            line = f"{type(error).__name__}: {error}"
        print(json.dumps(line))


if __name__ == "__main__":
    main()
