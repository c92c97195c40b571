"""What is said of findings, from facts that are made here."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from golden_words import GoldenWords
from known_attribution import make_finding
from said import (
    BESIDE_REPLICAS,
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
TOO_FEW = " Of each there are too few requests to tell which, or whether all are"
FACTS = ["8.00 ms longer", "25.0 % of all requests", "from 10 s to 20.5 s of 60 s"]


@pytest.mark.parametrize(
    ("finding", "facts"),
    [
        pytest.param(D1, FACTS, id="reads"),
        pytest.param(
            replace(D1, difference=by(0.001), interval=None, felt={"reads": by(0.0041)}, probability=0.004),
            ["1.00 ms longer", "25.0 % of all requests", "from 10 s to 20.5 s of 60 s"],
            id="hidden",
        ),
        pytest.param(
            replace(D1, difference=by(0.001), interval=None, felt={"reads": by(0.004)}),
            ["1.00 ms longer", "25.0 % of all requests", "from 10 s to 20.5 s of 60 s"],
            id="hardly",
        ),
        pytest.param(replace(D1, part="deletes", felt={}), FACTS, id="deletes"),
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
            ["8.00 ms longer"],
            id="own",
        ),
        pytest.param(replace(D1, part="updates", felt={"writes": by(0.1)}), FACTS, id="updates"),
        pytest.param(replace(D1, part="lookups", felt={}), FACTS, id="lookups"),
        pytest.param(
            replace(D1, part="account updates", felt={}),
            ["8.00 ms longer", "25.0 % of updates of new containers", "from 10 s to 20.5 s of 60 s"],
            id="account",
        ),
        pytest.param(replace(D1, part="last"), FACTS, id="last"),
        pytest.param(
            replace(D1, share=float("nan"), requests=3),
            ["8.00 ms longer", "3 times", "from 10 s to 20.5 s of 60 s"],
            id="nan share",
        ),
        pytest.param(replace(D1, level="proxy", name="p1", part="own part"), FACTS, id="own part"),
        pytest.param(
            replace(D1, level="proxy process", name="p1 [7]", part="way", felt={}), FACTS, id="proxy process"
        ),
        pytest.param(
            replace(D1, level="node", name="n1", members=["d1", "d2"], part="own"), FACTS, id="node"
        ),
        pytest.param(
            replace(D1, level="process", name="n1:6200", members=["d1"], part="own"), FACTS, id="process"
        ),
        pytest.param(
            replace(
                D1,
                part="total",
                group="reads",
                own={"reads": shown(0.002), "deletes": shown(0.1, evident=False), "updates": shown(0.0019)},
            ),
            FACTS,
            id="total reads log",
        ),
        pytest.param(
            replace(D1, part="total", group="reads", own={"reads": shown(0.001)}), FACTS, id="total nothing"
        ),
        pytest.param(
            replace(D1, part="total", group=None, own={"reads": shown(0.001, high=0.002)}),
            FACTS,
            id="total unclear",
        ),
        pytest.param(replace(D1, part="total", group="reads", own={}), FACTS, id="total no log"),
        pytest.param(
            replace(D1, part="total", group="writes", own={"updates": shown(0.0001, high=0.0019)}),
            FACTS,
            id="total updates",
        ),
        pytest.param(
            replace(D1, part="total", group="writes", own={"last": shown(0.003)}),
            FACTS,
            id="total writes last",
        ),
        pytest.param(
            replace(D1, part="total", group="writes", own={"last": shown(0.001)}),
            FACTS,
            id="total writes nothing",
        ),
        pytest.param(
            replace(D1, level="proxy", name="p1", part="total", group=None, own={}), FACTS, id="total proxy"
        ),
        pytest.param(
            replace(D1, part="updates", waited=0.5),
            ["writes wait 500.0 ms", "25.0 % of all requests", "from 10 s to 20.5 s of 60 s"],
            id="waited",
        ),
        pytest.param(
            replace(D1, part="told", waited=0.5),
            ["writes wait 500.0 ms", "25.0 % of all requests", "from 10 s to 20.5 s of 60 s"],
            id="waited told",
        ),
        pytest.param(replace(D1, part="told"), FACTS, id="told"),
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
            FACTS,
            id="one of",
        ),
        pytest.param(
            make_finding("one of", vars(D1), same=["d2 on n2"], daemons=[]), FACTS, id="one of without"
        ),
        pytest.param(
            make_finding("one of", vars(D1), same=["d2 on n2"], daemons=["object-auditor"]),
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
            FACTS,
            id="ties of writes alone",
        ),
        pytest.param(replace(D1, daemons=[], statsd="its PUTs take 3.00 ms/kB"), FACTS, id="daemons none"),
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
            FACTS,
            id="work",
        ),
        pytest.param(
            replace(D1, part="own", rare=0.04, difference=by(0.15), interval=None, course=None),
            ["150.0 ms longer", "25.0 % of all requests"],
            id="few requests",
        ),
        pytest.param(replace(D1, part="own", sizes="200,000 bytes and more"), FACTS, id="large objects"),
        pytest.param(
            replace(D1, level="container", name="ssbench_000001", part="updates"), FACTS, id="a container"
        ),
        pytest.param(
            make_finding("busy", vars(D1), part="own", times_as_busy=2.4, same=["d2 on n2"]),
            FACTS,
            id="busier",
        ),
        pytest.param(make_finding("unfelt", vars(D1)), FACTS, id="unfelt"),
        pytest.param(SlowServer("proxy", "p1", part="own part"), [], id="no difference"),
        pytest.param(WholeServer("process", "n1:6200", members=["d1", "d2"]), [], id="together process"),
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
            ["500.0 ms", "at 1 s of 60 s"],
            id="late once",
        ),
        pytest.param(IncomparableServers("device", "d1 on n1", same=["d2 on n2"]), [], id="inconclusive"),
        pytest.param(IncomparableServers("device", "d1 on n1"), [], id="inconclusive one"),
        pytest.param(
            GivenUpReplicas("device", "d1 on n1", requests=12, share=0.3, stretch=STRETCH),
            ["30.0 % of all requests", "from 1 s to 2 s of 60 s"],
            id="499",
        ),
        pytest.param(
            BrokenDevice("device", "d1 on n1", requests=12, share=0.3, served=5, stretch=STRETCH),
            ["30.0 % of all requests", "from 1 s to 2 s of 60 s"],
            id="507",
        ),
        pytest.param(
            BrokenDevice(
                "device", "d1 on n1", requests=2, share=0.3, served=5, seconds=10.0, stretch=STRETCH
            ),
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
            ["writes wait 100.0 ms", "30.0 % of writes", "from 1 s to 2 s of 60 s"],
            id="update",
        ),
        pytest.param(
            MissedUpdates("device", "c1 on n1", requests=1, share=0.3, waited=0.0999),
            ["writes wait 99.9 ms", "30.0 % of writes"],
            id="update little",
        ),
        pytest.param(MissedUpdates("device", "c1 on n1", requests=2), ["2 times"], id="update unknown"),
        pytest.param(
            MemcachedFailure(
                "node",
                "10.0.0.1:11211",
                same=["10.0.0.2:11211"],
                requests=1,
                share=0.02,
                stretch=Stretch(1.0, 1.05, 60.0),
            ),
            ["2.00 % of all requests", "from 1 s to 1.1 s of 60 s"],
            id="memcached",
        ),
        pytest.param(
            MemcachedFailure("node", "10.0.0.1:11211", requests=1200), ["1,200 times"], id="memcached times"
        ),
        pytest.param(
            CalledSlow("device", "d1 on n1", requests=3, seconds=1.5, detail="fsync"),
            ["1500 ms", "3 times"],
            id="called slow",
        ),
        pytest.param(
            CalledSlow("device", "d1 on n1", requests=1, seconds=0.5), ["500.0 ms"], id="called slow once"
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
            ["2 times", "from 1 s to 2 s of 60 s"],
            id="error",
        ),
        pytest.param(
            LoggedErrors("node", "n1", members=["d1", "d2"], detail="2 timeouts"), [], id="error node"
        ),
        pytest.param(
            HandoffRequests("device", "", requests=2, share=0.001, stretch=STRETCH),
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
            ["8.00 ms longer", "10.0 % of all requests"],
            id="missing",
        ),
        pytest.param(
            MissingLines("proxy", "", requests=1200, share=0.1, difference=by(0.008)),
            ["8.00 ms longer", "10.0 % of all requests"],
            id="missing without a probability",
        ),
        pytest.param(
            CompleteStall("", "", requests=1, seconds=2.5, stretch=Stretch(10.0, 12.5, 60.0)),
            ["2.5 s", "from 10 s to 12.5 s of 60 s"],
            id="stall",
        ),
        pytest.param(CompleteStall("", "", requests=3, seconds=2.5), ["2.5 s", "3 times"], id="stall many"),
    ],
)
def test_each_kind_of_finding_is_said_as_a_whole(
    finding: ClusterFinding, facts: list[str], golden_words: GoldenWords
) -> None:
    golden_words(finding.describe())
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
