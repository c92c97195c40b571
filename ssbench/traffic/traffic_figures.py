"""What users do, in figures: a row of a table for each, all computed from the columns of a log."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from ssbench.base.errors import UsageError
from ssbench.base.text_values import format_bytes, format_duration
from ssbench.document.units import DASH
from ssbench.logs.column_files import NamelessFile
from ssbench.logs.logged_requests import (
    FIRST_FAILURE,
    KINDS_IN_CONTAINERS,
    MAX_DAYS,
    READING_KINDS,
    REQUEST_KINDS,
    RequestColumns,
)
from ssbench.traffic import object_uses
from ssbench.traffic.object_uses import Floats, Ids, Numbers, ObjectUses
from ssbench.traffic.retries import FIRST_SERVER_ERROR, MAX_RETRY_SECONDS, find_retries

#: Requests of each second of a log, of any width: there may be too many seconds for the memory.
Rates = npt.NDArray[np.integer[Any]]
#: A log that is shorter is one moment: many say no smaller part of a second.
_LEAST_SECONDS = 1e-3
#: Shares of all objects that caches have room for.
CACHE_SHARES = (0.001, 0.01, 0.1, 0.3)
_SIZE_RANKS = (5, 25, 50, 75, 95)
_HOT_SHARE = 0.01
_CLIENT_GONE = 499
#: Seconds.
MINUTE = 60
#: The unit of values: a share is a part of 1, a rate requests a second.
TrafficUnit = Literal["share", "count", "bytes", "ratio", "seconds", "rate"]
SHARE: Final = "share"
COUNT: Final = "count"
BYTES: Final = "bytes"
RATIO: Final = "ratio"
SECONDS: Final = "seconds"
RATE: Final = "rate"


def refuse_wrong_clock(requests: RequestColumns) -> None:
    """Raise UsageError for requests that are too far apart."""
    began = requests.began
    if len(began) and began[-1] - began[0] > MAX_DAYS * 86_400:
        first, last = (time.strftime("%Y-%m-%d", time.gmtime(each)) for each in began[[0, -1]])
        raise UsageError(
            f"the first request of the log began on {first}, the last one on {last}: at most {MAX_DAYS}"
            " days are possible (leave out lines of a wrong clock, or take a part of the log)"
        )


class Traffic:
    """A log's requests, with what several figures need of them."""

    def __init__(self, requests: RequestColumns) -> None:
        """Raise UsageError for requests that are too far apart."""
        refuse_wrong_clock(requests)
        self.requests = requests

    @cached_property
    def objects(self) -> ObjectUses:
        """The requests for objects."""
        return object_uses.find_object_uses(self.requests)

    def count_new_objects(self) -> int:
        """Return how many uploads are of objects that were not there, as far as the log tells."""
        return int(np.count_nonzero(self.objects.creates))

    def level_first_uploads(self) -> Traffic:
        """Return the same with :func:`.object_uses.level_first_uploads` of its objects."""
        level = object_uses.level_first_uploads(self.objects, self.requests)
        if level is self.objects:
            return self
        found = Traffic(self.requests)
        found.objects = level
        return found

    @cached_property
    def used(self) -> Ids:
        """The objects of all uses, in their order."""
        return self.objects.used

    @cached_property
    def counts(self) -> Numbers:
        """How often each object is used."""
        return object_uses.count_numbers(self.used)

    @cached_property
    def seconds(self) -> float:
        """How long the log is, in seconds; NaN: it is one moment, and has no rate."""
        began = self.requests.began
        seconds = float(began[-1] - began[0]) if len(began) else 0.0
        return seconds if seconds >= _LEAST_SECONDS else float("nan")

    def format_seconds(self) -> str:
        """Return in words how long the log is."""
        return "one moment" if math.isnan(self.seconds) else format_duration(self.seconds)

    @cached_property
    def known_sizes(self) -> Numbers:
        """The sizes of objects, of those that are known."""
        sizes = self.objects.sizes
        return sizes[sizes >= 0]

    @cached_property
    def sizes_by_use(self) -> tuple[Numbers, Numbers]:
        """The known sizes of objects with uses, ascending, and the uses up to each."""
        sizes = self.objects.used_sizes
        order = np.argsort(sizes, kind="stable")[np.count_nonzero(sizes < 0) :]
        return sizes[order], self.counts[order].cumsum()

    @cached_property
    def hit_ratios(self) -> list[float]:
        """The hit ratios of caches for :data:`CACHE_SHARES` of the objects."""
        return object_uses.find_hit_ratios(self.used, np.ones(len(self.objects.used_sizes)), CACHE_SHARES)

    @cached_property
    def byte_hit_ratios(self) -> list[float]:
        """The same by bytes."""
        sizes = np.maximum(self.objects.used_sizes.astype(np.float64), 0.0)
        return object_uses.find_hit_ratios(self.used, sizes, CACHE_SHARES)

    @cached_property
    def lifetimes(self) -> Floats:
        """The seconds from upload to delete of objects that were uploaded and deleted in the log."""
        return self.objects.lifetimes

    @cached_property
    def rates(self) -> Rates:
        """Requests in each second from the first request on; the last second is not whole."""
        began = self.requests.began
        rates = NamelessFile().make_zeros(np.dtype(np.uint32), int(began[-1] - began[0]) + 1)
        for rows in object_uses.split_into_blocks(len(began)):
            # Only seconds with requests: those between them may be many.
            seconds, own = np.unique((began[rows] - began[0]).astype(np.int64), return_counts=True)
            rates[seconds] += own.astype(np.uint32)
        return rates

    @cached_property
    def retries(self) -> Numbers:
        """The rows of requests that were made because others had failed."""
        return find_retries(self.requests)

    @cached_property
    def demand_rates(self) -> Rates:
        """The rates without retries."""
        if not len(self.retries):
            return self.rates
        began = self.requests.began
        rates = NamelessFile().make_zeros(self.rates.dtype, len(self.rates))
        for rows in object_uses.split_into_blocks(len(rates)):
            rates[rows] = self.rates[rows]
        for rows in object_uses.split_into_blocks(len(self.retries)):
            moments = began[self.retries[rows]] - began[0]
            seconds, own = np.unique(moments.astype(np.int64), return_counts=True)
            rates[seconds] -= own.astype(np.uint32)
        return rates

    @cached_property
    def usual_rates(self) -> Rates:
        """The rates of all whole seconds but those of a surge, without retries."""
        rates = self.demand_rates[:-1]
        surge = find_surge(rates)
        if math.isinf(surge):
            return rates
        file = NamelessFile()
        for rows in object_uses.split_into_blocks(len(rates)):
            file.append(rates[rows][rates[rows] < surge])
        return file.map(rates.dtype)

    @cached_property
    def mean_latency(self) -> float:
        """How long requests took on average, in seconds; NaN: not known of any."""
        total, count = 0.0, 0
        for rows in object_uses.split_into_blocks(len(self.requests)):
            own = self.requests.seconds[rows]
            known = own[~np.isnan(own)]
            total, count = total + float(known.sum(dtype=np.float64)), count + len(known)
        return total / count if count else float("nan")

    @cached_property
    def statuses(self) -> Numbers:
        """How many requests have each status, from 0 on."""
        return object_uses.count_numbers(self.requests.status)

    @cached_property
    def kinds(self) -> Numbers:
        """How many requests are of each of :data:`REQUEST_KINDS` up to the last that there is."""
        return object_uses.count_numbers(self.requests.kind)

    @cached_property
    def container_counts(self) -> Numbers:
        """How many requests each container has that went well, also for objects in it."""
        return _count_each(self.requests, "container", KINDS_IN_CONTAINERS)

    @cached_property
    def account_counts(self) -> Numbers:
        """How many requests each account has that went well."""
        return _count_each(self.requests, "account")

    def split(self) -> Iterator[Traffic]:
        """Yield both halves of the log, so that what is known of one need not be kept for the other."""
        middle = len(self.requests) // 2
        for half in (slice(0, middle), slice(middle, None)):
            yield Traffic(self.requests.take(half))


@dataclass(frozen=True, slots=True)
class TrafficFigure:
    """A figure of a log; NaN where it has none."""

    title: str
    unit: TrafficUnit
    value: Callable[[Traffic], float]

    def format(self, value: float) -> str:
        """Return a value in words."""
        if math.isnan(value):
            return DASH
        match self.unit:
            case "share":
                return f"{100 * value:.2f} %"
            case "count" | "rate":
                return f"{value:.3g}" if self.unit == RATE and value < 99.95 else f"{value:,.0f}"
            case "bytes":
                return format_bytes(round(value))
            case "seconds":
                return f"{value:,.3f} s" if value < 1 else f"{value:,.1f} s"
        return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"

    def distance(self, one: float, other: float) -> float:
        """Return how far two values are apart: by difference, or relative to ``one``."""
        if self.unit in (SHARE, RATIO):
            return other - one
        return other / one - 1 if one else float("nan")

    def format_distance(self, distance: float) -> str:
        """Return a distance in words."""
        if math.isnan(distance):
            return DASH
        if self.unit == SHARE:
            return f"{100 * distance:+.2f} points"
        return f"{distance:+.3f}" if self.unit == RATIO else f"{100 * distance:+.1f} %"


def _status_share(low: int, high: int) -> Callable[[Traffic], float]:
    """Return the share of requests with a status from ``low`` to below ``high``."""

    return lambda traffic: float(traffic.statuses[low:high].sum() / len(traffic.requests))


def _kind_share(kind: str) -> Callable[[Traffic], float]:
    code = REQUEST_KINDS.index(kind)
    return lambda traffic: float(traffic.kinds[code : code + 1].sum() / len(traffic.requests))


def _percentile(of: Callable[[Traffic], Numbers | Floats], rank: float) -> Callable[[Traffic], float]:
    """Return a percentile of values, whose order changes: a copy of them may need too much memory."""

    def find(traffic: Traffic) -> float:
        values = of(traffic)
        return float(np.percentile(values, rank, overwrite_input=True)) if len(values) else float("nan")

    return find


def _use_percentile(rank: int) -> Callable[[Traffic], float]:
    """Return a percentile of the sizes of objects, each as often as it is used."""

    def find(traffic: Traffic) -> float:
        sizes, ends = traffic.sizes_by_use
        if not len(sizes):
            return float("nan")
        place, part = divmod((int(ends[-1]) - 1) * (rank / 100), 1)
        low, high = (
            float(sizes[np.searchsorted(ends, min(each, ends[-1] - 1), "right")])
            for each in (place, place + 1)
        )
        # As NumPy rounds it.
        return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)

    return find


def _hit_ratio(place: int, *, by_bytes: bool) -> Callable[[Traffic], float]:
    return lambda traffic: (traffic.byte_hit_ratios if by_bytes else traffic.hit_ratios)[place]


def find_gini(values: Numbers) -> float:
    """Return Gini's coefficient of numbers of 0 or more: 0 where all are equal; NaN without any."""
    total = float(values.sum())
    if not total:
        return float("nan")
    ordered = np.sort(values).astype(np.float64)
    places = np.arange(1, len(ordered) + 1)
    return float((2 * (places * ordered).sum() / total - (len(ordered) + 1)) / len(ordered))


def _find_mean_uses(traffic: Traffic) -> float:
    return len(traffic.used) / len(traffic.counts) if len(traffic.counts) else float("nan")


def _container_gini(traffic: Traffic) -> float:
    return find_gini(traffic.container_counts)


def _count_each(requests: RequestColumns, column: str, kinds: Sequence[str] = REQUEST_KINDS) -> Numbers:
    """Return how often there are those values of a column that requests of some kinds have that went well.

    Others may name what does not exist: those of who looks for weak spots name thousands.
    """
    keys, counts = object_uses.NumberedKeys(), np.zeros(0, np.int64)
    for rows in object_uses.split_into_blocks(len(requests)):
        part = requests.take(rows)
        values = getattr(part, column)[(part.status < FIRST_FAILURE) & part.is_of(*kinds)]
        numbers = keys.number(values.astype(np.int64))
        counts = np.pad(counts, (0, len(keys) - len(counts)))
        counts += np.bincount(numbers, minlength=len(counts))
    return counts


def find_dispersion(traffic: Traffic, window: int) -> float:
    """Return what :func:`measure_dispersion` does of a log."""
    return measure_dispersion(traffic.rates[:-1], window)


def measure_dispersion(rates: Rates, window: int) -> float:
    """Return the variance of the number of requests in windows of so many seconds over its mean; NaN of few.

    ``rates`` are requests of each second. For a window of a second that is within minutes, so that what the
    rate does from one to the next is not in it. 1: as many independent users do it (Poisson).
    """
    if window == 1 and len(rates) >= 2 * MINUTE:
        minutes = rates[: len(rates) // MINUTE * MINUTE].reshape(-1, MINUTE)
        mean = float(minutes.mean())
        variances = [
            minutes[rows].var(axis=1, ddof=1) for rows in object_uses.split_into_blocks(len(minutes), MINUTE)
        ]
        return float(np.concatenate(variances).mean() / mean) if mean else float("nan")
    numbers = sum_windows(rates, window)
    if len(numbers) < _MIN_WINDOWS or not numbers.mean():
        return float("nan")
    return float(numbers.var(ddof=1) / numbers.mean())


def sum_windows(rates: Rates, window: int) -> Numbers:
    """Return the requests in windows of so many seconds; those behind the last whole one are left out."""
    sums: Numbers = rates[: len(rates) // window * window].reshape(-1, window).sum(axis=1, dtype=np.int64)
    return sums


def find_surge(rates: Rates) -> float:
    """Return the number of requests from which on a second is of a surge; infinity: there is none.

    Its seconds are few, with most of the variance, and less than half of the requests: it is one event, such
    as the upload of what is used later, and says nothing of how users arrive.
    """
    if len(rates) < _MIN_WINDOWS:
        return math.inf
    seconds = object_uses.count_numbers(rates)  # with each number of requests
    numbers = np.flatnonzero(seconds)
    seconds = seconds[numbers]
    middles = (len(rates) - 1) // 2, len(rates) // 2
    median = float(np.mean(numbers[seconds.cumsum().searchsorted(middles, "right")]))
    squares = (numbers - median) ** 2
    farthest = np.argsort(-squares, kind="stable")
    # A twentieth of the seconds with requests: of a log with few it could be all of these.
    most = max(int(seconds[numbers > 0].sum()) // 20, 1)
    ends = seconds[farthest].cumsum()
    own = np.minimum(seconds[farthest], np.maximum(most - (ends - seconds[farthest]), 0))
    is_event = (own * squares[farthest]).sum() >= _SURGE_VARIANCE * (seconds * squares).sum() > 0
    if not is_event or 2 * (own * numbers[farthest]).sum() > (seconds * numbers).sum():
        return math.inf
    usual = float(squares[farthest[ends.searchsorted(most, "right")]])
    least = median + _SURGE_DEVIATIONS * math.sqrt(max(median, 1.0))
    are_more = numbers[(numbers > least) & (squares > _SURGE_DISTANCE**2 * usual)]
    return float(are_more[0]) if len(are_more) else math.inf


#: A surge has this share of the variance of seconds at least; of bursts a twentieth of them has a third.
_SURGE_VARIANCE = 0.8
#: Its seconds are this many times as far from the median as any other, and this many standard deviations of
#: chance above it: where arrivals are even, one request more has all of the variance.
_SURGE_DISTANCE, _SURGE_DEVIATIONS = 2.0, 6.0

#: Fewer windows have no dispersion.
_MIN_WINDOWS = 10


def _peak_ratio(traffic: Traffic) -> float:
    minutes = sum_windows(traffic.rates, MINUTE)
    return float(minutes.max() / minutes.mean()) if len(minutes) > 1 else float("nan")


def _concurrency(traffic: Traffic) -> float:
    return traffic.mean_latency * len(traffic.requests) / traffic.seconds


def find_listing_order(traffic: Traffic) -> float:
    """Return the share of reads of objects behind the one read before in its container; NaN without reads."""
    requests, own = traffic.requests, traffic.objects.rows
    rises = reads = 0
    for block in object_uses.split_into_blocks(len(own)):
        rows = own[block]
        part = requests.take(slice(rows[0], rows[-1] + 1))
        of_reads = part.is_of(*READING_KINDS)[rows - rows[0]]
        reads += int(of_reads.sum())
        rises += int(part.rises[rows - rows[0]][of_reads].sum())
    return rises / reads if reads else float("nan")


#: Fewer reads in a row are no scan.
SCAN_READS = 10
#: So many times as much as a row of a log is in memory for each.
_SCAN_WIDTH = 4
#: What is read before so many objects are uploaded after it is in the order of uploads, whatever its name is.
_SOON_READ = 20


def find_scan_share(traffic: Traffic) -> float:
    """Return the share of reads in runs of :data:`SCAN_READS` or more in listing order; NaN without reads.

    A run has successive reads of a container, each of a name behind the one before. Of ten random ones chance
    makes a run in 1 of 3.6 million cases (10!). Repeated reads of an object are one step (HEAD, then GET).
    The first read of an object soon after its upload ends a run: objects that are named by time are read in
    the order of their names then, but it is that of their uploads, which a scenario has too. If the newest
    have the first names, any other is behind them.
    """
    requests, own = traffic.requests, traffic.objects
    never = -_SOON_READ - 1
    born, uploads, reads, found = np.full(len(own.sizes), never), 0, 0, 0
    keys, latest = object_uses.NumberedKeys(), np.zeros(0, np.int64)
    # Of the run of each container that has not ended: its steps and its reads.
    steps, lengths = np.zeros((2, 0), np.int64)
    for block in object_uses.split_into_blocks(len(own.ids), _SCAN_WIDTH):
        ids, creates, part = own.ids[block], own.creates[block], requests.take(own.rows[block])
        so_far = uploads + creates.cumsum()
        uploads = int(so_far[-1])
        since = so_far - object_uses.look_back(born, ids, np.where(creates, so_far, never))
        rows = np.flatnonzero(part.is_of(*READING_KINDS))
        reads += len(rows)
        if not len(rows):
            continue
        places = keys.number(part.container[rows].astype(np.int64))
        more = len(keys) - len(latest)
        latest = np.pad(latest, (0, more), constant_values=-1)
        steps, lengths = np.pad(steps, (0, more)), np.pad(lengths, (0, more))
        is_new = since[rows] <= _SOON_READ
        is_again = object_uses.look_back(latest, places, ids[rows]) == ids[rows]
        is_step = ~is_again & ~is_new
        goes_on = ~is_new & (part.rises[rows] | is_again)
        order = np.argsort(places, kind="stable")
        places, goes_on = places[order], goes_on[order]
        are_first = np.diff(places, prepend=-1) != 0
        begins = np.flatnonzero(are_first | ~goes_on)
        own_steps = np.add.reduceat(is_step[order].astype(np.int64), begins)
        own_lengths = np.add.reduceat((~is_new[order]).astype(np.int64), begins)
        of, are_first, goes_on = places[begins], are_first[begins], goes_on[begins]
        ended = of[are_first & ~goes_on]
        found += int(lengths[ended][steps[ended] >= SCAN_READS].sum())
        longer = np.flatnonzero(are_first & goes_on)
        own_steps[longer] += steps[of[longer]]
        own_lengths[longer] += lengths[of[longer]]
        are_last = np.append(are_first[1:], True)
        found += int(own_lengths[~are_last & (own_steps >= SCAN_READS)].sum())
        steps[of[are_last]], lengths[of[are_last]] = own_steps[are_last], own_lengths[are_last]
    found += int(lengths[steps >= SCAN_READS].sum())
    return found / reads if reads else float("nan")


def _make_figures() -> Iterator[TrafficFigure]:
    yield TrafficFigure("requests a second", RATE, lambda traffic: len(traffic.requests) / traffic.seconds)
    for kind in REQUEST_KINDS:
        yield TrafficFigure(f"{kind}", SHARE, _kind_share(kind))
    yield TrafficFigure(
        "not modified (304)", SHARE, _status_share(HTTPStatus.NOT_MODIFIED, HTTPStatus.NOT_MODIFIED + 1)
    )
    yield TrafficFigure(
        "not found (404)", SHARE, _status_share(HTTPStatus.NOT_FOUND, HTTPStatus.NOT_FOUND + 1)
    )
    yield TrafficFigure("client gone (499)", SHARE, _status_share(_CLIENT_GONE, _CLIENT_GONE + 1))
    yield TrafficFigure("failed (4xx, 5xx)", SHARE, _status_share(FIRST_FAILURE, 1000))
    yield TrafficFigure("failed (5xx)", SHARE, _status_share(FIRST_SERVER_ERROR, 1000))
    yield TrafficFigure(
        f"retries within {MAX_RETRY_SECONDS:g} s of a failure",
        SHARE,
        lambda traffic: len(traffic.retries) / len(traffic.requests),
    )
    for rank in _SIZE_RANKS:
        yield TrafficFigure(
            f"size of objects, p{rank}", BYTES, _percentile(lambda each: each.known_sizes, rank)
        )
    for rank in _SIZE_RANKS:
        yield TrafficFigure(f"size by use, p{rank}", BYTES, _use_percentile(rank))
    yield TrafficFigure("objects", COUNT, lambda each: len(each.objects.sizes))
    yield TrafficFigure("uploads of new objects", COUNT, Traffic.count_new_objects)
    yield TrafficFigure("uses of an object", RATIO, _find_mean_uses)
    yield TrafficFigure(
        "uses of the hottest 1 %", SHARE, lambda each: object_uses.find_top_share(each.counts, _HOT_SHARE)
    )
    yield TrafficFigure("Zipf exponent", RATIO, lambda each: object_uses.find_zipf_exponent(each.counts))
    for by_bytes in (False, True):
        for place, share in enumerate(CACHE_SHARES):
            what = "bytes" if by_bytes else "objects"
            yield TrafficFigure(
                f"hit ratio by {what}, {100 * share:g} % cached", RATIO, _hit_ratio(place, by_bytes=by_bytes)
            )
    yield TrafficFigure("in listing order", SHARE, find_listing_order)
    yield TrafficFigure("containers", COUNT, lambda each: len(each.container_counts))
    yield TrafficFigure("Gini of containers", RATIO, _container_gini)
    yield TrafficFigure("accounts", COUNT, lambda each: len(each.account_counts))
    yield TrafficFigure("peak minute over mean", RATIO, _peak_ratio)
    yield TrafficFigure("dispersion at 1 s", RATIO, lambda each: find_dispersion(each, 1))
    yield TrafficFigure("dispersion at 60 s", RATIO, lambda each: find_dispersion(each, 60))
    yield TrafficFigure("lifetime, median", SECONDS, _percentile(lambda each: each.lifetimes, 50))
    yield TrafficFigure(
        "upload to first use, median", SECONDS, _percentile(lambda each: each.objects.first_uses, 50)
    )
    yield TrafficFigure("requests at once (Little)", RATIO, _concurrency)


TRAFFIC_FIGURES = tuple(_make_figures())


def compute_figures(traffic: Traffic, progress: Callable[[], object] = lambda: None) -> list[float]:
    """Return the values of :data:`TRAFFIC_FIGURES`; without any request there are none: NaN.

    ``progress`` is called after each.
    """
    if not len(traffic.requests):
        return [float("nan")] * len(TRAFFIC_FIGURES)
    values = []
    for figure in TRAFFIC_FIGURES:
        values.append(figure.value(traffic))
        progress()
    return values
