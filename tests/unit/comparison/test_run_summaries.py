"""The summary of runs that are repeated, and which of them does not fit."""

from __future__ import annotations

import pytest
from golden_words import GoldenWords
from repeated_runs import run

from ssbench.comparison.run_figures import FigureSample, RunFigures
from ssbench.comparison.run_summaries import find_outlier_runs
from ssbench.reports import products
from ssbench.reports.products import Product


def test_an_outlier_is_named_and_its_neighbours_are_not() -> None:
    runs = [run(f"r{index}", 500 + index) for index in range(7)]
    assert find_outlier_runs(runs) == []
    found = find_outlier_runs([*runs, run("odd", 400)])
    assert len(found) == 1
    assert found[0].startswith("odd does not fit: ops/s -20.")
    assert find_outlier_runs([run("a", 1), run("b", 2), run("c", 4)]) == []


def test_the_summary_of_a_group(golden_words: GoldenWords) -> None:
    write = products.find_writer(Product.REPEATED, "text")
    lines = write([run("a", 490), run("b", 500), run("c", 510, warnings=("c: it was hot",))]).splitlines()
    assert lines[0] == "3 runs: a to c"
    rate = next(line for line in lines if line.startswith("READ")).split()
    assert float(rate[2]) == pytest.approx(499.9, abs=0.1)
    assert rate[3:6] == ["475.7", "to", "525.4"]  # t of 2 degrees of freedom is 4.303
    assert rate[6:] == ["490.0", "510.0", "2.0", "%"]
    assert max(map(len, lines)) <= 80
    assert "! c: it was hot" in lines
    golden_words(" ".join(" ".join(lines).split()))


def test_the_summary_says_what_runs_warn_of_alike_once() -> None:
    write = products.find_writer(Product.REPEATED, "text")
    runs = [run(name, warnings=(f"{name}: others used {used} %",)) for name, used in (("a", 31), ("b", 42))]
    text = " ".join(write(runs).split())
    assert "! a: others used 31 %; likewise in 1 more run" in text
    assert "b: others" not in text


def test_a_percentile_that_a_run_lacks_is_left_out_of_the_summary(golden_words: GoldenWords) -> None:
    rows = [
        {"rate": FigureSample(60.0), "p99": FigureSample(1.8)},
        {"rate": FigureSample(55.0), "p99": FigureSample(1.9)},
    ]
    runs = [RunFigures(f"r{index}", {("ALL", None): row}) for index, row in enumerate(rows)]
    write = products.find_writer(Product.REPEATED, "text")
    assert "p99 ms" in write(runs)
    assert "left out" not in write(runs)
    text = write([*runs, RunFigures("slow", {("ALL", None): {"rate": FigureSample(20.0)}})])
    assert "p99 ms" not in text
    golden_words(" ".join(text.split()))
