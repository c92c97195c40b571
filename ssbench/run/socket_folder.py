"""A folder for the Unix sockets of a master and its local workers, which outlives no master.

The master holds a lock on it. A lock ends with its process, however that ends; so whoever gets the lock
of such a folder, a local worker whose master is gone or the next run, may remove it.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "ssbench-sockets-"


@contextmanager
def socket_folder() -> Iterator[Path]:
    """Make a folder that no other user has access to, and remove it at the end.

    Those of masters that are gone are removed too.
    """
    for left in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        remove_if_left(left)
    path, descriptor = _make()
    try:
        yield path
    finally:
        _remove(path, descriptor)
        os.close(descriptor)


def remove_if_left(path: Path, wait: float = 0.0) -> None:
    """Remove such a folder when its master is gone; leave alone what is no such folder, or not ours.

    ``wait`` is how many seconds its lock may still be held: of what a killed process had open, the kernel
    may close a pipe some time before the lock.
    """
    if not path.name.startswith(_PREFIX):
        return
    with suppress(OSError):
        descriptor = _open(path)
        try:
            found = os.fstat(descriptor)
            if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == 0o700:
                _lock(descriptor, time.monotonic() + wait)
                _remove(path, descriptor)
        finally:
            os.close(descriptor)


def _lock(descriptor: int, until: float) -> None:
    """Take the lock, trying until that time; raises BlockingIOError."""
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.01)


def _make() -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        with suppress(FileNotFoundError):
            descriptor = _open(path)
            with suppress(OSError):  # a file system without locks: no other process can have one either
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Between its making and its locking another run may have taken it for one that was left.
            if path.exists():
                return path, descriptor
            os.close(descriptor)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _remove(path: Path, descriptor: int) -> None:
    """Remove the sockets in the folder, and the folder unless there is something else in it."""
    with suppress(OSError):
        for name in os.listdir(descriptor):
            if stat.S_ISSOCK(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=descriptor)
        path.rmdir()
