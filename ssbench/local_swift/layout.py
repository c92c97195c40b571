"""What an embedded Swift consists of: replicas, devices, servers, policies; and which are slow or failed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ssbench.base.errors import UsageError

LISTINGS_SERVER = "listings"  # the process of the account and the container server
PROXY_SERVER = "proxy"

#: Before the server's application sees the request; where the object is opened (by every method), for this
#: request alone or for the whole process; and where a written object is put in its place.
DELAY_POINTS = ("request", "open", "block", "commit")

_UNIT_SECONDS = {"ms": 0.001, "s": 1.0}


@dataclass(frozen=True, slots=True)
class Policy:
    """A storage policy: replicas, or ``data`` + ``parity`` fragments where ``data`` is not 0."""

    name: str
    data: int = 0
    parity: int = 0

    @classmethod
    def parse(cls, text: str) -> Policy:
        """Read ``NAME`` or ``NAME:ec:DATA+PARITY``; raises UsageError."""
        name, colon, kind = text.partition(":")
        if not re.fullmatch(r"[A-Za-z0-9-]+", name):
            raise UsageError(f"storage policy {name!r}: expected letters, digits and hyphens")
        if not colon:
            return cls(name)
        fragments = re.fullmatch(r"ec:([1-9]\d?)\+([1-9]\d?)", kind)
        if not fragments:
            raise UsageError(
                f"storage policy {text!r}: expected NAME or NAME:ec:DATA+PARITY, as in slim:ec:2+1"
            )
        return cls(name, int(fragments[1]), int(fragments[2]))


@dataclass(frozen=True, slots=True)
class Layout:
    """How many servers and devices there are, and whether the servers log every request.

    Device ``d1`` belongs to the first object server, ``d2`` to the second, and so on, round about.
    Without ``devices`` there are as many as the servers and policies need.
    """

    replicas: int = 1
    devices: int | None = None
    object_servers: int = 1
    proxies: int = 1
    access_logs: bool = False

    def resolved(self, policies: Sequence[Policy]) -> Layout:
        """Return it with the number of devices; raises UsageError where they are too few."""
        needs = {
            f"{self.object_servers} object servers need": self.object_servers,
            f"{self.replicas} replicas need": self.replicas,
        }
        needs |= {
            f"storage policy {policy.name!r} ({policy.data}+{policy.parity}) needs": policy.data
            + policy.parity
            for policy in policies
            if policy.data
        }
        if self.devices is None:
            return replace(self, devices=max(needs.values()))
        for who, number in needs.items():
            if number > self.devices:
                raise UsageError(f"{who} at least {number} devices, not {self.devices}")
        return self

    @property
    def proxy_names(self) -> list[str]:
        """Names of the proxies' processes: ``proxy``, or ``proxy-1`` on where there are several."""
        return (
            [PROXY_SERVER]
            if self.proxies == 1
            else [f"{PROXY_SERVER}-{index + 1}" for index in range(self.proxies)]
        )

    @property
    def object_names(self) -> list[str]:
        """Names of the object servers' processes: ``object-1`` on."""
        return [f"object-{index + 1}" for index in range(self.object_servers)]

    @property
    def device_owners(self) -> dict[str, str]:
        """The object server of each device, both by name."""
        names = self.object_names
        return {f"d{index + 1}": names[index % len(names)] for index in range(self.devices or 0)}


@dataclass(frozen=True, slots=True)
class SlowTarget:
    """Delay a share of the requests to a device, a server or a proxy by ``delay`` seconds.

    Without ``where`` it is ``request`` for a proxy and ``open`` for anything else.
    """

    target: str
    delay: float
    share: float = 1.0
    where: str | None = None

    @classmethod
    def parse(cls, text: str) -> SlowTarget:
        """Read ``TARGET:DELAY[:SHARE[:WHERE]]``, as in ``d3:30ms:0.33:open``; raises UsageError."""
        shape = r"([a-z0-9-]+):(\d+\.?\d*)(ms|s)(?::(\d*\.?\d+)(?::([a-z]+))?)?"
        found = re.fullmatch(shape, text)
        if not found:
            raise UsageError(
                f"slow {text!r}: expected TARGET:DELAY[:SHARE[:WHERE]], as in d3:30ms:0.33 or d3:1s:1:commit"
            )
        target, delay, unit, share, where = found.groups()
        slow = cls(target, float(delay) * _UNIT_SECONDS[unit], float(share or 1), where)
        if not 0 < slow.share <= 1:
            raise UsageError(f"slow {text!r}: the share of requests is above 0 and at most 1")
        return slow


def write_slow_targets(path: Path, slow: Iterable[SlowTarget]) -> None:
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
