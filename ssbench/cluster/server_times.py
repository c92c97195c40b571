"""The own times of each device and proxy beside those of its peers: all in all, and over the run.

:func:`rank_standings` has all of them, the most evident first. A :class:`DifferenceCourse` says when a party
was slow: the course of its difference, and the part of the run it is in. :class:`Timelines` show each server
over the run, whether or not it is a suspect.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ssbench.base.record import PerhapsSeconds
from ssbench.cluster.rank_tests import (
    FloatArray,
    IntegerArray,
    PeerDifference,
    measure_excess,
    measure_median_interval,
    upper_tail,
)
from ssbench.cluster.suspect_search import POOLED, Measure, SuspectVerdict

#: So many are measured.
MAX_STANDINGS = 20

#: The own times of a party, and the level of those who have them.
OWN_TIME_LEVELS = {"own": "device", "updates": "device", "own part": "proxy"}
#: Those of which timelines are shown.
_TIMELINE_PARTS = (*OWN_TIME_LEVELS, "last")


@dataclass(frozen=True, slots=True)
class Standing:
    """By how much the own times of a device or proxy are longer than its peers', in seconds."""

    name: str  # of the device or proxy
    part: str  # which of its times: a key of :data:`OWN_TIME_LEVELS`, or ``last``
    requests: int  # how many times these are
    difference: PeerDifference
    interval: tuple[float, float]  # of 95 %
    probability: float  # of one test by itself


def measure_evidence(measures: Sequence[Measure], verdict: SuspectVerdict, level: str) -> FloatArray:
    """Return the largest deviate of each candidate of a level in all tests, -inf where none could tell.

    A node has at least that of its devices: one with a single device is not tested by itself.
    """
    found = _largest_deviates(measures, verdict, level)
    members = next(each.members for each in measures[-2].levels if each.name == level)
    if members is None:
        return found
    of_devices = _largest_deviates(measures, verdict, "device")
    return np.array([max([own, *of_devices[list(each)]]) for own, each in zip(found, members, strict=True)])


def _largest_deviates(measures: Sequence[Measure], verdict: SuspectVerdict, level: str) -> FloatArray:
    every = [
        np.nan_to_num(test.z, nan=-np.inf).max(axis=0)
        for measure, tests in zip(measures, verdict.tests, strict=True)
        for one, test in zip(measure.levels, tests, strict=True)
        if one.name == level
    ]
    largest: FloatArray = np.max(every, axis=0)
    return largest


def rank_standings(
    measures: Sequence[Measure], verdict: SuspectVerdict, name: Callable[[str, int], str]
) -> list[Standing]:
    """Return the standings with most evidence; ``name`` returns what a candidate of a level is called."""
    ranked = []
    for measure, tests in zip(measures, verdict.tests, strict=True):
        if measure.part not in OWN_TIME_LEVELS or measure.divided or measure.tail:
            continue
        best = np.nan_to_num(tests[0].z, nan=-np.inf).max(axis=0)
        ranked += [(float(best[place]), measure, int(place)) for place in np.flatnonzero(np.isfinite(best))]
    ranked.sort(key=lambda each: -each[0])
    found = []
    for z, measure, place in ranked[:MAX_STANDINGS]:
        mask = measure.mask(measure.levels[0], place)
        measured = measure.difference(measure.levels[0], place, POOLED)
        if not np.isnan(measured.median):
            found.append(
                Standing(
                    name(OWN_TIME_LEVELS[measure.part], place),
                    measure.part,
                    int(mask.sum()),
                    measured,
                    measure_median_interval(measure.units, mask),
                    upper_tail(z),
                )
            )
    return found


# -- When a party was slow -------------------------------------------------------------------------


#: A run is shown in this many slices, or in fewer where one would have fewer requests than the next number.
MAX_COURSE_SLICES = 24
_MIN_IN_COURSE_SLICE = 5
#: A part of the run stands out only if all of this holds: the deviate of the rank test between inside and
#: outside; outside, less than this share of the difference inside; and no more than this share of the run.
_MIN_OUTSTANDING = 4.0
_MAX_SHARE_OUTSIDE = 0.25
_MAX_SHARE_OF_RUN = 0.8
_MIN_SHARE_OF_MEAN = 0.5


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of the run: seconds since its first result, requests, and the median difference in seconds."""

    begins: float
    ends: float
    requests: int
    longer: float | None


@dataclass(frozen=True, slots=True)
class DifferenceCourse:
    """The slices of a run. ``begins`` and ``ends`` are of the part when it was slow; None for all of it."""

    slices: list[Slice]
    begins: float | None = None
    ends: float | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """From the first to the last of some requests: seconds since the run's first result, of so many."""

    begins: float
    ends: float
    length: float


def find_stretch(moment: FloatArray, run: tuple[float, float]) -> Stretch | None:
    """Return the stretch of a run in which moments are; None where they are not known."""
    known = moment[~np.isnan(moment)]
    if not len(known) or np.isnan(run[0]):
        return None
    return Stretch(float(known.min()) - run[0], float(known.max()) - run[0], run[1] - run[0])


def measure_course(
    moment: FloatArray, beyond: FloatArray, run: tuple[float, float]
) -> DifferenceCourse | None:
    """Return the course of differences (seconds) at moments; ``run`` is from the first result to the last.

    None where moments are not known, or there are too few.
    """
    known = ~np.isnan(moment) & ~np.isnan(beyond)
    moment, beyond = moment[known] - run[0], beyond[known]
    length = run[1] - run[0]
    count = min(MAX_COURSE_SLICES, len(moment) // _MIN_IN_COURSE_SLICE)
    if not length > 0 or count < 2:
        return None
    edges = np.linspace(0, length, count + 1)
    place = np.clip(np.searchsorted(edges, moment, "right") - 1, 0, count - 1)
    slices = []
    for index in range(count):
        inside = beyond[place == index]
        longer = float(np.median(inside)) if len(inside) else None
        slices.append(Slice(float(edges[index]), float(edges[index + 1]), len(inside), longer))
    found = _find_slow_part(np.argsort(moment, kind="stable"), beyond)
    if found is None:
        return DifferenceCourse(slices)
    ordered = np.sort(moment)
    return DifferenceCourse(slices, float(ordered[found[0]]), float(ordered[found[1] - 1]))


def _find_slow_part(order: IntegerArray, beyond: FloatArray) -> tuple[int, int] | None:
    """Return the first and the last but one of the requests between which a difference is, in their order.

    It is the stretch with the largest sum of what the median ranks are exceeded by; a test decides whether
    it stands out.
    """
    count = len(order)
    ranks = np.empty(count)
    ranks[np.argsort(beyond, kind="stable")] = np.arange(1, count + 1)
    ranks = ranks[order]
    sums = np.concatenate(([0.0], np.cumsum(ranks - (count + 1) / 2)))
    # The maximal sum of a stretch (Kadane), as the largest rise of the running sum.
    lowest = np.minimum.accumulate(sums)
    end = int(np.argmax(sums - lowest))
    start = int(np.argmin(sums[: end + 1]))
    inside = end - start
    if (
        inside < _MIN_IN_COURSE_SLICE
        or count - inside < _MIN_IN_COURSE_SLICE
        or inside > _MAX_SHARE_OF_RUN * count
    ):
        return None
    expected = inside * (count + 1) / 2
    deviate = (ranks[start:end].sum() - expected) / np.sqrt(inside * (count - inside) * (count + 1) / 12)
    values = beyond[order]
    within = float(np.median(values[start:end]))
    without = float(np.median(np.concatenate((values[:start], values[end:]))))
    is_part = without < _MAX_SHARE_OUTSIDE * within and within >= _MIN_SHARE_OF_MEAN * values.mean()
    return (start, end) if deviate >= _MIN_OUTSTANDING and is_part else None


# -- Each server over the run ----------------------------------------------------------------------


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

    def where(self, mask: npt.NDArray[np.bool_]) -> OwnTimes:
        """Return those of a mask."""
        return OwnTimes(self.part, self.who[mask], self.moment[mask], self.beyond[mask])


def list_own_times(measures: Sequence[Measure], ended: FloatArray) -> Iterator[OwnTimes]:
    """Yield the own times of devices and proxies; ``ended`` is when each operation of the run did."""
    for measure in measures:
        if measure.part not in _TIMELINE_PARTS or measure.divided or measure.tail:
            continue
        who = measure.levels[0].who
        beyond = measure.units.seconds  # of the last replica this is beyond others already
        if measure.part in OWN_TIME_LEVELS:
            beyond = measure_excess(measure.units, np.zeros(len(measure.units), np.bool_))
        yield OwnTimes(measure.part, who.candidate, ended[measure.operation[who.unit]], beyond[who.unit])


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
    return own.where(~np.isnan(own.moment) & ~np.isnan(own.beyond))


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
