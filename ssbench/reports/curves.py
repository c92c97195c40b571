"""Curves of a run, for charts: names, colours, bins, latency by percentile."""

from __future__ import annotations

import numpy as np

from ssbench.document.colours import CURVE_COLOURS, SLATE
from ssbench.document.elements import Curve
from ssbench.document.figures import MIN_RESULTS_BEYOND
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.over_time import BinsOverTime
from ssbench.statistics.run_statistics import RunStatistics

_MILLISECOND = 1e-3

#: Kinds of lines, which distinguish what is of one operation: a colour is an operation.
CURVE_DASHES = ("solid", "dashed", "dotted")

#: Points of a curve of percentiles in each decade of what lies beyond.
_POINTS_A_DECADE = 10


def curve_name(code: int | None) -> str:
    """Return what a chart calls an operation, None being all of them."""
    operation = OPERATIONS.get(code) if code is not None else None
    return operation.name.upper() if operation else "ALL"


def curve_colour(code: int | None) -> str:
    """Return the colour of an operation in all charts."""
    return SLATE if code is None else CURVE_COLOURS[code % len(CURVE_COLOURS)]


def latency_axis_unit(statistics: RunStatistics) -> str:
    """Return what charts of latencies have on their axis: in an open loop these do not begin when due."""
    return "ms since sent" if statistics.run.scenario.is_open else "ms"


def bin_middles(over_time: BinsOverTime) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the middle of each bin."""
    return over_time.starts + over_time.seconds / 2


def make_percentile_curve(name: str, latencies: Latencies, colour: str) -> Curve | None:
    """Return latency by percentile, from the least on; x is 1 / (1 - share).

    It ends where fewer latencies lie beyond than a percentile needs. None where that leaves out the median.
    """
    last = latencies.count / MIN_RESULTS_BEYOND
    if last < 2:
        return None
    x = np.unique(np.append(np.geomspace(1.0, last, int(_POINTS_A_DECADE * np.log10(last)) + 3), 2.0))
    y = latencies.percentiles([round(100 - 100 / place, 7) for place in x[1:].tolist()])
    return Curve(name, x, np.array([latencies.minimum, *y]) / _MILLISECOND, colour, width=2.0)
