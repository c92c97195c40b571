"""When a worker has served enough runs, and what it is called."""

from __future__ import annotations

from ssbench.fleet.wire import LOST_AFTER
from ssbench.worker.worker_process import ServedRuns, launcher_label


def test_a_run_is_over_when_its_master_stays_away() -> None:
    runs = ServedRuns(1)
    runs.connection_ends(0.0)  # no jobs came
    runs.tick(100.0)
    assert (runs.served, runs.enough) == (0, False)
    runs.hears(7)
    runs.works_for(7)
    runs.connection_ends(100.0)
    runs.connection_ends(103.0)  # that of the other port
    runs.tick(100.0 + LOST_AFTER)
    assert not runs.enough
    runs.tick(100.1 + LOST_AFTER)
    assert (runs.served, runs.enough) == (1, True)


def test_a_connection_that_comes_back_ends_no_run() -> None:
    runs = ServedRuns(1)
    runs.works_for(7)
    runs.connection_ends(0.0)
    runs.hears(7)
    runs.tick(100.0)
    assert not runs.enough


def test_another_master_begins_another_run() -> None:
    runs = ServedRuns(2)
    runs.works_for(7)
    runs.hears(7)
    runs.hears(8)
    runs.hears(8)
    assert (runs.served, runs.enough) == (1, False)
    runs.works_for(8)
    runs.hears(9)
    assert runs.enough


def test_without_a_number_it_stays() -> None:
    runs = ServedRuns(None)
    runs.works_for(7)
    runs.hears(8)
    assert (runs.served, runs.enough) == (1, False)


def test_engines_number_their_processes() -> None:
    assert launcher_label({}) == ""
    assert launcher_label({"SLURM_PROCID": "3", "JOB_COMPLETION_INDEX": "4"}) == "task 3"
    assert launcher_label({"JOB_COMPLETION_INDEX": "4"}) == "index 4"
    assert len(launcher_label({"SLURM_PROCID": "9" * 1000})) == 64
