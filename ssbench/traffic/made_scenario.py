"""A scenario that does what the users of a log did, in the keys of scenarios: numbers only, no name.

How often objects are used follows from the spectrum of counts, how soon again from distances by class of
count, when from the rate in each stage and the dispersion of seconds. Bins of fewer than ten objects, which
could identify one, are merged with their neighbours.

What these keys cannot say is found by trying: the uses that the scenario would draw have hit ratios of their
own, which are compared with the log's, and the log's halves with each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import yaml

from ssbench.base.errors import UsageError
from ssbench.base.text_values import format_bytes
from ssbench.document.columns import format_plural
from ssbench.logs.column_files import NamelessFile
from ssbench.logs.logged_requests import REQUEST_KINDS
from ssbench.scenario.chosen_objects import draw_cycle_parts
from ssbench.scenario.structured_values import Popularity, Reuse
from ssbench.traffic import object_uses
from ssbench.traffic.object_uses import Ids, Numbers
from ssbench.traffic.traffic_figures import (
    CACHE_SHARES,
    Traffic,
    find_listing_order,
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
#: Hit ratios may differ by this much, or by as much as those of the log's halves. So may mean sizes by this
#: factor, and the dispersion of a scenario may be this part of the log's.
_HIT_TOLERANCE, _SIZE_TOLERANCE, _DISPERSION_TOLERANCE = 0.03, 1.25, 0.8
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
            f"too few objects for a scenario: {len(traffic.counts)} are used in the log (uploads and deletes"
            f" are no uses), and fewer than {MIN_IN_BIN} could be told apart; run-scenario --replay makes the"
            " requests of any log"
        )
    profile, left_out = _make_profile(traffic)
    flow = find_flow(traffic)
    bands = make_bands(traffic.counts)
    if flow.unused >= MIN_IN_BIN:
        bands.insert(0, (0.0, flow.unused))
    classes = make_classes(traffic.used, traffic.counts)
    stages, burst = _make_stages(traffic), find_burst(traffic)
    sizes = traffic.known_sizes
    if "range" in profile:
        empty = int(np.count_nonzero(sizes == 0))
        sizes = np.maximum(sizes, 1)
        if empty >= MIN_IN_BIN:
            left_out.append(
                f"empty objects do not fit: {empty:,} objects have 1 byte instead, because ranges of them"
                " would fail"
            )
    values: dict[str, object] = {
        "name": name,
        "sizes": [{"name": "object", "size": {"histogram": make_size_ranges(sizes)}}],
        "initial_files": {"object": flow.initial},
        "profile": profile,
        "container_count": min(len(traffic.container_counts), _MAX_CONTAINERS),
        "popularity": {"counts": [list(each) for each in bands]},
        "reuse": {
            "classes": [[count, list(weights)] for count, weights in classes],
            **{name: share for name, share in flow.shares.items() if share},
        },
        "user_count": _count_users(traffic),
    }
    if "range" in profile:
        values["operations"] = [{"name": "range", "length": max(_round(_find_range_length(traffic)), 1)}]
    if burst:
        values["arrivals"] = burst
    values["stages"] = stages
    head = (
        f"# What users did in {len(traffic.requests):,} requests of {traffic.format_seconds()}, by\n"
        "# ssbench-master traffic (doc/own-traffic.rst). Bins of fewer than ten objects are merged.\n"
    )
    body = yaml.safe_dump(values, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
    misfits = (
        *_find_misfits(traffic, bands, classes, flow),
        *_find_other_bursts(traffic, burst),
        *_find_other_sizes(traffic),
    )
    return MadeScenario(head + body, (*left_out, *misfits))


def _round(value: float) -> int:
    """Return a number with three digits that matter."""
    return int(float(f"{value:.3g}"))


# -- Operations ------------------------------------------------------------------------------------


def _make_profile(traffic: Traffic) -> tuple[dict[str, int], list[str]]:
    """Return the weights of operations, and sentences on what is left out."""
    kinds = np.zeros(len(REQUEST_KINDS), np.int64)
    missing = conditional = failed = 0
    for rows in object_uses.split_into_blocks(len(traffic.requests)):
        requests = traffic.requests.take(rows)
        reads = requests.is_of("read", "head")
        are_missing = reads & (requests.status == _NOT_FOUND)
        are_conditional = reads & (requests.status == _NOT_MODIFIED)
        have_failed = (requests.status >= _FIRST_FAILURE) & ~are_missing
        missing += int(np.count_nonzero(are_missing))
        conditional += int(np.count_nonzero(are_conditional))
        failed += int(np.count_nonzero(have_failed))
        kinds = object_uses.count_further(
            kinds, requests.kind[~(are_missing | are_conditional | have_failed)]
        )
    counts = dict(zip(REQUEST_KINDS, kinds.tolist(), strict=True))
    created = int(np.count_nonzero(traffic.objects.creates))
    counts["create"], counts["update"] = created, counts.pop("put") - created
    counts["missing"], counts["conditional"] = missing, conditional
    other = counts.pop("other")
    remarks = []
    if other:
        remarks.append(
            f"left out: {format_plural(other, 'request')} that no operation makes, such as PUT of containers"
        )
    if failed:
        remarks.append(f"left out: {format_plural(failed, 'failed request')}, not for missing objects")
    return {name: count for name, count in counts.items() if count}, remarks


def _find_range_length(traffic: Traffic) -> float:
    """Return the median of the bytes that requests for a range moved."""
    file = NamelessFile()
    for rows in object_uses.split_into_blocks(len(traffic.requests)):
        requests = traffic.requests.take(rows)
        file.append(requests.moved[requests.is_of("range")])
    moved = file.map(traffic.requests.moved.dtype, writable=True)
    return float(np.median(moved, overwrite_input=True))


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
    own, used, whole = traffic.objects, traffic.objects.are_used, len(traffic.requests)
    gone, made = np.zeros((2, len(used)), np.bool_)
    creates, deletes = (int(np.count_nonzero(each)) for each in (own.creates, own.deletes))
    # A scenario creates and deletes at an even rate: what is used, or deleted, before it would be there, or
    # its uses over, has to be there at first.
    early, before = 0.0, 0
    for rows in object_uses.split_into_blocks(len(own.ids)):
        ids, ended = own.ids[rows], np.flatnonzero(own.deletes[rows])
        made[ids[own.creates[rows]]] = True
        gone[ids[ended]] = True
        ends = own.rows[rows][ended] / whole
        early = float((deletes * ends - np.arange(before, before + len(ends))).max(initial=early))
        before += len(ends)
    early += math.sqrt(deletes)
    first = np.full(len(used), whole)
    for places in own.find_uses():
        np.minimum.at(first, own.ids[places], own.rows[places])
    begins = np.sort(first[used & made]) / whole
    number = len(begins)
    lead = float((np.arange(1, number + 1) - creates * begins).max(initial=0)) + math.sqrt(number)
    return ObjectFlow(
        used=int(np.count_nonzero(used)),
        created=number - min(math.ceil(lead), number),
        deleted=int((used & gone & ~made).sum()),
        unused=int((~used & gone & ~made).sum()) + math.ceil(early),
    )


def _count_users(traffic: Traffic) -> int:
    """Return how many requests may be in flight: several times those that were at the busiest moment."""
    latency = 0.0 if math.isnan(traffic.mean_latency) else traffic.mean_latency
    most = float(traffic.rates.max()) * latency
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
    whole = max(1.0, traffic.seconds)  # in this order: 1 for NaN
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
    numbers = traffic.usual_rates
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
    stages = _make_stages(traffic)
    low, high = 1.0, _MAX_BURST
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _expect_dispersion(middle, stages) < dispersion else (low, middle)
    return {"burst": float(f"{max(low, _LEAST_BURST):.3g}")}


def _expect_dispersion(burst: float, stages: Sequence[Mapping[str, float]]) -> float:
    """Return the dispersion at 1 s of arrivals in bursts: of few a second it is less than the burst."""
    rates, seconds = np.array([(each["rate"], each["seconds"]) for each in stages]).T
    decay = 2 * rates / (burst + 1)
    return float(np.average(1 + (burst - 1) * (1 + np.expm1(-decay) / decay), weights=rates * seconds))


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
    made = _find_drawn_hits(popularity, reuse, objects, flow.initial)
    halves = [each.hit_ratios for each in traffic.split()]
    for share, own, its, one, other in zip(CACHE_SHARES, made, traffic.hit_ratios, *halves, strict=True):
        null = abs(one - other)
        if not abs(own - its) <= max(_HIT_TOLERANCE, null):
            beside = (
                "one of the log's halves has no use"
                if math.isnan(null)
                else f"the log's own halves differ by {null:.3f}"
            )
            yield (
                f"reuse does not fit: a cache of {100 * share:g} % of the objects hits {its:.3f} of the log's"
                f" uses and {own:.3f} of the scenario's ({beside})"
            )
    listed = find_listing_order(traffic)
    # Of few uses as many follow each other by chance: three standard errors.
    if listed > max(_LISTING_SHARE, 0.5 + 1.5 / math.sqrt(max(len(traffic.used), 1))):
        yield (
            f"a scan does not fit: {100 * listed:.0f} % of uses follow the order of a listing,"
            " of a scenario's about 50 %"
        )
    rates = traffic.rates[:-1]
    usual = traffic.usual_rates
    if seconds := len(rates) - len(usual):
        requests = int(rates.sum()) - int(usual.sum())
        yield (
            f"a surge does not fit: {requests:,} requests came in {seconds:,} of"
            f" {format_plural(len(rates), 'second')}; a scenario spreads them over their stage"
        )
    yield from _find_crowd(traffic)
    lives, limit = traffic.lifetimes, _SHORT_LIFE * traffic.seconds
    short = sum(
        int(np.count_nonzero(lives[rows] < limit)) for rows in object_uses.split_into_blocks(len(lives))
    )
    if short > _SHORT_LIVED * len(traffic.objects.sizes):
        yield (
            f"short lives do not fit: {format_plural(short, 'upload')} deleted soon after;"
            " a scenario deletes the object that has been unused for the longest time"
        )


def _find_other_bursts(traffic: Traffic, burst: str | Mapping[str, float] | None) -> Iterator[str]:
    """Yield a sentence if no arrivals of ours are as dispersed: of few requests a second many are at once."""
    if isinstance(burst, Mapping):
        its = measure_dispersion(traffic.usual_rates, 1)
        own = _expect_dispersion(burst["burst"], _make_stages(traffic))
        if own < _DISPERSION_TOLERANCE * its:
            yield f"bursts do not fit: the dispersion at 1 s is {its:.1f}, of a scenario's at most {own:.1f}"


def _find_other_sizes(traffic: Traffic) -> Iterator[str]:
    """Yield sentences if requests move more or fewer bytes than those of a scenario, which draws sizes."""
    drawn = float(traffic.known_sizes.mean())
    halves = [*traffic.split()]
    for kind, what in (("put", "an upload"), ("read", "a read")):
        own = _find_mean_size(traffic, kind)
        null = [_find_mean_size(each, kind) for each in halves]
        if not min(own, drawn, *null) > 0:  # in this way: also for NaN
            continue
        factor, halves_factor = (max(one / other, other / one) for one, other in ((own, drawn), null))
        if factor > max(_SIZE_TOLERANCE, halves_factor):
            yield (
                f"sizes do not fit: {what} has {format_bytes(round(own))} on average, of a scenario"
                f" {format_bytes(round(drawn))}"
            )


def _find_mean_size(traffic: Traffic, kind: str) -> float:
    """Return the mean size of what requests of a kind upload or read as a whole; NaN: not known of any."""
    total, count = 0.0, 0
    for rows in object_uses.split_into_blocks(len(traffic.requests)):
        requests = traffic.requests.take(rows)
        sizes = requests.size[requests.is_of(kind) & (requests.status < _NOT_MODIFIED)]
        sizes = sizes[sizes >= 0]
        total, count = total + float(sizes.sum(dtype=np.float64)), count + len(sizes)
    return total / count if count else float("nan")


def _find_drawn_hits(popularity: Popularity, reuse: Reuse, objects: int, initial: int) -> list[float]:
    """Return the hit ratios of what a scenario would use."""
    drawn = NamelessFile()
    for part in draw_cycle_parts(
        popularity,
        reuse,
        objects,
        initial,
        np.random.default_rng(1),
        lambda uses: NamelessFile().make_zeros(np.dtype(np.complex128), uses),
    ):
        drawn.append(part)
    used = drawn.map(np.dtype(np.uint32))
    return object_uses.find_hit_ratios(used, np.ones(int(used.max()) + 1), CACHE_SHARES)


def _find_crowd(traffic: Traffic) -> Iterator[str]:
    """Yield a sentence if the rate rose for a few objects: those of a scenario are in all minutes alike."""
    own, used = traffic.objects, traffic.used
    numbers, began = np.zeros(0, np.int64), float("nan")
    for places in own.find_uses():
        if len(places):
            seconds = own.seconds[places]
            began = float(seconds[0]) if math.isnan(began) else began
            numbers = object_uses.count_further(numbers, ((seconds - began) // 60).astype(np.int64))
    if not len(used):
        return
    usual = float(np.median(numbers))
    overall = float(traffic.counts.max() / len(used))
    ends = numbers.cumsum()
    for minute in np.flatnonzero(numbers > _CROWD_RATE * max(usual, MIN_IN_BIN)):
        own_uses = used[ends[minute] - numbers[minute] : ends[minute]]
        hottest = object_uses.count_numbers(own_uses).max() / numbers[minute]
        if hottest > max(_CROWD_SHARE, 2 * overall) or (
            hottest > _CROWD_SHARE and numbers[minute] * hottest > overall * len(used) / 2
        ):
            yield (
                f"a flash crowd does not fit: in a minute of {numbers[minute] / max(usual, 1):.1f} times the"
                f" usual rate, {100 * hottest:.0f} % of uses were of one object"
            )
            return
