"""The stream of operations that a scenario makes, the same for the same seed.

For each operation, four things are drawn: a size class by its share, which as a rule is that of its initial
files, the operation by the weights of that class, a size by the distribution of the class, and a container.
All of it is drawn with numpy, always :data:`OPERATIONS_AT_ONCE` operations at a time, so that the stream does not depend
on how many the caller takes. An operation without a weight does not change it.

A size follows from a share, a whole number from 0 to :data:`MAX_SHARE`, each as likely as any other,
by the inverse of its distribution function. So a size needs one draw whatever its distribution is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.scenario.owner import make_owner
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
        drawn = OPERATIONS.drawn
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

        Initial objects of all classes together are put into the containers in turn.
        """
        classes = self.scenario.size_classes
        before = sum(each.initial_files for each in classes[:size_class])
        count, containers = classes[size_class].initial_files, self.scenario.container_numbers
        # One round, repeated: an array of 8 bytes for each object would need more memory than all else.
        round_ = (np.arange(min(count, containers), dtype=np.uint64) + before) % containers
        rounds = -(-count // len(round_)) if count else 0
        return np.tile(round_.astype(np.uint32), rounds)[:count]

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
    """Return a function that turns shares into sizes in bytes."""
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
