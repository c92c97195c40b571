"""The history of runs: what a store did against what the run says of it, with faults from a seed.

A failure is a seed: ``Simulation(seed).run()`` has it again.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cache

import pytest
from history import Entry, Findings, Row, check
from simulated_faults import Simulation

from ssbench.results.block import LOST_CAUSE

SEEDS = range(16)


def simulate(seed: int, *, careless: bool = False) -> tuple[Simulation, Findings]:
    simulation = Simulation(seed, careless=careless)
    phase = simulation.run()
    dispatcher = simulation.fleet.dispatcher
    assert len(phase.rows) + sum(simulation.state.not_sendable.values()) == 3000
    assert not dispatcher.ledger.invalid_results
    again = dispatcher.ledger.passed_on + dispatcher.ledger.handed_back
    return simulation, check(simulation.store.log, phase.rows, 0.0, twice=again)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_operation_is_done_and_told_as_it_was(seed: int) -> None:
    """Workers are killed, stopped and cut off in one direction or both; tokens end, clocks jump."""
    _, found = simulate(seed)
    assert found.wrong == []
    assert found.counts["results"] == 3000


def test_the_faults_of_these_seeds_are_of_every_kind_and_matter() -> None:
    kinds: set[str] = set()
    again = lost = 0
    for seed in SEEDS[:8]:
        simulation, found = simulate(seed)
        kinds |= simulation.counts.keys()
        again += found.counts["done twice"]
        lost += sum(row.error == LOST_CAUSE for row in simulation.phase.rows)
    assert kinds == {"kill", "stop", "up", "down", "both", "token", "clock"}
    assert again > 0
    assert lost > 0


def test_workers_that_go_on_where_they_were_stopped_are_found() -> None:
    """What real ones did: their slots began jobs that other workers had done since."""
    # In one run of eight, about. Which ones is chance: sets have their order by addresses in memory.
    wrong = (text for seed in range(100) for text in simulate(seed, careless=True)[1].wrong)
    assert any("done once more after another worker did it" in text for text in wrong)


# The check itself, on a run without faults of which one thing was changed.


@cache
def _undisturbed() -> tuple[tuple[Entry, ...], tuple[Row, ...]]:
    simulation = Simulation(1, 300, faults=False)
    simulation.run()
    return tuple(simulation.store.log), tuple(simulation.phase.rows)


@pytest.fixture
def log() -> list[Entry]:
    return [replace(entry) for entry in _undisturbed()[0]]


@pytest.fixture
def rows() -> list[Row]:
    return [replace(row) for row in _undisturbed()[1]]


def test_nothing_is_wrong_where_nothing_was_changed(log: list[Entry], rows: list[Row]) -> None:
    assert check(log, rows, 0.0).wrong == []


def test_a_result_that_was_never_done(log: list[Entry], rows: list[Row]) -> None:
    removed = log.pop(100)
    (wrong,) = check(log, rows, 0.0).wrong
    assert f"recorded but never done ({removed.trans_id})" in wrong


def test_a_result_of_another_object(log: list[Entry], rows: list[Row]) -> None:
    log[100].name = "c0/elsewhere"
    assert "recorded but never done" in check(log, rows, 0.0).wrong[0]


def test_a_success_that_the_store_refused(log: list[Entry], rows: list[Row]) -> None:
    log[100].status = 503
    assert "a success, the store said 503" in check(log, rows, 0.0).wrong[0]


def test_an_operation_that_is_recorded_twice(log: list[Entry], rows: list[Row]) -> None:
    rows.append(rows[50])
    assert "recorded twice" in check(log, rows, 0.0).wrong[0]


def test_an_answer_that_is_in_no_row(log: list[Entry], rows: list[Row]) -> None:
    (removed,) = (row for row in rows if row.trans_id == "tx150")
    rows.remove(removed)
    (wrong,) = check(log, rows, 0.0).wrong
    assert wrong.endswith("in no result")
    # An attempt before the last one, or one of a lost worker, may be in none.
    assert check(log, [*rows, replace(removed, trans_id=None, error="x")], 0.0).wrong == []
    assert check(log, [*rows, replace(removed, trans_id=None, error=LOST_CAUSE)], 0.0).wrong == []


def test_an_operation_that_was_done_twice(log: list[Entry], rows: list[Row]) -> None:
    place = next(place for place, entry in enumerate(log) if entry.method == "DELETE")
    first = log[place]
    log.append(replace(first, trans_id="tx0-again", began=first.began - 0.0001, ended=first.began))
    assert check(log, rows, 0.0).wrong != []
    found = check(log, rows, 0.0, twice=1)
    assert found.wrong == []
    assert found.counts["done twice"] == 1
    log[-1].began = log[-1].ended = first.ended + 0.0001
    assert "done once more after another worker did it" in check(log, rows, 0.0, twice=1).wrong[0]


def test_an_operation_after_the_delete_of_its_object(log: list[Entry], rows: list[Row]) -> None:
    deleted = next(entry for entry in log if entry.method == "DELETE")
    read = replace(deleted, trans_id="late", method="GET", began=deleted.ended + 1, ended=deleted.ended + 2)
    log.append(read)
    rows.append(Row("read", read.name, "late", None, read.began, read.ended, 0))
    assert check(log, rows, 0.0).wrong == [f"read of {read.name}: after its delete"]


def test_two_writes_of_an_object_at_once(log: list[Entry], rows: list[Row]) -> None:
    first = next(entry for entry in log if entry.method == "PUT")
    log.append(replace(first, trans_id="beside"))
    rows.append(Row("update", first.name, "beside", None, first.began, first.ended, 0))
    assert check(log, rows, 0.0).wrong == [f"{first.name}: PUT and PUT overlap"]
    rows[-1].extra = 1
    assert check(log, rows, 0.0).wrong == []


@pytest.mark.parametrize(("started", "completed"), [(0.5, 0.0), (0.0, -0.5), (2.0, 2.0)])
def test_times_outside_the_store_s(
    log: list[Entry], rows: list[Row], started: float, completed: float
) -> None:
    assert rows[70].started is not None
    rows[70].started += started
    rows[70].completed += completed
    assert "times outside the store's" in check(log, rows, 0.0).wrong[0]


def test_not_found_although_it_was_never_deleted(log: list[Entry], rows: list[Row]) -> None:
    deleted = {entry.name for entry in log if entry.method == "DELETE"}
    row = next(row for row in rows if row.operation == "read" and row.name not in deleted)
    row.error = "HTTP 404"
    assert "not found, and it was never deleted" in check(log, rows, 0.0).wrong[0]
