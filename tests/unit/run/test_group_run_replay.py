"""The load of a replay, on a simulated fleet whose store stalls: response times follow from the schedule."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from replays import make_replay, make_scenario
from simulated import Network, SimulatedWorker

from ssbench.fleet.phase import LEAD_SECONDS, ClosedLoop
from ssbench.fleet.wire import work_address
from ssbench.fleet.worker_state import Task, WorkerState
from ssbench.run.group_run import BenchmarkLoad
from ssbench.run.loop import MasterLoop
from ssbench.run.run_workers import wait_for_workers
from ssbench.run.tokens import TokenRenewal
from ssbench.run.worker_messages import WorkerNews
from ssbench.scenario.replay_source import Replay
from ssbench.scenario.replayed import ReplayPopulation, ReplayWorkload
from ssbench.store.contract import JobResult

SERVICE = 0.002


class StallingWorker(SimulatedWorker):
    """A worker of a store that answers nothing for a while, and then all that waited."""

    stall = (math.inf, math.inf)

    @property
    def seconds(self) -> float:
        now = self._network.now
        begins, ends = self.stall
        return max(SERVICE, ends - now) if begins <= now < ends else SERVICE

    @seconds.setter
    def seconds(self, value: float) -> None:
        pass


class Requests:
    """A phase of the requests of a replay."""

    what = "operations"
    drain_timeout = None

    def __init__(self, state: ReplayPopulation, count: int) -> None:
        self.state = state
        self.count = count
        self.ended: list[float] = []

    def next_tasks(self, count: int) -> Sequence[Task]:
        return self.state.next_jobs(count)

    def exhausted(self, now: float) -> bool:
        return self.state.drawn >= self.count

    def cut_short(self, now: float) -> bool:
        return False

    def take_back(self, tasks: Sequence[Task], *, in_doubt: bool) -> None:
        raise AssertionError

    def sent_again(self, now: float) -> None:
        pass

    def done(self, ended: Sequence[tuple[Task, JobResult]], worker: WorkerState) -> None:
        self.state.ended(ended)
        self.ended += [result.completed for _, result in ended]

    def lost(
        self, tasks: Sequence[Task], *, abandoned: str | None, worker: WorkerState | None = None
    ) -> Sequence[Task]:
        raise AssertionError

    def catch_up(self) -> None:
        pass

    def tick(self, now: float) -> None:
        pass


def replay_on_fleet(
    replay: Replay, speed: float, users: int, stall: tuple[float, float] = (math.inf, math.inf)
) -> tuple[np.ndarray, np.ndarray]:
    """Return when requests were due, and when they ended; all of one kind, in order."""
    network = Network()
    fleet = network.fleet()
    loop = MasterLoop(
        fleet,
        ClosedLoop(users),
        WorkerNews(None),
        [[TokenRenewal(None)]],
        0.0,
        lambda: network.now,
    )
    worker = StallingWorker(network, 1, 10_000)
    network.workers[work_address(1)] = worker
    worker.heartbeat()
    wait_for_workers(loop, lambda: 1, 10.0, "advice")
    scenario = make_scenario(replay, speed, user_count=users)
    state = ReplayPopulation(scenario, ReplayWorkload(scenario, 1, replay), replay)
    start = network.now + LEAD_SECONDS
    worker.stall = (start + stall[0], start + stall[1])
    load = BenchmarkLoad(scenario, 1, ClosedLoop(users), replay)
    phase = Requests(state, len(replay))
    loop.run(phase, pace=load.pace(start))
    assert len(phase.ended) == len(replay)
    return replay.moments / speed, np.sort(np.array(phase.ended)) - start


def random_reads(rate: float, seconds: float) -> Replay:
    """Return reads at random moments."""
    count = round(rate * seconds)
    moments = np.sort(np.random.default_rng(3).random(count)) * seconds
    moments -= moments[0]
    return make_replay([(moment, "read", 1, 70) for moment in moments.tolist()])


@pytest.mark.parametrize("speed", [0.5, 1.0, 3.0])
def test_response_times_of_a_stall_follow_from_the_schedule(speed: float) -> None:
    begins, ends = 2.0, 2.5
    replay = random_reads(400 / speed, 5 * speed)
    dues, ended = replay_on_fleet(replay, speed, 10_000, (begins, ends))
    # What is due meanwhile ends with the stall, all else at once: so in the order of ends, too.
    expected = np.where((dues >= begins) & (dues < ends - SERVICE), ends, dues + SERVICE)
    responses, wanted = ended - dues, np.sort(expected) - dues
    for rank in (50, 90, 95, 99, 100):
        assert np.percentile(responses, rank) == pytest.approx(np.percentile(wanted, rank), rel=0.05)
    assert responses.sum() == pytest.approx(wanted.sum(), rel=0.05)


def test_the_rate_is_that_of_the_log_at_its_speed() -> None:
    replay = random_reads(2000, 3)
    for speed in (1.0, 0.25):
        dues, ended = replay_on_fleet(replay, speed, 1000)
        assert len(ended) / ended[-1] == pytest.approx(replay.rate * speed, rel=0.01)
        seconds = np.arange(1, math.floor(3 / speed))
        assert np.searchsorted(ended - SERVICE, seconds) == pytest.approx(
            np.searchsorted(dues, seconds), abs=2
        )


def test_a_burst_far_above_the_mean_is_sent_when_it_is_due() -> None:
    rows = [*((second, "read", 1, 70) for second in range(10)), *((5.05, "read", 1, 70) for _ in range(3000))]
    replay = make_replay(sorted(rows))
    dues, ended = replay_on_fleet(replay, 1.0, 5000)
    assert ended - dues == pytest.approx(SERVICE, abs=0.001)
    # With few users they wait for each other, from when they were due on.
    _, ended = replay_on_fleet(replay, 1.0, 10)
    assert (ended - dues).max() == pytest.approx(3000 / 10 * SERVICE, rel=0.05)
