"""Waits that are as long as a constant of the system: a second crowd of requests, that long later.

A wait of q seconds moves requests to q plus what they take without it, or less where other work is running
meanwhile, as that of the other replicas of a write. So the requests below q/2 tell where the others of the
same operation and size class have to be: in a window from q to q plus their 95th percentile and the timer's
jitter. Where they spread widely it is a lower percentile, so that the window says more of each. A wait is
named where this window

- has four times as many requests as one as wide just below it, and twice as many as one above;
- has more than twice as many as its share of all from q/1.5 to 1.5 q (binomial; Holm over all tests, 0.01);
- has them at several times. A pause of a store or a network delays what all users have under way: it is one
  event, and as long as a timer by chance, however many users there are.

Where no request is faster than q, those of the other operations tell what a request takes. What is true of
one size class alone can be its usual time, so another class must agree where there are several.

The lengths are in one table, each with its name: how long systems wait by default. Sources: Linux
``include/net/tcp.h`` (TCP_DELACK_MIN, TCP_RTO_MIN, TCP_TIMEOUT_INIT, which doubles from the first retry on,
since 6.5 from the fifth: tcp_syn_linear_timeouts), its ``kernel/time/timer.c`` (how late timers are),
resolv.conf(5) (``timeout``), and Swift's sample configuration for its defaults.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from ssbench.base import text_values
from ssbench.base.record import Count, Seconds
from ssbench.scenario.operations import OPERATIONS, OperationKind, OperationTable
from ssbench.statistics.counted_figures import CountedFigures
from ssbench.statistics.latencies import Latencies, merge_latencies


class WaitLength(msgspec.Struct, frozen=True):
    """A length that waits have, and of which requests they can be part."""

    seconds: float
    jitter: float  # seconds that a wait may be longer
    name: str
    advice: str
    connecting: bool = False  # it is in connecting, not in the request after that
    reads: bool = True  # it can be part of reads
    writes: bool = True  # it can be part of writes
    #: Name it even where every request waits and nothing faster shows how long they take without: no round
    #: trip is that long.
    alone: bool = True
    shared: bool = False  # all that begin during it wait for its end, those that begin later for less


#: The kernel's wheel of timers has coarser steps for longer ones: one of a second is late by up to 32 ms with
#: 250 ticks a second, by up to 64 ms with 1,000; and so is each of several in a row.
_LATE_SHARE = 0.065

_LOST_SYN_NAME = "a lost SYN that was sent again"
_SYN_ADVICE = (
    "look at full listen queues (nstat TcpExtListenOverflows, backlog of the server) and at dropped packets"
)

WAIT_LENGTHS = (
    WaitLength(
        0.04,
        0.009,  # two jiffies of 4 ms
        "Nagle's algorithm with delayed ACK",
        "have servers and load balancers set TCP_NODELAY, or send headers and body together",
        alone=False,
    ),
    WaitLength(
        0.2,
        0.025,  # and what the round trip varies by
        "a TCP retransmission",
        "look at lost packets: nstat TcpRetransSegs, ip -s link, full queues of switches",
        alone=False,
    ),
    WaitLength(
        0.5,
        0.015,
        "post_quorum_timeout or conn_timeout",
        "a replica answers late or its server does not accept connections: see timeouts in the proxies' logs,"
        " and ssbench-master attribute",
        reads=False,
    ),
    WaitLength(
        0.5,
        0.015,
        "conn_timeout or concurrency_timeout",
        "a server of the first replica does not accept connections, or does not answer: see the proxies'"
        " logs, and ssbench-master attribute",
        writes=False,
    ),
    WaitLength(
        1.0,
        0.03,
        "container_update_timeout",
        "a container server does not answer: look for asynchronous pendings (swift-recon --async)",
        reads=False,
    ),
    WaitLength(
        1.0,
        _LATE_SHARE,
        f"{_LOST_SYN_NAME} between the first server and the next",
        _SYN_ADVICE,
        writes=False,
    ),
    *(
        WaitLength(each, _LATE_SHARE * each, _LOST_SYN_NAME, _SYN_ADVICE, connecting=True)
        for each in (1.0, 2.0, 3.0, 7.0)
    ),
    WaitLength(
        5.0,
        0.05,
        "a name server that does not answer",
        "look at the first name servers of /etc/resolv.conf on the workers' hosts, or use addresses",
        connecting=True,
        shared=True,  # by the connections of a worker
    ),
    WaitLength(
        10.0,
        0.1,
        "node_timeout",
        "a storage server hangs: see the proxies' logs for timeouts, and ssbench-master attribute",
    ),
    WaitLength(
        60.0,
        0.3,
        "client_timeout",
        "a proxy waited for the client: look at the network to the workers",
    ),
)


# -- Finding waits ---------------------------------------------------------------------------------


#: What reports call these.
WAITS_TITLE = "Waits as long as a constant of the system"

_SIGNIFICANCE_LEVEL = 0.01
#: Fewer requests than this make no crowd.
_MIN_REQUESTS = 5
#: So many fast requests tell how long requests take.
_MIN_FAST_REQUESTS = 10
#: Times as many as below the window, and as above it.
_STEP_FACTOR, _PEAK_FACTOR = 4, 2
#: Shares of the requests that wait of which the window may be.
_WINDOW_SHARES = (0.95, 0.8, 0.65, 0.5)
#: What requests take without the wait is less than this share of it; else the two cannot be distinguished.
_MAX_USUAL_SHARE = 0.25
#: Where all requests wait, most lie within this share of the length.
_NARROW_SHARE = 0.15
#: Within this one from a length of so many seconds on, where none is shorter and other operations are fast:
#: what requests take without the wait, they take with it as well.
_WIDE_SHARE, _LONG_SECONDS = 0.3, 0.5
#: Where all requests wait, this share of them may not, and this one is no longer than that.
_MAX_OUTSIDE_SHARE, _MIN_INSIDE_SHARE = 0.05, 0.75
#: Fewer pauses than this may all be as long by chance.
_MIN_EVENTS = 4
#: A timer is never early, but the clock that measures may be off by this.
_MAX_EARLY_SECONDS = 0.0005
#: Of so many requests the probability is exact.
_MAX_EXACT_REQUESTS = 200
#: Times and parts of a length within which requests are near it.
_NEAR_FACTOR = 1.5


class Wait(msgspec.Struct, frozen=True):
    """Requests that waited for so long as a timeout of some system takes."""

    seconds: Seconds  # how long
    name: str  # what takes so long
    advice: str  # what to look at
    operation: str  # that of the requests; empty: only all together show it
    connecting: bool  # connections waited, and are what is counted
    requests: Count  # how many waited
    count: Count  # of how many


class _Usual(msgspec.Struct, frozen=True):
    """What requests take without a wait (s).

    Up to ``most`` takes the share of them by which they are best distinguished from others, up to ``tail``
    the most of which that can be said.
    """

    most: float
    tail: float


class _Leaf(msgspec.Struct, frozen=True, eq=False):
    """What one size class of an operation has near a length: requests, and how many by chance at most."""

    operation: OperationKind
    latencies: Latencies
    low: float  # seconds
    high: float  # seconds
    inside: int = 0  # requests that took from ``low`` to ``high``
    below: int = 0
    above: int = 0
    near: int = 0
    chance: float = 0.0
    whole: bool = False


class _Crowd(msgspec.Struct, frozen=True, eq=False):
    """Leaves together, with the probability that they have so many by chance."""

    length: WaitLength
    operation: str
    requests: int
    count: int
    probability: float
    leaves: tuple[_Leaf, ...]
    pooled: bool = False  # of all lengths that one cause has, such as a SYN that is lost several times

    def events(self, users: float) -> int:
        """Return of how many pauses of all ``users`` these requests are at least; 0 where that is not known.

        Each user waits once in a pause, so that more in a second are of several.
        """
        seconds: Counter[int] = Counter()
        for leaf in self.leaves:
            seconds.update(leaf.latencies.by_second.between(leaf.low, leaf.high))
        return sum(math.ceil(requests / users) for requests in seconds.values())


#: Latencies of the requests themselves and of connecting, by operation and size class.
Leaves = Mapping[tuple[int, int], tuple[Latencies, Latencies]]


class _Times:
    """What all lengths are looked for in; what is put together of it is put together once."""

    def __init__(self, leaves: Leaves) -> None:
        self._requests: dict[int, list[Latencies]] = {}
        for (code, _), (request, _) in leaves.items():
            self._requests.setdefault(code, []).append(request)
        self._others: dict[int, Latencies] = {}
        self.connecting = merge_latencies(connecting for _, connecting in leaves.values())

    def classes(self, operation: OperationKind) -> list[Latencies]:
        """Return the latencies of requests of each size class of an operation."""
        return self._requests.get(operation.code, [])

    def requests(self) -> Latencies:
        """Return the latencies of all requests."""
        return self._without(-1)

    def others(self, operation: OperationKind) -> Latencies:
        """Return the latencies of all requests but those of an operation."""
        return self._without(operation.code)

    def _without(self, left_out: int) -> Latencies:
        if left_out not in self._others:
            found = merge_latencies(
                each for code, own in self._requests.items() if code != left_out for each in own
            )
            self._others[left_out] = found
        return self._others[left_out]


def find_waits(
    lengths: Sequence[WaitLength],
    leaves: Mapping[tuple[int, ...], CountedFigures],
    operations: OperationTable,
    users: int,
) -> tuple[Wait, ...]:
    """Return the waits in the successes of a run; ``leaves`` are figures by operation and size class."""
    times = {(key[0], key[1]): (figures.last_attempt, figures.connecting) for key, figures in leaves.items()}
    return find_latency_waits(lengths, times, operations, users)


def find_latency_waits(
    lengths: Sequence[WaitLength],
    leaves: Leaves,
    operations: OperationTable = OPERATIONS,
    users: float = math.inf,
) -> tuple[Wait, ...]:
    """Return the waits of some lengths in latencies of the requests themselves, and of connecting for them.

    ``users`` is how many operations are under way at once, at most.
    """
    times = _Times(leaves)
    tests = [crowd for length in lengths for crowd in _test_crowds(length, times, operations)]
    tests += _test_pooled(lengths, times, operations)
    significant = list(_significant(tests))
    # A pause delays operations of every kind.
    events = {
        crowd.length: max(each.events(users) for each in tests if each.length == crowd.length)
        for crowd in significant
    }
    found = [crowd for crowd in significant if not 0 < events[crowd.length] < _MIN_EVENTS]
    # What single operations show is not said once more of all, nor what single lengths show.
    known = {crowd.length for crowd in found if crowd.operation}
    causes = {crowd.length.name for crowd in found if not crowd.pooled}
    return tuple(
        Wait(
            each.length.seconds,
            f"{each.length.name}, some more than once" if each.pooled else each.length.name,
            each.length.advice,
            each.operation,
            each.length.connecting,
            each.requests,
            each.count,
        )
        for each in tests
        if each in found
        and (each.operation or each.length not in known)
        and not (each.pooled and each.length.name in causes)
    )


def describe_wait(wait: Wait) -> str:
    """Return a wait in words."""
    length = text_values.format_duration(wait.seconds)
    what = "connections" if wait.connecting else f"{wait.operation or 'all'} operations"
    return (
        f"{wait.requests:,} of {wait.count:,} {what} wait {length}, the length of {wait.name}: {wait.advice}"
    )


def _test_crowds(length: WaitLength, times: _Times, operations: OperationTable) -> Iterator[_Crowd]:
    """Yield a test for each operation that can have this wait, and one for all of them.

    Connections do not depend on what is sent over them, so these are only looked at together.
    """
    if length.connecting:
        every = times.connecting
        operation = operations.drawn[0]
        # A user whose request is under way begins to wait for the same answer when that has ended.
        later = _usual_times(times.requests(), length) if length.shared else None
        found = _count_leaf(operation, length, every, lambda: every, later.tail if later else 0.0)
        yield from _test_leaves(length, "", [found] if found else [])
        return
    together: list[_Leaf] = []
    for operation in operations.drawn:
        if not (length.reads if operation.method in ("GET", "HEAD") else length.writes):
            continue
        classes, others = times.classes(operation), partial(times.others, operation)
        found_here = [leaf for each in classes if (leaf := _count_leaf(operation, length, each, others))]
        found_here = _drop_lone_classes(
            found_here, sum(each.count >= 2 * _MIN_FAST_REQUESTS for each in classes)
        )
        yield from _test_leaves(length, operation.name, found_here)
        together += [leaf for leaf in found_here if not leaf.whole]
    if len({leaf.operation for leaf in together}) > 1:
        yield from _test_leaves(length, "", together)


def _test_pooled(
    lengths: Sequence[WaitLength], times: _Times, operations: OperationTable
) -> Iterator[_Crowd]:
    """Yield a test for each cause of several lengths: few connections may have each."""
    every = times.connecting
    causes = Counter(length.name for length in lengths if length.connecting)
    for name in (name for name, count in causes.items() if count > 1):
        own = [length for length in lengths if length.name == name]
        found = [
            leaf for each in own if (leaf := _count_leaf(operations.drawn[0], each, every, lambda: every))
        ]
        parts = [leaf for leaf in found if not leaf.whole]
        for crowd in _test_leaves(own[0], "", parts):
            yield replace(crowd, count=every.count, pooled=True)


def _test_leaves(length: WaitLength, name: str, leaves: list[_Leaf]) -> Iterator[_Crowd]:
    """Put leaves together; nothing where hardly any request is as long."""
    parts = [leaf for leaf in leaves if not leaf.whole]
    near = sum(leaf.near for leaf in parts)
    inside, below, above = (
        sum(getattr(leaf, name) for leaf in parts) for name in ("inside", "below", "above")
    )
    whole = sum(leaf.inside for leaf in leaves if leaf.whole)
    if near < _MIN_REQUESTS and not whole:
        return
    chance = sum(leaf.near * leaf.chance for leaf in parts) / max(near, 1)
    crowded = inside >= max(_MIN_REQUESTS, _STEP_FACTOR * below, _PEAK_FACTOR * above)
    probability = 0.0 if whole else _binomial_tail(near, chance, inside) if crowded else 1.0
    yield _Crowd(
        length,
        name,
        inside * crowded + whole,
        sum(leaf.latencies.count for leaf in leaves),
        probability,
        (*leaves,),
    )


def _count_leaf(
    operation: OperationKind,
    length: WaitLength,
    latencies: Latencies,
    others: Callable[[], Latencies],
    later: float = 0.0,
) -> _Leaf | None:
    """Count what is near a length in one size class; None where nothing can be concluded.

    ``others`` returns the latencies that tell what a request takes where none here is fast. Some wait for
    less, as they began up to ``later`` seconds after it did.
    """
    low = length.seconds - later - _MAX_EARLY_SECONDS
    if (
        latencies.maximum <= _MAX_USUAL_SHARE * length.seconds
    ):  # of most of thousands of leaves; NaN without any
        return _Leaf(operation, latencies, low, low) if latencies.count >= _MIN_FAST_REQUESTS else None
    usual = _usual_times(latencies, length)
    if usual is None:
        return _test_whole(operation, length, latencies, others)
    high, tail = (length.seconds + each + length.jitter for each in (usual.most, usual.tail))
    width = high - low
    return _Leaf(
        operation,
        latencies,
        low,
        high,
        inside=latencies.between(low, high),
        below=latencies.between(low - width, low),
        above=latencies.between(tail, tail + width),
        near=latencies.between(length.seconds / _NEAR_FACTOR, length.seconds * _NEAR_FACTOR),
        chance=_chance_share(length, width),
    )


def _test_whole(
    operation: OperationKind, length: WaitLength, latencies: Latencies, others: Callable[[], Latencies]
) -> _Leaf | None:
    """Test whether all requests are about that long, which no usual time is by chance."""
    fast = latencies.between(0.0, length.seconds / 2)
    count = latencies.count - fast
    if count < 2 * _MIN_FAST_REQUESTS or fast > max(_MIN_FAST_REQUESTS, _MAX_OUTSIDE_SHARE * count):
        return None
    if not length.alone and _usual_times(others(), length) is None:
        return None
    if (
        latencies.between(length.seconds / 2, length.seconds - _MAX_EARLY_SECONDS)
        > _MAX_OUTSIDE_SHARE * count
    ):
        return None
    low = length.seconds - _MAX_EARLY_SECONDS
    is_long = length.seconds >= _LONG_SECONDS and not latencies.between(0.0, low)
    narrow = _WIDE_SHARE if is_long and _usual_times(others(), length) is not None else _NARROW_SHARE
    high = length.seconds + max(narrow * length.seconds, length.jitter)
    inside = latencies.between(low, high)
    return (
        _Leaf(operation, latencies, low, high, inside, whole=True)
        if inside >= _MIN_INSIDE_SHARE * count
        else None
    )


def _usual_times(latencies: Latencies, length: WaitLength) -> _Usual | None:
    """Return what requests take without a wait.

    None where half of them take so long that those that wait cannot be distinguished.
    """
    fast = latencies.between(0.0, length.seconds / 2)
    if fast < _MIN_FAST_REQUESTS:
        return None
    times = [(rank, latencies.smallest(max(1, round(rank * fast)))) for rank in _WINDOW_SHARES]
    times = [(rank, most) for rank, most in times if most <= _MAX_USUAL_SHARE * length.seconds]
    if not times:
        return None
    _, most = max(
        times, key=lambda each: _information(each[0], _chance_share(length, each[1] + length.jitter))
    )
    return _Usual(most, max(most for _, most in times))


def _chance_share(length: WaitLength, width: float) -> float:
    """Return which share of the requests near a length a window of this width has by chance, at most."""
    return min(1.0, 2 * width / (length.seconds * (_NEAR_FACTOR - 1 / _NEAR_FACTOR)))


def _information(share: float, chance: float) -> float:
    """Return how much each request says about a window that has this share of them, in place of the other."""
    if share <= chance:
        return 0.0
    rest = (1 - share) * math.log((1 - share) / (1 - chance)) if share < 1 else 0.0
    return share * math.log(share / chance) + rest


def _drop_lone_classes(leaves: list[_Leaf], classes: int) -> list[_Leaf]:
    """Leave out whole size classes where only one of several ``classes`` is as long."""
    alone = classes > 1 and sum(leaf.inside >= _MIN_REQUESTS for leaf in leaves) == 1
    return [leaf for leaf in leaves if not (alone and leaf.whole)]


def _significant(tests: list[_Crowd]) -> Iterable[_Crowd]:
    """Yield those that chance does not explain, by Holm's method."""
    ordered = sorted(tests, key=lambda crowd: crowd.probability)
    for place, crowd in enumerate(ordered):
        if crowd.probability * (len(ordered) - place) >= _SIGNIFICANCE_LEVEL:
            return
        yield crowd


def _binomial_tail(trials: int, chance: float, least: int) -> float:
    """Return the probability of ``least`` or more successes; an upper bound for many (Chernoff)."""
    if least <= trials * chance:
        return 1.0
    if trials <= _MAX_EXACT_REQUESTS:
        terms = (
            math.comb(trials, count) * chance**count * (1 - chance) ** (trials - count)
            for count in range(least, trials + 1)
        )
        return math.fsum(terms)
    return math.exp(-trials * _information(least / trials, chance))
