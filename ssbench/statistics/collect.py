"""Counts results, block by block, in groups of equal operation, size class, worker or the like.

Memory: 16 bytes a result, for its two latencies. Everything else is folded in as it comes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ssbench.results import FIELDS, LOST, NO_WORKER, Kind, ResultBlock
from ssbench.results.block import is_constant
from ssbench.statistics.latencies import Latencies, LatencyCollector, merge

#: What results are always kept apart by.
ALWAYS = ("operation", "size_class")

#: Values of a key that lie further apart are numbered before they are put in order.
_MAX_SPAN = 1 << 16


@dataclass(slots=True)
class Cause:
    """How often something was the cause, and the transaction id of the first such operation."""

    count: int = 0
    trans_id: str | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """What is counted of some results.

    ``count`` is of successes. ``lost`` counts operations whose worker vanished; they are neither in
    ``count`` nor in ``errors``. ``start`` is when the first success was sent, infinite without any;
    ``end`` the last completion, a failure's too, minus infinity without a result; seconds since 1970.
    """

    count: int
    errors: int
    lost: int
    retries: int
    start: float
    end: float
    first_byte: Latencies
    last_byte: Latencies


def merge_figures(parts: Iterable[Figures]) -> Figures:
    """Return the figures of several groups together, without copying latencies."""
    parts = list(parts)
    return Figures(
        count=sum(part.count for part in parts),
        errors=sum(part.errors for part in parts),
        lost=sum(part.lost for part in parts),
        retries=sum(part.retries for part in parts),
        start=min((part.start for part in parts), default=math.inf),
        end=max((part.end for part in parts), default=-math.inf),
        first_byte=merge(part.first_byte for part in parts),
        last_byte=merge(part.last_byte for part in parts),
    )


@dataclass(frozen=True, slots=True)
class Groups:
    """Figures of the results that agree in all ``keys``, by the values of these."""

    keys: tuple[str, ...]
    figures: Mapping[tuple[int, ...], Figures]

    def by(self, *keys: str) -> dict[tuple[int, ...], Figures]:
        """Return the figures by the values of only some of the keys, in ascending order."""
        places = [self.keys.index(key) for key in keys]
        parts: dict[tuple[int, ...], list[Figures]] = {}
        for values, figures in self.figures.items():
            parts.setdefault(tuple(values[place] for place in places), []).append(figures)
        return {values: merge_figures(parts[values]) for values in sorted(parts)}


@dataclass(slots=True)
class _Group:
    """Counts the results of one group."""

    count: int = 0
    errors: int = 0
    lost: int = 0
    retries: int = 0
    start: float = math.inf
    end: float = -math.inf
    first_byte: LatencyCollector = field(default_factory=LatencyCollector)
    last_byte: LatencyCollector = field(default_factory=LatencyCollector)

    def add(self, block: ResultBlock, rows: npt.NDArray[np.intp], before: int) -> None:
        """Count some rows of a block that has ``before`` results before it."""
        completed = block.completed[rows]
        self.retries += int(block.retries[rows].sum())
        self.end = max(self.end, float(completed.max()))
        if block.failures:
            failed = block.failed[rows]
            self.errors += int(failed.sum())
            rows, completed = rows[~failed], completed[~failed]
            if not len(rows):
                return
        self.count += len(rows)
        last_byte = block.last_byte[rows]
        self.start = min(self.start, float((completed - np.fmax(last_byte, 0.0)).min()))
        self.first_byte.add(block, rows, block.first_byte[rows], before)
        self.last_byte.add(block, rows, last_byte, before)

    def figures(self) -> Figures:
        return Figures(
            self.count,
            self.errors,
            self.lost,
            self.retries,
            self.start,
            self.end,
            self.first_byte.finish(),
            self.last_byte.finish(),
        )


class Collector:
    """Counts results as they come; what was counted can be asked for at any time.

    Results are kept apart by :data:`ALWAYS` and by the fields named in ``by``, which must be
    numbers (stage, account, worker, storage_url, ...); raises ValueError for others.

    ``first_completed`` is the earliest completion, infinite without a result. ``workers`` counts the
    successes of each worker that has a result, ``seconds`` those of each second since 1970,
    ``errors`` and ``retries`` causes.
    """

    def __init__(self, by: Sequence[str] = ()) -> None:
        self.keys = (*ALWAYS, *(name for name in by if name not in ALWAYS))
        for name in self.keys:
            if name not in FIELDS or FIELDS[name].kind is not Kind.NUMBER:
                raise ValueError(f"results cannot be grouped by {name}")
        self.results = 0
        self.first_completed = math.inf
        self.workers: Counter[int] = Counter()
        self.seconds: Counter[int] = Counter()
        self.errors: dict[str, Cause] = {}
        self.retries: Counter[str] = Counter()
        self._groups: dict[tuple[int, ...], _Group] = {}

    def add(self, block: ResultBlock) -> None:
        """Count the results of a block, which must not be empty."""
        for values, rows in _split([getattr(block, key) for key in self.keys]):
            self._groups.setdefault(values, _Group()).add(block, rows, self.results)
        self.results += len(block)
        self.first_completed = min(self.first_completed, float(block.completed.min()))
        succeeded, known = ~block.failed, block.worker != NO_WORKER
        _count(self.workers, block.worker[known], succeeded[known])
        _count(self.seconds, np.floor(block.completed[succeeded]).astype(np.int64))
        for row, failure in block.failures.items():
            if failure.cause is not None:
                cause = self.errors.setdefault(failure.cause, Cause())
                cause.count += 1
                cause.trans_id = cause.trans_id or block.trans_id[row]
                if failure.cause == LOST:
                    group = self._groups[tuple(int(getattr(block, key)[row]) for key in self.keys)]
                    group.lost += 1
                    group.errors -= 1
            self.retries.update(failure.retried)

    def groups(self) -> Groups:
        """Return the figures of what was counted so far."""
        return Groups(self.keys, {values: group.figures() for values, group in self._groups.items()})


def _split(
    columns: Sequence[npt.NDArray[np.int64]],
) -> Iterable[tuple[tuple[int, ...], npt.NDArray[np.intp]]]:
    """Yield the values that occur together in the rows of several columns, and the rows of each."""
    code: npt.NDArray[Any] = np.zeros(len(columns[0]), np.uint32)
    most = 1
    for column in columns:
        if is_constant(column):
            continue
        numbers, span = _numbered(column)
        if most * span > 1 << 32:  # more than the product of both can tell apart
            code, most = _numbered(code)
            code = code.astype(np.uint64)
        code = code * np.asarray(span, code.dtype) + numbers.astype(code.dtype)
        most *= span
    if most <= 1 << 16:
        code = code.astype(np.uint16)  # which numpy sorts by radix
    order = np.argsort(code, kind="stable")
    ordered = code[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] + 1))
    for rows in np.split(order, starts[1:]):
        yield tuple(int(column[rows[0]]) for column in columns), rows


def _numbered(column: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], int]:
    """Return small numbers, equal where the values of a column are, and what they are all less than."""
    lowest, highest = int(column.min()), int(column.max())
    if highest - lowest < _MAX_SPAN:
        return column - np.asarray(lowest, column.dtype), highest - lowest + 1
    values, numbers = np.unique(column, return_inverse=True)
    return numbers, len(values)


def _count(
    counter: Counter[int], values: npt.NDArray[np.int64], weights: npt.NDArray[np.bool_] | None = None
) -> None:
    """Count each value in a counter; with weights, only those that are True, and the others as 0."""
    if not len(values):
        return
    lowest, highest = int(values.min()), int(values.max())
    if highest - lowest < 1 << 16:
        present = np.bincount(values - lowest)
        counts = present if weights is None else np.bincount(values - lowest, weights).astype(np.int64)
        for value in np.flatnonzero(present).tolist():
            counter[value + lowest] += int(counts[value])
    else:
        found, inverse = np.unique(values, return_inverse=True)
        for value, times in zip(found.tolist(), np.bincount(inverse, weights).tolist(), strict=True):
            counter[value] += int(times)
