"""Who bounds a store, by the logs of a run beyond its limit."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from simulated_cluster import Cause, Shape, fail_reads, simulate

from ssbench.cluster.attribution_records import AttributionFacts
from ssbench.cluster.attribution_report import make_attribution_verdict
from ssbench.cluster.findings import make_attribution
from ssbench.cluster.joined_run import JoinedRun
from ssbench.cluster.logged_limits import conclude_logged_run
from ssbench.comparison.store_limits import LoggedRun

SHAPE = Shape(devices=12, nodes=4, proxies=2, requests=2000, deletes=0.0)


def conclude(joined: JoinedRun, operation: str = "read", overload: tuple[str, ...] = ()) -> LoggedRun:
    found = make_attribution(joined, AttributionFacts(overload=overload))
    return conclude_logged_run("e.stat.gz", joined, operation, found, make_attribution_verdict(found))


@pytest.mark.parametrize(
    ("cause", "name"),
    [
        (Cause(devices=(1,), seconds=1.0, only="reads"), "d1 on n1"),
        (Cause(proxy=1, seconds=1.0), "p1"),
    ],
)
def test_who_makes_the_tail_bounds_the_store(cause: Cause, name: str) -> None:
    found = conclude(simulate(1, cause, SHAPE))
    assert found.slow == (name,)
    assert found.headline == f"Slow: {name}"
    assert found.p99 > 1.0
    assert found.p99_of_others < 0.5


def test_all_devices_of_a_node_bound_it_together() -> None:
    found = conclude(simulate(2, Cause(devices=(1, 5, 9), seconds=1.0, only="reads"), SHAPE))
    assert " on n1" in " ".join(found.slow)
    assert found.p99_of_others < 0.5


@pytest.mark.parametrize(("seconds", "names"), [(0.03, ["d1 on n1"]), (1.0, ["d1 on n1", "d6 on n2"])])
def test_of_several_only_those_who_are_needed_for_the_tail_bound_the_store(
    seconds: float, names: list[str]
) -> None:
    found = conclude(simulate(3, Cause(devices=(1,), seconds=1.0, also=(6, seconds), only="reads"), SHAPE))
    assert {"d1 on n1", "d6 on n2"} <= set(re.findall(r"d\d on n\d", found.headline))
    assert sorted(found.slow) == names
    assert found.p99_of_others < 0.5


def test_too_few_requests_without_all_who_are_slow_do_not_hide_who_makes_the_tail() -> None:
    shape = replace(SHAPE, devices=4, nodes=3, requests=220, writes=0.0)
    found = conclude(simulate(8, Cause(proxy=1, seconds=0.1, also=(1, 3.0), only="reads"), shape))
    assert "p1" in found.headline
    assert found.slow == ("d1 on n1",)


def test_who_is_slow_by_less_is_told_and_bounds_nothing() -> None:
    found = conclude(simulate(3, Cause(devices=(1,), seconds=0.03, only="reads"), SHAPE))
    assert found.headline == "Slow: d1 on n1"
    assert found.facts
    assert found.slow == ()
    assert 0.5 * found.p99 < found.p99_of_others < found.p99


def test_where_nobody_is_slow_nobody_bounds_it() -> None:
    found = conclude(simulate(4, Cause(), SHAPE))
    assert (found.slow, found.failing) == ((), ())
    assert found.headline.startswith("No server is slower than its peers")
    assert math.isnan(found.p99_of_others)


def test_where_nearly_all_requests_are_of_the_slow_one_it_is_not_shown_to_bound_the_store() -> None:
    """Each of four devices takes part in three of four writes."""
    shape = replace(SHAPE, devices=4, nodes=3, requests=600, writes=0.5)
    found = conclude(simulate(5, Cause(devices=(1,), seconds=1.0), shape), "create")
    assert found.headline.startswith("Slow: d1 on n1")
    assert found.slow == ()
    assert math.isnan(found.p99_of_others)


def test_times_of_an_overloaded_generator_accuse_only_by_the_own_clock() -> None:
    joined = simulate(6, Cause(devices=(1,), seconds=1.0, only="reads", where="before"), SHAPE)
    assert conclude(joined).slow == ("d1 on n1",)
    assert conclude(joined, overload=("Its CPU was busy",)).slow == ()
    shown = simulate(6, Cause(devices=(1,), seconds=1.0, only="reads"), SHAPE)
    assert conclude(shown, overload=("Its CPU was busy",)).slow == ("d1 on n1",)


def test_who_served_half_of_what_failed_bounds_a_store_that_fails() -> None:
    joined = simulate(7, Cause(), SHAPE)
    found = conclude(fail_reads(joined, joined.lines.device == 1, 0.3))
    assert found.failing == ("d1 on n1",)
    # Of three with a third each two are enough.
    found = conclude(fail_reads(joined, np.isin(joined.lines.device, (1, 6, 11)), 0.4))
    assert len(set(found.failing) & {"d1 on n1", "d6 on n2", "d11 on n3"}) == len(found.failing) == 2
    assert conclude(fail_reads(joined, np.ones(len(joined.lines), np.bool_), 0.1)).failing == ()
