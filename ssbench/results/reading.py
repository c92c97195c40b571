"""The formats of stat files: what the reader of each offers, and which of them a file has.

Every reader is a :class:`RunResults`; a :class:`DamageError` says that a file breaks off. Another format is
another module with a ``FORMAT``, and a line in :data:`_MODULES`. It is imported when a file has none of the
formats before it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Self

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.base import interruption
from ssbench.base.errors import StatFileError
from ssbench.base.untrusted import TooMuchError, check_memory
from ssbench.results.block import ResultBlock
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.stream import Progress, StatFileStream

_CHUNK_BYTES = 1024 * 1024

#: Size classes and workers of a run; each takes a millisecond or so of a report.
MAX_SIZE_CLASSES = 2_000
_MAX_WORKERS = 50_000
#: Seconds in which something ended, a year of them; each takes 200 bytes and 18 microseconds.
_MAX_SECONDS = 366 * 86400


class DamageError(ValueError):
    """What follows cannot be read; what was read before is kept. The text is for a warning."""


class RunResults(ABC):
    """The results of a run, read from a stat file, once, block by block.

    ``run`` is there from the start; ``size_classes`` (names; blocks index it) and ``worker_names``
    (of negative worker ids, which stand for ids that are texts) may grow with each block;
    ``summary`` and ``warnings`` are whole when the last block has been read. ``summary`` is None in
    old formats and when a run did not end. ``damaged`` is whether not all of the file could be read.
    """

    #: False for the formats of ssbench 0.x, of which only the old table is printed.
    current: ClassVar[bool] = False

    def __init__(self, stream: StatFileStream) -> None:
        self.path = stream.path
        self.summary: RunSummary | None = None
        self.warnings: list[str] = []
        self.worker_names: dict[int, str] = {}
        self.results_read = 0
        self.damaged = False
        self._stream = stream
        self._workers = _Distinct(_MAX_WORKERS)
        self._seconds = _Distinct(_MAX_SECONDS)
        try:
            self.run = self._read_run()
            if len(self.run.scenario.size_classes) > MAX_SIZE_CLASSES:
                raise DamageError(f"more than {MAX_SIZE_CLASSES:,} size classes")
        except DamageError as error:
            raise StatFileError(f"{self.path}: {stream.damage or error}") from None
        self.size_classes = [size_class.name for size_class in self.run.scenario.size_classes]

    def again(self) -> Self:
        """Open the file once more, from its beginning; raises StatFileError."""
        return type(self)(StatFileStream(self.path))

    def close(self) -> None:
        """Close the file; :meth:`blocks` does so too at its end."""
        self._stream.close()

    def blocks(self) -> Iterator[ResultBlock]:
        """Yield the results in order of arrival, until the end or the first damage.

        What was read before damage is kept, and a warning says so; raises StatFileError when
        nothing was, and where this computer lacks the memory for what is made of them.
        """
        damage: str | None = None
        try:
            for block in self._read_blocks():
                self._check(block)
                self.results_read += len(block)
                yield block
                interruption.raise_if_interrupted()
                limit_memory(self.path, self.results_read)
            while self._stream.read_some(_CHUNK_BYTES):
                pass  # to the end, where the checksum of compressed data is
        except DamageError as error:
            damage = self._stream.damage or str(error)
        finally:
            self.close()
        damage = damage or self._stream.damage
        if damage and not self.results_read:
            raise StatFileError(f"{self.path}: {damage}; no result stands before that")
        if damage:
            self.damaged = True
            self.warnings.insert(0, f"{damage}: this is about the {self.results_read:,} results before that")

    def _check(self, block: ResultBlock) -> None:
        """Raise DamageError where a file claims what is not genuine and costs much.

        Not by the number of results: of those of a no-op run, which differ in little, a byte has 41 and more.
        """
        if not self._workers.add(block.worker):
            raise DamageError(f"results of more than {_MAX_WORKERS:,} workers")
        if not self._seconds.add(block.completed):
            raise DamageError(f"results that ended in more than {_MAX_SECONDS:,} seconds")

    @abstractmethod
    def _read_run(self) -> RunDescription:
        """Read the beginning of the stream; raises DamageError."""

    @abstractmethod
    def _read_blocks(self) -> Iterator[ResultBlock]:
        """Read the rest of the stream; raises DamageError."""


def limit_memory(path: Path, results: int) -> None:
    """Raise StatFileError where what was made of so many results takes more memory than reading may."""
    try:
        check_memory()
    except TooMuchError as error:
        raise StatFileError(f"{path}: {error} for its results, of which {results:,} were read") from None


class _Distinct:
    """Counts distinct numbers, rounded down, up to ``most``; quick where they lie close together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lowest, self._highest = math.inf, -math.inf
        self._seen: set[float] = set()

    def add(self, numbers: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> bool:
        """Return whether there are no more than the most with these."""
        self._lowest = min(self._lowest, float(np.floor(numbers.min())))
        self._highest = max(self._highest, float(np.floor(numbers.max())))
        if not self._seen and self._highest - self._lowest < self._most:
            return True
        # Ids of workers may be larger than floats can hold exactly.
        whole = np.floor(numbers) if numbers.dtype.kind == "f" else numbers
        self._seen.update(np.unique(whole).tolist())
        return len(self._seen) <= self._most


class Format(msgspec.Struct, frozen=True):
    """A format of stat files."""

    name: str
    recognises: Callable[[bytes], bool]  # is given the first bytes of the decompressed file
    reader: type[RunResults]


#: The modules of every format that can be read; the first that recognises a file reads it.
_MODULES = ("current", "legacy.msgpack_stream", "legacy.python2_pickle")

_HEAD_LENGTH = 64


def open_results(path: Path, progress: Progress | None = None) -> RunResults:
    """Open a stat file of any format, compressed or not, recognized by its content.

    ``progress`` is called now and then with the bytes read and those that there are. Raises
    StatFileError when it is no stat file, or damaged before its first result.
    """
    stream = StatFileStream(path, progress)
    try:
        head = stream.peek(_HEAD_LENGTH)
        for format_ in _formats():
            if format_.recognises(head):
                return format_.reader(stream)
        what = stream.damage or ("not a stat file of ssbench" if head else "an empty file")
        raise StatFileError(f"{path}: {what}")
    except BaseException:
        stream.close()
        raise


def _formats() -> Iterator[Format]:
    for name in _MODULES:
        format_: Format = import_module(f"ssbench.results.{name}").FORMAT
        yield format_
