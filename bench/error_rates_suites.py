"""How often ``compare`` of two suites is wrong: 20 rows with 8 figures each, one after the other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from error_rates import ErrorRate

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from simulated_suites import compare_simulated

#: Simulated families for each run that is asked for.
_FAMILIES = 10


def _shown_by_chance(
    rounds: int, spread: float, tails: bool, runs: int, *, common: float = 0.0, stores: float = 0.0
) -> tuple[int, int]:
    made = [
        compare_simulated(seed, rounds, spread=spread, tails=tails, common=common, stores=stores)
        for seed in range(_FAMILIES * runs)
    ]
    return sum(bool(each.shown()) for each in made), len(made)


def _missed(rounds: int, spread: float, tails: bool, runs: int) -> tuple[int, int]:
    wrong = 0
    for seed in range(_FAMILIES * runs):
        found = compare_simulated(seed, rounds, spread=spread, slow=10, tails=tails)
        wrong += all(row.name != "row 10" for row, *_ in found.shown())
    return wrong, _FAMILIES * runs


def _rows() -> Iterator[ErrorRate]:
    for rounds in (3, 4, 8):
        for spread, tails, what in (
            (0.0, False, "alike"),
            (0.7, False, "some rows much noisier"),
            (0.7, True, "noisier, with tails"),
        ):
            count: Callable[[int], tuple[int, int]] = partial(_shown_by_chance, rounds, spread, tails)
            yield ErrorRate(f"suites, {rounds} rounds, {what}: equal, and a change is shown", count, 0.05)
            if rounds > 3:
                count = partial(_missed, rounds, spread, tails)
                yield ErrorRate(f"suites, {rounds} rounds, {what}: a row 10 % slower is missed", count, 0.1)
        for common, stores, what in ((0.0, 0.9, "two stores"), (0.9, 0.0, "slow in the same rounds")):
            count = partial(_shown_by_chance, rounds, 0.5, False, common=common, stores=stores)
            yield ErrorRate(f"suites, {rounds} rounds, {what}: equal, and a change is shown", count, 0.05)


ROWS = tuple(_rows())
