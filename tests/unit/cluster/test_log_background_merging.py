"""What several files say of others' requests and of daemons, put together."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from ssbench.cluster import log_background
from ssbench.cluster.log_background import (
    DaemonLine,
    DaemonPass,
    FileBackground,
    OtherRequestCounter,
    OtherRequests,
    merge_backgrounds,
    merge_other_requests,
    zone_offset,
)

#: When operations ended by the master's clock; it is not known of the third.
ENDED = np.array([1000.0, 1010.0, math.nan])
ONE, OTHER = ("n1", b"object", b"d1", b"curl"), ("n2", b"object", b"d2", b"curl")


def counted(*seconds: tuple[tuple[str, bytes, bytes, bytes], int]) -> OtherRequests:
    counter = OtherRequestCounter()
    for who, second in seconds:
        counter.add(who, second)
    return counter.requests(lambda word: word if isinstance(word, str) else word.decode())


def plain(found: OtherRequests) -> dict[tuple[str, int], int]:
    return {
        (who[0], second): number
        for who, seconds, numbers in found.series()
        for second, number in zip(seconds.tolist(), numbers.tolist(), strict=True)
    }


@pytest.mark.parametrize("at_once", [1, 3, 1 << 18])
def test_requests_are_counted_by_the_second_however_many_are_put_together_at_once(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_background, "_MERGED_AT_ONCE", at_once)
    seconds = [5, 7, 5, 6, 5, (1 << 40) - 1]
    found = counted(*((who, second) for second in seconds for who in (ONE, OTHER)), (ONE, -1), (ONE, 1 << 40))
    expected = {
        (node, second): number for second, number in Counter(seconds).items() for node in ("n1", "n2")
    }
    assert plain(found) == expected
    more = merge_other_requests([found, counted((OTHER, 5)), counted((("n3", *ONE[1:]), 9))])
    assert plain(more) == {**expected, ("n2", 5): 4, ("n3", 9): 1}
    assert plain(merge_other_requests([])) == {}


def line(
    moment: float,
    device: str = "d1",
    *,
    node: str = "n1",
    program: str = "object-replicator",
    seconds: float | None = None,
    begins: bool = False,
    zoned: bool = True,
) -> DaemonLine:
    return DaemonLine(node, program, device, moment, zoned, seconds, begins)


def passes(*lines: DaemonLine) -> list[tuple[str, float, float]]:
    found = merge_backgrounds([FileBackground(lines=[*lines])], ENDED).passes
    return [(each.device, each.begins, each.ends) for each in found]


def test_a_pass_ends_with_its_line_and_one_without_an_end_with_the_last_line_of_the_file() -> None:
    begin, later = line(100.0, begins=True), line(190.0, "d9")
    assert passes(begin, later) == [("d1", 100.0, 190.0)]
    assert passes(later, begin) == [("d1", 100.0, 190.0)]  # whatever the order is
    assert passes(line(150.0, seconds=30.0)) == [("d1", 120.0, 150.0)]
    assert passes(line(150.0)) == passes() == []
    assert passes(begin, line(150.0, begins=True), later) == [("d1", 150.0, 190.0)]  # it was cut short
    assert passes(begin, line(150.0, "d2", begins=True), later) == [
        ("d1", 100.0, 190.0),
        ("d2", 150.0, 190.0),
    ]


@pytest.mark.parametrize(
    ("begins", "device", "is_same"),
    [
        (98.0, "d1", True),
        (102.0, "d1", True),
        (97.9, "d1", False),
        (102.1, "d1", False),
        (100.0, "d2", False),
    ],
)
def test_a_line_that_ends_a_pass_is_of_one_that_began_as_long_before(
    begins: float, device: str, is_same: bool
) -> None:
    """The pass took 30 s until 130 s; a line may not name the device."""
    found = passes(line(begins, device, begins=True), line(130.0, seconds=30.0))
    assert found == [("d1", 100.0, 130.0), *([] if is_same else [(device, begins, 130.0)])]
    for one, other in (("", device), (device, "")):
        found = passes(line(begins, one, begins=True), line(130.0, other, seconds=30.0))
        assert len(found) == (1 if abs(begins - 100) <= 2 else 2)
    another = line(begins, device, begins=True, program="object-auditor")
    assert len(passes(another, line(130.0, seconds=30.0))) == 2


def test_clocks_of_nodes_are_ahead_by_the_median_of_their_lines() -> None:
    files = [
        FileBackground(clocks=[("n1", 0, 1004), ("n1", 1, 1019), ("n1", 2, 5000), ("n2", 1, 1009)]),
        FileBackground(clocks=[("n1", 0, 1006), ("n3", 2, 1000)]),
    ]
    # A line has whole seconds, and stands for the middle of one.
    assert merge_backgrounds(files, ENDED).clocks_ahead == {"n1": 6.5, "n2": -0.5}


@pytest.mark.parametrize(
    ("own", "others", "begins"),
    [
        ({3600: 2, 7200: 1}, {0: 9}, 100.0 - 3600),
        ({}, {7200: 2, 3600: 1}, 100.0 - 7200),
        ({}, {}, None),
    ],
)
def test_local_time_is_that_of_the_file_or_else_that_of_most_lines(
    own: dict[int, int], others: dict[int, int], begins: float | None
) -> None:
    local = FileBackground(lines=[line(100.0, begins=True, zoned=False)], zones=Counter(own))
    found = merge_backgrounds([local, FileBackground(zones=Counter(others))], ENDED)
    assert [each.begins for each in found.passes] == ([] if begins is None else [begins])
    assert found.uncertain == (set() if begins is not None else {"n1"})
    assert found.programs == ({} if begins is None else {"n1": {"object-replicator"}})
    assert [zone_offset(7000.0 + away, 3400.0) for away in (-451, -449, 0, 449, 451)] == [
        2700,
        3600,
        3600,
        3600,
        4500,
    ]


def test_of_a_file_with_too_many_lines_of_daemons_nothing_is_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_background, "_MAX_LINES", 2)
    for number, uncertain in ((1, set()), (2, {"n0", "n1"}), (3, {"n0", "n1", "n2"})):
        file = FileBackground()
        for place in range(number):
            file.add(line(100.0 + place, node=f"n{place}", program="object-auditor ZBF"))
        assert len(file.lines) == min(number, 2)
        found = merge_backgrounds([file], ENDED)
        assert found.uncertain == uncertain
        assert found.programs == {f"n{place}": {"object-auditor"} for place in range(min(number, 2))}
        assert found.passes == []
    both = [FileBackground(lines=[line(9.0, seconds=1.0)]), FileBackground(lines=[line(5.0, node="n2")])]
    found = merge_backgrounds(both, ENDED)
    assert found.programs == {"n1": {"object-replicator"}, "n2": {"object-replicator"}}
    assert found.passes == [DaemonPass("n1", "object-replicator", "d1", 8.0, 9.0)]
