"""How often ssbench concludes something wrong, as rows of a table: what is simulated, how often, the limit.

To add rows: write a module ``error_rates_NAME.py`` in this folder with a tuple ``ROWS`` of
:class:`ErrorRate`. ``python bench/truth.py rates`` runs the rows of all such modules, ``python bench/truth.py
rates:NAME`` those of one.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "error_rates_"


@dataclass(frozen=True)
class ErrorRate:
    """A wrong conclusion, and the largest share of cases in which it may be drawn.

    ``count`` gets the number of runs asked for, makes as many or a multiple of that, and returns how many
    were wrong and how many were made.
    """

    name: str
    count: Callable[[int], tuple[int, int]]
    limit: float


def is_within(rate: ErrorRate, wrong: int, runs: int) -> bool:
    """Whether as many wrong cases are no more than the limit, allowing for two standard deviations."""
    expected = rate.limit * runs
    return wrong <= expected + 2 * math.sqrt(expected * (1 - rate.limit))


def modules() -> tuple[str, ...]:
    """Return the names of all modules with rows, without what all begin with."""
    files = sorted(Path(__file__).parent.glob(f"{_PREFIX}*.py"))
    return tuple(each.stem.removeprefix(_PREFIX) for each in files)


def rows_of(name: str) -> tuple[ErrorRate, ...]:
    """Return the rows of a module."""
    rows: tuple[ErrorRate, ...] = importlib.import_module(_PREFIX + name).ROWS
    return rows
