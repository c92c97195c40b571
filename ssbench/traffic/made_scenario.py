"""A scenario that does what the users of a log did, in the keys of scenarios: numbers only, no name.

How often objects are used follows from the spectrum of counts, how soon again from distances by class of
count, when from the rate in each stage and the dispersion of seconds. Bins of fewer than ten objects, which
could identify one, are merged with their neighbours.

What these keys cannot say is found by trying: the uses that the scenario would draw have hit ratios of their
own, which are compared with the log's, and the log's halves with each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import yaml

from ssbench.base.errors import UsageError
from ssbench.base.text_values import format_duration
from ssbench.document.columns import format_plural
from ssbench.logs.logged_requests import REQUEST_KINDS
from ssbench.scenario.chosen_objects import draw_cycle
from ssbench.scenario.structured_values import Popularity, Reuse
from ssbench.traffic import object_uses
from ssbench.traffic.object_uses import Floats, Ids, Numbers
from ssbench.traffic.traffic_figures import (
    CACHE_SHARES,
    Traffic,
    find_listing_order,
    find_surge,
    measure_dispersion,
)

#: Bins of fewer objects, or of fewer requests, are merged.
MIN_IN_BIN = 10
#: Counts up to this have a bin each; from there on a bin ends at so many times its beginning.
_SINGLE_COUNTS, _COUNT_RATIO = 8, 1.3
#: Distances are told apart down to this power of 1/2 of the log.
_DISTANCE_BINS = 26
#: A size of more than this share of the objects is a point of its own.
_POINT_SHARE = 0.02
#: Ranges of sizes hold this share of the objects at least, unless they are this wide.
_RANGE_SHARE, _RANGE_RATIO, _RANGES_AN_OCTAVE = 0.02, 1.25, 16
#: Stages are so long, in seconds, and at most so many.
_STAGE_SECONDS, _MAX_STAGES = (60, 300, 900, 3600, 14_400, 86_400), 120
#: Dispersions between these are those of independent users, as are those that chance gives these in 98 of 100
#: logs (by this quantile of the normal distribution); smaller ones are even, larger ones bursts.
_LEAST_POISSON, _MOST_POISSON, _CHANCE_QUANTILE = 0.5, 1.2, 2.326
_LEAST_BURST, _MAX_BURST = 1.05, 1000.0
#: Hit ratios may differ by this much, or by as much as those of the log's halves.
_HIT_TOLERANCE = 0.03
#: From these on a log is said not to fit: uses in listing order, a minute's rate and its share of one object,
#: lives shorter than a part of the log.
_LISTING_SHARE, _CROWD_RATE, _CROWD_SHARE, _SHORT_LIFE, _SHORT_LIVED = 0.6, 3.0, 0.2, 0.1, 0.05
_NO_FURTHER_KINDS = ("other",)
_FIRST_FAILURE, _NOT_FOUND, _NOT_MODIFIED = 400, 404, 304
#: Users are as many as several times the requests that were in flight at once, and at least so many.
_LEAST_USERS, _MAX_USERS, _USERS_A_REQUEST = 16, 10_000, 8
_MAX_CONTAINERS = 10_000


@dataclass(frozen=True, slots=True)
class MadeScenario:
    """The text of a scenario file, and what it does not say of the log."""

    text: str
    remarks: tuple[str, ...]


def make_scenario(traffic: Traffic, name: str) -> MadeScenario:
    """Return a scenario of this name; raises UsageError for a log with too few objects."""
    if len(traffic.counts) < MIN_IN_BIN:
        raise UsageError(
            f"too few objects for a scenario: {len(traffic.counts)} are used in the log, and fewer than"
            f" {MIN_IN_BIN} could be told apart"
        )
    profile, left_out = _make_profile(traffic)
    flow = find_flow(traffic)
    bands = make_bands(traffic.counts)
    if flow.unused >= MIN_IN_BIN:
        bands.insert(0, (0.0, flow.unused))
    classes = make_classes(traffic.used, traffic.counts)
    stages, burst = _make_stages(traffic), find_burst(traffic)
    values: dict[str, object] = {
        "name": name,
        "sizes": [{"name": "object", "size": {"histogram": make_size_ranges(traffic.known_sizes)}}],
        "initial_files": {"object": flow.initial},
        "profile": profile,
        "container_count": min(len(np.unique(traffic.requests.container)), _MAX_CONTAINERS),
        "popularity": {"counts": [list(each) for each in bands]},
        "reuse": {
            "classes": [[count, list(weights)] for count, weights in classes],
            **{name: share for name, share in flow.shares.items() if share},
        },
        "user_count": _count_users(traffic),
    }
    if "range" in profile:
        own = traffic.requests.moved[traffic.requests.is_of("range")]
        values["operations"] = [{"name": "range", "length": max(_round(float(np.median(own))), 1)}]
    if burst:
        values["arrivals"] = burst
    values["stages"] = stages
    head = (
        f"# What users did in {len(traffic.requests):,} requests of {format_duration(traffic.seconds)}, by\n"
        "# ssbench-master traffic (doc/own-traffic.rst). Bins of fewer than ten objects are merged.\n"
    )
    body = yaml.safe_dump(values, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
    return MadeScenario(head + body, (*left_out, *_find_misfits(traffic, bands, classes, flow)))


def _round(value: float) -> int:
    """Return a number with three digits that matter."""
    return int(float(f"{value:.3g}"))


# -- Operations ------------------------------------------------------------------------------------


def _make_profile(traffic: Traffic) -> tuple[dict[str, int], list[str]]:
    """Return the weights of operations, and sentences on what is left out."""
    requests, own = traffic.requests, traffic.objects
    names = np.array([*REQUEST_KINDS, "create", "update", "missing", "conditional"])
    number = {name: place for place, name in enumerate(names.tolist())}
    kinds = requests.kind.astype(np.int64)
    kinds[kinds == number["put"]] = number["update"]
    kinds[own.rows[own.creates]] = number["create"]
    reads = requests.is_of("read", "head")
    kinds[reads & (requests.status == _NOT_FOUND)] = number["missing"]
    kinds[reads & (requests.status == _NOT_MODIFIED)] = number["conditional"]
    failed = (requests.status >= _FIRST_FAILURE) & (kinds != number["missing"])
    counts = np.bincount(kinds[~failed], minlength=len(names))
    other = int(counts[number["other"]])
    counts[number["other"]] = 0
    remarks = []
    if other:
        remarks.append(
            f"left out: {format_plural(other, 'request')} that no operation makes, such as PUT of containers"
        )
    if failed.any():
        remarks.append(
            f"left out: {format_plural(int(failed.sum()), 'failed request')}, not for missing objects"
        )
    return {str(names[place]): int(counts[place]) for place in np.flatnonzero(counts)}, remarks


@dataclass(frozen=True, slots=True)
class ObjectFlow:
    """How many objects there are, and how many come and go."""

    used: int
    created: int  # of those that are used
    deleted: int  # of those that are used and were there before
    unused: int  # that were there before, and are deleted without a use

    @property
    def initial(self) -> int:
        """Return how many objects there are at the beginning."""
        return max(self.used - self.created + (self.unused if self.unused >= MIN_IN_BIN else 0), 1)

    @property
    def shares(self) -> dict[str, float]:
        """Return what ``reuse`` says of it."""
        whole = self.initial + self.created
        return {
            "created": round(1 - self.initial / whole, 6),
            "deleted": round(self.deleted / whole, 6),
        }


def find_flow(traffic: Traffic) -> ObjectFlow:
    """Return how objects come and go."""
    own = traffic.objects
    are_uses = ~(own.creates | own.deletes)
    used, gone, made = np.zeros((3, len(own.sizes)), np.bool_)
    used[own.ids[are_uses]] = True
    gone[own.ids[own.deletes]] = True
    made[own.ids[own.creates]] = True
    # A scenario creates and deletes at an even rate: what is used, or deleted, before it would be there, or
    # its uses over, has to be there at first.
    ids, first = np.unique(own.ids[are_uses], return_index=True)
    begins = np.sort(own.rows[are_uses][first[made[ids]]]) / len(traffic.requests)
    number = len(begins)
    lead = float((np.arange(1, number + 1) - own.creates.sum() * begins).max(initial=0)) + math.sqrt(number)
    ends = own.rows[own.deletes] / len(traffic.requests)
    early = float((len(ends) * ends - np.arange(len(ends))).max(initial=0)) + math.sqrt(len(ends))
    return ObjectFlow(
        used=len(ids),
        created=number - min(math.ceil(lead), number),
        deleted=int((used & gone & ~made).sum()),
        unused=int((~used & gone & ~made).sum()) + math.ceil(early),
    )


def _count_users(traffic: Traffic) -> int:
    """Return how many requests may be in flight: several times those that were at the busiest moment."""
    seconds = traffic.requests.seconds
    known = seconds[~np.isnan(seconds)]
    most = float(traffic.rates.max()) * float(known.mean()) if len(known) else 0.0
    return min(max(_round(_USERS_A_REQUEST * most), _LEAST_USERS), _MAX_USERS)


# -- Sizes -----------------------------------------------------------------------------------------


def make_size_ranges(sizes: Numbers) -> dict[int | str, int]:
    """Return a histogram of sizes as a scenario has it: points for single sizes, ranges for all others."""
    if len(sizes) < MIN_IN_BIN:
        raise UsageError("too few objects for a scenario: the log says the size of fewer than ten")
    values, counts = np.unique(sizes, return_counts=True)
    are_points = (counts >= max(_POINT_SHARE * len(sizes), MIN_IN_BIN)) | (
        (values == 0) & (counts >= MIN_IN_BIN)
    )
    found: list[tuple[int, int, int]] = [
        (int(value), int(value), int(count))
        for value, count in zip(values[are_points], counts[are_points], strict=True)
    ]
    rest = np.sort(sizes[~np.isin(sizes, values[are_points])])
    return {
        (low if low == high else f"{low}..{high}"): count
        for low, high, count in sorted([*found, *_make_ranges(rest, len(sizes))])
    }


def _make_ranges(sizes: Numbers, whole: int) -> Iterator[tuple[int, int, int]]:
    """Yield ranges, fine enough in sizes and in objects; too few are put to the one before.

    Fewer than ten in all are left out.
    """
    if not len(sizes):
        return
    # Edges that follow from no single size.
    places = np.floor(np.log2(np.maximum(sizes, 1)) * _RANGES_AN_OCTAVE).astype(np.int64)
    made: list[list[int]] = []
    for place, count in zip(*np.unique(places, return_counts=True), strict=True):
        low, high = (max(round(2 ** (edge / _RANGES_AN_OCTAVE)), 1) for edge in (place, place + 1))
        done = made and (
            made[-1][2] >= max(MIN_IN_BIN, _RANGE_SHARE * whole)
            or (made[-1][2] >= MIN_IN_BIN and high > _RANGE_RATIO * made[-1][0])
        )
        if done or not made:
            made.append([low, max(high - 1, low), int(count)])
        else:
            made[-1][1:] = [max(high - 1, low), made[-1][2] + int(count)]
    if len(made) > 1 and made[-1][2] < MIN_IN_BIN:
        low, high, count = made.pop()
        made[-1][1:] = [high, made[-1][2] + count]
    for low, high, count in made:
        if count >= MIN_IN_BIN:
            yield low, high, count


# -- Popularity and reuse --------------------------------------------------------------------------


def _divide_counts(counts: Numbers) -> list[tuple[int, int, int, int]]:
    """Return (least count, greatest count, objects, uses) of bins of ten objects or more."""
    edges = [*range(1, _SINGLE_COUNTS + 1)]
    while edges[-1] <= int(counts.max()):
        edges.append(math.ceil(edges[-1] * _COUNT_RATIO))
    places = np.searchsorted(edges, counts, "right")
    objects, uses = np.bincount(places).tolist(), np.bincount(places, counts).tolist()
    found: list[tuple[int, int, int, int]] = []
    # From the hottest ones, of which there are the fewest.
    for place in range(len(objects) - 1, 0, -1):
        own = edges[place - 1], edges[place] - 1, objects[place], int(uses[place])
        if found and found[-1][2] < MIN_IN_BIN:
            found[-1] = _merge_bins(own, found[-1])
        elif own[2]:
            found.append(own)
    if len(found) > 1 and found[-1][2] < MIN_IN_BIN:
        last = found.pop()
        found[-1] = _merge_bins(last, found[-1])
    return found[::-1]


def _merge_bins(low: tuple[int, int, int, int], high: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    return low[0], high[1], low[2] + high[2], low[3] + high[3]


def make_bands(counts: Numbers) -> list[tuple[float, int]]:
    """Return (count, objects): how many objects were used how often, in bins of ten or more."""
    return [(float(f"{uses / objects:.4g}"), objects) for _, _, objects, uses in _divide_counts(counts)]


def make_classes(used: Ids, counts: Numbers) -> list[tuple[float, list[int]]]:
    """Return the weights of reuse distances by class of count, which are the bins of counts.

    The n-th weight is that of distances from 2**-n to 2**-(n + 1) of the log.
    """
    bands = _divide_counts(counts)
    band_of = np.searchsorted([least for least, *_ in bands], counts, "right") - 1
    table = np.zeros(len(bands) * _DISTANCE_BINS, np.int64)
    for rows, distances in object_uses.find_distances(used, np.full(len(counts), -1)):
        again = distances > 0
        bins = np.floor(-np.log2(distances[again] / len(used))).astype(np.int64)
        places = band_of[used[rows][again]] * _DISTANCE_BINS + np.minimum(bins, _DISTANCE_BINS - 1)
        table += np.bincount(places, minlength=len(table))
    found = [
        (float(least), np.trim_zeros(own, "b").tolist())
        for (least, *_), own in zip(bands, table.reshape(-1, _DISTANCE_BINS), strict=True)
        if own.any()
    ]
    return found or [(1.0, [1])]


# -- When ------------------------------------------------------------------------------------------


def _make_stages(traffic: Traffic) -> list[dict[str, float]]:
    """Return stages with the rate of each; those with too few requests are put to the one before."""
    rates = traffic.rates
    length = next(
        (each for each in _STAGE_SECONDS if len(rates) <= each * _MAX_STAGES), -(-len(rates) // _MAX_STAGES)
    )
    made: list[tuple[float, int]] = []
    whole = max(traffic.seconds, 1.0)
    for begin in range(0, len(rates), length):
        own = rates[begin : begin + length]
        seconds, count = min(length, whole - begin), int(own.sum())
        if made and (count < MIN_IN_BIN or made[-1][1] < MIN_IN_BIN or len(own) < length / 2):
            made[-1] = made[-1][0] + seconds, made[-1][1] + count
        else:
            made.append((seconds, count))
    return [
        {"seconds": math.ceil(100 * seconds) / 100, "rate": float(f"{max(count, 1) / seconds:.4g}")}
        for seconds, count in made
    ]


def find_burst(traffic: Traffic) -> str | dict[str, float] | None:
    """Return the ``arrivals`` of a scenario by the dispersion of seconds; None: even, or not known.

    A surge is left out: bursts that have as much variance would go on for the whole run.
    """
    rates = traffic.rates[:-1]
    numbers = np.delete(rates, find_surge(rates))
    dispersion = measure_dispersion(numbers, 1)
    if math.isnan(dispersion):
        return None
    # The quantiles of chi-squared over its freedom (Wilson and Hilferty): a minute of independent users has
    # up to 1.5, and bursts of that would make the scenario's queues longer than the log's.
    part = 2 / (9 * (len(numbers) - 1))
    least, most = ((1 - part + side * math.sqrt(part)) ** 3 for side in (-_CHANCE_QUANTILE, _CHANCE_QUANTILE))
    if dispersion < min(least, _LEAST_POISSON):
        return None
    if dispersion < max(most, _MOST_POISSON):
        return "poisson"
    rate = len(traffic.requests) / traffic.seconds
    low, high = 1.0, _MAX_BURST
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _expect_dispersion(middle, rate) < dispersion else (low, middle)
    return {"burst": float(f"{max(low, _LEAST_BURST):.3g}")}


def _expect_dispersion(burst: float, rate: float) -> float:
    """Return the dispersion at 1 s of arrivals in bursts: of few a second it is less than the burst."""
    decay = 2 * rate / (burst + 1)
    return 1 + (burst - 1) * (1 - (-math.expm1(-decay)) / decay)


# -- What does not fit -----------------------------------------------------------------------------


def _find_misfits(
    traffic: Traffic,
    bands: Sequence[tuple[float, int]],
    classes: Sequence[tuple[float, list[int]]],
    flow: ObjectFlow,
) -> Iterator[str]:
    popularity = Popularity("counts", bands=tuple((count, float(own)) for count, own in bands))
    reuse = Reuse(0.0, 1, 1, tuple((count, tuple(map(float, own))) for count, own in classes), **flow.shares)
    objects = flow.initial + flow.created
    drawn = np.array(draw_cycle(popularity, reuse, objects, flow.initial, np.random.default_rng(1)), np.int64)
    made, log = _hits(drawn), _hits(traffic.used)
    halves = [_hits(each.used) for each in traffic.split()]
    for share, own, its, one, other in zip(CACHE_SHARES, made, log, *halves, strict=True):
        null = abs(one - other)
        if not abs(own - its) <= max(_HIT_TOLERANCE, null):
            yield (
                f"reuse does not fit: a cache of {100 * share:g} % of the objects hits {its:.3f} of the log's"
                f" uses and {own:.3f} of the scenario's (the log's own halves differ by {null:.3f})"
            )
    listed = find_listing_order(traffic)
    # Of few uses as many follow each other by chance: three standard errors.
    if listed > max(_LISTING_SHARE, 0.5 + 1.5 / math.sqrt(max(len(traffic.used), 1))):
        yield (
            f"a scan does not fit: {100 * listed:.0f} % of uses follow the order of a listing,"
            " of a scenario's about 50 %"
        )
    rates = traffic.rates[:-1]
    if len(surge := find_surge(rates)):
        yield (
            f"a surge does not fit: {rates[surge].sum():,} requests came in {len(surge):,} of"
            f" {format_plural(len(rates), 'second')}; a scenario spreads them over their stage"
        )
    yield from _find_crowd(traffic)
    short = int((traffic.lifetimes < _SHORT_LIFE * traffic.seconds).sum())
    if short > _SHORT_LIVED * len(traffic.objects.sizes):
        yield (
            f"short lives do not fit: {format_plural(short, 'object')} deleted soon after the upload;"
            " a scenario deletes the one that has been unused for the longest time"
        )


def _hits(used: Ids) -> list[float]:
    found, ids = np.unique(used, return_inverse=True)
    return object_uses.find_hit_ratios(ids.astype(np.int64), np.ones(len(found)), CACHE_SHARES)


def _find_crowd(traffic: Traffic) -> Iterator[str]:
    """Yield a sentence if the rate rose for a few objects: those of a scenario are in all minutes alike."""
    own = traffic.objects
    are_uses = ~(own.creates | own.deletes)
    seconds: Floats = own.seconds[are_uses]
    used = traffic.used
    if not len(used):
        return
    minutes = ((seconds - seconds[0]) // 60).astype(np.int64)
    numbers = np.bincount(minutes)
    usual = float(np.median(numbers))
    overall = float(traffic.counts.max() / len(used))
    for minute in np.flatnonzero(numbers > _CROWD_RATE * max(usual, MIN_IN_BIN)):
        hottest = np.bincount(used[minutes == minute]).max() / numbers[minute]
        if hottest > max(_CROWD_SHARE, 2 * overall) or (
            hottest > _CROWD_SHARE and numbers[minute] * hottest > overall * len(used) / 2
        ):
            yield (
                f"a flash crowd does not fit: in a minute of {numbers[minute] / max(usual, 1):.1f} times the"
                f" usual rate, {100 * hottest:.0f} % of uses were of one object"
            )
            return
