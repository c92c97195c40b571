"""How much of what an open loop asks for was delivered: what was due, began late, or never began.

What was due and never began waited until the end at least. Which those were is not recorded; the last ones
that were due waited least, so that taking these makes no response time longer than it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from ssbench.results.run_description import RunDescription, StageFacts
from ssbench.scenario.draws import find_last_due
from ssbench.scenario.model import Stage
from ssbench.statistics.confidence import estimate_climb
from ssbench.statistics.counted_figures import CountedFigures
from ssbench.statistics.latencies import select_latencies

#: A wait is at least this: what was due at the very end has waited for no time, and zeros do not count.
_MIN_WAIT_SECONDS = 1e-9

#: A stage of fewer whole seconds is too short to see whether the store kept up with its rate.
_MIN_STAGE_SECONDS = 2

#: What ended is fewer than what was due by chance up to this many times the square root of the latter.
_CHANCE_DEVIATIONS = 4.0

#: Multiples of the golden ratio, without their whole parts, are spread evenly however many there are.
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2

#: (operation, size class).
_Key = tuple[int, ...]

Waits = npt.NDArray[np.float64]


class Delivery(msgspec.Struct, frozen=True):
    """How many operations were due and begun, in an open loop or in the stages of a run with a rate."""

    due: int  # operations that were due, those of the warm-up too
    not_begun: int  # those that never began
    late: int  # those that began over 1 ms late
    #: By how large a share fewer operations ended than were due, in the second half of some stage; 0 where
    #: that is within what chance does, or not known.
    behind: float = 0.0
    #: By how many seconds response times rose in each second of a stage; 0 where chance may do that. A store
    #: that does much less than is due has that at once.
    climb: float = 0.0

    @property
    def undelivered(self) -> float:
        """The share of what was due that never began."""
        return self.not_begun / self.due if self.due else 0.0

    @property
    def late_or_not_begun(self) -> float:
        """The share of what was due that began late or never."""
        return (self.late + self.not_begun) / self.due if self.due else 0.0


def merge_deliveries(parts: Iterable[Delivery]) -> Delivery | None:
    """Return the delivery of several stages together; None without any."""
    parts = list(parts)
    if not parts:
        return None
    return Delivery(
        sum(part.due for part in parts),
        sum(part.not_begun for part in parts),
        sum(part.late for part in parts),
        max(part.behind for part in parts),
        max(part.climb for part in parts),
    )


def list_unbegun_waits(
    run: RunDescription, stages: Sequence[StageFacts], not_begun: Sequence[int]
) -> list[Waits]:
    """Return how long those had waited at least that never began, of each stage; sorted, seconds."""
    if not any(not_begun) or not stages:
        return [np.empty(0) for _ in not_begun]
    start = stages[0].begins
    until = max(stage.ends for stage in stages) - start
    plan = run.scenario.plan
    counts = [*not_begun, *(0 for _ in plan[len(not_begun) :])]
    moments = find_last_due(plan, run.scenario.arrivals, run.seed or 0, until, counts, run.scenario.phase)
    return [
        np.sort(np.maximum(stage.ends - start - own, _MIN_WAIT_SECONDS))
        for stage, own in zip(stages, moments, strict=False)
    ]


def spread_waits(leaves: Mapping[_Key, CountedFigures], waited: Waits) -> dict[_Key, CountedFigures]:
    """Give each group its part of what never began (sorted waits): as much as it has of what ended.

    An operation is drawn when it is sent, so that those that never began are of no kind.
    """
    ended = [figures.count + figures.failed for figures in leaves.values()]
    shares = np.cumsum(ended) / max(1, sum(ended))
    ends = np.rint(shares * len(waited)).astype(int)
    # Each group gets waits of all lengths.
    order = np.argsort(np.modf(np.arange(len(waited)) * _GOLDEN_RATIO)[0], kind="stable")
    parts = {}
    begin = 0
    for (key, figures), end in zip(leaves.items(), ends.tolist(), strict=True):
        own = select_latencies(waited[order[begin:end]])
        parts[key] = replace(figures, due=replace(figures.due, waited=own))
        begin = end
    return parts


def measure_shortfall(stage: Stage, facts: StageFacts, total: CountedFigures, measured_from: float) -> float:
    """Return by which share fewer operations ended than were due in the second half of a stage.

    0 where the difference is one that chance makes, and of stages whose rate changes. ``measured_from`` is
    when the warm-up ended.
    """
    if not _has_steady_rate(stage):
        return 0.0
    middle = (facts.begins + facts.ends) / 2
    first, last = math.ceil(max(middle, measured_from)), math.floor(facts.ends)
    if last - first < _MIN_STAGE_SECONDS:
        return 0.0
    due = (stage.rate or (0.0,))[0] * (last - first)
    missing = due - total.by_second.ended(first, last)
    return missing / due if missing > _CHANCE_DEVIATIONS * math.sqrt(due) else 0.0


def measure_latency_climb(
    stage: Stage, facts: StageFacts, total: CountedFigures, measured_from: float
) -> float:
    """Return by how many seconds response times rose each second of a stage with a steady rate.

    0 where chance may do that. What is due and not done waits: a store that does a share less than what is
    due is later by that share of a second each second.
    """
    if not _has_steady_rate(stage):
        return 0.0
    seconds, medians, _ = total.due.response.by_second.percentiles(0.5)
    first, last = math.ceil(max(facts.begins, measured_from)), math.floor(facts.ends)
    return estimate_climb(medians[(seconds >= first) & (seconds < last)])


def _has_steady_rate(stage: Stage) -> bool:
    return stage.rate is not None and stage.rate[0] == stage.rate[1]
