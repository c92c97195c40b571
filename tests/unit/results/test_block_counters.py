"""Counters of results: each that there is is in statistics, in every report, in conditions and in metrics."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from counted import SCENARIO, Memory, failed, row
from result_rows import block

from ssbench.base.record import make_json_schema
from ssbench.document.elements import Note
from ssbench.document.figures import COUNTED_FIGURES
from ssbench.monitoring.run_metrics import METRICS, CountingSink, RunMonitor
from ssbench.reports import key_figures, run_tables
from ssbench.reports.json import RunReportRecord
from ssbench.reports.writing import ReportOptions, make_run_report
from ssbench.results.block import COUNTERS, ResultBlock, count_results, sum_counters
from ssbench.results.result_fields import FIELDS
from ssbench.scenario import conditions
from ssbench.statistics.summary import summarize
from ssbench.statistics.thresholds import judge_conditions

#: A number of its own for each counter, so that none is taken for another: those that :func:`results` gives,
#: and further ones for fields that are added up.
EXPECTED = {
    "retries": 5,
    "resent": 4,
    "new_connections": 12,
    "resumed_connections": 6,
    "on_new": 3,
    "entries": 17,
    "missing_names": 13,
    "vanished": 2,
    "unsent": 1,
}
SUMMED = {key: number for number, key in enumerate(COUNTED_FIGURES, 20) if key not in EXPECTED}
EXPECTED |= SUMMED


def results() -> ResultBlock:
    """Return ten reads, the last of which has failed, with what counters count."""
    rows = [row(completed=100.0 + place, retries=5 * (place == 9)) for place in range(10)]
    rows = [
        (*each[:5], 3, *each[6:9], 404 if place in {0, 1, 9} else 200, *each[10:])
        for place, each in enumerate(rows)
    ]
    rare = {
        "attempts": {9: 10},
        "connections": {0: 3, 1: 4, 9: 5},
        "resumed": {0: 2, 9: 4},
        "entries": {3: 17, 9: 100},
        "expected_entries": {3: 20, 4: 10, 9: 1000},
        "expected_size": {4: 9, 9: 9},
        **{key: {5: 7, 6: number - 7} for key, number in SUMMED.items()},
    }
    for key in SUMMED:
        if FIELDS[key].counts_successes:
            rare[key][9] = 100
    return block(rows, failures=failed(9), rare=rare)


@pytest.mark.parametrize("key", COUNTED_FIGURES)
def test_it_is_in_every_output(key: str) -> None:
    run = summarize(Memory(results()))
    value, figure = EXPECTED[key], COUNTED_FIGURES[key]
    assert (run.total.counted[key], run.sections[1].counted[key]) == (value, value)
    parts = run_tables.make_latency_part_table(run)
    (place,) = (place for place, column in enumerate(parts.columns) if column.head == figure.title)
    assert [each[place] for each in parts.rows if not isinstance(each, Note)] == [str(value)] * 2
    made = json.loads(make_run_report("json", run, ReportOptions()))
    assert made["operations"][0]["figures"][key] == value
    head, data = csv.reader(io.StringIO(make_run_report("csv", run, ReportOptions())))
    assert float(dict(zip(head, data, strict=True))[f"read_{key}"]) == value
    (judgment,) = judge_conditions(run, [conditions.parse_condition(f"read.{key} > {value - 1}")])
    assert (judgment.value, judgment.failed) == (value, True)
    notes = [each.text for each in key_figures.make_figure_elements(run) if isinstance(each, Note)]
    assert (f"{figure.meaning}: {value}" in notes) == figure.has_note
    counting = CountingSink(SCENARIO, RunMonitor(lambda: (1, 1)))
    counting.take(results())
    (metric,) = (each for each in METRICS if each.key == key)
    assert dict(metric.samples(counting.shown))["read", "small"] == value


def test_the_schema_says_what_each_means() -> None:
    described = make_json_schema(RunReportRecord)["$defs"]["FiguresRecord"]["properties"]
    for key, figure in COUNTED_FIGURES.items():
        assert described[key]["description"] == figure.meaning


def test_a_table_has_columns_of_what_was_counted_only() -> None:
    run = summarize(Memory(block([row(retries=1), row()])))
    parts = run_tables.make_latency_part_table(run)
    # Nor of connecting and pauses, which files of old versions do not know.
    assert [each.head for each in parts.columns] == ["operation", "retries"]
    assert not run_tables.make_latency_part_table(summarize(Memory(block([row()])))).rows


def test_they_count_the_rows_that_are_asked_for() -> None:
    made = results()
    assert count_results(made, np.array([0]), np.array([0])) == {
        **dict.fromkeys(COUNTERS, 0),
        "new_connections": 3,
        "resumed_connections": 2,
        "on_new": 1,
        "vanished": 1,
    }


def test_a_sum_has_all_counters() -> None:
    assert sum_counters([]) == dict.fromkeys(COUNTERS, 0)
    assert sum_counters([{"resent": 1}, {"resent": 2, "entries": 3}]) == {
        **dict.fromkeys(COUNTERS, 0),
        "resent": 3,
        "entries": 3,
    }
