"""An attribution whose every number is known, for tests of how it is shown: a device is slow in reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ssbench.cluster.attribution_records import (
    Attribution,
    Coverage,
    PartRow,
    ServerRow,
    SlowRequest,
)
from ssbench.cluster.finding_kinds import FINDING_KINDS, SlowServer
from ssbench.cluster.operation_times import TimeShare
from ssbench.cluster.rank_tests import PeerDifference
from ssbench.cluster.server_times import DifferenceCourse, ServerTimeline, Slice, Standing, Timelines

NAN = float("nan")


def by(seconds: float, base: float = 0.02) -> PeerDifference:
    """Return a difference by so much, whether median or mean."""
    return PeerDifference(seconds, seconds, base)


def make_finding(kind: str, facts: Mapping[str, Any], **more: Any) -> Any:
    """Return a finding of a kind with those of the facts that it has, and more."""
    (made,) = (each for each in FINDING_KINDS if each.kind == kind)
    known = {field.name for field in fields(made)}
    return made(**{key: value for key, value in facts.items() if key in known} | more)


COVERAGE = Coverage(
    results=2000,
    operations=1000,
    failed=0,
    without_id=1,
    retried=2,
    delayed=3,
    with_proxy=1000,
    complete=995,
    incomplete=5,
    concurrent=4,
    compared=980,
    updates=500,
    lines=9000,
    lines_of_run=4000,
    cut=6,
    duplicates=7,
    reasons=["logs begin late"],
)
SLOW = SlowServer(
    "device",
    "d1 on n1",
    share=0.25,
    part="reads",
    difference=by(0.008),
    course=DifferenceCourse(
        [Slice(0.0, 30.0, 9, -0.001), Slice(30.0, 60.0, 8, 0.008), Slice(60.0, 90.5, 0, None)], 30.0, 60.0
    ),
)
FOUND = Attribution(
    coverage=COVERAGE,
    findings=[SLOW],
    comparisons=1040,
    overload=[],
    unlogged=[],
    detectable=0.002,
    detectable_at_end=0.003,
    detectable_of_updates=None,
    detectable_of_proxies=0.004,
    request=0.02,
    in_writes=0.25,
    merged=[],
    has_queues=False,
    lead=None,
    standings=[
        Standing("d1 on n1", "own", 1200, by(0.008), (0.007, 0.009), 0.0001),
        Standing("p1", "own part", 300, by(-0.002), (NAN, NAN), 0.25),
    ],
    timelines=Timelines(
        [0.0, 45.0, 90.5],
        [
            ServerTimeline("d2 on n2", "own", [5, 5], [0.0001, -0.001]),
            ServerTimeline("d1 on n1", "own", [5, 5], [0.004, 0.008]),
            ServerTimeline("d1 on n1", "last", [5, 0], [0.002, NAN]),
            ServerTimeline("p1", "own part", [9, 9], [0.001, 0.0]),
        ],
    ),
    parts=[PartRow("read", 900, (0.01, 0.05), (0.001, 0.002), (0.003, 0.004), None, 3)],
    time_shares=[
        TimeShare("read", "p50", 1000, 0.02, 0.001, 0.002, 0.003, 0.0, 0.014, 0.015),
        TimeShare("create", "p99", 20, 0.08, 0.001, 0.002, 0.073, 0.004, 0.0, None),
    ],
    proxies=[ServerRow("p1", 1000, 1, (0.003, 0.004), (0.02, 0.03), by(0.001, base=0.0))],
    nodes=[ServerRow("n1", 1000, 0, None, None)],
    devices=[
        ServerRow("d1 on n1", 500, 2, (0.011, 0.02), (0.03, 0.04), by(0.008)),
        ServerRow("d2 on n2", 400, 0, (0.003, 0.004), (0.02, 0.03), by(-0.002, base=0.5)),
    ],
    partitions=[ServerRow("7 (d1 on n1)", 12, 0, (0.003, 0.004), (0.02, 0.03))],
    slowest=[
        SlowRequest("read", 0.5, 0.1, 0.2, 0.3, "p1", "d1 on n1", "n1:6200", 2, 1, "tx1", ("d1 on n1",)),
        SlowRequest("create", 0.4, None, None, None, None, None, None, 0, 0),
    ],
    errors=[("timeout", "d1 on n1", 1200)],
    other_errors=[("refused", "", 1)],
)
