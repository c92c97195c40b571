"""The operations that a scenario makes, and when they are due: the same for the same seed.

What workers draw for a job follows from the seed and the job's number alone
(:meth:`ssbench.fleet.wire.RunParameters.draw`).
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from ssbench.scenario.key_rules import BURST_WORD, REPLAY_WORD
from ssbench.scenario.model import Scenario, SizeClass, Stage, make_owner
from ssbench.scenario.operations import UPLOAD_IF_MISSING
from ssbench.scenario.sizes import Histogram, Lognormal, Shape

#: Operations drawn at once: enough for numpy to be fast, few enough to need little memory and time.
OPERATIONS_AT_ONCE = 4096

#: (operation code, size-class index, container number, bytes to send)
Draw = tuple[int, int, int, int]

#: (operation code, size-class index, container number, object number, bytes). The bytes are those to send,
#: or those that a read must return: 0 if they are not known, once an update has failed, which may be carried
#: out after later ones. A copy has the number of the object that is copied in their place.
Target = tuple[int, int, int, int, int]

DrawnShares = npt.NDArray[np.int64]
DrawnSizes = npt.NDArray[np.int64]

#: As fine as a float is below 1.
MAX_SHARE = 2**53 - 1

_NORMAL_DISTRIBUTION = NormalDist()


class Workload:
    """All random choices of a run.

    For each operation, four things are drawn: a size class by its share, which as a rule is that of its
    initial files, the operation by the weights of that class, a size by the distribution of the class, and a
    container. All of it is drawn with numpy, always :data:`OPERATIONS_AT_ONCE` operations at a time, so that
    the stream does not depend on how many the caller takes. An operation without a weight does not change it.

    ``seed`` is a whole number >= 0. The generator is PCG64. numpy guarantees its bits, but not how a
    distribution uses them: the same seed draws the same operations with the same version of numpy.

    The sizes of initial objects that are ``prepared`` follow from their size class, whatever the seed is, and
    those of the first ones whatever their number is.
    """

    def __init__(self, scenario: Scenario, seed: int, *, prepared: bool = False) -> None:
        self.scenario = scenario
        self._prepared = prepared
        self._run_seed, self._initial_seed, self._choice_seed = np.random.SeedSequence(seed).spawn(3)
        classes = scenario.size_classes
        #: What turns the shares that are drawn for a class into sizes, where these are not uniform.
        self._shapes = {
            index: make_size_function(each.shape)
            for index, each in enumerate(classes)
            if each.shape is not None
        }
        ends = [_find_ends(each) for each in classes]
        self._low = np.array([low for low, _ in ends], np.int64)
        self._high = np.array([high for _, high in ends], np.int64)
        # One draw for class and operation together: the joint probability, class by class.
        shares = np.array([each.share for each in classes], np.float64)
        drawn = scenario.operation_table.drawn
        profiles = np.array(
            [[each.weights.get(row.name, 0.0) for row in drawn] for each in classes], np.float64
        )
        joint = shares[:, None] * (profiles / profiles.sum(axis=1, keepdims=True))
        cumulative = joint.ravel().cumsum()
        self._thresholds = cumulative / cumulative[-1]
        self._codes = np.array([row.code for row in drawn])
        self._sends_body = np.array([row.sends_body for row in drawn])

    def draws(self) -> Iterator[Draw]:
        """Yield the operations of the run from the first one on, without end.

        The size is 0 for an operation that sends no body; the container is that of a new object.
        """
        return chain.from_iterable(self._blocks())

    def generators(self) -> list[np.random.Generator]:
        """Return what objects are chosen by: a generator for each size class, and one for all of them."""
        seeds = self._choice_seed.spawn(len(self.scenario.size_classes) + 1)
        return [np.random.Generator(np.random.PCG64(seed)) for seed in seeds]

    def _blocks(self) -> Iterator[Iterator[Draw]]:
        random = np.random.Generator(np.random.PCG64(self._run_seed))
        while True:
            pairs = self._thresholds.searchsorted(random.random(OPERATIONS_AT_ONCE), side="right")
            classes, rows = np.divmod(pairs, len(self._codes))
            sizes = random.integers(self._low[classes], self._high[classes], endpoint=True)
            sizes *= self._sends_body[rows]
            for index, in_sizes in self._shapes.items():
                places = np.flatnonzero((classes == index) & self._sends_body[rows])
                sizes[places] = in_sizes(sizes[places])
            containers = random.integers(self.scenario.container_numbers, size=OPERATIONS_AT_ONCE)
            codes = self._codes[rows]
            yield zip(codes.tolist(), classes.tolist(), containers.tolist(), sizes.tolist(), strict=True)

    def initial_containers(self, size_class: int) -> npt.NDArray[np.uint32]:
        """Return the container of each initial object of a class, that of object number 1 first.

        Initial objects of all classes together are put into the containers in turn. Where they keep their
        places, those of each class are, or they fill one container after the other.
        """
        scenario, classes = self.scenario, self.scenario.size_classes
        count, containers = classes[size_class].initial_files, scenario.container_numbers
        if scenario.keeps_places and scenario.objects_per_container:
            return np.arange(count, dtype=np.uint32) // np.uint32(scenario.objects_per_container)
        before = 0 if scenario.keeps_places else sum(each.initial_files for each in classes[:size_class])
        # One round, repeated: an array of 8 bytes for each object would need more memory than all else.
        round_ = (np.arange(min(count, containers), dtype=np.uint64) + before) % containers
        rounds = -(-count // len(round_)) if count else 0
        return np.tile(round_.astype(np.uint32), rounds)[:count]

    def initial_uploads(self) -> Iterator[Target]:
        """Yield the uploads of the initial objects, those that are there left out by workers."""
        return ((UPLOAD_IF_MISSING.code, *each) for each in self.initial_objects())

    def initial_objects(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield the initial objects as (size-class index, container, number, size), class by class."""
        random = np.random.Generator(np.random.PCG64(self._initial_seed))
        for index, each in enumerate(self.scenario.size_classes):
            if self._prepared:
                own = int(make_owner(self.scenario, each).partition(" ")[0], 16)
                random = np.random.Generator(np.random.PCG64(own))
            containers = self.initial_containers(index)
            for start in range(0, each.initial_files, OPERATIONS_AT_ONCE):
                block = containers[start : start + OPERATIONS_AT_ONCE].tolist()
                sizes = random.integers(*_find_ends(each), OPERATIONS_AT_ONCE, endpoint=True)
                if each.shape is not None:
                    sizes = self._shapes[index](sizes)
                of_block = zip(block, sizes.tolist(), strict=False)
                for number, (container, size) in enumerate(of_block, start + 1):
                    yield index, container, number, size


def _find_ends(size_class: SizeClass) -> tuple[int, int]:
    """Return the ends of what is drawn for the size of a class: sizes, or shares of a distribution."""
    return (size_class.size_min, size_class.size_max) if size_class.shape is None else (0, MAX_SHARE)


def make_size_function(shape: Shape) -> Callable[[DrawnShares], DrawnSizes]:
    """Return a function that turns shares into sizes in bytes.

    A size follows from a share, a whole number from 0 to :data:`MAX_SHARE`, each as likely as any other, by
    the inverse of its distribution function. So a size needs one draw whatever its distribution is.
    """
    return _make_lognormal(shape) if isinstance(shape, Lognormal) else _make_histogram(shape)


def _make_lognormal(shape: Lognormal) -> Callable[[DrawnShares], DrawnSizes]:
    low, high = shape.part
    # 0 and 1 themselves are infinitely far away.
    low, high = max(low, 2.0**-60), min(high, 1 - 2.0**-53)

    def sizes(shares: DrawnShares) -> DrawnSizes:
        parts = low + (shares + 0.5) * 2.0**-53 * (high - low)
        deviations = np.fromiter(map(_NORMAL_DISTRIBUTION.inv_cdf, parts.tolist()), np.float64, len(parts))
        found = shape.median * np.exp(shape.sigma * deviations)
        # Below 2**63 as a float, too.
        sizes_: DrawnSizes = np.rint(np.clip(found, shape.smallest, min(shape.largest, 2**62))).astype(
            np.int64
        )
        return sizes_

    return sizes


def _make_histogram(shape: Histogram) -> Callable[[DrawnShares], DrawnSizes]:
    lowest = np.array([low for low, _, _ in shape.ranges], np.int64)
    highest = np.array([high for _, high, _ in shape.ranges], np.int64)
    counts = (highest - lowest).astype(np.float64) + 1
    weights = np.array([weight for *_, weight in shape.ranges], np.float64)
    ends = (weights / weights.sum()).cumsum()
    ends /= ends[-1]
    begins = np.concatenate(([0.0], ends[:-1]))

    def sizes(shares: DrawnShares) -> DrawnSizes:
        parts = shares * 2.0**-53
        places = ends.searchsorted(parts, side="right")
        # How far into its range a share is, which is as even as the share itself.
        within = (parts - begins[places]) / (ends[places] - begins[places])
        found: DrawnSizes = np.minimum(
            lowest[places] + (within * counts[places]).astype(np.int64), highest[places]
        )
        return found

    return sizes


# -- When operations are due -----------------------------------------------------------------------


#: Moments made at once.
_MOMENTS_AT_ONCE = 4096

#: R(t) is a sum of products; an operation that is due at the very end of the run because of rounding is none.
_MAX_ROUNDING_ERROR = 1e-9

_Moments = npt.NDArray[np.float64]


def derive_group_seed(seed: int, name: str) -> int:
    """Return the seed by which the group of this name draws, in a run with a seed.

    Groups draw independently of each other, and what one draws does not depend on which others there are.
    """
    return int(np.random.SeedSequence([seed, zlib.crc32(name.encode())]).generate_state(1, np.uint64)[0])


class Arrivals:
    """The moments at which operations are due, in order; each can be taken once.

    ``kind`` is the ``arrivals`` of a scenario, ``seed`` a whole number of 0 or more. ``phase`` is by which
    part of their distance even ones are later. Those of a replay are taken for even where it is not there.
    Only what was asked for is made and kept. ``taken`` counts what was taken, ``skipped`` what was left out.

    In an open loop operations are due at moments, in seconds since the beginning of the run. A rate r(t),
    which may change in stages and within them, adds up to R(t) operations due until t. Evenly, the n-th
    operation (from 0) is due when R is n. As a Poisson process it is due when R is the sum of n + 1 random
    distances of mean 1: so the process has the rate r(t) at every moment (time rescaling).

    In bursts, the distances are of two kinds, each exponential, with the same sum (a balanced
    hyperexponential distribution): many short ones, and a few long ones.
    """

    def __init__(self, plan: Sequence[Stage], kind: str, seed: int, phase: float = 0.0) -> None:
        self.taken = self.skipped = 0
        seconds = np.array([stage.seconds for stage in plan])
        rates = np.array([stage.rate or (0.0, 0.0) for stage in plan], np.float64)
        #: Of each stage: when it begins, R at that moment, r at that moment, the slope of r.
        self._begins = np.concatenate([[0.0], seconds.cumsum()[:-1]])
        self._rates = rates[:, 0]
        self._slopes = (rates[:, 1] - rates[:, 0]) / seconds
        means = rates.mean(axis=1)
        # A stage without an end and without operations has none: infinity times 0 would be no number.
        expected = np.where(means > 0, seconds, 0.0) * means
        self._sums = np.concatenate([[0.0], expected.cumsum()])
        # A child seed of its own: the draws of the workload stay what they are without a rate.
        random = np.random.SeedSequence(seed).spawn(3)[2]
        is_even = kind in {"even", REPLAY_WORD}
        self._random = None if is_even else np.random.Generator(np.random.PCG64(random))
        burst = float(kind.removeprefix(BURST_WORD)) if kind.startswith(BURST_WORD) else 1.0
        #: How many distances are short.
        self._short = (1 + math.sqrt((burst - 1) / (burst + 1))) / 2
        #: R at the last moment that was made; the next one is further by a distance.
        self._sum = 0.0 if self._random else phase - 1.0
        self._moments: _Moments = np.empty(0)
        self._first = 0
        self._complete = False

    @property
    def next(self) -> float:
        """The next moment, infinite where there is none."""
        self._make_some()
        return float(self._moments[self._first]) if self._first < len(self._moments) else np.inf

    def until(self, moment: float, most: float = math.inf) -> int:
        """Return how many operations that were not taken are due up to a moment, ``most`` if there are more.

        No more are made for it than that, and a block: an overloaded run has a backlog without end.
        """
        self._make_some()
        while not self._complete and self._moments[-1] <= moment and len(self._moments) - self._first < most:
            self._moments = np.concatenate([self._moments[self._first :], self._make()])
            self._first = 0
        due = int(self._moments.searchsorted(moment, "right")) - self._first
        return due if due < most else int(most)

    def take(self, count: int) -> list[float]:
        """Take the next moments; fewer where there are no more."""
        taken: list[float] = []
        while len(taken) < count and self.next < np.inf:
            part = self._moments[self._first : self._first + count - len(taken)]
            self._first += len(part)
            taken += part.tolist()
        self.taken += len(taken)
        return taken

    def skip(self, moment: float) -> None:
        """Leave out what was not taken and is due before a moment."""
        while True:
            self._make_some()
            skipped = max(0, int(self._moments.searchsorted(moment, "left")) - self._first)
            self._first += skipped
            self.skipped += skipped
            if self._complete or self._first < len(self._moments):
                return

    def _make_some(self) -> None:
        """Make the next moments if all that were made were taken."""
        while not self._complete and self._first >= len(self._moments):
            self._moments, self._first = self._make(), 0

    def _make(self) -> _Moments:
        distances = (
            np.ones(_MOMENTS_AT_ONCE)
            if self._random is None
            else self._random.exponential(size=_MOMENTS_AT_ONCE)
        )
        if self._random is not None and self._short > 0.5:
            are_short = self._random.random(_MOMENTS_AT_ONCE) < self._short
            distances *= np.where(are_short, 0.5 / self._short, 0.5 / (1 - self._short))
        sums = self._sum + distances.cumsum()
        self._sum = float(sums[-1])
        within = sums < self._sums[-1] - _MAX_ROUNDING_ERROR
        if not within.all():
            self._complete = True
            sums = sums[within]
        places = self._sums.searchsorted(sums, "right") - 1
        left, rates = sums - self._sums[places], self._rates[places]
        # left = r t + slope t^2 / 2, solved so that it holds for a slope of 0 too
        roots = np.sqrt(np.maximum(rates**2 + 2 * self._slopes[places] * left, 0.0))
        divisors = np.maximum(rates + roots, np.finfo(np.float64).tiny)
        return np.asarray(self._begins[places] + 2 * left / divisors)


def find_last_due(
    plan: Sequence[Stage], kind: str, seed: int, until: float, counts: Sequence[int], phase: float = 0.0
) -> list[_Moments]:
    """Return the last moments of each stage at which operations were due up to ``until``, so many of each."""
    arrivals = Arrivals(plan, kind, seed, phase)
    ends = np.cumsum([stage.seconds for stage in plan])
    kept = [np.empty(0) for _ in plan]
    while arrivals.next <= min(until, sys.float_info.max):
        block = np.array(arrivals.take(_MOMENTS_AT_ONCE))
        places = ends.searchsorted(block, "right")
        for place, count in enumerate(counts):
            own = block[(places == place) & (block <= until)] if count else block[:0]
            if len(own):
                kept[place] = np.concatenate([kept[place], own])[-count:]
    return kept


def count_due_by_stage(
    plan: Sequence[Stage], kind: str, seed: int, until: float, most: int | None, phase: float = 0.0
) -> list[int]:
    """Return how many operations were due in each stage up to a moment, of the first ``most`` of them."""
    arrivals = Arrivals(plan, kind, seed, phase)
    ends = np.cumsum([stage.seconds for stage in plan])
    counts = np.zeros(len(plan) + 1, np.int64)
    left = math.inf if most is None else most
    while left > 0 and arrivals.next <= min(until, sys.float_info.max):
        block = np.array(arrivals.take(int(min(left, _MOMENTS_AT_ONCE))))
        block = block[block <= until]
        counts += np.bincount(ends.searchsorted(block, "right"), minlength=len(counts))
        left -= len(block)
    return [int(count) for count in counts[:-1]]
