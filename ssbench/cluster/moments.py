"""When a party was slow: the course of its difference over the run, and the part of the run it is in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ssbench.cluster.ranks import FloatArray, IntegerArray

#: A run is shown in this many slices, or in fewer where one would have fewer requests than the next number.
MAX_COURSE_SLICES = 24
_MIN_IN_COURSE_SLICE = 5
#: A part of the run stands out only if all of this holds: the deviate of the rank test between inside and
#: outside; outside, less than this share of the difference inside; and no more than this share of the run.
_MIN_OUTSTANDING = 4.0
_MAX_SHARE_OUTSIDE = 0.25
_MAX_SHARE_OF_RUN = 0.8


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
    return (start, end) if deviate >= _MIN_OUTSTANDING and without < _MAX_SHARE_OUTSIDE * within else None
