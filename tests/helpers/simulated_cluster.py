"""A simulated cluster: columns as :class:`ssbench.cluster.join.LogJoin` would make them, with a cause.

Rings are those of swift-ring-builder (:mod:`rings`). A read takes the time of one replica, or of the data
fragments of an erasure code. A write waits for all replicas before the data is sent, and again at its end
up to 0.5 s beyond the quorum, as a proxy of Swift does; so the servers' own times are coupled until the data
arrive and differ by what they do after it. A delete has no data, and its times are not coupled. The object
servers of both tell container servers of it before they answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from joined_runs import joined_run, successes
from rings import ring

from ssbench.cluster.changes import Changes, compare_joined_runs
from ssbench.cluster.joined_run import NO_INDEX, OBJECT, UPDATE, Device, JoinedLines, JoinedRun, Process
from ssbench.cluster.operation_times import READS
from ssbench.scenario.operations import CREATE, DELETE, READ
from ssbench.scenario.operations import UPDATE as OVERWRITE

#: The part of a server's time of a write that passes before the data has arrived.
_ARRIVAL = 0.6
#: How long a proxy waits for the replicas beyond the quorum, and an object server for a container server.
_POST_QUORUM, _UPDATE_TIMEOUT = 0.5, 1.0
_CONTAINERS = 4


@dataclass(frozen=True)
class Cause:
    """What is wrong: a delay in seconds, on a share of the requests of devices, container server or proxy.

    ``where`` is ``open`` (every request, by the server's own clock), ``before`` (its clock starts; of a
    container server too),
    ``commit`` (where a written object is put in its place, or the mark of a delete), or ``body`` (of
    reads, after the line's time). ``only`` is ``reads`` or ``writes``. ``part`` are the shares of the run
    between which it is there. For a proxy it is before its clock with ``before``.
    """

    devices: tuple[int, ...] = ()
    proxy: int | None = None
    container: int | None = None
    seconds: float = 0.03
    share: float = 1.0
    where: str = "open"
    only: str = ""
    part: tuple[float, float] = (0.0, 1.0)
    #: A large object that makes up this share of all requests, on the devices of partition 0.
    hot: float = 0.0
    #: From this share of the run on everything takes so many times as long.
    load: tuple[float, float] = (1.0, 1.0)
    #: A device, and the shares of the run between which another one stands in for it.
    away: tuple[int, float, float] | None = None
    #: A further device, and its delay in seconds.
    also: tuple[int, float] = (NO_INDEX, 0.0)


@dataclass(frozen=True)
class Shape:
    """``ring`` is ``fresh`` or ``grown``; ``deletes`` is a share of the writes; ``rate`` is a second.

    With ``data`` fragments an object is erasure-coded: a read takes so many of the replicas. Servers take
    ``own`` of the median of a request, as on a machine at rest, where real ones take 1 to 5 of 30 ms.
    """

    devices: int = 60
    nodes: int = 5
    proxies: int = 2
    requests: int = 3000
    objects: int = 1000
    writes: float = 0.4
    deletes: float = 0.15
    median: float = 0.03
    sigma: float = 0.6
    own: float = 0.15
    ring: str = "grown"
    replicas: int = 3
    data: int = 0
    containers: int = 3
    rate: float = 50.0


@dataclass(frozen=True)
class Requests:
    """What is asked of which replicas; ``read_from`` are the replicas that a read is of."""

    code: np.ndarray
    subject: np.ndarray
    size: np.ndarray
    replicas: np.ndarray
    proxy: np.ndarray
    read_from: np.ndarray

    @property
    def reads(self) -> np.ndarray:
        found: np.ndarray = self.code == READ.code
        return found


def simulate(seed: int, cause: Cause, shape: Shape) -> JoinedRun:
    random = np.random.default_rng(seed)
    asked = _requests(random, cause, shape)
    count, width = asked.replicas.shape
    moment = np.arange(count) / count
    there = (moment >= cause.part[0]) & (moment < cause.part[1]) & (random.random(count) < cause.share)
    if cause.only:
        there &= asked.reads == (cause.only == "reads")
    more = cause.seconds * np.isin(asked.replicas, cause.devices)
    more = (more + cause.also[1] * (asked.replicas == cause.also[0])) * there[:, None]
    load = np.where(moment >= cause.load[0], cause.load[1], 1.0)
    own = random.lognormal(np.log(shape.median * shape.own), shape.sigma, (count, width)) * load[:, None]
    transfer = (asked.size * 2e-7 * load)[:, None]
    delay = {where: more * (cause.where == where) for where in ("open", "before", "commit", "body")}
    updated, updates = _updates(random, cause, shape, asked)
    updates *= load[:, None]
    told_slow = cause.seconds * (
        there[:, None] & (updated == (-1 if cause.container is None else cause.container))
    )
    waited_for_update = np.minimum(updates + told_slow, _UPDATE_TIMEOUT)
    updates += told_slow * (cause.where != "before")
    opened = _ARRIVAL * own + delay["open"]
    finished = (1 - _ARRIVAL) * own + delay["commit"] + waited_for_update
    # Of a write, a delete and a read: when a replica ends, and how long that is by its own clock.
    arrival = (delay["before"] + opened + transfer).max(1, keepdims=True)
    ends = {"write": arrival + finished, "delete": delay["before"] + opened + finished}
    ends["read"] = delay["before"] + opened + (1 - _ARRIVAL) * own
    seconds = np.where(asked.reads[:, None], ends["read"], ends["write"])
    deletes = asked.code == DELETE.code
    seconds[deletes] = ends["delete"][deletes]
    logged = seconds - delay["before"]
    quorum = np.sort(seconds, 1)[:, width // 2 if not shape.data else shape.data]
    backend = np.minimum(seconds.max(1), quorum + _POST_QUORUM)
    with_body = np.where(asked.read_from, seconds + delay["body"], 0).max(1) + transfer[:, 0]
    backend = np.where(asked.reads, with_body, backend)
    proxy_own = random.lognormal(np.log(shape.median / 2), shape.sigma, count) * load
    way = random.lognormal(np.log(shape.median / 6), shape.sigma, count) * load
    if cause.proxy is not None:
        more = cause.seconds * (there & (asked.proxy == cause.proxy))
        way, proxy_own = (way + more, proxy_own) if cause.where == "before" else (way, proxy_own + more)
    in_proxy = backend + proxy_own
    return joined_run(
        successes(asked.code, asked.size, way + in_proxy, asked.subject, rate=shape.rate),
        *_lines(shape, asked, logged, updated, updates),
        [f"p{i}" for i in range(shape.proxies)],
        asked.proxy,
        in_proxy,
    )


def fail_reads(joined: JoinedRun, chosen: np.ndarray, share: float) -> JoinedRun:
    """Have a share of the reads fail that some lines are of."""
    random = np.random.default_rng(77)
    operations = joined.operations
    served = np.zeros(len(operations.code), np.bool_)
    served[joined.lines.operation[chosen]] = True
    failed = served & READS[operations.code] & (random.random(len(served)) < share)
    latency = np.where(failed, np.nan, operations.latency)
    return replace(joined, operations=replace(operations, failed=failed, latency=latency))


def changes_of(before: Cause, after: Cause, shape: Shape | None = None, seed: int = 1) -> Changes:
    """Return what changed from one run to another of the same cluster."""
    shape = shape or Shape(devices=12, nodes=4, requests=1500, ring="fresh", sigma=0.5)
    runs = (simulate(seed, before, shape), simulate(seed + 1000, after, shape))
    return compare_joined_runs(*runs, ("before.stat.gz", "after.stat.gz"))


def _requests(random: np.random.Generator, cause: Cause, shape: Shape) -> Requests:
    n = shape.requests
    write = random.random(n) < shape.writes
    kind = random.random(n)
    code = np.where(write, CREATE.code, READ.code)
    code[write & (kind < 2 * shape.deletes)] = OVERWRITE.code
    code[write & (kind < shape.deletes)] = DELETE.code
    subject = np.where(write, shape.objects + np.arange(n), random.integers(0, shape.objects, n))
    sizes = np.exp2(random.uniform(12, 15, shape.objects + n)) * np.where(
        random.random(shape.objects + n) < 0.1, 8, 1
    )
    table = ring(shape.devices, shape.nodes, shape.replicas, shape.ring).astype(np.int64)
    placed = random.integers(0, len(table), shape.objects + n)
    if cause.hot:
        hot = random.random(n) < cause.hot
        subject[hot & ~write] = 0
        sizes[0] = 8 * 2**15
    size = np.where(code == DELETE.code, 0, sizes[subject]).astype(np.int64)
    replicas = table[placed[subject]]
    if cause.away:
        _stand_in(random, replicas, shape.devices, *cause.away)
    order = random.random(replicas.shape).argsort(1)
    return Requests(
        code, subject, size, replicas, random.integers(0, shape.proxies, n), order < max(shape.data, 1)
    )


def _stand_in(
    random: np.random.Generator, replicas: np.ndarray, devices: int, away: int, begin: float, end: float
) -> None:
    """Have a handoff, any device that is not one of its own, take the place of a device that is away."""
    moment = np.arange(len(replicas)) / len(replicas)
    for place in np.flatnonzero((replicas == away).any(1) & (moment >= begin) & (moment < end)):
        others = np.setdiff1d(np.arange(devices), replicas[place])
        replicas[place, replicas[place] == away] = random.choice(others)


def _updates(
    random: np.random.Generator, cause: Cause, shape: Shape, asked: Requests
) -> tuple[np.ndarray, np.ndarray]:
    """Return which container server each replica tells, of the container's three, and how long that takes.

    The proxy shuffles them, since it shuffles the object servers.
    """
    count, width = asked.replicas.shape
    place = random.random((count, width)).argsort(1) % 3
    container = asked.subject[:, None] % _CONTAINERS
    who = (place + container * (container % 2)) % shape.containers
    seconds = random.lognormal(np.log(shape.median / 20), shape.sigma, (count, width))
    return who, seconds


def _lines(
    shape: Shape, asked: Requests, logged: np.ndarray, updated: np.ndarray, updates: np.ndarray
) -> tuple[JoinedLines, list[Device], list[Process]]:
    objects = [Device(f"n{i % shape.nodes}", "object", f"d{i}") for i in range(shape.devices)]
    containers = [Device(f"n{i % shape.nodes}", "container", f"c{i}") for i in range(shape.containers)]
    devices = objects + containers
    processes = list(dict.fromkeys(Process(each.node, each.server, "1") for each in devices))
    process_of = np.array([processes.index(Process(each.node, each.server, "1")) for each in devices])
    took_part = ~asked.reads[:, None] | asked.read_from
    operation, replica = np.nonzero(took_part)
    told, by = np.nonzero(np.broadcast_to(~asked.reads[:, None], took_part.shape))
    who = np.concatenate((asked.replicas[operation, replica], shape.devices + updated[told, by]))
    both = np.concatenate((operation, told))
    of = np.repeat(np.array([OBJECT, UPDATE], np.uint8), (len(operation), len(told)))
    lines = JoinedLines(
        operation=both,
        device=who,
        process=process_of[who],
        partition=asked.subject[both] % 1024,
        seconds=np.concatenate((logged[operation, replica], updates[told, by])),
        status=np.full(len(both), 201),
        of=of,
        sender=np.concatenate((np.full(len(operation), NO_INDEX), asked.replicas[told, by])),
    )
    return lines, devices, processes
