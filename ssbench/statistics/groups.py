"""Groups of results that agree in some of their fields, and the figures of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.results.block import is_constant_column
from ssbench.statistics.figures import CountedFigures, merge_figures
from ssbench.statistics.tally import number_values


class Groups(msgspec.Struct, frozen=True):
    """Figures of the results that agree in all ``keys``, by the values of these."""

    keys: tuple[str, ...]
    figures: Mapping[tuple[int, ...], CountedFigures]

    def by(self, *keys: str) -> dict[tuple[int, ...], CountedFigures]:
        """Return the figures by the values of only some of the keys, in ascending order."""
        places = [self.keys.index(key) for key in keys]
        parts: dict[tuple[int, ...], list[CountedFigures]] = {}
        for values, figures in self.figures.items():
            parts.setdefault(tuple(values[place] for place in places), []).append(figures)
        return {values: merge_figures(parts[values]) for values in sorted(parts)}

    def merged(self, key: str, names: Mapping[int, str]) -> dict[str, CountedFigures]:
        """Return the figures by the names of the values of one key, in order; values without are left out."""
        parts: dict[str, list[CountedFigures]] = {}
        for (value,), figures in self.by(key).items():
            if name := names.get(value):
                parts.setdefault(name, []).append(figures)
        return {name: merge_figures(parts[name]) for name in sorted(parts)}


class Numbering:
    """Numbers what occurs together in several columns, from 0, in the order in which it comes."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, ...], int] = {}

    def of(self, columns: Sequence[npt.NDArray[np.int64]], rows: int) -> npt.NDArray[np.intp]:
        """Return the number of the values of each of so many rows, at least one."""
        code = _number_rows(columns)
        if code is None:
            return np.full(rows, self._numbers(columns, np.zeros(1, np.intp))[0])
        if code.dtype == np.uint16:
            row_of = np.full(1 << 16, -1, np.intp)
            row_of[code] = np.arange(rows)
            found = np.flatnonzero(row_of >= 0)
            number_of = np.empty(1 << 16, np.intp)
            number_of[found] = self._numbers(columns, row_of[found])
            numbers: npt.NDArray[np.intp] = number_of[code]
            return numbers
        _, firsts, places = np.unique(code, return_index=True, return_inverse=True)
        return self._numbers(columns, firsts)[places]

    def _numbers(
        self, columns: Sequence[npt.NDArray[np.int64]], rows: npt.NDArray[np.intp]
    ) -> npt.NDArray[np.intp]:
        """Return the numbers of the values in some rows, which are given to new values."""
        found = zip(*(column[rows].tolist() for column in columns), strict=True) if columns else [()]
        numbers = self.numbers
        return np.array([numbers.setdefault(values, len(numbers)) for values in found], np.intp)


def _number_rows(columns: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[Any] | None:
    """Return a number for each row, the same where the values of all columns are; None where all rows are."""
    code: npt.NDArray[Any] | None = None
    most = 1
    for column in columns:
        if is_constant_column(column):
            continue
        numbers, values = number_values(column)
        span = len(values)
        if code is None:
            code, most = numbers.astype(np.uint32), span
            continue
        if most * span > 1 << 32:  # more than the product of both can tell apart
            code, codes = number_values(code)
            code, most = code.astype(np.uint64), len(codes)
        code = code * np.asarray(span, code.dtype) + numbers.astype(code.dtype)
        most *= span
    return code.astype(np.uint16) if code is not None and most <= 1 << 16 else code
