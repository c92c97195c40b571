"""Reads the stat files of ssbench 1, of every version of the format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from isal.isal_zlib import crc32

from ssbench.operations import OPERATIONS
from ssbench.results import ResultBlock, RunDescription
from ssbench.run_results import columns
from ssbench.run_results.damage import DamageError
from ssbench.run_results.reading import Format, RunResults
from ssbench.run_results.records import (
    CLUSTER,
    END,
    MAGIC,
    MAX_RECORD_BYTES,
    RECORD_HEADER,
    ROWS,
    RUN,
    VERSION,
    Closing,
    decode_closing,
    decode_cluster,
    decode_run,
)

_ANOTHER = "another stat file follows in this file, as after 'cat A B'"


class CurrentResults(RunResults):
    """A stat file of ssbench 1."""

    current: ClassVar[bool] = True
    #: How many results could not be written; known at the end.
    results_lost = 0
    #: Whether something follows the end of the run.
    followed = False

    def _read_run(self) -> RunDescription:
        head = self._stream.peek(len(MAGIC) + 8)
        version, line_feed, _ = head[len(MAGIC) :].partition(b"\n")
        if not line_feed or not version.isdigit():
            raise DamageError("a stat file of ssbench that is damaged at its beginning")
        if int(version) > VERSION:
            raise DamageError(
                f"written in format {int(version)} by a newer ssbench; this one reads up to format {VERSION}"
            )
        self._stream.read(len(MAGIC) + len(version) + 1)
        kind, payload = self._record() or (b"", b"")
        if kind != RUN:
            raise DamageError("a stat file of ssbench without the description of its run")
        return decode_run(payload)

    def _read_blocks(self) -> Iterator[ResultBlock]:
        size_classes, codes = len(self.size_classes), codes_of_defined(self.run)
        for payload in self.payloads():
            yield columns.decode(payload, size_classes, codes)

    def payloads(self) -> Iterator[bytes]:
        """Yield the payload of each record of results, then take in the summary; raises DamageError."""
        cluster = None
        while (record := self._record()) is not None:
            kind, payload = record
            if kind == ROWS:
                yield payload
            elif kind == CLUSTER:
                cluster = decode_cluster(payload)
                if cluster is None:
                    self.warnings.append(
                        "what was seen of the cluster cannot be read by this version of ssbench"
                    )
            elif kind == END:
                closing = decode_closing(payload)
                self.summary = replace(closing.summary, cluster=cluster)
                self.results_lost = closing.results_lost
                self.warnings.extend(warnings_of(closing, self.run, self.results_read))
                self._warn_of_what_follows()
                return
        self.warnings.append(
            "the run was killed, or its disk was full: its summary is missing, and perhaps results"
        )

    def _warn_of_what_follows(self) -> None:
        """Warn of what stands after the end of the run: another run, where files were put together."""
        rest = self._stream.peek(len(MAGIC))
        self.followed = bool(rest)
        if rest == MAGIC:
            self.warnings.insert(
                0,
                f"{_ANOTHER}: this is about the first of them only; report on each by itself, or on all with"
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
        if MAGIC.startswith(header):
            raise DamageError(f"{_ANOTHER}, and the first has no end")
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


def warnings_of(closing: Closing, run: RunDescription, results: int) -> Iterator[str]:
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


def codes_of_defined(run: RunDescription) -> dict[int, int]:
    """Return the codes here of the operations that the scenario of a run defines, by those in its file."""
    try:
        return {
            each.defined[2]: OPERATIONS.define(each).code
            for each in run.scenario.operations
            if each.defined is not None
        }
    except ValueError as error:
        raise DamageError(f"the operations of the run: {error}") from None


FORMAT = Format("ssbench 1", lambda head: head.startswith(MAGIC), CurrentResults)
