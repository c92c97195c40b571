"""Which stage each result belongs to, and whether it belongs to the warm-up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from ssbench.results.block import ResultBlock
from ssbench.results.schema import ResultMark
from ssbench.scenario.model import Stage

#: When an operation was due is known to this many seconds: the clocks of worker and master differ by a number
#: that is known better and better during the run. The first of a stage is due as that begins.
_CLOCK_TOLERANCE = 5e-4


class StagePlacement:
    """Places results by when their operation was due, in a closed loop by when it was sent.

    One of which neither is known, because its worker was lost, is placed by when that was noticed.
    ``start`` is when the first stage begins, in seconds since 1970; the first ``warmup`` seconds from then on
    are the warm-up.
    """

    def __init__(self, plan: Sequence[Stage], start: float, warmup: float = 0.0) -> None:
        #: When each stage but the first begins.
        self._begins = start + np.array([0.0, *accumulate(stage.seconds for stage in plan)])[1:-1]
        self._warm_until = start + warmup if warmup else None

    @property
    def needed(self) -> bool:
        """Whether there is more than one place."""
        return len(self._begins) > 0 or self._warm_until is not None

    def place(self, block: ResultBlock) -> ResultBlock:
        """Return the results with their stages and marks."""
        moments = np.where(np.isnan(block.due), block.started, block.due + _CLOCK_TOLERANCE)
        moments = np.where(np.isnan(moments), block.completed, moments)
        columns = {}
        if len(self._begins):
            columns["stage"] = self._begins.searchsorted(moments, "right")
        if self._warm_until is not None:
            columns["marks"] = block.marks | np.where(moments < self._warm_until, int(ResultMark.WARM_UP), 0)
        return block.having(**columns)
