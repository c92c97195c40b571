"""What was at work on a suspect in the seconds in which it was slow: amounts that are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from joined_runs import joined_run, object_lines, servers, successes

from ssbench.cluster.finding_kinds import OneOfSeveral, SlowServer, SuspectFinding, Work
from ssbench.cluster.joined_run import Device
from ssbench.cluster.log_background import Background, DaemonPass, OtherRequestCounter, OtherRequests
from ssbench.cluster.possible_causes import BackgroundWork
from ssbench.cluster.server_times import DifferenceCourse
from ssbench.scenario.operations import READ

DISKS = [Device(f"n{number}", "object", f"d{number}") for number in range(3)]
#: Of ten seconds.
RUN = (1000.0, 1010.0)
D1 = SlowServer("device", "d1 on n1")


def asked(rates: Mapping[tuple[str, range], int], asker: str = "proxy-server") -> OtherRequests:
    """So many requests to a device in each of some seconds."""
    counter = OtherRequestCounter()
    for (device, seconds), rate in rates.items():
        for second in [*seconds] * rate:
            counter.add((f"n{device[1:]}", b"object", device.encode(), asker.encode()), second)
    return counter.requests(lambda word: word if isinstance(word, str) else word.decode())


def at_work(
    background: Background, run: tuple[float, float] = RUN, disks: list[Device] = DISKS
) -> BackgroundWork:
    zero = np.zeros(1, np.int64)
    operations = successes(np.full(1, READ.code), zero, np.ones(1), zero)
    lines = object_lines(disks, zero, zero, zero, np.ones(1))
    joined = joined_run(operations, lines, disks, servers(disks), ["p"], zero, np.ones(1))
    return BackgroundWork(replace(joined, background=background), run)


def beside(background: Background, finding: SuspectFinding = D1) -> list[Work]:
    return at_work(background).beside(finding)


def slow_for(begins: float, ends: float) -> SuspectFinding:
    return replace(D1, course=DifferenceCourse([], begins, ends))


BEFORE, DURING, AFTER = range(990, 1000), range(1000, 1010), range(1010, 1020)


def test_requests_of_others_are_those_a_second_of_the_run_and_of_as_much_before_it() -> None:
    rates = {("d1", BEFORE): 1, ("d1", DURING): 3, ("d1", AFTER): 9, ("d0", DURING): 2}
    # Of the two other devices one had 2 a second.
    assert beside(Background(asked(rates))) == [Work("other clients", "requests", "device", 3.0, 1.0, 1.0)]


@pytest.mark.parametrize(
    ("begins", "ends", "during"),
    [(2.0, 4.0, 4.0), (2.0, 2.0, 6.0), (2.0, 2.5, 6.0), (4.0, 6.0, 0.0), (0.0, 10.0, 0.8), (1.0, 3.0, 3.0)],
)
def test_only_the_seconds_count_in_which_it_was_slow(begins: float, ends: float, during: float) -> None:
    requests = asked({("d1", range(1002, 1003)): 6, ("d1", range(1003, 1004)): 2})
    found = beside(Background(requests), slow_for(begins, ends))
    assert [each.during for each in found] == ([during] if during else [])


@pytest.mark.parametrize(("count", "is_told"), [(4, False), (5, True)])
def test_few_requests_are_not_told(count: int, is_told: bool) -> None:
    assert bool(beside(Background(asked({("d1", range(1000, 1000 + count)): 1})))) is is_told


@pytest.mark.parametrize(("first", "before"), [(991, 0.9), (992, None)])
def test_what_was_before_is_not_known_of_a_log_that_begins_later(first: int, before: float | None) -> None:
    (work,) = beside(Background(asked({("d1", range(first, 1010)): 1})))
    assert work == Work("other clients", "requests", "device", 1.0, before, 0.0)


def test_a_node_is_asked_as_much_as_its_devices_on_average() -> None:
    (work,) = beside(Background(asked({("d1", DURING): 4})), SlowServer("node", "n1"))
    assert work.during == 4.0
    two = at_work(Background(asked({("d1", DURING): 4})), disks=[*DISKS, Device("n1", "object", "d9")])
    assert [each.during for each in two.beside(SlowServer("node", "n1"))] == [2.0]
    several = OneOfSeveral("device", "d1 on n1", same=["d2 on n2"])
    found = beside(Background(asked({("d1", DURING): 4, ("d0", DURING): 7})), several)
    assert found == [
        Work("other clients", "requests", "device", 4.0, None, 7.0, "d1 on n1"),
        Work("other clients", "requests", "device", 0.0, None, 7.0, "d2 on n2"),
    ]


def test_a_process_is_asked_as_much_as_the_devices_of_its_server_on_average() -> None:
    disks = [*DISKS, Device("n1", "object", "d9"), Device("n1", "container", "c1")]
    work = at_work(Background(asked({("d1", DURING): 4})), disks=disks)
    for name in (str(each) for each in servers(disks) if each.node == "n1"):
        assert [each.during for each in work.beside(SlowServer("process", name))] == [2.0]
    assert work.beside(SlowServer("process", "object server 7 on n1")) == []
    assert work.beside(SlowServer("proxy", "n1")) == []


def test_requests_of_daemons_have_their_names() -> None:
    for asker, who in (
        ("object-expirer", "object-expirer"),
        ("container-sharder", "container-sharder"),
        ("object-server", "other clients"),
        ("curl", "other clients"),
    ):
        assert [each.who for each in beside(Background(asked({("d1", DURING): 1}, asker)))] == [who]


def test_clocks_of_nodes_are_those_of_their_lines() -> None:
    ahead = Background(asked({("d1", range(1100, 1110)): 2}), clocks_ahead={"n1": 100.0})
    assert [each.during for each in beside(ahead)] == [2.0]
    assert beside(replace(ahead, clocks_ahead={"n1": 90.0})) == []


def passes(*found: tuple[str, str, float, float], **changed: set[str]) -> Background:
    made = [DaemonPass(node, "object-replicator", *others) for node, *others in found]
    told = {f"n{number}": {"object-replicator"} for number in range(3)}
    return Background(passes=made, programs=told, **changed)


def test_a_daemon_is_at_work_for_a_share_of_the_time_passes_that_overlap_count_once() -> None:
    found = passes(
        ("n1", "d1", 985.0, 992.0),
        ("n1", "d1", 999.0, 1002.0),
        ("n1", "d1", 1001.0, 1004.0),
        ("n1", "d1", 1002.0, 1003.0),
        ("n1", "d1", 1009.0, 1020.0),
        ("n1", "d9", 1004.0, 1009.0),
        ("n0", "d0", 1000.0, 1002.0),
    )
    assert beside(found) == [Work("object-replicator", "time", "device", 0.5, pytest.approx(0.3), 0.1)]
    assert [each.during for each in beside(found, slow_for(4.0, 9.0))] == []
    assert [each.during for each in beside(found, slow_for(3.0, 5.0))] == [0.5]


def test_passes_of_whole_nodes_are_compared_with_those_of_other_nodes() -> None:
    found = passes(("n1", "", 1000.0, 1004.0), ("n0", "", 1000.0, 1001.0), ("n2", "", 1000.0, 1003.0))
    assert beside(found) == [Work("object-replicator", "time", "node", 0.4, None, pytest.approx(0.2))]
    assert beside(found, SlowServer("node", "n1")) == beside(found)


@pytest.mark.parametrize(("seconds", "is_told"), [(0.09, False), (0.11, True)])
def test_a_hundredth_of_the_time_is_told(seconds: float, is_told: bool) -> None:
    assert bool(beside(passes(("n1", "d1", 1000.0, 1000.0 + seconds)))) is is_told


def test_nodes_without_lines_of_a_daemon_are_no_peers() -> None:
    found = passes(("n1", "d1", 980.0, 1010.0), ("n0", "d0", 1000.0, 1004.0))
    del found.programs["n2"]
    assert beside(found) == [Work("object-replicator", "time", "device", 1.0, 1.0, 0.4)]
    # Of a node with lines of unknown time, what was before is not known, nor what others did.
    uncertain = replace(found, uncertain={"n0", "n1"})
    assert beside(uncertain) == [Work("object-replicator", "time", "device", 1.0, None, None)]


def test_the_daemons_whose_lines_are_given_of_all_nodes_that_it_may_be() -> None:
    told = {"n1": {"b", "a"}, "n2": {"b", "c"}}
    several = OneOfSeveral("device", "d1 on n1", same=["d2 on n2"])
    work = at_work(Background(programs=told))
    assert work.logs(D1) == ["a", "b"]
    assert work.logs(several) == ["b"]
    assert work.logs(D1) == ["a", "b"]
    assert work.logs(replace(D1, name="d0 on n0")) == []
    assert work.logs(replace(D1, name="elsewhere")) is None
    assert work.logs(replace(D1, level="proxy", name="n1")) is None
    assert at_work(Background()).logs(D1) is None
    assert at_work(Background(programs=told, uncertain={"n1"})).logs(D1) is None
    assert at_work(Background(programs=told, uncertain={"n2"})).logs(D1) == ["a", "b"]
    for run in ((np.nan, np.nan), (1000.0, 1000.0)):
        work = at_work(Background(asked({("d1", DURING): 4}), programs=told), run)
        assert (work.logs(D1), work.beside(D1)) == (None, [])
