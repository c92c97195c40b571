"""A stat file while it is written: what is new in it, each time that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from isal import isal_zlib
from isal.isal_zlib import crc32

from ssbench.cluster.observation import Observation
from ssbench.results import ResultBlock, RunDescription, RunSummary
from ssbench.run_results import columns
from ssbench.run_results.current import codes_of_defined, warnings_of
from ssbench.run_results.damage import DamageError
from ssbench.run_results.records import (
    CLUSTER,
    END,
    MAX_RECORD_BYTES,
    PREAMBLE,
    RECORD_HEADER,
    ROWS,
    RUN,
    decode_closing,
    decode_cluster,
    decode_run,
)

_GZIP = 31  # zlib's window of 15 bits, in the gzip format
_CHUNK = 4 * 1024 * 1024
#: isal's stubs call the class an instance.
_INFLATE_ERROR = cast("type[Exception]", isal_zlib.error)


class Following:
    """Reads on in a stat file of this version of ssbench, which its master is writing.

    ``run`` is None until it is there, ``summary`` until the run has ended. Raises OSError where the file
    cannot be opened. The writer may take back what it wrote where a disk is full: :meth:`blocks` raises
    DamageError then, and the file is to be read as a whole when it is complete.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run: RunDescription | None = None
        self.summary: RunSummary | None = None
        self.warnings: list[str] = []
        self._file = path.open("rb")
        self._member: Any = None
        self._read = 0
        self._data = bytearray()
        self._begun = False
        self._results = 0
        self._cluster: Observation | None = None
        self._codes: dict[int, int] = {}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def blocks(self) -> Iterator[ResultBlock]:
        """Yield the results that came since this was last called; raises DamageError."""
        while self.summary is None and self._more():
            while (record := self._record()) is not None:
                yield from self._take(*record)
        if self.summary is not None:
            self.close()

    def _more(self) -> bool:
        """Decompress what is new; return whether there was something."""
        if self.path.stat().st_size < self._read:
            raise DamageError("the end of the file was taken back")
        data = self._file.read(_CHUNK)
        self._read += len(data)
        found = bool(data)
        try:
            while data:
                if self._member is None:
                    self._member = isal_zlib.decompressobj(_GZIP)
                self._data += self._member.decompress(data)
                data = self._member.unused_data
                if self._member.eof:
                    self._member = None
        except _INFLATE_ERROR as error:
            raise DamageError(str(error)) from None
        return found

    def _record(self) -> tuple[bytes, bytes] | None:
        """Return kind and payload of the next record; None where it is not whole yet."""
        if not self._begun:
            if len(self._data) < len(PREAMBLE):
                return None
            if not self._data.startswith(PREAMBLE):
                raise DamageError("not a stat file of this version of ssbench")
            del self._data[: len(PREAMBLE)]
            self._begun = True
        if len(self._data) < RECORD_HEADER.size:
            return None
        kind, size, checksum = RECORD_HEADER.unpack_from(self._data)
        if size > MAX_RECORD_BYTES:
            raise DamageError(f"a record claims {size:,} bytes")
        end = RECORD_HEADER.size + size
        if len(self._data) < end:
            return None
        payload = bytes(self._data[RECORD_HEADER.size : end])
        if crc32(payload, crc32(kind)) != checksum:
            raise DamageError("a record does not match its checksum")
        del self._data[:end]
        return kind, payload

    def _take(self, kind: bytes, payload: bytes) -> Iterator[ResultBlock]:
        if kind == RUN:
            self.run = decode_run(payload)
            self._codes = codes_of_defined(self.run)
        elif kind == ROWS and self.run is not None:
            block = columns.decode(payload, len(self.run.scenario.size_classes), self._codes)
            self._results += len(block)
            yield block
        elif kind == CLUSTER:
            self._cluster = decode_cluster(payload)
        elif kind == END and self.run is not None:
            closing = decode_closing(payload)
            if closing.results != self._results:
                raise DamageError("results were taken back")
            self.summary = replace(closing.summary, cluster=self._cluster)
            self.warnings += warnings_of(closing, self.run, self._results)
