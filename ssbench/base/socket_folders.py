"""The folder for the Unix sockets of a master, to which its local workers and its relays connect.

It outlives no master. The master holds a lock on it, which ends with its process, however that ends; so
whoever gets the lock of such a folder, a local worker whose master is gone or the next run, may remove it.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from ssbench.base import interruption
from ssbench.base.errors import UsageError

_SOCKET_FOLDER_PREFIX = "ssbench-sockets-"


def temporary_folder() -> Path:
    """Return the temporary folder; raises UsageError if none is writable."""
    try:
        return Path(tempfile.gettempdir())
    except OSError as error:
        raise UsageError(f"{error.strerror}; TMPDIR names another") from None


@contextmanager
def socket_folder() -> Iterator[Path]:
    """Make a folder that no other user has access to, and remove it at the end.

    Those of masters that are gone are removed too.
    """
    for left in temporary_folder().glob(_SOCKET_FOLDER_PREFIX + "*"):
        remove_if_left(left)
    path, descriptor = _make_folder()
    try:
        with interruption.undo_on_interrupt(partial(_remove_folder, path, descriptor)):
            yield path
    finally:
        _remove_folder(path, descriptor)
        os.close(descriptor)


def remove_if_left(path: Path, wait: float = 0.0) -> None:
    """Remove such a folder when its master is gone; leave other folders, and those of other users, alone.

    ``wait`` is how many seconds its lock may still be held: of what a killed process had open, the kernel
    may close a pipe some time before the lock.
    """
    if not path.name.startswith(_SOCKET_FOLDER_PREFIX):
        return
    with suppress(OSError):
        descriptor = _open_folder(path)
        try:
            found = os.fstat(descriptor)
            if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == 0o700:
                _lock_folder(descriptor, time.monotonic() + wait)
                _remove_folder(path, descriptor)
        finally:
            os.close(descriptor)


def _lock_folder(descriptor: int, until: float) -> None:
    """Take the lock, trying until that time; raises BlockingIOError."""
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.01)


def _make_folder() -> tuple[Path, int]:
    while True:
        try:
            path = Path(tempfile.mkdtemp(prefix=_SOCKET_FOLDER_PREFIX, dir=temporary_folder()))
        except OSError as error:
            raise UsageError(
                f"{temporary_folder()}: no folder can be made there: {error.strerror}; TMPDIR names another"
            ) from None
        with suppress(FileNotFoundError):
            descriptor = _open_folder(path)
            with suppress(OSError):  # a file system without locks: no other process can have one either
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Between its making and its locking another run may have taken it for one that was left.
            if path.exists():
                return path, descriptor
            os.close(descriptor)


def _open_folder(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _remove_folder(path: Path, descriptor: int) -> None:
    """Remove the sockets in the folder, and the folder unless there is something else in it."""
    with suppress(OSError):
        for name in os.listdir(descriptor):
            if stat.S_ISSOCK(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=descriptor)
        path.rmdir()
