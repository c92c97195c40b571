"""What else was at work on a suspect: requests of other clients, and passes of background daemons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from counted import SCENARIO, Memory, row
from golden_words import GoldenWords
from result_rows import block
from said import SAME_SECONDS
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster import finding_sentences
from ssbench.cluster.attribution_records import AttributionFacts
from ssbench.cluster.finding_kinds import OneOfSeveral, SlowServer, Work
from ssbench.cluster.findings import make_attribution
from ssbench.cluster.join import LogJoin
from ssbench.cluster.joined_run import JoinedRun
from ssbench.cluster.log_background import (
    COUNTED_ONE_IN,
    MAX_COUNTED_REQUESTS,
    Background,
    DaemonPass,
    OtherRequestCounter,
    OtherRequests,
    background_window,
    is_near_window,
    merge_other_requests,
)
from ssbench.logs import transaction_ids
from ssbench.logs.log_files import LogFile
from ssbench.results.cluster_observation import Observation, Server, State
from ssbench.results.run_description import RunDescription
from ssbench.scenario.names import run_mark

#: The second in which the simulated run's first result ends; it has 500 results, 50 a second.
BEGAN = 1_795_300_893
SHAPE = Shape(devices=4, nodes=3, requests=500)
SLOW = Cause(devices=(1,), seconds=0.06)
#: In this part of the run only: from 3 s to 6 s.
SLOW_FOR_A_TIME = replace(SLOW, part=(0.3, 0.6))


def with_background(background: Background, cause: Cause = SLOW) -> JoinedRun:
    return replace(simulate(1, cause, SHAPE), background=background)


def suspect(joined: JoinedRun) -> SlowServer:
    (found,) = (each for each in make_attribution(joined).findings if isinstance(each, SlowServer))
    assert found.name == "d1 on n1"
    return found


#: Node, server, device, who asked, and second: how often.
Counts = Mapping[tuple[str, str, str, str, int], int]


def requests(counts: Counts) -> OtherRequests:
    counting = OtherRequestCounter()
    for (node, server, device, asker, second), count in counts.items():
        for _ in range(count):
            counting.add((node, server.encode(), device.encode(), asker.encode()), second)
    return counting.requests(lambda word: word if isinstance(word, str) else word.decode())


def counts(found: OtherRequests) -> Counts:
    return {
        (*who, second): number
        for who, seconds, numbers in found.series()
        for second, number in zip(seconds.tolist(), numbers.tolist(), strict=True)
    }


def asked(
    device: str,
    node: str,
    rates: tuple[int, int],
    ahead: int = 0,
    asker: str = "proxy-server",
    since: int = -10,
) -> OtherRequests:
    """So many requests of others in each second before the run, and in each of it."""
    return requests(
        {
            (node, "object", device, asker, BEGAN + ahead + second): rates[second >= 0]
            for second in range(since, 10)
        }
    )


def test_requests_of_other_clients_stand_beside_who_is_slow() -> None:
    others = (asked(name, node, (2, 3)) for name, node in (("d0", "n0"), ("d2", "n2"), ("d3", "n0")))
    joined = with_background(Background(merge_other_requests([asked("d1", "n1", (2, 40)), *others])))
    assert suspect(joined).work == [
        Work(
            "other clients",
            "requests",
            "device",
            pytest.approx(40, rel=0.1),
            pytest.approx(2, rel=0.1),
            pytest.approx(3, rel=0.1),
        )
    ]
    assert (
        "In the same seconds: other clients 40 requests/s (before the run 2.00, other devices 3.01)"
        in re.sub(
            r"4[01]\.\d requests",
            "40 requests",
            finding_sentences.describe_attribution(make_attribution(joined))[0],
        )
    )


def test_before_the_run_is_told_only_where_logs_reach_so_far() -> None:
    late = asked("d1", "n1", (2, 40), since=-4)
    (work,) = suspect(with_background(Background(late))).work
    assert (work.before, work.during) == (None, pytest.approx(40, rel=0.1))


def test_a_clock_that_is_ahead_changes_nothing() -> None:
    ahead = asked("d1", "n1", (2, 40), ahead=3600)
    (work,) = suspect(with_background(Background(ahead, clocks_ahead={"n1": 3600.0}))).work
    assert work.during == pytest.approx(40, rel=0.1)
    assert suspect(with_background(Background(ahead))).work == []


def test_deletes_of_the_expirer_are_not_those_of_other_clients() -> None:
    both = merge_other_requests(
        [asked("d1", "n1", (2, 10)), asked("d1", "n1", (0, 30), asker="object-expirer", since=0)]
    )
    found = suspect(with_background(Background(both)))
    assert {each.who: each.during for each in found.work} == pytest.approx(
        {"other clients": 10, "object-expirer": 30}, rel=0.1
    )
    # Logs reach as far back as the first line of anybody.
    assert {each.who: each.before for each in found.work} == pytest.approx(
        {"other clients": 2, "object-expirer": 0}, rel=0.1
    )
    assert re.search(r" object-expirer (29|3\d)(\.\d)? requests/s", found.describe())


#: Of twelve devices on a fresh ring three are in the same requests, so that it cannot be told which is slow.
ONE_OF = Cause(devices=(1,), where="before", only="writes")
FRESH = Shape(devices=12, nodes=4, requests=1200, ring="fresh", rate=120.0)


def one_of(background: Background, facts: AttributionFacts | None = None) -> OneOfSeveral:
    (found,) = make_attribution(replace(simulate(1, ONE_OF, FRESH), background=background), facts).findings
    assert isinstance(found, OneOfSeveral)
    assert found.candidates == ["d1 on n1", "d2 on n2", "d11 on n3"]
    return found


def test_what_was_at_work_stands_beside_each_of_those_that_are_not_told_apart() -> None:
    healthy = (asked(f"d{place}", f"n{place % 4}", (2, 3)) for place in range(12) if place not in (1, 2, 11))
    found = one_of(
        Background(merge_other_requests([asked("d1", "n1", (2, 40)), asked("d2", "n2", (2, 5)), *healthy]))
    )
    rates = {each.whose: (each.during, each.before, each.others) for each in found.work}
    assert {each.who for each in found.work} == {"other clients"}
    assert rates["d1 on n1"] == pytest.approx((40, 2, 3), rel=0.1)
    assert rates["d2 on n2"] == pytest.approx((5, 2, 3), rel=0.1)
    assert rates["d11 on n3"] == pytest.approx((0, 0, 3), rel=0.1)
    said = found.describe().partition("In the same seconds: ")[2]
    assert re.match(
        r"other clients on d1 on n1 4\d\.\d requests/s \(before the run 2\.00, other devices 3\.0\d\); ", said
    )
    assert "; other clients on d11 on n3 0.00 requests/s (before the run 0.00, other devices 3.0" in said


def test_daemons_beside_those_that_are_not_told_apart(golden_words: GoldenWords) -> None:
    programs = {f"n{number}": {"object-auditor"} for number in range(4)}
    passes = [
        DaemonPass("n1", "object-auditor ALL", "", BEGAN - 90.0, BEGAN - 80.0),
        DaemonPass("n1", "object-auditor ALL", "", BEGAN, BEGAN + 10.0),
    ]
    found = one_of(Background(passes=passes, programs=programs))
    assert {each.whose: round(each.during, 1) for each in found.work} == {
        "d11 on n3": 0.0,
        "d1 on n1": 1.0,
        "d2 on n2": 0.0,
    }
    said = found.describe()
    assert (
        "object-auditor ALL at work on the node of d1 on n1 100.0 % of the time (before the run 0.00 %"
        in said
    )
    # Of a node without its lines nothing is said.
    found = one_of(Background(passes=passes, programs={**programs, "n2": set()}))
    assert "d2 on n2" not in {each.whose for each in found.work}
    assert found.daemons == []
    nothing = one_of(Background(programs=programs))
    golden_words(nothing.describe())
    partly = one_of(Background(programs={**programs, "n3": {"object-updater"}}))
    golden_words(partly.describe())
    assert one_of(Background(programs=programs, uncertain={"n2"})).daemons is None


def test_what_recon_saw_of_those_that_are_not_told_apart_names_their_nodes() -> None:
    servers = (
        Server(f"http://10.0.0.{number + 1}:6200", "object", after=State(load=load))
        for number, load in enumerate((0.5, 21.4, 1.0, 9.0))
    )
    hosts = {f"10.0.0.{number + 1}": f"n{number}" for number in range(4)}
    found = one_of(Background(), AttributionFacts(hosts, Observation(servers=tuple(servers))))
    assert found.beside == ["load 21 on n1", "load 9 on n3"]
    assert "Recon saw on their nodes: load 21 on n1, load 9 on n3." in found.describe()


def test_a_daemon_that_was_at_work_while_a_device_was_slow() -> None:
    programs = {node: {"object-auditor"} for node in ("n0", "n1", "n2")}
    passes = [
        DaemonPass("n1", "object-auditor ALL", "", BEGAN + 3.0, BEGAN + 6.0),
        DaemonPass("n1", "object-auditor ALL", "", BEGAN + 4.0, BEGAN + 5.0),  # told twice, counted once
        DaemonPass("n2", "object-auditor ALL", "", BEGAN - 9.0, BEGAN - 1.0),
    ]
    # Before its first pass it may have been at work too: the logs may begin there.
    (work,) = suspect(with_background(Background(passes=passes, programs=programs), SLOW_FOR_A_TIME)).work
    assert work.before is None
    passes.append(DaemonPass("n1", "object-auditor ALL", "", BEGAN - 90.0, BEGAN - 80.0))
    found = suspect(with_background(Background(passes=passes, programs=programs), SLOW_FOR_A_TIME))
    assert found.course
    assert found.course.begins == pytest.approx(3, abs=0.5)
    (work,) = found.work
    assert (work.who, work.on, work.before, work.others) == ("object-auditor ALL", "node", 0.0, 0.0)
    assert work.during > 0.9
    # Where it was at work on the device itself, the other devices are compared.
    of_device = [each._replace(device="d1") for each in passes]
    (work,) = suspect(with_background(Background(passes=of_device, programs=programs), SLOW_FOR_A_TIME)).work
    assert work.on == "device"
    # Passes on other devices of the node are not those of this one.
    of_other = [each._replace(device="d4") for each in passes]
    assert (
        suspect(with_background(Background(passes=of_other, programs=programs), SLOW_FOR_A_TIME)).work == []
    )


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ({}, None),
        ({"n0": {"object-auditor"}}, "No line of a background daemon names its node."),
        (
            {"n1": {"object-auditor", "object-updater"}},
            f"No line of object-auditor or object-updater on its node {SAME_SECONDS}",
        ),
    ],
)
def test_nothing_is_claimed_of_daemons_without_their_logs(
    programs: dict[str, set[str]], said: str | None
) -> None:
    joined = with_background(Background(programs=programs))
    (first, *_) = finding_sentences.describe_attribution(make_attribution(joined))
    assert ("background daemon" in first or "tells of work" in first) == (said is not None)
    assert said is None or said in first


def test_nothing_is_claimed_where_the_time_of_lines_or_of_the_run_is_not_known() -> None:
    background = Background(programs={"n1": {"object-auditor"}}, uncertain={"n1"})
    assert suspect(with_background(background)).daemons is None
    joined = with_background(Background(programs={"n1": {"object-auditor"}}))
    unknown = replace(joined.operations, ended=np.full(len(joined.operations.ended), np.nan))
    assert suspect(replace(joined, operations=unknown)).daemons is None


def test_a_proxy_on_a_node_is_not_that_node() -> None:
    joined = with_background(Background(asked("d1", "n1", (2, 40))), Cause(proxy=1, seconds=0.03))
    found = make_attribution(replace(joined, proxies=["n0", "n1"])).findings
    assert [(each.level, each.work) for each in found if each.kind == "slow"] == [("proxy", [])]


MARK = f"-{run_mark(0x1234)}"


def access(second: int, server: str, device: str, end: str, asker: str = "proxy-server") -> str:
    """A line of a storage server in the hour from 22:41 UTC, which is two hours later in local time."""
    return (
        f"Nov 22 00:41:{second:02} stor1 {server}-server: 10.0.0.1 - - [21/Nov/2026:22:41:{second:02} +0000]"
        f' "PUT /{device}/4/AUTH_a/c/o" 201 - "PUT http://x/v1/a/c/o" "{end}" "{asker} 1" 0.0100 "-" 9 0\n'
    )


LINES = "".join(
    [
        access(3, "object", "d1", "txaaaaaaaaaaaaaaaaaaaaa-006b021dff"),
        access(33, "object", "d1", f"tx0123456789abcdef01234-006b021e1d{MARK}"),
        access(33, "object", "d1", f"txbbbbbbbbbbbbbbbbbbbbb-006b021e1d{MARK}"),
        access(34, "object", "d1", "txccccccccccccccccccccc-006b021e1e"),
        access(34, "object", "d1", f"txddddddddddddddddddddd-006b021e1e-{run_mark(0x99)}"),
        access(34, "object", "c1", "txeeeeeeeeeeeeeeeeeeeee-006b021e1e", "object-updater"),
        "Nov 22 00:41:35 stor1 object-updater: Object update sweep of d1 completed: 1.50s, 1 successes\n",
        "Nov 22 00:41:35 stor1 object-replicator: Starting object replication pass.\n",
        'Nov 22 00:41:40 stor1 object-auditor: Begin object audit "forever" mode (ALL)\n',
        "Nov 22 03:41:40 stor1 object-replicator: 5/10 (50.00%) partitions replicated in 10805.00s (2/sec\n",
    ]
)


def join(path: Path, text: str, mark: str = MARK) -> Background:
    path.write_text(text)
    trans_id = f"tx0123456789abcdef01234-006b021e1d{mark}"
    results = Memory(
        block([row(completed=1795300894.0)], [trans_id]), run=RunDescription(SCENARIO, run_id=0x1234)
    )
    join = LogJoin(results)
    join.read([LogFile(path, "file")])
    return join.joined().background


def test_lines_of_others_are_counted_by_the_clock_of_the_node(tmp_path: Path) -> None:
    found = join(tmp_path / "log", LINES)
    utc = 1795300893
    # The run's first object is its own; another run is somebody else.
    assert counts(found.requests) == {
        ("stor1", "object", "d1", "proxy-server", utc - 30): 1,
        ("stor1", "object", "d1", "proxy-server", utc + 1): 2,
        ("stor1", "container", "c1", "object-updater", utc + 1): 1,
    }
    assert found.uncertain == set()
    assert found.clocks_ahead == {"stor1": pytest.approx(-0.5)}
    assert found.programs == {"stor1": {"object-updater", "object-replicator", "object-auditor"}}
    assert sorted(found.passes) == [
        # The auditor's has no end: it lasts as long as the log does.
        DaemonPass("stor1", "object-auditor ALL", "", utc + 7, utc + 10807),
        DaemonPass("stor1", "object-replicator", "", utc + 2, utc + 10807),
        DaemonPass("stor1", "object-updater", "d1", utc + 0.5, utc + 2),
    ]


def test_without_a_mark_others_are_not_told_from_the_run(tmp_path: Path) -> None:
    found = join(tmp_path / "log", LINES.replace(MARK, ""), mark="")
    assert counts(found.requests) == {}
    assert found.programs["stor1"]


def test_local_time_without_a_zone_is_no_time(tmp_path: Path) -> None:
    daemons = "".join(line for line in LINES.splitlines(keepends=True) if "-server" not in line)
    found = join(tmp_path / "log", daemons)
    assert (found.passes, found.programs, found.uncertain) == ([], {}, {"stor1"})
    zoned = daemons.replace("Nov 22 00:41:35", "2026-11-22T00:41:35+02:00")
    assert {each.program for each in join(tmp_path / "log", zoned).passes} == {
        "object-updater",
        "object-replicator",
    }


def test_of_a_node_with_lines_without_a_time_nothing_is_claimed(tmp_path: Path) -> None:
    raw = LINES + "storage2 object-auditor: " + 'Begin object audit "forever" mode (ALL)\n'
    hosted = raw.replace("storage2 object-auditor", "object-auditor")
    assert join(tmp_path / "log", hosted).uncertain


def test_the_end_of_a_pass_on_one_device_leaves_that_of_another(tmp_path: Path) -> None:
    sweep = "Nov 22 00:41:{} stor1 object-updater: Object update sweep {}\n"
    said = [
        sweep.format(30, "starting on /srv/node/d1 (pid: 7)"),
        sweep.format(30, "starting on /srv/node/d2 (pid: 8)"),
        sweep.format(33, "of d1 completed: 3.00s, 1 successes"),
        "Nov 22 00:41:59 stor1 object-replicator: Starting object replication pass.\n",
    ]
    found = join(tmp_path / "log", LINES + "".join(said))
    utc = 1795300893
    assert [each.begins for each in found.passes if each.device == "d2"] == [utc - 3]


def others(tmp_path: Path, *lines: str) -> dict[tuple[str, ...], int]:
    """Count lines of others by server and program."""
    found: dict[tuple[str, ...], int] = {}
    requests = join(tmp_path / "log", LINES + "".join(lines)).requests
    for (_, server, _, program, _), number in counts(requests).items():
        found[server, program] = found.get((server, program), 0) + number
    return found


def test_programs_are_told_from_clients_by_their_requests(tmp_path: Path) -> None:
    before = others(tmp_path)
    delete = access(34, "object", "d1", "txdddddddddddddddddddde-006b021e1e").replace("PUT", "DELETE")
    listing = delete.replace("/AUTH_a/c/o", "/.expiring_objects/1795219149").replace("DELETE", "GET")
    found = others(
        tmp_path,
        # Swift 2.38 names the internal client of the expirer; it was called as a proxy before.
        delete.replace("proxy-server 1", "Swift Object Expirer"),
        delete.replace("http://x/v1", "http://localhost/v1"),
        listing,
        # What the object server tells a container server of it, and the expirer of its queue.
        delete.replace("proxy-server 1", "object-server 1").replace(
            "http://x/v1/a", "http://localhost/d1/9/a"
        ),
        listing.replace("proxy-server 1", "direct-client 1").replace("GET", "DELETE"),
        # A proxy may have this name, with its port.
        delete.replace("http://x/v1", "http://localhost:8080/v1"),
        delete.replace("proxy-server 1", "Swift Container Reconciler"),
        # An object server tells of what a client deletes.
        delete.replace("proxy-server 1", "object-server 1"),
        # A container server tells an account server of a container.
        delete.replace("/c/o", "/c").replace("proxy-server 1", "container-server 1"),
    )
    assert {key: number - before.get(key, 0) for key, number in found.items()} == {
        ("object", "proxy-server"): 1,
        ("container", "object-updater"): 0,
        ("object", "object-expirer"): 2,
        ("container", "object-expirer"): 3,
        ("container", "object-server"): 1,
        ("object", "container-reconciler"): 1,
        ("account", "container-server"): 1,
    }


def test_of_very_many_requests_some_are_counted_for_all() -> None:
    counting = OtherRequestCounter()
    random = np.random.default_rng(1)
    who = ("n1", b"object", b"d1", b"proxy-server")
    for number in range(MAX_COUNTED_REQUESTS + 1):
        counting.add(who, BEGAN + number % 4)
    texts = [f"tx{random.bytes(11).hex()[:21]}-006b021e1e" for _ in range(8000)]
    trans_ids, _ = transaction_ids.ids_of_column(texts)
    chosen = counting.chosen(trans_ids)
    assert chosen.sum() == pytest.approx(8000 / COUNTED_ONE_IN, rel=0.15)
    for _ in range(chosen.sum()):
        counting.add(who, BEGAN + 5)
    found = counts(counting.requests(lambda word: word if isinstance(word, str) else word.decode()))
    key = ("n1", "object", "d1", "proxy-server")
    assert found[*key, BEGAN] == pytest.approx(MAX_COUNTED_REQUESTS / 4, abs=1)
    assert found[*key, BEGAN + 5] == COUNTED_ONE_IN * chosen.sum()
    # The year of a line may be any.
    counting.add(who, -5)
    assert counting.chosen(trans_ids).tolist() == chosen.tolist()


@pytest.mark.parametrize(("seconds", "before"), [(5, 30), (30, 30), (100, 100), (600, 600), (7200, 600)])
def test_as_much_before_a_run_is_looked_at_as_it_took_within_limits(seconds: int, before: int) -> None:
    assert background_window(BEGAN, BEGAN + seconds) == (BEGAN - before, BEGAN + seconds + 1)


@pytest.mark.parametrize("zoned", [True, False])
def test_a_line_of_a_daemon_may_tell_of_a_pass_of_a_day_and_its_zone_may_be_a_day_off(zoned: bool) -> None:
    first, last = 5_000_000, 5_001_000
    far = 86_400 * (1 if zoned else 2)
    moments = (first - far - 1, first - far, last, last + far, last + far + 1)
    found = [is_near_window(each, (first, last), zoned=zoned) for each in moments]
    assert found == [False, True, True, True, False]
