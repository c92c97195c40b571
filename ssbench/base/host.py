"""How busy this machine is, as its kernel counts it. What a kernel does not tell is None."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

_Value = TypeVar("_Value")

_PROC, _SYS = Path("/proc"), Path("/sys")

#: Network cards that are looked at; in /proc/net/dev, bytes that they take, and the field of what was sent.
_MAX_CARDS, _CARD_BYTES, _SENT_FIELD = 16, 1 << 14, 8

#: How Linux numbers the clock of the CPU that a process uses (clock_getcpuclockid).
_CLOCK_PID_SHIFT, _CLOCK_OF_PROCESS = 3, 2

#: In a line of /proc/net/tcp: where the number of the socket is, and the state of one that listens.
_INODE_FIELD = 9
_LISTENING = "0A"
_IPV6 = 6

_Counted = Annotated[float, Meta(ge=0, le=1e12)]
_Moved = Annotated[float, Meta(ge=0, le=1e20)]


class CardCounters(Struct, array_like=True, frozen=True):
    """What a network card has moved so far, in bytes."""

    name: Annotated[str, Meta(max_length=64)]
    received: _Moved
    sent: _Moved
    speed: Annotated[float, Meta(gt=0, le=1e14)]  # bytes a second that it can move in either direction


class HostCounters(Struct, array_like=True, frozen=True):
    """What a machine and one process on it have used so far.

    In seconds of one core unless it says otherwise; None where the kernel does not tell.
    """

    cores: Annotated[int, Meta(ge=1, le=2**20)]  # number of them
    own: _Counted  # CPU that the process itself used
    load: _Counted | None = None  # load average of the last minute
    busy: _Counted | None = None  # CPU that all processes used together
    stolen: _Counted | None = None  # what a hypervisor gave to others
    pressed: _Counted | None = None  # seconds in which at least one thread waited for a CPU
    waited: _Counted | None = None  # seconds for which the process's thread waited for a CPU
    cards: Annotated[tuple[CardCounters, ...], Meta(max_length=_MAX_CARDS)] = ()  # of a known speed


def read_host_counters(proc: Path = _PROC, sys: Path = _SYS) -> HostCounters:
    """Read the counters of this machine and of this process."""
    busy, stolen = _get_or_none(lambda: _parse_cpu_times(_read_start(f"{proc}/stat"))) or (None, None)
    return HostCounters(
        os.cpu_count() or 1,
        time.process_time(),
        _get_or_none(lambda: float(_read_start(f"{proc}/loadavg").split()[0])),
        busy,
        stolen,
        _get_or_none(lambda: _parse_pressure(_read_start(f"{proc}/pressure/cpu"))),
        _get_or_none(lambda: int(_read_start(f"{proc}/self/schedstat").split()[1]) / 1e9),
        _get_or_none(lambda: _read_cards(f"{proc}/net/dev", sys)) or (),
    )


def _read_cards(file: str, sys: Path) -> tuple[CardCounters, ...]:
    """Return what cards of a known speed have moved; not bridges and the like, whose speed is made up."""
    found = []
    for line in _read_start(file, _CARD_BYTES).split("\n")[2:]:
        name, colon, counters = line.partition(":")
        if colon and (speed := _find_card_speed(sys, name.strip())):
            fields = counters.split()
            found.append(CardCounters(name.strip(), float(fields[0]), float(fields[_SENT_FIELD]), speed))
    return tuple(found[:_MAX_CARDS])


@cache
def _find_card_speed(sys: Path, name: str) -> float | None:
    """Return the bytes a second that a card can move; None where it is no card, or does not tell."""
    folder = sys / "class" / "net" / name
    megabits = _get_or_none(lambda: int(_read_start(f"{folder / 'speed'}")))
    is_card = megabits is not None and megabits > 0 and (folder / "device").exists()
    return megabits * 1e6 / 8 if is_card and megabits else None


def list_process_folders(proc: Path = _PROC) -> list[Path]:
    """Return the folders of all processes; none where they cannot be listed, as without a free descriptor."""
    with suppress(OSError):
        return list(proc.glob("[0-9]*"))
    return []


def read_child_cpu_times(proc: Path = _PROC) -> Iterator[tuple[int, float]]:
    """Yield the children of this process: their numbers, and the CPU seconds that each has used."""
    mine = os.getpid()
    for folder in list_process_folders(proc):
        with suppress(OSError, ValueError, IndexError):
            parent, seconds = _parse_process_times((folder / "stat").read_text())
            if parent == mine:
                yield int(folder.name), seconds


def read_cpu_times(processes: Iterable[int]) -> Iterator[tuple[int, float]]:
    """Yield the CPU seconds that some processes have used, of those that are there.

    By the clock that Linux has of each process, in nanoseconds: /proc has them in steps of 10 ms, of which
    some servers use one or two in a second.
    """
    for pid in processes:
        with suppress(OSError, OverflowError):
            yield pid, time.clock_gettime(~pid << _CLOCK_PID_SHIFT | _CLOCK_OF_PROCESS)


def _parse_process_times(text: str) -> tuple[int, float]:
    """Return the parent of a process and the CPU seconds that it has used, from /proc/PID/stat."""
    fields = text.rpartition(")")[2].split()
    return int(fields[1]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def find_listening_sockets(address: str, port: int, proc: Path = _PROC) -> set[str]:
    """Return the sockets of this machine that listen at an IP address, as :func:`has_socket` takes them.

    None of an address of another machine, or of one that is a name.
    """
    if not is_own_address(address):
        return set()
    ip = ipaddress.ip_address(address)
    words = "".join(f"{word:08X}" for (word,) in struct.iter_unpack("=I", ip.packed))
    places = {f"{each}:{port:04X}" for each in (words, 8 * "0", 32 * "0")}
    found = set()
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (proc / "net" / name).read_text().splitlines()[1:]:
                fields = line.split()
                if len(fields) > _INODE_FIELD and fields[1] in places and fields[3] == _LISTENING:
                    found.add(f"socket:[{fields[_INODE_FIELD]}]")
    return found


def has_socket(pid: int, sockets: Collection[str], proc: Path = _PROC) -> bool:
    """Whether a process has one of some sockets; False also where we may not look into it."""
    with suppress(OSError):
        for path in (proc / str(pid) / "fd").iterdir():
            with suppress(OSError):
                if str(path.readlink()) in sockets:
                    return True
    return False


def is_own_address(address: str) -> bool:
    """Whether an IP address is one of this machine: nothing can be bound to others."""
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(address).version == _IPV6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.bind((address, 0))
    except (OSError, ValueError):
        return False
    return True


def _read_start(path: str, length: int = 512) -> str:
    """Return the first bytes of a file. A worker does this each second, in the thread that makes requests."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, length).decode("ascii", "replace")
    finally:
        os.close(descriptor)


def _get_or_none(get: Callable[[], _Value]) -> _Value | None:
    """Return what is got, None where it is not there or of another form."""
    try:
        return get()
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def _parse_cpu_times(text: str) -> tuple[float, float]:
    """Return the seconds that CPUs were busy and those that were stolen, from /proc/stat."""
    user, nice, system, _, _, irq, softirq, stolen = map(int, text.split("\n", 1)[0].split()[1:9])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / tick, stolen / tick


def _parse_pressure(text: str) -> float:
    """Return the seconds of ``some``, from /proc/pressure/cpu."""
    line = next(each for each in text.splitlines() if each.startswith("some "))
    return int(line.rpartition("total=")[2]) / 1e6
