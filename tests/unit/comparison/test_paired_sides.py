"""Two sides in one run: how they are compared."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from statistics import median
from types import SimpleNamespace

import numpy as np
import pytest
import simulated_runs
from golden_words import GoldenWords
from msgspec import structs
from simulated_runs import SCENARIO, Store, reads

from ssbench.base.errors import GateResult
from ssbench.comparison.archive import make_earlier_run, make_entry
from ssbench.comparison.comparison_verdict import Word, judge_change_condition, judge_comparison
from ssbench.comparison.noise_floor import NoiseFloors
from ssbench.comparison.paired_sides import _difference, compare_sides, measure_side_differences
from ssbench.document.figures import SERVER_KINDS
from ssbench.reports import products, run_tables
from ssbench.reports import writing as reports
from ssbench.reports.products import Product
from ssbench.reports.writing import ReportOptions
from ssbench.results.block import ResultBlock
from ssbench.results.run_description import RunDescription, ServerCpuSample
from ssbench.scenario.conditions import parse_condition
from ssbench.scenario.model import Stage
from ssbench.statistics.collector import ObjectCounts
from ssbench.statistics.confidence import t_quantile
from ssbench.statistics.latencies import select_latencies
from ssbench.statistics.run_verdict import Outcome
from ssbench.statistics.summary import make_collector, make_statistics

NAMES = ("old", "new")


def words(seed, change, floors=None, store=None, count=40):
    """The words for p50 of runs of a minute."""
    random = np.random.default_rng(seed)
    runs = (reads(random, 60, change, sides=NAMES, store=store) for _ in range(count))
    return [compare_sides(each, floors=floors).find(None, None, "p50").word for each in runs]


@pytest.mark.long
def test_sides_that_are_alike_are_seldom_called_different():
    assert sum(word != "no difference shown" for word in words(1, 1.0)) <= 5


@pytest.mark.long
@pytest.mark.parametrize("store", [Store(own=True, alike=0.95), Store(placement=0.04)])
def test_sides_with_noise_of_their_own_are_seldom_called_different(store):
    """What lasts longer than the run, or as long, is not in its seconds: 12 and 19 of 100 had a word."""
    assert sum(word != "no difference shown" for word in words(3, 1.0, store=store)) <= 3


def test_no_short_run_has_an_interval_that_is_many_times_as_wide_as_those_of_others():
    halves, off = _measure_p50(60, 100, None)
    assert max(halves) < 5 * median(halves)
    assert off <= 7, "of 60, of which one in twenty may"


def test_short_runs_whose_seconds_are_alike_are_as_uncertain_as_they_know_little(monkeypatch):
    monkeypatch.setattr(simulated_runs, "EACH_SECOND", 0.3)
    _, off = _measure_p50(100, 200, Store(own=True, alike=0.8))
    assert off <= 10, "of 100, as many as with the degrees of freedom of the seconds that they are worth"


def _measure_p50(count, rate, store):
    """Return half the widths of intervals of short runs with equal sides, and how many have no 0."""
    random = np.random.default_rng(5)
    runs = (reads(random, 12, sides=NAMES, rate=rate, store=store) for _ in range(count))
    found = [measure_side_differences(run)[("ALL", None), "p50"] for run in runs]
    halves = [t_quantile(0.975, each.freedom) * each.error for each in found]
    return halves, sum(abs(each.middle) > half for each, half in zip(found, halves, strict=True))


@pytest.mark.long
def test_a_sixth_is_found_in_a_minute():
    assert words(2, 1.16).count("slower") >= 36


def history(random, count, store=None):
    """Earlier runs in which nothing was changed."""
    return NoiseFloors(
        [
            [
                make_earlier_run(make_entry(reads(random, 60, sides=NAMES, store=store), "f", 1, 1))
                for _ in range(count)
            ]
        ]
    )


@pytest.mark.long
def test_earlier_equal_runs_tell_what_differs_from_run_to_run():
    """The noise of a side that lasts as long as a run is not in the run."""
    store = Store(alike=0.95, own=True, placement=0.04)
    random = np.random.default_rng(5)
    without = sum(word != "no difference shown" for word in words(6, 1.0, store=store))
    floors = [history(random, 8, store) for _ in range(4)]
    with_history = sum(
        word != "no difference shown"
        for seed, each in enumerate(floors, 6)
        for word in words(seed, 1.0, each, store, count=10)
    )
    assert without >= 4
    assert with_history <= 3


@pytest.mark.long
def test_ten_per_cent_are_found_with_earlier_runs():
    floors = history(np.random.default_rng(5), 8)
    assert words(2, 1.1, floors).count("slower") >= 34
    said = compare_sides(reads(np.random.default_rng(1), 60, sides=NAMES), floors=floors)
    assert said.judgment.endswith("is taken from 8 earlier equal runs")


def test_percentiles_that_are_lower_bounds_are_not_compared():
    found = measure_side_differences(reads(np.random.default_rng(3), 12, sides=NAMES))
    assert (("ALL", None), "p50") in found
    bounded = reads(np.random.default_rng(3), 12, sides=NAMES)
    some = bounded.sides[0].numbers.total
    kept = structs.replace(some, due=structs.replace(some.due, waited=some.last_byte))
    assert _difference((kept, kept), 0.5) is None


def test_what_never_began_is_known_of_the_run_and_leaves_its_sides_without_a_verdict(
    golden_words: GoldenWords,
):
    """Of which side it was is not known, so that percentiles were of what had begun alone, and compared."""
    numbers = reads(np.random.default_rng(3), 60, sides=NAMES)

    def compared(never_begun):
        waited = select_latencies(np.full(never_begun, 9.0))

        def late(part):
            due = structs.replace(part.due, response=part.last_byte, waited=waited)
            return structs.replace(part, due=due)

        sections = [
            structs.replace(late(section), lines=tuple(map(late, section.lines)))
            for section in numbers.sections
        ]
        return compare_sides(replace(numbers, sections=tuple(sections)))

    count = numbers.total.count
    for never_begun, known in (
        (count // 2000, ["p50", "p95", "p99", "errors"]),
        (count // 50, ["p50", "errors"]),
        (count // 3, ["errors"]),
    ):
        found = compared(never_begun)
        assert [[*row.changes] for row in found.rows] == [known, known]
    golden_words(found.judgment)
    assert not found.repeated


def test_sides_are_parts_of_a_run():
    numbers = reads(np.random.default_rng(3), 12, sides=NAMES, mixed=True)
    assert tuple(side.name for side in numbers.sides) == NAMES
    assert not numbers.by_group
    before, after = (side.numbers for side in numbers.sides)
    assert before.total.count + after.total.count == numbers.total.count
    for whole, *parts in zip(numbers.sections, before.sections, after.sections, strict=True):
        assert {each.operation for each in parts} == {whole.operation}
        assert sum(each.count for each in parts) == whole.count
        shares = [each.requests_per_second for each in parts]
        assert sum(shares) == pytest.approx(whole.requests_per_second, rel=0.01)
    titles = [kind.title for kind in run_tables.BREAKDOWN_KINDS if kind.parts(numbers)]
    assert titles == ["Sides"]
    assert not reads(np.random.default_rng(3), 12).sides


def test_every_figure_of_both_sides_stands_in_a_row():
    found = compare_sides(reads(np.random.default_rng(3), 60, 1.3, sides=NAMES))
    assert (found.before, found.after) == NAMES
    assert [row.operation for row in found.rows] == ["READ", "ALL"]
    change = found.find("read", None, "p50")
    assert change.before == pytest.approx(0.01, rel=0.1)
    assert change.low < 0.3 < change.high
    assert found.find("read", None, "p95").low is not None
    assert found.find("read", None, "p99").low is not None
    assert found.find("read", None, "rate") is None
    assert found.find("read", "small", "p50") is change
    assert found.find("read", "big", "p50") is None


def test_the_cpu_of_the_servers_of_each_side_is_compared(golden_words: GoldenWords):
    """Servers of one release differ too, by what no run shows of itself; a condition may name the figure."""
    statistics = reads(np.random.default_rng(3), 60, sides=NAMES)

    def with_cpu(costs, **others):
        random = np.random.default_rng(4)
        sides = [
            tuple(
                ServerCpuSample(
                    1e9 + at,
                    1.0,
                    200,
                    dict.fromkeys(SERVER_KINDS, 200 * cost * random.normal(1, 0.02)) | others,
                    side,
                )
                for at in range(60)
            )
            for side, cost in enumerate(costs)
        ]
        parts = [
            replace(side, numbers=replace(side.numbers, cpu_samples=samples))
            for side, samples in zip(statistics.sides, sides, strict=True)
        ]
        return compare_sides(replace(statistics, sides=tuple(parts)))

    found = with_cpu((0.002, 0.0024))
    change = found.find(None, None, "proxy_cpu")
    assert (change.before, change.after) == (pytest.approx(0.002, rel=0.01), pytest.approx(0.0024, rel=0.01))
    assert 0.1 < change.low < 0.2 < change.high < 0.3
    assert change.word == "more"
    assert found.find("read", None, "proxy_cpu") is None
    table = products.find_writer(Product.COMPARISON, "text")(found)
    for kind in SERVER_KINDS:  # beside the intervals there is no room for "ALL  listings CPU ms"
        assert re.search(rf"^{kind} +CPU ms  ", table, re.MULTILINE), kind
    (how,) = (each for each in judge_comparison(found).reasons if "CPU" in each)
    golden_words(how)
    for text, result in (("proxy.cpu > +5%", GateResult.FAILED), ("proxy.cpu > +50%", GateResult.PASSED)):
        condition = parse_condition(text, relative=True)
        assert judge_change_condition(found, condition).result is result, text
    assert with_cpu((0.002, 0.00202)).find(None, None, "proxy_cpu").word == "no difference shown"
    assert compare_sides(statistics).find(None, None, "proxy_cpu") is None
    # A file may say anything of a kind of server that is not known.
    assert with_cpu((0.002, 0.0024), cache=1.0).find(None, None, "proxy_cpu").word == "more"


def test_sides_of_a_run_with_stages_are_compared_and_their_rates_have_no_interval():
    plan = (Stage(20, (2, 2)), Stage(20, (8, 8)))
    run = RunDescription(replace(SCENARIO, stages=plan), sides=NAMES, stages=("1", "2"))
    facts = SimpleNamespace(run=run, size_classes=("small",), summary=None, warnings=(), current=True)
    random = np.random.default_rng(3)
    completed = 1e9 + np.concatenate([np.linspace(0.1, 20, 800), np.linspace(20.1, 40, 3200)])
    side = random.integers(0, 2, len(completed))
    latency = 0.01 * np.exp(random.normal(0, 0.3, len(completed))) * np.where(side, 1.2, 1.0)
    columns = {"operation": np.ones(len(side), int), "completed": completed, "last_byte": latency}
    collector = make_collector(facts)
    stage = (completed > 1e9 + 20).astype(int)
    collector.add(ResultBlock(len(side), {**columns, "group": side, "stage": stage}))
    numbers = make_statistics(collector, facts)
    for each in numbers.sides:
        assert [section.rate_interval for section in each.numbers.sections] == [None, None]
        assert [line.rate_interval for line in each.numbers.total.lines] == [None, None]
    found = compare_sides(numbers).find(None, None, "p50")
    assert found.low < 0.2 < found.high
    made = json.loads(reports.make_run_report("json", numbers, ReportOptions()))
    figures = [each["operations"][0]["figures"] for each in made["sides"]]
    assert [(each["ops_interval"], each["last_byte"]["intervals"]) for each in figures] == [(None, {})] * 2


def test_a_run_that_is_too_short_for_intervals_has_no_verdict():
    short = compare_sides(reads(np.random.default_rng(3), 5, 1.5, sides=NAMES))
    assert short.find("read", None, "p50").change == pytest.approx(0.5, abs=0.2)
    said = products.find_writer(Product.COMPARISON, "text")(short)
    assert "no verdict" in said
    assert "too short" in said
    assert "no difference" not in said
    assert "Student" not in said
    assert not short.repeated


def test_a_run_without_sides_is_refused():
    with pytest.raises(ValueError, match="no two sides"):
        compare_sides(reads(np.random.default_rng(4), 20))


def test_few_objects_on_unequal_devices_are_said_and_make_no_difference(golden_words: GoldenWords):
    """Of 20 objects on devices that differ by 30 %, 23 of 60 equal comparisons differed."""
    random, differ = np.random.default_rng(8), 0
    for _ in range(20):
        found = compare_sides(reads(random, 60, sides=NAMES, store=Store(objects=20, differ=0.3)))
        differ += found.find(None, None, "p50").differs
    assert differ <= 2
    assert "of only 10 objects is assumed" in found.judgment
    golden_words(found.warnings[0])
    twice = compare_sides(reads(random, 60, 2.5, sides=NAMES, store=Store(objects=20, differ=0.3)))
    assert judge_comparison(twice).word is Word.SLOWER


def test_many_objects_widen_nothing():
    random = np.random.default_rng(8)
    many = compare_sides(reads(random, 60, 1.2, sides=NAMES, store=Store(objects=2000, differ=0.3)))
    assert judge_comparison(many).word is Word.SLOWER
    assert "devices: 3.5 % a side is assumed" in many.judgment
    assert not many.warnings


def test_objects_count_as_often_as_they_are_used():
    used = ObjectCounts()
    number = np.concatenate([np.repeat(np.arange(10), 5), np.full(50, 10)])
    used.add(ResultBlock(100, {"operation": np.ones(100, int), "object": number}))
    assert used.effective(1) == pytest.approx(100**2 / (10 * 25 + 50**2))
    assert used.effective(0) is None
    used.add(ResultBlock(1, {"operation": np.ones(1, int)}))  # of which nobody knows
    assert used.effective() is None


def of_failures(change: float = 1.0, **store):
    """A comparison of the sides of a minute, of which operations fail."""
    return compare_sides(reads(np.random.default_rng(4), 60, change, sides=NAMES, store=Store(**store)))


def test_no_difference_is_said_of_sides_of_which_one_fails():
    said = judge_comparison(of_failures(failing=(0.0, 0.4)))
    assert said.word is Word.WORSE
    assert said.headline.startswith("worse: ALL more errors (+")


def test_a_side_that_sheds_load_is_not_called_faster():
    said = judge_comparison(of_failures(0.72, failing=(0.0, 0.3)))
    assert (said.word, said.outcome) == (Word.WORSE_AND_BETTER, Outcome.FAILED)
    assert said.headline.startswith("worse and better: ALL more errors (+")


def test_failures_that_are_alike_are_no_difference_and_the_least_that_would_show_is_said():
    said = judge_comparison(of_failures(failing=(0.01, 0.01)))
    assert said.word is Word.SAME
    assert "points of errors or more)" in said.headline


def test_bursts_of_failures_are_few_events_however_many_operations_they_have():
    found = [of_failures(bursts=count).find(None, None, "errors") for count in (1, 3)]
    assert not any(each.differs for each in found)
    for each in found:
        assert each.low < 0 < each.high
        assert each.after_low <= each.after < each.after_high


@pytest.mark.parametrize(
    ("condition", "failing", "result"),
    [
        ("errors > +1%", (0.0, 0.3), GateResult.FAILED),
        ("errors > +1%", (0.05, 0.05), GateResult.UNDECIDED),
        ("errors > +1%", (0.001, 0.001), GateResult.PASSED),
        ("errors > 5%", (0.0, 0.3), GateResult.FAILED),
        ("errors > 5%", (0.0, 0.05), GateResult.UNDECIDED),
        ("errors > 5%", (0.0, 0.001), GateResult.PASSED),
    ],
)
def test_a_condition_on_failures_of_two_sides_ends_in_three_ways(condition, failing, result):
    found = judge_change_condition(of_failures(failing=failing), parse_condition(condition, relative=True))
    assert found.result is result
    assert bool(found.needs) is (result is GateResult.UNDECIDED)


def test_failures_are_compared_where_latencies_cannot_be(golden_words: GoldenWords):
    """All of one side fails: it has no latencies."""
    found = of_failures(failing=(0.0, 1.0))
    assert judge_comparison(found).word is Word.WORSE
    golden_words(found.judgment)


def test_a_side_of_which_requests_are_retried_is_no_silent_equal() -> None:
    numbers = reads(np.random.default_rng(3), 60, sides=NAMES)
    before, after = numbers.sides
    total = after.numbers.total
    many = structs.replace(total, counted={**total.counted, "retries": total.count // 20})
    worse = replace(after, numbers=replace(after.numbers, sections=(many, *after.numbers.sections[1:])))
    (warning,) = (
        each for each in compare_sides(replace(numbers, sides=(before, worse))).warnings if "retried" in each
    )
    assert warning.startswith(f"side {after.name}: ")
    assert not any("retried" in each for each in compare_sides(numbers).warnings)
