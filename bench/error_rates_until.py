"""How often a figure is further from the truth than ``--until`` asked for, in runs that it ended.

100 operations a second, latencies that spread by a factor of 1.8, and three kinds of noise of 5 % a second:
the program's own sink sees an hour of each run at most. ``python error_rates_until.py RUNS`` prints the
table, with the mean length of a run.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from error_rates import ErrorRate

from ssbench.results.block import ResultBlock
from ssbench.scenario.conditions import parse_precisions
from ssbench.statistics.stopping_rule import FIRST_LOOK_SECONDS, LOOK_GROWTH, StoppingRule, StoppingSink

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
import noise
from simulated_steps import bursty_levels

_PHI = {"independent": 0.0, "autocorrelation 0.9": 0.9, "autocorrelation 0.95": 0.95}
_KINDS = (*_PHI, "bursts")
_FIGURES = {"rate": 0.0, "p50": 0.5, "p95": 0.95, "p99": 0.99}
_SHARES = (0.02, 0.05, 0.1)
_RATE, _SPREAD, _SECONDS = 100, 0.6, 3600
_START = 1e9


def _levels(kind: str, random: np.random.Generator, seconds: int) -> npt.NDArray[np.float64]:
    levels: npt.NDArray[np.float64]
    if kind == "bursts":
        (levels,) = bursty_levels(random, 1, seconds)
    else:
        (levels,) = noise.correlated(random, 1, seconds, _PHI[kind], 0.05)
    return levels


@cache
def _truth(kind: str) -> dict[str, float]:
    """Return the figures of a run that lasts for ever; latencies are those of as many users all the time."""
    levels = np.concatenate([_levels(kind, np.random.default_rng(9000 + part), 50_000) for part in range(20)])
    weights, edges = np.histogram(levels, 400, weights=np.exp(-levels))
    middles = (edges[:-1] + edges[1:]) / 2
    weights /= weights.sum()
    found = {"rate": _RATE * float(np.exp(-levels).mean())}
    for name, share in _FIGURES.items():
        low, high = -5.0, 5.0
        for _ in range(60 if share else 0):
            middle = (low + high) / 2
            below = [NormalDist(each, _SPREAD).cdf(middle) for each in middles]
            low, high = (low, middle) if float(weights @ below) > share else (middle, high)
        found.setdefault(name, math.exp(high))
    return found


def _repeat_width(width: float, _seconds: float) -> list[float]:
    return [width]


def _end_run(kind: str, seed: int) -> Mapping[tuple[str, float], tuple[float, bool]]:
    """Return after how many seconds a run ends, and whether the figure is as near as was asked."""
    random = np.random.default_rng(seed)
    levels = _levels(kind, random, _SECONDS)
    seconds = np.repeat(np.arange(_SECONDS), random.poisson(_RATE * np.exp(-levels)))
    times = np.exp(levels[seconds] + _SPREAD * random.standard_normal(len(seconds)))
    sink = StoppingSink(parse_precisions(" and ".join(f"{name} 0.001%" for name in _FIGURES)), {})
    rules = {(name, share): StoppingRule([share]) for name in _FIGURES for share in _SHARES}
    found: dict[tuple[str, float], tuple[float, bool]] = {}
    done, look, truth = 0, FIRST_LOOK_SECONDS, _truth(kind)
    while look + 4 < _SECONDS and len(found) < len(rules):
        end = int(np.searchsorted(seconds, int(look) + 4))
        columns = {"completed": _START + seconds[done:end] + 0.5, "last_byte": times[done:end]}
        sink.add(ResultBlock(end - done, columns))
        sink.tick(0.0)
        done = end
        seen = times[: np.searchsorted(seconds, int(look) + 1)]
        for place, (name, share_below) in enumerate(_FIGURES.items()):
            width = math.inf if (known := sink.facts()[place].width) is None else known
            value = float(np.quantile(seen, share_below)) if share_below else len(seen) / (int(look) + 1)
            for share in _SHARES:
                rule = rules[name, share]
                if not rule.reached and rule.look(look, partial(_repeat_width, width)):
                    found[name, share] = (look, abs(value / truth[name] - 1) <= share)
        look *= LOOK_GROWTH
    return found


@cache
def _end_runs(kind: str, runs: int) -> list[Mapping[tuple[str, float], tuple[float, bool]]]:
    return [_end_run(kind, seed) for seed in range(runs)]


def _wrong(kind: str, name: str, share: float, runs: int) -> tuple[int, int]:
    ended = [each[name, share] for each in _end_runs(kind, runs) if (name, share) in each]
    return sum(not right for _, right in ended), len(ended)


ROWS = tuple(
    ErrorRate(
        f"--until '{name} {share:.0%}', {kind}: the truth is further away",
        partial(_wrong, kind, name, share),
        0.07,
    )
    for kind in _KINDS
    for name in _FIGURES
    for share in _SHARES
)


def main(runs: int) -> None:
    """Print for each noise, figure and precision: right, of how many; mean seconds (an hour: not ended)."""
    for kind in _KINDS:
        for name in _FIGURES:
            cells = []
            for share in _SHARES:
                ended = [each[name, share] for each in _end_runs(kind, runs) if (name, share) in each]
                seconds = (sum(each for each, _ in ended) + (runs - len(ended)) * _SECONDS) / runs
                right = sum(each for _, each in ended)
                cells.append(f"{share:4.0%}: {right} of {len(ended)}, {seconds:.0f} s")
            print(f"{kind:<21}{name:<5}{'   '.join(f'{each:<26}' for each in cells)}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", type=int)
    main(parser.parse_args().runs)
