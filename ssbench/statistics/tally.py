"""Counts how often whole numbers occur, and adds up by the numbers of groups."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

#: Values that lie further apart are sorted instead of being used as places in an array.
_MAX_SPAN = 1 << 16
_MAX_SUM = 2.0**62


def count_values(
    counter: Counter[int], values: npt.NDArray[np.int64], weights: npt.NDArray[Any] | None = None
) -> None:
    """Count each value in a counter; with weights, add these up instead, which may be 0."""
    if not len(values):
        return
    lowest, highest = int(values.min()), int(values.max())
    if highest - lowest < _MAX_SPAN:
        present = np.bincount(values - lowest)
        counts = present if weights is None else to_whole_numbers(np.bincount(values - lowest, weights))
        places = np.flatnonzero(present)
        for value, times in zip((places + lowest).tolist(), counts[places].tolist(), strict=True):
            counter[value] += times
    else:
        found, inverse = np.unique(values, return_inverse=True)
        for value, times in zip(found.tolist(), np.bincount(inverse, weights).tolist(), strict=True):
            counter[value] += int(times)


def to_whole_numbers(sums: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return sums as whole numbers; those of a made-up file that are too large for them as the largest."""
    return np.asarray(np.clip(sums, -_MAX_SUM, _MAX_SUM), np.int64)


def take_rows(column: npt.NDArray[Any], rows: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """Return some rows of a column, in their order; faster where these are all."""
    return column.copy() if len(rows) == len(column) else column[rows]


def number_values(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return numbers from 0, equal where whole values are, and the value of each number, in ascending order.

    There may be values that do not occur, where they lie close together.
    """
    lowest, highest = int(values.min()), int(values.max())
    if highest - lowest < _MAX_SPAN:
        return values - np.asarray(lowest, values.dtype), np.arange(lowest, highest + 1)
    found, numbers = np.unique(values, return_inverse=True)
    return numbers, found


def find_starts(ordered: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return where each value begins among values in order, of which there must be some."""
    return np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))


def add_up(
    sums: npt.NDArray[Any], groups: npt.NDArray[np.intp], weights: npt.NDArray[Any] | None = None
) -> npt.NDArray[Any]:
    """Return the sums of groups, which are numbered from 0, with each row's weight, or 1, added to its group.

    There are more sums than before where there are more groups.
    """
    if not len(groups):  # of which bincount() makes whole numbers
        return sums
    found: npt.NDArray[Any] = np.bincount(groups, weights, minlength=len(sums))
    if len(sums):
        found[: len(sums)] += sums
    return found


def grow_groups(values: npt.NDArray[Any], count: int, fill: float = 0) -> npt.NDArray[Any]:
    """Return the values of groups, with as many more as there are groups more."""
    if len(values) >= count:
        return values
    return np.concatenate([values, np.full(count - len(values), fill, values.dtype)])


def order_in_groups(groups: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the order in which rows of a group follow each other, which are numbered from 0."""
    small = groups if groups.max() >= 1 << 16 else groups.astype(np.uint16)  # which numpy sorts by radix
    return small.argsort(kind="stable")
