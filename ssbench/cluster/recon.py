"""From the answers of Swift's recon middleware, and of a proxy's ``/info``, to records.

What is missing, null or of another shape than Swift's becomes None: servers of many versions are asked, and
whoever answers may be no Swift at all. https://docs.openstack.org/swift/latest/admin_guide.html lists what
recon tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from ssbench.results.observation import Disk, Proxy, State

#: What is asked in each round, and what is asked besides before and after the run.
EACH_ROUND_PATHS = ("load", "async", "sockstat", "diskusage")
BOTH_ENDS_PATHS = (
    "version",
    "time",
    "devices",
    "quarantined",
    "replication/account",
    "replication/container",
    "replication/object",
    "reconstruction/object",
)

#: Devices, policies and names of one server that are kept, and characters of a text.
_MAX_NAMES = 1000
_MAX_TEXT_LENGTH = 200
_MINUTE_SECONDS = 60.0

#: What no count and no number of seconds of a server reaches.
_MAX_COUNT = 2**53
_MAX_SECONDS = 1e11

_T = TypeVar("_T")


class _Load(msgspec.Struct):
    minute: float | None = msgspec.field(default=None, name="1m")


class _Async(msgspec.Struct):
    async_pending: int | None = None
    async_pending_last: float | None = None


class _Sockets(msgspec.Struct):
    tcp_in_use: int | None = None
    time_wait: int | None = None
    orphan: int | None = None
    tcp_mem_allocated_bytes: int | None = None


class _Disk(msgspec.Struct):
    """Sizes are empty texts, and ``mounted`` may be an error message, where it is not mounted."""

    device: str
    mounted: bool | str = False
    size: int | str = 0
    used: int | str = 0


class _Quarantined(msgspec.Struct):
    accounts: int = 0
    containers: int = 0
    objects: int = 0


class _Version(msgspec.Struct):
    version: str


class _Replication(msgspec.Struct):
    """``replication_last`` is seconds since 1970, ``replication_time`` minutes for objects, else seconds."""

    replication_time: float | None = None
    replication_last: float | None = None


class _Reconstruction(msgspec.Struct):
    object_reconstruction_time: float | None = None
    object_reconstruction_last: float | None = None


def parse_recon_state(answers: Mapping[str, bytes], at: float) -> State:
    """Make a state of answers by their path below ``/recon``; whatever they hold, nothing is raised."""
    sound = _SoundNumbers()
    load = _decode_answer(answers, "load", _Load)
    pending = _decode_answer(answers, "async", _Async)
    sockets = _decode_answer(answers, "sockstat", _Sockets)
    version = _decode_answer(answers, "version", _Version)
    quarantined = _decode_answer(answers, "quarantined", _Quarantined)
    age, seconds = _parse_replication(answers, sound)
    return State(
        at=at,
        load=sound.seconds("load", load.minute) if load else None,
        async_pending=sound.count("async", pending.async_pending) if pending else None,
        async_counted=sound.seconds("async", pending.async_pending_last) if pending else None,
        tcp_in_use=sound.count("sockstat", sockets.tcp_in_use) if sockets else None,
        time_wait=sound.count("sockstat", sockets.time_wait) if sockets else None,
        orphans=sound.count("sockstat", sockets.orphan) if sockets else None,
        tcp_memory=sound.count("sockstat", sockets.tcp_mem_allocated_bytes) if sockets else None,
        disks=_parse_disks(_decode_answer(answers, "diskusage", list[_Disk]), sound),
        version=version.version[:_MAX_TEXT_LENGTH] if version else None,
        root=next(iter(_decode_answer(answers, "devices", dict[str, Any]) or {}), "")[:_MAX_TEXT_LENGTH]
        or None,
        quarantined=sound.count(
            "quarantined", quarantined.accounts + quarantined.containers + quarantined.objects
        )
        if quarantined
        else None,
        replication_age=age,
        replication_seconds=seconds,
        unsound=tuple(sorted(sound.wrong)),
    )


class _SoundNumbers:
    """Lets numbers pass that a server can have; ``wrong`` are the paths of the others."""

    def __init__(self) -> None:
        self.wrong: set[str] = set()

    def count(self, path: str, value: int | None) -> int | None:
        """Return a count, None for what is none."""
        if value is None or 0 <= value < _MAX_COUNT:
            return value
        self.wrong.add(path)
        return None

    def seconds(self, path: str, value: float | None) -> float | None:
        """Return seconds, a time since 1970 or a load; None for what is none."""
        if value is None or 0 <= value < _MAX_SECONDS:
            return value
        self.wrong.add(path)
        return None


def _decode_answer(answers: Mapping[str, bytes], path: str, shape: type[_T]) -> _T | None:
    if path not in answers:
        return None
    try:
        return msgspec.json.decode(answers[path], type=shape)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _parse_disks(disks: list[_Disk] | None, sound: _SoundNumbers) -> tuple[Disk, ...] | None:
    if disks is None:
        return None
    return tuple(
        Disk(
            each.device[:_MAX_TEXT_LENGTH],
            each.mounted is True,
            sound.count("diskusage", _parse_number(each.size)) or 0,
            sound.count("diskusage", _parse_number(each.used)) or 0,
        )
        for each in sorted(disks, key=lambda disk: disk.device)[:_MAX_NAMES]
    )


def _parse_number(size: int | str) -> int:
    return size if isinstance(size, int) else 0


def _parse_replication(
    answers: Mapping[str, bytes], sound: _SoundNumbers
) -> tuple[dict[str, float], dict[str, float]]:
    """Return how many seconds ago each kind of replication ended, and how many seconds it took."""
    ages: dict[str, float] = {}
    seconds: dict[str, float] = {}
    now = sound.seconds("time", _decode_answer(answers, "time", float))
    passes: dict[str, tuple[float | None, float | None]] = {}
    for kind, unit in (("account", 1.0), ("container", 1.0), ("object", _MINUTE_SECONDS)):
        path = f"replication/{kind}"
        if found := _decode_answer(answers, path, _Replication):
            took = sound.seconds(path, found.replication_time)
            passes[kind] = sound.seconds(path, found.replication_last), None if took is None else took * unit
    path = "reconstruction/object"
    if rebuilt := _decode_answer(answers, path, _Reconstruction):
        took = sound.seconds(path, rebuilt.object_reconstruction_time)
        passes["reconstruction"] = (
            sound.seconds(path, rebuilt.object_reconstruction_last),
            None if took is None else took * _MINUTE_SECONDS,
        )
    for kind, (last, took) in passes.items():
        if last and now is not None:
            # Both by the server's own clock: those of two hosts are never compared.
            ages[kind] = max(0.0, now - last)
        if took is not None:
            seconds[kind] = took
    return ages, seconds


class _Policy(msgspec.Struct):
    name: str
    default: bool = False


class _Swift(msgspec.Struct):
    version: str | None = None
    policies: list[_Policy] = []


def parse_proxy_info(url: str, answer: bytes) -> Proxy:
    """Make a record of what ``/info`` answered; nothing is raised."""
    sections = _decode_answer({"info": answer}, "info", dict[str, Any])
    swift = None
    if sections and isinstance(sections.get("swift"), dict):
        try:
            swift = msgspec.convert(sections["swift"], _Swift)
        except msgspec.ValidationError:
            swift = None
    if not sections or swift is None:
        return Proxy(url, failure="its /info is not that of a Swift")
    policies = sorted(swift.policies[:_MAX_NAMES], key=lambda policy: not policy.default)
    constraints = {
        name[:_MAX_TEXT_LENGTH]: value
        for name, value in list(sections["swift"].items())[:_MAX_NAMES]
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    }
    return Proxy(
        url,
        version=swift.version[:_MAX_TEXT_LENGTH] if swift.version else None,
        policies=tuple(policy.name[:_MAX_TEXT_LENGTH] for policy in policies),
        constraints=constraints,
        features=tuple(name[:_MAX_TEXT_LENGTH] for name in sorted(sections)[:_MAX_NAMES] if name != "swift"),
    )
