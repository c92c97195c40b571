"""The warm-up of a run that asks for its length to be found (``--warmup auto``)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ssbench.results import ResultBlock
from ssbench.statistics.by_second import BySecond, LatencyTable
from ssbench.statistics.latencies import measured
from ssbench.statistics.steadiness import steadiness
from ssbench.statistics.timeline import Timeline

#: The value of the option ``warmup`` of a run that asks for it.
AUTOMATIC = "auto"


def find_cut(blocks: Iterable[ResultBlock]) -> float | None:
    """Return when the warm-up was over, seconds since 1970; None where none was found.

    It takes all results, which then have to be read again. The rule is MSER-5, where that changes a figure.
    """
    timeline, successes = Timeline(), BySecond()
    tables: list[LatencyTable] = []
    for block in blocks:
        if len(block):
            timeline.add(block, block.started)
            successes.add(block, np.flatnonzero(~block.failed))
            latencies = measured(block)
            rows = np.flatnonzero(latencies > 0)
            if len(rows):
                tables.append(LatencyTable.of(block.completed[rows], latencies[rows]))
    window = timeline.window()
    if window is None:
        return None
    series, _ = successes.series(window.start, window.end)
    cut = steadiness(series, window.start, LatencyTable.merged(tables)).warm_up
    return window.start + cut if cut else None
