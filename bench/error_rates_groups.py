"""How often a group of users is wrongly said to cost the others something, or nothing.

Both groups wait in one queue, or each in its own (tests/helpers/queued_groups.py); six runs without the
group and six with it take turns, as of ``--repeat 6 --versus 'without noisy'``.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
from error_rates import ErrorRate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from queued_groups import compare_in_turn

from ssbench.comparison.comparison_verdict import Word, judge_comparison


def _count_wrong(runs: int, *, one_queue: bool) -> tuple[int, int]:
    right = Word.SLOWER if one_queue else Word.SAME
    random = np.random.default_rng([53, one_queue])
    words = [judge_comparison(compare_in_turn(random, one_queue=one_queue)).word for _ in range(runs)]
    return sum(word is not right for word in words), runs


ROWS = (
    ErrorRate("a group in the same queue is not said to cost", partial(_count_wrong, one_queue=True), 0.05),
    ErrorRate("a group with its own queue is said to cost", partial(_count_wrong, one_queue=False), 0.05),
)
