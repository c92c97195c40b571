"""What was seen of a cluster: the records that a stat file keeps.

Every field has a default, so that a file of another version can be read. Moments are in seconds since
:attr:`Observation.began`, by the monotonic clock of the master's host. Sizes are in bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

#: Devices in all samples of all servers, each sample counted as one more, that are kept; and numbers in the
#: intervals of all metrics. Beyond that every second sample is dropped and pairs of intervals are merged,
#: and from then on half as many are made.
MAX_SAMPLED_DEVICES = 100_000
MAX_METRIC_NUMBERS = 500_000


class ObservationRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A frozen record; what has its default takes no room."""


class Disk(ObservationRecord, frozen=True):
    """A device of a server. ``size`` and ``used`` are 0 where it is not mounted."""

    device: str
    mounted: bool = True
    size: int = 0
    used: int = 0

    @property
    def used_share(self) -> float:
        """How full it is, 0 to 1."""
        return self.used / self.size if self.size > 0 else 0.0


class State(ObservationRecord, frozen=True):
    """What a server said of itself at one moment; None where it did not say.

    ``load`` is that of the last minute. ``async_pending`` was counted by swift-recon-cron at
    ``async_counted``, seconds since 1970 by the server's clock. ``tcp_in_use``, ``time_wait`` and ``orphans``
    count sockets, ``tcp_memory`` is in bytes. What follows is asked only before and after the run:
    ``quarantined`` counts accounts, containers and objects; ``replication_age`` and
    ``replication_seconds`` have, for ``account``, ``container``, ``object`` and ``reconstruction``, when the
    last pass ended (seconds ago, by the server's own clock) and how long it took. ``unsound`` are the paths
    below ``/recon`` with a number that no server can have, which is left out.
    """

    at: float = 0.0
    load: float | None = None
    async_pending: int | None = None
    async_counted: float | None = None
    tcp_in_use: int | None = None
    time_wait: int | None = None
    orphans: int | None = None
    tcp_memory: int | None = None
    disks: tuple[Disk, ...] | None = None
    version: str | None = None
    root: str | None = None
    quarantined: int | None = None
    replication_age: dict[str, float] = {}
    replication_seconds: dict[str, float] = {}
    unsound: tuple[str, ...] = ()


class Server(ObservationRecord, frozen=True):
    """A server that was asked, ``kind`` being ``object``, ``container``, ``account`` or empty.

    ``asked`` counts rounds of questions, ``unanswered`` those in which one had no answer, ``failure`` is the
    reason of the first. ``before`` and ``after`` are complete; ``during`` has what was sampled between them.
    """

    url: str
    kind: str = ""
    asked: int = 0
    unanswered: int = 0
    failure: str | None = None
    before: State | None = None
    after: State | None = None
    during: tuple[State, ...] = ()

    @property
    def name(self) -> str:
        """``HOST:PORT``."""
        return self.url.partition("://")[2]

    @property
    def host(self) -> str:
        """Its host, without the brackets of an IPv6 address."""
        return self.name.rpartition(":")[0].strip("[]")

    @property
    def last(self) -> State | None:
        """The last complete state: that after the run, or that before it."""
        return self.after or self.before


class Proxy(ObservationRecord, frozen=True):
    """What a proxy's ``/info`` says; ``failure`` is why nothing is known. The first policy is the default.

    ``constraints`` are the numbers of its section ``swift``; ``features`` the names of the other sections.
    """

    url: str
    version: str | None = None
    policies: tuple[str, ...] = ()
    constraints: dict[str, int] = {}
    features: tuple[str, ...] = ()
    failure: str | None = None


class MetricInterval(ObservationRecord, frozen=True):
    """What came of one metric in an interval that began at ``at``.

    For timers ``count`` values with the sum ``total``, in ms, and how many fell into each bucket
    (:mod:`ssbench.cluster.statsd`); for counters ``total`` alone. Sampled values count as often as their rate
    says.
    """

    at: float
    total: float = 0.0
    count: float = 0.0
    buckets: dict[int, float] = {}


class Metric(ObservationRecord, frozen=True):
    """A metric of statsd by its name; ``timer`` distinguishes timers from counters."""

    name: str
    timer: bool = False
    intervals: tuple[MetricInterval, ...] = ()


class Statsd(ObservationRecord, frozen=True):
    """What was received at the statsd port. ``seconds`` is the length of an interval.

    ``lines`` were understood and kept; ``strange`` were not understood, ``nameless`` had a name beyond the
    number that is kept, ``dropped`` datagrams did not fit into the socket's buffer.
    """

    port: int = 0
    seconds: float = 0.0
    lines: int = 0
    strange: int = 0
    nameless: int = 0
    dropped: int = 0
    metrics: tuple[Metric, ...] = ()


class Observation(ObservationRecord, frozen=True):
    """All of it. ``began`` is seconds since 1970, ``interval`` seconds from one sample to the next.

    ``failure`` is why there is not more.
    """

    began: float = 0.0
    interval: float = 0.0
    ended: float = 0.0
    servers: tuple[Server, ...] = ()
    proxies: tuple[Proxy, ...] = ()
    statsd: Statsd | None = None
    failure: str | None = None


class ClusterObserver(Protocol):
    """Watches the servers of a cluster beside a run."""

    def begin(
        self, storage_urls: Sequence[str] = (), *, insecure: bool = False, ca_certificates: str | None = None
    ) -> None:
        """See the cluster before the run, and watch it from then on. This may wait some seconds."""

    def stop(self) -> None:
        """End watching, without a last look."""

    def end(self) -> Observation:
        """See the cluster once more, end watching, and return what was seen. This may wait some seconds."""

    def find_warnings(self, observation: Observation) -> list[str]:
        """Return sentences on what makes the results doubtful."""
