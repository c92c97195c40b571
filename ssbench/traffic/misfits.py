"""What a made scenario does not say of its log, in sentences.

It is found by trying: what the scenario would draw has figures of its own, which are compared with the log's.
They may be as far from these as the log's halves are from each other, and as several draws are apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import chain, combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from ssbench.base.text_values import format_bytes
from ssbench.document.columns import format_plural
from ssbench.logs.column_files import NamelessFile
from ssbench.scenario.chosen_objects import draw_cycle_parts
from ssbench.scenario.structured_values import Popularity, Reuse
from ssbench.traffic import object_uses
from ssbench.traffic.object_uses import Floats, Ids, Numbers
from ssbench.traffic.traffic_figures import (
    CACHE_SHARES,
    MINUTE,
    SCAN_READS,
    Traffic,
    find_gini,
    find_scan_share,
    measure_dispersion,
)

#: Least size, greatest size, objects.
SizeRange = tuple[int, int, int]
#: Its ``seconds`` and ``rate``.
StageRate = Mapping[str, float]
#: As scenarios have them; None: even.
FittedArrivals = str | Mapping[str, float] | None

#: Hit ratios, and Gini's coefficients, may differ by this much.
_RATIO_TOLERANCE = 0.03
#: Mean sizes may differ by this factor; sizes by use by so much of their logarithm, on average.
_SIZE_TOLERANCE, _LOG_SIZE_TOLERANCE = 1.25, 0.1
#: Sizes by use are compared where those of so large a part of the uses are known, at so many ranks.
_KNOWN_SIZES, _SIZE_RANKS = 0.95, (np.arange(100) + 0.5) / 100
#: The number of objects may differ by this part of the log's.
_OBJECTS_TOLERANCE = 0.1
#: Dispersions may differ by this part of the log's. Where chance is weighed, even ones are at least this.
_DISPERSION_TOLERANCE, _LEAST_DISPERSION = 0.2, 0.5
#: Of 100 logs 98 have dispersions that are nearer than this quantile of the normal distribution.
_CHANCE_QUANTILE = 2.326
#: From these on a log is said not to fit: reads in scans, a minute's rate and its share of one object, lives
#: shorter than a part of the log, requests of all accounts but one.
_SCAN_SHARE, _CROWD_RATE, _CROWD_SHARE, _SHORT_LIFE, _SHORT_LIVED = 0.01, 3.0, 0.2, 0.1, 0.05
_ACCOUNTS_SHARE = 0.02
#: So few uses are the least that a minute usually has where crowds are looked for.
_LEAST_USUAL = 10
#: What chance decides is drawn so often.
_DRAWS = 9


@dataclass(frozen=True, slots=True)
class FittedLoad:
    """What a made scenario says of its log."""

    popularity: Popularity
    reuse: Reuse
    initial: int  # objects
    created: int  # of those that are used
    uploads: int  # of new objects
    containers: int
    sizes: Sequence[SizeRange]
    range_length: int | None  # None: no ranges are read
    stages: Sequence[StageRate]
    arrivals: FittedArrivals


@dataclass(frozen=True, slots=True)
class _Measured:
    """Figures of a log, or of a half of it."""

    hits: Sequence[float]
    byte_hits: Sequence[float]
    log_sizes: Floats  # by use; empty: none is known
    upload_size: float
    read_size: float
    gini: float


def _measure(traffic: Traffic) -> _Measured:
    sizes, ends = traffic.sizes_by_use
    return _Measured(
        traffic.hit_ratios,
        traffic.byte_hit_ratios,
        _find_log_sizes(sizes[_find_ranks(ends)]),
        _find_mean_size(traffic, "put"),
        _find_mean_size(traffic, "read"),
        find_gini(traffic.container_counts),
    )


def find_misfits(traffic: Traffic, load: FittedLoad) -> Iterator[str]:
    """Yield sentences on what a scenario does not say of a log."""
    used = _draw_uses(load)  # what needs the most memory, before there is more to be kept
    made = object_uses.find_hit_ratios(used, np.ones(int(used.max()) + 1), CACHE_SHARES)
    log, *halves = map(_measure, chain([traffic], traffic.split()))
    reuse_fits = True
    for share, own, its, one, other in zip(
        CACHE_SHARES, made, log.hits, *(each.hits for each in halves), strict=True
    ):
        if not abs(own - its) <= max(_RATIO_TOLERANCE, abs(one - other)):
            reuse_fits = False
            yield (
                f"reuse does not fit: a cache of {100 * share:g} % of the objects hits {its:.3f} of the log's"
                f" uses and {own:.3f} of the scenario's ({_say_null(one, other)})"
            )
    objects = len(traffic.objects.sizes)
    own_objects = load.initial + load.uploads
    if abs(own_objects - objects) > _OBJECTS_TOLERANCE * objects:
        yield (
            f"uploads and deletes do not fit: the log has {objects:,} objects, a scenario {own_objects:,},"
            " because its uploads and deletes come at an even rate"
        )
    if (scan := find_scan_share(traffic)) > _SCAN_SHARE:
        yield (
            f"a scan does not fit: {100 * scan:.0f} % of reads are in the order of a listing,"
            f" {SCAN_READS} in a row or more, of a scenario's none"
        )
    rates = traffic.demand_rates[:-1]
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
    yield from _find_other_bursts(traffic, load)
    yield from _find_other_means(traffic, load, log, halves)
    yield from _find_other_sizes(traffic, load, log, halves, used, reuse_fits=reuse_fits)
    if load.range_length is not None:
        yield from _find_other_ranges(traffic, load.range_length)
    yield from _find_other_containers(traffic, load, log, halves, used)


def _say_null(one: float, other: float) -> str:
    null = abs(one - other)
    return (
        "one of the log's halves has no use"
        if math.isnan(null)
        else f"the log's own halves differ by {null:.3f}"
    )


def _find_excess(its: float, drawn: Sequence[float]) -> float:
    """Return how much further a figure is from those of draws than these are apart; 0 or less: not."""
    least, most = min(drawn), max(drawn)
    return max(least - its, its - most) - (most - least)


# -- Uses ------------------------------------------------------------------------------------------


def _draw_uses(load: FittedLoad) -> Ids:
    """Return the objects that a scenario would use, in their order."""
    drawn = NamelessFile()
    for part in draw_cycle_parts(
        load.popularity,
        load.reuse,
        load.initial + load.created,
        load.initial,
        np.random.default_rng(1),
        lambda uses: NamelessFile().make_zeros(np.dtype(np.complex128), uses),
    ):
        drawn.append(part)
    return drawn.map(np.dtype(np.uint32))


def _find_crowd(traffic: Traffic) -> Iterator[str]:
    """Yield a sentence if the rate rose for a few objects: those of a scenario are in all minutes alike."""
    own, used = traffic.objects, traffic.used
    numbers, began = np.zeros(0, np.int64), float("nan")
    for places in own.find_uses():
        if len(places):
            seconds = own.seconds[places]
            began = float(seconds[0]) if math.isnan(began) else began
            numbers = object_uses.count_further(numbers, ((seconds - began) // MINUTE).astype(np.int64))
    if not len(used):
        return
    usual = float(np.median(numbers))
    overall = float(traffic.counts.max() / len(used))
    ends = numbers.cumsum()
    for minute in np.flatnonzero(numbers > _CROWD_RATE * max(usual, _LEAST_USUAL)):
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


# -- When ------------------------------------------------------------------------------------------


def find_chance(count: int) -> tuple[float, float]:
    """Return between which factors chance puts the variance of so many numbers, in 98 of 100 cases.

    They are quantiles of chi-squared over its freedom (Wilson and Hilferty).
    """
    part = 2 / (9 * (count - 1))
    least, most = ((1 - part + side * math.sqrt(part)) ** 3 for side in (-_CHANCE_QUANTILE, _CHANCE_QUANTILE))
    return max(least, 0.0), most


def get_burst(arrivals: str | Mapping[str, float]) -> float:
    """Return the burst of arrivals: 1 of independent users."""
    return arrivals["burst"] if isinstance(arrivals, Mapping) else 1.0


def expect_dispersion(burst: float, stages: Sequence[StageRate], window: float | Floats = 1.0) -> float:
    """Return the dispersion of arrivals in bursts within stages: of few a window it is less than the burst.

    Windows have so many seconds, all alike or those of each stage.
    """
    rates, seconds = _split_stages(stages)
    decay = 2 * rates * window / (burst + 1)
    return float(np.average(1 + (burst - 1) * (1 + np.expm1(-decay) / decay), weights=rates * seconds))


def _split_stages(stages: Sequence[StageRate]) -> tuple[Floats, Floats]:
    """Return the rates of stages and their seconds."""
    rates, seconds = np.array([(each["rate"], each["seconds"]) for each in stages], np.float64).T
    return rates, seconds


def _find_other_bursts(traffic: Traffic, load: FittedLoad) -> Iterator[str]:
    """Yield sentences if no arrivals of ours are as dispersed: of few requests a second many are at once."""
    usual = traffic.usual_rates
    if isinstance(load.arrivals, Mapping):
        its = measure_dispersion(usual, 1)
        own = expect_dispersion(load.arrivals["burst"], load.stages)
        if own < (1 - _DISPERSION_TOLERANCE) * its:
            yield f"bursts do not fit: the dispersion at 1 s is {its:.1f}, of a scenario's {own:.1f}"
    its = measure_dispersion(usual, MINUTE)
    if math.isnan(its) or len(usual) < len(traffic.rates) - 1:  # minutes with a surge, which is said
        return
    within = expect_dispersion(get_burst(load.arrivals), load.stages, MINUTE) if load.arrivals else 0.0
    rates, seconds = _split_stages(load.stages)
    ends, sums = (np.concatenate([[0.0], each.cumsum()]) for each in (seconds, rates * seconds))
    minutes = np.diff(np.interp(np.arange(0, len(usual) + 1, MINUTE), ends, sums))
    own = within + float(minutes.var(ddof=1) / minutes.mean())
    # Chance alone makes that of a few minutes twice as large, or half.
    chance = max(within, _LEAST_DISPERSION) * (find_chance(len(minutes))[1] - 1)
    if abs(own - its) > max(_DISPERSION_TOLERANCE * its, chance):
        yield f"bursts do not fit: the dispersion at {MINUTE} s is {its:.1f}, of a scenario's {own:.1f}"


# -- Sizes -----------------------------------------------------------------------------------------


def _find_other_means(
    traffic: Traffic, load: FittedLoad, log: _Measured, halves: Sequence[_Measured]
) -> Iterator[str]:
    """Yield sentences if requests move more or fewer bytes than those of a scenario, which draws sizes.

    Of reads, chance may do as much: few objects have many of them, in both halves of the log.
    """
    low, high, objects = np.array(load.sizes, np.float64).T
    # The mean of what is even in its logarithm.
    spans = np.log(np.maximum(high, 1) / np.maximum(low, 1))
    means = np.divide(high - low, spans, out=low.copy(), where=spans > 0)
    squares = np.divide(high**2 - low**2, 2 * spans, out=low**2, where=spans > 0)
    drawn = float(np.average(means, weights=objects))
    variance = max(float(np.average(squares, weights=objects)) - drawn**2, 0.0)
    # Of the log's counts: those of a scenario are more alike among the hottest.
    shares = traffic.counts / traffic.counts.sum()
    chance = math.sqrt(variance * float(shares @ shares)) / max(drawn, 1.0)
    for own, null, by_chance, what in (
        (log.upload_size, [each.upload_size for each in halves], 0.0, "an upload"),
        (log.read_size, [each.read_size for each in halves], _CHANCE_QUANTILE * chance, "a read"),
    ):
        if not min(own, drawn, *null) > 0:  # in this way: also for NaN
            continue
        factor, halves_factor = (max(one / other, other / one) for one, other in ((own, drawn), null))
        if factor > max(_SIZE_TOLERANCE, halves_factor, 1 + by_chance):
            yield (
                f"sizes do not fit: {what} has {format_bytes(round(own))} on average, of a scenario"
                f" {format_bytes(round(drawn))}"
            )


def _find_mean_size(traffic: Traffic, kind: str) -> float:
    """Return the mean size of what requests of a kind upload or read as a whole; NaN: not known of any."""
    total, count = 0.0, 0
    for rows in object_uses.split_into_blocks(len(traffic.requests)):
        requests = traffic.requests.take(rows)
        sizes = requests.size[requests.is_of(kind) & (requests.status < HTTPStatus.NOT_MODIFIED)]
        sizes = sizes[sizes >= 0]
        total, count = total + float(sizes.sum(dtype=np.float64)), count + len(sizes)
    return total / count if count else float("nan")


def _find_ranks(ends: Numbers) -> Numbers:
    """Return the places of even ranks, by the uses up to each object."""
    return ends.searchsorted(_SIZE_RANKS * ends[-1], "right") if len(ends) else np.empty(0, np.int64)


def _find_log_sizes(sizes: Numbers | Floats) -> Floats:
    return np.asarray(np.log(np.maximum(sizes, 1.0)))


def _find_other_sizes(
    traffic: Traffic,
    load: FittedLoad,
    log: _Measured,
    halves: Sequence[_Measured],
    used: Ids,
    *,
    reuse_fits: bool,
) -> Iterator[str]:
    """Yield sentences if what is used often is smaller or larger: a scenario draws sizes whatever the use.

    Hit ratios by bytes tell it only where those by objects fit.
    """
    _, known = traffic.sizes_by_use
    if not len(known) or known[-1] < _KNOWN_SIZES * len(traffic.used):
        return
    counts = object_uses.count_numbers(used)
    random, found = np.random.default_rng(2), list[str]()
    byte_hits: list[list[float]] = []
    log_sizes: list[Floats] = []
    for _ in range(_DRAWS):
        drawn = _draw_sizes(load.sizes, len(counts), random)
        order = np.argsort(drawn)
        ends = counts[order]
        np.cumsum(ends, out=ends)
        log_sizes.append(_find_log_sizes(drawn[order[_find_ranks(ends)]]))
        del order, ends
        found = [*_compare_log_sizes(log, halves, log_sizes)]
        if reuse_fits:
            byte_hits.append(object_uses.find_hit_ratios(used, drawn, CACHE_SHARES))
            found += _compare_byte_hits(log, halves, byte_hits)
        if not found:  # nor would there be with more draws
            return
    yield from found


def _compare_log_sizes(
    log: _Measured, halves: Sequence[_Measured], log_sizes: Sequence[Floats]
) -> Iterator[str]:
    """Yield a sentence if sizes by use are not as those of draws."""
    apart = max((_find_distance(one, other) for one, other in combinations(log_sizes, 2)), default=0.0)
    null = _find_distance(halves[0].log_sizes, halves[1].log_sizes)
    distances = [_find_distance(log.log_sizes, each) for each in log_sizes]
    if (least := min(distances)) > max(_LOG_SIZE_TOLERANCE, apart, null):
        nearest = log_sizes[distances.index(least)]
        its, own = (format_bytes(round(math.exp(np.median(each)))) for each in (log.log_sizes, nearest))
        yield (
            f"sizes do not fit: those of uses are off by a factor of {math.exp(least):.2f} on average; half"
            f" of them are up to {its}, of a scenario's up to {own}"
        )


def _compare_byte_hits(
    log: _Measured, halves: Sequence[_Measured], byte_hits: Sequence[list[float]]
) -> Iterator[str]:
    """Yield sentences if hit ratios by bytes are not as those of draws."""
    for share, hits, one, other, *made in zip(
        CACHE_SHARES, log.byte_hits, *(each.byte_hits for each in halves), *byte_hits, strict=True
    ):
        if _find_excess(hits, made) > max(_RATIO_TOLERANCE, abs(one - other)):
            yield (
                f"sizes do not fit: a cache of {100 * share:g} % of the bytes hits {hits:.3f} of those that"
                f" the log uses, of a scenario's about {np.median(made):.3f} ({_say_null(one, other)})"
            )


def _find_distance(one: Floats, other: Floats) -> float:
    """Return the mean distance of values at the same ranks; 0 if one has none."""
    return float(np.abs(one - other).mean()) if len(one) and len(other) else 0.0


def _draw_sizes(ranges: Sequence[SizeRange], count: int, random: np.random.Generator) -> Floats:
    low, high, objects = np.array(ranges, np.float64).T
    places = random.choice(len(low), count, p=objects / objects.sum()).astype(np.int32)
    ratios = np.maximum(high, 1) / np.maximum(low, 1)
    drawn = ratios[places] ** random.random(count)
    drawn *= low[places]
    return np.asarray(drawn)


def map_range_bytes(traffic: Traffic) -> npt.NDArray[Any]:
    """Return the bytes that each request for a range moved, in a file: their order may be changed."""
    file = NamelessFile()
    for rows in object_uses.split_into_blocks(len(traffic.requests)):
        requests = traffic.requests.take(rows)
        file.append(requests.moved[requests.is_of("range")])
    return file.map(traffic.requests.moved.dtype, writable=True)


def _find_other_ranges(traffic: Traffic, length: int) -> Iterator[str]:
    """Yield a sentence if ranges are not about as long as those of a scenario, which are all alike."""
    moved = map_range_bytes(traffic)
    mean = float(moved.mean())
    least, most = np.percentile(moved, (5, 95), overwrite_input=True)
    if max(most / length, length / max(least, 1), mean / length) > _SIZE_TOLERANCE:
        yield (
            f"ranges do not fit: they have {format_bytes(round(least))} to {format_bytes(round(most))} (9 of"
            f" 10), {format_bytes(round(mean))} on average, of a scenario all {format_bytes(length)}"
        )


# -- Where -----------------------------------------------------------------------------------------


def _find_other_containers(
    traffic: Traffic, load: FittedLoad, log: _Measured, halves: Sequence[_Measured], used: Ids
) -> Iterator[str]:
    """Yield sentences if requests are for other containers than those of a scenario, which are alike."""
    if (whole := len(traffic.container_counts)) > load.containers:
        yield f"containers do not fit: the log has {whole:,}, a scenario {load.containers:,}"
    elif whole > 1:
        random = np.random.default_rng(3)
        counts = object_uses.count_numbers(used)
        others = max(int(traffic.container_counts.sum()) - len(traffic.used), 0)
        drawn = [_draw_gini(load, counts, others, random) for _ in range(_DRAWS)]
        if _find_excess(log.gini, drawn) > max(_RATIO_TOLERANCE, abs(halves[0].gini - halves[1].gini)):
            yield (
                f"containers do not fit: Gini's coefficient of their requests is {log.gini:.2f}, of a"
                f" scenario's {np.median(drawn):.2f} (0: all have as many)"
            )
    accounts = traffic.account_counts
    most = float(accounts.max() / accounts.sum())
    if 1 - most > _ACCOUNTS_SHARE:
        yield (
            f"accounts do not fit: the log has {len(accounts):,}, of which one has {100 * most:.0f} % of the"
            " requests, a scenario has one"
        )


def _draw_gini(load: FittedLoad, counts: Numbers, others: int, random: np.random.Generator) -> float:
    """Return Gini's coefficient of containers: of the uses of objects, and of so many other requests.

    Objects are in containers in turn, those that are created at random.
    """
    places = random.permutation(np.arange(len(counts), dtype=np.uint32) % np.uint32(load.containers))
    created = min(load.created, len(counts))
    places[:created] = random.integers(load.containers, size=created)
    sums = np.bincount(places, counts, minlength=load.containers).astype(np.int64)
    return find_gini(sums + random.multinomial(others, np.full(load.containers, 1 / load.containers)))
