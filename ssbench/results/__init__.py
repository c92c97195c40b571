"""Results of operations: one table of their fields, and everything that follows from it.

A result is data whether it succeeded or not. The master makes a row of each, which costs little;
:class:`ResultBlock` holds thousands of them as numpy columns.
"""

from ssbench.results.block import (
    INVALID,
    LOST,
    UNFINISHED,
    Failure,
    ResultBlock,
    TextColumn,
    join,
)
from ssbench.results.counters import COUNTERS, count_results, counted_rows, sum_counters
from ssbench.results.description import (
    EXISTING,
    OBJECT_TAG,
    PART,
    STORE_CLOCK,
    Gap,
    GroupFacts,
    HostFacts,
    LoadSample,
    MasterFacts,
    RunDescription,
    RunSummary,
    StageFacts,
    WorkerFacts,
)
from ssbench.results.rows import ResultRow, Rows
from ssbench.results.schema import FIELDS, NO_WORKER, NOT_MEASURED, STEPS, UNKNOWN, Field, Kind, Mark
from ssbench.results.sink import Goal, Sink

__all__ = [
    "COUNTERS",
    "EXISTING",
    "FIELDS",
    "INVALID",
    "LOST",
    "NOT_MEASURED",
    "NO_WORKER",
    "OBJECT_TAG",
    "PART",
    "STEPS",
    "STORE_CLOCK",
    "UNFINISHED",
    "UNKNOWN",
    "Failure",
    "Field",
    "Gap",
    "Goal",
    "GroupFacts",
    "HostFacts",
    "Kind",
    "LoadSample",
    "Mark",
    "MasterFacts",
    "ResultBlock",
    "ResultRow",
    "Rows",
    "RunDescription",
    "RunSummary",
    "Sink",
    "StageFacts",
    "TextColumn",
    "WorkerFacts",
    "count_results",
    "counted_rows",
    "join",
    "sum_counters",
]
