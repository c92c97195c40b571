"""Waiting for the workers of a run, over a simulated fleet."""

from __future__ import annotations

import logging

import pytest
from golden_words import GoldenWords
from simulated import Network

from ssbench.base.errors import WorkerError
from ssbench.fleet import wire
from ssbench.fleet.phase import ClosedLoop
from ssbench.fleet.wire import RunParameters
from ssbench.run.loop import MasterLoop
from ssbench.run.run_workers import FINDING_SECONDS, RunWorkers, find_waiting_workers, wait_for_workers
from ssbench.run.tokens import TokenRenewal
from ssbench.run.worker_messages import WorkerNews


class Bench:
    """A loop over a simulated fleet that has no worker yet."""

    def __init__(self) -> None:
        self.network = Network()
        self.news = WorkerNews()
        self.loop = MasterLoop(
            self.network.fleet(RunParameters(run_id=1)),
            ClosedLoop(8),
            self.news,
            [[TokenRenewal(None)]],
            0.0,
            lambda: self.network.now,
        )
        self.began = self.network.now


def test_a_run_begins_with_the_workers_that_are_expected() -> None:
    bench = Bench()
    for instance in (1, 2, 3):
        bench.network.at(instance, lambda instance=instance: bench.network.worker(instance))
    wait_for_workers(bench.loop, lambda: 3, 60.0, "advice")
    assert bench.network.now - bench.began == pytest.approx(3.0, abs=0.3)
    assert bench.news.warnings == []


def test_without_a_worker_there_is_advice(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    with caplog.at_level(logging.INFO), pytest.raises(WorkerError, match=r"within 20 s. Start some!"):
        wait_for_workers(bench.loop, lambda: 2, 20.0, "Start some!")
    said = [record.message for record in caplog.records]
    assert said[0] == "Waiting for workers: 0 of 2 there, 19 s left. Start some!"
    assert len(said) == 4


def test_with_fewer_workers_a_run_begins_with_a_warning(golden_words: GoldenWords) -> None:
    bench = Bench()
    bench.network.worker(1)
    mute = bench.network.worker(2)
    mute.connected = False
    for second in range(20):
        bench.network.at(second, mute.heartbeat)
    wait_for_workers(bench.loop, lambda: 2, 20.0, "advice")
    (unreachable, few) = bench.news.warnings
    golden_words(unreachable)
    golden_words(few)


def test_an_interrupt_ends_the_wait() -> None:
    bench = Bench()
    bench.network.at(2.0, bench.loop.interrupted.set)
    wait_for_workers(bench.loop, lambda: 1, 60.0, "advice")
    assert bench.network.now - bench.began == pytest.approx(2.0, abs=0.2)


def test_a_master_that_was_stopped_in_a_tick_looks_at_its_workers_again_at_once() -> None:
    bench = Bench()
    stops = iter([20.0])
    bench.loop.on_tick = lambda _now: bench.network.master_is_busy(next(stops, 0.0))
    bench.network.at(21.0, lambda: bench.network.worker(1))
    wait_for_workers(bench.loop, lambda: 1, 60.0, "advice")
    assert bench.network.now - bench.began == pytest.approx(21.0, abs=1.0)


def test_workers_that_wait_for_a_master_are_found_while_they_keep_coming() -> None:
    bench = Bench()
    for instance, seconds in ((1, 0.9), (2, 1.8), (3, 6.0)):
        bench.network.at(seconds, lambda instance=instance: bench.network.worker(instance))
    found = find_waiting_workers(bench.loop.fleet, lambda: bench.network.now)
    assert sorted(worker.worker_id for worker in found) == [1, 2]
    assert bench.network.now - bench.began == pytest.approx(1.8 + FINDING_SECONDS, abs=0.3)


def test_nobody_waits_long_for_workers_that_are_not_there() -> None:
    bench = Bench()
    assert find_waiting_workers(bench.loop.fleet, lambda: bench.network.now) == []
    assert bench.network.now - bench.began == pytest.approx(FINDING_SECONDS, abs=0.3)


@pytest.mark.parametrize("back", [None, 2.0, 20.0])
def test_a_further_run_waits_a_short_time_for_workers_that_were_lost(
    back: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    """After a lost worker a plan waited 60 s before each further run."""
    bench = Bench()
    network, fleet = bench.network, bench.loop.fleet
    for instance in (1, 2, 3):
        network.worker(instance)
    wait_for_workers(bench.loop, lambda: 3, 60.0, "advice")
    fleet.roster.leave(3, "killed")
    del network.workers[wire.work_address(3)]
    former = fleet.begin(RunParameters(run_id=2), [1000])
    for instance in (1, 2):
        network.at(0.1, network.workers[wire.work_address(instance)].heartbeat)
    if back is not None:
        network.at(back, lambda: network.worker(4))
    workers = RunWorkers(fleet, former, None, 3, lambda: network.now)
    began = network.now
    with caplog.at_level(logging.INFO):
        wait_for_workers(bench.loop, workers.expected, 60.0, "advice", workers.time_left)
    assert caplog.messages[0].startswith("Waiting for workers: 0 of 3 there, 4 s left. ")
    assert network.now - began == pytest.approx(2.0 if back == 2.0 else 5.0, abs=0.6)
    assert bench.news.warnings == []
    missing = workers.describe_missing()
    assert (missing or "").startswith("" if back == 2.0 else "Only 2 of 3 workers were ready, and lost ones")


def test_the_first_run_waits_for_all_that_were_asked_for() -> None:
    bench = Bench()
    bench.network.worker(1)
    workers = RunWorkers(bench.loop.fleet, [], None, 2, lambda: bench.network.now)
    wait_for_workers(bench.loop, workers.expected, 20.0, "advice")
    assert bench.network.now - bench.began == pytest.approx(20.0, abs=0.3)
    assert workers.describe_missing() is None, "that was said"
    assert len(bench.news.warnings) == 1
