"""Counts how often whole numbers occur."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

#: Values that lie further apart are sorted instead of being used as places in an array.
_MAX_SPAN = 1 << 16


def tally(
    counter: Counter[int], values: npt.NDArray[np.int64], weights: npt.NDArray[Any] | None = None
) -> None:
    """Count each value in a counter; with weights, add these up instead, which may be 0."""
    if not len(values):
        return
    lowest, highest = int(values.min()), int(values.max())
    if highest - lowest < _MAX_SPAN:
        present = np.bincount(values - lowest)
        counts = present if weights is None else np.bincount(values - lowest, weights).astype(np.int64)
        places = np.flatnonzero(present)
        for value, times in zip((places + lowest).tolist(), counts[places].tolist(), strict=True):
            counter[value] += times
    else:
        found, inverse = np.unique(values, return_inverse=True)
        for value, times in zip(found.tolist(), np.bincount(inverse, weights).tolist(), strict=True):
            counter[value] += int(times)
