"""Writes a stat file while the run goes on, from a thread of its own.

The master hands over rows and never waits for a disk. Each block is a gzip member of its own, so
that what a killed master leaves behind can be read up to the last whole block.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from isal import isal_zlib

from ssbench.errors import StatFileError
from ssbench.results import Failure, ResultRow
from ssbench.run_results.blocks import (
    MAX_ROWS,
    PREAMBLE,
    Closing,
    PendingRows,
    closing_record,
    pack_row_numbers,
    pack_rows,
    run_record,
)
from ssbench.run_results.description import RunDescription, RunSummary

logger = logging.getLogger(__name__)

#: Results reach the disk at latest after this many seconds.
FLUSH_SECONDS = 1.0
#: Results that wait for a slow disk; what comes beyond is lost, so that memory has a bound.
MAX_WAITING_ROWS = 4_000_000
#: How long :meth:`RunResultsWriter.finish` waits for a disk that does not keep up, in seconds.
FINISH_SECONDS = 60.0

_GZIP = 31  # zlib's window of 15 bits, in the gzip format
_LEVEL = 1  # of isal; 0 costs more and compresses less, 2 and 3 gain next to nothing on these columns


class RunResultsWriter:
    """A stat file that is being written. Used by one thread.

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
        self._append(PREAMBLE + run_record(run))
        if self.failure:
            self._file.close()
            raise StatFileError(f"{path}: cannot be written: {self.failure.strerror}")
        #: Results in the last block that was written, and where in the file it begins.
        self._last_block = 0, self._size
        self._pending = PendingRows()
        self._waiting = 0
        self._summary: RunSummary | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._write, name="stat file", daemon=True)
        self._thread.start()

    def add(
        self,
        rows: Sequence[ResultRow],
        trans_ids: Sequence[str | None] = (),
        failures: Mapping[int, Failure] | None = None,
    ) -> None:
        """Hand over results; never waits for the disk.

        ``trans_ids`` has one entry a row, or is empty when there is none; ``failures`` is keyed by
        the position in ``rows``. None of them may be changed by the caller afterwards.
        """
        packed = pack_row_numbers(rows)
        with self._changed:
            if self._waiting + len(rows) > MAX_WAITING_ROWS:
                self._lose(len(rows), OSError(errno.ETIMEDOUT, "the disk is slower than the results"))
                return
            pending = self._pending
            pending.packed += packed
            if trans_ids.count(None) < len(trans_ids):
                pending.trans_ids.append((pending.rows, trans_ids))
            if failures:
                for position, failure in failures.items():
                    pending.failures[pending.rows + position] = failure
            pending.rows += len(rows)
            self._waiting += len(rows)
            if pending.rows >= MAX_ROWS:
                self._changed.notify()

    def finish(self, summary: RunSummary) -> None:
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
                logger.warning(
                    "waiting for the disk: %d results to be written to %s", self._waiting, self.path
                )
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
                    lambda: self._pending.rows >= MAX_ROWS or self._summary is not None, FLUSH_SECONDS
                )
                pending, self._pending = self._pending, PendingRows()
                summary = self._summary
            if pending.rows:
                self._write_rows(pending)
        if not self._append_closing(summary):
            # No room for the summary, not even after a block that had none either: the last one makes some.
            self._take_back_last_block()
            self._append_closing(summary)

    def _append_closing(self, summary: RunSummary) -> bool:
        return self._append(closing_record(Closing(self._results, self.results_lost, summary)))

    def _take_back_last_block(self) -> None:
        rows, size = self._last_block
        try:
            self._file.truncate(size)
            self._file.seek(size)
        except OSError:  # what is no regular file
            return
        self._size = size
        self._results -= rows
        self.results_lost += rows

    def _write_rows(self, pending: PendingRows) -> None:
        left = pending.rows
        for record in pack_rows(pending) if not self._broken else ():
            rows, size = min(left, MAX_ROWS), self._size
            if not self._append(record):
                break
            self._last_block = rows, size
            left -= rows
            self._results += rows
            with self._changed:
                self._waiting -= rows
        with self._changed:
            self._waiting -= left
            self.results_lost += left

    def _append(self, data: bytes) -> bool:
        """Write a gzip member, whole or not at all; False and ``failure`` when it cannot be."""
        member = isal_zlib.compress(data, _LEVEL, _GZIP)
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
