"""What is said of findings, from facts that are made here."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from known_attribution import make_finding
from said import (
    ASK_DISK,
    ASK_NODE,
    ASK_PROXY_LOGS,
    BESIDE_REPLICAS,
    HANDOFFS_ASKED,
    NO_LOG_IS_SLOW,
    NOT_COMPARABLE,
    NOT_IN_ITS_LOG,
    SAME_SECONDS,
    SLOW_BY_LOG,
)

from ssbench.cluster.attribution_records import LogFinding, make_finding_record
from ssbench.cluster.finding_kinds import (
    _NOT_IN_UPDATES_NOTE,
    _UNCLEAR_NOTE,
    _UNSHOWN_NOTE,
    FINDING_KINDS,
    BrokenDevice,
    CalledSlow,
    ClusterFinding,
    CompleteStall,
    GivenUpReplicas,
    HandoffRequests,
    IncomparableServers,
    LateReplicas,
    LoggedErrors,
    MemcachedFailure,
    MissedUpdates,
    MissingLines,
    ServedFailures,
    SlowServer,
    WholeServer,
    Work,
)
from ssbench.cluster.rank_tests import PeerDifference, Shown
from ssbench.cluster.server_times import DifferenceCourse, Slice, Stretch

#: What is said of the next step with a slow device.
ASK_KERNEL = "Next: iostat -x on its node, the kernel's"
#: What is said of the next step with a slow server.
ASK_SERVER_LOG = "Next: the log of its server, ss -lt for a"
#: What is said of writes that wait for a container server.
THEY_WAIT = "They wait for it up to container_update_timeout,"


def slow(median: float, mean: float, interval: tuple[float, float] | None = None) -> SlowServer:
    course = DifferenceCourse([Slice(0.0, 30.0, 9, median), Slice(30.0, 60.0, 9, median)], None, None)
    return SlowServer(
        "device",
        "d1 on n1",
        difference=PeerDifference(median, mean, 1.0),
        interval=interval,
        request=0.02,
        course=course,
    )


@pytest.mark.parametrize(("mean", "by_mean"), [(0.006, False), (0.008, False), (0.009, True)])
def test_what_is_twice_as_long_on_average_as_in_the_middle_is_said_of_the_mean(
    mean: float, by_mean: bool
) -> None:
    finding = slow(0.004, mean, (0.003, 0.005))
    if by_mean:
        assert finding._longer() == "9.00 ms longer (mean: not all of them)"
        assert (
            finding._certainty() == "In no part of the run more than in others (60 s); +45.0 % of a request."
        )
    else:
        assert finding._longer() == "4.00 ms longer"
        assert finding._certainty() == (
            "Throughout the run (60 s); +20.0 % of a request; 95%: 3.00 ms to 5.00 ms."
        )


def test_without_an_interval_none_is_said() -> None:
    nan = float("nan")
    for finding in (slow(0.004, 0.004), slow(0.004, 0.004, (nan, nan))):
        assert finding._certainty() == "Throughout the run (60 s); +20.0 % of a request."


def by(seconds: float) -> PeerDifference:
    return PeerDifference(seconds, seconds, 1.0)


def shown(seconds: float, *, evident: bool = True, high: float | None = None) -> Shown:
    return Shown(seconds, seconds, 1.0, evident, seconds if high is None else high)


D1 = SlowServer(
    "device",
    "d1 on n1",
    share=0.25,
    part="reads",
    difference=by(0.008),
    interval=(0.007, 0.009),
    request=0.02,
    probability=0.0001,
    course=DifferenceCourse([Slice(0.0, 30.0, 9, 0.004), Slice(30.0, 60.0, 9, 0.004)], 10.0, 20.5),
    felt={"reads": by(0.007), "writes": by(-0.001)},
)
ONE = [Work("object-auditor", "time", "device", 0.5)]
STRETCH = Stretch(1.0, 2.0, 60.0)
HOW_SURE = " From 10 s to 20.5 s of 60 s; +40.0 % of a request; 95%: 7.00 ms to 9.00 ms; p < 0.001."
CLIENTS = " Clients: reads +7.00 ms, writes -1.00 ms."
DISK = f" {ASK_KERNEL} log, swift-drive-audit."
BEFORE = f" Next: network, {ASK_NODE} node, ss -lt for a queue of connections."
TOO_FEW = " Of each there are too few requests to tell which, or whether all are"
BUSY = " Next: load, CPU and network of the node, workers of the server, iostat -x."
NOT_IN_UPDATES = (
    f" {NOT_IN_ITS_LOG}: the time passes before its clock starts (network, queue, a busy process)."
)
NOT_SHOWN = f"{NOT_IN_UPDATES[:-1]} or while the body of a read is sent."
FACTS = ["8.00 ms longer", "25.0 % of all requests", "from 10 s to 20.5 s of 60 s"]


@pytest.mark.parametrize(
    ("finding", "sentences", "facts"),
    [
        pytest.param(
            D1,
            "d1 on n1 is slow: its reads take 8.00 ms longer by its own log, in 25.0 % of all "
            f"requests.{HOW_SURE}{CLIENTS}{DISK}",
            FACTS,
            id="reads",
        ),
        pytest.param(
            replace(D1, difference=by(0.001), interval=None, felt={"reads": by(0.0041)}, probability=0.004),
            "d1 on n1 is perhaps slow (repeat the run): its reads take 1.00 ms longer by its own log, in 25.0"
            " % of all requests. From 10 s to 20.5 s of 60 s; +5.0 % of a request; p = 0.004. Clients: reads "
            f"+4.10 ms.{NOT_SHOWN}{BEFORE}",
            ["1.00 ms longer", "25.0 % of all requests", "from 10 s to 20.5 s of 60 s"],
            id="hidden",
        ),
        pytest.param(
            replace(D1, difference=by(0.001), interval=None, felt={"reads": by(0.004)}),
            "d1 on n1 is slow: its reads take 1.00 ms longer by its own log, in 25.0 % of all "
            "requests. From 10 s to 20.5 s of 60 s; +5.0 % of a request; p < 0.001. Clients: reads "
            f"+4.00 ms.{DISK}",
            ["1.00 ms longer", "25.0 % of all requests", "from 10 s to 20.5 s of 60 s"],
            id="hardly",
        ),
        pytest.param(
            replace(D1, part="deletes", felt={}),
            "d1 on n1 is slow: its deletes take 8.00 ms longer by its own log, in 25.0 % of all "
            f"requests.{HOW_SURE}{DISK}",
            FACTS,
            id="deletes",
        ),
        pytest.param(
            replace(
                D1,
                part="own",
                felt={},
                share=None,
                course=None,
                request=None,
                interval=None,
                probability=None,
            ),
            f"d1 on n1 is slow: its requests take 8.00 ms longer by its own log.{DISK}",
            ["8.00 ms longer"],
            id="own",
        ),
        pytest.param(
            replace(D1, part="updates", felt={"writes": by(0.1)}),
            "d1 on n1 is slow: container updates with it take 8.00 ms longer by its own log, in 25.0 "
            f"% of all requests.{HOW_SURE} Clients: writes +100.0 ms. Next: iostat -x of the device "
            "with the container's database, and how many objects it lists.",
            FACTS,
            id="updates",
        ),
        pytest.param(
            replace(D1, part="lookups", felt={}),
            "d1 on n1 is slow: proxies' requests to it take 8.00 ms longer by its own log; proxies asked"
            f" it in 25.0 % of all requests.{HOW_SURE} {ASK_DISK} "
            "databases.",
            FACTS,
            id="lookups",
        ),
        pytest.param(
            replace(D1, part="account updates", felt={}),
            "d1 on n1 is slow: the updates of new containers take 8.00 ms longer by its own log, in "
            f"25.0 % of them.{HOW_SURE} {ASK_DISK} databases.",
            ["8.00 ms longer", "25.0 % of updates of new containers", "from 10 s to 20.5 s of 60 s"],
            id="account",
        ),
        pytest.param(
            replace(D1, part="last"),
            "d1 on n1 is slow: writes wait for it: its replica takes 8.00 ms longer than the others "
            f"of the same write, by their own logs, in 25.0 % of all requests.{HOW_SURE}{DISK}",
            FACTS,
            id="last",
        ),
        pytest.param(
            replace(D1, share=float("nan"), requests=3),
            f"d1 on n1 is slow: its reads take 8.00 ms longer by its own log.{HOW_SURE}{CLIENTS}{DISK}",
            ["8.00 ms longer", "3 times", "from 10 s to 20.5 s of 60 s"],
            id="nan share",
        ),
        pytest.param(
            replace(D1, level="proxy", name="p1", part="own part"),
            "proxy p1 is slow: its own part of requests takes 8.00 ms longer, in 25.0 % of all "
            f"requests.{HOW_SURE}{CLIENTS} Next: {ASK_NODE} proxy, its middleware, "
            "memcached.",
            FACTS,
            id="own part",
        ),
        pytest.param(
            replace(D1, level="proxy process", name="p1 [7]", part="way", felt={}),
            "proxy process p1 [7] is slow: the way to it takes 8.00 ms longer, in 25.0 % of all "
            f"requests.{HOW_SURE} Next: the network and the load balancer before the proxy, its CPU "
            "and backlog.",
            FACTS,
            id="proxy process",
        ),
        pytest.param(
            replace(D1, level="node", name="n1", members=["d1", "d2"], part="own"),
            "node n1 (d1 and d2) is slow: its requests take 8.00 ms longer by its own log, in 25.0 % "
            f"of all requests.{HOW_SURE}{CLIENTS}{BUSY}",
            FACTS,
            id="node",
        ),
        pytest.param(
            replace(D1, level="process", name="n1:6200", members=["d1"], part="own"),
            "process n1:6200 (d1) is slow: its requests take 8.00 ms longer by its own log, in 25.0 %"
            f" of all requests.{HOW_SURE}{CLIENTS}{BUSY}",
            FACTS,
            id="process",
        ),
        pytest.param(
            replace(
                D1,
                part="total",
                group="reads",
                own={"reads": shown(0.002), "deletes": shown(0.1, evident=False), "updates": shown(0.0019)},
            ),
            "d1 on n1 is slow: reads with it take 8.00 ms longer, in 25.0 % of all "
            f"requests.{HOW_SURE} Its own log: reads +2.00 ms.{DISK}",
            FACTS,
            id="total reads log",
        ),
        pytest.param(
            replace(D1, part="total", group="reads", own={"reads": shown(0.001)}),
            "d1 on n1 is slow: reads with it take 8.00 ms longer, in 25.0 % of all "
            f"requests.{HOW_SURE}{NOT_SHOWN}{BEFORE}",
            FACTS,
            id="total nothing",
        ),
        pytest.param(
            replace(D1, part="total", group=None, own={"reads": shown(0.001, high=0.002)}),
            "d1 on n1 is slow: requests with it take 8.00 ms longer, in 25.0 % of all "
            f"requests.{HOW_SURE} Its own log has too few of its requests to tell whether it shows "
            f"that.{DISK}",
            FACTS,
            id="total unclear",
        ),
        pytest.param(
            replace(D1, part="total", group="reads", own={}),
            "d1 on n1 is slow: reads with it take 8.00 ms longer, in 25.0 % of all "
            f"requests.{HOW_SURE}{NOT_SHOWN}{BEFORE}",
            FACTS,
            id="total no log",
        ),
        pytest.param(
            replace(D1, part="total", group="writes", own={"updates": shown(0.0001, high=0.0019)}),
            "d1 on n1 is slow: writes with it take 8.00 ms longer, in 25.0 % of all "
            f"requests.{HOW_SURE}{NOT_IN_UPDATES}{BEFORE}",
            FACTS,
            id="total updates",
        ),
        pytest.param(
            replace(D1, part="total", group="writes", own={"last": shown(0.003)}),
            "d1 on n1 is slow: writes with it take 8.00 ms longer, in 25.0 % of all "
            f"requests.{HOW_SURE} Its own log: its replica +3.00{BESIDE_REPLICAS} of the same "
            f"write.{DISK}",
            FACTS,
            id="total writes last",
        ),
        pytest.param(
            replace(D1, part="total", group="writes", own={"last": shown(0.001)}),
            "d1 on n1 is slow: writes with it take 8.00 ms longer, in 25.0 % of all "
            f"requests.{HOW_SURE}{DISK}",
            FACTS,
            id="total writes nothing",
        ),
        pytest.param(
            replace(D1, level="proxy", name="p1", part="total", group=None, own={}),
            "proxy p1 is slow: requests with it take 8.00 ms longer, in 25.0 % of all "
            f"requests.{HOW_SURE} Next: {ASK_NODE} proxy, its middleware, memcached.",
            FACTS,
            id="total proxy",
        ),
        pytest.param(
            replace(D1, part="updates", waited=0.5),
            "Writes wait 500.0 ms for d1 on n1: it takes 8.00 ms longer than others to note a new "
            f"object, and proxies wait as long as that, or post_quorum_timeout.{HOW_SURE} Next: iostat"
            " -x of the device with the container's database, and how many objects it lists.",
            ["writes wait 500.0 ms", "25.0 % of all requests", "from 10 s to 20.5 s of 60 s"],
            id="waited",
        ),
        pytest.param(
            replace(D1, part="told", waited=0.5),
            "Writes wait 500.0 ms for d1 on n1: it takes 8.00 ms longer than others to note a new "
            "object, and proxies wait as long as that, or "
            f"post_quorum_timeout.{HOW_SURE}{NOT_IN_UPDATES}{BEFORE}",
            ["writes wait 500.0 ms", "25.0 % of all requests", "from 10 s to 20.5 s of 60 s"],
            id="waited told",
        ),
        pytest.param(
            replace(D1, part="told"),
            "d1 on n1 is slow: an object server that tells it of a new object takes 8.00 ms longer "
            "than the others of the same write, in 25.0 % of all "
            f"requests.{HOW_SURE}{NOT_IN_UPDATES}{BEFORE}",
            FACTS,
            id="told",
        ),
        pytest.param(
            make_finding(
                "one of",
                vars(D1),
                same=["d2 on n2", "d3 on n3"],
                beside=["load 9"],
                work=[
                    Work("object-replicator", "time", "node", 0.5, 0.25, 0.125, "d2 on n2"),
                    Work("object-auditor", "time", "device", 0.5, whose="d1 on n1"),
                    Work("other clients", "requests", "device", 12.0, None, 1.5, "d1 on n1"),
                ],
            ),
            "One of d1 on n1, d2 on n2 and d3 on n3 is slow: its reads take 8.00 ms longer by its own"
            f" log, in 25.0 % of all requests.{HOW_SURE}{CLIENTS} Recon saw on their nodes: load 9. In"
            " the same seconds: object-replicator at work on the node of d2 on n2 50.0 % of the time "
            "(before the run 25.0 %, other nodes 12.5 %); object-auditor at work on d1 on n1 50.0 % "
            f"of the time; other clients on d1 on n1 12.0 requests/s (other devices 1.50).{DISK}{TOO_FEW}",
            FACTS,
            id="one of",
        ),
        pytest.param(
            make_finding("one of", vars(D1), same=["d2 on n2"], daemons=[]),
            "One of d1 on n1 and d2 on n2 is slow: its reads take 8.00 ms longer by its own log, in "
            f"25.0 % of all requests.{HOW_SURE}{CLIENTS} No lines of one background daemon name all of"
            f" their nodes.{DISK}{TOO_FEW}",
            FACTS,
            id="one of without",
        ),
        pytest.param(
            make_finding("one of", vars(D1), same=["d2 on n2"], daemons=["object-auditor"]),
            "One of d1 on n1 and d2 on n2 is slow: its reads take 8.00 ms longer by its own log, in "
            f"25.0 % of all requests.{HOW_SURE}{CLIENTS} No line of object-auditor on their nodes "
            f"{SAME_SECONDS}{DISK}{TOO_FEW}",
            FACTS,
            id="one of daemons",
        ),
        pytest.param(
            replace(
                D1,
                ties=["d2 on n2", "d3 on n3"],
                beside=["load 9", "sda 99.0 % full"],
                statsd="its PUTs take 3.00 ms/kB",
                daemons=["object-auditor", "object-replicator", "object-updater"],
            ),
            "d1 on n1 is slow: its reads take 8.00 ms longer by its own log, in 25.0 % of all "
            f"requests.{HOW_SURE}{CLIENTS} The ring puts it together with d2 on n2 and d3 on n3, whose"
            " own times rule them out. Recon saw on its node: load 9, sda 99.0 % full. By statsd its "
            "PUTs take 3.00 ms/kB. No line of object-auditor, object-replicator or object-updater on "
            f"its node {SAME_SECONDS}{DISK}",
            FACTS,
            id="ties",
        ),
        pytest.param(
            replace(
                D1,
                part="total",
                group="writes",
                own={"last": shown(0.01), "deletes": shown(0.001, evident=False)},
                ties=["d2 on n2", "d3 on n3"],
            ),
            "d1 on n1 is slow: writes with it take 8.00 ms longer, in 25.0 % of all "
            f"requests.{HOW_SURE} Its own log: its replica +10.0{BESIDE_REPLICAS} of the same write. The"
            " ring puts it together with d2 on n2 and d3 on n3, whose own times rule them out, unless each of"
            f" them is slow before its clock starts.{DISK}",
            FACTS,
            id="ties of writes alone",
        ),
        pytest.param(
            replace(D1, daemons=[], statsd="its PUTs take 3.00 ms/kB"),
            "d1 on n1 is slow: its reads take 8.00 ms longer by its own log, in 25.0 % of all "
            f"requests.{HOW_SURE}{CLIENTS} By statsd its PUTs take 3.00 ms/kB. No line of a background"
            f" daemon names its node.{DISK}",
            FACTS,
            id="daemons none",
        ),
        pytest.param(
            replace(
                D1,
                daemons=["x"],
                work=[
                    Work("object-replicator", "time", "node", 0.5, 0.25, 0.125),
                    Work("object-auditor", "time", "device", 0.5),
                    Work("other clients", "requests", "device", 12.0, 3.0),
                ],
            ),
            "d1 on n1 is slow: its reads take 8.00 ms longer by its own log, in 25.0 % of all "
            f"requests.{HOW_SURE}{CLIENTS} In the same seconds: object-replicator at work on its node "
            "50.0 % of the time (before the run 25.0 %, other nodes 12.5 %); object-auditor at work "
            f"50.0 % of the time; other clients 12.0 requests/s (before the run 3.00).{DISK}",
            FACTS,
            id="work",
        ),
        pytest.param(
            replace(D1, part="own", rare=0.04, difference=by(0.15), interval=None, course=None),
            "d1 on n1 is slow: 4.00 % of its requests (by its own log) take 150.0 ms longer, in 25.0 % of"
            f" all requests. +750.0 % of a request; p < 0.001.{CLIENTS}{DISK}",
            ["150.0 ms longer", "25.0 % of all requests"],
            id="few requests",
        ),
        pytest.param(
            replace(D1, part="own", sizes="200,000 bytes and more"),
            "d1 on n1 is slow: with objects of 200,000 bytes and more its requests take 8.00 ms longer by its"
            f" own log, in 25.0 % of all requests.{HOW_SURE}{CLIENTS}{DISK}",
            FACTS,
            id="large objects",
        ),
        pytest.param(
            replace(D1, level="container", name="ssbench_000001", part="updates"),
            "container ssbench_000001 is slow: its updates take 8.00 ms longer by the container servers'"
            f" logs, in 25.0 % of all requests.{HOW_SURE}{CLIENTS} Next: how many objects it lists, whether"
            " it should be sharded, the devices with its database.",
            FACTS,
            id="a container",
        ),
        pytest.param(
            make_finding("busy", vars(D1), part="own", times_as_busy=2.4, same=["d2 on n2"]),
            "d1 on n1 is busier, and not shown to be slower: it serves 2.4 times as many requests as its"
            " peers, and these wait for each other (8.00 ms longer, in 25.0 % of all requests). Likewise: d2"
            " on n2. Next: repeat with fewer users; weights of the ring, objects that are read often, other"
            " clients, daemons",
            FACTS,
            id="busier",
        ),
        pytest.param(
            make_finding("unfelt", vars(D1)),
            "d1 on n1 is slow, though proxies did not wait for it: its reads take 8.00 ms longer by "
            f"its own log, in 25.0 % of all requests.{HOW_SURE}{CLIENTS}{DISK} It is the one to look "
            "at before clients feel it",
            FACTS,
            id="unfelt",
        ),
        pytest.param(
            SlowServer("proxy", "p1", part="own part"),
            f"proxy p1 is slow: its own part of requests takes longer. Next: {ASK_NODE} "
            "proxy, its middleware, memcached.",
            [],
            id="no difference",
        ),
        pytest.param(
            WholeServer("process", "n1:6200", members=["d1", "d2"]),
            "d1 and d2 are all the devices of process n1:6200. Next: load, CPU and network of the "
            "node, workers of the server, iostat -x",
            [],
            id="together process",
        ),
        pytest.param(
            LateReplicas(
                "device",
                "d1 on n1",
                requests=1200,
                share=0.3,
                seconds=0.5,
                probability=0.0001,
                stretch=STRETCH,
                work=ONE,
            ),
            "d1 on n1 has late replicas: 1,200 writes (30.0 % of all) answered without it, after "
            "500.0 ms (median), from 1 s to 2 s of 60 s; p < 0.001. In the same seconds: "
            "object-auditor at work 50.0 % of the time. Next: post_quorum_timeout of the proxies; "
            "iostat -x on its node, the kernel's log, swift-drive-audit",
            ["500.0 ms", "30.0 % of all requests", "from 1 s to 2 s of 60 s"],
            id="late",
        ),
        pytest.param(
            LateReplicas(
                "device",
                "d1 on n1",
                requests=1,
                seconds=0.5,
                probability=0.01,
                stretch=Stretch(1.0, 1.04, 60.0),
            ),
            "d1 on n1 has late replicas: 1 write answered without it, after 500.0 ms (median), at 1 s"
            " of 60 s; p = 0.010. Next: post_quorum_timeout of the proxies; iostat -x on its node, "
            "the kernel's log, swift-drive-audit",
            ["500.0 ms", "at 1 s of 60 s"],
            id="late once",
        ),
        pytest.param(
            IncomparableServers("device", "d1 on n1", same=["d2 on n2"]),
            f"Not testable: d1 on n1 and d2 on n2: each {NOT_COMPARABLE} compares",
            [],
            id="inconclusive",
        ),
        pytest.param(
            IncomparableServers("device", "d1 on n1"),
            f"Not testable: d1 on n1: it {NOT_COMPARABLE} compares",
            [],
            id="inconclusive one",
        ),
        pytest.param(
            GivenUpReplicas("device", "d1 on n1", requests=12, share=0.3, stretch=STRETCH),
            "d1 on n1: proxies gave up its replicas of 12 writes (30.0 % of all), from 1 s to 2 s of "
            f"60 s, which its log has as 499. {ASK_PROXY_LOGS}, post_quorum_timeout; "
            "iostat -x on its node, the kernel's log, swift-drive-audit",
            ["30.0 % of all requests", "from 1 s to 2 s of 60 s"],
            id="499",
        ),
        pytest.param(
            BrokenDevice("device", "d1 on n1", requests=12, share=0.3, served=5, stretch=STRETCH),
            "d1 on n1 answered 507 to 12 requests (30.0 % of all), from 1 s to 2 s of 60 s: not "
            "mounted, full or broken; handoffs took its place. Next: mount, the kernel's log, "
            "swift-drive-audit",
            ["30.0 % of all requests", "from 1 s to 2 s of 60 s"],
            id="507",
        ),
        pytest.param(
            BrokenDevice(
                "device", "d1 on n1", requests=2, share=0.3, served=5, seconds=10.0, stretch=STRETCH
            ),
            "d1 on n1 answered 507 to 2 requests (30.0 % of all), from 1 s to 2 s of 60 s: not mounted, full"
            " or broken; it served nothing for 10 s, handoffs took its place. Next: mount, the kernel's log,"
            " swift-drive-audit",
            ["10000 ms", "30.0 % of all requests", "from 1 s to 2 s of 60 s"],
            id="507, left out",
        ),
        pytest.param(
            ServedFailures(
                "device",
                "d1 on n1",
                requests=17,
                share=0.25,
                served=60,
                failures=18,
                probability=0.0001,
            ),
            "d1 on n1 served 17 of the 18 requests that failed, and 25.0 % of all requests: 28.3 % of its own"
            " failed; p < 0.001. Next: the errors of these requests in the report of the run, and its log; a"
            " device that was away has old objects until the replicator has been there",
            ["25.0 % of all requests"],
            id="fails",
        ),
        pytest.param(
            BrokenDevice(
                "device",
                "d1 on n1",
                requests=1,
                share=0.3,
                served=0,
                detail="3 times: 507",
                beside=["sda not mounted"],
            ),
            "d1 on n1 took no request all through the run: not mounted, full or broken (507 to 1 "
            "request); handoffs took its place (proxies' logs: 3 times: 507). Recon saw on its node: "
            "sda not mounted. Next: mount, the kernel's log, swift-drive-audit",
            ["30.0 % of all requests"],
            id="507 all",
        ),
        pytest.param(
            MissedUpdates(
                "device",
                "c1 on n1",
                requests=12,
                share=0.3,
                waited=0.1,
                stretch=STRETCH,
                beside=["load 9"],
            ),
            "30.0 % of the writes wait 100.0 ms for c1 on n1, which did not take 12 container "
            "updates, by the object servers' logs, from 1 s to 2 s of 60 s. They wait for it up to "
            "container_update_timeout, proxies up to post_quorum_timeout, and send the updates again "
            f"later. Recon saw on its node: load 9. {ASK_SERVER_LOG} queue of"
            " connections, iostat -x on its node",
            ["writes wait 100.0 ms", "30.0 % of writes", "from 1 s to 2 s of 60 s"],
            id="update",
        ),
        pytest.param(
            MissedUpdates("device", "c1 on n1", requests=1, share=0.3, waited=0.0999),
            "c1 on n1 did not take 1 container update (30.0 % of the writes), by the object servers' "
            f"logs. {THEY_WAIT} proxies up to "
            "post_quorum_timeout, and send the updates again later. Next: the log of its server, ss "
            "-lt for a queue of connections, iostat -x on its node",
            ["writes wait 99.9 ms", "30.0 % of writes"],
            id="update little",
        ),
        pytest.param(
            MissedUpdates("device", "c1 on n1", requests=2),
            "c1 on n1 did not take 2 container updates (0.00 % of the writes), by the object servers'"
            f" logs. {THEY_WAIT} proxies up to "
            "post_quorum_timeout, and send the updates again later. Next: the log of its server, ss "
            "-lt for a queue of connections, iostat -x on its node",
            ["2 times"],
            id="update unknown",
        ),
        pytest.param(
            MemcachedFailure(
                "node",
                "10.0.0.1:11211",
                same=["10.0.0.2:11211"],
                requests=1,
                share=0.02,
                stretch=Stretch(1.0, 1.05, 60.0),
            ),
            "memcached at 10.0.0.1:11211 and 10.0.0.2:11211 did not answer proxies once, from 1 s to "
            "1.1 s of 60 s: 2.00 % of all requests asked account or container servers for what it "
            "knows. Next: memcached there, memcache_servers of the proxies",
            ["2.00 % of all requests", "from 1 s to 1.1 s of 60 s"],
            id="memcached",
        ),
        pytest.param(
            MemcachedFailure("node", "10.0.0.1:11211", requests=1200),
            "memcached at 10.0.0.1:11211 did not answer proxies 1,200 times: 0.00 % of all requests "
            "asked account or container servers for what it knows. Next: memcached there, "
            "memcache_servers of the proxies",
            ["1,200 times"],
            id="memcached times",
        ),
        pytest.param(
            CalledSlow("device", "d1 on n1", requests=3, seconds=1.5, detail="fsync"),
            f"d1 on n1 calls 3 requests {SLOW_BY_LOG} 1500 ms together, most of it in fsync. "
            f"{ASK_KERNEL} log, swift-drive-audit",
            ["1500 ms", "3 times"],
            id="called slow",
        ),
        pytest.param(
            CalledSlow("device", "d1 on n1", requests=1, seconds=0.5),
            f"d1 on n1 calls 1 request {SLOW_BY_LOG} 500.0 ms together. Next: iostat -x on its "
            "node, the kernel's log, swift-drive-audit",
            ["500.0 ms"],
            id="called slow once",
        ),
        pytest.param(
            LoggedErrors(
                "device",
                "d1 on n1",
                requests=2,
                detail="2 timeouts",
                stretch=STRETCH,
                beside=["load 9"],
            ),
            "d1 on n1: 2 timeouts by the proxies' logs, from 1 s to 2 s of 60 s. Recon saw on its "
            f"node: load 9. {ASK_SERVER_LOG} queue of connections, iostat -x "
            "on its node",
            ["2 times", "from 1 s to 2 s of 60 s"],
            id="error",
        ),
        pytest.param(
            LoggedErrors("node", "n1", members=["d1", "d2"], detail="2 timeouts"),
            "node n1 (d1 and d2): 2 timeouts by the proxies' logs. Next: the log of its server, ss "
            "-lt for a queue of connections, iostat -x on its node",
            [],
            id="error node",
        ),
        pytest.param(
            HandoffRequests("device", "", requests=2, share=0.001, stretch=STRETCH),
            f"{HANDOFFS_ASKED} 2 requests (0.10 % of all), from 1 s to 2 s of 60 s: "
            "devices of their partitions did not answer, or were left out after errors. Next: errors "
            "in the proxies' logs before that, swift-recon --unmounted",
            ["0.10 % of all requests", "from 1 s to 2 s of 60 s"],
            id="handoff",
        ),
        pytest.param(
            MissingLines(
                "device",
                "",
                requests=1200,
                share=0.1,
                difference=by(0.008),
                request=0.02,
                probability=0.0001,
            ),
            f"A server {NO_LOG_IS_SLOW}1,200 requests (10.0 %) that lack a line of an "
            "object server take 8.00 ms longer. +40.0 % of a request; p < 0.001. Next: give the logs "
            "of the servers that have none here",
            ["8.00 ms longer", "10.0 % of all requests"],
            id="missing",
        ),
        pytest.param(
            MissingLines("proxy", "", requests=1200, share=0.1, difference=by(0.008)),
            f"A proxy {NO_LOG_IS_SLOW}1,200 requests (10.0 %) that lack a line of a proxy take"
            " 8.00 ms longer. Next: give the logs of the proxies that have none here",
            ["8.00 ms longer", "10.0 % of all requests"],
            id="missing without a probability",
        ),
        pytest.param(
            CompleteStall("", "", requests=1, seconds=2.5, stretch=Stretch(10.0, 12.5, 60.0)),
            "No operation ended for 2.5 s, from 10 s to 12.5 s of 60 s, though some were under way: "
            "what they waited for stopped, as a server of containers or accounts, a proxy, the "
            "network or the load generator. Next: their logs of these seconds",
            ["2.5 s", "from 10 s to 12.5 s of 60 s"],
            id="stall",
        ),
        pytest.param(
            CompleteStall("", "", requests=3, seconds=2.5),
            "No operation ended for 2.5 s (the longest of 3 such times), though some were under way: "
            "what they waited for stopped, as a server of containers or accounts, a proxy, the "
            "network or the load generator. Next: their logs of these seconds",
            ["2.5 s", "3 times"],
            id="stall many",
        ),
    ],
)
def test_each_kind_of_finding_is_said_as_a_whole(
    finding: ClusterFinding, sentences: str, facts: list[str]
) -> None:
    assert finding.describe() == sentences
    assert finding.list_facts() == facts


@pytest.mark.parametrize(
    ("part", "group", "is_by_ring"),
    [
        ("total", "writes", True),
        ("total", None, True),
        ("total", "reads", False),
        ("last", "writes", True),
        ("told", "writes", True),
        ("own", None, False),
        ("reads", None, False),
        ("updates", None, False),
    ],
)
def test_only_who_shares_requests_is_put_together_by_the_ring(
    part: str, group: str | None, is_by_ring: bool
) -> None:
    said = make_finding("one of", vars(D1), same=["d2 on n2"], part=part, group=group).describe()
    by_ring = " The ring puts them together: no evidence of their own tells which"
    assert said.endswith(by_ring if is_by_ring else TOO_FEW)


@pytest.mark.parametrize(
    ("own", "group", "note"),
    [
        ({"updates": shown(0.0, high=0.0019)}, "writes", _NOT_IN_UPDATES_NOTE),
        ({"updates": shown(0.0, high=0.0021)}, "writes", ""),
        ({"updates": shown(0.0, high=0.0021)}, None, _UNCLEAR_NOTE),
        ({"reads": shown(0.0, high=0.0019)}, None, _UNSHOWN_NOTE),
        ({"reads": shown(0.0, high=0.0021)}, None, _UNCLEAR_NOTE),
        ({"reads": shown(0.0, high=0.0021), "deletes": shown(0.0, high=0.0)}, None, _UNSHOWN_NOTE),
        ({}, None, _UNSHOWN_NOTE),
        ({"reads": shown(0.0021)}, None, "Its own log: reads +2.10 ms."),
        ({"reads": shown(0.0021, evident=False)}, None, _UNCLEAR_NOTE),
        ({"last": shown(0.0021)}, "writes", f"Its own log: its replica +2.10{BESIDE_REPLICAS}"),
        ({"last": shown(0.0019, high=0.003)}, "writes", ""),
    ],
)
def test_its_own_log_shows_a_quarter_of_what_clients_felt_or_does_not(
    own: dict[str, Shown], group: str | None, note: str
) -> None:
    """Clients felt 8 ms."""
    said = replace(D1, part="total", group=group, own=own, difference=by(0.008)).describe()
    notes = {each for each in (_NOT_IN_UPDATES_NOTE, _UNCLEAR_NOTE, _UNSHOWN_NOTE) if each in said}
    assert notes == ({note} & {_NOT_IN_UPDATES_NOTE, _UNCLEAR_NOTE, _UNSHOWN_NOTE})
    assert note in said
    for level in ("proxy", "proxy process"):
        of_proxy = replace(D1, level=level, part="total", group=group, own={}, difference=by(0.008))
        assert _UNSHOWN_NOTE not in of_proxy.describe()


@pytest.mark.parametrize(("felt", "is_unshown"), [(0.0319, False), (0.0321, True)])
def test_clients_feel_up_to_four_times_of_what_a_log_shows(felt: float, is_unshown: bool) -> None:
    made = replace(D1, part="reads", difference=by(0.008), felt={"reads": by(felt), "writes": by(0.001)})
    assert (_UNSHOWN_NOTE in made.describe()) is is_unshown


def test_json_has_what_each_kind_knows() -> None:
    """It has the same keys for all kinds, as other programs know them."""
    own = {each.name for each in fields(LogFinding)}
    assert {name for kind in FINDING_KINDS for each in fields(kind) for name in (each.name,)} <= own
    assert len({kind.kind for kind in FINDING_KINDS}) == len(FINDING_KINDS)
    found = make_finding_record(LateReplicas("device", "d1 on n1", 7, 0.5, seconds=0.2, probability=0.1))
    assert found == LogFinding(
        "late", "device", "d1 on n1", requests=7, share=0.5, seconds=0.2, probability=0.1
    )
