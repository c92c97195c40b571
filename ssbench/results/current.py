"""Reads the stat files of ssbench 1, of every version of the format, also while they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

from isal import isal_zlib
from isal.isal_zlib import crc32

from ssbench.results import encoding
from ssbench.results.block import ResultBlock
from ssbench.results.cluster_observation import Observation
from ssbench.results.encoding import (
    CLUSTER_KIND,
    END_KIND,
    FILE_PREAMBLE,
    MAX_RECORD_BYTES,
    RECORD_HEADER,
    ROWS_KIND,
    RUN_KIND,
    STAT_FILE_MAGIC,
    STAT_FILE_VERSION,
    ClosingRecord,
    decode_closing,
    decode_cluster,
    decode_run,
)
from ssbench.results.reading import DamageError, Format, RunResults
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.scenario.operations import OPERATIONS

_ANOTHER_FILE_TEXT = "another stat file follows in this file, as after 'cat A B'"

_GZIP_WINDOW_BITS = 31  # zlib's window of 15 bits, in the gzip format
_CHUNK_BYTES = 4 * 1024 * 1024
#: isal's stubs call the class an instance.
_INFLATE_ERROR = cast("type[Exception]", isal_zlib.error)


class CurrentResults(RunResults):
    """A stat file of ssbench 1."""

    current: ClassVar[bool] = True
    #: How many results could not be written; known at the end.
    results_lost = 0
    #: Whether something follows the end of the run.
    followed = False

    def _read_run(self) -> RunDescription:
        head = self._stream.peek(len(STAT_FILE_MAGIC) + 8)
        version, line_feed, _ = head[len(STAT_FILE_MAGIC) :].partition(b"\n")
        if not line_feed or not version.isdigit():
            raise DamageError("a stat file of ssbench that is damaged at its beginning")
        if int(version) > STAT_FILE_VERSION:
            raise DamageError(
                f"written in format {int(version)} by a newer ssbench; this one reads up to"
                f" format {STAT_FILE_VERSION}"
            )
        self._stream.read(len(STAT_FILE_MAGIC) + len(version) + 1)
        kind, payload = self._record() or (b"", b"")
        if kind != RUN_KIND:
            raise DamageError("a stat file of ssbench without the description of its run")
        return decode_run(payload)

    def _read_blocks(self) -> Iterator[ResultBlock]:
        size_classes, codes = len(self.size_classes), map_defined_codes(self.run)
        for payload in self.payloads():
            yield encoding.decode_rows(payload, size_classes, codes)

    def payloads(self) -> Iterator[bytes]:
        """Yield the payload of each record of results, then read the summary; raises DamageError."""
        cluster, count = None, 0
        while (record := self._record()) is not None:
            kind, payload = record
            if kind == ROWS_KIND:
                count += encoding.count_rows(payload)
                yield payload
            elif kind == CLUSTER_KIND:
                cluster = decode_cluster(payload)
                if cluster is None:
                    self.warnings.append(
                        "what was seen of the cluster cannot be read by this version of ssbench"
                    )
            elif kind == END_KIND:
                closing = decode_closing(payload)
                self.summary = replace(closing.summary, cluster=cluster)
                self.results_lost = closing.results_lost
                self.warnings.extend(list_file_warnings(closing, self.run, self.results_read))
                self._warn_of_what_follows()
                if count != closing.results:
                    raise DamageError(f"its end says {closing.results:,} results")
                return
        self.warnings.append(
            "the run is still under way, was killed, or its disk was full: its summary is missing, and"
            " perhaps results"
        )

    def _warn_of_what_follows(self) -> None:
        """Warn of what stands after the end of the run: another run, where files were put together."""
        rest = self._stream.peek(len(STAT_FILE_MAGIC))
        self.followed = bool(rest)
        if rest == STAT_FILE_MAGIC:
            self.warnings.insert(
                0,
                f"{_ANOTHER_FILE_TEXT}: this is about the first of them only; report on"
                f" each by itself, or on all with"
                " 'report-scenario -s A B'",
            )
        elif rest:
            self.warnings.insert(0, "something that is no part of the run follows its end in the stat file")

    def _record(self) -> tuple[bytes, bytes] | None:
        """Return kind and payload of the next record, None at the end; raises DamageError."""
        header = self._stream.read(RECORD_HEADER.size)
        if not header:
            if self._stream.damage:
                raise DamageError(self._stream.damage)
            return None
        if STAT_FILE_MAGIC.startswith(header):
            raise DamageError(f"{_ANOTHER_FILE_TEXT}, and the first has no end")
        if len(header) < RECORD_HEADER.size:
            raise DamageError("the file is cut off")
        kind, size, checksum = RECORD_HEADER.unpack(header)
        if size > MAX_RECORD_BYTES:
            raise DamageError(f"a record claims {size:,} bytes")
        payload = self._stream.read(size)
        if len(payload) < size:
            raise DamageError("the file is cut off")
        if crc32(payload, crc32(kind)) != checksum:
            raise DamageError("a record does not match its checksum")
        return kind, payload


def list_file_warnings(closing: ClosingRecord, run: RunDescription, results: int) -> Iterator[str]:
    """Yield the warnings of a run that has ended, of which so many results were read."""
    if closing.summary.interrupted:
        scenario = run.scenario
        if scenario.run_seconds is not None:
            yield f"the run was interrupted before its {scenario.run_seconds:g} s were over"
        else:
            yield f"the run was interrupted after {results:,} of {scenario.operation_count:,} operations"
    yield from closing.summary.warnings
    if closing.results_lost:
        yield f"results that could not be written to the stat file: {closing.results_lost:,}"


def map_defined_codes(run: RunDescription) -> dict[int, int]:
    """Return the codes here of the operations that the scenario of a run defines, by those in its file."""
    try:
        return {
            each.defined[2]: OPERATIONS.define(each).code
            for each in run.scenario.operations
            if each.defined is not None
        }
    except ValueError as error:
        raise DamageError(f"the operations of the run: {error}") from None


FORMAT = Format("ssbench 1", lambda head: head.startswith(STAT_FILE_MAGIC), CurrentResults)


class ResultsFollower:
    """Reads on in a stat file of this version of ssbench, which its master is writing.

    ``run`` is None until it is there, ``summary`` until the run has ended; ``results`` is how many were read.
    Raises OSError where the file cannot be opened. The writer may take back what it wrote where a disk is
    full: :meth:`blocks` raises DamageError then, and the file is to be read as a whole when it is complete.
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
        self.results = 0
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
        data = self._file.read(_CHUNK_BYTES)
        self._read += len(data)
        found = bool(data)
        try:
            while data:
                if self._member is None:
                    self._member = isal_zlib.decompressobj(_GZIP_WINDOW_BITS)
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
            if len(self._data) < len(FILE_PREAMBLE):
                return None
            if not self._data.startswith(FILE_PREAMBLE):
                raise DamageError("not a stat file of this version of ssbench")
            del self._data[: len(FILE_PREAMBLE)]
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
        if kind == RUN_KIND:
            self.run = decode_run(payload)
            self._codes = map_defined_codes(self.run)
        elif kind == ROWS_KIND and self.run is not None:
            block = encoding.decode_rows(payload, len(self.run.scenario.size_classes), self._codes)
            self.results += len(block)
            yield block
        elif kind == CLUSTER_KIND:
            self._cluster = decode_cluster(payload)
        elif kind == END_KIND and self.run is not None:
            closing = decode_closing(payload)
            if closing.results != self.results:
                raise DamageError("results were taken back")
            self.summary = replace(closing.summary, cluster=self._cluster)
            self.warnings += list_file_warnings(closing, self.run, self.results)
