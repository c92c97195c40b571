"""Runs of any load against a store whose behaviour is planted, at the level of results.

:func:`play` lets users meet a store in stages, with a rate or without, and returns the numbers that a run
with these results has. When operations are due is the program's own; when they begin and end is simulated.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate

import numpy as np
from planted import CLASSES, READ, START, Facts

from ssbench.results.block import ResultBlock
from ssbench.results.result_fields import NOT_MEASURED
from ssbench.results.run_description import RunDescription, RunSummary, StageFacts
from ssbench.run.result_rows import StagePlacement
from ssbench.scenario.draws import Arrivals, count_due_by_stage
from ssbench.scenario.model import Scenario, SizeClass, Stage
from ssbench.statistics.collector import Collector
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import make_statistics

#: When an operation is sent -> when it ends, both in seconds since the start.
Store = Callable[[float], float]

#: (due or NaN, sent, ended).
Operation = tuple[float, float, float]

SEED = 5


def stalling(usual: float, begins: float, ends: float, every: float) -> Store:
    """Return a store that answers at once but for ``usual`` seconds, and stalls in a part of each period."""

    def store(sent: float) -> float:
        period, within = divmod(sent, every)
        return usual + (period * every + ends if begins <= within < ends else sent)

    return store


def play(
    store: Store,
    plan: Sequence[Stage],
    *,
    arrivals: str = "even",
    warmup: float = 0.0,
    think_time: float = 0.0,
    interrupted: float = math.inf,
) -> RunStatistics:
    """Return the numbers of a run through stages; one stage is a run without stages.

    Operations are due until it is ``interrupted`` (seconds since the start), while workers begin those that
    they have ahead.
    """
    users = max(max(stage.users or (1,)) for stage in plan)
    done = np.array([*_operations(store, plan, users, arrivals, think_time)])
    done = done[done[:, 2].argsort()]
    scenario = Scenario(
        "planted",
        (SizeClass(CLASSES[0], 1000, 1000, 1, (0.0, 1.0, 0.0, 0.0)),),
        user_count=users,
        run_seconds=sum(stage.seconds for stage in plan),
        rate=plan[0].rate[0] if plan[0].rate and len(plan) == 1 else None,
        arrivals="poisson" if arrivals == "poisson" else "even",
        stages=tuple(plan) if len(plan) > 1 else (),
        warmup=warmup,
        think_time=think_time,
    )
    names = tuple(f"{number}: {stage}" for number, stage in enumerate(scenario.stages, 1))
    own = partial(Collector, mixed=scenario.is_mixed)
    collector = own(parts={"stage": [own(whole=False) for _ in names]})
    placement = StagePlacement(plan, START, warmup)
    for start in range(0, len(done), 1000):
        collector.add(placement.place(_block(done[start : start + 1000])))
    ends = [START + end for end in accumulate(stage.seconds for stage in plan)]
    dues = count_due_by_stage(plan, arrivals, SEED, interrupted, None)
    facts = tuple(
        StageFacts(end - stage.seconds, end, due if stage.rate else None)
        for stage, end, due in zip(plan, ends, dues, strict=True)
    )
    summary = RunSummary(ended=ends[-1], sent_until=ends[-1], stages=facts)
    run = RunDescription(scenario, "1", seed=SEED, stages=names)
    return make_statistics(collector, Facts(run, summary, CLASSES[:1]))


def _block(done: np.ndarray) -> ResultBlock:
    due, sent, ended = done.T
    count = len(done)
    return ResultBlock(
        count,
        {
            "operation": np.full(count, READ),
            "size": np.full(count, 1000),
            "worker": np.zeros(count, np.int64),
            "last_byte": ended - sent,
            "completed": START + ended,
            "started": START + sent,
            "due": START + due,
            "status": np.full(count, 200),
        },
    )


def _operations(
    store: Store, plan: Sequence[Stage], users: int, kind: str, think_time: float
) -> Iterator[Operation]:
    """Yield the operations of users who are all free at the start."""
    dues = Arrivals(plan, kind, SEED)
    free = [0.0] * users
    begin = 0.0
    for stage in plan:
        end = begin + stage.seconds
        while True:
            due = max(begin, free[0]) if stage.rate is None else dues.next
            sent = max(due, free[0])
            if sent >= end or due >= end:
                break
            if stage.rate is not None:
                dues.take(1)
            ended = store(sent)
            heapq.heapreplace(free, ended + (think_time if stage.rate is None else 0.0))
            yield (NOT_MEASURED if stage.rate is None else due), sent, ended
        begin = end
