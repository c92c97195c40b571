"""What ssbench concludes, in simulations in which it is known what is true: a function a line of the table.

To add a line: write a function that returns a :class:`Line` (or several) and add it to :data:`LINES`.
``runs`` is how many simulated runs to make where a line counts them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
import numpy as np
from capacity import STORES, SWEEPS, search, sweep
from comparing import grouped
from simulated_intervals import coverage, warm_ups
from simulated_stalls import all_found, stalls_of


@dataclass(frozen=True)
class Line:
    """What was simulated, what is asked for, what was found, and whether that is as much."""

    what: str
    asked: str
    found: str
    is_met: bool


def at_least(what: str, share: float, right: int, runs: int) -> Line:
    """Return the line of something that has to be right in this share of runs."""
    return Line(what, f"{share:.0%}", f"{right} of {runs}", right >= share * runs)


def at_most(what: str, share: float, wrong: int, runs: int) -> Line:
    """Return the line of something that may be wrong in this share of runs."""
    return Line(what, f"<= {share:.0%}", f"{wrong} of {runs}", wrong <= share * runs)


def stalls(runs: int) -> Iterable[Line]:
    """Stalls of 1 s in 10 of either loop; of one user the median latency is half of the others'."""
    loads: list[tuple[str, dict[str, Any]]] = [
        *((f"open loop, {rate:,}/s", {"rate": rate}) for rate in (5, 20, 100, 1000)),
        ("closed loop, 1 user", {"users": 1, "median": 0.01}),
        *((f"closed loop, {users} users", {"users": users}) for users in (8, 64)),
    ]
    for name, load in loads:
        found = sum(all_found(stalls_of(seed, **load)) for seed in range(runs))
        falsely = sum(bool(stalls_of(seed, stops=False, **load)) for seed in range(runs))
        yield at_least(f"{name}: runs whose 6 stalls of 1 s are all found", 1.0, found, runs)
        yield at_most(f"{name}: healthy runs with a stall", 0.05, falsely, runs)


def intervals(runs: int) -> Iterable[Line]:
    """The truth in 95 % intervals, of seconds that are alike by ``phi``; of ten times as many runs."""
    for seconds in (10, 30, 60, 300):
        for phi in (0.0, 0.5, 0.8, 0.95):
            for name, (given, right) in coverage(phi, seconds, 10 * runs).items():
                what = f"{seconds} s, autocorrelation {phi:g}: truth in the interval of {name}"
                yield at_least(what, 0.8 if phi > 0.9 else 0.9, right, given)


def warm_up(runs: int) -> Iterable[Line]:
    """--warmup auto, at an autocorrelation of 0.8: of runs without one, and of a start 50 % slower."""
    seeds = range(5 * runs)
    for seconds in (120, 300):
        falsely = sum(bool(cut) for cut in warm_ups(seconds, 0.8, 0.0, seeds))
        found = sum(bool(cut) for cut in warm_ups(seconds, 0.8, 0.5, seeds))
        yield at_most(f"{seconds} s without a warm-up: some is left out", 0.05, falsely, len(seeds))
        yield at_least(f"{seconds} s, start -50 %, fading in 15 s: left out", 0.9, found, len(seeds))


def searches(runs: int) -> Iterable[Line]:
    """The limits that --find finds, and the knees of --sweep, of stores of which both are known."""
    for store in STORES:
        near = search(store, 2 * runs).near
        yield at_least(f"--find, {store.name}: within a tenth of the limit", 0.9, near, 2 * runs)
    for name, rate, truth in SWEEPS:
        found = sweep(rate, truth, 2 * runs)
        yield at_least(f"--sweep, {name}: truth in the interval of the knee", 0.85, found.covered, 2 * runs)
        if truth == math.inf:
            yield at_most(f"--sweep, {name}: a knee is called certain", 0.05, found.certain, 2 * runs)


def comparisons(runs: int) -> Iterable[Line]:
    """What compare calls different: of four operations with two size classes, 8 and 8 runs of 20 s."""
    random, way = np.random.default_rng(1), grouped(8, mixed=True)
    for change, share in ((1.0, 0.05), (1.1, 0.9)):
        called = sum(any(each.differs for *_, each in way(random, change).changes()) for _ in range(runs))
        if change == 1:
            yield at_most("compare, equal stores: any figure is called different", share, called, runs)
        else:
            yield at_least("compare, 10 % slower: any figure is called different", share, called, runs)


#: Functions that return the lines of the table, in its order.
LINES: tuple[Callable[[int], Iterable[Line]], ...] = (
    stalls,
    intervals,
    warm_up,
    searches,
    comparisons,
)
