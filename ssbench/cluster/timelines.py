"""Each server's own time over the run, beside its peers', whether or not it is a suspect."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ssbench.base.measures import PerhapsSeconds
from ssbench.cluster.culprits import Family
from ssbench.cluster.ranks import FloatArray, IntegerArray, measure_excess
from ssbench.cluster.standings import OWN_TIME_LEVELS

#: A run is shown in at most this many slices, with so many times of each server in a slice, on average.
_MAX_TIMELINE_SLICES = 16
_MIN_IN_TIMELINE_SLICE = 5


@dataclass(frozen=True, slots=True)
class ServerTimeline:
    """One server's own times (``part``) in each slice of the run.

    ``longer`` is by how much they were longer than the median of all servers' of the same kind, in seconds:
    the median of a slice, None where it has no time; ``times`` counts them. Those of ``last`` are of replicas
    of writes, beside the slowest other replica of the same write.
    """

    name: str
    part: str
    times: list[int]
    longer: list[PerhapsSeconds]

    @property
    def longest(self) -> float:
        """Return the largest of the medians, in seconds."""
        return max((each for each in self.longer if not math.isnan(each)), default=0.0)


@dataclass(frozen=True, slots=True)
class Timelines:
    """Those of all servers; ``edges`` are the ends of slices, in seconds since the run's first result."""

    edges: list[float]
    servers: list[ServerTimeline]


@dataclass(frozen=True, slots=True)
class OwnTimes:
    """Times of one part: who had each, when that was (seconds since 1970), and what is to be shown of it."""

    part: str
    who: IntegerArray
    moment: FloatArray
    beyond: FloatArray


def own_times_of_families(families: Sequence[Family], ended: FloatArray) -> Iterator[OwnTimes]:
    """Yield the own times of devices and proxies; ``ended`` is when each operation of the run did."""
    for family in families:
        if family.part not in OWN_TIME_LEVELS or family.windows or family.tail:
            continue
        who = family.levels[0].who
        beyond = measure_excess(family.units, np.zeros(len(family.units), np.bool_))
        yield OwnTimes(family.part, who.candidate, ended[family.operation[who.unit]], beyond[who.unit])


def make_timelines(
    own: Sequence[OwnTimes], run: tuple[float, float], name: Callable[[str, int], str]
) -> Timelines:
    """Divide a run (from its first result to its last) and show each server in each slice.

    ``name`` returns what a candidate of a level is called. There are none where moments are not known, or
    where there is too little to tell one slice from another.
    """
    known = [each for each in map(_select_known, own) if len(each.who)]
    each_has = [len(one.who) / len(np.unique(one.who)) for one in known]
    count = min(_MAX_TIMELINE_SLICES, int(max(each_has, default=0.0) // _MIN_IN_TIMELINE_SLICE))
    if count < 2 or not run[1] > run[0]:
        return Timelines([], [])
    edges = np.linspace(0.0, run[1] - run[0], count + 1)
    found = [
        ServerTimeline(name(OWN_TIME_LEVELS.get(one.part, "device"), who), one.part, times, longer)
        for one in known
        for who, times, longer in _divide_times(
            one, np.searchsorted(edges[1:-1], one.moment - run[0], "right"), count
        )
    ]
    return Timelines(edges.tolist(), found)


def _select_known(own: OwnTimes) -> OwnTimes:
    known = ~np.isnan(own.moment) & ~np.isnan(own.beyond)
    return OwnTimes(own.part, own.who[known], own.moment[known], own.beyond[known])


def _divide_times(
    own: OwnTimes, place: IntegerArray, count: int
) -> Iterator[tuple[int, list[int], list[PerhapsSeconds]]]:
    """Yield who it is, and the number of times and the median in each slice."""
    cell = own.who.astype(np.int64) * count + place
    order = np.lexsort((own.beyond, cell))
    ordered = own.beyond[order]
    sizes = np.bincount(cell, minlength=(int(own.who.max()) + 1) * count)
    starts = np.cumsum(sizes) - sizes
    for who in np.unique(own.who).tolist():
        cells = slice(who * count, (who + 1) * count)
        yield (
            who,
            sizes[cells].tolist(),
            [
                float(np.median(ordered[start : start + size])) if size else float("nan")
                for start, size in zip(starts[cells].tolist(), sizes[cells].tolist(), strict=True)
            ],
        )
