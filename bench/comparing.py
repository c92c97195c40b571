"""How often comparisons are right, of a store that is simulated by its latencies.

Noise of 5 % a second that is alike from second to second (autocorrelation 0.8) and of 2 % from run to run,
latencies that spread by a factor of 1.8, 100 requests a second; with --mixed of four operations and two size
classes. With placement one side of --ab is slower by chance (2 % a side), with lasting noise each side has
noise of its own, alike from second to second by 0.95. Each line has what was called different: a head figure,
any figure; and how many figures there are. ``doc/methods.rst`` has the table.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

import noise
from simulated_runs import Store, reads

from ssbench.comparison.archive import make_earlier_run, make_entry
from ssbench.comparison.noise_floor import NoiseFloors
from ssbench.comparison.paired_sides import compare_sided, compare_sides, make_sided_run
from ssbench.comparison.run_comparison import Comparison, compare_runs
from ssbench.comparison.run_figures import ALL_KEY, FigureSample, RunFigures, make_run_figures
from ssbench.statistics.run_statistics import RunStatistics

Way = Callable[[np.random.Generator, float], Comparison]


def runs(random: np.random.Generator, changes: Sequence[float], *, mixed: bool) -> list[RunFigures]:
    """Runs of 20 s, one after another."""
    return [
        replace(make_run_figures(reads(random, 20, change, mixed=mixed), str(place)), started=float(place))
        for place, change in enumerate(changes)
    ]


def grouped(count: int, *, mixed: bool) -> Way:
    """Two groups of runs, one after the other."""

    def way(random: np.random.Generator, change: float) -> Comparison:
        found = runs(random, [1.0] * count + [change] * count, mixed=mixed)
        return compare_runs(found[:count], found[count:])

    return way


def in_turn(count: int, drift: float, *, mixed: bool, started: float = 0.0) -> Way:
    """Two groups of runs in turn, of a machine that becomes slower from run to run.

    ``started``: of two Swifts on this machine, each made so much faster or slower by its start (standard
    deviation of the logarithm).
    """

    def way(random: np.random.Generator, change: float) -> Comparison:
        if started:
            change *= math.exp(math.sqrt(2) * random.normal(0, started))
        levels = [
            (change if place % 4 in {1, 2} else 1.0) * (1 + drift) ** place for place in range(2 * count)
        ]
        found = runs(random, levels, mixed=mixed)
        before, after = (
            [run for place, run in enumerate(found) if (place % 4 in {1, 2}) is side]
            for side in (False, True)
        )
        if started:
            before, after = (
                [replace(run, local_swift=(f"http://{side}",)) for run in own]
                for side, own in (("a", before), ("b", after))
            )
        return compare_runs(before, after)

    return way


def drifting(count: int, drift: float, *, mixed: bool) -> Way:
    """Two groups of runs, one after the other, of a machine that becomes slower from run to run."""

    def way(random: np.random.Generator, change: float) -> Comparison:
        levels = [(change if place >= count else 1.0) * (1 + drift) ** place for place in range(2 * count)]
        found = runs(random, levels, mixed=mixed)
        return compare_runs(found[:count], found[count:])

    return way


def executions(count: int, alike: float, *, turns: bool = False) -> Way:
    """Two groups of executions of a few ms, of which only the order is known, as in files of other tools.

    Noise of 10 %, alike from one to the next by ``alike``, and 5 % of each; ``turns``: in turn, as A B B A.
    """

    def way(random: np.random.Generator, change: float) -> Comparison:
        second = [place % 4 in {1, 2} if turns else place >= count for place in range(2 * count)]
        levels = noise.correlated(random, 1, 2 * count, alike, 0.1)[0] + random.normal(0, 0.05, 2 * count)
        values = np.exp(levels) * np.where(second, change, 1.0)
        found = [
            RunFigures(str(turn), {ALL_KEY: {"p50": FigureSample(float(value))}}, turn=turn)
            for turn, value in enumerate(values)
        ]
        before, after = (
            [run for run, is_second in zip(found, second, strict=True) if is_second is side]
            for side in (False, True)
        )
        return compare_runs(before, after)

    return way


def sided(store: Store, earlier: int = 0, *, mixed: bool) -> Way:
    """One run of a minute with two sides, after some in which nothing was changed."""

    def one(random: np.random.Generator, change: float) -> RunStatistics:
        return reads(random, 60, change, sides=("old", "new"), store=store, mixed=mixed)

    def way(random: np.random.Generator, change: float) -> Comparison:
        past = [make_earlier_run(make_entry(one(random, 1.0), "", 0, 0)) for _ in range(earlier)]
        return compare_sides(one(random, change), floors=NoiseFloors([past]) if past else None)

    return way


def sided_group(store: Store, count: int, *, mixed: bool) -> Way:
    """Several runs of 20 s with two sides."""

    def way(random: np.random.Generator, change: float) -> Comparison:
        return compare_sided(
            [
                make_sided_run(
                    reads(random, 20, change, sides=("old", "new"), store=store, mixed=mixed), str(number)
                )
                for number in range(count)
            ]
        )

    return way


def main() -> None:
    """Print a line for each way to compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mixed", action="store_true")
    parser.add_argument("--only", metavar="TEXT", default="", help="only ways with this in their names")
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    mixed = arguments.mixed
    ways: dict[str, Way] = {
        "single runs of 20 s": grouped(1, mixed=mixed),
        "4 and 4 runs": grouped(4, mixed=mixed),
        "5 and 5 runs": grouped(5, mixed=mixed),
        "8 and 8 runs": grouped(8, mixed=mixed),
        "8 and 8, drift 1 % a run": drifting(8, 0.01, mixed=mixed),
        "8 and 8 in turn, drift 1 %": in_turn(8, 0.01, mixed=mixed),
    }
    stores = {"": Store(), ", placement": Store(placement=0.02), ", lasting": Store(own=True, alike=0.95)}
    for name, store in stores.items():
        ways[f"--ab, 60 s{name}"] = sided(store, mixed=mixed)
        ways[f"--ab, after 8{name}"] = sided(store, 8, mixed=mixed)
        ways[f"--ab, 8 of 20 s{name}"] = sided_group(store, 8, mixed=mixed)
    print(
        f"{'of ' + str(arguments.comparisons):<28}{'change':>8}{'heads':>8}{'any':>8}{'figures':>9}{'s':>7}"
    )
    for name, way in ways.items():
        if arguments.only not in name:
            continue
        for change in (1.0, 1.1):
            began = time.perf_counter()
            found = [way(random, change) for _ in range(arguments.comparisons)]
            heads = sum(any(each[2].differs for each in one.heads()) for one in found)
            anything = sum(any(each.differs for *_, each in one.changes()) for one in found)
            figures = max(sum(each.word is not None for *_, each in one.changes()) for one in found)
            print(
                f"{name:<28}{change:>8g}{heads:>8}{anything:>8}{figures:>9}"
                f"{time.perf_counter() - began:>7.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
