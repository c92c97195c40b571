"""Curves of a run, for charts: names, colours, bins, latency by percentile."""

from __future__ import annotations

import numpy as np

from ssbench.document import Curve
from ssbench.document.colours import COLOURS, GREY
from ssbench.operations import OPERATIONS
from ssbench.statistics import Latencies, OverTime

_MILLISECOND = 1e-3

#: Points of a curve of percentiles in each decade of what lies beyond.
_POINTS = 10


def name_of(code: int | None) -> str:
    """Return what a chart calls an operation, None being all of them."""
    operation = OPERATIONS.get(code) if code is not None else None
    return operation.name.upper() if operation else "ALL"


def colour_of(code: int | None) -> str:
    """Return the colour of an operation in all charts."""
    return GREY if code is None else COLOURS[code % len(COLOURS)]


def middles(over_time: OverTime) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the middle of each bin."""
    return over_time.starts + over_time.seconds / 2


def by_percentile(name: str, latencies: Latencies, colour: str) -> Curve:
    """Return latency by percentile, from the least to the maximum; x is 1 / (1 - share)."""
    last = max(latencies.count, 2)
    x = np.unique(np.append(np.geomspace(1.0, last, int(_POINTS * np.log10(last)) + 2)[1:-1], [1.0, last]))
    y = [latencies.minimum]
    y += latencies.percentiles([round(100 - 100 / place, 7) for place in x[1:-1].tolist()])
    return Curve(name, x, np.array([*y, latencies.maximum]) / _MILLISECOND, colour, width=2.0)
