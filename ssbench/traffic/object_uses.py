"""How objects are used: which requests are for the same one, how often, and how soon again.

A *use* is a request for an object that exists: neither the upload of a new one nor a delete. Distances are in
uses. Hit ratios are those of a cache that drops what was unused for the longest time, by the average
footprint of windows (Xiang et al. 2011, Linear-time modeling of program working set): the cache that holds
what a window of *w* uses has on average hits what was used within *w*.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ssbench.logs.column_files import ColumnFiles, NamelessFile
from ssbench.logs.logged_requests import FIRST_FAILURE, OBJECT_KINDS, REQUEST_KINDS, RequestColumns

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]
#: Numbers of objects, of any width.
Ids = npt.NDArray[np.integer[Any]]

_PUT, _DELETE, _NO_KIND = REQUEST_KINDS.index("put"), REQUEST_KINDS.index("delete"), 255
#: Rows that are in memory together: what is as long as a log is in files.
_ROWS_AT_ONCE = 1 << 17


def split_into_blocks(count: int, width: int = 1) -> Iterator[slice]:
    """Yield so many rows of this many values as blocks, few enough to be in memory together."""
    step = _ROWS_AT_ONCE // width
    for first in range(0, count, step):
        yield slice(first, min(first + step, count))


def count_numbers(values: Ids) -> Numbers:
    """Return how often there is each number, from 0 on."""
    counts = np.zeros(0, np.int64)
    for rows in split_into_blocks(len(values)):
        counts = count_further(counts, values[rows])
    return counts


def count_further(counts: Numbers, values: Ids) -> Numbers:
    """Return how often there is each number, from 0 on, if it was there so many times before these."""
    own = np.bincount(values, minlength=len(counts)).astype(np.int64, copy=False)
    own[: len(counts)] += counts
    return own


def look_back(last: npt.NDArray[Any], ids: Ids, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return for each row of a block the value of the one before of its object.

    ``last`` has the value of each object before the block, and then that after it.
    """
    order = np.argsort(ids, kind="stable")
    before = np.empty(len(ids), last.dtype)
    before[order[1:]] = values[order[:-1]]
    firsts = order[np.flatnonzero(np.diff(ids[order], prepend=-1))]
    before[firsts] = last[ids[firsts]]
    last[ids] = values  # of several for one object the last one stays
    return before


class NumberedKeys:
    """Numbers keys from 0 in the order in which they come, in 12 bytes each."""

    def __init__(self) -> None:
        self._keys = np.empty(0, np.int64)  # in their order
        self._numbers = np.empty(0, np.uint32)

    def __len__(self) -> int:
        return len(self._keys)

    def number(self, keys: Numbers) -> Numbers:
        """Return the numbers of keys; new ones get the next."""
        found, first, places = np.unique(keys, return_index=True, return_inverse=True)
        at = self._keys.searchsorted(found)
        is_new = np.ones(len(found), np.bool_)
        inside = np.flatnonzero(at < len(self))
        is_new[inside] = self._keys[at[inside]] != found[inside]
        new = np.flatnonzero(is_new)
        numbers = len(self) + np.argsort(np.argsort(first[new], kind="stable"), kind="stable")
        self._keys = np.insert(self._keys, at[new], found[new])
        self._numbers = np.insert(self._numbers, at[new], numbers)
        return self._numbers[self._keys.searchsorted(found)].astype(np.int64)[places]


@dataclass(frozen=True, slots=True)
class ObjectUses:
    """Successful requests for objects, in the order of a log; what is as long as that is in files."""

    rows: Numbers  # of the log's requests
    ids: Ids  # objects, numbered from 0
    creates: Marks  # uploads of objects that were not there, as far as the log tells
    deletes: Marks
    seconds: Floats  # when each request began
    sizes: Numbers  # bytes of each object by its number; below 0: not known
    are_used: Marks  # whether each object has a use

    def find_uses(self) -> Iterator[Numbers]:
        """Yield the places of all uses in the columns, some at a time."""
        for rows in split_into_blocks(len(self.ids)):
            yield rows.start + np.flatnonzero(~(self.creates[rows] | self.deletes[rows]))

    @property
    def used(self) -> Ids:
        """Return the objects of all uses, in their order, numbered anew from 0."""
        numbers = np.cumsum(self.are_used, dtype=np.int32) - np.int32(1)
        file = NamelessFile()
        for places in self.find_uses():
            file.append(numbers[self.ids[places]])
        return file.map(numbers.dtype)

    @property
    def used_sizes(self) -> Numbers:
        """Return the bytes of the objects that :attr:`used` numbers."""
        return self.sizes[self.are_used]

    @property
    def lifetimes(self) -> Floats:
        """The seconds from upload to delete of objects that were uploaded and deleted in the log.

        They are in a file, and in no order that matters.
        """
        return self._measure_from_upload(to_delete=True)

    @property
    def first_uses(self) -> Floats:
        """The seconds from upload to the next request for the same object, as lifetimes."""
        return self._measure_from_upload(to_delete=False)

    def _measure_from_upload(self, *, to_delete: bool) -> Floats:
        born, found = np.full(len(self.sizes), np.nan), NamelessFile()
        for rows in split_into_blocks(len(self.ids)):
            ids, seconds = self.ids[rows], self.seconds[rows]
            creates, deletes = self.creates[rows], self.deletes[rows]
            if to_delete:
                events = np.flatnonzero(creates | deletes)
                ids, seconds, creates = ids[events], seconds[events], creates[events]
            since = seconds - look_back(born, ids, np.where(creates, seconds, np.nan))
            found.append(since[~(np.isnan(since) | (creates if to_delete else False))])
        return found.map(born.dtype, writable=True)


def find_object_uses(requests: RequestColumns) -> ObjectUses:
    """Return the successful requests for objects of a log."""
    columns = ColumnFiles({"rows": "i8", "ids": "i4", "creates": "?", "deletes": "?", "seconds": "f8"})
    keys = NumberedKeys()
    sizes, last, are_used = np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0, np.bool_)
    for block in split_into_blocks(len(requests)):
        part = requests.take(block)
        rows = np.flatnonzero((part.item != 0) & (part.status < FIRST_FAILURE) & part.is_of(*OBJECT_KINDS))
        ids = keys.number(part.item[rows])
        more = len(keys) - len(sizes)
        sizes = np.pad(sizes, (0, more), constant_values=-1)
        last = np.pad(last, (0, more), constant_values=_NO_KIND)
        are_used = np.pad(are_used, (0, more))
        kinds, own = part.kind[rows], part.size[rows]
        before = look_back(last, ids, kinds)
        creates = (kinds == _PUT) & ((before == _NO_KIND) | (before == _DELETE))
        deletes = kinds == _DELETE
        known = np.flatnonzero(own >= 0)
        sizes[ids[known]] = own[known]  # the last one stays
        are_used[ids[~(creates | deletes)]] = True
        columns.append(
            rows=rows + block.start, ids=ids, creates=creates, deletes=deletes, seconds=part.began[rows]
        )
    return ObjectUses(**columns.map(), sizes=sizes, are_used=are_used)


#: Uploads that are new to the log are of more objects than come at an even rate where they are so many
#: standard deviations more.
_UPLOADS_DEVIATIONS = 3.0
#: They are of new objects nevertheless where they are so many times those that go with first reads.
_MOST_EARLY = 2.0


def level_first_uploads(uses: ObjectUses, requests: RequestColumns) -> ObjectUses:
    """Return uses of these requests in which objects come at an even rate, as in a scenario.

    Whether the first request for an object makes it, if that is an upload, a log does not say. Objects that
    begin with a read were there, and their further requests tell how many uploads go with a read. If as many
    go with these first reads, that many first uploads overwrite what was there. Most of them come early: so
    of the first uploads in the second half of the log those are taken to be new that are left without those
    that go with its first reads, and twice as many in the whole log, where new objects come at an even rate.
    What the log has beyond that overwrites; it is what is before an even rate's turn.

    The same uses are returned where no more come early than by chance, and where far more do than go with
    first reads: such objects were new, and came in one part of the log.
    """
    whole = len(requests)
    places, seen, are_read = [], *np.zeros((2, len(uses.sizes)), np.bool_)
    late_reads = 0
    for rows in split_into_blocks(len(uses.ids)):
        ids, first = np.unique(uses.ids[rows], return_index=True)
        first = np.sort(first[~seen[ids]])
        seen[ids] = True
        made = uses.creates[rows][first]
        places.append(rows.start + first[made])
        others = first[~(made | uses.deletes[rows][first])]
        are_read[uses.ids[rows][others]] = True
        late_reads += int(np.count_nonzero(uses.rows[rows][others] >= whole / 2))
    firsts = np.concatenate([*places, np.zeros(0, np.int64)])
    moments = uses.rows[firsts] / max(whole, 1)
    uploads_a_read = _find_upload_ratio(uses, requests, are_read)
    new = 2 * max(float(np.count_nonzero(moments >= 0.5) - late_reads * uploads_a_read), 0.0)
    early = len(firsts) - new
    expected = np.count_nonzero(are_read) * uploads_a_read
    if early <= _UPLOADS_DEVIATIONS * math.sqrt(len(firsts)) or early > _MOST_EARLY * expected:
        return uses
    # Each is new unless as many as an even rate has up to there are so already.
    order = np.arange(1, len(firsts) + 1)
    behind = np.minimum.accumulate(np.floor(new * moments).astype(np.int64) - order)
    old = firsts[np.diff(order + np.minimum(behind, 0), prepend=0) == 0]
    creates = NamelessFile().make_zeros(np.dtype("?"), len(uses.creates))
    for rows in split_into_blocks(len(creates)):
        creates[rows] = uses.creates[rows]
    creates[old] = False
    are_used = uses.are_used.copy()
    are_used[uses.ids[old]] = True
    return replace(uses, creates=creates, are_used=are_used)


def _find_upload_ratio(uses: ObjectUses, requests: RequestColumns, some: Marks) -> float:
    """Return how many uploads go with a read, after the first one, of some objects that begin with a read."""
    uploads, reads = 0, -int(np.count_nonzero(some))
    for rows in split_into_blocks(len(uses.ids)):
        own = np.flatnonzero(some[uses.ids[rows]] & ~uses.deletes[rows])
        puts = int(np.count_nonzero(requests.kind[uses.rows[rows][own]] == _PUT))
        uploads, reads = uploads + puts, reads + len(own) - puts
    return uploads / reads if reads else 0.0


def find_distances(ids: Ids, last: Numbers) -> Iterator[tuple[slice, Numbers]]:
    """Yield blocks of uses, and how many uses ago the object of each was used before; 0: never.

    ``last`` is -1 for each object, and then has the place of its last use so far.
    """
    for rows in split_into_blocks(len(ids)):
        places = np.arange(rows.start, rows.stop)
        before = look_back(last, ids[rows], places)
        yield rows, np.where(before < 0, 0, places - before)


def find_hit_ratios(ids: Ids, weights: Floats, shares: tuple[float, ...]) -> list[float]:
    """Return the hit ratios of caches for such shares of all objects, where each has a weight.

    With weights of 1 both are by objects, with sizes by bytes. Empty uses have none: NaN.
    """
    uses = len(ids)
    whole = float(weights.sum())
    if not uses or whole <= 0:
        return [float("nan")] * len(shares)
    firsts, lasts = np.zeros(len(weights), np.int64), np.full(len(weights), -1)
    by_gap, hits = (NamelessFile().make_zeros(np.dtype("f8"), uses + 2) for _ in range(2))
    total = 0.0
    for rows, distances in find_distances(ids, lasts):
        own, fresh = ids[rows], np.flatnonzero(distances == 0)
        firsts[own[fresh]] = rows.start + fresh
        of_uses = weights[own]
        total += float(of_uses.sum())
        of_uses[fresh] = 0.0
        np.add.at(by_gap, distances, of_uses)
    np.cumsum(by_gap, out=hits)
    firsts += 1
    np.add.at(by_gap, firsts, weights)
    np.subtract(uses, lasts, out=lasts)
    np.add.at(by_gap, lasts, weights)
    # Of windows of w uses, so much is missing where a gap is longer: the sum of (gap - w) over these.
    _sum_from_end(by_gap)
    missing = by_gap[1:]
    _sum_from_end(missing)
    for rows in split_into_blocks(len(missing)):
        missing[rows] /= np.arange(rows.start, rows.stop) - (uses + 1)
        missing[rows] += whole
    at = np.minimum(np.searchsorted(missing, np.array(shares) * whole), uses)
    return [float(each) for each in hits[at] / total]


def _sum_from_end(values: Floats) -> None:
    """Turn each value into the sum of itself and those behind it."""
    backward, rest = values[::-1], 0.0
    for rows in split_into_blocks(len(values)):
        own = backward[rows]
        own[0] += rest
        own[:] = np.cumsum(own)
        rest = own[-1]


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
    for beyond in _POPULATIONS:
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
#: How many objects there may be for each that was used. The exponent makes up for what lies between two of
#: these: where they are a factor of 1.6 apart it is wrong by up to 0.06, of 1.2 by 0.02.
_POPULATIONS = (1.0, 1.02, 1.05, 1.1, 1.2, 1.35, 1.55, 1.8, 2.1, 2.5, 3.0, 3.5, 4.2, 5.0, 6.0, 7.2, 8.6, 10.0)


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
