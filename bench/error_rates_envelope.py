"""How often the limit of a planted store, and the rate there, are within the intervals that ``envelope``
gives them, and how often two envelopes are called different: of equal stores, and of one that is a quarter
slower.

    python bench/error_rates_envelope.py [RUNS] [--minutes N] [--beside SECONDS] [--store WORD]
                                          [--noise SHARE]... [--differ]

Stores are those of tests/helpers/planted_envelope.py: results are drawn, and clocks are simulated. Limits
are searched without stat files, so that hundreds of envelopes take a minute or two. With ``--beside 42`` a
run takes so many seconds beside its own, and a cell has six runs; otherwise 13.
"""

from __future__ import annotations

import argparse
import logging
import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
from error_rates import ErrorRate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from capacity_runs import step as make_whole_step
from planted_envelope import (
    BESIDE,
    SERVICE,
    SPREAD,
    STORES,
    EnvelopeBench,
    PlantedStore,
    find_true_limit,
    find_true_rate,
)

from ssbench.base.errors import GateResult
from ssbench.comparison.change import NOISE_SHARE
from ssbench.comparison.envelope_comparison import compare_cells
from ssbench.comparison.run_table import RunTable
from ssbench.comparison.search import TrialEvidence
from ssbench.comparison.store_limits import EnvelopeCell, EnvelopeStep
from ssbench.plans import plan_work
from ssbench.plans.envelope_work import EnvelopeRule, EnvelopeRun, EnvelopeWork
from ssbench.run import plan
from ssbench.run.bench_options import BenchOptions, RunOptions
from ssbench.run.plan import DoneTrial, PlanSettings, PlanTrial

MINUTES = 8.0

#: By how much runs of one load differ: the standard deviation of the logarithm of their latencies.
NOISES = (0.0, 0.05, 0.1, 0.2)

#: When simulated envelopes begin, in seconds since 1970, and bytes of their objects.
BEGAN, SIZE = 1e9, 1_000_000


def draw_run(
    store: PlantedStore, trial: PlanTrial, now: float, random: np.random.Generator, noise: float
) -> EnvelopeRun:
    """Return what would be kept of a run of a cell."""
    cell, scenario = trial.cell.value, trial.cell.scenario
    users, seconds = min(scenario.user_count, store.room), scenario.run_seconds or 1.0
    latency = SERVICE * store.slower(users, SIZE) * math.exp(random.normal(0, noise))
    every = max(1, int(seconds * users / latency))
    count = every - int(random.binomial(every, store.failing(users)))
    latencies = latency * random.lognormal(0, SPREAD, count)
    evidence, holds = [], True
    for each in cell.conditions:
        is_errors = each.figure == "errors"
        share = (count if is_errors else int(np.sum(latencies <= each.limit))) / every
        wanted = 1 - each.limit if is_errors else (each.rank or 0) / 100
        evidence.append(TrialEvidence(share, every, wanted, of_errors=is_errors))
        holds = holds and share >= wanted
    rate = count / seconds
    p50, p99 = np.percentile(latencies, [50, 99])
    step = EnvelopeStep(
        users=scenario.user_count,
        seconds=seconds,
        rate=rate,
        error=2 / math.sqrt(count),
        moved=rate * SIZE,
        p50=float(p50),
        p99=float(p99),
        first_byte=math.nan,
        count=count,
        failed=1 - count / every,
        result=GateResult.PASSED if holds else GateResult.FAILED,
        generator_full=scenario.user_count > store.room,
    )
    whole = make_whole_step(scenario.user_count, rate)
    return EnvelopeRun(step, whole, now, seconds, BEGAN, "", Path(), evidence=tuple(evidence))


@cache
def simulate(
    store: PlantedStore, seed: int, noise: float = 0.0, minutes: float = MINUTES, beside: float = BESIDE
) -> EnvelopeCell:
    """Return the limit that an envelope of one cell says; ``noise``: runs differ by so much.

    ``beside``: the seconds that a run takes beside its own.
    """
    random = np.random.default_rng(seed)
    rule = EnvelopeRule(["1MB"], ["read"], minutes, RunOptions(seed=seed))
    done: list[DoneTrial[EnvelopeRun]] = []
    now = BEGAN
    # The mixed load, which is the last, is of no cell.
    while (trial := rule.next(done)) is not None and trial.cell.value is not None:
        run = draw_run(store, trial, now, random, noise)
        done.append(DoneTrial(trial, Path(), run))
        now += run.length + beside
    cell: EnvelopeCell = rule.conclude(rule.searched[0])
    return cell


def measure(store: PlantedStore, seed: int, noise: float = 0.0) -> EnvelopeCell:
    """Return the limit that a whole envelope says, with stat files and all; ``noise``: as above."""
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


def is_rate_found(store: PlantedStore, cell: EnvelopeCell) -> bool:
    """Whether its rate is the one at the true limit."""
    return cell.rate_low <= find_true_rate(store, cell.condition) <= cell.rate_high


def differ(before: EnvelopeCell, after: EnvelopeCell) -> bool:
    """Whether the verdict on two envelopes is that they differ."""
    table = RunTable(("before", "after"), {before.name: [[before], [after]]})
    return bool(compare_cells(table, NOISE_SHARE).shown())


def _count_unfound(
    is_right: Callable[[PlantedStore, EnvelopeCell], bool], store: PlantedStore, noise: float, runs: int
) -> tuple[int, int]:
    return sum(not is_right(store, simulate(store, seed, noise)) for seed in range(runs)), runs


def _count_differing(store: PlantedStore, noise: float, runs: int) -> tuple[int, int]:
    pairs = ((measure(store, seed, noise), measure(store, runs + seed, noise)) for seed in range(runs))
    return sum(differ(*each) for each in pairs), runs


ROWS = (
    *(
        ErrorRate(
            f"envelope, {store.name}, runs differ by {noise:.0%}: {what} not in its interval",
            partial(_count_unfound, is_right, store, noise),
            0.05,
        )
        for what, is_right in (("limit", is_found), ("rate", is_rate_found))
        for store in STORES
        for noise in NOISES
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


def print_limits(
    stores: Sequence[PlantedStore], noises: Sequence[float], runs: int, minutes: float, beside: float
) -> None:
    """Print for each store and noise how often limit and rate are within their intervals, and the widths."""
    print(f"{'':32} noise, of {runs}: limit found, rate found; median of high / low of each; runs")
    for store in stores:
        for noise in noises:
            cells = [simulate(store, seed, noise, minutes, beside) for seed in range(runs)]
            found, rates = (
                sum(is_right(store, each) for each in cells) for is_right in (is_found, is_rate_found)
            )
            width = np.median([each.users_high / max(each.users_low, 1) for each in cells])
            rates_width = np.median([each.rate_high / each.rate_low for each in cells])
            made = np.mean([each.runs for each in cells])
            widths = f"{width:9.2f} {rates_width:5.2f}"
            print(f"{store.name:32} {noise:5.0%} {found:14} {rates:8} {widths} {made:.1f}", flush=True)


def print_differing(
    stores: Sequence[PlantedStore], noises: Sequence[float], runs: int, minutes: float, beside: float
) -> None:
    """Print for each store and noise how often two envelopes are called different."""
    print(f"{'':32} noise, of {runs}: equal differ, slower differ")
    for store in stores:
        for noise in noises:
            cells, others, slower = (
                [simulate(each, place * runs + seed, noise, minutes, beside) for seed in range(runs)]
                for place, each in enumerate((store, store, make_slower(store)))
            )
            equal, lower = (sum(map(differ, cells, each)) for each in (others, slower))
            print(f"{store.name:32} {noise:5.0%} {equal:14} {lower:14}", flush=True)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", type=int, nargs="?", default=20)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--store", default="", help="those that have this in their names")
    parser.add_argument("--noise", type=float, action="append", help="by which share runs of one load differ")
    parser.add_argument(
        "--beside", type=float, default=BESIDE, help="seconds that a run takes beside its own"
    )
    parser.add_argument("--differ", action="store_true")
    arguments = parser.parse_args()
    logging.disable()
    stores = [each for each in STORES if arguments.store in each.name]
    print_ = print_differing if arguments.differ else print_limits
    print_(stores, arguments.noise or NOISES, arguments.runs, arguments.minutes, arguments.beside)


if __name__ == "__main__":
    main()
