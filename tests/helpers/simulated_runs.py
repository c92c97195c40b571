"""Results of runs of a store that is simulated by its latencies only, for what is said of them."""

from __future__ import annotations

from dataclasses import dataclass

import noise
import numpy as np

from ssbench.results.block import Failure, ResultBlock
from ssbench.results.run_description import RunDescription
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import make_collector, make_statistics

SCENARIO = Scenario("simulated", (SizeClass("small", 1, 1, 1, (0, 1, 0, 0)),), 4, run_seconds=20)
MIXED = Scenario(
    "simulated",
    (SizeClass("small", 1, 1, 1, (1, 1, 1, 1)), SizeClass("large", 9, 9, 1, (1, 1, 1, 1))),
    4,
    run_seconds=20,
)

#: Alike from second to second, and of a whole run; standard deviations of logarithms.
EACH_SECOND, EACH_RUN, EACH_REQUEST = 0.05, 0.02, 0.6


@dataclass(frozen=True, slots=True)
class Store:
    """How the noise of a store is; standard deviations of logarithms.

    ``alike`` is the autocorrelation of the noise from second to second. With ``own`` the noise of each
    second is another one for each of two sides, else they share it. ``placement`` is what differs between the
    sides of a run, because their objects lie elsewhere; or there are so many ``objects`` (0: it is not
    known), half of them of each side, on this many ``devices`` that ``differ``. The shares of operations that
    fail (``failing``) are of each side; ``bursts`` are seconds in which half of the operations of a side
    fail, which side is drawn anew for each.
    """

    alike: float = 0.8
    own: bool = False
    placement: float = 0.0
    objects: int = 0
    devices: int = 8
    differ: float = 0.0
    failing: tuple[float, float] = (0.0, 0.0)
    bursts: int = 0


class _Facts:
    summary = None
    warnings = ()
    current = True

    def __init__(self, scenario: Scenario, sides: tuple[str, ...]) -> None:
        self.run = RunDescription(scenario, sides=sides)
        self.size_classes = tuple(each.name for each in scenario.size_classes)


def reads(
    random: np.random.Generator,
    seconds: int,
    change: float = 1.0,
    *,
    rate: int = 100,
    sides: tuple[str, ...] = (),
    store: Store | None = None,
    mixed: bool = False,
) -> RunStatistics:
    """The statistics of a run of reads; ``change`` multiplies latencies, of two sides those of the second.

    A ``mixed`` one has four operations of two size classes, each as often as the others.
    """
    store = store or Store()
    places = 2 if store.own else 1
    levels = noise.correlated(random, places, seconds, store.alike, EACH_SECOND) + random.normal(0, EACH_RUN)
    # Users of a closed loop: the slower the store, the fewer operations; both sides have the same users.
    slower = 1.0 if sides else change * np.exp(levels[0])
    in_second = np.maximum(1, np.round(rate / slower * np.ones(seconds))).astype(int)
    second = np.repeat(np.arange(seconds), in_second)
    count = len(second)
    within = np.concatenate([(np.arange(each) + 0.5) / each for each in in_second])
    columns = {
        "operation": random.integers(0, 4, count) if mixed else np.ones(count, int),
        "completed": 1e9 + second + within,
        "size": np.full(count, 1000),
    }
    if mixed:
        columns["size_class"] = random.integers(1, 10_000, count) % 2
    side = np.zeros(count, int)
    if sides:
        side = columns["group"] = random.integers(1, 10_000, count) % 2
    latency = 0.01 * np.exp(levels[side * (places - 1), second] + random.normal(0, EACH_REQUEST, count))
    latency *= np.exp(random.normal(0, store.placement, 2))[side]
    latency[side == (1 if sides else 0)] *= change
    if store.objects:
        columns["object"] = 1 + (2 * random.integers(0, -(-store.objects // 2), count) + side)
        levels = random.normal(0, store.differ, store.devices)
        device = random.integers(0, store.devices, store.objects + 2)
        latency *= np.exp(levels[device[columns["object"]]])
    failed = random.random(count) < np.array(store.failing)[side]
    for begin in random.integers(0, seconds, store.bursts):
        failed |= (second == begin) & (side == random.integers(0, 2)) & (random.random(count) < 0.5)
    latency[failed] = np.nan
    failure = Failure("HTTP 503", "", {})
    failures = {int(row): failure for row in np.flatnonzero(failed)}
    facts = _Facts(MIXED if mixed else SCENARIO, sides)
    collector = make_collector(facts)
    collector.add(ResultBlock(count, {**columns, "first_byte": latency, "last_byte": latency}, failures))
    return make_statistics(collector, facts)
