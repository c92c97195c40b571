"""Comparisons of runs and tables of configurations in each format."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from compared_runs import group, many, markdown, repeated, run, text
from golden_words import GoldenWords
from said import NOT_MEASURED

from ssbench.comparison.comparison_report import RunCurves, draw_run_curves
from ssbench.comparison.comparison_verdict import judge_change_condition, judge_comparison
from ssbench.comparison.run_comparison import compare_runs
from ssbench.document.elements import Curve
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.scenario.conditions import parse_condition


def test_text():
    lines = text(repeated()).splitlines()
    assert lines[0] == "before: b0 and 3 more (4 runs); after: a0 and 3 more (4 runs)"
    assert lines[1] == "slower: ALL more errors (+0.1 points); ALL p50 (+20.0 %); most: READ p50 (+20.0"
    assert max(map(len, lines)) <= 80
    assert any(line.split()[-1:] == ["none"] for line in lines)
    assert "no verdict" in text(compare_runs([run(p50=1.0)], [run(p50=1.0)]))


def test_of_no_op_runs_the_first_lines_say_that_nothing_was_sent():
    alike = [run(name, {"noop": "yes"}, p50=1.0) for name in ("a", "b")]
    for lines in (text(compare_runs(alike, alike)), products.find_writer(Product.REPEATED, "text")(alike)):
        assert "no-op runs: nothing was sent to Swift" in " ".join(lines.splitlines()[:2])
    assert "no-op" not in text(repeated())


def test_columns_with_nothing_in_them_are_left_out():
    found = compare_runs([run(p50=1.0)], [run(p50=2.0)])
    assert text(found).splitlines()[3].split() == ["operation", "figure", "before", "after", "change"]
    assert "| before | after | change |\n|---|---|--:|--:|--:|\n" in markdown(found)
    assert {*products.format_names(Product.COMPARISON)} == {
        "text",
        "csv",
        "markdown",
        "html",
        "json",
        "junit",
    }


def test_a_hopeless_comparison_prints_no_digits_that_say_nothing():
    """``detects`` had fifteen digits, which cut off the names of figures and broke the table in two."""
    hopeless = compare_runs(group(1.0, 900.0, 0.01, 30.0), group(20.0, 0.02, 700.0, 1.0))
    assert judge_comparison(hopeless).headline == "no difference shown (detectable: >1,000 % or more)"
    row = next(line for line in text(hopeless).splitlines() if line.startswith("READ"))
    assert row.split()[-3:] == [">1,000", "%", "none"]


def test_an_interval_of_repeated_runs_that_says_nothing_is_a_dash(golden_words: GoldenWords):
    def table(*values):
        return products.find_writer(Product.REPEATED, "text")(group(*values))

    wide, narrow = table(1.0, 900.0, 0.01, 30.0), table(1.0, 1.3, 0.8, 1.1)
    golden_words(wide)
    assert next(line for line in wide.splitlines() if line.startswith("READ")).split()[3] == "-"
    assert "too wide" not in narrow


def test_every_format_has_the_same_verdict():
    judged = judge_change_condition(repeated(), parse_condition("p50 > +20%", relative=True))
    found = replace(repeated(), conditions=(judged,))
    headline = judge_comparison(found).headline
    assert headline.startswith("undecided: ")
    assert headline in text(found).replace("\n  ", " ")
    assert headline in markdown(found)
    assert (
        json.loads(products.find_writer(Product.COMPARISON, "json")(found))["verdict"]["headline"] == headline
    )
    assert headline in products.find_writer(Product.COMPARISON, "html")(found).replace("&#39;", "'")
    suite = ElementTree.fromstring(products.find_writer(Product.COMPARISON, "junit")(found))
    assert suite.get("skipped") == "2"
    assert next(suite.iter("skipped")).get("message") == headline


def name_suite(comparison):
    suite = ElementTree.fromstring(products.find_writer(Product.COMPARISON, "junit")(comparison))
    names = {each.get("classname") for each in suite.iter("testcase")}
    assert names == {f"ssbench.{suite.find('testsuite').get('name')}"}
    return suite.find("testsuite").get("name")


def test_names_of_tests_do_not_change_with_the_files():
    """A CI service follows a test by its name, and names of files have dates."""

    def named(date, facts=None, labels=("", "")):
        sides = ([replace(run(f"{date}-{label}", facts, p50=1.0), label=label)] for label in labels)
        return name_suite(compare_runs(*sides))

    scenario, labels = {"scenario": "Small"}, ("old", "new")
    for day in ("2026-05-01", "2026-05-02"):
        assert named(day) == "comparison"
        assert named(day, scenario) == "comparison of Small"
        assert named(day, labels=labels) == "comparison of old and new"
        assert named(day, scenario, labels) == "comparison of Small, old and new"


def test_curves_of_several_runs_have_short_names():
    """Names of files in the legend were larger than the charts; they stand below them once."""
    place = np.arange(3.0)

    def curves(side, count):
        names = [f"scenario-with-a-long-name.2026-05-01T12.00.{side}-{number}" for number in range(count)]
        return [
            RunCurves(
                name, Curve(name, place, place, "--blue"), {"READ": Curve(name, place, place, "--blue")}
            )
            for name in names
        ]

    rates, latencies, names = draw_run_curves(curves("a", 4), curves("b", 4))
    for chart in (rates, latencies):
        assert [(each.name, each.dash) for each in chart.curves] == [
            *((f"before {number}", "dashed") for number in range(1, 5)),
            *((f"after {number}", "solid") for number in range(1, 5)),
        ]
    assert names.text.startswith("before 1: scenario-with-a-long-name.2026-05-01T12.00.a-0; before 2: ")
    assert names.text.endswith("after 4: scenario-with-a-long-name.2026-05-01T12.00.b-3")
    one, _ = draw_run_curves(curves("a", 1), curves("b", 1))
    assert [each.name for each in one.curves] == [curves(side, 1)[0].name for side in "ab"]


def test_megabytes_are_no_bytes():
    found = compare_runs([run(mb_per_s=4.0)], [run(mb_per_s=5.0)])
    record = json.loads(products.find_writer(Product.COMPARISON, "json")(found))
    assert record["rows"][0]["changes"]["mb_per_s"]["before"] == pytest.approx(4.0)
    row = next(csv.DictReader(io.StringIO(products.find_writer(Product.COMPARISON, "csv")(found))))
    assert (row["Figure"], float(row["After"])) == ("mb_per_s", pytest.approx(5.0))


def test_a_table_of_configurations():
    runs = [
        run(facts={"scenario": "4K", "users": "64"}, rate=rate, p99=0.02, mb_per_s=4.0)
        for rate in (99.0, 101.0)
    ] + [run(facts={"scenario": "1M", "users": "64"}, rate=9.0)]
    lines = many(runs).splitlines()
    assert lines[0].split() == ["scenario", "runs", "GET/s", "all/s", "MB/s", "p99", "ms"]
    assert lines[1].split()[:6] == ["4K", "2", "100.0", "+-1.0", "%", "100.0"]
    assert lines[2].split() == ["1M", "1", "9.00", "9.00", "-", "-"]


def test_texts_of_stat_files_move_no_cursor():
    runs = [run(facts={"scenario": "4K\x1b[2J"}, rate=1.0), run(facts={"scenario": "1M"}, rate=9.0)]
    assert "4K\ufffd[2J" in many(runs)
    found = compare_runs([run("a\x1b", p50=1.0)], [run(p50=2.0)])
    assert "\x1b" not in markdown(found) + text(found)


def test_markdown_shows_names_as_they_are():
    found = compare_runs(
        [run("<img src=x>", operation="A|B", p50=1.0)], [run("@all `x`", operation="A|B", p50=2.0)]
    )
    shown = markdown(found)
    assert r"before: \<img src=x\> (1 run)" in shown
    assert "after: @\u2060all \\`x\\` (1 run)" in shown
    assert r"| A\|B | p50 ms |" in shown


def test_a_dash_is_explained_below_the_table() -> None:
    whole, lacking = run("a", p50=0.1, rate=10.0, p99=0.2), run("b", p50=0.1, rate=10.0)
    for shown in (text(compare_runs([whole], [lacking])), many([whole, lacking])):
        assert f"{NOT_MEASURED} (p99 needs 1,000), or only a lower bound" in shown
        assert max(map(len, shown.splitlines())) <= 80
    assert "-: not measured" not in many([run("a", rate=1.0, mb_per_s=1.0, p99=0.1)])


def test_an_interval_that_says_nothing_is_a_dash(golden_words: GoldenWords) -> None:
    wide = compare_runs([run("a", p50=0.1), run("b", p50=0.9)], [run("c", p50=0.2), run("d", p50=0.8)])
    shown = text(wide)
    assert "-100.0 to" not in shown
    golden_words(" ".join(shown.split()))
