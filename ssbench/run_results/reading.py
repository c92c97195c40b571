"""What every reader of stat files offers, whatever the format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from ssbench.errors import StatFileError
from ssbench.results import ResultBlock, RunDescription, RunSummary
from ssbench.run_results.damage import DamageError
from ssbench.run_results.stream import Stream

_CHUNK = 1024 * 1024


class RunResults(ABC):
    """The results of a run, read from a stat file, once, block by block.

    ``run`` is there from the start; ``size_classes`` (names; blocks index it) and ``worker_names``
    (of negative worker ids, which stand for ids that are texts) may grow with each block;
    ``summary`` and ``warnings`` are whole when the last block has been read. ``summary`` is None in
    old formats and when a run did not end.
    """

    #: False for the formats of ssbench 0.x, of which only the old table is printed.
    current: ClassVar[bool] = False

    def __init__(self, stream: Stream) -> None:
        self.path = stream.path
        self.summary: RunSummary | None = None
        self.warnings: list[str] = []
        self.worker_names: dict[int, str] = {}
        self.results_read = 0
        self._stream = stream
        try:
            self.run = self._read_run()
        except DamageError as error:
            raise StatFileError(f"{self.path}: {stream.damage or error}") from None
        self.size_classes = [size_class.name for size_class in self.run.scenario.size_classes]

    def again(self) -> Self:
        """Open the file once more, from its beginning; raises StatFileError."""
        return type(self)(Stream(self.path))

    def close(self) -> None:
        """Close the file; :meth:`blocks` does it too when it has come to its end."""
        self._stream.close()

    def blocks(self) -> Iterator[ResultBlock]:
        """Yield the results in order of arrival, until the end or the first damage.

        What was read before damage is kept, and a warning says so; raises StatFileError when
        nothing was.
        """
        damage: str | None = None
        try:
            for block in self._read_blocks():
                self.results_read += len(block)
                yield block
            while self._stream.read_some(_CHUNK):
                pass  # to the end, where the checksum of compressed data is
        except DamageError as error:
            damage = self._stream.damage or str(error)
        finally:
            self.close()
        damage = damage or self._stream.damage
        if damage and not self.results_read:
            raise StatFileError(f"{self.path}: {damage}; no result stands before that")
        if damage:
            self.warnings.insert(0, f"{damage}: this is about the {self.results_read:,} results before that")

    @abstractmethod
    def _read_run(self) -> RunDescription:
        """Read the beginning of the stream; raises DamageError."""

    @abstractmethod
    def _read_blocks(self) -> Iterator[ResultBlock]:
        """Read the rest of the stream; raises DamageError."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of stat files: ``recognises`` is given the first bytes of the decompressed file."""

    name: str
    recognises: Callable[[bytes], bool]
    reader: type[RunResults]
