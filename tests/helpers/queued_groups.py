"""Runs of groups of users whose operations wait in one queue, or in one of each group."""

from __future__ import annotations

import numpy as np

from ssbench.comparison.run_comparison import Comparison, compare_runs
from ssbench.comparison.run_figures import FigureKey, FigureSample, RunFigures

#: Seconds of a run, and how many operations a second each group asks for; one takes the store 2 ms.
SECONDS, RATES, SERVICE = 20.0, {"web": 150.0, "noisy": 250.0}, 0.002


def wait_in_queue(moments: np.ndarray) -> np.ndarray:
    """Return the latencies of operations that come at these moments, where one is served at a time."""
    ends = np.arange(1, len(moments) + 1) * SERVICE
    waits: np.ndarray = ends + np.maximum.accumulate(moments - ends + SERVICE) - moments
    return waits


def _figures(latencies: np.ndarray) -> dict[str, FigureSample]:
    values = {f"p{rank}": float(np.percentile(latencies, rank)) for rank in (50, 95, 99)}
    return {
        name: FigureSample(value)
        for name, value in {**values, "rate": len(latencies) / SECONDS, "errors": 0.0}.items()
    }


def play(random: np.random.Generator, groups: list[str], *, one_queue: bool, turn: int) -> RunFigures:
    """Run these groups against a store with one queue, or with one for each of them."""
    moments = {
        name: np.sort(random.uniform(0, SECONDS, random.poisson(SECONDS * RATES[name]))) for name in groups
    }
    if one_queue:
        joined = np.concatenate([*moments.values()])
        order = np.argsort(joined)
        together = np.empty(len(joined))
        together[order] = wait_in_queue(joined[order])
        ends = np.cumsum([len(each) for each in moments.values()])
        found = dict(zip(groups, np.split(together, ends[:-1]), strict=True))
    else:
        found = {name: wait_in_queue(each) for name, each in moments.items()}
    rows: dict[FigureKey, dict[str, FigureSample]] = {}
    for name, latencies in [*found.items(), ("", np.concatenate([*found.values()]))]:
        for operation in ("READ", "ALL"):
            rows[f"{name}.{operation}".lstrip("."), None] = _figures(latencies)
    facts = {"users": str(len(groups)), "groups": ", ".join(groups), "policy": "gold"}
    return RunFigures(f"run {turn}", rows, facts, started=float(turn))


def compare_in_turn(random: np.random.Generator, *, one_queue: bool, rounds: int = 6) -> Comparison:
    sides: tuple[list[RunFigures], list[RunFigures]] = ([], [])
    for number in range(rounds):
        for place in (0, 1) if number % 2 else (1, 0):
            groups = ["web", "noisy"] if place else ["web"]
            turn = len(sides[0]) + len(sides[1])
            sides[place].append(play(random, groups, one_queue=one_queue, turn=turn))
    return compare_runs(*sides)
