"""Rows of the tables of attribution, from a joined run in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from golden_words import GoldenWords
from joined_runs import joined_run, object_lines, servers, successes
from said import LACK_LINES
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster import attribution_records, finding_sentences, own_times
from ssbench.cluster.attribution_records import (
    ServerRow,
    keep_slower_of_two,
    make_partition_rows,
    make_server_rows,
)
from ssbench.cluster.findings import make_attribution
from ssbench.cluster.joined_run import OBJECT, OTHER, UPDATE, Device, FileCount, JoinedLines, JoinedRun
from ssbench.cluster.operation_times import group_by_kind, make_candidate_levels, median_and_p99
from ssbench.cluster.rank_tests import PeerDifference, measure_peer_difference
from ssbench.document.units import format_share


def run(devices: int, partition: list[int], device: list[int], seconds: list[float]) -> JoinedRun:
    """A run with a line for each operation."""
    count = len(partition)
    disks = [Device("n", "object", f"d{number}") for number in range(devices)]
    every = np.arange(count)
    operations = successes(np.zeros(count), np.ones(count, np.int64), np.array(seconds) + 0.5, every)
    lines = object_lines(disks, every, np.array(device), np.array(partition), np.array(seconds))
    return joined_run(
        operations, lines, disks, servers(disks), ["p"], np.zeros(count, np.int64), np.array(seconds)
    )


def test_a_partition_names_its_devices_up_to_five() -> None:
    partition, device = [7] * 7 + [3] * 5 + [9], [*range(7), *range(5), 0]
    busiest, next_one, last = make_partition_rows(run(7, partition, device, [0.1] * 13))
    assert busiest.name.startswith("7 of policy 0 (")
    assert [part.strip() for part in busiest.name.partition("(")[2].rstrip(")").split(",")][5:] == ["2 more"]
    assert "more" not in next_one.name
    assert [each.count(",") for each in (busiest.name, next_one.name, last.name)] == [5, 4, 0]
    assert [each.requests for each in (busiest, next_one, last)] == [7, 5, 1]


def test_lines_of_an_operation_have_ranks_from_the_longest() -> None:
    joined = run(1, [0] * 5, [0] * 5, [0.1, 0.3, 0.2, 0.5, 0.4])
    joined.lines.operation[:] = [2, 0, 2, 0, 2]
    order, place = own_times._order_by_rank(joined, np.arange(5))
    assert order.tolist() == [3, 1, 4, 2, 0]
    assert place.tolist() == [0, 1, 0, 1, 2]
    order, place = own_times._order_by_rank(joined, np.array([0, 1]))
    assert (order.tolist(), place.tolist()) == ([1, 0], [0, 0])


def test_what_a_container_server_took_of_an_object_server_is_left_out() -> None:
    joined = run(1, [0] * 6, [0] * 6, [0.5, 0.3, 0.2, 0.1, 0.4, 0.05])
    joined.lines.operation[:] = [0, 0, 0, 0, 1, 2]
    joined.lines.of[:] = [OBJECT, OBJECT, UPDATE, UPDATE, OBJECT, OBJECT]
    # The longest from the longest; the other operations told no container server.
    assert own_times.subtract_update_times(joined).tolist() == pytest.approx([0.3, 0.2, 0.2, 0.1, 0.4, 0.05])
    joined.lines.of[:] = OBJECT
    assert own_times.subtract_update_times(joined).tolist() == [0.5, 0.3, 0.2, 0.1, 0.4, 0.05]


def rows(*longer: float | None) -> list[ServerRow]:
    """Rows of candidates whose requests take so many seconds longer than the others'."""
    return [  # the means say nothing here
        ServerRow(f"p{place}", 9, 0, None, None, None if each is None else PeerDifference(each, 0.0, 1.0))
        for place, each in enumerate(longer)
    ]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ((0.2, 0.1), (0.2, None)),
        ((-0.1, 0.1), (None, 0.1)),
        ((-0.1, -0.2), (None, None)),
        ((0.1, None), (0.1, None)),
        ((0.1, -0.1, 0.2), (0.1, -0.1, 0.2)),
        ((0.1, 0.2, None), (0.1, 0.2, None)),
    ],
)
def test_of_two_the_difference_of_the_slower_one_is_shown(
    given: tuple[float | None, ...], shown: tuple[float | None, ...]
) -> None:
    assert tuple(each.longer and each.longer.median for each in keep_slower_of_two(rows(*given))) == shown


def test_reasons_are_told_of_what_is_missing(golden_words: GoldenWords) -> None:
    whole = run(2, [0] * 100, [0, 1] * 50, [0.1] * 100)
    assert make_attribution(whole).coverage.reasons == []
    found = {
        "no access line of a proxy": replace(
            whole, proxy=np.full(100, -1), proxy_seconds=np.full(100, np.nan)
        ),
        "operations without a proxy's line": replace(whole, proxy=np.where(np.arange(100) < 2, -1, 0)),
        "cut lines": replace(whole, files=[FileCount("node.log", "n", 100, 100, 1, None, None)]),
    }
    for reason, joined in found.items():
        assert [each.partition(":")[0] for each in make_attribution(joined).coverage.reasons] == [reason]
    lines = whole.lines
    first = lines.operation < 2
    lines.operation[first] = 50  # the first two have no line
    (reason,) = make_attribution(whole).coverage.reasons
    golden_words(reason)
    lines.of[:] = OTHER
    (reason,) = make_attribution(whole).coverage.reasons
    assert reason.startswith("no access line of an object server: ")


def test_a_proxy_without_a_log_is_no_all_clear(golden_words: GoldenWords) -> None:
    for seconds in (0.0, 0.03):
        joined = simulate(1, Cause(proxy=1, seconds=seconds), Shape(devices=4, nodes=3, requests=600))
        lost = joined.proxy == 1
        without = replace(
            joined,
            proxy=np.where(lost, -1, joined.proxy),
            proxy_seconds=np.where(lost, np.nan, joined.proxy_seconds),
        )
        first, *others = finding_sentences.describe_attribution(make_attribution(without))
        if seconds:
            golden_words(first)
            assert "that lack a line of a proxy take 3" in first
        else:
            golden_words(first)
        assert any(each.startswith(f"{format_share(lost.mean())}{LACK_LINES} proxy") for each in others)


def test_without_lines_of_container_servers_they_are_not_cleared(golden_words: GoldenWords) -> None:
    joined = simulate(1, Cause(container=1, seconds=0.03), Shape(devices=4, nodes=3, requests=600))
    kept = joined.lines.of != UPDATE
    lines = JoinedLines(**{name: getattr(joined.lines, name)[kept] for name in JoinedLines.__slots__})
    first, *others = finding_sentences.describe_attribution(make_attribution(replace(joined, lines=lines)))
    golden_words(first)
    golden_words(others)


def test_the_first_device_is_the_one_with_most_evidence() -> None:
    joined = simulate(3, Cause(devices=(1,), seconds=0.03), Shape(devices=12, nodes=4, requests=600))
    lines = joined.lines
    # Another has a few requests only, which took long by chance.
    other = np.flatnonzero((lines.device == 2) & (lines.of == OBJECT))
    lines.device[other[2:]] = 6
    joined.operations.latency[lines.operation[other[:2]]] = 1.0
    found = make_attribution(joined)
    longest = max(found.devices, key=lambda row: row.longer.median if row.longer else -1.0)
    assert longest.name == "d2 on n2"
    assert found.devices[0].name == "d1 on n1"
    assert found.nodes[0].name == "n1"


def test_operations_that_were_tried_again_and_those_held_up_are_counted() -> None:
    joined = run(2, [0] * 40, [0, 1] * 20, [0.1] * 40)
    joined.operations.retries[:3] = [1, 2, 1]
    joined.operations.latency[3] = np.nan
    found = make_attribution(joined).coverage
    assert (found.retried, found.delayed, found.failed) == (3, 1, 0)


def test_of_a_long_run_a_log_may_begin_late_by_a_tenth_of_it() -> None:
    """Where lines are missing. A node may have nothing to do for as long, or for ten seconds."""
    whole = run(2, [0] * 100, [0, 1] * 50, [0.1] * 100)
    proxy = np.where(np.arange(100) < 2, -1, 0)
    for length, late, named in ((1000, 100, False), (1000, 101, True), (50, 10, False), (50, 11, True)):
        files = [
            FileCount("a.log", "n", 100, 100, 0, 5000, 5000 + length),
            FileCount("b.log", "m", 100, 100, 0, 5000 + late, 5000 + length),
        ]
        joined = replace(whole, proxy=proxy, files=files, began=5000, ended=5000 + length)
        reasons = make_attribution(joined).coverage.reasons
        assert any(f"the log of m begins {late} s after" in each for each in reasons) is named, reasons


@pytest.mark.parametrize("where", ["proxy", "object servers"])
def test_lines_that_are_missing_of_either_are_looked_for(where: str) -> None:
    joined = run(2, [0] * 100, [0, 1] * 50, [0.1] * 100)
    files = [FileCount(f"{node}.log", node, 9, 9, 0, first, 50) for node, first in (("n", 0), ("m", 30))]
    joined = replace(joined, files=files, began=0, ended=50)
    assert make_attribution(joined).coverage.reasons == []
    if where == "proxy":
        joined = replace(joined, proxy=np.where(np.arange(100) < 2, -1, 0))
    else:
        joined.lines.operation[:2] = 50
    reasons = make_attribution(joined).coverage.reasons
    assert len(reasons) == 2
    assert reasons[1].startswith("the log of m begins 30 s after the run")


@pytest.mark.parametrize(
    ("first", "last", "reasons"),
    [
        ((1001, 1005), (1999, 1990), []),  # a second may be without a line
        ((1002, 1005), (2000, 1990), ["the logs begin 2 s after the run: give the rotated files too"]),
        ((1000, 1005), (1997, 1990), ["the logs end 3 s before the run: were they copied too early?"]),
    ],
)
def test_logs_of_which_none_reaches_to_an_end_of_the_run_are_told(
    first: tuple[int, int], last: tuple[int, int], reasons: list[str]
) -> None:
    """Those of a node are taken together, and one without a line of the run says nothing."""
    files = [
        FileCount("a.log.1", "n", 9, 9, 0, first[0], first[0] + 9),
        FileCount("a.log", "n", 9, 9, 0, first[0] + 9, last[0]),
        FileCount("b.log", "m", 9, 9, 0, first[1], last[1]),
        FileCount("c.log", "o", 9, 0, 0, None, None),
    ]
    joined = replace(run(2, [0] * 100, [0, 1] * 50, [0.1] * 100), files=files, began=1000, ended=2000)
    assert make_attribution(joined).coverage.reasons == reasons
    assert make_attribution(replace(joined, files=files[3:])).coverage.reasons == []


@pytest.mark.parametrize(("lost", "is_told"), [(1, False), (2, True)])
def test_of_a_hundred_operations_one_may_lack_its_lines(lost: int, is_told: bool) -> None:
    whole = run(2, [0] * 101, [0, 1] * 50 + [0], [0.1] * 101)
    whole.operations.failed[100] = True  # of failures none is expected
    proxy = np.where(np.arange(101) < lost, -1, 0)
    assert bool(make_attribution(replace(whole, proxy=proxy)).coverage.reasons) is is_told
    whole.lines.operation[:lost] = 50
    assert bool(make_attribution(whole).coverage.reasons) is is_told


def test_servers_have_their_lines_and_those_with_most_of_them_a_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = [0] * 30 + [1] * 20 + [2] * 10
    joined = run(4, [0] * 60, device, [0.1 + place / 1000 for place in range(60)])
    joined.lines.operation[1] = 0  # two lines of one operation
    joined.lines.status[[0, 1, 2, 31]] = 503, 499, 498, 507
    joined.lines.of[59] = OTHER
    compared = group_by_kind(joined, np.ones(60, np.bool_), by_proxy=False)
    level = make_candidate_levels(joined, compared)[0]
    names = ["a", "b", "c", "d"]

    def rows() -> list[ServerRow]:
        evidence = np.array([1.0, 3.0, 2.0, 9.0])
        return make_server_rows(joined, compared, level, names, joined.lines.device, evidence)

    assert [(each.name, each.requests, each.errors) for each in rows()] == [
        ("b", 20, 1),
        ("c", 9, 0),
        ("a", 29, 2),
    ]
    assert all(each.longer is not None for each in rows())
    assert rows()[0].seconds == median_and_p99(joined.lines.seconds[30:50])
    assert rows()[2].latency == median_and_p99(joined.operations.latency[[0, *range(2, 30)]])
    longer = {each.name: each.longer for each in rows()}
    assert longer["b"] == measure_peer_difference(compared.units, level.who.of(1, len(compared.units)))
    monkeypatch.setattr(attribution_records, "_MAX_MEASURED", 2)
    assert {each.name: each.longer for each in rows()} == {**longer, "c": None}
