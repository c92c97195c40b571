"""How busy this machine is, as its kernel counts it. What a kernel does not tell is None."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

_Value = TypeVar("_Value")

_PROC = Path("/proc")

_Counted = Annotated[float, Meta(ge=0, le=1e12)]


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


def read_host_counters(proc: Path = _PROC) -> HostCounters:
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
    )


def read_child_cpu_times(proc: Path = _PROC) -> Iterator[tuple[int, float]]:
    """Yield the children of this process: their numbers, and the CPU seconds that each has used."""
    mine, tick = str(os.getpid()), os.sysconf("SC_CLK_TCK")
    for path in proc.glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            fields = path.read_text().rpartition(")")[2].split()
            if fields[1] == mine:
                yield int(path.parent.name), (int(fields[11]) + int(fields[12])) / tick


def _read_start(path: str) -> str:
    """Return the first bytes of a file. A worker does this each second, in the thread that makes requests."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 512).decode("ascii", "replace")
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
