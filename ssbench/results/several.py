"""The stat files of several masters as one run: read in passing, or copied into one file.

Blocks of results are taken in the order in which they began. A copy takes them as they stand; only the
columns with numbers of workers, of masters and of storage URLs are written anew.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, ClassVar

from isal import isal_zlib

from ssbench.base.errors import StatFileError, UsageError
from ssbench.results import columns, fitting, merging
from ssbench.results.block import ResultBlock
from ssbench.results.current import CurrentResults, list_file_warnings, map_defined_codes
from ssbench.results.description import RunDescription, RunSummary
from ssbench.results.fitting import MasterRun
from ssbench.results.formats import open_results
from ssbench.results.reading import DamageError, limit_memory
from ssbench.results.records import (
    FILE_PREAMBLE,
    ROWS_KIND,
    ClosingRecord,
    encode_closing,
    encode_cluster,
    encode_record,
    encode_run,
)
from ssbench.results.writer import COMPRESSION_LEVEL, GZIP_WINDOW_BITS


class MergedResults:
    """The results of several masters; what :class:`~ssbench.statistics.facts.ReadableResults` asks for.

    All files are read once when it is made, for what stands at their ends. Raises StatFileError where one
    cannot be read to its end, and UsageError where they do not make one run.
    """

    current: ClassVar[bool] = True
    #: Only whole files make one run.
    damaged: ClassVar[bool] = False

    def __init__(self, paths: Sequence[Path]) -> None:
        if len(paths) < 2:
            raise UsageError("two stat files or more are expected")
        self._paths = paths
        masters = [self._known(path) for path in paths]
        fits = fitting.check_masters(masters)
        self._numbers = merging.plan_renumberings(masters)
        self.run: RunDescription = merging.merge_descriptions(masters, self._numbers)
        self.summary: RunSummary | None = merging.merge_summaries(masters, self._numbers, fits)
        self.size_classes = [each.name for each in self.run.scenario.size_classes]
        self.results_lost = sum(each.results_lost for each in masters)
        self.results = sum(each.results for each in masters)
        whole = ClosingRecord(self.results, self.results_lost, self.summary)
        self.warnings = [*list_file_warnings(whole, self.run, self.results)]

    @staticmethod
    def _known(path: Path) -> MasterRun:
        """Read a file to its end."""
        with closing(_open_member(path)) as results:
            count, size_classes = 0, len(results.size_classes)
            try:
                codes = map_defined_codes(results.run)
                # Decoded, because a copy must not hold what no report can show.
                for payload in results.payloads():
                    count += len(columns.decode_rows(payload, size_classes, codes))
            except DamageError as error:
                raise StatFileError(f"{path}: {error}: only whole files can be merged") from None
            if results.summary is None:
                raise StatFileError(
                    f"{path}: its run was killed, or its disk was full, so that its end is missing: only"
                    " whole files can be merged"
                )
            if results.followed:
                raise StatFileError(
                    f"{path}: another run follows its end; only files of one run can be merged"
                )
            return MasterRun(path, results.run, results.summary, count, results.results_lost)

    def again(self) -> MergedResults:
        """Return the same results, to be read from their beginning once more."""
        return MergedResults(self._paths)

    def close(self) -> None:
        """Do nothing: files are open only while they are read."""

    def blocks(self) -> Iterator[ResultBlock]:
        """Yield the results of all."""
        files = [_open_member(path) for path in self._paths]
        codes = [map_defined_codes(results.run) for results in files]
        size_classes, count = len(self.size_classes), 0
        for place, payload in self._payloads(files):
            block = columns.decode_rows(payload, size_classes, codes[place])
            count += len(block)
            yield block
            limit_memory(self._paths[place], count)

    def copy_to(self, out: BinaryIO) -> None:
        """Write a stat file of all; raises UsageError where the operations that they define differ."""
        files = [_open_member(path) for path in self._paths]
        first = files[0].run.scenario.operations
        if any(each.run.scenario.operations != first for each in files):
            raise UsageError("the masters number the operations that the scenario defines differently")
        out.write(_member(FILE_PREAMBLE + encode_run(self.run)))
        for _, payload in self._payloads(files):
            out.write(_member(encode_record(ROWS_KIND, payload)))
        summary = self.summary
        if summary is None:
            raise RuntimeError("a merged run has a summary")
        if summary.cluster is not None:
            out.write(_member(encode_cluster(summary.cluster)))
        out.write(_member(encode_closing(ClosingRecord(self.results, self.results_lost, summary))))

    def _payloads(self, files: Sequence[CurrentResults]) -> Iterator[tuple[int, bytes]]:
        """Yield (place of its file, payload with the numbers of the whole run), in order."""
        streams = [self._stream(place, results) for place, results in enumerate(files)]
        try:
            for _, place, payload in heapq.merge(*streams, key=lambda each: each[:2]):
                yield place, payload
        except DamageError as error:
            raise StatFileError(f"{error} (a stat file changed while it was read)") from None
        finally:
            for results in files:
                results.close()

    def _stream(self, place: int, results: CurrentResults) -> Iterator[tuple[int, int, bytes]]:
        changes = self._numbers[place].changes()
        for payload in results.payloads():
            yield columns.read_first_moment(payload), place, columns.change_columns(payload, changes)


def _open_member(path: Path) -> CurrentResults:
    results = open_results(path)
    if not isinstance(results, CurrentResults):
        results.close()
        raise StatFileError(f"{path}: written by ssbench 0.x; only files of ssbench 1 can be merged")
    return results


def _member(data: bytes) -> bytes:
    return bytes(isal_zlib.compress(data, COMPRESSION_LEVEL, GZIP_WINDOW_BITS))
