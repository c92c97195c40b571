"""What comes from others costs a bounded amount: of time, of memory, of depth.

A stat file, a log, a ring, a key file or an answer may be damaged, or made to do harm. Files are read as
streams (:mod:`ssbench.results.reading`). What is kept of them as plain data passes through
:func:`copy_plain`. What grows with each result is held to :func:`check_memory`. Small files are read by
:func:`read_small_file`. Where the code of others reads a file, it does so in a process of its own, which
begins with :func:`limit_this_process`.
"""

from __future__ import annotations

import math
import os
import resource
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

#: Of one piece of plain data: values in all, those that are referred to more than once counted each time,
#: levels, and characters of all its texts.
MAX_VALUES = 200_000
MAX_DEPTH = 50
MAX_CHARACTERS = 8 * 1024 * 1024

#: What is read may take up to this share of the computer's memory; the rest is for making a report of it.
_MEMORY_SHARE = 0.75
#: Where Linux says how much memory a container may have, and how many pages this process has.
_CONTAINER_MEMORY = Path("/sys/fs/cgroup/memory.max")
_PROCESS_MEMORY = Path("/proc/self/statm")

#: What a JSON number may be, for readers that have no larger ones.
_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**64 - 1


class TooMuchError(ValueError):
    """Something is larger than anything genuine. The text says what."""


def copy_plain(value: object) -> object:
    """Return data as JSON can hold them, in a copy; raises TooMuchError where there is too much.

    Keys become texts, bytes too; numbers that are too large for 64 bits become floats, and what is of no
    plain type becomes the name of its type. What is reached in several ways is counted and copied each time,
    so that a cycle, and data that would expand without end, are too much.
    """
    return _Copier().copy(value, 0)


class _Copier:
    def __init__(self) -> None:
        self._values = MAX_VALUES
        self._characters = MAX_CHARACTERS

    def copy(self, value: object, depth: int) -> object:
        self._values -= 1
        if self._values < 0:
            raise TooMuchError(f"more than {MAX_VALUES:,} values")
        match value:
            case dict() | list() | tuple():
                return self._container(value, depth)
            case str() | bytes():
                return self._text(value)
            case int() if not _MIN_INTEGER <= value <= _MAX_INTEGER:
                return _as_float(value)
            case None | int() | float():
                return value
        return f"({type(value).__name__.strip('_')})"

    def _container(self, value: dict[Any, Any] | Sequence[Any], depth: int) -> object:
        if depth >= MAX_DEPTH:
            raise TooMuchError(f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, dict):
            return {self._key(key): self.copy(entry, depth + 1) for key, entry in value.items()}
        return [self.copy(entry, depth + 1) for entry in value]

    def _key(self, key: object) -> str:
        return str(f"({type(key).__name__})" if isinstance(key, tuple) else self.copy(key, MAX_DEPTH))

    def _text(self, value: str | bytes) -> str:
        self._characters -= len(value)
        if self._characters < 0:
            raise TooMuchError(f"more than {MAX_CHARACTERS:,} characters")
        data = value if isinstance(value, bytes) else value.encode("utf-8", "replace")
        return data.decode("utf-8", "replace")


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def read_small_file(path: Path, most: int) -> bytes:
    """Return the content of a small regular file; raises OSError, and TooMuchError beyond ``most`` bytes.

    A pipe without a writer or a device without an end does not hold it up.
    """
    with open_regular_file(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise TooMuchError(f"more than {most:,} bytes")
    return content


def read_lines(path: Path, longest: int) -> Iterator[bytes]:
    """Yield the lines of a regular file, however many; raises OSError, and TooMuchError.

    A line has at most ``longest`` bytes, its end included.
    """
    with open_regular_file(path) as file:
        while line := file.readline(longest + 1):
            if len(line) > longest:
                raise TooMuchError(f"a line of more than {longest:,} bytes")
            yield line


def open_regular_file(path: Path) -> BinaryIO:
    """Open a regular file for reading; raises OSError, and TooMuchError for a pipe, a device or a folder."""
    file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # noqa: PTH123, SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise TooMuchError("not a plain file")
    return file


def check_memory() -> None:
    """Raise TooMuchError where this process has more memory than reading may take on this computer.

    Files may hold any number of results in a few bytes, so that nothing else tells one that was made to do
    harm from one of a long run. Where the system does not say how much a process has, there is no bound.
    """
    try:
        pages = int(_PROCESS_MEMORY.read_text().split()[1])
    except OSError:
        return
    most = memory_bound()
    if pages * os.sysconf("SC_PAGE_SIZE") > most:
        raise TooMuchError(f"more than {most / 1e9:.1f} GB of memory is needed")


@cache
def memory_bound() -> int:
    """Return how many bytes of memory this process may have while it reads."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # "max" where there is no limit
        most = min(most, int(_CONTAINER_MEMORY.read_text()))
    return int(_MEMORY_SHARE * most)


def limit_this_process(memory: int, cpu_seconds: int) -> None:
    """Let this process have no more memory (bytes of addresses) and CPU; for a child that may be ended.

    A lower limit that it has already stays. Beyond the first it meets MemoryError; beyond the second the
    kernel ends it with SIGXCPU.
    """
    for kind, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, cpu_seconds)):
        soft, hard = resource.getrlimit(kind)
        limits = [each for each in (soft, hard, most) if each != resource.RLIM_INFINITY]
        resource.setrlimit(kind, (min(limits), hard))
