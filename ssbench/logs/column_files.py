"""Columns of numbers that may be longer than memory has room for, in files without a name.

What is read of them is mapped: the system keeps as much of it in memory as it has room for.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ssbench.base.errors import UsageError


class NamelessFile:
    """A file that is gone with this object or process, in the folder for temporary ones (``TMPDIR``)."""

    def __init__(self) -> None:
        """Make it; raises UsageError where there is no place for it."""
        try:
            self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this object
        except OSError as error:
            raise _say_no_room(error) from None
        weakref.finalize(self, _close_quietly, self._file)

    def append(self, values: npt.NDArray[Any]) -> None:
        """Write values behind those that are there; raises UsageError where there is no room."""
        try:
            self._file.write(np.ascontiguousarray(values).tobytes())
        except OSError as error:
            raise _say_no_room(error) from None

    def read(self, kind: np.dtype[Any], first: int, count: int) -> npt.NDArray[Any]:
        """Return a copy of some values; all must have been written (:meth:`flush`)."""
        size = kind.itemsize
        return np.frombuffer(os.pread(self._file.fileno(), count * size, first * size), kind)

    def map(self, kind: np.dtype[Any], *, writable: bool = False) -> npt.NDArray[Any]:
        """Return all values, which cannot be changed unless they are to be ``writable``."""
        self.flush()
        if not os.fstat(self._file.fileno()).st_size:
            return np.empty(0, kind)
        return np.asarray(np.memmap(self._file, kind, "r+" if writable else "r"))

    def make_zeros(self, kind: np.dtype[Any], count: int) -> npt.NDArray[Any]:
        """Return so many zeros in it, which can be changed; raises UsageError where there is no room."""
        try:
            os.posix_fallocate(self._file.fileno(), 0, count * kind.itemsize)
        except OSError as error:
            raise _say_no_room(error) from None
        return np.asarray(np.memmap(self._file, kind, "r+", shape=(count,)))

    def flush(self) -> None:
        """Write what is still in memory; raises UsageError where there is no room."""
        try:
            self._file.flush()
        except OSError as error:
            raise _say_no_room(error) from None


def _close_quietly(file: IO[bytes]) -> None:
    with suppress(OSError):  # of what could not be written, which was said
        file.close()


def _say_no_room(error: OSError) -> UsageError:
    return UsageError(
        f"the requests of a log need a temporary file, for which TMPDIR names the folder: {error.strerror}"
    )


class ColumnFiles:
    """Columns that grow by blocks, each in a file."""

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._files = {name: (np.dtype(kind), NamelessFile()) for name, kind in kinds.items()}

    def append(self, **columns: npt.NDArray[Any]) -> None:
        """Append a block: values of each column."""
        for name, (kind, file) in self._files.items():
            file.append(columns[name].astype(kind, copy=False))

    def map(self) -> dict[str, npt.NDArray[Any]]:
        """Return all columns, which cannot be changed."""
        return {name: file.map(kind) for name, (kind, file) in self._files.items()}
