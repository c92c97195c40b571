"""What a figure is: a row of one table, which everything that shows or judges figures looks up by its key.

It imports nothing of the rest, so that the command line can read conditions without numpy.
"""

from ssbench.figures.table import (
    COMPARED,
    COUNTED,
    FIGURES,
    LIKELY,
    MIN_BEYOND,
    Figure,
    Range,
    Scope,
    by_rule,
    find,
    needed,
    percentile,
    percentile_of,
)
from ssbench.figures.units import DASH, Unit

__all__ = [
    "COMPARED",
    "COUNTED",
    "DASH",
    "FIGURES",
    "LIKELY",
    "MIN_BEYOND",
    "Figure",
    "Range",
    "Scope",
    "Unit",
    "by_rule",
    "find",
    "needed",
    "percentile",
    "percentile_of",
]
