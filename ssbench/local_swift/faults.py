"""Faults of the embedded Swift that are asked for: slow and failed devices, slow proxies.

The servers read what is to be slow from a file whenever it has changed. A failed device is one that is
not mounted: Swift itself then answers 507. It takes a folder for mounted that has a file ``.ismount``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from ssbench.errors import UsageError

#: Before the server's application sees the request; where the object is opened (by every method), for this
#: request alone or for the whole process; and where a written object is put in its place.
WHERE = ("request", "open", "block", "commit")

_SECONDS = {"ms": 0.001, "s": 1.0}


@dataclass(frozen=True, slots=True)
class Slow:
    """Delay a share of the requests to a device, a server or a proxy by ``delay`` seconds.

    Without ``where`` it is ``request`` for a proxy and ``open`` for anything else.
    """

    target: str
    delay: float
    share: float = 1.0
    where: str | None = None

    @classmethod
    def parse(cls, text: str) -> Slow:
        """Read ``TARGET:DELAY[:SHARE[:WHERE]]``, as in ``d3:30ms:0.33:open``; raises UsageError."""
        shape = r"([a-z0-9-]+):(\d+\.?\d*)(ms|s)(?::(\d*\.?\d+)(?::([a-z]+))?)?"
        found = re.fullmatch(shape, text)
        if not found:
            raise UsageError(
                f"slow {text!r}: expected TARGET:DELAY[:SHARE[:WHERE]], as in d3:30ms:0.33 or d3:1s:1:commit"
            )
        target, delay, unit, share, where = found.groups()
        slow = cls(target, float(delay) * _SECONDS[unit], float(share or 1), where)
        if not 0 < slow.share <= 1:
            raise UsageError(f"slow {text!r}: the share of requests is above 0 and at most 1")
        return slow


def write_slow(path: Path, slow: Iterable[Slow]) -> None:
    """Have the servers that read ``path`` be slow from their next request on; raises OSError."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps([asdict(each) for each in slow]))
    # Servers must not read half of it, and know by the new inode that it has changed.
    new.replace(path)


def set_mounted(device: Path, mounted: bool) -> None:
    """Let Swift take the device's folder for mounted or not; raises OSError."""
    stub = device / ".ismount"
    if mounted:
        stub.touch()
    else:
        stub.unlink(missing_ok=True)
