"""The numbers of a run, counted from its results. They know no file and no screen.

:class:`Collector` takes blocks of results in; :func:`make_statistics` makes of it what reports show,
:func:`summarize` does both.
"""

from ssbench.statistics.attempts import Part, Parts
from ssbench.statistics.causes import Cause
from ssbench.statistics.collect import Collector
from ssbench.statistics.confidence import Interval
from ssbench.statistics.due import Due
from ssbench.statistics.facts import Results, RunFacts
from ssbench.statistics.figures import Figures
from ssbench.statistics.generator import Generator
from ssbench.statistics.groups import Groups
from ssbench.statistics.latencies import Latencies, Slowest
from ssbench.statistics.members import Member
from ssbench.statistics.over_time import OverTime, Series
from ssbench.statistics.run_statistics import RunPart, RunStatistics, Spread
from ssbench.statistics.sections import Line, Section
from ssbench.statistics.stalls import Stall
from ssbench.statistics.steadiness import Course, Steadiness
from ssbench.statistics.summary import make_statistics, summarize
from ssbench.statistics.thresholds import Judgment, judge, judge_run
from ssbench.statistics.timeline import EachSecond, Window
from ssbench.statistics.waits import Wait
from ssbench.statistics.window_totals import WindowTotals

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
    "Member",
    "OverTime",
    "Part",
    "Parts",
    "Results",
    "RunFacts",
    "RunPart",
    "RunStatistics",
    "Section",
    "Series",
    "Slowest",
    "Spread",
    "Stall",
    "Steadiness",
    "Wait",
    "Window",
    "WindowTotals",
    "judge",
    "judge_run",
    "make_statistics",
    "summarize",
]
