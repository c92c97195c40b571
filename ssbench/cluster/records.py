"""What an attribution says: records that texts, the page and JSON are made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from ssbench.cluster.moments import DifferenceCourse, Stretch
from ssbench.cluster.ranks import PeerDifference, Shown
from ssbench.cluster.shares import TimeShare
from ssbench.cluster.standings import Standing
from ssbench.cluster.tables import Coverage, PartRow, ServerRow, SlowRequest
from ssbench.cluster.timelines import Timelines
from ssbench.results.observation import Observation


@dataclass(frozen=True, slots=True)
class AttributionFacts:
    """What is known of a run besides its results and logs.

    ``hosts`` are nodes by address (:func:`ssbench.cluster.addresses.parse_node_addresses`), ``cluster`` is what
    recon said, ``overload`` are sentences that say how the load generator changed what was measured,
    ``unlogged`` addresses of object servers that the ring has and that have no log.
    """

    hosts: dict[str, str] = field(default_factory=dict)
    cluster: Observation | None = None
    overload: tuple[str, ...] = ()
    unlogged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """What was at work on a suspect besides the run, in the seconds in which it was slow.

    ``who`` is a background daemon of Swift or ``other clients``, ``on`` is ``device`` or ``node``: what it
    worked on. ``during`` is in requests a second on a device where ``unit`` is ``requests``, and else a share
    of the ``time``; so are ``before``, of as many seconds before the run, and ``others``, the median of the
    other devices or nodes. They are None where the logs do not tell. Of a finding of several, ``whose`` is
    the one that it was at work on; a finding of one leaves it empty.
    """

    who: str
    unit: str
    on: str
    during: float
    before: float | None = None
    others: float | None = None
    whose: str = ""


#: A wait that is said, in seconds.
LONG_WAIT_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class LogFinding:
    """A sentence's facts; seconds, and shares of 1.

    ``kind`` is one of

    - ``slow``: a suspect; ``one of``: it, or one of ``same``, which no evidence distinguishes;
    - ``together``: all members of a process or node are suspects;
    - ``late``: proxies answered without its replicas, after ``seconds``;
    - ``unfelt``: slow by its own clock, but clients did not wait for it;
    - ``499``: proxies gave up its replicas of writes, though not more often than others';
    - ``507``, ``error``: its answers, or what proxies say of it (``detail``);
    - ``update``: a container server that did not take updates of object servers;
    - ``called slow``: its server wrote lines of slow requests, of ``seconds`` together; ``detail`` is the
      part that took longest;
    - ``memcached``: proxies had no answer of it, and asked account and container servers;
    - ``handoff``: proxies asked for other devices than a partition's own;
    - ``missing``: requests with servers, or a proxy, that left no line take longer; ``members`` are those
      that did not answer by the proxies' errors, or logs without a line of the run;
    - ``stall``: no operation ended for ``seconds``, the longest of so many times;
    - ``inconclusive``: it and ``same`` could not be compared with others.

    ``level`` is ``proxy``, ``proxy process``, ``node``, ``process`` or ``device``, and ``name`` who it is;
    ``members`` are the devices of a process, node or server, ``ties`` those whose own times rule them out.
    ``part`` is the time that shows it best (:mod:`ssbench.cluster.evidence`; ``last`` for replicas of
    writes that end last, ``account updates`` of the containers that the run made) and ``group`` is ``reads``
    or ``writes`` where those alone do. ``difference`` is that of this time, with its 95 % ``interval``, and
    ``request`` the median of the requests concerned; ``share`` says in how many of the run's requests it
    took part; of account updates, in how many of these.
    ``own`` has the differences of the times that are its own, by part; ``felt`` those of the client's, for
    reads and writes. ``course`` is how the difference went over the run, ``stretch`` from when to when there
    were late replicas, answers of 507, errors or handoffs. ``beside`` is what recon saw of its node,
    ``statsd`` what that says of it, ``work`` what else was at work there, and ``daemons`` are those of which
    lines are given of its node, or of each node of several: None where none are of any node.
    ``waited`` are the seconds that proxies waited, as a rule, for object servers that told a container server
    of an object; ``served`` counts the requests that a device served which answered 507 to others.
    """

    kind: str
    level: str
    name: str
    requests: int = 0
    share: float | None = None
    part: str = ""
    group: str | None = None
    difference: PeerDifference | None = None
    interval: tuple[float, float] | None = None
    request: float | None = None
    probability: float | None = None
    own: dict[str, Shown] = field(default_factory=dict)
    felt: dict[str, PeerDifference] = field(default_factory=dict)
    members: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    ties: list[str] = field(default_factory=list)
    seconds: float | None = None
    detail: str = ""
    course: DifferenceCourse | None = None
    stretch: Stretch | None = None
    beside: list[str] = field(default_factory=list)
    statsd: str = ""
    work: list[Work] = field(default_factory=list)
    daemons: list[str] | None = None
    waited: float | None = None
    served: int | None = None


@dataclass(frozen=True, slots=True)
class Lead:
    """Who is nearest to being a suspect, where there is none: by ``part``, of ``group`` where it is of one.

    ``probability`` is adjusted for all tests of its kind of party.
    """

    name: str
    part: str
    group: str | None
    difference: PeerDifference
    probability: float


@dataclass(frozen=True, slots=True)
class Attribution:
    """Everything that is said of a run. ``comparisons`` is the number of tests that p values allow for.

    ``unlogged`` are servers that proxies, other servers, recon or the ring name and that have no log here.
    ``detectable`` is the least delay (seconds) of any device's reads and deletes that would have been found,
    ``detectable_at_end`` that of a delay at the end of its writes, as at commit, ``detectable_of_updates``
    that of a container server's updates and ``detectable_of_proxies`` of a proxy's own part, ``request`` the
    median of a request; None where no delay would have been, or there is none. ``in_writes``
    is the share of the writes that a device takes part in, as a rule. ``standings`` are by own times, the
    most evident first; ``timelines`` show all servers over the run.
    """

    coverage: Coverage
    findings: list[LogFinding]
    comparisons: int
    overload: list[str]
    unlogged: list[str]
    detectable: float | None
    detectable_at_end: float | None
    detectable_of_updates: float | None
    detectable_of_proxies: float | None
    request: float | None
    in_writes: float
    lead: Lead | None
    standings: list[Standing]
    timelines: Timelines
    parts: list[PartRow]
    time_shares: list[TimeShare]
    proxies: list[ServerRow]
    nodes: list[ServerRow]
    devices: list[ServerRow]
    partitions: list[ServerRow]
    slowest: list[SlowRequest]
    errors: list[tuple[str, str, int]]
    other_errors: list[tuple[str, str, int]]
