"""The noise floor: by how much figures differed between earlier runs in which nothing was changed.

What differs from one run to the next is not in a single run, and what differs from one day to the next is not
in a group of runs that follow each other. Both are in a history of runs of the same configuration. Runs that
follow each other within an hour are a session; the variances within and between sessions are those of a
one-way analysis of variance with random effects.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from urllib.parse import urlsplit

from ssbench.comparison.change import FigureDifference, FigurePlace
from ssbench.document.figures import COMPARED_FIGURES, CPU_KEYS, Figure
from ssbench.statistics.confidence import t_quantile

#: Runs that begin within this time after each other, in seconds, are of one session.
SESSION_SECONDS = 3600.0

_T_SHARE = 0.975

#: Fewer independent differences than this say nothing of their variance.
_MIN_FREEDOM = 3

#: By how much the objects of a side are slower or faster, because they lie elsewhere (standard deviation of
#: the logarithm), where no earlier runs tell.
PLACEMENT_DEVIATION = 0.035

#: What is assumed of the CPU of a side's servers, between two of one release that were started in turn. Of 88
#: differences that were none, in runs of 12 s on a real Swift, 4 would be outside of their intervals with
#: 0.006, and 1 is with this.
CPU_DEVIATION = 0.009

#: The same of latencies and rates. These follow from all kinds of servers together, and from the client,
#: which both sides share, so that they differ by less than the CPU of one kind, of which this was right for
#: 84 of the 88. Where they do differ as much, changes within ``NOISE_SHARE`` make up for it.
SPEED_DEVIATION = 0.006

#: By how much one object is slower than another, because its devices are (the same): the fewer there are of a
#: side, the less of this averages out.
OBJECT_DEVIATION = 0.3


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """An earlier run: when it began, the logarithms of its figures, and of the ratios of its two sides."""

    started: float
    figures: Mapping[FigurePlace, float]
    sides: Mapping[FigurePlace, float]


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """The variances of the logarithm of a figure, between sessions and from run to run within one.

    Each has its degrees of freedom.
    """

    between: float
    between_freedom: float
    within: float
    within_freedom: float

    def of_mean(self, runs: int) -> float:
        """Return the variance of the mean of some runs of one session."""
        return self.between + self.within / runs


class NoiseFloors:
    """What the earlier runs of one or more configurations say; those of each are compared with each other."""

    def __init__(self, configurations: Sequence[Sequence[EarlierRun]]) -> None:
        self._configurations = [sorted(each, key=lambda run: run.started) for each in configurations]

    @property
    def runs(self) -> int:
        """The number of earlier runs."""
        return sum(map(len, self._configurations))

    def of(self, place: FigurePlace) -> NoiseFloor | None:
        """Return the floor of a figure; None where there are too few sessions."""
        values = [
            [
                [run.figures[place] for run in session if place in run.figures]
                for session in _split_sessions(runs)
            ]
            for runs in self._configurations
        ]
        return _estimate_floor([[session for session in sessions if session] for sessions in values])

    def of_sides(self, place: FigurePlace) -> tuple[float, float] | None:
        """Return the variance of the difference of both sides from run to run, and its degrees of freedom."""
        values = [[run.sides[place] for run in runs if place in run.sides] for runs in self._configurations]
        freedom = sum(len(each) - 1 for each in values if each)
        if freedom < _MIN_FREEDOM:
            return None
        squares = sum((value - fmean(each)) ** 2 for each in values for value in each)
        return squares / freedom, float(freedom)


def _split_sessions(runs: Sequence[EarlierRun]) -> Iterator[list[EarlierRun]]:
    """Yield runs, in the order of time, by session."""
    session = list(runs[:1])
    for one, two in pairwise(runs):
        if two.started - one.started > SESSION_SECONDS:
            yield session
            session = []
        session.append(two)
    if session:
        yield session


def _estimate_floor(configurations: Sequence[Sequence[Sequence[float]]]) -> NoiseFloor | None:
    """Return the variances of values by configuration and session; None of too few sessions."""
    within = within_freedom = between = between_freedom = sizes = 0.0
    for sessions in configurations:
        count = sum(map(len, sessions))
        if not count:
            continue
        mean = fmean(value for session in sessions for value in session)
        between += sum(len(session) * (fmean(session) - mean) ** 2 for session in sessions)
        between_freedom += len(sessions) - 1
        within += sum((value - fmean(session)) ** 2 for session in sessions for value in session)
        within_freedom += count - len(sessions)
        sizes += count - sum(len(session) ** 2 for session in sessions) / count
    if between_freedom < _MIN_FREEDOM:
        return None
    between /= between_freedom
    if not within_freedom:
        return NoiseFloor(between, between_freedom, 0.0, 0.0)
    within /= within_freedom
    size = sizes / between_freedom
    return NoiseFloor(max(0.0, (between - within) / size), between_freedom, within, within_freedom)


def add_noise_floor(
    found: FigureDifference, floor: NoiseFloor, runs: tuple[int, int], *, apart: bool
) -> FigureDifference:
    """Return a difference of runs whose error has in it what differs from run to run, and from day to day.

    ``apart``: the sides were measured in different sessions.
    """
    if found.middle is None:
        return found
    if min(runs) == 1:
        if not apart and floor.within_freedom >= _MIN_FREEDOM:
            variance, freedom = sum(floor.within / each for each in runs), floor.within_freedom
        else:
            variance, freedom = sum(map(floor.of_mean, runs)), floor.between_freedom
        error = max(math.sqrt(variance), found.error or 0.0)
        return replace(found, error=error, freedom=freedom, between_runs=True, sure=True)
    if not apart or found.error is None:
        return found
    parts = [(found.error**2, found.freedom), (2 * floor.between, floor.between_freedom)]
    return _with_variances(found, parts)


def _with_variances(found: FigureDifference, parts: Sequence[tuple[float, float]]) -> FigureDifference:
    """Return a difference whose error has these variances, each with its degrees of freedom.

    Its interval is not narrower than before, which more degrees of freedom can make it where there are few.
    """
    made = replace(found, error=math.sqrt(sum(part for part, _ in parts)), freedom=_freedom(parts))
    return max(found, made, key=lambda each: (each.error or 0.0) * t_quantile(_T_SHARE, each.freedom))


def placement_deviation(objects: float | None) -> float:
    """Return what is assumed of a side of so many objects; None: they are many, or it is not known."""
    return max(PLACEMENT_DEVIATION, OBJECT_DEVIATION / math.sqrt(objects)) if objects else PLACEMENT_DEVIATION


def add_noise_floor_of_sides(
    found: FigureDifference, floor: tuple[float, float] | None, assumed: tuple[float, float]
) -> FigureDifference:
    """Return a difference of the sides of one run, with what differs between them from run to run.

    Where no earlier runs tell, a standard deviation of each side is ``assumed``.
    """
    if found.middle is None or found.error is None:
        return found
    if floor is None:
        own = (found.error**2, found.freedom)
        return _with_variances(found, [own, *((each**2, math.inf) for each in assumed)])
    variance, freedom = floor
    if variance <= found.error**2:
        return found
    return replace(found, error=math.sqrt(variance), freedom=freedom)


@dataclass(frozen=True, slots=True)
class SwiftStarts:
    """Which Swifts on this machine the runs of two sides used, each with the number of its runs.

    One that several runs have was started once for these, so that their spread does not show what another
    start of it would change; nor does the spread within runs.
    """

    before: Counter[tuple[str, ...]]
    after: Counter[tuple[str, ...]]

    @classmethod
    def of(cls, before: Iterable[Sequence[str]], after: Iterable[Sequence[str]]) -> SwiftStarts:
        """Return those of runs with these storage URLs; a run with another store has none."""
        return cls(Counter(map(_list_hosts, before)), Counter(map(_list_hosts, after)))

    def allow_for(self, figure: Figure, found: FigureDifference) -> FigureDifference:
        """Return a difference with what servers of one release differ by; that of shares as it is."""
        if found.error is None or figure.is_share:
            return found
        deviation = CPU_DEVIATION if figure.key in CPU_KEYS else SPEED_DEVIATION
        assumed = [(deviation**2 * each, math.inf) for each in self._weigh(between_runs=found.between_runs)]
        return _with_variances(found, [(found.error**2, found.freedom), *assumed]) if assumed else found

    def describe(self) -> str:
        """Say what is allowed for; empty where the spread of runs shows it."""
        if not any(self._weigh(between_runs=True)):
            return ""
        return (
            "Each Swift on this machine was started once for several runs, which do not show what another"
            f" start would change: {100 * SPEED_DEVIATION:g} % a side is allowed for it, of CPU"
            f" {100 * CPU_DEVIATION:g} %"
        )

    def _weigh(self, *, between_runs: bool) -> list[float]:
        """Return the variance of the mean of the starts of each side, as a part of that of one start.

        Nothing where both sides have the same Swift, by whatever account or API, or where each run has its
        own and the error is one ``between_runs``.
        """
        if self.before.keys() & self.after.keys():
            return []
        sides = [each for each in (self.before, self.after) if not between_runs or len(each) < each.total()]
        known = ([runs / each.total() for hosts, runs in each.items() if hosts] for each in sides)
        return [sum(share**2 for share in each) for each in known if each]


def _list_hosts(urls: Iterable[str]) -> tuple[str, ...]:
    """Return where servers listen, which storage URLs of several accounts and APIs have in common."""
    return tuple(sorted({urlsplit(url).netloc for url in urls}))


def _freedom(parts: Sequence[tuple[float, float]]) -> float:
    """Return the degrees of freedom of a sum of variances (Satterthwaite)."""
    below = sum(part**2 / freedom for part, freedom in parts if part)
    return sum(part for part, _ in parts) ** 2 / below if below else sum(freedom for _, freedom in parts)


def is_ratio(place: FigurePlace) -> bool:
    """Whether a figure is compared by its logarithm: shares have no floor."""
    return not COMPARED_FIGURES[place[1]].is_share
