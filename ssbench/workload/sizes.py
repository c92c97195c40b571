"""From even shares to the sizes of a distribution, by the inverse of its distribution function.

A share is a whole number from 0 to :data:`LARGEST_SHARE`, each as likely as any other. So a size needs one
draw whatever its distribution is.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from ssbench.scenario.sizes import Histogram, Lognormal, Shape

Shares = npt.NDArray[np.int64]
Sizes = npt.NDArray[np.int64]

#: As fine as a float is below 1.
LARGEST_SHARE = 2**53 - 1

_NORMAL = NormalDist()


def sizes_of(shape: Shape) -> Callable[[Shares], Sizes]:
    """Return a function that turns shares into sizes in bytes."""
    return _lognormal(shape) if isinstance(shape, Lognormal) else _histogram(shape)


def _lognormal(shape: Lognormal) -> Callable[[Shares], Sizes]:
    low, high = shape.part
    # 0 and 1 themselves are infinitely far away.
    low, high = max(low, 2.0**-60), min(high, 1 - 2.0**-53)

    def sizes(shares: Shares) -> Sizes:
        parts = low + (shares + 0.5) * 2.0**-53 * (high - low)
        deviations = np.fromiter(map(_NORMAL.inv_cdf, parts.tolist()), np.float64, len(parts))
        found = shape.median * np.exp(shape.sigma * deviations)
        # Below 2**63 as a float, too.
        sizes_: Sizes = np.rint(np.clip(found, shape.smallest, min(shape.largest, 2**62))).astype(np.int64)
        return sizes_

    return sizes


def _histogram(shape: Histogram) -> Callable[[Shares], Sizes]:
    lowest = np.array([low for low, _, _ in shape.ranges], np.int64)
    highest = np.array([high for _, high, _ in shape.ranges], np.int64)
    counts = (highest - lowest).astype(np.float64) + 1
    weights = np.array([weight for *_, weight in shape.ranges], np.float64)
    ends = (weights / weights.sum()).cumsum()
    ends /= ends[-1]
    begins = np.concatenate(([0.0], ends[:-1]))

    def sizes(shares: Shares) -> Sizes:
        parts = shares * 2.0**-53
        places = ends.searchsorted(parts, side="right")
        # How far into its range a share is, which is as even as the share itself.
        within = (parts - begins[places]) / (ends[places] - begins[places])
        found: Sizes = np.minimum(
            lowest[places] + (within * counts[places]).astype(np.int64), highest[places]
        )
        return found

    return sizes
