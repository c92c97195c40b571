"""What reports of sweeps and searches show: tables, pages, and the headline."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from capacity_runs import run, step
from golden_words import GoldenWords
from json_records import valid
from msgspec import structs
from planted_load import play
from said import NEVER_BEGAN

from ssbench.base.errors import GateResult
from ssbench.comparison import capacity_report
from ssbench.comparison.capacity_report import (
    Capacity,
    PhaseCapacities,
    _percentiles,
    conclude_fill,
    conclude_search,
    conclude_sweep,
    list_step_heads,
    make_phases_document,
)
from ssbench.comparison.object_trend import MIN_TREND_STEPS
from ssbench.comparison.search import SearchAnswer, judge_objective
from ssbench.comparison.sweep import (
    SweepStep,
    describe_knee,
    describe_limits,
    describe_missing_gain,
    find_knee,
    make_step,
)
from ssbench.comparison.sweep_variables import Variable
from ssbench.document.units import format_milliseconds
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.scenario.conditions import parse_conditions
from ssbench.scenario.model import Stage
from ssbench.statistics.confidence import Interval

text = products.find_writer(Product.CAPACITY, "text")
page = products.find_writer(Product.CAPACITY, "html")


def test_a_step_has_the_percentiles_of_the_report_of_its_run() -> None:
    """Of a rate that was not kept they were of what had begun alone, and a condition named both."""
    overloaded = play(lambda sent: sent + 0.0114, [Stage(5.0, (3, 3), (2000.0, 2000.0))])
    found = make_step(2000, overloaded)
    latency = overloaded.total.latency
    assert (found.p50, found.p99) == (latency.percentile(50), latency.percentile(99))
    assert found.p50 != overloaded.total.due.response.percentile(50)
    assert found.at_least == (50, 99)
    shown = text(Capacity("t", Variable.RATE, (found, found), (), "c", GateResult.PASSED))
    assert f">{format_milliseconds(found.p99)}" in shown
    assert f">: at least; some {NEVER_BEGAN}" in shown
    (finding,) = judge_objective(overloaded, parse_conditions("p99 <= 50ms"))
    assert finding.value == found.p99
    assert finding.text.startswith(f"p99 at least {finding.condition.spell_measured(found.p99)}, ")
    assert "due" not in finding.text
    kept = make_step(20, play(lambda sent: sent + 0.0114, [Stage(60.0, (3, 3), (20.0, 20.0))]))
    assert (kept.at_least, kept.p99) == ((), pytest.approx(0.0114, abs=1e-6))
    assert "at least" not in text(Capacity("t", Variable.RATE, (kept, kept), (), "c", GateResult.PASSED))


def test_the_table_of_a_search_shows_the_figure_that_is_judged(tmp_path: Path) -> None:
    latencies = np.full(700, 0.0123456)
    latencies[::100] = 0.0545812
    statistics = run(tmp_path, latencies)
    conditions = parse_conditions("read.p99 <= 50ms and errors <= 1%")
    steps = (make_step(6, statistics), make_step(6, statistics), make_step(12, statistics))
    judged = tuple(judge_objective(statistics, conditions))
    found = Capacity(
        "t", Variable.USERS, steps, ("", "", "not judged"), "c", GateResult.PASSED, (), (judged, judged, ())
    )
    lines = [re.split(r"  +", line.strip()) for line in text(found).splitlines()]
    first, second = (lines[place : place + 4] for place, line in enumerate(lines) if line[0] == "users")
    assert first[0][:4] == ["users", "read.p99", "errors", "s"]
    assert first[1][1] == "33.5ms ?"
    assert first[3][:4] == ["12", "-", "-", "19.5"]
    shown = dict(zip(first[0] + second[0], first[1] + second[1], strict=True))
    # Seven of 700 lie beyond p99, which is fewer than it needs.
    assert (shown["p99 ms"], shown["p50 ms"]) == ("-", "12.3")
    made = valid(capacity_report.make_capacity_json(found), "capacity")
    record = made["steps"][0]
    assert (record["value"], record["users"], record["p99"], record["supported"]) == (6, 8, None, 50)
    assert record["p50"] == pytest.approx(0.0123, rel=0.01)
    assert record["in_flight"] == pytest.approx(record["ops_per_second"] * record["mean"])
    assert (made["varied"], made["version"], made["exit_code"]) == ("users", 2, 0)
    assert made["judged_by"] == ["", "", "not judged"]
    assert "ops/s at 6, 12: \u2588\u2588\n" in text(found)
    # What each step was judged by is long: it is folded, and in text there with -v alone.
    assert "not judged" not in text(found)
    shown_page = page(found)
    assert shown_page.index("<summary><h2>How each step was judged") < shown_page.index("not judged")


def test_the_judged_share_of_errors_and_the_failed_operations_have_names_of_their_own(tmp_path: Path) -> None:
    statistics = run(tmp_path, np.full(700, 0.0123456))
    judged = tuple(judge_objective(statistics, parse_conditions("errors <= 1%")))
    step = make_step(4, statistics)
    heads = list_step_heads(
        Capacity("t", Variable.USERS, (step,), ("",), "c", GateResult.PASSED, (), (judged,))
    )
    assert "errors" in heads
    assert len(set(heads)) == len(heads)


@pytest.mark.parametrize("count", [0, 1, 2, 12])
def test_no_line_of_a_table_is_wider_than_a_terminal(tmp_path: Path, count: int) -> None:
    statistics = run(tmp_path, np.full(700, 0.0123456))
    step = structs.replace(
        make_step(100_000, statistics), rate=123_456.0, interval=Interval(100_000.0, 150_000.0, 20.0)
    )
    conditions = [each for n in range(count) for each in parse_conditions(f"read.small.p{80 + n} <= 50ms")]
    judged = tuple(judge_objective(statistics, conditions))
    title = "the most users at which" + " and read.p99 <= 50ms" * count
    found = Capacity(
        title, Variable.USERS, (step, step), ("", ""), "c", GateResult.PASSED, (), (judged, judged)
    )
    lines = text(found).splitlines()
    assert max(map(len, lines)) <= 80
    # Each column is there once, and the value stands before each part of the table.
    shown = [re.split(r"  +", line.strip()) for line in lines if line.strip().startswith("users  ")]
    assert [name for part in shown for name in part[1:]] == list_step_heads(found)[1:]
    assert sum(line.strip().startswith("100000  ") for line in lines) == 2 * len(shown)


def test_the_page_of_a_sweep(tmp_path: Path) -> None:
    few = run(tmp_path, np.full(40, 0.0123456))
    steps = (make_step(1, few), make_step(4, few))
    text = page(Capacity("t", Variable.USERS, steps, (), "c", GateResult.PASSED))
    assert "judged by" not in text
    (against,) = re.findall(r'<figure data-chart="([^"]*)"><figcaption>Throughput against latency', text)
    # Where too few results support p99, p50 is all that there is; the load stands at its points.
    curves = json.loads(html.unescape(against))["curves"]
    assert [(curve["name"], curve["labels"]) for curve in curves] == [("p50", ["1", "4"])]
    (rate,) = re.findall(r'<figure data-chart="([^"]*)"><figcaption>Rate', text)
    assert json.loads(html.unescape(rate))["ticks"] == [1, 4]
    assert "stat file" not in text
    assert _percentiles(steps[0]) == (pytest.approx(0.0123456), pytest.approx(math.nan, nan_ok=True))
    judged = page(Capacity("t", Variable.USERS, steps, ("it held", ""), "c", GateResult.PASSED))
    assert "judged by" in judged
    assert "<div class=long>it held</div>" in judged


def test_of_steps_without_latencies_the_page_has_no_empty_charts() -> None:
    steps = tuple(step(load, 100.0, mean=math.nan, p50=math.nan, p99=math.nan) for load in (4, 8))
    steps = tuple(structs.replace(each, in_flight=math.nan) for each in steps)
    text = page(Capacity("t", Variable.OBJECTS, steps, (), "c", GateResult.PASSED))
    assert re.findall(r'<figure data-chart="[^"]*"><figcaption>([A-Z][a-z]+)', text) == ["Rate", "Throughput"]


def test_the_title_of_phases_names_all_of_them() -> None:
    sweep = Capacity(
        "fill: sweep over objects", Variable.OBJECTS, (step(4, 9.0),), (), "c", GateResult.PASSED
    )
    found = PhaseCapacities((("fill", sweep), ("read", sweep)))
    assert make_phases_document(found).title == "fill, read: sweep over objects"


def test_the_page_of_a_search_has_the_limit_as_a_line() -> None:
    steps = tuple(step(load, 100.0) for load in (4, 8, 6))
    found = Capacity("t", Variable.USERS, steps, (), "c", GateResult.PASSED, answer=SearchAnswer(6, 5, 7))
    text = page(found)
    (rate,) = re.findall(r'<figure data-chart="([^"]*)"><figcaption>Rate', text)
    drawn = json.loads(html.unescape(rate))
    assert (drawn["marks"], drawn["ticks"]) == ([[6, "limit"]], [4, 6, 8])


def test_large_values_have_all_their_digits() -> None:
    """A sweep over sizes called 1 MiB 1.04858e+06."""
    steps = tuple(step(1 << power, 100.0) for power in (12, 20, 24))
    found = Capacity("t", Variable.SIZE, steps, (), "c", GateResult.PASSED)
    said = text(found)
    assert "e+0" not in said
    assert "ops/s at 4096, 1048576, 16777216: " in said
    assert [line.split()[0] for line in said.splitlines() if line.strip().startswith("1048576 ")] == [
        "1048576"
    ] * sum(line.strip().startswith("bytes ") for line in said.splitlines())
    (against,) = re.findall(
        r'<figure data-chart="([^"]*)"><figcaption>Throughput against latency', page(found)
    )
    labels = json.loads(html.unescape(against))["curves"][0]["labels"]
    assert labels == ["4096", "1048576", "16777216"]
    assert (
        "full at 4096, 16777216 bytes"
        in describe_limits(
            Variable.SIZE,
            [structs.replace(steps[place], generator_full=True, generator=0.95) for place in (0, 2)],
        )[0]
    )
    million = structs.replace(steps[1], value=1e6)
    assert "from 1000000 to 4,194,304 users" in str(
        describe_missing_gain(Variable.USERS, million, step(1 << 22, 100.0))
    )


def test_steps_without_an_interval_of_the_rate_are_why_no_change_of_it_is_judged() -> None:
    steps = tuple(
        step(1000 * 2**place, 100.0, None if place == 4 else 2.0) for place in range(MIN_TREND_STEPS)
    )
    (note,) = conclude_sweep("s", Variable.OBJECTS, steps, None, "").notes
    assert f"needs {MIN_TREND_STEPS} steps" in note
    assert f"{MIN_TREND_STEPS - 1} have one" in note


def fill_steps(*rates: float) -> list[SweepStep]:
    """How a minute of uploads went before each number of objects."""
    return [
        structs.replace(step(1000 * 2**place, rate, None), seconds=60.0, count=round(60 * rate))
        for place, rate in enumerate(rates)
    ]


@pytest.mark.parametrize(
    "rates",
    [
        [500.0] * 6,
        [500.0] * 4 + [400.0, 300.0],
        [500.0, 400.0, *[500.0] * 4],
        [495.0] * 6,
        [80.0] * 6,
        [300.0] * 6,
    ],
)
def test_a_fill_with_a_rate_of_its_own_tells_only_whether_that_was_kept(
    rates: list[float], golden_words: GoldenWords
) -> None:
    """It was said that the rate does not change, which it did as was asked for."""
    found = conclude_fill(fill_steps(*rates), "", 500.0)
    assert (found.trend, found.notes) == (None, ())
    golden_words(found.conclusion)


def test_a_fill_as_fast_as_users_can_tells_how_the_rate_changes() -> None:
    found = conclude_fill(fill_steps(*[500.0] * 6, *[250.0] * 6), "", None)
    assert found.headline.startswith("The rate falls from about ")
    assert conclude_fill(fill_steps(500.0), "interrupted", 500.0).result is GateResult.UNDECIDED


def test_page_and_conclusion_say_the_same_knee() -> None:
    """The one had 12.3 users, the other 12."""
    steps = tuple(step(load, 46.0 * min(load, 12.3), p50=load / 200) for load in (1, 2, 4, 8, 16, 32, 64))
    found = conclude_sweep("s", Variable.USERS, steps, None, "")
    assert found.headline == "Peak 565.8 ops/s at 16 users"
    assert found.conclusion.startswith(f"{found.headline}. The knee")
    assert "The knee is at 12 users (95 % sure: 12 to 13; " in found.conclusion
    text = page(found)
    assert "The knee is at 12 users (95 %: 12 to 13)." in text
    assert '["knee: 12"]' in html.unescape(text)


def test_the_headline_of_a_sweep_is_one_clause(golden_words: GoldenWords) -> None:
    """It was three sentences, one of which said that the sweep had gone through its values."""
    rising = tuple(step(load, 46.0 * load, p50=load / 200) for load in (1, 2, 4, 8))
    assert conclude_sweep("s", Variable.USERS, rising, None, "").headline == (
        "Peak 368.0 ops/s at 8 users, and still rising"
    )
    flat = conclude_sweep("s", Variable.USERS, rising[:1], None, "interrupted")
    assert flat.headline == "Peak 46.0 ops/s at 1 user"
    golden_words(flat.remarks)
    golden_words(conclude_sweep("s", Variable.USERS, (), None, "interrupted").headline)


def test_the_page_of_a_sweep_marks_the_knee() -> None:
    steps = tuple(step(load, 46.0 * min(load, 4), p50=max(0.02, load / 200)) for load in (1, 2, 4, 8, 16))
    found = find_knee(Variable.USERS, steps)
    assert found is not None
    assert found.reached
    text = page(Capacity("t", Variable.USERS, steps, (), "c", GateResult.PASSED, knee=found))
    figures = re.findall(r'<figure data-chart="([^"]*)"><figcaption>([^<]*)', text)
    charts = {title.strip(): json.loads(html.unescape(data)) for data, title in figures}
    against = charts["Throughput against latency"]
    (at,) = re.findall(r"The knee is at (.+?) users ", describe_knee(Variable.USERS, found, 1))
    assert against["curves"][-1]["labels"] == [f"knee: {at}"]
    assert f"The knee is at {at} users (95 %: " in text
    # On the curve, between the steps beside it.
    (x,), (y,) = against["tables"][-1]
    assert 15 < x < 25
    assert y == pytest.approx(184, rel=0.1)
    # What lies across is told: a first reader took 50, 100 and 200 below a rate for users.
    assert "against latency <small>ops/s, by ms</small>" in text
    assert "Latency <small>ms, by users</small>" in text
    assert charts["Rate"]["marks"] == [[pytest.approx(found.value), "knee"]]
    rising = page(
        Capacity("t", Variable.USERS, steps, (), "c", GateResult.PASSED, knee=replace(found, high=math.inf))
    )
    assert "knee: " not in rising
    assert "It is not certain that the steps went beyond the knee." in rising


@pytest.mark.parametrize(
    ("high", "headline"),
    [
        (549_548, "errors <= 0.1%: undecided from 11 users on"),
        (64, "errors <= 0.1%: undecided between 11 and 64 users"),
    ],
)
def test_an_upper_end_that_was_never_tried_is_no_headline(high: int, headline: str) -> None:
    answer = SearchAnswer(20, 11, high, narrow=False)
    tried = [(8.0, GateResult.PASSED), (64.0, GateResult.UNDECIDED)]
    found = conclude_search(Variable.USERS, "errors <= 0.1%", answer, "", "", tried)
    assert (found[0], found[2]) == (headline, GateResult.UNDECIDED)
    assert ("No step, up to 64 users, was certainly too much" in found[1][0]) is (high > 64)


def test_steps_that_missed_the_objective_are_named_where_the_limit_has_no_upper_end() -> None:
    tried = [
        *((64.0, GateResult.FAILED), (16.0, GateResult.PASSED), (32.0, GateResult.FAILED)),
        *((24.0, GateResult.UNDECIDED), (32.0, GateResult.PASSED)),
    ]
    answer = SearchAnswer(30, 23, 900, narrow=False)
    headline, remarks, _ = conclude_search(Variable.USERS, "read.p99 <= 50ms", answer, "", "", tried)
    assert headline == "read.p99 <= 50ms: undecided from 23 users on"
    assert remarks[0].startswith("It did not hold in steps at 32 users, 64 users, but ")
    assert "No step" not in remarks[0]
