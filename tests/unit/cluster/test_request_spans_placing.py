"""Where in a request a line's span is put, by clocks of several hosts that differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from joined_runs import joined_run, object_lines, servers, successes

from ssbench.cluster.joined_run import Device, JoinedRun
from ssbench.cluster.request_spans import (
    _MAX_SKEW_SECONDS,
    RequestSpan,
    _lay_out_spans,
    _LineSpan,
    _spans_of_parts,
    trace_requests,
)
from ssbench.logs.swift_lines import SlowLine
from ssbench.scenario.operations import CREATE

IDS = [f"tx{number:021x}-006b021d00" for number in range(3)]
#: What ends a line of a proxy, by its own clock.
ENDED = 100.0


def line(
    kind: str, seconds: float, ended: float | None, *, name: str = "", depth: int = 2, status: int = 200
) -> _LineSpan:
    return _LineSpan(RequestSpan(kind, name or kind, 0.0, seconds, status, depth), ended)


def laid_out(latency: float | None, *found: _LineSpan) -> list[tuple[str, float, bool]]:
    return [(each.name, round(each.start, 6), each.placed) for each in _lay_out_spans([*found], latency)]


PROXY = line("proxy", 0.4, ENDED, depth=1)


def test_the_client_waited_before_its_proxy_and_servers_are_put_by_their_clocks_within_that() -> None:
    found = (
        line("object", 0.1, ENDED - 0.05, name="late"),
        PROXY,
        line("object", 0.2, ENDED - 0.15, name="early"),
        line("object", 0.1, None, name="unknown"),
    )
    # The proxy began 0.4 s before its end, the client 0.1 s before that.
    expected = [("proxy", 0.1, True), ("unknown", 0.1, False), ("early", 0.15, True), ("late", 0.35, True)]
    assert laid_out(0.5, *found) == [("client", 0.0, True), *expected]
    without_client = [(name, round(start - 0.1, 6), placed) for name, start, placed in expected]
    assert laid_out(None, *found) == without_client
    assert laid_out(float("nan"), *found) == without_client
    # A client that is done before its proxy has the same beginning.
    assert laid_out(0.3, *found) == [("client", 0.0, True), *without_client]


def test_without_the_proxys_line_nothing_is_put_by_its_clock() -> None:
    found = line("object", 0.1, ENDED), line("update", 0.3, ENDED, depth=3)
    assert laid_out(0.5, *found) == [("client", 0.0, True), ("object", 0.0, False), ("update", 0.0, False)]
    assert laid_out(None, *found, replace(PROXY, ended=None)) == [
        ("proxy", 0.0, True),
        ("object", 0.0, False),
        ("update", 0.0, False),
    ]


def test_of_two_lines_of_proxies_the_longer_is_the_requests() -> None:
    inner = line("proxy", 0.1, ENDED - 0.2, name="inner", depth=1)
    assert laid_out(None, inner, PROXY) == [("proxy", 0.0, True), ("inner", 0.1, True)]


@pytest.mark.parametrize(
    ("begins", "start"),
    [
        (-_MAX_SKEW_SECONDS - 0.001, None),
        (-_MAX_SKEW_SECONDS + 0.001, 0.0),
        (0.05, 0.05),
        (0.4 + _MAX_SKEW_SECONDS - 0.001, 0.4 + _MAX_SKEW_SECONDS - 0.001),
        (0.4 + _MAX_SKEW_SECONDS + 0.001, None),
    ],
)
def test_what_began_outside_of_the_proxys_time_by_more_than_clocks_differ_is_not_placed(
    begins: float, start: float | None
) -> None:
    own = line("object", 0.1, ENDED - 0.4 + begins + 0.1)
    placed = ("object", pytest.approx(0.1 + (start or 0.0), abs=1e-6), start is not None)
    assert laid_out(0.5, PROXY, own)[2] == placed


def run(*kept: tuple[str, bool, bytes]) -> JoinedRun:
    """Three writes, of which the last has no name; lines of two of them were kept."""
    disks = [Device("n", "object", "d1")]
    every = np.arange(3)
    operations = successes(
        np.array([CREATE.code, CREATE.code, 99]), 100 * (every + 1), np.array([0.3, 0.5, 0.7]), every
    )
    lines = object_lines(disks, every, 0 * every, 0 * every, np.full(3, 0.01))
    joined = joined_run(operations, lines, disks, servers(disks), ["p"], 0 * every, np.full(3, 0.02))
    return replace(joined, kept=[*kept], trans_ids=dict(enumerate(IDS[:2])))


def backend(trans_id: str, device: str = "d1") -> bytes:
    return (
        f"Nov 21 22:41:33 n1 object-server: 10.0.0.1 - - [21/Nov/2026:22:41:33 +0000]"
        f' "PUT /{device}/14/AUTH_test/c/o" 201 - "PUT http://p/v1/AUTH_test/c/o" "{trans_id}"'
        f' "proxy-server 31" 0.0444 "-" 4015 0'
    ).encode()


def error(trans_id: str) -> bytes:
    return (
        "2026-11-21T22:41:33.500000 n2 proxy-server: ERROR with Object server 10.0.0.1:6200/d7 re: Trying to"
        f" GET /v1/AUTH_test/c/o: Timeout (0.5s) (txn: {trans_id})"
    ).encode()


def test_requests_are_those_of_which_lines_were_kept_the_longest_first_each_line_once() -> None:
    kept = [("f", False, backend(each)) for each in (IDS[0], IDS[1], IDS[2], IDS[1])]
    found = trace_requests(run(*kept, ("other file", True, backend(IDS[0])), ("f", False, b"no id")))
    assert [(each.trans_id, each.operation, each.size) for each in found] == [
        (IDS[1], "create", 200),
        (IDS[0], "create", 100),
        (IDS[2], "", -1),  # it is no result
    ]
    assert [[span.name for span in each.spans] for each in found] == [
        ["client", "object server d1 on n1 PUT"],
        ["client", "object server d1 on n1 PUT", "object server d1 on other file PUT"],
        ["object server d1 on n1 PUT"],
    ]
    assert [each.spans[0].seconds for each in found] == pytest.approx([0.5, 0.3, 0.0444])


def test_parts_of_what_a_server_calls_slow_follow_each_other() -> None:
    parts = [("open", 0.04), ("read", 0.01), ("fsync", 0.25)]
    found = _spans_of_parts(SlowLine(b"o1", b"PUT", b"d1", 201, 0.3, ENDED, (*parts,)), "n1")
    assert [(each.span.kind, each.span.name, each.span.seconds) for each in found] == [
        ("part", f"{name} d1 on n1", seconds) for name, seconds in parts
    ]
    ends = [each.ended for each in found]
    assert ends == pytest.approx([ENDED + 0.04, ENDED + 0.05, ENDED + 0.3])


def test_an_error_of_a_proxy_is_a_moment_with_what_it_says() -> None:
    (found,) = trace_requests(run(("f", False, error(IDS[0]))))
    client, failed = found.spans
    assert (client.kind, client.seconds) == ("client", 0.3)
    assert (failed.kind, failed.seconds, failed.status, failed.depth) == ("error", 0.0, 0, 2)
    assert failed.name == "timeout object 10.0.0.1:6200 d7 (Timeout (0.5s))"
