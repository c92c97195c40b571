"""How objects are used: which requests are for the same one, how often, and how soon again.

A *use* is a request for an object that exists: neither the upload of a new one nor a delete. Distances are in
uses. Hit ratios are those of a cache that drops what was unused for the longest time, by the average
footprint of windows (Xiang et al. 2011, Linear-time modeling of program working set): the cache that holds
what a window of *w* uses has on average hits what was used within *w*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ssbench.logs.logged_requests import OBJECT_KINDS, REQUEST_KINDS, RequestColumns

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]

#: Statuses from here on are failures.
_FIRST_FAILURE = 400
_PUT, _DELETE = REQUEST_KINDS.index("put"), REQUEST_KINDS.index("delete")


@dataclass(frozen=True, slots=True)
class ObjectUses:
    """Successful requests for objects, in the order of a log."""

    rows: Numbers  # of the log's requests
    ids: Numbers  # objects, numbered from 0
    sizes: Numbers  # bytes of each object by its number; below 0: not known
    creates: Marks  # uploads of objects that were not there, as far as the log tells
    deletes: Marks
    seconds: Floats  # when each request began

    @property
    def used(self) -> Numbers:
        """Return the objects of all uses, in their order, numbered anew from 0."""
        own = self.ids[~(self.creates | self.deletes)]
        return np.unique(own, return_inverse=True)[1].astype(np.int64)

    @property
    def used_sizes(self) -> Numbers:
        """Return the bytes of the objects that :attr:`used` numbers."""
        return self.sizes[np.unique(self.ids[~(self.creates | self.deletes)])]


def find_object_uses(requests: RequestColumns) -> ObjectUses:
    """Return the successful requests for objects of a log."""
    wanted = (requests.item != 0) & (requests.status < _FIRST_FAILURE) & requests.is_of(*OBJECT_KINDS)
    rows = np.flatnonzero(wanted)
    found, ids = np.unique(requests.item[rows], return_inverse=True)
    kinds, order = requests.kind[rows], np.argsort(ids, kind="stable")
    first = np.ones(len(rows), np.bool_)
    first[1:] = ids[order][1:] != ids[order][:-1]
    after_delete = np.zeros(len(rows), np.bool_)
    after_delete[1:] = kinds[order][:-1] == _DELETE
    creates = np.zeros(len(rows), np.bool_)
    creates[order] = (kinds[order] == _PUT) & (first | after_delete)
    sizes = np.full(len(found), -1, np.int64)
    known = np.flatnonzero(requests.size[rows] >= 0)
    sizes[ids[known]] = requests.size[rows][known]  # the last one stays
    return ObjectUses(rows, ids, sizes, creates, kinds == _DELETE, requests.began[rows])


def find_distances(ids: Numbers) -> Numbers:
    """Return how many uses ago the object of each use was used before; 0: never."""
    order = np.argsort(ids, kind="stable")
    in_order = ids[order]
    is_first = in_order[1:] != in_order[:-1]
    del in_order
    gaps = np.diff(order)
    gaps[is_first] = 0
    distances = np.zeros(len(ids), np.int64)
    distances[order[1:]] = gaps
    return distances


def find_hit_ratios(ids: Numbers, weights: Floats, shares: tuple[float, ...]) -> list[float]:
    """Return the hit ratios of caches for such shares of all objects, where each has a weight.

    With weights of 1 both are by objects, with sizes by bytes. Empty uses have none: NaN.
    """
    uses = len(ids)
    whole = float(weights.sum())
    if not uses or whole <= 0:
        return [float("nan")] * len(shares)
    # Arrays as long as the uses are the memory of this, so they are few, and changed in place.
    firsts, lasts = np.zeros((2, len(weights)), np.int64)
    firsts[ids[::-1]] = np.arange(uses - 1, -1, -1)  # of several for one object the last one stays
    lasts[ids] = np.arange(uses)
    of_uses = weights[ids]
    total = of_uses.sum()
    by_gap = np.bincount(find_distances(ids), of_uses, uses + 2).astype(np.float64, copy=False)
    del of_uses
    by_gap[0] = 0.0  # first uses
    hits = by_gap[:-1].cumsum()
    np.add.at(by_gap, firsts + 1, weights)
    np.add.at(by_gap, uses - lasts, weights)
    # Of windows of w uses, so much is missing where a gap is longer: the sum of (gap - w) over these.
    _sum_from_end(by_gap)
    missing = by_gap[1:]
    _sum_from_end(missing)
    footprints = np.divide(missing, np.arange(-uses - 1, 0), out=missing)
    footprints += whole
    at = np.minimum(np.searchsorted(footprints, np.array(shares) * whole), uses)
    return [float(each) for each in hits[at] / total]


def _sum_from_end(values: Floats) -> None:
    """Turn each value into the sum of itself and those behind it."""
    np.cumsum(values[::-1], out=values[::-1])


def count_uses(ids: Numbers) -> Numbers:
    """Return how often each object is used."""
    return np.bincount(ids).astype(np.int64)


def find_top_share(counts: Numbers, share: float) -> float:
    """Return the share of uses that the most used objects have: such a share of all objects, at least one."""
    if not len(counts):
        return float("nan")
    top = max(round(share * len(counts)), 1)
    return float(np.sort(counts)[-top:].sum() / counts.sum())


def find_zipf_exponent(counts: Numbers) -> float:
    """Return the exponent of Zipf's law that fits how many objects were used once, twice and so on; or NaN.

    Maximum likelihood of the spectrum of counts, each of which is Poisson with what its rank expects, given
    that the object was used at all. How many objects there are, some of which were never used, is fitted too.
    """
    uses, seen = int(counts.sum()), len(counts)
    if seen < _MIN_ZIPF_OBJECTS:
        return float("nan")
    spectrum = np.bincount(np.minimum(counts, _EXACT_COUNTS + 1))
    best, found = -np.inf, float("nan")
    exponents = np.arange(0.1, 2.0, 0.02)
    for beyond in (1.0, 1.02, 1.05, 1.1, 1.2, 1.35, 1.6, 2.0, 3.0, 5.0):
        population = seen * beyond
        edges = np.unique(np.rint(np.geomspace(1, population + 1, 160)))
        ranks, numbers = (edges[:-1] + edges[1:] - 1) / 2, np.diff(edges)
        for exponent in exponents:
            weights = ranks**-exponent
            means = uses * weights / (weights * numbers).sum()
            likelihood = _spectrum_likelihood(spectrum, means, numbers)
            if likelihood > best:
                best, found = likelihood, float(exponent)
    return found


#: Fewer objects have no exponent; counts up to this are looked at one by one.
_MIN_ZIPF_OBJECTS, _EXACT_COUNTS = 100, 40


def _spectrum_likelihood(spectrum: Numbers, means: Floats, numbers: Floats) -> float:
    """Return the logarithm of the likelihood of a spectrum, but for what does not depend on the means."""
    counts = np.arange(_EXACT_COUNTS + 1)
    logs = np.concatenate([[0.0], np.log(np.arange(1, _EXACT_COUNTS + 1)).cumsum()])
    chances = np.exp(counts[:, None] * np.log(means) - means - logs[:, None])
    expected = (chances * numbers).sum(axis=1)
    rest = max(float((np.maximum(1 - chances.sum(axis=0), 0.0) * numbers).sum()), 1e-12)
    shares = np.append(expected[1:], rest)
    shares = np.maximum(shares / shares.sum(), 1e-300)
    own = np.zeros(_EXACT_COUNTS + 1)
    own[: len(spectrum) - 1] = spectrum[1:]
    return float((own * np.log(shares)).sum())
