"""The figures of some results: what is in which of them."""

from __future__ import annotations

import pytest
from counted import Memory, count, row
from result_rows import block

from ssbench.document.elements import Note
from ssbench.reports import key_figures, run_tables
from ssbench.results.block import Failure
from ssbench.results.result_fields import NOT_MEASURED, ResultMark
from ssbench.results.run_description import RunDescription
from ssbench.scenario.operations import OPERATIONS
from ssbench.scenario.scenario_reading import check_scenario_text
from ssbench.statistics.latency_parts import Part
from ssbench.statistics.summary import summarize


def test_resent_requests_are_no_retries() -> None:
    run = Memory()
    run.add(block([row(), row(retries=2), row(retries=1)], rare={"attempts": {0: 3, 1: 4}}))
    total = summarize(run).total
    assert (total.counted["retries"], total.counted["resent"]) == (3, 3)


@pytest.mark.parametrize("rare", [{}, {"attempts": {0: 2}}])
def test_deletes_that_found_nothing_are_counted(rare: dict[str, dict[int, int]]) -> None:
    run = Memory()
    rows = [(3, 0, 1, 0, 1, 0, NOT_MEASURED, 1.0, 100.0, status, 0) for status in (404, 204, 404, 404)]
    run.add(block(rows, [None] * 4, {3: Failure("HTTP 404", "", {})}, rare=rare))
    numbers = summarize(run)
    assert numbers.total.counted["vanished"] == 2
    notes = [each.text for each in key_figures.make_figure_elements(numbers) if isinstance(each, Note)]
    assert any(line.endswith("lost (successes): 2") for line in notes)
    parts = run_tables.make_latency_part_table(numbers)
    assert [row[-1] for row in parts.rows if not isinstance(row, Note)] == ["2", "2"]
    assert parts.columns[-1].head == "found nothing"


def test_what_was_held_up_is_in_no_part_of_latencies() -> None:
    run = Memory()
    rare = {"connecting": {0: 4.0, 1: 0.05}, "attempts": {0: 1}, "marks": {0: int(ResultMark.DELAYED)}}
    run.add(block([row(last=5.0), row(), row()], ["tx0", "tx1", "tx2"], rare=rare))
    total = summarize(run).total
    last_byte = total.lines[0].last_byte
    assert total.parts.connecting == Part(1, 0.05, 0.05)
    assert total.parts.connecting.seconds < last_byte.mean * last_byte.count


def test_three_times_of_an_operation() -> None:
    run = Memory()
    # One connects, one pauses after a failed attempt, one is delayed, one fails; then a block without any.
    rare = {
        "connecting": {0: 0.25, 2: 4.0},
        "pausing": {1: 1.0},
        "last_attempt": {0: 0.75, 1: 0.5},
        "attempts": {1: 2},
        "marks": {2: int(ResultMark.DELAYED)},
    }
    rows = [row(last=1.0), row(last=3.0), row(last=5.0), row(last=1.5), row(last=2.0)]
    failures = {4: Failure("HTTP 503", "", {})}
    run.add(block(rows, [None] * 5, failures, rare=rare))
    run.add(block([row(last=0.125)], [None]))
    numbers = summarize(run)
    (figures,) = numbers.groups.by("operation").values()
    last_attempts = run_tables.make_last_attempt_table(numbers)
    assert [row[-1] for row in last_attempts.rows if not isinstance(row, Note) and row[0] == "ALL"] == [
        "1500"
    ]
    whole, last_attempt, connecting = figures.last_byte, figures.last_attempt, figures.connecting
    assert [whole.percentile(rank) for rank in (25, 50, 75, 100)] == [0.5625, 1.25, 2.25, 3.0]
    assert [last_attempt.percentile(rank) for rank in (25, 50, 75, 100)] == [0.3125, 0.625, 1.125, 1.5]
    assert (whole.count, last_attempt.count, connecting.count) == (4, 4, 1)
    assert (whole.mean, last_attempt.mean) == (1.40625, 0.71875)
    assert connecting.maximum == 0.25


def test_a_failure_enters_no_latency_but_its_retries_count() -> None:
    rows = [row(last=1.0), row(last=5.0, retries=3), row(last=2.0, retries=1)]
    total = count(rows, {1: Failure("HTTP 500", "", {})}).total
    assert total.lines[0].last_byte.maximum == 2.0
    assert (total.counted["retries"], total.retry_rate) == (4, 200.0)


def test_the_throughput_of_all_is_known_where_that_of_each_is() -> None:
    """In old files the reads lack it. The dash stood in place of the interval of the rate."""
    created, read = row(0, completed=100.0), row(1, completed=101.0)
    for moved in (1, 0):
        rows = [created, (*read[:5], moved, *read[6:])]
        table = run_tables.make_operation_table(summarize(Memory(block(rows))))
        place = [column.head for column in table.columns].index("MB/s")
        last = table.rows[-1]
        assert not isinstance(last, Note)
        assert (last[place] != "-") is bool(moved)


def test_steps_stand_beside_the_whole_of_the_same_operations() -> None:
    """Objects in one piece have no steps: the mean of all updates said nothing of those that have."""
    scenario = check_scenario_text(
        "{name: mixed, sizes: [{name: plain, size: 1}, {name: parts, size: 9, segment_size: 3}],"
        " initial_files: {plain: 1, parts: 1}, profile: {update: 1}, operation_count: 1, user_count: 1}",
        "mixed",
    )
    run = Memory(run=RunDescription(scenario))
    update = OPERATIONS.named("update").code
    rows = [*(row(update, 0, last=0.01) for _ in range(3)), row(update, 1, last=0.5)]
    rare = {f"step_{number}": {3: seconds} for number, seconds in enumerate((0.125, 0.25, 0.0625, 0.0625), 1)}
    run.add(block(rows, [None] * 4, rare=rare))
    statistics = summarize(run)
    (note,) = run_tables.make_step_notes(statistics)
    means = "look 125.0, segments 250.0, manifest 62.5, old segments 62.5; in all 500.0"
    assert note.text == f"UPDATE by step, mean ms: {means}"
    (*_, whole) = run_tables.make_step_table(statistics).rows
    assert not isinstance(whole, Note)
    assert whole[1:4] == ["in all", "1", "500.0"]
