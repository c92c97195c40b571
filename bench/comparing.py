"""How often comparisons are right, of a store that is simulated by its latencies.

Noise of 5 % a second that is alike from second to second (autocorrelation 0.8) and of 2 % from run to run,
latencies that spread by a factor of 1.8, 100 requests a second. ``doc/comparing.rst`` has the table.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from simulated_runs import reads

from ssbench.comparison import Comparison, compare, figures_of
from ssbench.comparison.sides import compare_sides


def repeated(random: np.random.Generator, runs: int, change: float) -> Comparison:
    """Two groups of runs of 20 s."""
    sides = [
        [figures_of(reads(random, 20, each), str(number)) for number in range(runs)] for each in (1.0, change)
    ]
    return compare(*sides)


def sided(random: np.random.Generator, _: int, change: float) -> Comparison:
    """One run of a minute with two sides."""
    return compare_sides(reads(random, 60, change, sides=("old", "new")))


def main() -> None:
    """Print a line for each way to compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    ways: list[tuple[str, Callable[[np.random.Generator, int, float], Comparison], int]] = [
        ("single runs of 20 s", repeated, 1),
        ("4 and 4 runs of 20 s", repeated, 4),
        ("5 and 5 runs of 20 s", repeated, 5),
        ("8 and 8 runs of 20 s", repeated, 8),
        ("--ab, a run of 60 s", sided, 0),
    ]
    print(f"{'':<24}{'change':>8}{'p50 called':>12}{'any called':>12}{'no verdict':>12}{'s':>7}")
    for name, way, runs in ways:
        for change in (1.0, 1.1):
            began = time.perf_counter()
            found = [way(random, runs, change) for _ in range(arguments.comparisons)]
            medians = [each.find("read", None, "p50") for each in found]
            called = sum(median is not None and median.differs for median in medians)
            anything = sum(any(change.differs for *_, change in each.changes()) for each in found)
            silent = sum(not any(change.word for *_, change in each.changes()) for each in found)
            print(
                f"{name:<24}{change:>8g}{called:>12}{anything:>12}{silent:>12}"
                f"{time.perf_counter() - began:>7.1f}"
            )


if __name__ == "__main__":
    main()
