"""Waits that are as long as a constant of the system: a second crowd of requests, that long later.

A wait of q seconds moves requests to q plus what they take without it. So the requests below q/2 tell where
the others of the same operation and size class have to be: in a window from q plus their fastest to q plus
their 95th percentile and the timer's jitter. A wait is named where this window

- has four times as many requests as one as wide just below it, and twice as many as one above;
- has more than twice as many as its share of all from q/1.5 to 1.5 q (binomial; Holm over all tests, 0.01).

Where no request is faster than q, those of the other operations tell what a request takes. What is true of
one size class alone can be its usual time, so another class must agree where there are several.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ssbench.measures import Count, Seconds
from ssbench.operations import OPERATIONS, Operation
from ssbench.statistics.figures import Figures
from ssbench.statistics.latencies import Latencies, merge
from ssbench.statistics.wait_lengths import LENGTHS, Length

#: What reports call these.
TITLE = "Waits as long as a constant of the system"

_ALPHA = 0.01
#: Fewer requests than this make no crowd.
_LEAST = 5
#: So many fast requests tell how long requests take.
_FAST = 10
#: Times as many as below the window, and as above it.
_STEP, _PEAK = 4, 2
#: What requests take without the wait is less than this share of it; else the two cannot be told apart.
_SHARE = 0.25
#: Where all requests wait, nine of ten lie within this share of the length.
_NARROW = 0.15
#: Where all requests wait, this share of them may not.
_FEW = 0.05
#: A timer is never early, but the clock that measures may be off by this.
_EARLY = 0.0005


@dataclass(frozen=True, slots=True)
class Wait:
    """Requests of an operation that waited ``seconds``: ``requests`` of ``count``.

    With ``connecting`` both count connections.
    """

    seconds: Seconds
    name: str
    advice: str
    operation: str
    connecting: bool
    requests: Count
    count: Count


@dataclass(frozen=True, slots=True)
class _Usual:
    """What requests take without a wait: seconds of the fastest, and of the 95th percentile or the median."""

    fastest: float
    slowest: float


@dataclass(frozen=True, slots=True)
class _Crowd:
    operation: Operation
    length: Length
    latencies: Latencies
    requests: int
    probability: float
    whole: bool = False


def waits(leaves: Mapping[tuple[int, ...], Figures]) -> tuple[Wait, ...]:
    """Return the waits in the successes of a run; ``leaves`` are figures by operation and size class."""
    return waits_in(
        {(key[0], key[1]): (figures.last_attempt, figures.connecting) for key, figures in leaves.items()}
    )


def waits_in(leaves: Mapping[tuple[int, int], tuple[Latencies, Latencies]]) -> tuple[Wait, ...]:
    """Return the waits in latencies of the requests themselves, and of connecting for them."""
    tests: list[_Crowd] = []
    for operation in OPERATIONS.drawn:
        classes = [times for key, times in leaves.items() if key[0] == operation.code]
        rest = [times for key, times in leaves.items() if key[0] != operation.code]
        for length in LENGTHS:
            if not (length.reads if operation.method in ("GET", "HEAD") else length.writes):
                continue
            others = merge(times[length.connecting] for times in rest)
            tests += _agreeing(
                [
                    found
                    for times in classes
                    if (found := _crowd(operation, length, times[length.connecting], others))
                ],
                sum(times[length.connecting].count >= 2 * _FAST for times in classes),
            )
    named: dict[tuple[Length, Operation], list[_Crowd]] = {}
    for crowd in _significant(tests):
        named.setdefault((crowd.length, crowd.operation), []).append(crowd)
    return tuple(_wait(length, operation, crowds) for (length, operation), crowds in named.items())


def sentence(wait: Wait) -> str:
    """Return a wait in words."""
    length = f"{wait.seconds * 1e3:.0f} ms" if wait.seconds < 0.5 else f"{wait.seconds:g} s"
    of = f"connections for {wait.operation}" if wait.connecting else f"{wait.operation} operations"
    return f"{wait.requests:,} of {wait.count:,} {of} wait {length}, as {wait.name} does: {wait.advice}"


def _crowd(operation: Operation, length: Length, latencies: Latencies, others: Latencies) -> _Crowd | None:
    """Test one length in one size class; None where too few are that long, or nothing can be told."""
    near = latencies.between(length.seconds / 1.5, length.seconds * 1.5)
    if near < _LEAST:
        return None
    usual = _usual(latencies, length.seconds)
    if usual is None:
        return _whole(operation, length, latencies, others)
    low = length.seconds - _EARLY + usual.fastest
    high = length.seconds + usual.slowest + length.jitter
    width = high - low
    inside = latencies.between(low, high)
    below = latencies.between(low - width, low)
    above = latencies.between(high, high + width)
    if inside < _LEAST or inside < _STEP * below or inside < _PEAK * above:
        return _Crowd(operation, length, latencies, 0, 1.0)
    chance = min(1.0, 2 * width / (length.seconds * (1.5 - 1 / 1.5)))
    return _Crowd(operation, length, latencies, inside, _tail(near, chance, inside))


def _whole(operation: Operation, length: Length, latencies: Latencies, others: Latencies) -> _Crowd | None:
    """Test whether all requests are about that long, which no usual time is by chance."""
    count = latencies.count
    if not length.alone and _usual(others, length.seconds) is None:
        return None
    if count < 2 * _FAST or latencies.between(0.0, length.seconds - _EARLY) > _FEW * count:
        return None
    most = length.seconds + max(_NARROW * length.seconds, length.jitter)
    inside = latencies.between(length.seconds - _EARLY, most)
    return _Crowd(operation, length, latencies, inside, 0.0, whole=True) if inside >= 0.9 * count else None


def _usual(latencies: Latencies, seconds: float) -> _Usual | None:
    fast = latencies.between(0.0, seconds / 2)
    if fast < _FAST:
        return None
    places = (max(1, round(share * fast)) for share in (0.02, 0.5, 0.95))
    fastest, median, slowest = (latencies.smallest(place) for place in places)
    for most in (slowest, median):
        if most <= _SHARE * seconds:
            return _Usual(fastest, most)
    return None


def _agreeing(crowds: list[_Crowd], classes: int) -> list[_Crowd]:
    """Leave out crowds of whole size classes where only one of several ``classes`` has one."""
    alone = classes > 1 and sum(crowd.requests > 0 for crowd in crowds) == 1
    return [crowd for crowd in crowds if not (alone and crowd.whole)]


def _significant(tests: list[_Crowd]) -> Iterable[_Crowd]:
    """Yield those that chance does not explain, by Holm's method."""
    ordered = sorted(tests, key=lambda crowd: crowd.probability)
    for place, crowd in enumerate(ordered):
        if crowd.probability * (len(ordered) - place) >= _ALPHA:
            return
        yield crowd


def _wait(length: Length, operation: Operation, crowds: list[_Crowd]) -> Wait:
    return Wait(
        length.seconds,
        length.name,
        length.advice,
        operation.name,
        length.connecting,
        sum(crowd.requests for crowd in crowds),
        sum(crowd.latencies.count for crowd in crowds),
    )


def _tail(trials: int, chance: float, least: int) -> float:
    """Return the probability of ``least`` or more successes; an upper bound for many (Chernoff)."""
    share = least / trials
    if share <= chance:
        return 1.0
    entropy = share * math.log(share / chance)
    if share < 1:
        entropy += (1 - share) * math.log((1 - share) / (1 - chance))
    return math.exp(-trials * entropy)
