"""Waits that are as long as a constant of the system are named, and nothing is where there are none."""

import numpy as np
import pytest
from planted_stores import STORES
from simulated_waits import Plant, statistics_of

from ssbench import products
from ssbench.products import Product
from ssbench.reports import ReportOptions, json, text
from ssbench.statistics.latencies import LatencyCollector, merge, plain
from ssbench.statistics.wait_lengths import LENGTHS
from ssbench.statistics.waits import TITLE, sentence, waits_in

#: A number of operations in which a hundredth is enough to be seen.
COUNT = 2000


@pytest.mark.parametrize("length", LENGTHS, ids=lambda length: f"{length.seconds:g}")
@pytest.mark.parametrize("share", [0.02, 0.3, 1.0])
def test_a_planted_wait_is_named(length, share):
    operation = 0 if length.writes else 1
    plant = Plant(length.seconds, share, operation, length.connecting)
    found = statistics_of(1, plant, COUNT).waits
    (wait,) = (each for each in found if each.connecting == length.connecting)
    assert (wait.seconds, wait.name) == (length.seconds, length.name)
    assert wait.operation == ("" if length.connecting else ("create", "read")[operation])
    expected = share * wait.count
    if (
        length.connecting
    ):  # half of the operations are the other one; of those that do not wait a fifth connect
        expected = wait.count * share / (share + 0.2 * (2 - share))
    assert 0.75 * expected - 5 <= wait.requests <= 1.25 * expected + 5


def test_nothing_is_named_in_healthy_runs():
    # Chance names some: no more than 3 of 300 may be.
    assert sum(bool(statistics_of(seed).waits) for seed in range(60)) <= 1


def test_lost_syns_of_several_lengths_are_one_cause():
    rng = np.random.default_rng(4)
    waited = np.repeat([1.0, 2.0, 3.0, 7.0], 4) + rng.exponential(0.02, 16)
    connecting = plain(np.concatenate([rng.exponential(0.0005, 300), waited]))
    usual = plain(rng.lognormal(-4, 0.3, 300))
    leaves = {(code, 0): (usual, connecting if code == 0 else merge(())) for code in (0, 1)}
    # Four of each length are too few to be named by themselves.
    (wait,) = waits_in(leaves)
    assert (wait.count, wait.connecting) == (316, True)
    assert 12 <= wait.requests <= 16
    assert " of 316 connections wait 1 s" in sentence(wait)
    assert "some more than once" in sentence(wait)
    # Those that take any time up to ten seconds are none.
    spread = plain(np.concatenate([rng.exponential(0.0005, 300), rng.uniform(0.5, 10, 60)]))
    assert waits_in({(0, 0): (usual, spread), (1, 0): (usual, merge(()))}) == ()


def test_the_usual_time_of_one_size_class_is_no_wait():
    rng = np.random.default_rng(1)
    fast, slow = (plain(rng.normal(mean, 0.001, 500)) for mean in (0.005, 0.0425))
    leaves = {(0, 0): (fast, merge(())), (0, 1): (slow, merge(())), (1, 0): (fast, merge(()))}
    assert waits_in(leaves) == ()
    # Where both take that long, and reads do not, it is one.
    leaves = {(0, 0): (slow, merge(())), (0, 1): (slow, merge(())), (1, 0): (fast, merge(()))}
    assert [each.requests > 900 for each in waits_in(leaves)] == [True]


def test_a_far_store_is_no_wait():
    rng = np.random.default_rng(1)
    # A round trip of 41 ms is in every request.
    every = plain(rng.normal(0.0425, 0.001, 500)), merge(())
    leaves = {(code, place): every for code in (0, 1) for place in (0, 1)}
    assert waits_in(leaves) == ()


def test_reports_name_it():
    statistics = statistics_of(3, Plant(1.0, 0.1), COUNT)
    words = sentence(statistics.waits[0])
    assert "container_update_timeout" in words
    assert words in " ".join(text.sections(statistics, ReportOptions()).split())
    shown = products.find(Product.RUN, "summary_md")(statistics, ReportOptions())
    assert "container" in "".join(shown)
    assert '"name":"container_update_timeout"' in "".join(json.report(statistics, ReportOptions())).replace(
        " ", ""
    )


def test_latencies_are_counted_exactly():
    rng = np.random.default_rng(2)
    values = rng.lognormal(-3, 2, 5000)
    latencies = plain(values)
    edges = np.concatenate([rng.choice(values, 50), [0.0, -1.0, 1e9, 0.04, 1.0]])
    for low in edges:
        for high in edges:
            if low <= high:
                assert latencies.between(low, high) == ((values >= low) & (values < high)).sum()
    assert latencies.smallest(1) == values.min()
    assert LatencyCollector().finish().between(0.0, 1.0) == 0


def test_a_stall_of_that_length_is_no_wait() -> None:
    """All users wait as long in a stall, for whatever reason."""
    planted = next(each for each in STORES if each.name == "stall of a second")
    assert "Stalls: 1" in planted.report
    assert TITLE not in planted.report


def test_what_goes_on_during_a_wait_does_not_come_on_top_of_it():
    rng = np.random.default_rng(1)
    usual = rng.lognormal(np.log(0.05), 0.25, 100)
    # A replica that takes no connections, while the other two open theirs: less than the fastest on top.
    waited = 0.5 + rng.uniform(0.0, 0.04, 25)
    found = waits_in({(0, 0): (plain(np.concatenate([usual, waited])), merge(()))})
    assert [(wait.seconds, wait.operation, wait.requests) for wait in found] == [(0.5, "create", 25)]
