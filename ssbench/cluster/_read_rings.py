"""Prints the servers of Swift's ring files: ``python -m ssbench.cluster._read_rings FILE...``.

A process of its own, because Swift brings eventlet. For each file it prints a line of JSON: a list of
[IP, port], or the reason why there is none.
"""

from __future__ import annotations

import gzip
import json
import re
import sys

from ssbench.untrusted import limit_this_process

#: Bytes of addresses and seconds of CPU: the rings of a cluster of thousands of devices take a small part.
_MEMORY = 512 * 1024 * 1024
_CPU_SECONDS = 30
#: What a ring file begins with. Older ones are pickles, which a reader would run.
_MAGIC = b"R1NG"
_MOST_SERVERS = 10_000
_ADDRESS = re.compile(r"[0-9A-Za-z.:_-]{1,255}", re.ASCII)


def servers(path: str) -> list[tuple[str, int]]:
    """Return address and port of each server of a ring, in order."""
    # Here, so that the limits hold already.
    from swift.common.ring import RingData  # noqa: PLC0415

    with gzip.open(path) as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("it is not a ring file, or one of a Swift older than 1.8")
    devices = RingData.load(path, metadata_only=True).devs
    found = sorted({(str(device["ip"]), int(device["port"])) for device in devices if device})
    if len(found) > _MOST_SERVERS:
        raise ValueError(f"more than {_MOST_SERVERS:,} servers")
    for address, port in found:
        if not _ADDRESS.fullmatch(address) or not 0 < port < 65536:
            raise ValueError(f"{address[:80]!r} with port {port} is no address of a server")
    return found


def main() -> None:
    """Run as the module's program."""
    limit_this_process(_MEMORY, _CPU_SECONDS)
    for path in sys.argv[1:]:
        try:
            line: object = servers(path)
        except MemoryError:
            line = f"it takes more than {_MEMORY // 1024**2:,} MiB of memory"
        except Exception as error:  # noqa: BLE001 - a damaged file raises whatever the format's reader meets
            line = f"{type(error).__name__}: {error}"
        print(json.dumps(line))


if __name__ == "__main__":
    main()
