"""Workers hold the next jobs: users do not wait for the master, and what has not begun is taken back."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
from processes import Fleet
from relay import Relay
from runs import outcome, store, wait_until, write_scenario

from ssbench.base.errors import ExitCode
from ssbench.results.block import UNFINISHED_CAUSE
from ssbench.results.reading import open_results

#: Seconds of a message to a worker; a turn takes two of them.
WAY = 0.2


def test_operations_of_an_open_loop_begin_when_they_are_due_behind_a_slow_link(
    fleet: Fleet, tmp_path: Path
) -> None:
    with store() as (_, options), ExitStack() as stack:
        work, results = (
            stack.enter_context(Relay(port, delay=WAY)) for port in (fleet.work_port, fleet.results_port)
        )
        fleet.worker(1, "-c", 8, "--zmq-work-port", work.port, "--zmq-results-port", results.port)
        scenario = write_scenario(
            tmp_path, user_count=8, initial_files={"tiny": 10}, crud_profile=[0, 1, 0, 0]
        )
        run = fleet.run(scenario, "-r", 3, "--rate", 60, *options)
        assert run.end() == ExitCode.OK, run.err
    blocks = [*open_results(fleet.stats).blocks()]
    late = sorted(float(each) for block in blocks for each in block.started - block.due)
    assert len(late) == 180
    # Where the time on the way is taken for a difference of clocks, all are as late as that.
    assert late[len(late) // 2] < WAY / 4


@pytest.mark.long
def test_users_do_not_wait_for_a_master_that_is_far_away(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.02) as (rule, options), ExitStack() as stack:
        work, results = (
            stack.enter_context(Relay(port, delay=WAY)) for port in (fleet.work_port, fleet.results_port)
        )
        fleet.worker(1, "-c", 8, "--zmq-work-port", work.port, "--zmq-results-port", results.port)
        scenario = write_scenario(
            tmp_path, user_count=2, initial_files={"tiny": 10}, crud_profile=[0, 1, 0, 0]
        )
        run = fleet.run(scenario, "-r", 600, *options)
        # If each of the two users waited for a turn this would take a minute.
        wait_until(lambda: rule.counts["GET"] > 300, "reads")
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    found = outcome(fleet.stats)
    assert found.settled(users=2) == {None}
    assert found.summary is not None
    counters = found.summary.counters
    # What had not begun is neither a result nor among what was drawn.
    assert counters["taken_back"] > 0
    assert found.count == counters["drawn"]
    # Of what was not finished at the end it is not known whether it had begun.
    assert 0 <= found.count - rule.counts["GET"] <= found.causes[UNFINISHED_CAUSE]
