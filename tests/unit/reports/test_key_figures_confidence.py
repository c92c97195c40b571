"""The section on confidence in the text report."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from golden_words import GoldenWords
from planted_load import play
from section_lines import section_lines

from ssbench.document import units
from ssbench.document.elements import Section
from ssbench.reports import key_figures, run_charts
from ssbench.reports.writing import ReportOptions, make_run_report
from ssbench.results.block import ResultBlock
from ssbench.results.run_description import PrecisionFacts, RunDescription
from ssbench.scenario.model import Scenario, SizeClass, Stage
from ssbench.statistics.by_second import LatencyTable
from ssbench.statistics.collector import Collector
from ssbench.statistics.steadiness import judge_steadiness
from ssbench.statistics.summary import make_statistics


class Facts:
    run = RunDescription(Scenario("s", (SizeClass("small", 1, 1, 1, (0, 1, 0, 0)),), 4, run_seconds=60))
    size_classes = ("small",)
    summary = None
    warnings = ()
    current = True


def statistics(seconds, rate=100, level=0.01):
    """A run of reads, evenly spread, of 10 ms on average."""
    count = rate * seconds
    random = np.random.default_rng(4)
    collector = Collector()
    latency = random.lognormal(0, 0.5, count) * level
    columns = {
        "operation": np.ones(count, int),
        "completed": 1e9 + 0.25 + np.arange(count) / rate,
        "first_byte": latency,
        "last_byte": latency,
        "size": np.full(count, 1000),
    }
    collector.add(ResultBlock(count, columns))
    return make_statistics(collector, Facts())


def shown(found):
    """The lines of the section."""
    return section_lines(Section("", [*key_figures.make_confidence_elements(found)]))


def test_short_runs_have_no_section():
    assert shown(statistics(10)) == []


def test_a_run_that_ended_itself_says_what_it_knows(golden_words: GoldenWords):
    found = statistics(40)
    assert [*key_figures.make_precision_notes(found)] == []
    facts = PrecisionFacts("rate", 0.02, 0.0193, 40.0, reached=True)
    (note,) = key_figures.make_precision_notes(replace(found, until=(facts,)))
    golden_words(note.text)
    facts = replace(facts, reached=False)  # of which a warning tells
    assert [*key_figures.make_precision_notes(replace(found, until=(facts,)))] == []


def test_rates_and_percentiles_have_their_intervals():
    found = statistics(40)
    lines = shown(found)
    assert max(map(len, lines)) <= 80
    rates = next(line for line in lines if line.split()[:1] == ["READ"]).split()
    assert [float(text) for text in rates[1:4]] == pytest.approx([100, 100, 100], rel=0.01)
    line = found.sections[1].lines[0]
    median = line.last_byte.interval(50)
    assert median.low < line.last_byte.percentile(50) < median.high
    assert median.high / median.low < 1.1
    last = next(line for line in lines if "READ last" in line)
    assert f"{units.format_milliseconds(median.low)}-{units.format_milliseconds(median.high)}" in last
    assert last.split()[-1] == "-"  # of 4000 latencies 4 lie beyond p99.9


def test_an_upper_end_with_nothing_beyond_it_is_open():
    found = statistics(40).sections[1].lines[0].last_byte
    assert found.interval(99.99).high == float("inf")


def test_a_run_that_slows_down_is_not_steady():
    judged = judge_steadiness(np.linspace(100, 80, 60), 0.0, LatencyTable())
    assert not judged.steady
    assert "its rate fell by 22.6 % a minute" in judged.warning()
    # Of an hour, which no minute of it shows: it was said to fall by 0 %.
    hour = judge_steadiness(np.linspace(100, 90, 3600), 0.0, LatencyTable())
    assert "its rate fell by 0.2 % a minute" in hour.warning()
    assert judge_steadiness(np.full(60, 100.0), 0.0, LatencyTable()).warning() is None
    assert judged.warm_up is None
    assert judge_steadiness(np.full(60, 100.0), 0.0, LatencyTable()).warm_up == 0
    assert judge_steadiness(np.full(59, 100.0), 0.0, LatencyTable()).warm_up is None


def test_stages_have_intervals_of_their_own_and_none_together():
    steps = [Stage(20, (8, 8), (rate, rate)) for rate in (20, 400)]
    found = play(lambda sent: sent + 0.01, steps)
    total = found.total.lines[0]
    assert (total.rate_interval, total.last_byte.interval(50), total.due.response.interval(50)) == (None,) * 3
    assert total.last_byte.percentile(50) == pytest.approx(0.01)
    lines = [line.split() for line in shown(found)]
    assert [" ".join(line) for line in lines if line[:1] == ["Stage"]] == [
        f"Stage {stage.name}" for stage in found.stages
    ]
    rates = [
        float(line[1]) for line in lines if line[:1] == ["READ"] and line[1] not in {"first", "last", "resp"}
    ]
    assert rates == pytest.approx([20, 400], rel=0.01)


def test_json_has_the_intervals_of_stages_and_none_of_all_together():
    """It had those of rates, over all that the stages differ by, where texts and pages have none."""
    found = play(lambda sent: sent + 0.01, [Stage(20, (8, 8), (rate, rate)) for rate in (20, 400)])
    made = json.loads(make_run_report("json", found, ReportOptions()))
    together, stage = (each["operations"][0]["figures"] for each in (made, made["stages"][0]))
    assert (together["ops_interval"], together["bytes_interval"]) == (None, None)
    assert not any(together[name]["intervals"] for name in ("last_byte", "response", "lateness"))
    assert stage["ops_interval"] is not None
    assert stage["last_byte"]["intervals"]


def test_an_interval_that_says_nothing_is_a_dash_with_its_reason():
    seconds = np.repeat(np.arange(14), np.where(np.arange(14) == 6, 500, 1))
    count = len(seconds)
    latency = np.where(seconds == 6, 0.5, 0.001)
    columns = {
        "operation": np.ones(count, int),
        "completed": 1e9 + seconds + 0.5,
        "last_byte": latency,
        "size": np.full(count, 1000),
    }
    collector = Collector()
    collector.add(ResultBlock(count, columns))
    found = make_statistics(collector, Facts())
    line = found.total.lines[0]
    assert line.rate_interval is None
    lines = [" ".join(line.split()) for line in shown(found)]
    assert any(line.startswith("READ 39.") and "- - -" in line for line in lines), lines
    assert any(line.startswith("-: it would reach down to 0") for line in lines)


def test_response_times_of_an_open_loop_have_their_own_intervals():
    """There were those of service times alone, also of runs in which operations never began."""
    keeps_up = shown(play(lambda sent: sent + 0.01, [Stage(40, (50, 50), (50, 50))]))
    (response,) = (line.split() for line in keeps_up if line.startswith("READ resp"))
    assert response[2].startswith("10.")
    assert any(
        line.startswith("first, last: since an operation was sent; resp: since it") for line in keeps_up
    )
    overloaded = shown(play(lambda sent: sent + 1.0, [Stage(40, (5, 5), (50, 50))]))
    (response,) = (line.split() for line in overloaded if line.startswith("READ resp"))
    assert response[3:] == ["-"] * 4
    assert "Some operations never began: they are in resp alone" in " ".join(" ".join(overloaded).split())
    closed = shown(play(lambda sent: sent + 0.01, [Stage(40, (2, 2))]))
    assert not any("resp" in line for line in closed)


def test_charts_of_an_open_loop_say_that_their_latencies_begin_with_the_send():
    store = (
        (lambda sent: sent + 0.01, [Stage(40, (50, 50), (50, 50))]),
        (lambda sent: sent + 0.01, [Stage(40, (2, 2))]),
    )
    for (answers, stages), unit in zip(store, ("ms since sent", "ms"), strict=True):
        found = play(answers, stages)
        charts = {
            each.title: each
            for each in (*run_charts.make_latency_charts(found), *run_charts.make_time_line_charts(found))
        }
        assert charts["Latency by percentile"].unit == unit
        assert charts["Histogram of latencies"].axis == unit
        if "Latency" in charts:
            assert charts["Latency"].unit == charts["Latency of all operations"].unit == unit
