"""Waits that are as long as a constant of the system are named, and nothing is where there are none."""

import math

import numpy as np
import planted
import pytest
from planted_stores import STORES
from said import LOST_SYN, NAGLE
from simulated_waits import Plant, pausing, statistics_of

from ssbench.reports import json, products, run_text
from ssbench.reports.products import Product
from ssbench.reports.writing import ReportOptions
from ssbench.statistics import waits
from ssbench.statistics.latencies import LatencyCollector, merge_latencies, select_latencies
from ssbench.statistics.waits import WAIT_LENGTHS, WAITS_TITLE, WaitLength, describe_wait, find_latency_waits

#: What is said of why a connection took so long.
NAME_SERVER = "a name server that does not answer"

#: A number of operations in which a hundredth is enough to be seen.
COUNT = 2000


@pytest.mark.parametrize("length", WAIT_LENGTHS, ids=lambda length: f"{length.seconds:g}")
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


@pytest.mark.parametrize(
    ("seconds", "of_create", "of_read"),
    [
        (0.04, NAGLE, NAGLE),
        (0.2, "a TCP retransmission", "a TCP retransmission"),
        (0.5, "post_quorum_timeout or conn_timeout", "conn_timeout or concurrency_timeout"),
        (
            1.0,
            "container_update_timeout",
            f"{LOST_SYN} between the first server and the next",
        ),
        (10.0, "node_timeout", "node_timeout"),
        (60.0, "client_timeout", "client_timeout"),
    ],
)
def test_waits_of_writes_and_of_reads(seconds, of_create, of_read):
    rng = np.random.default_rng(1)
    usual = rng.lognormal(np.log(seconds / 20), 0.2, 300)
    waited = select_latencies(np.concatenate([usual, seconds + rng.exponential(0.001, 30)]))
    for operation, name in ((0, of_create), (1, of_read)):
        leaves = {
            (operation, 0): (waited, merge_latencies(())),
            (1 - operation, 0): (select_latencies(usual), merge_latencies(())),
        }
        (wait,) = find_latency_waits(WAIT_LENGTHS, leaves)
        assert (wait.name, wait.operation) == (name, ("create", "read")[operation])
        assert (wait.seconds, wait.count) == (seconds, 330)
        assert 25 <= wait.requests <= 31


@pytest.mark.parametrize(("below", "above", "named"), [(0, 0, 1), (3, 0, 1), (15, 0, 0), (0, 40, 0)])
def test_a_slope_past_a_length_is_no_wait(below, above, named):
    """As many are a little shorter, or a little longer, as where a store is slow for other reasons."""
    rng = np.random.default_rng(1)
    usual = rng.lognormal(np.log(0.01), 0.2, 300)
    slow = [
        0.2 + rng.exponential(0.001, 30),
        rng.uniform(0.197, 0.1999, below),
        rng.uniform(0.24, 0.27, above),
    ]
    waited = select_latencies(np.concatenate([usual, *slow]))
    assert len(find_latency_waits(WAIT_LENGTHS, {(1, 0): (waited, merge_latencies(()))})) == named


@pytest.mark.parametrize(
    ("seconds", "name"),
    [(each, LOST_SYN) for each in (1.0, 2.0, 3.0, 7.0)] + [(5.0, NAME_SERVER)],
)
def test_waits_of_connections(seconds, name):
    rng = np.random.default_rng(1)
    usual = rng.lognormal(np.log(0.01), 0.2, 300)
    waited = np.concatenate([usual, seconds + rng.exponential(0.001, 30)])
    (wait,) = find_latency_waits(
        WAIT_LENGTHS,
        {
            (0, 0): (select_latencies(usual), select_latencies(waited)),
            (1, 0): (select_latencies(usual), merge_latencies(())),
        },
    )
    assert (wait.seconds, wait.name, wait.connecting) == (seconds, name, True)


def test_the_lengths_that_are_given_are_searched():
    rng = np.random.default_rng(1)
    times = np.concatenate([rng.lognormal(np.log(0.01), 0.2, 300), 0.3 + rng.exponential(0.003, 30)])
    leaves = {(1, 0): (select_latencies(times), merge_latencies(()))}
    own = WaitLength(0.3, 0.025, "the load balancer's retry", "look at its log")
    assert find_latency_waits(WAIT_LENGTHS, leaves) == ()
    assert [each.name for each in find_latency_waits((own,), leaves)] == [own.name]


@pytest.mark.long
def test_nothing_is_named_in_healthy_runs():
    # Chance names some: no more than 3 of 300 may be.
    assert sum(bool(statistics_of(seed).waits) for seed in range(60)) <= 1


def test_lost_syns_of_several_lengths_are_one_cause():
    rng = np.random.default_rng(4)
    waited = np.repeat([1.0, 2.0, 3.0, 7.0], 4) + rng.exponential(0.02, 16)
    connecting = select_latencies(np.concatenate([rng.exponential(0.0005, 300), waited]))
    usual = select_latencies(rng.lognormal(-4, 0.3, 300))
    leaves = {(code, 0): (usual, connecting if code == 0 else merge_latencies(())) for code in (0, 1)}
    # Four of each length are too few to be named by themselves.
    (wait,) = find_latency_waits(WAIT_LENGTHS, leaves)
    assert (wait.count, wait.connecting) == (316, True)
    assert 12 <= wait.requests <= 16
    assert " of 316 connections wait 1 s" in describe_wait(wait)
    assert "some more than once" in describe_wait(wait)
    # Those that take any time up to ten seconds are none.
    spread = select_latencies(np.concatenate([rng.exponential(0.0005, 300), rng.uniform(0.5, 10, 60)]))
    assert (
        find_latency_waits(WAIT_LENGTHS, {(0, 0): (usual, spread), (1, 0): (usual, merge_latencies(()))})
        == ()
    )


def test_a_length_that_is_named_is_not_named_again_among_several():
    rng = np.random.default_rng(4)
    lengths = np.concatenate([np.full(40, 1.0), np.repeat([2.0, 3.0, 7.0], 4)])
    connecting = select_latencies(
        np.concatenate([rng.exponential(0.0005, 300), lengths + rng.exponential(0.003, 52)])
    )
    usual = select_latencies(rng.lognormal(-4, 0.3, 300))
    (wait,) = find_latency_waits(
        WAIT_LENGTHS, {(0, 0): (usual, connecting), (1, 0): (usual, merge_latencies(()))}
    )
    assert (wait.seconds, wait.name, wait.count) == (1.0, LOST_SYN, 352)
    assert 38 <= wait.requests <= 40


def test_another_cause_is_named_beside_one_of_several_lengths():
    rng = np.random.default_rng(4)
    lengths = np.concatenate([np.repeat([1.0, 2.0, 3.0], 4), np.full(12, 5.0)])
    connecting = select_latencies(
        np.concatenate([rng.exponential(0.0005, 300), lengths + rng.exponential(0.003, 24)])
    )
    usual = select_latencies(rng.lognormal(-4, 0.3, 300))
    found = find_latency_waits(
        WAIT_LENGTHS, {(0, 0): (usual, connecting), (1, 0): (usual, merge_latencies(()))}
    )
    assert [(wait.seconds, wait.name) for wait in found] == [
        (5.0, NAME_SERVER),
        (1.0, f"{LOST_SYN}, some more than once"),
    ]


@pytest.mark.parametrize(("waiting", "operations"), [(3, [""]), (60, ["create", "delete"])])
def test_operations_are_named_together_only_where_none_is_by_itself(waiting, operations):
    rng = np.random.default_rng(7)
    leaves = {}
    for code in (0, 3):
        times = np.concatenate([rng.lognormal(-4, 0.3, 300), 1.0 + rng.exponential(0.003, waiting)])
        leaves[code, 0] = select_latencies(times), merge_latencies(())
    assert [wait.operation for wait in find_latency_waits(WAIT_LENGTHS, leaves)] == operations


def test_the_usual_time_of_one_size_class_is_no_wait():
    rng = np.random.default_rng(1)
    fast, slow = (select_latencies(rng.normal(mean, 0.001, 500)) for mean in (0.005, 0.0425))
    leaves = {
        (0, 0): (fast, merge_latencies(())),
        (0, 1): (slow, merge_latencies(())),
        (1, 0): (fast, merge_latencies(())),
    }
    assert find_latency_waits(WAIT_LENGTHS, leaves) == ()
    # Where both take that long, and reads do not, it is one.
    leaves = {
        (0, 0): (slow, merge_latencies(())),
        (0, 1): (slow, merge_latencies(())),
        (1, 0): (fast, merge_latencies(())),
    }
    assert [each.requests > 900 for each in find_latency_waits(WAIT_LENGTHS, leaves)] == [True]


@pytest.mark.parametrize(("fast", "named"), [(19, ["create"]), (20, [])])
def test_a_size_class_of_few_requests_contradicts_no_other(fast, named):
    rng = np.random.default_rng(1)
    few, slow, others = (
        select_latencies(rng.normal(mean, 0.001, count))
        for mean, count in ((0.005, fast), (0.0425, 500), (0.005, 500))
    )
    leaves = {
        (0, 0): (few, merge_latencies(())),
        (0, 1): (slow, merge_latencies(())),
        (1, 0): (others, merge_latencies(())),
    }
    assert [wait.operation for wait in find_latency_waits(WAIT_LENGTHS, leaves)] == named


def test_a_far_store_is_no_wait():
    rng = np.random.default_rng(1)
    # A round trip of 41 ms is in every request.
    every = select_latencies(rng.normal(0.0425, 0.001, 500)), merge_latencies(())
    leaves = {(code, place): every for code in (0, 1) for place in (0, 1)}
    assert find_latency_waits(WAIT_LENGTHS, leaves) == ()


def test_reports_name_it():
    statistics = statistics_of(3, Plant(1.0, 0.1), COUNT)
    words = describe_wait(statistics.waits[0])
    assert "container_update_timeout" in words
    assert words in " ".join(run_text.make_sections_report(statistics, ReportOptions()).split())
    shown = products.find_writer(Product.RUN, "summary_md")(statistics, ReportOptions())
    assert "container" in "".join(shown)
    assert '"name":"container_update_timeout"' in "".join(
        json.make_run_json(statistics, ReportOptions())
    ).replace(" ", "")


def test_latencies_are_counted_exactly():
    rng = np.random.default_rng(2)
    values = rng.lognormal(-3, 2, 5000)
    latencies = select_latencies(values)
    edges = np.concatenate([rng.choice(values, 50), [0.0, -1.0, 1e9, 0.04, 1.0]])
    for low in edges:
        for high in edges:
            if low <= high:
                assert latencies.between(low, high) == ((values >= low) & (values < high)).sum()
    assert latencies.smallest(1) == values.min()
    assert LatencyCollector().finish()[0].between(0.0, 1.0) == 0


def test_a_stall_of_that_length_is_no_wait() -> None:
    """All users wait as long in a stall, for whatever reason."""
    planted = next(each for each in STORES if each.name == "stall of a second")
    assert "Stalls: 1" in planted.report
    assert WAITS_TITLE not in planted.report


def test_what_goes_on_during_a_wait_does_not_come_on_top_of_it():
    rng = np.random.default_rng(1)
    usual = rng.lognormal(np.log(0.05), 0.25, 100)
    # A replica that takes no connections, while the other two open theirs: less than the fastest on top.
    waited = 0.5 + rng.uniform(0.0, 0.04, 25)
    found = find_latency_waits(
        WAIT_LENGTHS, {(0, 0): (select_latencies(np.concatenate([usual, waited])), merge_latencies(()))}
    )
    assert [(wait.seconds, wait.operation, wait.requests) for wait in found] == [(0.5, "create", 25)]


@pytest.mark.long
def test_pauses_that_all_users_meet_are_no_wait():
    """Each is one event: that it is as long as a timer is chance, however many users it delays."""
    # Of 300 runs those that have a wait where each request counts by itself, and some others.
    assert not any(pausing(seed).waits for seed in (*range(20), 23, 68, 109, 173, 184, 241, 271))


@pytest.mark.parametrize("pauses", [2, 8])
def test_requests_that_wait_at_the_same_time_are_one_event(pauses):
    rng = np.random.default_rng(3)
    usual, waited = rng.lognormal(-5, 0.3, 2000), 0.2 + rng.exponential(0.003, (pauses, 30))
    ended = np.concatenate([rng.uniform(0, 60, 2000), np.repeat(7.0 * np.arange(pauses), 30)])
    times = select_latencies(np.concatenate([usual, waited.ravel()]), ended)
    found = find_latency_waits(WAIT_LENGTHS, {(0, 0): (times, merge_latencies(()))}, users=30)
    assert [each.seconds for each in found] == ([0.2] if pauses == 8 else [])


def test_waits_of_few_users_within_a_second_are_several_events():
    rng = np.random.default_rng(3)
    waited = 0.2 + rng.exponential(0.003, 20)
    times = np.concatenate([rng.lognormal(-5, 0.3, 2000), waited])
    ended = np.concatenate([rng.uniform(0, 3, 2000), np.full(20, 1.5)])
    assert (
        find_latency_waits(
            WAIT_LENGTHS, {(0, 0): (select_latencies(times, ended), merge_latencies(()))}, users=20
        )
        == ()
    )
    assert (
        len(
            find_latency_waits(
                WAIT_LENGTHS, {(0, 0): (select_latencies(times, ended), merge_latencies(()))}, users=4
            )
        )
        == 1
    )


@pytest.mark.parametrize("step", [0.032, 0.064])
def test_timers_of_the_kernel_are_late_by_its_steps(step):
    """A SYN is sent again after a second, and at the next step of the wheel of timers."""
    rng = np.random.default_rng(2)
    connecting = np.concatenate([rng.exponential(0.0003, 1000), 1.0 + rng.uniform(0, step, 40)])
    (wait,) = find_latency_waits(
        WAIT_LENGTHS, {(0, 0): (select_latencies(rng.lognormal(-5, 0.3, 1000)), select_latencies(connecting))}
    )
    assert (wait.seconds, wait.connecting, wait.requests) == (1.0, True, 40)


def test_a_slow_name_server_is_named():
    """All users of a worker wait for the same answer: those whose request is under way for a little less."""
    until = -10.0

    def store(place, sent):
        nonlocal until
        if sent > until + 1.0:  # what was found is used for a second
            until = sent + 5.004
        connecting = max(until - sent, 0.0002)
        return planted.Met(connecting + (3 + place % 5) * 1e-3, connecting=connecting)

    report = planted.play(store, users=4, seconds=40)
    assert f"connections wait 5 s, the length of {NAME_SERVER}" in " ".join(report.split())


@pytest.mark.parametrize(("seconds", "named"), [(5.0, [5.0]), (1.0, [])])
def test_only_the_answer_that_several_wait_for_comes_early_to_the_later_ones(seconds, named):
    """They begin to wait up to a request later. A SYN of one's own is never sent again too early."""
    rng = np.random.default_rng(5)
    usual = select_latencies(rng.lognormal(np.log(0.05), 0.2, 300))
    early = seconds - rng.uniform(0.01, 0.05, 40)
    connecting = select_latencies(np.concatenate([rng.exponential(0.0005, 300), early]))
    found = find_latency_waits(
        WAIT_LENGTHS, {(0, 0): (usual, connecting), (1, 0): (usual, merge_latencies(()))}
    )
    assert [wait.seconds for wait in found] == named


def test_waits_are_seen_where_what_requests_take_without_spreads_widely():
    """One in fourteen takes more than a quarter of the wait."""
    named = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        latency = rng.lognormal(np.log(0.055), 0.55, 190)
        latency[:40] += 0.5
        found = find_latency_waits(WAIT_LENGTHS, {(3, 0): (select_latencies(latency), merge_latencies(()))})
        named += [(wait.seconds, wait.operation) for wait in found] == [(0.5, "delete")]
    assert named >= 18  # 20 of 20; with the median in place of the percentile that is told best 15


def test_what_a_share_of_requests_tells_is_the_divergence_from_chance():
    assert waits._information(0.1, 0.1) == waits._information(0.05, 0.1) == 0.0
    assert waits._information(0.5, 0.1) == pytest.approx(0.5 * math.log(5) + 0.5 * math.log(0.5 / 0.9))
    assert waits._information(1.0, 0.1) == pytest.approx(math.log(10))


@pytest.mark.parametrize(
    ("fastest", "reads", "named"),
    [
        (0.0, 0.012, [(0.5, "create", 133)]),
        (-0.05, 0.012, []),  # some writes are shorter: this is their usual time
        (0.0, 0.4, []),  # nothing shows that a request takes less
    ],
)
def test_where_every_write_waits_it_takes_as_long_besides(fastest, reads, named):
    """A write of 10 to 150 ms that waits for post_quorum_timeout takes 0.5 to 0.65 s."""
    rng = np.random.default_rng(6)
    writes = 0.5 + fastest * (rng.random(133) < 0.2) + rng.triangular(0.01, 0.09, 0.15, 133)
    times = {
        (0, 0): select_latencies(writes),
        (1, 0): select_latencies(rng.lognormal(np.log(reads), 0.4, 300)),
    }
    found = find_latency_waits(
        WAIT_LENGTHS, {key: (each, merge_latencies(())) for key, each in times.items()}
    )
    assert [(each.seconds, each.operation, each.requests) for each in found] == named
