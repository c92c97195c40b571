"""Groups of results that agree in some of their fields, and the figures of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.results.block import is_constant
from ssbench.statistics.figures import Figures, merge_figures

#: Values of a key that lie further apart are numbered before they are put in order.
_MAX_SPAN = 1 << 16


class Groups(msgspec.Struct, frozen=True):
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

    def merged(self, key: str, names: Mapping[int, str]) -> dict[str, Figures]:
        """Return the figures by the names of the values of one key, in order; values without are left out."""
        parts: dict[str, list[Figures]] = {}
        for (value,), figures in self.by(key).items():
            if name := names.get(value):
                parts.setdefault(name, []).append(figures)
        return {name: merge_figures(parts[name]) for name in sorted(parts)}


def split(
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
