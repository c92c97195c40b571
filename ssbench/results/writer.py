"""Writes a stat file while the run is in progress, from a thread of its own.

The master hands over blocks and never waits for a disk. Each record is a gzip member of its own, so
that what a killed master leaves behind can be read up to the last whole record.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from isal import isal_zlib

from ssbench.base.errors import StatFileError
from ssbench.results import current
from ssbench.results.block import ResultBlock, join_blocks
from ssbench.results.current import (
    FILE_PREAMBLE,
    MAX_BLOCK_ROWS,
    ROWS_KIND,
    ClosingRecord,
    encode_closing,
    encode_cluster,
    encode_record,
    encode_run,
)
from ssbench.results.run_description import RunDescription, RunSummary

_log = logging.getLogger(__name__)

#: Results reach the disk at latest after this many seconds.
FLUSH_SECONDS = 1.0
#: Results that wait for a slow disk; what comes beyond is lost, so that memory has a bound.
MAX_WAITING_ROWS = 4_000_000
#: How long :meth:`RunResultsWriter.end` waits for a disk that does not keep up, in seconds.
FINISH_SECONDS = 60.0

GZIP_WINDOW_BITS = 31  # zlib's window of 15 bits, in the gzip format
_CLUSTER_LOST_TEXT = "what was seen of the cluster could not be written to the stat file"
COMPRESSION_LEVEL = (
    1  # of isal; 0 costs more and compresses less, 2 and 3 gain next to nothing on these columns
)


class RunResultsWriter:
    """A stat file that is being written: a :class:`~ssbench.results.block.Sink`.

    Raises StatFileError when the file cannot be created. From then on nothing is raised: a full
    disk shows in ``failure`` and ``results_lost``, and the file stays readable up to there.
    """

    failure: OSError | None = None
    results_lost: int = 0

    def __init__(self, path: Path, run: RunDescription) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise StatFileError(f"{path}: cannot be written: {error.strerror}") from None
        self._size = 0
        self._results = 0
        self._broken = False
        self._append(FILE_PREAMBLE + encode_run(run))
        if self.failure:
            self._file.close()
            raise StatFileError(f"{path}: cannot be written: {self.failure.strerror}")
        #: Results in the last block that was written, and where in the file it begins.
        self._last_block = 0, self._size
        self._pending: list[ResultBlock] = []
        self._pending_rows = 0
        self._waiting = 0
        self._summary: RunSummary | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._write, name="stat file", daemon=True)
        self._thread.start()

    def add(self, block: ResultBlock) -> None:
        """Hand over results; never waits for the disk."""
        rows = len(block)
        with self._changed:
            if self._waiting + rows > MAX_WAITING_ROWS:
                self._lose(rows, OSError(errno.ETIMEDOUT, "the disk is slower than the results"))
                return
            self._pending.append(block)
            self._pending_rows += rows
            self._waiting += rows
            if self._pending_rows >= MAX_BLOCK_ROWS:
                self._changed.notify()

    def tick(self, now: float) -> None:
        """Do nothing: the thread looks at the clock by itself."""

    def end(self, summary: RunSummary) -> None:
        """Write what is left and the summary, and close the file.

        Waits for the disk at most :data:`FINISH_SECONDS`, saying every five seconds what for;
        what is not written by then is lost.
        """
        with self._changed:
            self._summary = summary
            self._changed.notify()
        end = time.monotonic() + FINISH_SECONDS
        while self._thread.is_alive() and (left := end - time.monotonic()) > 0:
            self._thread.join(min(left, 5.0))
            if self._thread.is_alive():
                _log.warning("waiting for the disk: %d results to be written to %s", self._waiting, self.path)
        with self._changed:
            if self._waiting:
                self._lose(
                    self._waiting, OSError(errno.ETIMEDOUT, "the disk did not take the results in time")
                )
        if not self._thread.is_alive():
            self._file.close()

    def _write(self) -> None:
        """Write blocks until the summary has come; the body of the thread."""
        summary = None
        while summary is None:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._pending_rows >= MAX_BLOCK_ROWS or self._summary is not None, FLUSH_SECONDS
                )
                pending, self._pending, self._pending_rows = self._pending, [], 0
                summary = self._summary
            for block in _fill_blocks(pending):
                self._write_block(block)
        self._write_end(summary)

    def _write_end(self, summary: RunSummary) -> None:
        """Write what was seen of the cluster and the summary, which matters more than anything before it."""
        size = self._size
        if summary.cluster is not None:
            if self._append(encode_cluster(summary.cluster)) and self._append_closing(summary):
                return
            self._take_back(size)
            summary = replace(summary, warnings=(*summary.warnings, _CLUSTER_LOST_TEXT))
        if not self._append_closing(summary):
            # No room for the summary, not even after a block that had none either: the last one makes some.
            rows, size = self._last_block
            if self._take_back(size):
                self._results -= rows
                self.results_lost += rows
            self._append_closing(summary)

    def _append_closing(self, summary: RunSummary) -> bool:
        return self._append(encode_closing(ClosingRecord(self._results, self.results_lost, summary)))

    def _take_back(self, size: int) -> bool:
        """Remove what was written beyond ``size``; False where that cannot be."""
        try:
            self._file.truncate(size)
            self._file.seek(size)
        except OSError:  # what is no regular file
            return False
        self._size = size
        return True

    def _write_block(self, block: ResultBlock) -> None:
        rows, size = len(block), self._size
        written = not self._broken and self._append(encode_record(ROWS_KIND, current.encode_rows(block)))
        if written:
            self._last_block = rows, size
        with self._changed:
            self._waiting -= rows
            if written:
                self._results += rows
            else:
                self.results_lost += rows

    def _append(self, data: bytes) -> bool:
        """Write a gzip member, whole or not at all; False and ``failure`` when it cannot be."""
        member = isal_zlib.compress(data, COMPRESSION_LEVEL, GZIP_WINDOW_BITS)
        try:
            written = 0
            while written < len(member):
                written += os.write(self._file.fileno(), member[written:])
        except OSError as error:
            self._broken = True
            if self.failure is None:
                self.failure = error
            with suppress(OSError):  # what is no regular file has no whole blocks to save
                self._file.truncate(self._size)
                self._file.seek(self._size)
            return False
        self._size += len(member)
        return True

    def _lose(self, rows: int, reason: OSError) -> None:
        self.results_lost += rows
        if self.failure is None:
            self.failure = reason


def _fill_blocks(blocks: Iterable[ResultBlock]) -> Iterator[ResultBlock]:
    """Yield the same results in as few blocks of at most :data:`MAX_BLOCK_ROWS` as their order allows."""
    gathered: list[ResultBlock] = []
    rows = 0
    for block in blocks:
        for start in range(0, len(block), MAX_BLOCK_ROWS):
            part = block if len(block) <= MAX_BLOCK_ROWS else block.part(start, start + MAX_BLOCK_ROWS)
            if rows + len(part) > MAX_BLOCK_ROWS:
                yield join_blocks(gathered)
                gathered, rows = [], 0
            gathered.append(part)
            rows += len(part)
    if gathered:
        yield join_blocks(gathered)
