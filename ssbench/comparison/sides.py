"""The two sides of one run (``--ab``): what one minute did to both is no difference between them.

Each operation belongs to one side, by its object. So both had the same users, in the same seconds. For each
stretch of seconds the logarithm of the ratio of both sides' percentiles is taken; what is common to both, the
noise of the store and of the hour, is not in it. Its mean and its interval, on the effective number of
stretches, are those of the change.
"""

from __future__ import annotations

import math

import numpy as np

from ssbench.comparison.change import NOISE, Change, judged
from ssbench.comparison.compare import Comparison, Row
from ssbench.comparison.figures import FIGURES, Figure, Key
from ssbench.operations import OPERATIONS
from ssbench.statistics import Figures, RunStatistics
from ssbench.statistics.by_second import LatencyTable
from ssbench.statistics.confidence import MIN_SECONDS, Series, effective_size
from ssbench.statistics.figures import merge_figures

_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

#: A stretch has this many latencies of each side beyond the percentile, on average.
_BEYOND = 4.0

_JUDGMENT = (
    "both sides met the same seconds: the intervals are of Student's t on what differs in each stretch of"
    " seconds; rates are what the draw gave to each side, and are not compared"
)
_TOO_SHORT = (
    f"the run was too short for intervals, which take {MIN_SECONDS} stretches of seconds with enough"
    " operations of both sides: no verdict"
)


def compare_sides(statistics: RunStatistics, noise: float = NOISE) -> Comparison:
    """Compare the sides of a run, whose statistics were kept apart by ``side``; raises ValueError."""
    names = statistics.run.sides
    if len(names) != 2 or "side" not in statistics.groups.keys:
        raise ValueError("the run has no two sides")
    rows = []
    for key, sides in _groups(statistics).items():
        changes = {
            name: change
            for name, share in _SHARES.items()
            if (change := _change(FIGURES[name], sides, share, noise)) is not None
        }
        before, after = (each.failed / max(1, each.count + each.failed) for each in sides)
        changes["errors"] = Change(before, after, after - before)
        rows.append(Row(*key, changes))
    sure = any(change.word for row in rows for change in row.changes.values())
    return Comparison(
        before=names[0],
        after=names[1],
        runs=(0, 0),
        rows=tuple(rows),
        repeated=sure,
        judgment=_JUDGMENT if sure else _TOO_SHORT,
        noise=noise,
        warnings=statistics.warnings,
    )


def _groups(statistics: RunStatistics) -> dict[Key, tuple[Figures, Figures]]:
    """Return the figures of both sides by operation and size class, those of all operations last."""
    found = statistics.groups.by("operation", "size_class", "side")
    classes = [each.name for each in statistics.run.scenario.size_classes]
    groups: dict[Key, tuple[list[Figures], list[Figures]]] = {}
    several = len({size_class for _, size_class, _ in found}) > 1
    for code in dict.fromkeys(code for code, _, _ in found):
        operation = OPERATIONS.get(code)
        if operation is None:
            continue
        name = operation.name.upper()
        groups[name, None] = ([], [])
        for (other, size_class, side), figures in found.items():
            if other == code and side in {0, 1}:
                groups[name, None][side].append(figures)
                if several and size_class < len(classes):
                    groups.setdefault((name, classes[size_class]), ([], []))[side].append(figures)
    everything = [[figures for (*_, side), figures in found.items() if side == each] for each in (0, 1)]
    groups["ALL", None] = everything[0], everything[1]
    return {key: (merge_figures(first), merge_figures(second)) for key, (first, second) in groups.items()}


def _change(figure: Figure, sides: tuple[Figures, Figures], share: float, noise: float) -> Change | None:
    """Return the change of a percentile; None where a side has too few latencies for it."""
    latencies = [side.last_byte for side in sides]
    if not all(each.supports(100 * share) for each in latencies):
        return None
    values = (latencies[0].percentile(100 * share), latencies[1].percentile(100 * share))
    differences = _differences(latencies[0].by_second, latencies[1].by_second, share)
    if len(differences) < MIN_SECONDS:
        return Change(*values, values[1] / values[0] - 1)
    size = effective_size(differences)
    error = float(np.std(differences, ddof=1)) / math.sqrt(size)
    return judged(figure, values, (float(differences.mean()), error, max(1.0, size - 1)), noise)


def _differences(before: LatencyTable, after: LatencyTable, share: float) -> Series:
    """Return the logarithm of the ratio of both sides' percentiles for each stretch of seconds."""
    fewest = min(before.per_second(), after.per_second())
    stretch = max(1, math.ceil(_BEYOND / (1 - share) / fewest)) if fewest else 1
    one, two = (table.percentiles(share, stretch) for table in (before, after))
    common, first, second = np.intersect1d(one[0], two[0], assume_unique=True, return_indices=True)
    # The first and the last stretch may be parts of one, with few latencies.
    inner = slice(1, -1) if len(common) > 2 * MIN_SECONDS else slice(None)
    return np.asarray(np.log(two[1][second]) - np.log(one[1][first]))[inner]
