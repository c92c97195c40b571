"""Joins the results of a run with lines of Swift's logs by transaction id, into columns.

Only what has an id of the run is kept, so that ten million lines fit in memory, and counts of what others did
(:mod:`~ssbench.cluster.log_background`). What is kept of a line of the run are durations.

The results may be a random sample of those of the run (:class:`ResultSample`), so that memory hardly grows
with the run: by 8 bytes for each transaction id. Each time that more results have come together than are
asked for, half of them are dropped at random, and from there on half as many are taken. So every result of
the run is in the sample with the same probability, wherever it stands in the run, and the sample has between
half of the number and all of it. Only the slowest results are taken always: they are too few to matter in a
figure, and a report shows them one by one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ssbench.cluster import joined_run as cluster_joined
from ssbench.cluster import log_background, log_lines, node_addresses
from ssbench.cluster.joined_run import (
    LOOK,
    NO_INDEX,
    OBJECT,
    SENT_ONCE,
    UPDATE,
    Device,
    FileCount,
    JoinedOperations,
    JoinedRun,
    Process,
    find_slowest_operations,
)
from ssbench.cluster.joined_run import MAX_SLOWEST_OPERATIONS as SLOWEST
from ssbench.cluster.log_background import FileBackground
from ssbench.cluster.log_files import LogFile
from ssbench.cluster.log_lines import NO_POLICY, TransactionIds
from ssbench.cluster.log_scan import FileLines, WantedLines, read_log_files
from ssbench.results.block import ResultBlock, TextColumn
from ssbench.results.reading import RunResults
from ssbench.scenario.names import run_mark
from ssbench.statistics.latencies import measured_latencies

_SAMPLE_SEED = 1
SampleColumn = npt.NDArray[Any]


class ResultSample:
    """Takes columns of results, block by block, and keeps at most ``most`` rows and the slowest ones.

    It keeps all rows where ``most`` is None.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._random = np.random.default_rng(_SAMPLE_SEED)
        self._share = 1.0
        self._taken = 0
        self._parts: list[list[SampleColumn]] = []
        self._slowest = np.zeros(0)
        self.seen = 0

    def add(self, latency: npt.NDArray[np.float64], columns: list[SampleColumn]) -> None:
        """Take some of the rows of a block; latencies are NaN for failures."""
        rows = np.arange(self.seen, self.seen + len(latency))
        self.seen += len(latency)
        known = latency[~np.isnan(latency)]
        self._slowest = np.sort(np.append(self._slowest, known))[-SLOWEST - 1 :]
        columns = [rows, latency, *columns]
        if self._share < 1:
            columns = self._some(columns, self._share)
        self._parts.append(columns)
        self._taken += len(columns[0])
        while self._most is not None and self._taken > self._most + SLOWEST:
            self._parts = [self._some(self._together(), 0.5)]
            self._share /= 2
            self._taken = len(self._parts[0][0])

    @property
    def limit(self) -> float:
        """The latency above which a result is among the slowest of those so far."""
        return float(self._slowest[0]) if len(self._slowest) > SLOWEST else -1.0

    def _some(self, columns: list[SampleColumn], share: float) -> list[SampleColumn]:
        latency = columns[1]
        taken = (latency > self.limit) | (self._random.random(len(latency)) < share)
        return [column[taken] for column in columns]

    def _together(self) -> list[SampleColumn]:
        return [np.concatenate(parts) for parts in zip(*self._parts, strict=True)]

    def columns(self) -> list[SampleColumn]:
        """Return the number of each row that was taken in the run, its latency, and its other columns."""
        return self._together()


# -- Results and lines -----------------------------------------------------------------------------


_KeyT = TypeVar("_KeyT", bound=Hashable)


class LogJoin:
    """Takes the results of a run, then its logs; :meth:`joined` is what came of it.

    ``template`` is the proxies' ``log_msg_template``, where they have one. Of ``transaction``, which need not
    be a result, all lines are kept, as of the slowest operations. Of more than ``most`` results a random
    sample is taken; None takes all.
    """

    def __init__(
        self,
        results: RunResults,
        template: str | None = None,
        transaction: str | None = None,
        most: int | None = None,
    ) -> None:
        self.run_marks = tuple(f"-{run_mark(each)}".encode() for each in results.run.run_ids)
        self._without_id = 0
        #: How many operations have a transaction id.
        self.identified = 0
        self._candidates: dict[int, str] = {}
        self._moments: list[tuple[int, int]] = []
        self._results = 0
        self._marked = False
        self._operations, found = self._read(results, most)
        shown, other = set(find_slowest_operations(self._operations.latency).tolist()), None
        if transaction:
            other = transaction[: log_lines.ID_LENGTH].encode()
            place = int(found.find(log_lines.gather_ids(other, np.zeros(1, np.int64)))[0])
            if place >= 0:  # what is not in the sample is looked for as what is no result
                self._candidates[place] = other.decode()
                shown.add(place)
                other = None
        self._wanted = WantedLines(
            found, self.run_marks, template, frozenset(shown), other, self._window(), self._marked
        )
        count = len(self._operations.code)
        self._proxy = np.full(count, NO_INDEX, np.int32)
        self._worker = np.full(count, NO_INDEX, np.int32)
        self._seconds = np.full(count, np.nan)
        self._policy = np.full(count, NO_POLICY, np.int32)
        self._handoffs = np.zeros(count, np.int32)
        self._columns = cluster_joined.LineColumns()
        self._proxies: dict[str, int] = {}
        self._workers: dict[str, int] = {}
        self._updaters: dict[tuple[str, str], int] = {}
        self._partitions: dict[tuple[int, int], int] = {}
        self._devices: dict[tuple[str, str, str], int] = {}
        self._processes: dict[tuple[str, str, str], int] = {}
        self._errors: Counter[tuple[str, str, str, str]] = Counter()
        self._other_errors: Counter[tuple[str, str, str, str]] = Counter()
        self._error_places: dict[tuple[str, str, str, str], tuple[int, int]] = {}
        self._files: list[FileCount] = []
        self._kept: list[tuple[str, bool, bytes]] = []
        self._backgrounds: list[FileBackground] = []
        self._senders: dict[tuple[str, str], list[int]] = {}
        self._not_updated: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        self._slow: Counter[tuple[str, str, str]] = Counter()
        # The same line may be in two files.
        self._account_updates: dict[tuple[bytes, int, float], None] = {}

    def _window(self) -> tuple[int, int] | None:
        """Return the seconds between which lines of background daemons are taken; None for no such lines."""
        seconds = [second for pair in self._moments for second in pair]
        return log_background.background_window(min(seconds), max(seconds)) if seconds else None

    def _read(self, results: RunResults, most: int | None) -> tuple[JoinedOperations, TransactionIds]:
        taken = ResultSample(most)
        every = bytearray()  # grows in its place, however many results there are
        for block in results.blocks():
            found, at = log_lines.ids_of_column(block.trans_id)
            if moments := log_lines.time_range_of_ids(found):
                self._moments.append(moments)
            self._without_id += len(block) - len(at)
            self.identified += len(at)
            numbers = np.zeros(len(block), np.uint64)
            numbers[at] = log_lines.number_ids(found)
            every += numbers[at].tobytes()
            latency = measured_latencies(block)
            before = taken.seen
            taken.add(
                latency,
                [
                    block.operation,
                    block.size,
                    _number_subjects(block),
                    block.retries,
                    block.failed.copy(),
                    block.completed,
                    np.where(np.isnan(latency), np.nan, block.first_byte),
                    numbers,
                ],
            )
            self._remember_slowest(block, latency, before, taken.limit)
        if not taken.seen:
            kinds = ("u1", "i8", "u8", "i8", "?", "f8", "f8", "u8")
            taken.add(np.zeros(0), [np.zeros(0, kind) for kind in kinds])
        self._results = taken.seen
        rows_taken, latency, code, size, *others, numbers = taken.columns()
        self._candidates = {
            place: self._candidates[row]
            for row, place in zip(self._candidates, _positions_in(rows_taken, self._candidates), strict=True)
            if place != NO_INDEX
        }
        is_sample = len(rows_taken) < taken.seen
        has_id = np.flatnonzero(numbers)
        known = TransactionIds.of(
            numbers[has_id],
            has_id.astype(np.uint32),
            np.frombuffer(every if is_sample else bytearray(), np.uint64),
        )
        return JoinedOperations(code, size, latency, *others), known

    def _remember_slowest(
        self, block: ResultBlock, latency: npt.NDArray[np.float64], before: int, limit: float
    ) -> None:
        """Keep the ids of what can be among the slowest operations of the run: none below a ``limit``."""
        for row in find_slowest_operations(latency).tolist():
            text = block.trans_id[row]
            if text and latency[row] >= limit:
                self._marked |= text.endswith(tuple(mark.decode() for mark in self.run_marks))
                self._candidates[before + row] = text[: log_lines.ID_LENGTH]

    def read(self, files: Sequence[LogFile]) -> None:
        """Read the lines of all log files. Raises StatFileError when one cannot be read."""
        for file, found in zip(files, read_log_files(files, self._wanted), strict=True):
            self._add(file, found)

    def _add(self, file: LogFile, found: FileLines) -> None:
        """Number what a file names as what the others do, and take its lines."""
        self._files.append(found.count)
        self._errors += found.errors
        for key, (first, last) in found.error_places.items():
            known = self._error_places.get(key, (first, last))
            self._error_places[key] = min(first, known[0]), max(last, known[1])
        self._other_errors += found.other_errors
        self._slow += found.slow
        self._backgrounds.append(found.background)
        self._kept += [(file.node, file.named, line) for line in found.kept]
        np.add.at(self._handoffs, np.array(found.handoffs, np.int64), 1)
        lines = cluster_joined.unpack_line_rows(found.rows)
        known = lines["asker"] != cluster_joined.NO_ASKER
        asked, updated = known & (lines["of"] != UPDATE), known & (lines["of"] == UPDATE)
        workers = _number_all(self._workers, found.workers)
        self._worker[lines["operation"][asked]] = workers[lines["asker"][asked]]
        updaters = np.minimum(_number_all(self._updaters, found.updaters), cluster_joined.NO_ASKER)
        lines["asker"][updated] = updaters[lines["asker"][updated]]
        # Before a DELETE s3api looks at the object, and so may other middleware: that is the proxy's time.
        looked = lines["of"] == LOOK
        lines["of"][looked] = OBJECT
        lines = lines[~(looked & SENT_ONCE[self._operations.code[lines["operation"]]])]
        for name, numbers in (
            ("device", _number_all(self._devices, found.devices)),
            ("process", _number_all(self._processes, found.processes)),
            ("partition", _number_all(self._partitions, found.partitions)),
        ):
            lines[name] = numbers[lines[name]]
        for trans_id, device, seconds in found.account_updates:
            self._account_updates[trans_id, self._devices[found.devices[device]], seconds] = None
        policies = np.array([policy for policy, _ in self._partitions], np.int64)
        policy = policies[lines["partition"]] if len(policies) else np.zeros(0, np.int64)
        known = (lines["of"] == OBJECT) & (policy != NO_POLICY)
        self._policy[lines["operation"][known]] = policy[known]
        self._columns.add(lines)
        for sent, operations in found.senders.items():
            known_of = self._senders.setdefault(sent, [])
            known_of += operations[: node_addresses.MAX_SENDER_OPERATIONS - len(known_of)]
        for who, operations in found.not_updated.items():
            self._not_updated[who] += operations
        proxied = cluster_joined.unpack_proxy_rows(found.proxy_rows)
        place = proxied["operation"]
        longer = ~(proxied["seconds"] <= self._seconds[place])
        place, proxied = place[longer], proxied[longer]
        self._seconds[place] = proxied["seconds"]
        self._proxy[place] = _number_all(self._proxies, found.proxies)[proxied["proxy"]]
        known = proxied["policy"] != NO_POLICY
        self._policy[place[known]] = proxied["policy"][known]

    def joined(self) -> JoinedRun:
        """Return everything as columns; nothing can be added after that."""
        devices = [Device(*words) for words in self._devices]
        processes = [Process(*words) for words in self._processes]
        lines, duplicates = self._columns.lines(devices, processes, list(self._updaters))
        began, ended = zip(*self._moments, strict=True) if self._moments else ((), ())
        return JoinedRun(
            operations=self._operations,
            results=self._results,
            proxies=list(self._proxies),
            proxy_workers=list(self._workers),
            devices=devices,
            processes=processes,
            partitions=list(self._partitions),
            proxy=self._proxy,
            proxy_worker=self._worker,
            proxy_seconds=self._seconds,
            policy=self._policy,
            lines=lines,
            duplicates=duplicates,
            handoffs=self._handoffs,
            errors=self._errors,
            other_errors=self._other_errors,
            # Of a sample of the results, the first and the last operation are not those of all.
            error_places=self._error_places if len(self._operations.code) == self._results else {},
            files=self._files,
            without_id=self._without_id,
            began=min(began, default=None),
            ended=max(ended, default=None),
            trans_ids={
                place: text for place, text in self._candidates.items() if place in self._wanted.shown
            },
            kept=self._kept,
            senders=self._senders,
            not_updated={who: np.unique(places) for who, places in self._not_updated.items()},
            slow=self._slow,
            account_updates=(
                np.array([place for _, place, _ in self._account_updates], np.int64),
                np.array([seconds for _, _, seconds in self._account_updates], np.float64),
            ),
            background=log_background.merge_backgrounds(self._backgrounds, self._operations.ended),
        )


def _positions_in(rows_taken: npt.NDArray[np.int64], rows_wanted: Collection[int]) -> list[int]:
    """Return where each row is among those that were taken, in their order; :data:`NO_INDEX` for no place."""
    wanted = np.array([*rows_wanted], np.int64)
    if not len(rows_taken):
        return [NO_INDEX] * len(wanted)
    at = np.minimum(np.searchsorted(rows_taken, wanted), len(rows_taken) - 1)
    places: list[int] = np.where(rows_taken[at] == wanted, at, NO_INDEX).tolist()
    return places


def _number_subjects(block: ResultBlock) -> npt.NDArray[np.uint64]:
    """Number the objects of a block so that the same object has the same number in every block."""
    if isinstance(block.container, TextColumn) or isinstance(block.object, TextColumn):
        pairs = zip(block.container, block.object, strict=True)
        return np.array([hash(pair) & 0xFFFFFFFFFFFFFFFF for pair in pairs], np.uint64)
    container, size_class = block.container.astype(np.uint64), block.size_class.astype(np.uint64)
    mixed: npt.NDArray[np.uint64] = container * np.uint64(0x9E3779B97F4A7C15)
    mixed += size_class * np.uint64(0xC2B2AE3D27D4EB4F) + block.object.astype(np.uint64)
    return mixed


def _number_all(places: dict[_KeyT, int], things: Sequence[_KeyT]) -> npt.NDArray[np.int64]:
    """Number things in the order in which they are first seen; return the number of each."""
    return np.array([places.setdefault(thing, len(places)) for thing in things], np.int64)
