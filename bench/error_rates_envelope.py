"""How often the limit of a planted store is within the interval that ``envelope`` gives it, and how often
two envelopes are called different: of equal stores, and of one that is a quarter slower.

    python bench/error_rates_envelope.py [RUNS]

Stores are those of tests/helpers/planted_envelope.py: results are drawn, and clocks are simulated.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

from error_rates import ErrorRate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from planted_envelope import STORES, EnvelopeBench, PlantedStore, find_true_limit

from ssbench.comparison.change import NOISE_SHARE
from ssbench.comparison.envelope_comparison import compare_cells
from ssbench.comparison.run_table import RunTable
from ssbench.comparison.store_limits import EnvelopeCell
from ssbench.plans import plan_work
from ssbench.plans.envelope_work import EnvelopeWork
from ssbench.run import plan
from ssbench.run.bench_options import BenchOptions, RunOptions
from ssbench.run.plan import PlanSettings

MINUTES = 8.0


def measure(store: PlantedStore, seed: int, noise: float = 0.0) -> EnvelopeCell:
    """Return the limit that one call says; ``noise``: runs differ by so much."""
    with tempfile.TemporaryDirectory() as folder:
        bench = EnvelopeBench(store, Path(folder), seed, noise=noise)
        options = RunOptions(stats_file=Path(folder) / "e.stat.gz", seed=seed)
        work = EnvelopeWork(options, MINUTES, sizes=["1MB"], operations=["read"])
        with patch.object(plan_work, "Bench", bench), patch.object(plan, "time", bench):
            found = plan_work.carry_out_work(work, BenchOptions(workers=1), PlanSettings()).found
    assert found is not None
    cell: EnvelopeCell
    (cell,) = found.cells
    return cell


def is_found(store: PlantedStore, cell: EnvelopeCell) -> bool:
    """Whether it is the true one."""
    truth = find_true_limit(store, cell.condition)
    if store.at_least or cell.at_least:
        return cell.at_least is store.at_least and (cell.users or 0) >= truth
    return cell.users_low <= truth < cell.users_high + 1


def differ(before: EnvelopeCell, after: EnvelopeCell) -> bool:
    """Whether the verdict on two envelopes is that they differ."""
    table = RunTable(("before", "after"), {before.name: [[before], [after]]})
    return bool(compare_cells(table, NOISE_SHARE).shown())


def _count_unfound(store: PlantedStore, noise: float, runs: int) -> tuple[int, int]:
    return sum(not is_found(store, measure(store, seed, noise)) for seed in range(runs)), runs


def _count_differing(store: PlantedStore, noise: float, runs: int) -> tuple[int, int]:
    pairs = ((measure(store, seed, noise), measure(store, runs + seed, noise)) for seed in range(runs))
    return sum(differ(*each) for each in pairs), runs


ROWS = (
    *(
        ErrorRate(
            f"envelope, {store.name}, runs differ by {noise:.0%}: limit not in its interval",
            partial(_count_unfound, store, noise),
            0.05,
        )
        for store in STORES
        for noise in (0.0, 0.1, 0.2)
    ),
    *(
        ErrorRate(
            f"envelope, {store.name}, runs differ by {noise:.0%}: equal ones differ",
            partial(_count_differing, store, noise),
            0.05,
        )
        for store in STORES[:2]
        for noise in (0.0, 0.1, 0.2)
    ),
)


def make_slower(store: PlantedStore) -> PlantedStore:
    """Return a store whose operations take a third longer, of which 25 % fewer end in a second."""
    return replace(store, slower=lambda users, size: 4 / 3 * store.slower(users, size))


def main() -> None:
    """Print a line for each store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", type=int, nargs="?", default=20)
    runs = parser.parse_args().runs
    logging.disable()
    print(f"{'':32} found, equal differ, slower differ of {runs}")
    for store in STORES:
        cells = [measure(store, seed) for seed in range(runs)]
        others = [measure(store, runs + seed) for seed in range(runs)]
        slower = [measure(make_slower(store), 2 * runs + seed) for seed in range(runs)]
        found = sum(is_found(store, cell) for cell in cells)
        equal, lower = (sum(map(differ, cells, each)) for each in (others, slower))
        print(f"{store.name:32} {found:5} {equal:13} {lower:14}")


if __name__ == "__main__":
    main()
