"""The stream of operations that a scenario makes, the same for the same seed.

For each operation a size class is drawn by the shares of the initial files, then the operation by
the weights of that class, a size uniform over the class's range, and a container. All of it is
drawn with numpy, :data:`BLOCK` operations at a time whatever the caller takes, so that the stream
does not depend on how it is consumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
import numpy.typing as npt

from ssbench.operations import OPERATIONS
from ssbench.scenario.model import Scenario

#: Operations drawn at once: enough for numpy to pay, little enough to take no memory or time.
BLOCK = 4096

#: (operation code, size-class index, container number, bytes to send)
Draw = tuple[int, int, int, int]


class Workload:
    """Everything about a run that chance decides.

    ``seed`` is a whole number >= 0. The generator is PCG64, of which numpy promises the bits but
    not how a distribution uses them: the same seed means the same operations with the same numpy.
    """

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.scenario = scenario
        self._run_seed, self._initial_seed = np.random.SeedSequence(seed).spawn(2)
        classes = scenario.size_classes
        self._low = np.array([each.size_min for each in classes], np.int64)
        self._high = np.array([each.size_max for each in classes], np.int64)
        # One draw for class and operation together: the joint probability, class by class.
        shares = np.array([each.initial_files for each in classes], np.float64)
        names = [operation.name for operation in OPERATIONS]
        profiles = np.array([[each.weights.get(name, 0.0) for name in names] for each in classes], np.float64)
        joint = shares[:, None] * (profiles / profiles.sum(axis=1, keepdims=True))
        cumulative = joint.ravel().cumsum()
        self._thresholds = cumulative / cumulative[-1]
        self._sends_body = np.array([operation.sends_body for operation in OPERATIONS])

    def draws(self) -> Iterator[Draw]:
        """The operations of the run, without end, from the first one on.

        The size of an operation without a body is 0; the container is where a new object goes.
        """
        return chain.from_iterable(self._blocks())

    def _blocks(self) -> Iterator[Iterator[Draw]]:
        random = np.random.Generator(np.random.PCG64(self._run_seed))
        while True:
            pairs = self._thresholds.searchsorted(random.random(BLOCK), side="right")
            classes, codes = np.divmod(pairs, len(OPERATIONS))
            sizes = random.integers(self._low[classes], self._high[classes], endpoint=True)
            sizes *= self._sends_body[codes]
            containers = random.integers(self.scenario.container_count, size=BLOCK)
            yield zip(codes.tolist(), classes.tolist(), containers.tolist(), sizes.tolist(), strict=True)

    def initial_containers(self, size_class: int) -> npt.NDArray[np.uint32]:
        """The container of each initial object of a class, that of number 1 first.

        Initial objects go round the containers in turn over all classes together.
        """
        classes = self.scenario.size_classes
        before = sum(each.initial_files for each in classes[:size_class])
        count, containers = classes[size_class].initial_files, self.scenario.container_count
        # One round, repeated: a place in 8 bytes for each object would take more memory than all else.
        round_ = (np.arange(min(count, containers), dtype=np.uint64) + before) % containers
        rounds = -(-count // len(round_)) if count else 0
        return np.tile(round_.astype(np.uint32), rounds)[:count]

    def initial_objects(self) -> Iterator[tuple[int, int, int, int]]:
        """What to upload before the run: (size-class index, container, number, size), class by class."""
        random = np.random.Generator(np.random.PCG64(self._initial_seed))
        for index, each in enumerate(self.scenario.size_classes):
            containers = self.initial_containers(index)
            for start in range(0, each.initial_files, BLOCK):
                block = containers[start : start + BLOCK].tolist()
                sizes = random.integers(each.size_min, each.size_max, BLOCK, endpoint=True).tolist()
                for number, (container, size) in enumerate(zip(block, sizes, strict=False), start + 1):
                    yield index, container, number, size
