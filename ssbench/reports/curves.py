"""Curves of a run, for charts: names, colours, bins, latency by percentile."""

from __future__ import annotations

import numpy as np

from ssbench.document.colours import COLOURS, SLATE
from ssbench.document.elements import Curve
from ssbench.document.figures import MIN_BEYOND
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.over_time import OverTime
from ssbench.statistics.run_statistics import RunStatistics

_MILLISECOND = 1e-3

#: Kinds of lines, which distinguish what is of one operation: a colour is an operation.
DASHES = ("solid", "dashed", "dotted")

#: Points of a curve of percentiles in each decade of what lies beyond.
_POINTS = 10


def name_of(code: int | None) -> str:
    """Return what a chart calls an operation, None being all of them."""
    operation = OPERATIONS.get(code) if code is not None else None
    return operation.name.upper() if operation else "ALL"


def colour_of(code: int | None) -> str:
    """Return the colour of an operation in all charts."""
    return SLATE if code is None else COLOURS[code % len(COLOURS)]


def latency_unit(statistics: RunStatistics) -> str:
    """Return what charts of latencies have on their axis: in an open loop these do not begin when due."""
    return "ms since sent" if statistics.run.scenario.is_open else "ms"


def middles(over_time: OverTime) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the middle of each bin."""
    return over_time.starts + over_time.seconds / 2


def by_percentile(name: str, latencies: Latencies, colour: str) -> Curve | None:
    """Return latency by percentile, from the least on; x is 1 / (1 - share).

    It ends where fewer latencies lie beyond than a percentile needs. None where that leaves out the median.
    """
    last = latencies.count / MIN_BEYOND
    if last < 2:
        return None
    x = np.unique(np.append(np.geomspace(1.0, last, int(_POINTS * np.log10(last)) + 3), 2.0))
    y = latencies.percentiles([round(100 - 100 / place, 7) for place in x[1:].tolist()])
    return Curve(name, x, np.array([latencies.minimum, *y]) / _MILLISECOND, colour, width=2.0)
