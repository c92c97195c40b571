"""A simulated cluster: columns as :class:`ssbench.attribution.join.Join` would make them, with a cause.

A read takes the time of one replica. A write waits for all three before the data is sent and again at its
end, as a proxy of Swift does (up to 0.5 s beyond the quorum, which nothing here exceeds), so that the
servers' own times are coupled up to the data's arrival and differ by what they do after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from joined_runs import joined_run, object_lines, successes

from ssbench.attribution.joined import Device, Joined

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


@dataclass(frozen=True)
class Requests:
    """What is asked of which replicas; ``read_at`` is the replica that a read is of."""

    write: np.ndarray
    subject: np.ndarray
    size: np.ndarray
    replicas: np.ndarray
    proxy: np.ndarray
    read_at: np.ndarray


def simulate(seed: int, cause: Cause, shape: Shape) -> Joined:
    random = np.random.default_rng(seed)
    asked = _requests(random, cause, shape)
    ended, served, delay = _server_times(random, cause, shape, asked)
    backend = np.where(asked.write, ended.max(1), _read(served, asked))
    latency = _rest(random, cause, shape, asked.proxy) + backend + asked.size * 2e-7
    devices = [Device(f"n{i % shape.nodes}", "object", f"d{i}") for i in range(shape.devices)]
    where, reads = np.flatnonzero(asked.write), np.flatnonzero(~asked.write)
    # A delay before the server's clock starts is in the times of the others, which wait, but not in its own.
    waited = ended[where] * random.uniform(0.95, 1, (len(where), 3))
    waited -= 0 if cause.logged or cause.commit else delay[where]
    read = backend[reads] - (0 if cause.logged else _read(delay, asked)[reads])
    operation = np.concatenate((np.repeat(where, 3), reads))
    lines = object_lines(
        devices,
        operation,
        np.concatenate((asked.replicas[where].ravel(), _read(asked.replicas, asked)[reads])),
        asked.subject[operation] % 1024,
        np.concatenate((waited.ravel(), read)),
    )
    return joined_run(
        successes(asked.write, asked.size, latency, asked.subject),
        lines,
        devices,
        [f"p{i}" for i in range(shape.proxies)],
        asked.proxy,
        latency - 0.001,
    )


def _requests(random: np.random.Generator, cause: Cause, shape: Shape) -> Requests:
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
    proxy, read_at = random.integers(0, shape.proxies, n), random.integers(0, 3, n)
    return Requests(write, subject, sizes[subject].astype(np.int64), placed[subject], proxy, read_at)


def _server_times(
    random: np.random.Generator, cause: Cause, shape: Shape, asked: Requests
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each replica when a write has ended, how long a read takes, and the delay in it."""
    own = random.lognormal(np.log(shape.median / 3), shape.sigma, (shape.requests, 3))
    slow = np.isin(asked.replicas, cause.devices) & (random.random((shape.requests, 3)) < cause.share)
    slow &= ~(cause.only_writes & ~asked.write)[:, None]
    delay = cause.seconds * slow
    opened = _ARRIVAL * own + asked.size[:, None] * 2e-7 + (0 if cause.commit else delay)
    committed = (1 - _ARRIVAL) * own + (delay if cause.commit else 0)
    served = opened + committed - (delay if cause.commit else 0)
    return opened.max(1, keepdims=True) + committed, served, delay


def _rest(random: np.random.Generator, cause: Cause, shape: Shape, proxy: np.ndarray) -> np.ndarray:
    """Return the time that is not the servers'."""
    rest = random.lognormal(np.log(shape.median / 2), shape.sigma, shape.requests)
    if cause.proxy is not None:
        rest += cause.seconds * (proxy == cause.proxy) * (random.random(shape.requests) < cause.share)
    return rest


def _read(replicas: np.ndarray, asked: Requests) -> np.ndarray:
    """Return what replicas have for the one that is read."""
    return replicas[np.arange(len(replicas)), asked.read_at]


def _replicas(random: np.random.Generator, shape: Shape, count: int) -> np.ndarray:
    """Three devices for each object, by partition as a ring has them."""
    ring = np.array([random.choice(shape.devices, 3, replace=False) for _ in range(1024)])
    return ring[np.arange(count) % 1024]
