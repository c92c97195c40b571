"""The warm-up of a run that asks for its length to be found (``--warmup auto``)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ssbench.results import ResultBlock
from ssbench.statistics.by_second import BySecond
from ssbench.statistics.steadiness import steadiness
from ssbench.statistics.timeline import Timeline

#: The value of the option ``warmup`` of a run that asks for it.
AUTOMATIC = "auto"


def find_cut(blocks: Iterable[ResultBlock]) -> float | None:
    """Return when the warm-up was over, seconds since 1970; None where none was found.

    It takes all results, which then have to be read again. The rule is that of MSER-5.
    """
    timeline, successes = Timeline(), BySecond()
    for block in blocks:
        if len(block):
            timeline.add(block, block.started)
            successes.add(block, np.flatnonzero(~block.failed))
    window = timeline.window()
    if window is None:
        return None
    cut = steadiness(successes.series(window.start, window.end)[0]).warm_up
    return window.start + cut if cut else None
