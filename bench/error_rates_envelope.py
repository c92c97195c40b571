"""How often the limit of a planted store is within the interval that ``envelope`` gives it.

    python bench/error_rates_envelope.py [RUNS]

Stores are those of tests/helpers/planted_envelope.py: results are drawn, and clocks are simulated.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from planted_envelope import STORES, EnvelopeBench, PlantedStore, find_true_limit

from ssbench.plans import plan_work
from ssbench.plans.envelope_work import EnvelopeWork
from ssbench.run import plan
from ssbench.run.bench_options import BenchOptions, RunOptions
from ssbench.run.plan import PlanSettings

MINUTES = 8.0


def is_found(store: PlantedStore, seed: int) -> bool:
    """Whether the limit that one call says is the true one."""
    with tempfile.TemporaryDirectory() as folder:
        bench = EnvelopeBench(store, Path(folder), seed)
        options = RunOptions(stats_file=Path(folder) / "e.stat.gz", seed=seed)
        work = EnvelopeWork(options, MINUTES, sizes=["1MB"], operations=["read"])
        with patch.object(plan_work, "Bench", bench), patch.object(plan, "time", bench):
            (cell,) = plan_work.carry_out_work(work, BenchOptions(workers=1), PlanSettings()).found.cells
    truth = find_true_limit(store, cell.condition)
    if store.at_least or cell.at_least:
        return cell.at_least is store.at_least and (cell.users or 0) >= truth
    return cell.users_low <= truth < cell.users_high + 1


def main() -> None:
    """Print a line for each store."""
    logging.disable()
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for store in STORES:
        found = sum(is_found(store, seed) for seed in range(runs))
        print(f"{store.name:32} {found:3} of {runs}")


if __name__ == "__main__":
    main()
