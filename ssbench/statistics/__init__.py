"""The numbers of a run, counted from its results. They know no file and no screen.

:class:`Collector` takes blocks of results in; :func:`make_statistics` makes of it what reports show,
:func:`summarize` does both.
"""

from ssbench.statistics.collect import Cause, Collector, Figures, Groups, Within
from ssbench.statistics.confidence import Interval
from ssbench.statistics.due import Due
from ssbench.statistics.generator import Generator
from ssbench.statistics.latencies import Latencies, Slowest
from ssbench.statistics.over_time import OverTime, Series
from ssbench.statistics.parts import Part, Parts
from ssbench.statistics.slowest import SlowOperation
from ssbench.statistics.stages import StageStatistics
from ssbench.statistics.steadiness import Steadiness
from ssbench.statistics.summary import (
    Course,
    Line,
    Results,
    RunFacts,
    RunStatistics,
    Section,
    Spread,
    make_statistics,
    summarize,
)
from ssbench.statistics.thresholds import Judgment, judge, judge_run
from ssbench.statistics.timeline import EachSecond, Stall, Window

__all__ = [
    "Cause",
    "Collector",
    "Course",
    "Due",
    "EachSecond",
    "Figures",
    "Generator",
    "Groups",
    "Interval",
    "Judgment",
    "Latencies",
    "Line",
    "OverTime",
    "Part",
    "Parts",
    "Results",
    "RunFacts",
    "RunStatistics",
    "Section",
    "Series",
    "SlowOperation",
    "Slowest",
    "Spread",
    "StageStatistics",
    "Stall",
    "Steadiness",
    "Window",
    "Within",
    "judge",
    "judge_run",
    "make_statistics",
    "summarize",
]
