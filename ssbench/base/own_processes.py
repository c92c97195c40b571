"""Python processes of our own: how to start one, and what to say where memory or threads are lacking.

A process imports this very ssbench wherever it is started.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import re
import resource
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from ssbench.base.errors import UsageError

_CHECKOUT = Path(__file__).resolve().parents[2]


def make_python_command(module: str, *flags: str) -> list[str]:
    """Return the command that runs a module as a program.

    It imports nothing from the current folder, where a folder of results may have the name ``ssbench``.
    """
    return [sys.executable, "-P", *flags, "-m", module]


def make_child_environment(without: Collection[str] = ()) -> Mapping[str, str]:
    """Return the environment for such a process, in whatever folder, ``without`` some variables."""
    kept = {name: value for name, value in os.environ.items() if name not in without}
    search = [Path(entry).resolve() for entry in kept.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if not _CHECKOUT.is_relative_to(sys.prefix):  # a checkout, which need not be installed
        search.insert(0, _CHECKOUT)
    if search:
        kept["PYTHONPATH"] = os.pathsep.join(map(str, search))
    return kept


#: Where Linux says at which address the command line begins and ends: fields of ``/proc/self/stat``, counted
#: from the one behind the name of the program, see proc(5).
_ARGUMENTS_BEGIN, _ARGUMENTS_END = 45, 46

#: What stands before a value in its argument: nothing, a long option or letters.
_BEFORE_VALUE_PATTERN = re.compile(rb"(--.*=|-[A-Za-z]+)?", re.DOTALL)


def hide_arguments(secrets: Collection[str]) -> bool:
    """Overwrite values in the command line of this process, which all users of the machine can read (``ps``).

    A value is an argument of its own, or the end of one (``--key=VALUE``, ``-KVALUE``). Returns whether none
    is left; False where the system is none whose command line can be found.
    """
    try:
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        begin, end = int(fields[_ARGUMENTS_BEGIN]), int(fields[_ARGUMENTS_END])
        words = Path("/proc/self/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError, IndexError):
        return False
    if len(b"\0".join(words)) != end - begin:  # something else has changed it
        return False
    place = begin
    for word in words:
        for secret in map(os.fsencode, secrets):
            before = word.removesuffix(secret)
            if before != word and _BEFORE_VALUE_PATTERN.fullmatch(before):
                ctypes.memset(place + len(before), ord("x"), len(secret))
        place += len(word) + 1
    return True


#: Address space (bytes) for eight threads, each with a stack of 8 MiB, and for what they allocate. Libraries
#: start some of them, and end the process where they get none.
_NEEDED_BYTES = 96 << 20

#: A process that used this share of its address space failed for that, whatever the error says.
_USED_UP_SHARE = 0.75


def check_memory_available(needed: int = _NEEDED_BYTES) -> None:
    """Raise UsageError where this process cannot have so many more bytes: libzmq would end it for that."""
    try:
        mmap.mmap(-1, needed, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ).close()
    except OSError:
        raise UsageError(
            f"this process needs {needed >> 20} MiB more of address space, for threads above all: raise the"
            f" limit ({_describe_limits()})"
        ) from None


def _came_from_starting_a_process(error: BaseException) -> bool:
    """Whether it is fork's: others with its number are of sockets and pipes."""
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_globals.get("__name__") == "subprocess":
            return True
        at = at.tb_next
    return False


def describe_memory_shortage(error: BaseException, status: Path = Path("/proc/self/status")) -> str | None:
    """Return what to say of an error that a lack of memory, or a limit, caused; None of any other."""
    found: BaseException | None = error
    while found is not None:
        if (
            isinstance(found, MemoryError)
            or (isinstance(found, OSError) and found.errno == errno.ENOMEM)
            or (isinstance(found, RuntimeError) and "start new thread" in str(found))
            or (isinstance(found, BlockingIOError) and _came_from_starting_a_process(found))
            or (isinstance(found, ImportError) and "failed to map segment" in str(found))
        ):
            break
        found = found.__cause__ or found.__context__
    else:
        if not _has_used_up_memory(status):
            return None
    processes, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    of_processes = "" if processes == resource.RLIM_INFINITY else f"; ulimit -u is {processes}"
    return (
        "there is not enough memory, or there are too many threads or processes: raise the limit"
        f" ({_describe_limits()}{of_processes})"
    )


def _has_used_up_memory(status: Path) -> bool:
    """Whether this process has once had nearly as much address space as it may."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        with suppress(OSError, ValueError, StopIteration):
            lines = status.read_text().splitlines()
            peak = next(int(line.split()[1]) for line in lines if line.startswith("VmPeak:"))
            return peak * 1024 >= _USED_UP_SHARE * limit
    return False


def _describe_limits() -> str:
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if space == resource.RLIM_INFINITY:
        return "that of the machine or of a container; no ulimit -v is set"
    return f"ulimit -v is {space // 1024}"
