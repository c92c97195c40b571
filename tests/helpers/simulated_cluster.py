"""A simulated cluster: columns as :class:`ssbench.attribution.join.Join` would make them, with a cause.

A read takes the time of one replica. A write waits for all three before the data is sent and again at its
end, as a proxy of Swift does (up to 0.5 s beyond the quorum, which nothing here exceeds), so that the
servers' own times are coupled up to the data's arrival and differ by what they do after it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from ssbench.attribution.joined import OBJECT, Device, Joined, Lines, Operations, Process
from ssbench.operations import CREATE, READ

#: The part of a server's time of a write that passes before the data has arrived.
_ARRIVAL = 0.6


@dataclass(frozen=True)
class Cause:
    """What is wrong: a delay in seconds, on a share of the requests of devices, a node or a proxy."""

    devices: tuple[int, ...] = ()
    proxy: int | None = None
    seconds: float = 0.03
    share: float = 1.0
    only_writes: bool = False
    #: The server's own log shows the delay: it is not before its clock starts.
    logged: bool = True
    #: The delay is in writes only, where the object is put in its place after the data has arrived.
    commit: bool = False
    #: A large object that makes up this share of all requests, on device 0.
    hot: float = 0.0


@dataclass(frozen=True)
class Shape:
    devices: int = 60
    nodes: int = 5
    proxies: int = 2
    requests: int = 3000
    objects: int = 1000
    writes: float = 0.3
    median: float = 0.03
    sigma: float = 0.6
    fixed: list[int] = field(default_factory=list)


def simulate(seed: int, cause: Cause, shape: Shape) -> Joined:
    random = np.random.default_rng(seed)
    n = shape.requests
    write = random.random(n) < shape.writes
    subject = np.where(write, shape.objects + np.arange(n), random.integers(0, shape.objects, n))
    sizes = np.exp2(random.uniform(12, 15, shape.objects + n)) * np.where(
        random.random(shape.objects + n) < 0.1, 8, 1
    )
    placed = _replicas(random, shape, shape.objects + n)
    if cause.hot:
        hot = random.random(n) < cause.hot
        subject[hot & ~write] = 0
        sizes[0] = 8 * 2**15
        placed[0] = [0, *random.choice(np.arange(1, shape.devices), 2, replace=False)]
    size, replicas = sizes[subject].astype(np.int64), placed[subject]
    proxy = random.integers(0, shape.proxies, n)
    one = replicas[np.arange(n), random.integers(0, 3, n)]
    own = random.lognormal(np.log(shape.median / 3), shape.sigma, (n, 3))
    slow = np.isin(replicas, cause.devices) & (random.random((n, 3)) < cause.share)
    slow &= ~(cause.only_writes & ~write)[:, None]
    delay = cause.seconds * slow
    opened = _ARRIVAL * own + size[:, None] * 2e-7 + (0 if cause.commit else delay)
    committed = (1 - _ARRIVAL) * own + (delay if cause.commit else 0)
    ended = opened.max(1, keepdims=True) + committed
    served = opened + committed - (delay if cause.commit else 0)
    rest = random.lognormal(np.log(shape.median / 2), shape.sigma, n)
    if cause.proxy is not None:
        rest += cause.seconds * (proxy == cause.proxy) * (random.random(n) < cause.share)
    read_at = np.argmax(replicas == one[:, None], axis=1)
    backend = np.where(write, ended.max(1), served[np.arange(n), read_at])
    latency = rest + backend + size * 2e-7
    where = np.flatnonzero(write)
    reads = np.flatnonzero(~write)
    # A delay before the server's clock starts is in the times of the others, which wait, but not in its own.
    waited = ended[where] * random.uniform(0.95, 1, (len(where), 3))
    waited -= 0 if cause.logged or cause.commit else delay[where]
    read_seconds = backend[reads] - (0 if cause.logged else cause.seconds * slow[reads, read_at[reads]])
    operation = np.concatenate((np.repeat(where, 3), reads))
    device = np.concatenate((replicas[where].ravel(), one[reads]))
    lines = Lines(
        operation=operation,
        device=device,
        process=device % shape.nodes,
        partition=subject[operation] % 1024,
        seconds=np.concatenate((waited.ravel(), read_seconds)),
        status=np.full(len(operation), 201),
        of=np.full(len(operation), OBJECT, np.uint8),
    )
    return Joined(
        operations=Operations(
            code=np.where(write, CREATE.code, READ.code).astype(np.uint8),
            size=size,
            latency=latency,
            subject=subject.astype(np.uint64),
            retries=np.zeros(n, np.int64),
            failed=np.zeros(n, np.bool_),
        ),
        proxies=[f"p{i}" for i in range(shape.proxies)],
        proxy_workers=[f"10.0.0.1 {i}" for i in range(shape.proxies)],
        devices=[Device(f"n{i % shape.nodes}", "object", f"d{i}") for i in range(shape.devices)],
        processes=[Process(f"n{i}", "object", str(i)) for i in range(shape.nodes)],
        partitions=[(0, i) for i in range(1024)],
        proxy=proxy,
        proxy_worker=proxy,
        proxy_seconds=latency - 0.001,
        policy=np.zeros(n, np.int64),
        lines=lines,
        duplicates=0,
        handoffs=np.zeros(n, np.int64),
        errors=Counter(),
        other_errors=Counter(),
        files=[],
        without_id=0,
        began=None,
        ended=None,
    )


def _replicas(random: np.random.Generator, shape: Shape, count: int) -> np.ndarray:
    """Three devices for each object, by partition as a ring has them."""
    ring = np.array([random.choice(shape.devices, 3, replace=False) for _ in range(1024)])
    return ring[np.arange(count) % 1024]
