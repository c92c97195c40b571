"""How often a comparison of two sides is wrong: of one run with ``--ab``, and of runs one after the other.

Noise of 5 % a second that is alike from second to second (autocorrelation 0.8) and latencies that spread by a
factor of 1.8, 100 requests a second, for a minute where the row does not say for how long. Any figure that is
called different counts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from error_rates import ErrorRate

from ssbench.comparison.comparison_verdict import Word, judge_comparison
from ssbench.comparison.paired_sides import compare_sides
from ssbench.comparison.run_comparison import Comparison

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from comparing import drifting, executions, in_turn
from simulated_runs import Store, reads

_GOOD = {Word.FASTER, Word.BETTER, Word.SAME}


def _differs(found: Comparison) -> bool:
    return any(change.differs for *_, change in found.changes())


def _sides(
    store: Store, change: float, is_wrong: Callable[[Comparison], bool], runs: int, seconds: int = 60
) -> tuple[int, int]:
    """Runs with two sides, of which latencies of the second are ``change`` times as long."""
    random, count = np.random.default_rng(1), 2 * runs
    made = (reads(random, seconds, change, sides=("old", "new"), store=store) for _ in range(count))
    return sum(is_wrong(compare_sides(each)) for each in made), count


def _good_news(found: Comparison) -> bool:
    return judge_comparison(found).word in _GOOD


def _unsaid(found: Comparison) -> bool:
    return _differs(found) and not found.doubt


def _after(
    way: Callable[[np.random.Generator, float], Comparison],
    change: float,
    is_wrong: Callable[[Comparison], bool],
    runs: int,
) -> tuple[int, int]:
    random, count = np.random.default_rng(1), 2 * runs
    return sum(is_wrong(way(random, change)) for _ in range(count)), count


def _missed(found: Comparison) -> bool:
    return not _differs(found)


def _row(name: str, store: Store, limit: float = 0.05, change: float = 1.0, seconds: int = 60) -> ErrorRate:
    is_wrong = _differs if change == 1 else _missed
    return ErrorRate(f"--ab, {name}", partial(_sides, store, change, is_wrong, seconds=seconds), limit)


def _failing(name: str, store: Store, change: float = 1.0) -> ErrorRate:
    return ErrorRate(f"--ab, {name}", partial(_sides, store, change, _good_news), 0.01)


ROWS = (
    _row("equal", Store()),
    _row("equal, 1 % of each side fails", Store(failing=(0.01, 0.01))),
    _row("equal, 20 % of each side fails", Store(failing=(0.2, 0.2))),
    _row("equal, 3 bursts of failures", Store(bursts=3)),
    _row("equal, 10 bursts of failures", Store(bursts=10)),
    _failing("no difference or better where 40 % of a side fails", Store(failing=(0.0, 0.4))),
    _failing("no difference or faster where a faster side sheds 30 %", Store(failing=(0.0, 0.3)), 0.72),
    _failing("no difference or better where 5 % of a side fails", Store(failing=(0.0, 0.05))),
    *(
        _row(f"equal, {count} objects on devices that differ by 30 %", Store(objects=count, differ=0.3))
        for count in (20, 100, 500, 2000)
    ),
    _row("16 % slower, 2,000 objects, not shown", Store(objects=2000, differ=0.3), 0.2, 1.16),
    _row("equal, objects not known to be few, placement of 2 %", Store(placement=0.02)),
    _row("equal, objects not known to be few, placement of 4 %", Store(placement=0.04), 0.075),
    _row("equal, noise of each side that lasts 20 s", Store(own=True, alike=0.95), 0.075),
    _row("16 % slower, not shown", Store(), 0.2, 1.16),
    *(
        _row(f"{seconds} s, {name}", store, 0.075 if store.own else 0.05, seconds=seconds)
        for seconds in (12, 30)
        for name, store in (
            ("equal", Store()),
            ("equal, noise of each side that lasts 20 s", Store(own=True, alike=0.95)),
        )
    ),
    _row("12 s, 30 % slower, not shown", Store(), 0.2, 1.3, seconds=12),
    ErrorRate(
        "8 and 8 runs after each other, drift of 1 % a run: different without a doubt",
        partial(_after, drifting(8, 0.01, mixed=False), 1.0, _unsaid),
        0.05,
    ),
    ErrorRate(
        "8 and 8 runs in turn, drift of 1 % a run: different",
        partial(_after, in_turn(8, 0.01, mixed=False), 1.0, _differs),
        0.05,
    ),
    *(
        ErrorRate(
            f"{count} and {count} runs of two local Swifts in turn, started once, 0.9 % a side: different",
            partial(_after, in_turn(count, 0.0, mixed=False, started=0.009), 1.0, _differs),
            0.05,
        )
        for count in (4, 10, 40)
    ),
    ErrorRate(
        "8 and 8 runs after each other, no drift, 10 % slower: not shown",
        partial(_after, drifting(8, 0.0, mixed=False), 1.1, _missed),
        0.1,
    ),
    *(
        ErrorRate(
            f"{count} and {count} executions after each other, alike by {alike:g}: different",
            partial(_after, executions(count, alike), 1.0, _differs),
            0.05,
        )
        for count in (10, 50)
        for alike in (0.0, 0.9)
    ),
    ErrorRate(
        "50 and 50 executions after each other, alike by 0, 50 % slower: not shown",
        partial(_after, executions(50, 0.0), 1.5, _missed),
        0.1,
    ),
    ErrorRate(
        "20 and 20 executions in turn, alike by 0.9: different",
        partial(_after, executions(20, 0.9, turns=True), 1.0, _differs),
        0.05,
    ),
    ErrorRate(
        "20 and 20 executions in turn, alike by 0.9, 10 % slower: not shown",
        partial(_after, executions(20, 0.9, turns=True), 1.1, _missed),
        0.1,
    ),
)
