"""The numbers of a run, counted from its results. They know no file and no screen.

:class:`Collector` takes blocks of results in; :func:`make_statistics` makes of it what reports show,
:func:`summarize` does both.
"""

from ssbench.statistics.collect import Cause, Collector, Figures, Groups
from ssbench.statistics.latencies import Latencies, Slowest
from ssbench.statistics.summary import (
    Line,
    Results,
    RunFacts,
    RunStatistics,
    Section,
    Spread,
    make_statistics,
    summarize,
)

__all__ = [
    "Cause",
    "Collector",
    "Figures",
    "Groups",
    "Latencies",
    "Line",
    "Results",
    "RunFacts",
    "RunStatistics",
    "Section",
    "Slowest",
    "Spread",
    "make_statistics",
    "summarize",
]
