"""A scenario that does what the users of a log did, in the keys of scenarios: numbers only, no name.

How often objects are used follows from the spectrum of counts, how soon again from distances by class of
count, when from the rate in each stage and the dispersion of seconds. Bins of fewer than ten objects or
requests, which could identify one, are merged with their neighbours, or left out, which is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import groupby
from operator import itemgetter

import numpy as np
import yaml

from ssbench.base.errors import UsageError
from ssbench.document.columns import format_plural
from ssbench.logs.logged_requests import FIRST_FAILURE, REQUEST_KINDS
from ssbench.scenario.structured_values import Popularity, Reuse
from ssbench.traffic import object_uses
from ssbench.traffic.misfits import (
    FittedArrivals,
    FittedLoad,
    SizeRange,
    StageRate,
    expect_dispersion,
    find_chance,
    find_misfits,
    get_burst,
    map_range_bytes,
)
from ssbench.traffic.object_uses import Ids, Numbers
from ssbench.traffic.traffic_figures import MINUTE, Traffic, measure_dispersion

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
#: Dispersions between these are those of independent users, as are those that chance gives these; smaller
#: ones are even, larger ones bursts.
_LEAST_POISSON, _MOST_POISSON = 0.5, 1.2
_LEAST_BURST, _MAX_BURST = 1.05, 1000.0
#: Rates of stages that are less apart than this many standard deviations may be so by chance.
_CHANCE_DEVIATIONS = 3.0
#: So large a share of requests may have another method.
_METHOD_SHARE = 0.02
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
            f"too few objects for a scenario: the log uses {len(traffic.counts)} (uploads and deletes are no"
            f" uses), and fewer than {MIN_IN_BIN} could be told apart; run-scenario --replay makes the"
            " requests of any log"
        )
    log, traffic = traffic, traffic.level_first_uploads()
    profile, missing_method, left_out = _make_profile(traffic)
    flow = find_flow(traffic)
    left_out += _explain_changes(log, traffic)
    bands = make_bands(traffic.counts)
    if flow.unused >= MIN_IN_BIN:
        bands.insert(0, (0.0, flow.unused))
    classes = make_classes(traffic.used, traffic.counts)
    whole_stages = make_stages(traffic)
    burst = find_burst(traffic, whole_stages)
    stages = [*_join_stages(_leave_chance_out(whole_stages, burst))]
    sizes = traffic.known_sizes
    if "range" in profile:
        empty = int(np.count_nonzero(sizes == 0))
        sizes = np.maximum(sizes, 1)
        if empty >= MIN_IN_BIN:
            left_out.append(
                f"empty objects do not fit: {empty:,} objects have 1 byte instead, because ranges of them"
                " would fail"
            )
    ranges = make_size_ranges(sizes)
    if unsaid := len(sizes) - sum(count for *_, count in ranges):
        left_out.append(_say_left_out_sizes(sizes, ranges, unsaid))
    containers = min(len(traffic.container_counts), _MAX_CONTAINERS)
    values: dict[str, object] = {
        "name": name,
        "sizes": [{"name": "object", "size": {"histogram": _format_ranges(ranges)}}],
        "initial_files": {"object": flow.initial},
        "profile": profile,
        "container_count": containers,
        "popularity": {"counts": [list(each) for each in bands]},
        "reuse": {
            "classes": [[count, list(weights)] for count, weights in classes],
            **{name: share for name, share in flow.shares.items() if share},
        },
        "user_count": _count_users(traffic),
    }
    range_length = _find_range_length(traffic) if "range" in profile else None
    operations: list[dict[str, object]] = []
    if range_length:
        operations.append({"name": "range", "length": range_length})
    if "missing" in profile:
        operations.append({"name": "missing", "method": missing_method})
    if operations:
        values["operations"] = operations
    if burst:
        values["arrivals"] = burst
    values["stages"] = stages
    head = (
        f"# What users did in {len(traffic.requests):,} requests of {traffic.format_seconds()}, by\n"
        "# ssbench-master traffic (doc/own-traffic.rst). Bins of fewer than ten objects are merged.\n"
    )
    body = yaml.safe_dump(values, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
    load = FittedLoad(
        popularity=Popularity("counts", bands=tuple((count, float(own)) for count, own in bands)),
        reuse=Reuse(
            0.0, 1, 1, tuple((count, tuple(map(float, own))) for count, own in classes), **flow.shares
        ),
        initial=flow.initial,
        created=flow.created,
        uploads=traffic.count_new_objects(),
        containers=containers,
        sizes=tuple(ranges),
        range_length=range_length,
        stages=tuple(stages),
        arrivals=burst,
    )
    return MadeScenario(head + body, (*left_out, *find_misfits(log, load)))


def _explain_changes(log: Traffic, traffic: Traffic) -> Iterator[str]:
    """Yield in what the traffic of which a scenario is made is not that of the log."""
    if were_there := log.count_new_objects() - traffic.count_new_objects():
        yield (
            f"taken to have been there: {were_there:,} objects whose first request is an upload, because more"
            " of these come at the beginning than at an even rate"
        )
    if retries := len(traffic.retries):
        yield (
            f"left out of the rate: {retries:,} of {len(traffic.requests):,} requests, which are retries;"
            " a run makes its own"
        )


def _round(value: float) -> int:
    """Return a number with three digits that matter."""
    return int(float(f"{value:.3g}"))


# -- Operations ------------------------------------------------------------------------------------


def _make_profile(traffic: Traffic) -> tuple[dict[str, int], str, list[str]]:
    """Return the weights of operations, the method of ``missing``, and sentences on what is left out."""
    kinds = np.zeros(len(REQUEST_KINDS), np.int64)
    missing = missing_heads = conditional = conditional_heads = failed = 0
    for rows in object_uses.split_into_blocks(len(traffic.requests)):
        requests = traffic.requests.take(rows)
        heads = requests.is_of("head")
        reads = requests.is_of("read") | heads
        are_missing = reads & (requests.status == HTTPStatus.NOT_FOUND)
        are_conditional = reads & (requests.status == HTTPStatus.NOT_MODIFIED)
        have_failed = (requests.status >= FIRST_FAILURE) & ~are_missing
        missing += int(np.count_nonzero(are_missing))
        missing_heads += int(np.count_nonzero(are_missing & heads))
        conditional += int(np.count_nonzero(are_conditional))
        conditional_heads += int(np.count_nonzero(are_conditional & heads))
        failed += int(np.count_nonzero(have_failed))
        kinds = object_uses.count_further(
            kinds, requests.kind[~(are_missing | are_conditional | have_failed)]
        )
    counts = dict(zip(REQUEST_KINDS, kinds.tolist(), strict=True))
    created = traffic.count_new_objects()
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
    profile = {name: count for name, count in counts.items() if count >= MIN_IN_BIN}
    if not profile:
        raise UsageError(
            f"too few requests for a scenario: no operation was made {MIN_IN_BIN} times in the log;"
            " run-scenario --replay makes the requests of any log"
        )
    if few := {name: count for name, count in counts.items() if 0 < count < MIN_IN_BIN}:
        remarks.append(
            f"left out: {format_plural(sum(few.values()), 'request')} of operations with fewer than"
            f" {MIN_IN_BIN} each ({', '.join(few)})"
        )
    # Of operations only ``missing`` may be made by HEAD as well as by GET.
    method = "HEAD" if 2 * missing_heads > missing else "GET"
    others = conditional_heads + min(missing_heads, missing - missing_heads)
    if others > _METHOD_SHARE * len(traffic.requests):
        remarks.append(
            f"methods do not fit: {format_plural(others, 'request')} for missing or unmodified objects had"
            " HEAD where a scenario has GET, or GET where it has HEAD"
        )
    return profile, method, remarks


def _find_range_length(traffic: Traffic) -> int:
    """Return the median of the bytes that requests for a range moved."""
    return max(_round(float(np.median(map_range_bytes(traffic), overwrite_input=True))), 1)


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
    """Return how objects come and go.

    A scenario creates and deletes at an even rate. What is used before it would be there has to be there at
    first, and so has what is deleted before the uses of enough objects are over.
    """
    own, used, whole = traffic.objects, traffic.objects.are_used, len(traffic.requests)
    gone, made = np.zeros((2, len(used)), np.bool_)
    for rows in object_uses.split_into_blocks(len(own.ids)):
        ids = own.ids[rows]
        made[ids[own.creates[rows]]] = True
        gone[ids[own.deletes[rows]]] = True
    moments = np.full(len(used), whole)
    for places in own.find_uses():
        np.minimum.at(moments, own.ids[places], own.rows[places])
    begins = np.sort(moments[used & made]) / whole
    number = len(begins)
    lead = float(
        (np.arange(1, number + 1) - traffic.count_new_objects() * begins).max(initial=0)
    ) + math.sqrt(number)
    created = number - min(math.ceil(lead), number)
    were_there = gone & ~made
    deleted, unused = (int(np.count_nonzero(were_there & each)) for each in (used, ~used))
    # The uses of what was there end at an even rate too, and what is uploaded without a use needs none, nor
    # does what is uploaded and deleted again.
    others = unused + int(np.count_nonzero(gone & made & used))
    for places in own.find_uses():
        moments[own.ids[places]] = own.rows[places]  # of several for one object the last one stays
    ends = np.sort(moments[used & ~were_there]) / whole
    early = float((others * ends - np.arange(len(ends))).max(initial=others - len(ends)))
    return ObjectFlow(
        used=int(np.count_nonzero(used)),
        created=created if created >= MIN_IN_BIN else 0,
        deleted=deleted if deleted >= MIN_IN_BIN else 0,
        unused=max(unused, math.ceil(early)),
    )


def _count_users(traffic: Traffic) -> int:
    """Return how many requests may be in flight: several times those that were at the busiest moment."""
    latency = 0.0 if math.isnan(traffic.mean_latency) else traffic.mean_latency
    most = float(traffic.rates.max()) * latency
    return min(max(_round(_USERS_A_REQUEST * most), _LEAST_USERS), _MAX_USERS)


# -- Sizes -----------------------------------------------------------------------------------------


def make_size_ranges(sizes: Numbers) -> list[SizeRange]:
    """Return (least size, greatest size, objects): points for single sizes, ranges for all others.

    Fewer than ten objects that are in no point are in none.
    """
    if len(sizes) < MIN_IN_BIN:
        raise UsageError("too few objects for a scenario: the log says the size of fewer than ten")
    values, counts = np.unique(sizes, return_counts=True)
    are_points = (counts >= max(_POINT_SHARE * len(sizes), MIN_IN_BIN)) | (
        (values == 0) & (counts >= MIN_IN_BIN)
    )
    found: list[SizeRange] = [
        (int(value), int(value), int(count))
        for value, count in zip(values[are_points], counts[are_points], strict=True)
    ]
    rest = np.sort(sizes[~np.isin(sizes, values[are_points])])
    return sorted([*found, *_make_ranges(rest, len(sizes))])


def _format_ranges(ranges: Sequence[SizeRange]) -> dict[int | str, int]:
    """Return a histogram as a scenario has it."""
    return {(low if low == high else f"{low}..{high}"): count for low, high, count in ranges}


def _say_left_out_sizes(sizes: Numbers, ranges: Sequence[SizeRange], count: int) -> str:
    """Return a sentence on so many sizes that are in no range."""
    inside = np.isin(sizes, [low for low, *_ in ranges])  # all ranges are points then
    share = 100 * float(sizes[~inside].sum()) / max(float(sizes.sum()), 1.0)
    return f"left out: the sizes of {format_plural(count, 'object')}, which have {share:.0f} % of all bytes"


def _make_ranges(sizes: Numbers, whole: int) -> Iterator[SizeRange]:
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

    The n-th weight is that of distances from 2**-n to 2**-(n + 1) of the log. They are whole tens: what is
    beyond these is put to the next.
    """
    bands = _divide_counts(counts)
    band_of = np.searchsorted([least for least, *_ in bands], counts, "right") - 1
    table = np.zeros(len(bands) * _DISTANCE_BINS, np.int64)
    for rows, distances in object_uses.find_distances(used, np.full(len(counts), -1)):
        again = distances > 0
        bins = np.floor(-np.log2(distances[again] / len(used))).astype(np.int64)
        places = band_of[used[rows][again]] * _DISTANCE_BINS + np.minimum(bins, _DISTANCE_BINS - 1)
        table += np.bincount(places, minlength=len(table))
    sums = table.reshape(-1, _DISTANCE_BINS).cumsum(axis=1)
    weights = np.diff((sums + MIN_IN_BIN // 2) // MIN_IN_BIN * MIN_IN_BIN, prepend=0)
    found = [
        (float(least), np.trim_zeros(own, "b").tolist())
        for (least, *_), own in zip(bands, weights, strict=True)
        if own.any()
    ]
    return found or [(1.0, [1])]


# -- When ------------------------------------------------------------------------------------------


def make_stages(traffic: Traffic) -> list[StageRate]:
    """Return stages with the rate of each, without retries; one of few requests is put to the one before."""
    rates = traffic.demand_rates
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


def _leave_chance_out(stages: list[StageRate], arrivals: FittedArrivals) -> list[StageRate]:
    """Return stages whose rates vary by what chance does not explain, which a run makes anew.

    Otherwise minutes of independent users would vary twice as much as the log's. Rates that are far from
    the mean are left as they are.
    """
    rates, seconds = np.array([(each["rate"], each["seconds"]) for each in stages]).T
    dispersion = expect_dispersion(get_burst(arrivals), stages, seconds) if arrivals else 0.0
    apart = np.abs(rates - np.average(rates, weights=seconds))
    usual = apart < _CHANCE_DEVIATIONS * np.sqrt(dispersion * np.average(rates, weights=seconds) / seconds)
    if np.count_nonzero(usual) < 2:
        return stages
    mean = np.average(rates[usual], weights=seconds[usual])
    variance = (seconds[usual] * (rates[usual] - mean) ** 2).sum() / (np.count_nonzero(usual) - 1)
    left = math.sqrt(max(1 - dispersion * mean / variance, 0.0)) if variance else 0.0
    rates[usual] = mean + left * (rates[usual] - mean)
    return [
        {"seconds": each["seconds"], "rate": float(f"{rate:.4g}")}
        for each, rate in zip(stages, rates.tolist(), strict=True)
    ]


def _join_stages(stages: Sequence[StageRate]) -> Iterator[StageRate]:
    """Yield stages, those in a row that have one rate as one."""
    for rate, own in groupby(stages, key=itemgetter("rate")):
        yield {"seconds": round(sum(each["seconds"] for each in own), 2), "rate": rate}


def find_burst(traffic: Traffic, stages: Sequence[StageRate]) -> FittedArrivals:
    """Return the ``arrivals`` of a scenario by the dispersion of seconds; None: even, or not known.

    A surge is left out: bursts that have as much variance would go on for the whole run. Where bursts last
    for less than a second, those with its dispersion would make minutes differ far more than the log's.
    """
    numbers = traffic.usual_rates
    dispersion = measure_dispersion(numbers, 1)
    if math.isnan(dispersion):
        return None
    # A minute of independent users has up to 1.5, and bursts of that would make the scenario's queues longer
    # than the log's.
    least, most = find_chance(len(numbers))
    if dispersion < min(least, _LEAST_POISSON):
        return None
    if dispersion < max(most, _MOST_POISSON):
        return "poisson"
    low, high = 1.0, _MAX_BURST
    of_minutes = measure_dispersion(numbers, MINUTE)
    limit = math.inf
    if not math.isnan(of_minutes):
        limit = max(of_minutes * find_chance(len(numbers) // MINUTE)[1], dispersion)
    for _ in range(50):
        middle = (low + high) / 2
        is_less = (
            expect_dispersion(middle, stages) < dispersion
            and expect_dispersion(middle, stages, MINUTE) < limit
        )
        low, high = (middle, high) if is_less else (low, middle)
    return {"burst": float(f"{max(low, _LEAST_BURST):.3g}")}
